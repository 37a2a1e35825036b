/* codegen/tiling/loss_sums.h -- the sums of a loss in tiles, which go on from tile to tile. */
#ifndef LS_CODEGEN_TILING_LOSS_SUMS_H
#define LS_CODEGEN_TILING_LOSS_SUMS_H

#include "codegen/tiling/tiler.h"

/* Appends the sums of tile t; those of all tiles are the results of the loss. */
void ls_tile_loss_part(LsRewrite *r, LsTiler *s, LsNodeId n, int t);
void ls_tile_loss_end(LsRewrite *r, const LsTiler *s, LsNodeId n);

#endif
