/* compiler/ops/pad.c -- adds (or, negative, removes) elements at both ends of each axis. */
#include "compiler/ops/index.h"

static bool pad_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsPadAttr *at = &g->node[n.i].attr.pad;
    const LsShape *x = ls_in_shape(g, n, 0);
    LsShape y = {.rank = x->rank};
    for (int k = 0; k < x->rank; k++) {
        int64_t most = at->mode == LS_PAD_REFLECT ? x->dim[k] - 1 : LS_MOST_ELEMENTS;
        if (at->lo[k] > most || at->hi[k] > most)
            return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL,
                            "pads axis %d, of length %" PRId64 ", by %" PRId64 " and %" PRId64
                            "; at most %" PRId64 " fit", k, x->dim[k], at->lo[k], at->hi[k], most);
        if (at->mode != LS_PAD_CONSTANT && (at->lo[k] <= -x->dim[k] || at->hi[k] <= -x->dim[k]))
            return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL,
                            "crops axis %d, of length %" PRId64 ", by %" PRId64 " and %" PRId64, k,
                            x->dim[k], -at->lo[k], -at->hi[k]);
        y.dim[k] = x->dim[k] + at->lo[k] + at->hi[k];
    }
    return ls_infer_out(cx, g, n, ls_type(g, ls_in(g, n, 0)), &y);
}

/* A constant border: dy without the border. A copied border: an element that was read twice gets
 * both gradients. */
static void pad_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                     LsValueId dx[])
{
    (void)want;
    LsAttr at = g->node[n.i].attr, back = {.pad = {.mode = LS_PAD_CONSTANT}}, crop = {0};
    const LsShape x = *ls_in_shape(g, n, 0);
    bool crops = true;
    for (int k = 0; k < x.rank; k++) {
        back.pad.lo[k] = -at.pad.lo[k];
        back.pad.hi[k] = -at.pad.hi[k];
        crop.slice.start[k] = at.pad.lo[k];
        crop.slice.stop[k] = at.pad.lo[k] + x.dim[k];
        crop.slice.step[k] = 1;
        crops &= at.pad.lo[k] >= 0 && at.pad.hi[k] >= 0;
    }
    if (at.pad.mode != LS_PAD_CONSTANT)
        dx[0] = ls_append1(cx, g, LS_OP_PAD_GRAD, dy[0], &at);
    else if (crops)
        dx[0] = ls_append1(cx, g, LS_OP_SLICE, dy[0], &crop);
    else
        dx[0] = ls_append1(cx, g, LS_OP_PAD, dy[0], &back);
}

const LsOp ls_op_pad = {
    .name = "Pad", .min_in = 1, .max_in = 1, .nout = 1, .infer = pad_infer, .grad = pad_grad,
    .kernel = LS_K_MOVE, .layout = LS_LAY_SAME,
};

static bool pad_grad_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsPadAttr *at = &g->node[n.i].attr.pad;
    LsShape x = *ls_in_shape(g, n, 0);
    for (int k = 0; k < x.rank; k++)
        x.dim[k] -= at->lo[k] + at->hi[k];
    return ls_infer_out(cx, g, n, LS_REAL, &x);
}

const LsOp ls_op_pad_grad = {
    .name = "pad_grad", .min_in = 1, .max_in = 1, .nout = 1, .infer = pad_grad_infer,
    .kernel = LS_K_MOVE, .layout = LS_LAY_SAME,
};

/* *wrap: the data are repeated, which no mode of the IR row does. */
static bool pad_mode(LsOnnxNode *n, LsPadMode *mode, bool *wrap)
{
    static const char *const name[] = {"constant", "reflect", "edge"};
    const char *said = ls_onnx_string(n, "mode", "constant");
    *wrap = n->version >= 19 && strcmp(said, "wrap") == 0;
    for (int k = 0; k < 3; k++)
        if (strcmp(said, name[k]) == 0) {
            *mode = (LsPadMode)k;
            return true;
        }
    return *wrap
           || ls_onnx_error(n, LS_E_ATTR,
                            "constant, reflect and edge are supported, and wrap from opset 19 on",
                            "mode is \"%s\"", said);
}

/* Repeats the data along each axis, by indices that are known. */
static bool wrapped(LsOnnxNode *n, const LsPadAttr *pad, LsValueId *v)
{
    const LsShape x = *ls_shape(n->g, n->in[0]);
    *v = n->in[0];
    for (int k = 0; k < x.rank && ls_is(*v); k++) {
        int64_t most = LS_INDEX_OUTSIDE, length;
        if (pad->lo[k] == 0 && pad->hi[k] == 0)
            continue;
        length = pad->lo[k] < most && pad->hi[k] < most && pad->lo[k] > -most && pad->hi[k] > -most
            ? pad->lo[k] + x.dim[k] + pad->hi[k] : 0;
        if (length < 1)
            return ls_onnx_error(n, LS_E_SHAPE, NULL,
                                 "axis %d of length %" PRId64 " is padded by %" PRId64
                                 " and %" PRId64,
                                 k, x.dim[k], pad->lo[k], pad->hi[k]);
        if (!ls_index_affords(n, length))
            return false;
        int64_t *index = ls_arena_alloc(n->g->arena, (size_t)length, sizeof *index);
        for (int64_t i = 0; i < length; i++)
            index[i] = ((i - pad->lo[k]) % x.dim[k] + x.dim[k]) % x.dim[k];
        *v = ls_append2(n->cx, n->g, LS_OP_GATHER, *v,
                        ls_const_add(n->cx, n->g, LS_I64, &(LsShape){1, {length}}, index),
                        &(LsAttr){.gather = {.axis = k}});
    }
    return ls_is(*v);
}

/* The axes of `pads`, in its order; their number, negative after an error. */
static int pad_axes(LsOnnxNode *n, int rank, int axis[])
{
    int64_t list[LS_MAX_RANK];
    int count = n->version >= 18 ? ls_onnx_const_ints(n, 3, LS_MAX_RANK, list) : -1;
    for (int k = 0; k < (count == -1 ? rank : count); k++)
        if ((axis[k] = count == -1 ? k : ls_onnx_axis(n, list[k], rank)) < 0)
            return -1;
    return count == -1 ? rank : count;
}

static bool pad_build(LsOnnxNode *n, LsValueId out[])
{
    bool inputs = n->version >= 11, wrap;
    LsAttr at = {0};
    if (!ls_onnx_takes(n, inputs ? 2 : 1, n->version >= 18 ? 4 : inputs ? 3 : 1)
        || !pad_mode(n, &at.pad.mode, &wrap))
        return false;
    int axis[LS_MAX_RANK], rank = ls_shape(n->g, n->in[0])->rank, naxes = pad_axes(n, rank, axis);
    int64_t pads[2 * LS_MAX_RANK];
    int npads = inputs ? ls_onnx_const_ints(n, 1, 2 * LS_MAX_RANK, pads)
                       : ls_onnx_ints(n, "pads", 2 * LS_MAX_RANK, pads);
    if (naxes < 0 || npads == -2)
        return false;
    if (npads != 2 * naxes)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "pads has %d entries, %d axes need %d",
                             npads < 0 ? 0 : npads, naxes, 2 * naxes);
    bool none = true;
    for (int k = 0; k < naxes; k++) {
        at.pad.lo[axis[k]] = pads[k];
        at.pad.hi[axis[k]] = pads[naxes + k];
        none &= pads[k] == 0 && pads[naxes + k] == 0;
    }
    if (!inputs)
        at.pad.value = ls_onnx_float(n, "value", 0);
    else if (ls_onnx_const_reals(n, 2, 1, &at.pad.value) == -2)
        return false;
    if (wrap && !none)
        return wrapped(n, &at.pad, &out[0]);
    out[0] = none ? n->in[0] : ls_append1(n->cx, n->g, LS_OP_PAD, n->in[0], &at);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_pad = {"Pad", 2, pad_build};
