/* codegen/cuda/conv_within.h -- 1x1 convolutions in a generated kernel, with the FUSED node that reads the
 * result as epilogue.
 *
 * Such a convolution is a product of very many rows, and on a GPU it is bound by memory bandwidth. The
 * FUSED node (the statistics of a batch norm, or in the backward part the sum with another gradient, the
 * ReLU's gradient and the sums for the norm before) would load the whole result again. The kernel has each
 * element in a register and computes the FUSED node's body there.
 *
 * The node (LS_OP_CONV_FUSED, LsConvFusedAttr) has the body's operands from 1 on, then the rows x and the
 * weights w. Operand 0 of the body is the product. If other nodes read the convolution's result too, it is
 * result 0, as a statement of its own. If two results are a mean and a variance of the same statement, the
 * variance is about that mean. */
#ifndef LS_CODEGEN_CONV_WITHIN_H
#define LS_CODEGEN_CONV_WITHIN_H

#include "codegen/emit/target.h"
#include "compiler/cost/machine.h"
#include "compiler/ir/graph.h"

enum { LS_WITHIN_SUMS = 3 };    /* most numbers per column that a warp leaves in shared memory */

typedef struct LsWithinSize {
    int64_t rows, columns;      /* of the product */
    int64_t depth;              /* terms of each sum */
    int n;                      /* a tile has LS_TILE_COLUMNS(n) columns */
    int64_t down, across;       /* tiles down the rows, and across the columns */
} LsWithinSize;
LsWithinSize ls_within_size(const LsGraph *g, LsNodeId n);

/* Fuses where the machine's costs (class conv.fused) say it is faster, in TF32 alone; returns the
 * convolutions fused. Runs before planning, so every budget has the same kernels. Requires a fused graph
 * without alternatives, joined or inset operands. */
uint32_t ls_conv_within(LsCtx *cx, LsGraph *g, const LsTarget *t, const LsMachine *m);

#endif
