/* compiler/ops/lrn.c -- ONNX LRN: x / (bias + alpha * mean of x^2 over `size` channels)^beta. The
 * mean divides by size at the borders too. It is an average pool that treats the channels as a
 * spatial axis. */
#include "compiler/ops/row.h"

static bool lrn_build(LsOnnxNode *n, LsValueId out[])
{
    LsCtx *cx = n->cx;
    LsGraph *g = n->g;
    if (!ls_onnx_takes(n, 1, 1) || !ls_onnx_takes_real(n, 0))
        return false;
    const LsShape x = *ls_shape(g, n->in[0]);
    int64_t size = ls_onnx_int(n, "size", 0);
    if (x.rank < 2 || size < 1 || size > 1 << 20)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "size is %" PRId64 ", X is %s", size,
                             ls_shape_text(cx->arena, &x));
    LsShape image = {4, {x.dim[0], 1, x.dim[1], ls_count(&x) / (x.dim[0] * x.dim[1])}};
    LsAttr at = {.window = {.n = 2, .kernel = {size, 1}, .stride = {1, 1}, .dilation = {1, 1},
                            .pad_lo = {(size - 1) / 2, 0}, .pad_hi = {size / 2, 0},
                            .count_pad = true, .group = 1,
                            .x_dim = {image.dim[2], image.dim[3]}}};
    LsValueId sq = ls_append2(cx, g, LS_OP_MUL, n->in[0], n->in[0], NULL);
    LsValueId mean = ls_append1(cx, g, LS_OP_AVERAGE_POOL, ls_reshape(cx, g, sq, &image), &at);
    mean = ls_reshape(cx, g, mean, &x);
    LsValueId k = ls_append2(cx, g, LS_OP_MUL, mean,
                             ls_const_real(cx, g, ls_onnx_float(n, "alpha", 1e-4)), NULL);
    k = ls_append2(cx, g, LS_OP_ADD, k, ls_const_real(cx, g, ls_onnx_float(n, "bias", 1)), NULL);
    k = ls_append2(cx, g, LS_OP_POW, k, ls_const_real(cx, g, ls_onnx_float(n, "beta", 0.75)), NULL);
    out[0] = ls_append2(cx, g, LS_OP_DIV, n->in[0], k, NULL);
    return ls_is(out[0]);
}

const LsOnnxOp ls_onnx_lrn = {.name = "LRN", .since = 1, .build = lrn_build};
