/* compiler/passes/per_sample_norms.c -- norms of the terms of a sum over samples, without the terms where that is
 * cheaper.
 *
 * The gradient of a weight in a product is, for a sample with t rows x and g, the sum of the t outer products of their
 * rows. With t = 1 its norm is the product of the rows' norms; else pairs of rows give it (row_pairs.h). */
#include "compiler/fold/append.h"
#include "compiler/passes/per_sample.h"
#include "compiler/passes/row_pairs.h"

/* Sums of squares of v [batch, ...] over all axes but the first: [batch]. */
static LsValueId squares(const LsPerSample *p, LsValueId v)
{
    const LsShape s = *ls_shape(p->g, v);
    const LsShape flat = {2, {p->g->batch, ls_count(&s) / p->g->batch}}, to = {1, {p->g->batch}};
    v = ls_reshape(p->cx, p->g, v, &flat);
    v = ls_append1(p->cx, p->g, LS_OP_REDUCE_SUM_SQUARE, v, &(LsAttr){.reduce = {2, true}});
    return ls_reshape(p->cx, p->g, v, &to);
}

/* The same for the terms of a weight gradient, [batch * filters, channels, ..], before they are reshaped: in the layout in
 * which their kernel makes them. None: v is something else. */
static LsValueId squares_of_weights(const LsPerSample *p, LsValueId v)
{
    LsGraph *g = p->g;
    LsNodeId n = g->value[v.i].def;
    if (g->node[n.i].op == LS_OP_RESHAPE)
        n = g->value[ls_in(g, n, 0).i].def;
    if (g->node[n.i].op != LS_OP_CONV_DW)
        return (LsValueId){0};
    v = ls_out(g, n, 0);
    const LsShape s = *ls_shape(g, v);
    v = ls_append1(p->cx, g, LS_OP_REDUCE_SUM_SQUARE, v, &(LsAttr){.reduce = {(1u << s.rank) - 2, true}});
    const LsShape filters = {2, {g->batch, s.dim[0] / g->batch}}, to = {1, {g->batch}};
    v = ls_reshape(p->cx, g, v, &filters);
    v = ls_append1(p->cx, g, LS_OP_REDUCE_SUM, v, &(LsAttr){.reduce = {2, true}});
    return ls_reshape(p->cx, g, v, &to);
}

bool ls_takes_pairs(const LsPerSample *p, int64_t rows, int64_t a, int64_t b)
{
    enum { PER_ELEMENT = 6 };       /* products of pairs in the time of writing and reading an element */
    if (p->norms != LS_NORMS_CHEAPER)
        return p->norms == LS_NORMS_PAIRS;
    return 2 * rows * (a + b) <= a * b || rows * rows * (a + b) <= PER_ELEMENT * a * b;
}

/* By pairs of rows, if v is a product over the rows of samples, or a convolution's weight gradient, and that pays; else
 * none. */
static LsValueId by_rows(LsPerSample *p, LsValueId v)
{
    LsGraph *g = p->g;
    const LsNodeId n = g->value[v.i].def;
    LsRowSum of;
    if (g->node[n.i].op == LS_OP_CONV_DW && ls_adds_linearly(p, n))
        return ls_conv_norm_by_rows(p, n);
    if (!ls_row_sum_of(g, n, &of) || ls_sample_role(p, ls_in(g, n, 0)) != LS_PLACED
        || ls_sample_role(p, ls_in(g, n, 1)) != LS_PLACED)
        return (LsValueId){0};
    const int64_t t = of.rows / g->batch;
    if (!ls_takes_pairs(p, t, of.length[0], of.length[1]))
        return (LsValueId){0};
    const LsValueId a = ls_each(p, ls_in(g, n, 0)), b = ls_is(a) ? ls_each(p, ls_in(g, n, 1)) : a;
    if (!ls_is(b))
        return b;
    if (t == 1) {
        LsValueId both = ls_append2(p->cx, g, LS_OP_MUL, squares(p, a), squares(p, b), NULL);
        return of.alpha == 1 ? both : ls_scale(p->cx, g, both, of.alpha * of.alpha);
    }
    LsValueId sum = ls_row_pairs(p->cx, g, &of, a, b);
    sum = ls_append1(p->cx, g, LS_OP_REDUCE_SUM, sum, &(LsAttr){.reduce = {2 | 4, true}});
    return ls_reshape(p->cx, g, sum, &(LsShape){1, {g->batch}});
}

LsValueId ls_each_norm(LsPerSample *p, LsValueId v)
{
    LsGraph *g = p->g;
    LsValueId of = v;               /* the same elements in another order */
    for (LsNodeId n = g->value[of.i].def; g->node[n.i].op == LS_OP_RESHAPE || g->node[n.i].op == LS_OP_TRANSPOSE;
         n = g->value[of.i].def)
        of = ls_in(g, n, 0);
    LsValueId sum = g->batch > 1 ? by_rows(p, of) : (LsValueId){0};
    if (ls_is(sum))
        return sum;
    of = ls_each(p, of);
    if (!ls_is(of))
        return of;
    sum = squares_of_weights(p, of);
    return ls_is(sum) ? sum : squares(p, of);
}
