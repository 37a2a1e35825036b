/* compiler/per_sample/row_pairs.h -- the norm of a product of two matrices, without the product.
 *
 * |A' B|^2, with the rows of A and B summed over, is the sum over all pairs of rows of (a a)(b b):
 * t^2 products of each row's length for t rows, in place of t products of all elements of the
 * result. */
#ifndef LS_COMPILER_PER_SAMPLE_ROW_PAIRS_H
#define LS_COMPILER_PER_SAMPLE_ROW_PAIRS_H

#include "compiler/ir/graph.h"

/* A plain product of matrices of rank 2 that sums over `rows`: operand k has them as its columns if
 * turned[k]. */
typedef struct LsRowSum { int64_t rows, length[2]; bool turned[2]; double alpha; } LsRowSum;
bool ls_row_sum_of(const LsGraph *g, LsNodeId n, LsRowSum *of);

/* The products of pairs of rows, (a a)(b b): [.., rows, rows]. Factors may have leading axes beside
 * `of`'s. */
LsValueId ls_row_pairs(LsCtx *, LsGraph *, const LsRowSum *of, LsValueId a, LsValueId b);

/* The squared Euclidean norm of v: a scalar. By pairs of rows if a product over few rows makes v,
 * else none: computing the pairs must cost less than reading v. */
LsValueId ls_square_norm_by_rows(LsCtx *, LsGraph *, LsValueId v);

#endif
