/* compiler/patterns/patterns_norm.c -- matches layer norm as exporters decomposed it before opset
 * 17: ReduceMean, Sub, Pow (or Mul), ReduceMean, Add, Sqrt, Div, Mul, Add. */
#include "compiler/patterns/patterns_norm.h"

#include "compiler/fold/append.h"

/* First axis of a mean over the last axes of v; 0: not such a mean. */
static int mean_axis(const LsMatch *m, LsNodeId n)
{
    uint32_t axes = m->g->node[n.i].attr.reduce.axes;
    int rank = ls_in_shape(m->g, n, 0)->rank;
    for (int axis = 1; axis < rank; axis++)
        if (axes == (((1u << rank) - 1) & ~((1u << axis) - 1)))
            return axis;
    return 0;
}

/* If z = (x - mean) / sqrt(var + eps): x, with *axis and *eps set; else none. */
static LsValueId normalised(const LsMatch *m, LsValueId z, int *axis, double *eps)
{
    const LsGraph *g = m->g;
    LsNodeId div, sub, mean, sqrt, add, var, sq;
    if (!ls_made_by(m, z, LS_OP_DIV, 1, &div)
        || !ls_made_by(m, ls_in(g, div, 1), LS_OP_SQRT, 1, &sqrt)
        || !ls_made_by(m, ls_in(g, sqrt, 0), LS_OP_ADD, 1, &add))
        return (LsValueId){0};
    int which = ls_is_const(g, ls_in(g, add, 0)) ? 0 : 1;
    LsValueId e = ls_in(g, add, which);
    if (!ls_is_const(g, e) || ls_count(ls_shape(g, e)) != 1
        || !ls_made_by(m, ls_in(g, add, 1 - which), LS_OP_REDUCE_MEAN, 1, &var)
        || !ls_made_by(m, ls_in(g, var, 0), LS_OP_MUL, 1, &sq))
        return (LsValueId){0};
    /* x - mean is one value with three readers, or some exporters repeat it for the square */
    LsValueId d = ls_in(g, div, 0), s = ls_in(g, sq, 0);
    uint32_t own = d.i == s.i ? 3 : 1;
    if (s.i != ls_in(g, sq, 1).i || !ls_made_by(m, d, LS_OP_SUB, own, &sub)
        || !ls_made_by(m, ls_in(g, sub, 1), LS_OP_REDUCE_MEAN, 0, &mean))
        return (LsValueId){0};
    LsValueId x = ls_in(g, sub, 0);
    LsNodeId again = sub;
    if (d.i != s.i && (!ls_made_by(m, s, LS_OP_SUB, 2, &again) || ls_in(g, again, 0).i != x.i
                       || ls_in(g, again, 1).i != ls_in(g, sub, 1).i))
        return (LsValueId){0};
    *axis = mean_axis(m, mean);
    *eps = ls_const_at(g, e, 0);
    return ls_in(g, mean, 0).i == x.i && *axis != 0 && mean_axis(m, var) == *axis ? x
                                                                                  : (LsValueId){0};
}

/* v has one element for each place of the normalised axes, and only axes of 1 in front. */
static bool fits(const LsShape *v, const LsShape *x, int axis)
{
    for (int k = 1; k <= v->rank; k++)
        if (v->dim[v->rank - k] != (k <= x->rank - axis ? x->dim[x->rank - k] : 1))
            return false;
    return v->rank >= x->rank - axis;
}

LsValueId ls_match_layer_norm(const LsMatch *m, LsNodeId root)
{
    const LsGraph *g = m->g;
    for (int b = 0; b < 2; b++) {
        LsNodeId mul;
        LsValueId bias = ls_in(g, root, b);
        if (!ls_made_by(m, ls_in(g, root, 1 - b), LS_OP_MUL, 1, &mul))
            continue;
        for (int k = 0; k < 2; k++) {
            int axis = 0;
            double eps = 0;
            LsValueId scale = ls_in(g, mul, k),
                      x = normalised(m, ls_in(g, mul, 1 - k), &axis, &eps);
            if (!ls_is(x) || !fits(ls_shape(g, scale), ls_shape(g, x), axis)
                || !fits(ls_shape(g, bias), ls_shape(g, x), axis))
                continue;
            LsShape over = {.rank = ls_shape(g, x)->rank - axis};
            for (int d = 0; d < over.rank; d++)
                over.dim[d] = ls_shape(g, x)->dim[axis + d];
            LsValueId in[] = {ls_image(m->r, x),
                              ls_reshape(m->r->cx, m->r->to, ls_image(m->r, scale), &over),
                              ls_reshape(m->r->cx, m->r->to, ls_image(m->r, bias), &over)};
            return ls_append(m->r->cx, m->r->to, LS_OP_LAYER_NORM, 3, in,
                             &(LsAttr){.norm = {axis, eps}});
        }
    }
    return (LsValueId){0};
}
