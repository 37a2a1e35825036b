/* compiler/ops/rmsnorm.c -- RMSNormalization (opset 23; Zhang & Sennrich 2019): x / sqrt(mean x^2 + eps) * scale, over the
 * axes from `axis` on. Made of rows that ls_fuse joins; x and one number per position are kept for the gradient. */
#include "compiler/onnx/onnx_found_weights.h"
#include "compiler/ops/row.h"

static bool scale_fits(const LsOnnxNode *n, const LsShape *x)
{
    LsShape s = *x;
    if (ls_shape_broadcast(&s, ls_shape(n->g, n->in[1])) && ls_shape_same(&s, x))
        return true;
    return ls_onnx_error(n, LS_E_SHAPE, NULL, "the scale is %s and does not fit X, which is %s",
                         ls_dims(n->g, n->in[1]), ls_shape_text(n->cx->arena, x));
}

static bool rms_norm_build(LsOnnxNode *n, LsValueId out[])
{
    LsCtx *cx = n->cx;
    LsGraph *g = n->g;
    if (!ls_onnx_takes(n, 2, 2) || !ls_onnx_takes_real(n, 0) || !ls_onnx_takes_real(n, 1))
        return false;
    LsValueId x = n->in[0];
    const LsShape shape = *ls_shape(g, x);
    int axis = ls_onnx_axis(n, ls_onnx_int(n, "axis", -1), shape.rank);
    if (axis < 0 || !scale_fits(n, &shape))
        return false;
    ls_onnx_weight(n, 1);
    LsAttr over = {.reduce = {((1u << shape.rank) - 1) & ~((1u << axis) - 1), true}};
    LsValueId eps = ls_const_real(cx, g, ls_onnx_float(n, "epsilon", 1e-5));
    LsValueId v = ls_append2(cx, g, LS_OP_MUL, x, x, NULL);
    v = ls_append1(cx, g, LS_OP_REDUCE_MEAN, v, &over);
    v = ls_append1(cx, g, LS_OP_SQRT, ls_append2(cx, g, LS_OP_ADD, v, eps, NULL), NULL);
    v = ls_append2(cx, g, LS_OP_MUL, x, ls_append1(cx, g, LS_OP_RECIPROCAL, v, NULL), NULL);
    out[0] = ls_append2(cx, g, LS_OP_MUL, v, n->in[1], NULL);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_rms_norm = {"RMSNormalization", 23, rms_norm_build};
