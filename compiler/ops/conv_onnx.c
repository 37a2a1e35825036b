/* compiler/ops/conv_onnx.c -- ONNX Conv and ConvTranspose, 1 to 3 spatial axes. */
#include "compiler/onnx/onnx_found_weights.h"
#include "compiler/ops/window.h"

/* Reads the operands and attributes that both share; *w is complete except for padding. */
static bool read_conv(LsOnnxNode *n, LsWindowAttr *w)
{
    if (!ls_onnx_takes(n, 2, 3) || !ls_onnx_takes_real(n, 0) || !ls_onnx_takes_real(n, 1)
        || !ls_onnx_takes_real(n, 2))
        return false;
    ls_onnx_weight(n, 1);
    ls_onnx_weight(n, 2);
    const LsShape *x = ls_shape(n->g, n->in[0]), *f = ls_shape(n->g, n->in[1]);
    if (x->rank != f->rank || x->rank < 3)
        return ls_onnx_error(n, LS_E_SHAPE, NULL,
                             "X is %s and W is %s; both need N,C and spatial axes",
                             ls_shape_text(n->cx->arena, x), ls_shape_text(n->cx->arena, f));
    if (!ls_window_read(n, x->rank - 2, f->dim + 2, w))
        return false;
    w->group = ls_onnx_int(n, "group", 1);
    if (w->group < 1 || w->group > f->dim[0] * f->dim[1])
        return ls_onnx_error(n, LS_E_ATTR, NULL, "group is %" PRId64 ", W is %s", w->group,
                             ls_shape_text(n->cx->arena, f));
    return true;
}

/* A constant of zeros whose shape is not that of a bias: PyTorch's default exporter writes it (8x2
 * for 8 channels) where a 3-D convolution has no bias. */
static bool is_no_bias(const LsGraph *g, LsValueId b)
{
    if (!ls_is(b) || !ls_is_const(g, b) || g->value[b.i].data == NULL || ls_shape(g, b)->rank == 1)
        return false;
    for (int64_t i = 0; i < ls_count(ls_shape(g, b)); i++)
        if (ls_const_at(g, b, i) != 0)
            return false;
    return true;
}

static bool conv_build(LsOnnxNode *n, LsValueId out[])
{
    LsAttr at = {0};
    if (!read_conv(n, &at.window)
        || !ls_window_auto_pad(n, ls_shape(n->g, n->in[0])->dim + 2, &at.window))
        return false;
    LsValueId in[3] = {n->in[0], n->in[1], ls_onnx_in(n, 2)};
    if (is_no_bias(n->g, in[2]))
        in[2] = (LsValueId){0};
    out[0] = ls_append(n->cx, n->g, LS_OP_CONV, ls_is(in[2]) ? 3 : 2, in, &at);
    return ls_is(out[0]);
}

/* Sets the sizes of the result, and the padding where auto_pad or output_shape decides it. */
static bool transpose_sizes(LsOnnxNode *n, LsWindowAttr *w)
{
    const int64_t *x = ls_shape(n->g, n->in[0])->dim + 2;
    const char *mode = ls_onnx_string(n, "auto_pad", "NOTSET");
    bool same = strncmp(mode, "SAME_", 5) == 0, given = ls_onnx_has(n, "output_shape");
    int64_t more[LS_MAX_SPATIAL] = {0}, shape[2 + LS_MAX_SPATIAL] = {0};
    int nmore = ls_onnx_ints(n, "output_padding", LS_MAX_SPATIAL, more);
    int nshape = ls_onnx_ints(n, "output_shape", 2 + LS_MAX_SPATIAL, shape);
    if (nmore >= 0 && nmore != w->n)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "output_padding has %d elements, needs %d", nmore,
                             w->n);
    if (given && nshape != w->n && nshape != w->n + 2)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "output_shape has %d elements, needs %d", nshape,
                             w->n);
    for (int d = 0; d < w->n; d++) {
        int64_t full = w->stride[d] * (x[d] - 1) + more[d] + ls_window_span(w, d);
        w->x_dim[d] = full - w->pad_lo[d] - w->pad_hi[d];
        if (given || same) {
            w->x_dim[d] = given ? shape[nshape - w->n + d] : x[d] * w->stride[d];
            int64_t pad = full - w->x_dim[d];
            pad = pad > 0 ? pad : 0;
            w->pad_lo[d] = strcmp(mode, "SAME_UPPER") == 0 ? pad / 2 : pad - pad / 2;
            w->pad_hi[d] = pad - w->pad_lo[d];
        }
        if (more[d] < 0 || w->x_dim[d] < 1 || w->x_dim[d] > full + w->stride[d])
            return ls_onnx_error(n, LS_E_SHAPE, NULL,
                                 "size of axis %d comes out as %" PRId64
                                 " (before padding is cut off: %" PRId64 ")",
                                 2 + d, w->x_dim[d], full);
    }
    return true;
}

static bool conv_transpose_build(LsOnnxNode *n, LsValueId out[])
{
    LsAttr at = {0};
    if (!read_conv(n, &at.window) || !transpose_sizes(n, &at.window))
        return false;
    LsValueId in[3] = {n->in[0], n->in[1], ls_onnx_in(n, 2)};
    out[0] = ls_append(n->cx, n->g, LS_OP_CONV_DX, ls_is(in[2]) ? 3 : 2, in, &at);
    return ls_is(out[0]);
}

const LsOnnxOp ls_onnx_conv = {.name = "Conv", .since = 1, .build = conv_build};
const LsOnnxOp ls_onnx_conv_transpose = {
    .name = "ConvTranspose", .since = 1, .build = conv_transpose_build};
