/* compiler/ops/tile.c -- repeats the operand along each axis. */
#include "compiler/ops/row.h"

static bool tile_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsShape *times = &g->node[n.i].attr.shape.shape;
    LsShape y = *ls_in_shape(g, n, 0);
    for (int k = 0; k < y.rank; k++)
        if (times->dim[k] < 0 || __builtin_mul_overflow(y.dim[k], times->dim[k], &y.dim[k]))
            return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL,
                            "repeats axis %d %" PRId64 " times", k, times->dim[k]);
    return ls_infer_out(cx, g, n, ls_type(g, ls_in(g, n, 0)), &y);
}

/* Sums the repetitions, axis by axis: [before, times, axis and behind] summed over the middle. */
static void tile_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                      LsValueId dx[])
{
    (void)want;
    const LsShape times = g->node[n.i].attr.shape.shape;
    LsShape now = *ls_shape(g, dy[0]);
    dx[0] = dy[0];
    for (int k = 0; k < now.rank; k++) {
        if (times.dim[k] == 1)
            continue;
        now.dim[k] /= times.dim[k];
        LsShape split = {3, {1, times.dim[k], 1}};
        for (int d = 0; d < now.rank; d++)
            split.dim[d < k ? 0 : 2] *= now.dim[d];
        LsAttr middle = {.reduce = {.axes = 2, .keep = true}};
        LsValueId v = ls_reshape(cx, g, dx[0], &split);
        dx[0] = ls_reshape(cx, g, ls_append1(cx, g, LS_OP_REDUCE_SUM, v, &middle), &now);
    }
}

const LsOp ls_op_tile = {
    .name = "Tile", .min_in = 1, .max_in = 1, .nout = 1, .infer = tile_infer, .grad = tile_grad,
    .kernel = LS_K_MOVE, .layout = LS_LAY_SAME,
};

static bool tile_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 2, 2))
        return false;
    LsAttr at = {0};
    LsShape *times = &at.shape.shape;
    const LsShape *x = ls_shape(n->g, n->in[0]);
    times->rank = ls_onnx_const_ints(n, 1, LS_MAX_RANK, times->dim);
    if (times->rank < 0)
        return false;
    if (times->rank != x->rank)
        return ls_onnx_error(n, LS_E_SHAPE, NULL,
                             "repeats has %d entries, the operand %s has %d axes", times->rank,
                             ls_dims(n->g, n->in[0]), x->rank);
    bool once = true;
    for (int k = 0; k < x->rank; k++)
        once &= times->dim[k] == 1;
    out[0] = once ? n->in[0] : ls_append1(n->cx, n->g, LS_OP_TILE, n->in[0], &at);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_tile = {"Tile", 6, tile_build};
