/* compiler/passes/per_sample_norms.c -- norms of the terms of a sum over samples, without the terms where that is
 * cheaper.
 *
 * The gradient of a weight in a product is, for a sample with t rows x and g, the sum of the t outer products of their
 * rows. With t = 1 its norm is the product of the rows' norms. Else its square is the sum over all pairs of rows of
 * (x x)(g g): t^2 products of each row's length in place of t products of all the weight's elements. */
#include "compiler/fold/append.h"
#include "compiler/passes/per_sample.h"

/* Sums of squares of v [batch, ...] over all axes but the first: [batch]. */
static LsValueId squares(const LsPerSample *p, LsValueId v)
{
    const LsShape s = *ls_shape(p->g, v);
    const LsShape flat = {2, {p->g->batch, ls_count(&s) / p->g->batch}}, to = {1, {p->g->batch}};
    v = ls_reshape(p->cx, p->g, v, &flat);
    v = ls_append1(p->cx, p->g, LS_OP_REDUCE_SUM_SQUARE, v, &(LsAttr){.reduce = {2, true}});
    return ls_reshape(p->cx, p->g, v, &to);
}

/* v v^T of the rows [batch, t, length]; `turned`: of [batch, length, t]. */
static LsValueId gram(const LsPerSample *p, LsValueId v, bool turned)
{
    const LsAttr at = {.gemm = {.trans_a = turned, .trans_b = !turned, .alpha = 1}};
    return ls_append2(p->cx, p->g, LS_OP_MATMUL, v, v, &at);
}

/* By pairs of rows, if v is a product over the rows of samples and that takes fewer operations; else none. */
static LsValueId by_rows(LsPerSample *p, LsValueId v)
{
    LsGraph *g = p->g;
    const LsNodeId n = g->value[v.i].def;
    const LsGemmAttr at = g->node[n.i].attr.gemm;
    if (g->node[n.i].op != LS_OP_MATMUL || ls_sample_role(p, ls_in(g, n, 0)) != LS_PLACED
        || ls_sample_role(p, ls_in(g, n, 1)) != LS_PLACED || ls_shape(g, v)->rank != 2 || ls_is(ls_in(g, n, 2)))
        return (LsValueId){0};
    const bool turned[2] = {!at.trans_a, at.trans_b};           /* rows of samples are columns */
    const int64_t t = ls_in_shape(g, n, 0)->dim[turned[0] ? 1 : 0] / g->batch;
    const int64_t a = ls_shape(g, v)->dim[0], b = ls_shape(g, v)->dim[1];
    if (t * (a + b) >= a * b)
        return (LsValueId){0};
    LsValueId in[2];
    for (int k = 0; k < 2; k++) {
        in[k] = ls_each(p, ls_in(g, n, k));
        if (!ls_is(in[k]))
            return in[k];
        in[k] = t == 1 ? squares(p, in[k]) : gram(p, in[k], turned[k]);
    }
    LsValueId sum = ls_append2(p->cx, g, LS_OP_MUL, in[0], in[1], NULL);
    if (t > 1) {
        sum = ls_append1(p->cx, g, LS_OP_REDUCE_SUM, sum, &(LsAttr){.reduce = {2 | 4, true}});
        sum = ls_reshape(p->cx, g, sum, &(LsShape){1, {g->batch}});
    }
    return at.alpha == 1 ? sum : ls_scale(p->cx, g, sum, at.alpha * at.alpha);
}

LsValueId ls_each_norm(LsPerSample *p, LsValueId v)
{
    LsGraph *g = p->g;
    LsValueId of = v;               /* the same elements in another order */
    for (LsNodeId n = g->value[of.i].def; g->node[n.i].op == LS_OP_RESHAPE || g->node[n.i].op == LS_OP_TRANSPOSE;
         n = g->value[of.i].def)
        of = ls_in(g, n, 0);
    LsValueId sum = ls_is(p->each[v.i]) ? (LsValueId){0} : by_rows(p, of);
    if (ls_is(sum))
        return sum;
    v = ls_each(p, v);
    return ls_is(v) ? squares(p, v) : v;
}
