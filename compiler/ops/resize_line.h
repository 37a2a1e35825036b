/* compiler/ops/resize_line.h -- how Resize maps one axis: every element of the result is a weighted
 * sum of a few elements of the operand. The kernel prints these sparse rows as tables; forms
 * without a kernel become matrices of them. */
#ifndef LS_COMPILER_OPS_RESIZE_LINE_H
#define LS_COMPILER_OPS_RESIZE_LINE_H

#include "compiler/ir/ir.h"

typedef enum { LS_LINE_NEAREST, LS_LINE_LINEAR, LS_LINE_CUBIC } LsLineMode;

/* The coordinates, in the order of the names in resize.c; the first four are LsResizeCoord's. */
typedef enum {
    LS_LINE_HALF_PIXEL,
    LS_LINE_PYTORCH_HALF_PIXEL,
    LS_LINE_ALIGN_CORNERS,
    LS_LINE_ASYMMETRIC,
    LS_LINE_HALF_PIXEL_SYMMETRIC,
    LS_LINE_CROP,
    LS_LINE_TF_HALF_PIXEL
} LsLineCoord;

/* How one axis is resized. */
typedef struct LsResizeLine {
    LsLineMode mode;
    LsLineCoord coord;
    LsRound nearest;
    bool antialias, exclude_outside;
    double cubic_a, extrapolation;
    double scale, lo, hi;       /* lo, hi: part of the axis that LS_LINE_CROP reads, 0 .. 1 is all
                                 * of it */
    int64_t x, y;               /* lengths before and after */
} LsResizeLine;

typedef struct LsLineTap { int64_t at; double by; } LsLineTap;

/* Axis k of the IR's node. */
LsResizeLine ls_resize_axis(const LsResizeAttr *at, int k);
/* Element i of the result lies outside of what LS_LINE_CROP reads: it has no taps, and is
 * `extrapolation`. */
bool ls_line_outside(const LsResizeLine *l, int64_t i);
/* The most taps that an element has. */
int64_t ls_line_most_taps(const LsResizeLine *l);
/* Fills the taps of element i, in the order of the operand; elements beyond the ends are the ends,
 * so that one may occur several times. The weights' sum is 1. Returns their number; 0: outside, or
 * no neighbour has a weight. */
int64_t ls_line_taps(const LsResizeLine *l, int64_t i, LsLineTap tap[]);

#endif
