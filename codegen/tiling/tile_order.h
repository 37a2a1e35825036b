/* codegen/tiling/tile_order.h -- the order of a graph in tiles: tile after tile. */
#ifndef LS_CODEGEN_TILING_TILE_ORDER_H
#define LS_CODEGEN_TILING_TILE_ORDER_H

#include "compiler/ir/diag.h"
#include "compiler/ir/ir.h"

/* Moves nodes so that all nodes of a tile run before those of the next one, as far as sums over all
 * tiles let them. Nodes of a tile have LsNode.tile. Those that read what a later tile has made run
 * with the later tile; if apart: after all tiles. */
void ls_tile_order(LsCtx *cx, LsGraph *g, int real_bytes, bool apart);

#endif
