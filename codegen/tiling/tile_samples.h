/* codegen/tiling/tile_samples.h -- nodes in tiles: a node with large values becomes one node for
 * each tile of the samples, so that the values never lie in memory as a whole.
 *
 * A *tiled region* is the set of nodes that make or read a value of at least `least` bytes. Their
 * tiles are nodes like others: the scheduler decides what is kept, what runs again, and in which
 * order. Results are those of the whole node, bit for bit: samples have elements of their own, and
 * a sum over samples goes on from tile to tile in a state. Values that nodes outside of the region
 * read are put together by PLACE. */
#ifndef LS_CODEGEN_TILING_TILE_SAMPLES_H
#define LS_CODEGEN_TILING_TILE_SAMPLES_H

#include "codegen/tiling/tile_region.h"

/* Returns the number of nodes that were tiled; 0: none, and the graph computes as before. Sets
 * o->tiles to the number of tiles. */
uint32_t ls_tile_samples(LsCtx *cx, LsGraph *g, const LsTarget *t, LsTiling *o);

#endif
