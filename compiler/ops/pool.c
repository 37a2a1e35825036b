/* compiler/ops/pool.c -- max and average pooling (see net.def), ONNX MaxPool and AveragePool. */
#include "compiler/ops/pool_index.h"
#include "compiler/ops/window.h"

/* Shape of s with the spatial sizes of attr.window.x_dim. */
static LsShape resized(const LsGraph *g, LsNodeId n, LsShape s)
{
    const LsWindowAttr *w = &g->node[n.i].attr.window;
    for (int d = 0; d < w->n; d++)
        s.dim[2 + d] = w->x_dim[d];
    return s;
}

static int64_t window_size(const LsWindowAttr *w)
{
    int64_t size = 1;
    for (int d = 0; d < w->n; d++)
        size *= w->kernel[d];
    return size;
}

static double pool_flops(const LsGraph *g, LsNodeId n)
{
    double x = (double)ls_count(ls_in_shape(g, n, 0));
    double y = (double)ls_count(ls_shape(g, ls_out(g, n, 0)));
    return (x < y ? x : y) * (double)window_size(&g->node[n.i].attr.window);
}

static bool pool_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    LsShape y = resized(g, n, *ls_in_shape(g, n, 0));
    return ls_infer_out(cx, g, n, LS_REAL, &y);
}

static bool max_pool_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    LsShape y = resized(g, n, *ls_in_shape(g, n, 0));
    ls_set_out(g, n, 1, window_size(&g->node[n.i].attr.window) <= 256 ? LS_BOOL : LS_I32, &y);
    return ls_infer_out(cx, g, n, LS_REAL, &y);
}

/* The attributes of the gradient: its result has x's size. */
static LsAttr back(const LsGraph *g, LsNodeId n)
{
    LsAttr at = g->node[n.i].attr;
    for (int d = 0; d < at.window.n; d++)
        at.window.x_dim[d] = ls_in_shape(g, n, 0)->dim[2 + d];
    return at;
}

static void max_pool_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[],
                          const bool want[], LsValueId dx[])
{
    LsAttr at = back(g, n);
    if (want[0] && ls_is(dy[0]))
        dx[0] = ls_append2(cx, g, LS_OP_MAX_POOL_GRAD, dy[0], ls_out(g, n, 1), &at);
}

static void average_pool_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[],
                              const bool want[], LsValueId dx[])
{
    LsAttr at = back(g, n);
    if (want[0])
        dx[0] = ls_append1(cx, g, LS_OP_AVERAGE_POOL_GRAD, dy[0], &at);
}

const LsOp ls_op_max_pool = {
    .name = "MaxPool", .min_in = 1, .max_in = 1, .nout = 2, .infer = max_pool_infer,
    .grad = max_pool_grad, .flops = pool_flops, .kernel = LS_K_POOL, .layout = LS_LAY_LAST,
};
const LsOp ls_op_max_pool_grad = {
    .name = "max_pool_grad", .min_in = 2, .max_in = 2, .nout = 1, .infer = pool_infer,
    .flops = pool_flops, .kernel = LS_K_POOL, .layout = LS_LAY_LAST,
};
const LsOp ls_op_average_pool = {
    .name = "AveragePool", .min_in = 1, .max_in = 1, .nout = 1, .infer = pool_infer,
    .grad = average_pool_grad, .flops = pool_flops, .kernel = LS_K_POOL, .layout = LS_LAY_LAST,
};
const LsOp ls_op_average_pool_grad = {
    .name = "average_pool_grad", .min_in = 1, .max_in = 1, .nout = 1, .infer = pool_infer,
    .flops = pool_flops, .kernel = LS_K_POOL, .layout = LS_LAY_LAST,
};

/* ---- ONNX ---- */
/* Checks that the window of each place touches the data or counted padding, so that no maximum and
 * no mean is over zero elements. */
static bool touches(const LsWindowAttr *w, int d, int64_t x)
{
    int64_t last = (w->x_dim[d] - 1) * w->stride[d] - w->pad_lo[d];
    int64_t holes = w->dilation[d], span = ls_window_span(w, d);
    if (w->count_pad)
        return true;
    for (int64_t p = 0; p < w->x_dim[d];
         p++) { /* only places that begin in the low padding matter */
        int64_t begin = p * w->stride[d] - w->pad_lo[d];
        if (begin >= 0)
            break;
        int64_t first = begin + (-begin + holes - 1) / holes * holes;
        if (first >= x || first >= begin + span)
            return false;
    }
    return last < x;
}

static bool pool_sizes(LsOnnxNode *n, const int64_t *x, LsWindowAttr *w)
{
    bool ceil = ls_onnx_int(n, "ceil_mode", 0) != 0;
    for (int d = 0; d < w->n; d++) {
        if (!ls_window_place(n, w, d, x[d], ceil))
            return false;
        if (!touches(w, d, x[d]))
            return ls_onnx_error(n, LS_E_ATTR, "the padding must be smaller than the window",
                                 "a window on axis %d lies in the padding alone", 2 + d);
    }
    return true;
}

static bool read_pool(LsOnnxNode *n, LsAttr *at)
{
    if (!ls_onnx_takes_image(n))
        return false;
    const LsShape *x = ls_shape(n->g, n->in[0]);
    return ls_window_read(n, x->rank - 2, NULL, &at->window)
        && ls_window_auto_pad(n, x->dim + 2, &at->window);
}

/* Pools reals, whose window is read: *y and, if asked for, *index. */
static bool max_pool(LsOnnxNode *n, LsValueId *y, LsValueId *index)
{
    LsAttr at = {0};
    if (!read_pool(n, &at) || !pool_sizes(n, ls_shape(n->g, n->in[0])->dim + 2, &at.window))
        return false;
    *y = ls_append1(n->cx, n->g, LS_OP_MAX_POOL, n->in[0], &at);
    if (ls_is(*y) && ls_onnx_gives(n, 1))
        *index = ls_pool_index(n, *y, &at.window);
    return ls_is(*y) && (!ls_onnx_gives(n, 1) || ls_is(*index));
}

/* Integers of 8 bits, which ONNX allows here, are pooled as reals. */
static bool max_pool_build(LsOnnxNode *n, LsValueId out[])
{
    if (n->nin < 1 || !ls_is(n->in[0]) || ls_type(n->g, n->in[0]) != LS_I32)
        return max_pool(n, &out[0], &out[1]);
    LsOnnxNode real = *n;
    real.in =
        &(LsValueId){ls_append1(n->cx, n->g, LS_OP_CAST, n->in[0], &(LsAttr){.cast = LS_REAL}).i};
    if (!ls_is(real.in[0]) || !max_pool(&real, &out[0], &out[1]))
        return false;
    out[0] = ls_append1(n->cx, n->g, LS_OP_CAST, out[0], &(LsAttr){.cast = LS_I32});
    return ls_is(out[0]);
}

/* A window over the whole image: of equal maxima the first gets the gradient, as in MaxPool and in
 * PyTorch's adaptive pooling. Where there are more axes than windows support, equal maxima share
 * it. */
static bool global_max_pool_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes_image(n))
        return false;
    const LsShape *x = ls_shape(n->g, n->in[0]);
    LsAttr all = {.reduce = {.axes = ((1u << x->rank) - 1) & ~3u, .keep = true}};
    LsAttr at = {.window = {.n = x->rank - 2, .group = 1}};
    for (int d = 0; d < at.window.n && d < LS_MAX_SPATIAL; d++) {
        at.window.kernel[d] = x->dim[2 + d];
        at.window.stride[d] = at.window.dilation[d] = at.window.x_dim[d] = 1;
    }
    out[0] = at.window.n <= LS_MAX_SPATIAL
        ? ls_append1(n->cx, n->g, LS_OP_MAX_POOL, n->in[0], &at)
        : ls_append1(n->cx, n->g, LS_OP_REDUCE_MAX, n->in[0], &all);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_global_max_pool = {"GlobalMaxPool", 1, global_max_pool_build};

/* Folds a Pad of zeros, which exporters write in front of a pool that counts padding, into the
 * window. Exact when the pool has no padding of its own, or counts it as well. Returns the operand
 * to pool, after changing *w. */
static LsValueId merge_pad(const LsGraph *g, LsValueId x, LsWindowAttr *w)
{
    LsNodeId def = g->value[x.i].def;
    const LsNode *pad = &g->node[def.i];
    if (def.i == 0 || pad->op != LS_OP_PAD || pad->attr.pad.mode != LS_PAD_CONSTANT
        || pad->attr.pad.value != 0)
        return x;
    const LsPadAttr *p = &pad->attr.pad;
    bool own = false, fits = true;
    for (int d = 0; d < w->n; d++)
        own |= w->pad_lo[d] != 0 || w->pad_hi[d] != 0;
    for (int k = 0; k < ls_shape(g, x)->rank; k++)
        fits &= p->lo[k] >= 0 && p->hi[k] >= 0 && (k >= 2 || (p->lo[k] == 0 && p->hi[k] == 0));
    if (!fits || (own && !w->count_pad))
        return x;
    for (int d = 0; d < w->n; d++) {
        w->pad_lo[d] += p->lo[2 + d];
        w->pad_hi[d] += p->hi[2 + d];
    }
    w->count_pad = true;
    return ls_in(g, def, 0);
}

static bool average_pool_build(LsOnnxNode *n, LsValueId out[])
{
    LsAttr at = {0};
    if (!read_pool(n, &at))
        return false;
    at.window.count_pad = ls_onnx_int(n, "count_include_pad", 0) != 0;
    LsValueId x = merge_pad(n->g, n->in[0], &at.window);
    if (!pool_sizes(n, ls_shape(n->g, x)->dim + 2, &at.window))
        return false;
    out[0] = ls_append1(n->cx, n->g, LS_OP_AVERAGE_POOL, x, &at);
    return ls_is(out[0]);
}

const LsOnnxOp ls_onnx_max_pool = {.name = "MaxPool", .since = 1, .build = max_pool_build};
const LsOnnxOp ls_onnx_average_pool = {
    .name = "AveragePool", .since = 1, .build = average_pool_build};
