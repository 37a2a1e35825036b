/* compiler/ops/conv.c -- convolution and its two adjoints; see net.def. X [N,C,X..], W
 * [M,C/group,K..], Y [N,M,Y..]. Each of the three is linear in both operands, so the gradients of
 * each are the other two. */
#include "compiler/ops/product_shape.h"
#include "compiler/ops/window.h"

/* 2 |Y| (C/group) |K| for all of them: a multiply and an add per element of Y and of its window. */
static double flops(const LsGraph *g, LsValueId y, const LsShape *ws)
{
    return 2.0 * (double)ls_count(ls_shape(g, y)) * ((double)ls_count(ws) / (double)ws->dim[0]);
}

static bool ranks_fit(LsCtx *cx, const LsGraph *g, LsNodeId n)
{
    const LsShape *a = ls_in_shape(g, n, 0), *b = ls_in_shape(g, n, 1);
    int rank = 2 + g->node[n.i].attr.window.n;
    if (a->rank == rank && b->rank == rank)
        return true;
    return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL,
                    "operands of %d and %d axes, both need %d", a->rank, b->rank, rank);
}

static bool bias_fits(LsCtx *cx, const LsGraph *g, LsNodeId n, int64_t channels)
{
    if (!ls_is(ls_in(g, n, 2)))
        return true;
    const LsShape *b = ls_in_shape(g, n, 2);
    if (b->rank == 1 && b->dim[0] == channels)
        return true;
    return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL, "the bias is %s, the result has %" PRId64
                    " channels", ls_shape_text(cx->arena, b), channels);
}

static bool conv_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsWindowAttr *w = &g->node[n.i].attr.window;
    const LsShape *x = ls_in_shape(g, n, 0), *f = ls_in_shape(g, n, 1);
    if (!ranks_fit(cx, g, n) || !bias_fits(cx, g, n, f->dim[0]))
        return false;
    if (x->dim[1] != f->dim[1] * w->group)
        return ls_error(cx, ls_where(g, n), LS_E_SHAPE, "Conv takes N,C,H,W; is the input N,H,W,C?",
                        "X has %" PRId64 " channels, W takes %" PRId64, x->dim[1],
                        f->dim[1] * w->group);
    if (f->dim[0] % w->group != 0)
        return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL, "W has %" PRId64
                        " filters, which %" PRId64 " groups do not divide", f->dim[0], w->group);
    LsShape y = {.rank = x->rank, .dim = {x->dim[0], f->dim[0]}};
    for (int d = 0; d < w->n; d++) {
        y.dim[2 + d] = ls_window_places(w, d, x->dim[2 + d], false);
        if (y.dim[2 + d] < 1)
            return ls_error(cx, ls_where(g, n), LS_E_SHAPE, LS_HINT_WINDOW,
                            "W spans %" PRId64 " elements of axis %d, X with padding has %" PRId64,
                            ls_window_span(w, d), 2 + d,
                            x->dim[2 + d] + w->pad_lo[d] + w->pad_hi[d]);
    }
    return ls_infer_out(cx, g, n, LS_REAL, &y);
}

static bool conv_dx_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsWindowAttr *w = &g->node[n.i].attr.window;
    const LsShape *y = ls_in_shape(g, n, 0), *f = ls_in_shape(g, n, 1);
    if (!ranks_fit(cx, g, n) || !bias_fits(cx, g, n, f->dim[1] * w->group))
        return false;
    if (y->dim[1] != f->dim[0] || f->dim[0] % w->group != 0)
        return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL,
                        "X has %" PRId64 " channels, W takes %" PRId64 " in %" PRId64 " groups",
                        y->dim[1], f->dim[0], w->group);
    LsShape x = {.rank = y->rank, .dim = {y->dim[0], f->dim[1] * w->group}};
    for (int d = 0; d < w->n; d++)
        x.dim[2 + d] = w->x_dim[d];
    return ls_infer_out(cx, g, n, LS_REAL, &x);
}

bool ls_conv_weights_each(const LsNode *node)
{
    return node->op == LS_OP_CONV_DW_SQUARES || node->attr.window.each;
}

LsShape ls_conv_weight_shape(const LsGraph *g, LsNodeId n)
{
    const LsWindowAttr *w = &g->node[n.i].attr.window;
    const LsShape *y = ls_in_shape(g, n, 0), *x = ls_in_shape(g, n, 1);
    LsShape f = {.rank = y->rank, .dim = {y->dim[1], x->dim[1] / w->group}};
    for (int d = 0; d < w->n; d++)
        f.dim[2 + d] = w->kernel[d];
    return f;
}

static bool conv_dw_squares_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    return ranks_fit(cx, g, n)
           && ls_infer_out(cx, g, n, LS_REAL, &(LsShape){1, {ls_in_shape(g, n, 0)->dim[0]}});
}

static bool conv_dw_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsWindowAttr *w = &g->node[n.i].attr.window;
    if (!ranks_fit(cx, g, n))
        return false;
    LsShape f = ls_conv_weight_shape(g, n);
    f.dim[0] *= w->each ? ls_in_shape(g, n, 0)->dim[0] : 1;
    return ls_infer_out(cx, g, n, LS_REAL, &f);
}

static double conv_flops(const LsGraph *g, LsNodeId n)
{
    return flops(g, ls_out(g, n, 0), ls_in_shape(g, n, 1));
}
static double conv_dx_flops(const LsGraph *g, LsNodeId n)
{
    return flops(g, ls_in(g, n, 0), ls_in_shape(g, n, 1));
}
static double conv_dw_flops(const LsGraph *g, LsNodeId n)
{
    const LsShape w = ls_conv_weight_shape(g, n);
    return flops(g, ls_in(g, n, 0), &w);
}

/* Sum over everything but the channels: [N,C,..] -> [C]. */
static LsValueId channel_sum(LsCtx *cx, LsGraph *g, LsValueId dy)
{
    const LsShape s = *ls_shape(g, dy);
    uint32_t axes = ((1u << s.rank) - 1) & ~2u;
    LsValueId sum =
        ls_append1(cx, g, LS_OP_REDUCE_SUM, dy, &(LsAttr){.reduce = {.axes = axes, .keep = true}});
    return ls_reshape(cx, g, sum, &(LsShape){1, {s.dim[1]}});
}

static void conv_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                      LsValueId dx[])
{
    LsAttr at = g->node[n.i].attr;
    LsValueId x = ls_in(g, n, 0), w = ls_in(g, n, 1);
    for (int d = 0; d < at.window.n; d++)
        at.window.x_dim[d] = ls_shape(g, x)->dim[2 + d];
    if (want[0])
        dx[0] = ls_append2(cx, g, LS_OP_CONV_DX, dy[0], w, &at);
    if (want[1])
        dx[1] = ls_append2(cx, g, LS_OP_CONV_DW, dy[0], x, &at);
    if (g->node[n.i].nin > 2 && want[2])
        dx[2] = channel_sum(cx, g, dy[0]);
}

/* The transposed convolution: its operand is the convolution's Y, its result the convolution's
 * X. */
static void conv_dx_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                         LsValueId dx[])
{
    LsAttr at = g->node[n.i].attr;
    LsValueId y = ls_in(g, n, 0), w = ls_in(g, n, 1);
    for (int d = 0; d < at.window.n; d++) {
        int64_t places = ls_shape(g, y)->dim[2 + d], x = ls_shape(g, dy[0])->dim[2 + d];
        /* With output padding of a stride or more, the convolution would have more places than
         * y. */
        if (ls_window_places(&at.window, d, x, false) != places)
            at.window.pad_hi[d] = (places - 1) * at.window.stride[d] + ls_window_span(&at.window, d)
                - at.window.pad_lo[d] - x;
    }
    if (want[0])
        dx[0] = ls_append2(cx, g, LS_OP_CONV, dy[0], w, &at);
    if (want[1])
        dx[1] = ls_append2(cx, g, LS_OP_CONV_DW, y, dy[0], &at);
    if (g->node[n.i].nin > 2 && want[2])
        dx[2] = channel_sum(cx, g, dy[0]);
}

const LsOp ls_op_conv = {
    .name = "Conv", .min_in = 2, .max_in = 3, .nout = 1, .infer = conv_infer, .grad = conv_grad,
    .flops = conv_flops, .kernel = LS_K_CONV, .layout = LS_LAY_LAST,
};
const LsOp ls_op_conv_dx = {
    .name = "ConvTranspose", .min_in = 2, .max_in = 3, .nout = 1, .infer = conv_dx_infer,
    .grad = conv_dx_grad, .flops = conv_dx_flops, .kernel = LS_K_CONV, .layout = LS_LAY_LAST,
};
const LsOp ls_op_conv_dw = {
    .name = "conv_dw", .min_in = 2, .max_in = 2, .nout = 1, .infer = conv_dw_infer,
    .flops = conv_dw_flops, .kernel = LS_K_CONV, .layout = LS_LAY_LAST,
};
/* The results' shapes are set by whoever appends them (codegen/tiling/). */
const LsOp ls_op_conv_dw_part = {
    .name = "conv_dw_part", .min_in = 2, .max_in = 3, .nout = 1, .flops = conv_dw_flops,
    .kernel = LS_K_CONV, .layout = LS_LAY_LAST,
};
const LsOp ls_op_conv_dw_end = {
    .name = "conv_dw_end", .min_in = 1, .max_in = 1, .nout = 1, .kernel = LS_K_SUM_END,
    .layout = LS_LAY_LAST,
};
const LsOp ls_op_conv_dw_squares = {
    .name = "conv_dw_squares", .min_in = 2, .max_in = 2, .nout = 1, .infer = conv_dw_squares_infer,
    .flops = conv_dw_flops, .kernel = LS_K_CONV, .layout = LS_LAY_LAST,
};
