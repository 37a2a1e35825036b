/* compiler/ops/resize_matrix.h -- forms of Resize that become products with constant matrices. */
#ifndef LS_COMPILER_OPS_RESIZE_MATRIX_H
#define LS_COMPILER_OPS_RESIZE_MATRIX_H

#include "compiler/ops/row.h"

typedef enum { LS_LINE_NEAREST, LS_LINE_LINEAR, LS_LINE_CUBIC } LsLineMode;

/* The coordinates, in the order of the names in resize.c; the first four are LsResizeCoord's. */
typedef enum { LS_LINE_HALF_PIXEL, LS_LINE_PYTORCH_HALF_PIXEL, LS_LINE_ALIGN_CORNERS, LS_LINE_ASYMMETRIC,
               LS_LINE_HALF_PIXEL_SYMMETRIC, LS_LINE_CROP, LS_LINE_TF_HALF_PIXEL } LsLineCoord;

/* How one axis is resized. */
typedef struct LsResizeLine {
    LsLineMode mode;
    LsLineCoord coord;
    LsRound nearest;
    bool antialias, exclude_outside;
    double cubic_a, extrapolation;
    double scale, lo, hi;       /* lo, hi: part of the axis that LS_LINE_CROP reads, 0 .. 1 is all of it */
    int64_t x, y;               /* lengths before and after */
} LsResizeLine;

/* v with `axis` (from 1 on) resized: an element of the result is the weighted sum of elements along the axis
 * (nearest: one of them), or `extrapolation` where LS_LINE_CROP reads outside. None after an error. */
LsValueId ls_resize_line(LsOnnxNode *n, LsValueId v, int axis, const LsResizeLine *line);

#endif
