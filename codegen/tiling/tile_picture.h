/* codegen/tiling/tile_picture.h -- tiles of the rows of one picture: values [1, C, H, ..] are cut
 * along H, in bands. A kernel with windows reads its own band and some rows of its neighbours.
 *
 * Bands of a value begin at the same shares of its rows as those of others. They begin where the
 * kernels of the whole value begin a block of rows (Winograd) or a run of a sum, so that the bits
 * are those of the whole value; a node of which they do not is not in the region. The sum of a
 * weight gradient goes on at ends of its blocks, which are not those of bands: its tiles read the
 * rows that have these terms. */
#ifndef LS_CODEGEN_TILING_TILE_PICTURE_H
#define LS_CODEGEN_TILING_TILE_PICTURE_H

#include "codegen/tiling/tile_spans.h"
#include "compiler/ir/diag.h"

/* v is a picture: [1, C, H, ..]. */
bool ls_is_picture(const LsGraph *g, LsValueId v);
/* Sets axis, tiles and ends of the region; false: there is nothing to cut. */
bool ls_picture_choose(LsCtx *cx, LsTileRegion *r, const LsTiling *o);
/* Node n can run by tiles of rows. */
bool ls_picture_fits(const LsTileRegion *r, LsNodeId n);
/* Its tiles read rows of operand k, not all of it. */
bool ls_picture_reads(const LsTileRegion *r, LsNodeId n, int k);
/* The rows of tile t of a value of so many; and as ls_tile_reads_span, ls_tile_makes_span. */
LsSpan ls_picture_span(const LsTileRegion *r, int64_t rows, int t);
LsSpan ls_picture_read_span(const LsTileRegion *r, LsNodeId n, int k, int t);
LsSpan ls_picture_made_span(const LsTileRegion *r, LsNodeId n, int t, int64_t *of);
/* Of a weight gradient: the terms first .. end of its sum that tile t adds up. */
LsSpan ls_picture_terms(const LsTileRegion *r, LsNodeId n, int t);
/* Changes the attributes of node n to those of its tile t: padding, where its rows begin. */
void ls_picture_attr(const LsTileRegion *r, LsNodeId n, int t, LsAttr *at);

#endif
