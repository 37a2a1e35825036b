/* codegen/cuda/conv_within.h -- convolutions of one tap in a kernel of our own, with the FUSED node
 * behind them inside it.
 *
 * Such a convolution is a product of very many rows, and on a GPU it takes as long as its tensors
 * take to cross the memory. What reads the result next, the statistics of a batch norm, or in the
 * backward part the sum with another gradient, the ReLU's gradient and the sums for the norm before,
 * would bring all of it in again: the kernel has each element in a register, and does that there.
 *
 * The node (LS_OP_CONV_FUSED, LsConvFusedAttr) has the body's operands from 1 on, then the rows x and the
 * weights w. Operand 0 of the body is the product. If others read the convolution's result as well,
 * it is result 0, as a statement of its own. Of two results that are a mean and a variance of the
 * same statement, the latter is about the former. */
#ifndef LS_CODEGEN_CONV_WITHIN_H
#define LS_CODEGEN_CONV_WITHIN_H

#include "codegen/emit/target.h"
#include "compiler/cost/machine.h"
#include "compiler/ir/graph.h"

enum { LS_WITHIN_SUMS = 3 };    /* numbers a column that a warp leaves in shared memory, at most */

typedef struct LsWithinSize {
    int64_t rows, columns;      /* of the product */
    int64_t depth;              /* terms of its sums */
    int n;                      /* a tile has LS_TILE_COLUMNS(n) */
    int64_t down, across;       /* tiles */
} LsWithinSize;
LsWithinSize ls_within_size(const LsGraph *g, LsNodeId n);

/* Takes in what the machine is faster with by its costs (class conv.fused): how many convolutions. TF32
 * alone. Plans are made behind it, so every budget has the same kernels. requires a fused graph without
 * alternatives, joined or inset operands. */
uint32_t ls_conv_within(LsCtx *cx, LsGraph *g, const LsTarget *t, const LsMachine *m);

#endif
