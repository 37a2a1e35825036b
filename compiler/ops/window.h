/* compiler/ops/window.h -- the sliding windows of convolutions and pooling. */
#ifndef LS_COMPILER_OPS_WINDOW_H
#define LS_COMPILER_OPS_WINDOW_H

#include "compiler/ops/row.h"

#define LS_HINT_WINDOW                                                                             \
    "the picture is too small for this network: bind larger sizes with --dim or --shape"

/* Elements that a window spans on axis d, gaps of the dilation included. */
static inline int64_t ls_window_span(const LsWindowAttr *w, int d)
{
    return (w->kernel[d] - 1) * w->dilation[d] + 1;
}
/* Places of the window on axis d over x elements; less than 1: the window does not fit. ceil: a
 * place that begins inside the data or the low padding counts even if it ends outside. */
int64_t ls_window_places(const LsWindowAttr *w, int d, int64_t x, bool ceil);

/* Sets w->x_dim[d] to the places over x elements; reports where the window does not fit. */
bool ls_window_place(const LsOnnxNode *n, LsWindowAttr *w, int d, int64_t x, bool ceil);

/* Reads strides, dilations, pads and kernel_shape (default: `kernel`, n sizes; NULL: kernel_shape
 * is required). */
bool ls_window_read(LsOnnxNode *n, int spatial, const int64_t *kernel, LsWindowAttr *w);
/* Replaces the pads by those of auto_pad, for data of these n sizes. */
bool ls_window_auto_pad(LsOnnxNode *n, const int64_t *x, LsWindowAttr *w);

#endif
