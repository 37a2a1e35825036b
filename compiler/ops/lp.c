/* compiler/ops/lp.c -- LpNormalization, LpPool, GlobalLpPool: norms (sum of |x|^p)^(1 / p), from
 * pointwise rows and sums. The gradient of a norm that is 0 is 0 (power.c). */
#include "compiler/ops/window.h"

/* The attribute p; 0 after a diagnostic. */
static int64_t read_p(const LsOnnxNode *n)
{
    int64_t p = ls_onnx_int(n, "p", 2);
    if (p >= 1 && p <= 64)
        return p;
    ls_onnx_error(n, LS_E_ATTR, NULL, "p is %" PRId64 ", the norm needs 1 to 64", p);
    return 0;
}

/* |x|^p */
static LsValueId powers(LsOnnxNode *n, LsValueId x, int64_t p)
{
    LsValueId a = p == 2 ? x : ls_append1(n->cx, n->g, LS_OP_ABS, x, NULL);
    if (p == 1 || !ls_is(a))
        return a;
    return p == 2
               ? ls_append2(n->cx, n->g, LS_OP_MUL, x, x, NULL)
               : ls_append2(n->cx, n->g, LS_OP_POW, a, ls_const_real(n->cx, n->g, (double)p), NULL);
}

static LsValueId root(LsOnnxNode *n, LsValueId sum, int64_t p)
{
    if (p == 1 || !ls_is(sum))
        return sum;
    return p == 2 ? ls_append1(n->cx, n->g, LS_OP_SQRT, sum, NULL)
                  : ls_append2(n->cx, n->g, LS_OP_POW, sum,
                               ls_const_real(n->cx, n->g, 1 / (double)p), NULL);
}

/* The norm over these axes, which stay as 1. */
static LsValueId norm(LsOnnxNode *n, LsValueId x, int64_t p, uint32_t axes)
{
    LsValueId v = powers(n, x, p);
    if (ls_is(v) && axes != 0)
        v = ls_append1(n->cx, n->g, LS_OP_REDUCE_SUM, v,
                       &(LsAttr){.reduce = {.axes = axes, .keep = true}});
    return root(n, v, p);
}

/* ---- LpNormalization: x / norm, and 0 where the norm is 0 ---- */
static bool lp_normalization_build(LsOnnxNode *n, LsValueId out[])
{
    LsCtx *cx = n->cx;
    LsGraph *g = n->g;
    if (!ls_onnx_takes(n, 1, 1) || !ls_onnx_takes_real(n, 0))
        return false;
    LsValueId x = n->in[0];
    int axis = ls_onnx_axis(n, ls_onnx_int(n, "axis", -1), ls_shape(g, x)->rank);
    int64_t p = read_p(n);
    if (axis < 0 || p == 0)
        return false;
    if (p > 2)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "p is %" PRId64 ", it is 1 or 2", p);
    LsValueId length = norm(n, x, p, 1u << axis), zero = ls_const_real(cx, g, 0);
    LsValueId none = ls_append2(cx, g, LS_OP_EQUAL, length, zero, NULL);
    LsValueId safe = ls_append3(cx, g, LS_OP_WHERE, none, ls_const_real(cx, g, 1), length, NULL);
    LsValueId y = ls_append2(cx, g, LS_OP_DIV, x, safe, NULL);
    out[0] = ls_append3(cx, g, LS_OP_WHERE, none, zero, y, NULL);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_lp_normalization = {"LpNormalization", 1, lp_normalization_build};

/* ---- LpPool: the mean over each window, padding counted, times the window's size ---- */
/* Extends the padding until the last window lies inside, so that each mean has the divisor of a
 * full window. */
static bool fit_windows(LsOnnxNode *n, const int64_t *x, LsWindowAttr *w, int64_t *size)
{
    bool ceil = ls_onnx_int(n, "ceil_mode", 0) != 0;
    *size = 1;
    for (int d = 0; d < w->n; d++) {
        if (!ls_window_place(n, w, d, x[d], ceil))
            return false;
        int64_t end = (w->x_dim[d] - 1) * w->stride[d] + ls_window_span(w, d);
        w->pad_hi[d] =
            end - w->pad_lo[d] - x[d] > w->pad_hi[d] ? end - w->pad_lo[d] - x[d] : w->pad_hi[d];
        if (__builtin_mul_overflow(*size, w->kernel[d], size) || *size > LS_MOST_ELEMENTS)
            return ls_onnx_error(n, LS_E_ATTR, NULL, "kernel_shape is too large");
    }
    return true;
}

static bool lp_pool_build(LsOnnxNode *n, LsValueId out[])
{
    LsAttr at = {0};
    if (!ls_onnx_takes_image(n))
        return false;
    const LsShape x = *ls_shape(n->g, n->in[0]);
    int64_t p = read_p(n), size;
    if (p == 0 || !ls_window_read(n, x.rank - 2, NULL, &at.window)
        || !ls_window_auto_pad(n, x.dim + 2, &at.window)
        || !fit_windows(n, x.dim + 2, &at.window, &size))
        return false;
    at.window.count_pad = true;
    LsValueId v = powers(n, n->in[0], p);
    v = ls_is(v) ? ls_append1(n->cx, n->g, LS_OP_AVERAGE_POOL, v, &at) : v;
    out[0] = ls_is(v) ? root(n, ls_scale(n->cx, n->g, v, (double)size), p) : v;
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_lp_pool = {"LpPool", 2, lp_pool_build};

static bool global_lp_pool_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes_image(n))
        return false;
    int64_t p = read_p(n);
    if (p == 0)
        return false;
    out[0] = norm(n, n->in[0], p, ((1u << ls_shape(n->g, n->in[0])->rank) - 1) & ~3u);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_global_lp_pool = {"GlobalLpPool", 2, global_lp_pool_build};
