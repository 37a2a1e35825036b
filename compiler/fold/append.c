/* compiler/fold/append.c -- see the header. */
#include "compiler/fold/append.h"

#include <assert.h>
#include <math.h>

#include "compiler/fold/fold_constants.h"

LsValueId ls_append(LsCtx *cx, LsGraph *g, LsOpCode op, int nin, const LsValueId in[],
                    const LsAttr *attr)
{
    const LsOp *row = ls_op[op];
    assert(nin >= row->min_in && (row->max_in == 255 || nin <= row->max_in));
    assert(op != LS_OP_FUSED);          /* only ls_fuse makes those */
    LsNodeId n = ls_append_bare(g, op, nin, in, row->nout, attr);
    if (!row->infer(cx, g, n)) {
        ls_graph_pop(g, n);
        return (LsValueId){0};
    }
    LsValueId folded = {0};
    if (ls_fold(cx, g, n, &folded)) {       /* one result, now a constant behind the node's
                                             * values */
        LsValue c = g->value[folded.i];
        ls_graph_pop(g, n);
        c.name = ls_arena_printf(g->arena, "const%u", g->nvalue);
        return ls_graph_push_value(g, c);
    }
    return (LsValueId){g->node[n.i].out};
}

LsValueId ls_append1(LsCtx *cx, LsGraph *g, LsOpCode op, LsValueId a, const LsAttr *attr)
{
    return ls_append(cx, g, op, 1, (LsValueId[]){a}, attr);
}

LsValueId ls_append2(LsCtx *cx, LsGraph *g, LsOpCode op, LsValueId a, LsValueId b,
                     const LsAttr *attr)
{
    return ls_append(cx, g, op, 2, (LsValueId[]){a, b}, attr);
}

LsValueId ls_append3(LsCtx *cx, LsGraph *g, LsOpCode op, LsValueId a, LsValueId b, LsValueId c,
                     const LsAttr *attr)
{
    return ls_append(cx, g, op, 3, (LsValueId[]){a, b, c}, attr);
}

LsValueId ls_reshape(LsCtx *cx, LsGraph *g, LsValueId v, const LsShape *to)
{
    if (ls_shape_same(ls_shape(g, v), to))
        return v;
    return ls_append1(cx, g, LS_OP_RESHAPE, v, &(LsAttr){.shape = {*to}});
}

LsValueId ls_reduce_to(LsCtx *cx, LsGraph *g, LsValueId v, LsShape to)
{
    const LsShape from = *ls_shape(g, v);
    int skip = from.rank - to.rank;
    uint32_t axes = 0;
    for (int k = 0; k < from.rank; k++)
        if (from.dim[k] > 1 && (k < skip || to.dim[k - skip] == 1))
            axes |= 1u << k;
    if (axes != 0)
        v = ls_append1(cx, g, LS_OP_REDUCE_SUM, v,
                       &(LsAttr){.reduce = {.axes = axes, .keep = true}});
    return ls_reshape(cx, g, v, &to);
}

/* Constants are floats. Where 1 / by is exact in a float and by is not, this appends a division, so
 * that programs in doubles are accurate to the last digits. */
LsValueId ls_scale(LsCtx *cx, LsGraph *g, LsValueId v, double by)
{
    double over = nearbyint(1 / by);
    bool divides = (double)(float)by != by && fabs(over) < 0x1p24 && fabs(over * by - 1) < 1e-15;
    if (by == 1)
        return v;
    return divides ? ls_append2(cx, g, LS_OP_DIV, v, ls_const_real(cx, g, over), NULL)
                   : ls_append2(cx, g, LS_OP_MUL, v, ls_const_real(cx, g, by), NULL);
}

LsValueId ls_expand(LsCtx *cx, LsGraph *g, LsValueId v, LsShape to)
{
    if (ls_shape_same(ls_shape(g, v), &to))
        return v;
    return ls_append1(cx, g, LS_OP_EXPAND, v, &(LsAttr){.shape = {to}});
}

LsValueId ls_slice_axis(LsCtx *cx, LsGraph *g, LsValueId v, int axis, int64_t start, int64_t stop)
{
    const LsShape *x = ls_shape(g, v);
    if (start == 0 && stop == x->dim[axis])
        return v;
    LsAttr at = {0};
    for (int k = 0; k < x->rank; k++) {
        at.slice.start[k] = k == axis ? start : 0;
        at.slice.stop[k] = k == axis ? stop : x->dim[k];
        at.slice.step[k] = 1;
    }
    return ls_append1(cx, g, LS_OP_SLICE, v, &at);
}

LsValueId ls_transpose(LsCtx *cx, LsGraph *g, LsValueId v, const int perm[])
{
    LsAttr at = {0};
    bool same = true;
    for (int k = 0; k < ls_shape(g, v)->rank; k++) {
        at.perm.perm[k] = perm[k];
        same &= perm[k] == k;
    }
    return same ? v : ls_append1(cx, g, LS_OP_TRANSPOSE, v, &at);
}
