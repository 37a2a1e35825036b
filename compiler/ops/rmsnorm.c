/* compiler/ops/rmsnorm.c -- RMSNormalization (opset 23; Zhang & Sennrich 2019): x / sqrt(mean x^2 +
 * eps) * scale, over the axes from `axis` on. Made of rows that ls_fuse joins; x and one number per
 * position are kept for the gradient. */
#include "compiler/onnx/onnx_found_weights.h"
#include "compiler/ops/fused_onnx.h"

static bool scale_fits(const LsOnnxNode *n, LsValueId scale, const LsShape *x)
{
    LsShape s = *x;
    if (ls_shape_broadcast(&s, ls_shape(n->g, scale)) && ls_shape_same(&s, x))
        return true;
    return ls_onnx_error(n, LS_E_SHAPE, NULL, "the scale is %s and does not fit X, which is %s",
                         ls_dims(n->g, scale), ls_shape_text(n->cx->arena, x));
}

LsValueId ls_rms_norm(LsOnnxNode *n, LsValueId x, LsValueId scale, double epsilon)
{
    LsCtx *cx = n->cx;
    LsGraph *g = n->g;
    const LsShape shape = *ls_shape(g, x);
    int axis = ls_onnx_axis(n, ls_onnx_int(n, "axis", -1), shape.rank);
    if (axis < 0 || !scale_fits(n, scale, &shape))
        return (LsValueId){0};
    LsAttr over = {
        .reduce = {.axes = ((1u << shape.rank) - 1) & ~((1u << axis) - 1), .keep = true}};
    LsValueId eps = ls_const_real(cx, g, epsilon);
    LsValueId v = ls_append2(cx, g, LS_OP_MUL, x, x, NULL);
    v = ls_append1(cx, g, LS_OP_REDUCE_MEAN, v, &over);
    v = ls_append1(cx, g, LS_OP_SQRT, ls_append2(cx, g, LS_OP_ADD, v, eps, NULL), NULL);
    v = ls_append2(cx, g, LS_OP_MUL, x, ls_append1(cx, g, LS_OP_RECIPROCAL, v, NULL), NULL);
    return ls_append2(cx, g, LS_OP_MUL, v, scale, NULL);
}

static bool rms_norm_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 2, 2) || !ls_onnx_takes_real(n, 0) || !ls_onnx_takes_real(n, 1))
        return false;
    ls_onnx_weight(n, 1);
    out[0] = ls_rms_norm(n, n->in[0], n->in[1], ls_onnx_float(n, "epsilon", 1e-5));
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_rms_norm = {"RMSNormalization", 23, rms_norm_build};
