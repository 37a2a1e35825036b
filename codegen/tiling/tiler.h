/* codegen/tiling/tiler.h -- a graph while its nodes are cut into tiles: shared by
 * codegen/tiling/tile_samples.c and the sums of losses (codegen/tiling/loss_sums.c). */
#ifndef LS_CODEGEN_TILING_TILER_H
#define LS_CODEGEN_TILING_TILER_H

#include "codegen/tiling/tile_region.h"
#include "compiler/ir/rewrite.h"

typedef struct LsTiler {
    LsTileRegion r;
    LsValueId *tile;            /* by (value, tile): of a result, or a slice of another value */
    LsValueId *base;            /* by value: the whole as far as it has been put together */
    LsValueId *state;           /* by value: of the sum over the tiles so far */
    struct LsTileRows **rows;   /* by value: rows that lie in no tile by themselves */
} LsTiler;

static inline LsValueId *ls_tile_of(const LsTiler *s, LsValueId v, int t)
{
    return &s->tile[v.i * (uint32_t)s->r.tiles + (uint32_t)t];
}
/* What tile t of node n reads as its operand k. */
LsValueId ls_tile_operand(LsRewrite *r, const LsTiler *s, LsNodeId n, int k, int t);
LsTilePlace *ls_tile_place(LsRewrite *r, const LsTiler *s, LsSpan own, int64_t of, int t);
/* Result k of node `to` is the state of the sum that makes value `of`, after tile t. */
void ls_tile_set_state(LsRewrite *r, LsTiler *s, LsNodeId to, int k, LsValueId of, LsType type,
                       int64_t elements, int t);

#endif
