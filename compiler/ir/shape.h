/* compiler/ir/shape.h -- arithmetic on shapes, strides and sizes. */
#ifndef LS_COMPILER_IR_SHAPE_H
#define LS_COMPILER_IR_SHAPE_H

#include "compiler/ir/ir.h"

/* Upper limits on the elements of one value (4 TiB in doubles) and of all values of a model (256
 * TiB). No machine holds more, and sums and byte counts below the limits cannot overflow. */
#define LS_MOST_ELEMENTS (INT64_C(1) << 39)
#define LS_MOST_IN_ALL (INT64_C(1) << 45)
int64_t ls_count(const LsShape *s);                     /* elements */
bool ls_shape_same(const LsShape *a, const LsShape *b);
LsShape ls_shape_without(const LsShape *s, int axis);
bool ls_shape_broadcast(LsShape *to, const LsShape *with);      /* NumPy's rule; false: cannot */
/* Distance in elements between neighbours along each logical axis, for this layout. */
void ls_strides(const LsShape *s, LsLayout layout, int64_t stride[LS_MAX_RANK]);
/* Both layouts have the same bytes: axis 1 or every axis behind it has length 1. */
bool ls_layout_free(const LsShape *s);
int ls_type_bytes(LsType t, int real_bytes);            /* real_bytes: 4, or 8
                                                         * under --precision=f64 */

#endif
