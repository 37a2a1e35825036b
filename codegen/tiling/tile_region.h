/* codegen/tiling/tile_region.h -- which nodes can run by tiles of the samples, of the rows of one
 * picture or of tokens, and which do. */
#ifndef LS_CODEGEN_TILING_TILE_REGION_H
#define LS_CODEGEN_TILING_TILE_REGION_H

#include "codegen/tiling/tile_matrices.h"
#include "codegen/tiling/tile_spans.h"
#include "compiler/ir/diag.h"

/* tokens: those of all samples, along the first axis of values (ls_tokens_flatten), if tiles are of
 * them. */
LsTileRegion ls_tile_region(LsCtx *cx, const LsGraph *g, const LsTarget *t, const LsTiling *o,
                            int64_t tokens);
/* Operand k of a node of the region has the samples along its first axis. */
bool ls_tile_reads(const LsTileRegion *r, LsNodeId n, int k);
/* Result k of a node of the region does. */
bool ls_tile_makes(const LsTileRegion *r, LsNodeId n, int k);
/* Samples or rows of tile t: of value v, which is tiled; of operand k, which node n reads in tiles;
 * those that node n computes, of *of in all. */
LsSpan ls_tile_span(const LsTileRegion *r, LsValueId v, int t);
LsSpan ls_tile_reads_span(const LsTileRegion *r, LsNodeId n, int k, int t);
LsSpan ls_tile_makes_span(const LsTileRegion *r, LsNodeId n, int t, int64_t *of);

#endif
