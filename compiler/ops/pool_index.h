/* compiler/ops/pool_index.h -- where in its operand a max pooling found its maxima. */
#ifndef LS_COMPILER_OPS_POOL_INDEX_H
#define LS_COMPILER_OPS_POOL_INDEX_H

#include "compiler/ops/row.h"

/* MaxPool's result Indices, int64: y is the first result of a MAX_POOL node with this window, the
 * index counts the elements of its operand, the last axis fastest or, with storage_order 1, the
 * first spatial axis. None after an error. */
LsValueId ls_pool_index(LsOnnxNode *n, LsValueId y, const LsWindowAttr *w);

#endif
