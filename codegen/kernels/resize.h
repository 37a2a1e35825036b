/* codegen/kernels/resize.h -- what some rows of a resized value are made of. */
#ifndef LS_CODEGEN_KERNELS_RESIZE_H
#define LS_CODEGEN_KERNELS_RESIZE_H

#include "compiler/ir/graph.h"

/* The rows rows[0] .. rows[1] of the operand of RESIZE or RESIZE_GRAD that rows first .. end of its
 * result along this axis are sums of; none: rows[1] is at most rows[0]. */
void ls_resize_rows(const LsGraph *g, LsNodeId n, int axis, int64_t first, int64_t end,
                    int64_t rows[2]);

#endif
