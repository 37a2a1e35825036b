/* compiler/ops/top_k.c -- TopK: a node finds the indices, and the values are gathered by them, so
 * that their gradient is that of the gather. */
#include "compiler/ops/row.h"

#include <math.h>

static bool top_k_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsTopAttr *at = &g->node[n.i].attr.top;
    LsShape y = *ls_in_shape(g, n, 0);
    if (ls_type(g, ls_in(g, n, 0)) == LS_BOOL)
        return ls_error(cx, ls_where(g, n), LS_E_TYPE, "insert a Cast", "the operand is bool");
    if (at->k < 1 || at->k > y.dim[at->axis])
        return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL,
                        "asks for %" PRId64 " of %" PRId64 " elements along axis %d", at->k,
                        y.dim[at->axis], at->axis);
    y.dim[at->axis] = at->k;
    return ls_infer_out(cx, g, n, LS_I64, &y);
}

/* A heap of k elements. */
static double top_k_flops(const LsGraph *g, LsNodeId n)
{
    double k = (double)g->node[n.i].attr.top.k;
    return (double)ls_count(ls_in_shape(g, n, 0)) * (1 + log2(k + 1));
}

const LsOp ls_op_top_k = {
    .name = "TopK", .min_in = 1, .max_in = 1, .nout = 1, .infer = top_k_infer,
    .grad = ls_grad_zero, .flops = top_k_flops, .kernel = LS_K_SCAN, .layout = LS_LAY_ROW,
};

static bool count_of(LsOnnxNode *n, int64_t *k)
{
    int got = 1;
    if (n->version < 10)
        *k = ls_onnx_int(n, "k", 0);
    else if ((got = ls_onnx_const_ints(n, 1, 1, k)) == -2)
        return false;
    return got == 1 || ls_onnx_error(n, LS_E_SHAPE, NULL, "k is empty, not one number");
}

/* Results are sorted, also where the file leaves the order open. */
static bool top_k_build(LsOnnxNode *n, LsValueId out[])
{
    LsTopAttr at = {.least = ls_onnx_int(n, "largest", 1) == 0};
    if (!ls_onnx_takes(n, n->version < 10 ? 1 : 2, n->version < 10 ? 1 : 2) || !count_of(n, &at.k))
        return false;
    at.axis = ls_onnx_axis(n, ls_onnx_int(n, "axis", -1), ls_shape(n->g, n->in[0])->rank);
    if (at.axis < 0)
        return false;
    LsValueId index = ls_append1(n->cx, n->g, LS_OP_TOP_K, n->in[0], &(LsAttr){.top = at});
    if (!ls_is(index))
        return false;
    if (ls_onnx_gives(n, 0))
        out[0] = ls_append2(n->cx, n->g, LS_OP_GATHER_EACH, n->in[0], index,
                            &(LsAttr){.gather = {.axis = at.axis}});
    if (n->nout > 1)
        out[1] = index;
    return !ls_onnx_gives(n, 0) || ls_is(out[0]);
}
const LsOnnxOp ls_onnx_top_k = {"TopK", 1, top_k_build};
