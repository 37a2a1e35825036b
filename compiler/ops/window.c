/* compiler/ops/window.c -- reads kernel_shape, strides, dilations, pads and auto_pad. */
#include "compiler/ops/window.h"

enum { MAX_ATTR = 1 << 20 }; /* limit of sizes and strides: prevents overflow in products of a
                              * few */

int64_t ls_window_places(const LsWindowAttr *w, int d, int64_t x, bool ceil)
{
    int64_t room = x + w->pad_lo[d] + w->pad_hi[d] - ls_window_span(w, d), s = w->stride[d];
    if (room < 0)
        return 0;
    int64_t places = room / s + 1;
    if (ceil && room % s != 0 && places * s < x + w->pad_lo[d])
        places++;
    return places;
}

bool ls_window_place(const LsOnnxNode *n, LsWindowAttr *w, int d, int64_t x, bool ceil)
{
    w->x_dim[d] = ls_window_places(w, d, x, ceil);
    return w->x_dim[d] >= 1
           || ls_onnx_error(n, LS_E_SHAPE, LS_HINT_WINDOW,
                            "the window spans %" PRId64
                            " elements of axis %d, X with padding has %" PRId64,
                            ls_window_span(w, d), 2 + d, x + w->pad_lo[d] + w->pad_hi[d]);
}

/* Reads a list of `count` integers of least..MAX_ATTR; leaves out unchanged when the attribute is
 * absent. */
static bool read_list(LsOnnxNode *n, const char *attr, int count, int64_t least, int64_t *out)
{
    if (!ls_onnx_has(n, attr))
        return true;
    int64_t v[2 * LS_MAX_SPATIAL] = {0};
    int got = ls_onnx_ints(n, attr, 2 * LS_MAX_SPATIAL, v);
    if (got != count)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "%s has %d elements, the data needs %d", attr, got,
                             count);
    for (int k = 0; k < count; k++) {
        if (v[k] < least || v[k] > MAX_ATTR)
            return ls_onnx_error(n, LS_E_ATTR, NULL, "%s[%d] is %" PRId64 ", allowed are %" PRId64
                                 " to %d", attr, k, v[k], least, MAX_ATTR);
        out[k] = v[k];
    }
    return true;
}

bool ls_window_read(LsOnnxNode *n, int spatial, const int64_t *kernel, LsWindowAttr *w)
{
    if (spatial < 1 || spatial > LS_MAX_SPATIAL)
        return ls_onnx_error(n, LS_E_UNSUPPORTED, NULL, "%d spatial axes: 1 to %d are supported",
                             spatial, LS_MAX_SPATIAL);
    int64_t pads[2 * LS_MAX_SPATIAL] = {0};
    *w = (LsWindowAttr){.n = spatial, .group = 1};
    for (int d = 0; d < spatial; d++) {
        w->stride[d] = w->dilation[d] = 1;
        w->kernel[d] = kernel != NULL ? kernel[d] : 1;
    }
    if (kernel == NULL && !ls_onnx_has(n, "kernel_shape"))
        return ls_onnx_error(n, LS_E_ATTR, NULL, "kernel_shape is missing");
    if (!read_list(n, "kernel_shape", spatial, 1, w->kernel)
        || !read_list(n, "strides", spatial, 1, w->stride)
        || !read_list(n, "dilations", spatial, 1, w->dilation)
        || !read_list(n, "pads", 2 * spatial, 0, pads))
        return false;
    for (int d = 0; d < spatial; d++) {
        w->pad_lo[d] = pads[d];
        w->pad_hi[d] = pads[spatial + d];
        if (kernel != NULL && kernel[d] != w->kernel[d])
            return ls_onnx_error(n, LS_E_SHAPE, NULL, "kernel_shape[%d] is %" PRId64
                                 ", the weight has %" PRId64, d, w->kernel[d], kernel[d]);
    }
    return true;
}

bool ls_window_auto_pad(LsOnnxNode *n, const int64_t *x, LsWindowAttr *w)
{
    const char *mode = ls_onnx_string(n, "auto_pad", "NOTSET");
    bool upper = strcmp(mode, "SAME_UPPER") == 0;
    if (mode[0] == '\0' || strcmp(mode, "NOTSET") == 0)
        return true;
    if (!upper && strcmp(mode, "SAME_LOWER") != 0 && strcmp(mode, "VALID") != 0)
        return ls_onnx_error(n, LS_E_ATTR, NULL,
                             "auto_pad '%s' is not one of NOTSET, VALID, SAME_UPPER, SAME_LOWER",
                             mode);
    for (int d = 0; d < w->n; d++) {
        int64_t places = (x[d] + w->stride[d] - 1) / w->stride[d];
        int64_t pad = (places - 1) * w->stride[d] + ls_window_span(w, d) - x[d];
        if (pad < 0 || strcmp(mode, "VALID") == 0)
            pad = 0;
        w->pad_lo[d] = upper ? pad / 2 : pad - pad / 2;
        w->pad_hi[d] = pad - w->pad_lo[d];
    }
    return true;
}
