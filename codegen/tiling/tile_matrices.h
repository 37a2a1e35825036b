/* codegen/tiling/tile_matrices.h -- which nodes of transformers can run by tiles of the samples:
 * products, norms, softmax, attention, and what moves their rows. */
#ifndef LS_CODEGEN_TILING_TILE_MATRICES_H
#define LS_CODEGEN_TILING_TILE_MATRICES_H

#include "codegen/tiling/tile_spans.h"

/* The first axis of a value counts samples, or rows of samples. */
bool ls_rows_are_in(const LsTileRegion *r, LsValueId v);
/* The node is of these families, and can run by tiles. */
bool ls_tile_rows_fit(const LsTileRegion *r, LsNodeId n);
/* Operand k has the samples along its first axis. */
bool ls_tile_row_reads(const LsTileRegion *r, LsNodeId n, int k);
/* The node is a product that sums over the rows of its operands, as the gradient of a weight. */
bool ls_tile_sums_rows(const LsGraph *g, LsNodeId n);
/* Rows of the node's results are rows of samples where those of its operands are. */
bool ls_tile_keeps_rows(const LsGraph *g, LsNodeId n);
/* Changes the attributes of node n to those of its tile with these rows. */
void ls_tile_row_attr(const LsGraph *g, LsNodeId n, LsSpan own, LsAttr *at);

#endif
