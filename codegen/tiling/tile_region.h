/* codegen/tiling/tile_region.h -- which nodes can run by tiles of the samples, and which do. */
#ifndef LS_CODEGEN_TILING_TILE_REGION_H
#define LS_CODEGEN_TILING_TILE_REGION_H

#include "codegen/tiling/tile_rules_rows.h"
#include "compiler/ir/diag.h"

typedef struct LsTiling {
    int64_t tiles;              /* of the samples of a batch, about equal; 0, 1: none */
    int64_t least;              /* bytes of values that are tiled */
} LsTiling;

enum { LS_TILE_OPERANDS = 64 };         /* most operands of a FUSED node that is tiled */

typedef struct LsTileRegion {
    const LsGraph *g;
    const LsTarget *target;
    int64_t samples;            /* dim 0 of all values that are tiled, or a divisor of it: a sample
                                 * may have several rows */
    int tiles;
    const int64_t *end;         /* by tile: the sample behind its last one */
    bool *rows;                 /* by value: its rows, if they are a multiple of the samples,
                                 * are of samples */
    bool *in;                   /* by node: it is in the region */
    bool *whole;                /* by value: a node outside of the region, or something else, wants
                                 * it as a whole */
    uint32_t nodes;
} LsTileRegion;

LsTileRegion ls_tile_region(LsCtx *cx, const LsGraph *g, const LsTarget *t, const LsTiling *o);
/* Operand k of a node of the region has the samples along its first axis. */
bool ls_tile_reads(const LsTileRegion *r, LsNodeId n, int k);
/* Result k of a node of the region does. */
bool ls_tile_makes(const LsTileRegion *r, LsNodeId n, int k);
static inline LsSampleRows ls_tile_rows(const LsTileRegion *r)
{
    return (LsSampleRows){r->g, r->target, r->samples, r->tiles, r->end, r->rows};
}
/* Rows of a sample, in a value of this shape that has them. */
static inline int64_t ls_tile_each(const LsTileRegion *r, const LsShape *s)
{
    return s->dim[0] / r->samples;
}
static inline int64_t ls_tile_first(const LsTileRegion *r, int tile)
{
    return tile > 0 ? r->end[tile - 1] : 0;
}

#endif
