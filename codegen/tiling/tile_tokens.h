/* codegen/tiling/tile_tokens.h -- rows of tokens: values [B, T, ..], B samples of T tokens, as the
 * B * T rows [B * T, ..], which tiles cut along their first axis wherever samples end. */
#ifndef LS_CODEGEN_TILING_TILE_TOKENS_H
#define LS_CODEGEN_TILING_TILE_TOKENS_H

#include "codegen/tiling/tile_spans.h"
#include "compiler/ir/diag.h"

/* Rebuilds g: nodes over [B, T, ..] that compute each row by itself, or sum over rows, become nodes
 * over [B * T, ..], with the same elements in the same order. Others read views. T is that of the
 * largest value of rank 3. Returns B * T; 0: there is none, and g is as before. */
int64_t ls_tokens_flatten(LsCtx *cx, LsGraph *g, const LsTarget *t);
/* Sets samples, tokens, tiles and ends of the region, of these rows in all: as many tiles as o
 * says, or as there are rows at which all sums over rows can go on. False: no two. */
bool ls_tokens_choose(LsCtx *cx, LsTileRegion *r, const LsTiling *o, int64_t rows);

#endif
