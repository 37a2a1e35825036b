/* compiler/per_sample/per_sample_weighted.c -- sums over samples whose terms have factors.
 *
 * The node that adds up the samples is linear in each of its operands: one operand's elements are
 * multiplied by the factors of their samples, and no term is made by itself. Samples that count as
 * zero may have any values, also NaN, so they are zeros in all operands. */
#include "compiler/fold/append.h"
#include "compiler/per_sample/per_sample.h"

/* The factors as a value that broadcasts to x: [.., batch, ..] along the samples' axis. */
static LsValueId factors_along(const LsPerSample *p, LsValueId v, const LsShape *x, int axis)
{
    LsShape s = {.rank = x->rank};
    for (int k = 0; k < s.rank; k++)
        s.dim[k] = k == axis ? p->g->batch : 1;
    return ls_reshape(p->cx, p->g, v, &s);
}

/* x [.., batch, ..], with `times` multiplied by the factors; 0 where the factor is 0, whatever x
 * is. */
static LsValueId weigh(const LsPerSample *p, LsValueId x, int axis, bool times)
{
    LsGraph *g = p->g;
    const LsShape s = *ls_shape(g, x);
    LsValueId counts =
        ls_append2(p->cx, g, LS_OP_GREATER, p->factor, ls_const_real(p->cx, g, 0), NULL);
    LsValueId y =
        times ? ls_append2(p->cx, g, LS_OP_MUL, x, factors_along(p, p->factor, &s, axis), NULL) : x;
    return ls_append3(p->cx, g, LS_OP_WHERE, factors_along(p, counts, &s, axis), y,
                      ls_const_real(p->cx, g, 0), NULL);
}

/* The same for x of any shape. */
static LsValueId scaled(LsPerSample *p, LsValueId x, bool times)
{
    LsGraph *g = p->g;
    LsShape s = *ls_shape(g, x);
    const LsShape was = s;
    const int64_t place = p->samples.of[x.i].inner[0];
    int axis = ls_sample_axis(&s, place, g->batch);
    if (axis < 0 || s.dim[axis] != g->batch) {
        s = (LsShape){3, {ls_count(&was) / place / g->batch, g->batch, place}};
        x = ls_reshape(p->cx, g, x, &s);
        axis = 1;
    }
    return ls_reshape(p->cx, g, weigh(p, x, axis, times), &was);
}

/* The value whose elements v has in another order. */
static LsValueId source(const LsGraph *g, LsValueId v)
{
    const LsNodeId n = g->value[v.i].def;
    const bool moves = g->node[n.i].op == LS_OP_RESHAPE || g->node[n.i].op == LS_OP_TRANSPOSE;
    return moves ? source(g, ls_in(g, n, 0)) : v;
}

/* The nodes between `from` and v, with x in place of `from`. */
static LsValueId moved(LsPerSample *p, LsValueId v, LsValueId from, LsValueId x)
{
    const LsNodeId n = p->g->value[v.i].def;
    const LsNode node = p->g->node[n.i];
    const LsAttr at = node.attr;
    return v.i == from.i ? x
                         : ls_append1(p->cx, p->g, (LsOpCode)node.op,
                                      moved(p, ls_in(p->g, n, 0), from, x), &at);
}

/* The sum of the terms, with their factors; none: the terms are not there, or adding them up takes
 * more time than the node that makes v without them. */
static LsValueId sum_of_terms(LsPerSample *p, LsValueId v)
{
    const LsGraph *g = p->g;
    const uint32_t first = g->nnode;
    const LsValueId of = ls_is(p->each[v.i]) ? v : source(g, v);
    const LsShape s = *ls_shape(g, of);
    const LsNodeId n = g->value[source(g, v).i].def;
    LsValueId sum = p->each[of.i];
    if (!ls_is(sum))
        return sum;
    if (ls_is(p->factor))
        sum = weigh(p, sum, 0, true);
    sum = ls_append1(p->cx, p->g, LS_OP_REDUCE_SUM, sum,
                     &(LsAttr){.reduce = {.axes = 1, .keep = true}});
    sum = moved(p, v, of, ls_reshape(p->cx, p->g, sum, &s));
    return ls_price_since(p, first) < ls_price(p, n) ? sum : (LsValueId){0};
}

LsValueId ls_gradient_from_terms(LsPerSample *p, LsValueId v, LsClippedSums sums)
{
    const bool weighs = ls_is(p->factor);
    if (ls_is_of_samples(p, v))
        return weighs ? scaled(p, v, true) : v;
    const LsValueId sum = weighs && sums == LS_SUMS_AGAIN ? (LsValueId){0} : sum_of_terms(p, v);
    if (!ls_is(sum))
        return weighs ? ls_weighed(p, v) : v;
    if (!weighs || sums == LS_SUMS_TERMS)
        return sum;
    const LsValueId other = ls_weighed(p, v);
    return ls_is(other) ? ls_append2(p->cx, p->g, LS_OP_EITHER, sum, other, NULL) : other;
}

/* The operand that is multiplied: of a product's or a convolution's two the smaller one that
 * depends on samples. */
static int operand_to_scale(const LsPerSample *p, LsNodeId n)
{
    const LsOpCode op = (LsOpCode)p->g->node[n.i].op;
    const bool either = op == LS_OP_MATMUL || op == LS_OP_CONV_DW;
    if (either && ls_sample_role(p, ls_in(p->g, n, 0)) != LS_PLACED)
        return 1;
    return either && ls_sample_role(p, ls_in(p->g, n, 1)) == LS_PLACED
                   && ls_count(ls_in_shape(p->g, n, 1)) < ls_count(ls_in_shape(p->g, n, 0))
               ? 1
               : 0;
}

LsValueId ls_weighed(LsPerSample *p, LsValueId v)
{
    LsGraph *g = p->g;
    const LsNodeId n = g->value[v.i].def;
    const LsNode node = g->node[n.i];
    const LsAttr at = node.attr;
    if (ls_is(p->weighed[v.i]))
        return p->weighed[v.i];
    if (g->batch == 1) {
        const LsShape s = *ls_shape(g, v);
        return p->weighed[v.i] = ls_reshape(p->cx, g, weigh(p, ls_each(p, v), 0, true), &s);
    }
    if (ls_sample_role(p, v) != LS_SUMMED || !ls_adds_linearly(p, n))
        return ls_refuse_node(p, n);
    LsValueId *in = ls_arena_alloc(p->cx->arena, node.nin, sizeof *in);
    for (int k = 0; k < node.nin; k++) {
        in[k] = ls_in(g, n, k);
        if (ls_sample_role(p, in[k]) != LS_SUMMED)
            continue;
        in[k] = ls_weighed(p, in[k]);
        if (!ls_is(in[k]))
            return in[k];
    }
    const int times = operand_to_scale(p, n);
    for (int k = 0; k < node.nin; k++)
        if (ls_is(in[k]) && ls_type(g, in[k]) == LS_REAL
            && ls_sample_role(p, ls_in(g, n, k)) == LS_PLACED)
            in[k] = scaled(p, in[k], k == times);
    return p->weighed[v.i] = ls_append(p->cx, g, node.op, node.nin, in, &at);
}
