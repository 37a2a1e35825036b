/* codegen/tiling/tile_loss.h -- losses in tiles: a tile adds its positions to the sums of those
 * before, so that neither the scores nor their gradient are there as a whole. Scores that are an
 * output are there anyway; then their gradient alone is in tiles. Losses of reals get an output. */
#ifndef LS_CODEGEN_TILING_TILE_LOSS_H
#define LS_CODEGEN_TILING_TILE_LOSS_H

#include "codegen/tiling/tile_spans.h"

/* The node is a cross-entropy, which is a sum; or one, or a loss's gradient. */
bool ls_tile_is_loss(const LsNode *n);
bool ls_tile_is_of_loss(const LsNode *n);
/* Of such a node: its tiles read rows of operand k; they make rows of result k. Labels are read as
 * a whole, in place: they are an input. */
bool ls_tile_loss_reads(const LsNode *n, int k);
bool ls_tile_loss_makes(const LsNode *n, int k);
/* It can run by tiles, if what they read and make has rows. */
bool ls_tile_loss_fits(const LsTileRegion *r, LsNodeId n);

#endif
