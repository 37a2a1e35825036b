/* codegen/kernels/conv.h -- the cost of computing an operand within a convolution's kernel. */
#ifndef LS_CODEGEN_KERNELS_CONV_H
#define LS_CODEGEN_KERNELS_CONV_H

#include "codegen/emit/target.h"
#include "compiler/ir/graph.h"

/* The times that the convolution would compute each element of operand `operand` as it packs it; 0:
 * the kernel cannot compute it. *axis: the operand's axis of channels. */
double ls_conv_computes(const LsGraph *g, LsNodeId n, int operand, int *axis);

/* Whether a weight gradient of some images can go on with the sum of those before, with the bits of
 * all images together. *parts: of its state, *points elements each; 0: the state is that of
 * Winograd's points, *points elements in all. */
bool ls_conv_may_go_on(const LsGraph *g, LsNodeId n, const LsTarget *t, int64_t *parts,
                       int64_t *points);

/* The terms of a weight gradient of one picture, in their order. */
typedef struct LsConvTerms {
    int64_t all;                /* 0: parts of them cannot go on with the sum of those before */
    int64_t each, rows;         /* so many are those of `rows` rows of the result */
    int64_t block;              /* a part begins and ends at a multiple of it, or at the end */
} LsConvTerms;
LsConvTerms ls_conv_terms(const LsGraph *g, LsNodeId n, const LsTarget *t);

/* Whether it is computed by squares of LS_WINO_SIDE rows. */
bool ls_conv_is_winograd(const LsGraph *g, LsNodeId n, const LsTarget *t);

#endif
