/* compiler/ops/resize_matrix.h -- forms of Resize that become products with constant matrices. */
#ifndef LS_COMPILER_OPS_RESIZE_MATRIX_H
#define LS_COMPILER_OPS_RESIZE_MATRIX_H

#include "compiler/ops/resize_line.h"
#include "compiler/ops/row.h"

/* v with `axis` (from 1 on) resized: an element of the result is the weighted sum of elements along
 * the axis (nearest: one of them), or `extrapolation` where LS_LINE_CROP reads outside. None after
 * an error. */
LsValueId ls_resize_line(LsOnnxNode *n, LsValueId v, int axis, const LsResizeLine *line);

#endif
