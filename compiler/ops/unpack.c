/* compiler/ops/unpack.c -- reals from codes: what reads a weight that is kept in few bits. */
#include "compiler/ops/row.h"

static bool unpack_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsShape shape = g->node[n.i].attr.unpack.shape;
    return ls_infer_out(cx, g, n, LS_REAL, &shape);
}

static double unpack_flops(const LsGraph *g, LsNodeId n)
{
    return (double)g->node[n.i].attr.unpack.codes.count;
}

const LsOp ls_op_unpack = {
    .name = "unpack", .min_in = 1, .max_in = 1, .nout = 1, .infer = unpack_infer,
    .flops = unpack_flops, .kernel = LS_K_UNPACK, .layout = LS_LAY_ROW,
};
