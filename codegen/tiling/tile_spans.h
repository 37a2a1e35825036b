/* codegen/tiling/tile_spans.h -- what is cut into tiles, and where. */
#ifndef LS_CODEGEN_TILING_TILE_SPANS_H
#define LS_CODEGEN_TILING_TILE_SPANS_H

#include "codegen/emit/target.h"
#include "compiler/ir/graph.h"

/* What tiles are of: the samples of a batch; the rows of one picture, in bands (tile_picture.h);
 * the tokens of all samples, one behind the other (tile_tokens.h). */
typedef enum { LS_OF_SAMPLES, LS_OF_ROWS, LS_OF_TOKENS } LsTilesOf;

typedef struct LsTiling {
    int64_t tiles;              /* about equal; 0, 1: none */
    int64_t least;              /* bytes of values that are tiled */
    LsTilesOf of;
} LsTiling;

enum { LS_TILE_OPERANDS = 64 };         /* most operands of a FUSED node that is tiled */

typedef struct LsTileRegion {
    const LsGraph *g;
    const LsTarget *target;
    int axis;                   /* of the values that is cut: 0, or 2: rows of one picture */
    int64_t samples;            /* dim 0 of all values that are tiled, or a divisor of it: a sample
                                 * may have several rows; of a picture: rows of the value of the
                                 * fewest; of tokens of one sample: all of them */
    int64_t tokens;             /* of a sample, if tiles end between them, else 1. Of values whose
                                 * rows are not of single tokens, a tile has the samples that begin
                                 * in it, which may be none */
    int tiles;
    const int64_t *end;         /* by tile: the token behind its last one, of all samples; or the
                                 * row, of that value of a picture */
    bool *rows;                 /* by value: its rows, if they are a multiple of the samples, are of
                                 * samples */
    bool *even;                 /* by value with rows of tokens: its tiles have whole samples, as it
                                 * is a view of what has */
    bool *in;                   /* by node: it is in the region */
    bool *whole;                /* by value: a node outside of the region, or something else, wants
                                 * it as a whole */
    uint32_t nodes;
} LsTileRegion;

/* Samples, rows or tokens first .. end. */
typedef struct LsSpan { int64_t first, end; } LsSpan;

/* "samples", "rows" or "tokens". */
static inline const char *ls_tiling_of(const LsTiling *t)
{
    static const char *const word[] = {"samples", "rows", "tokens"};
    return word[t->of];
}

/* Rows of a sample, in a value of this shape that has them. */
static inline int64_t ls_tile_each(const LsTileRegion *r, const LsShape *s)
{
    return s->dim[0] / r->samples;
}
/* Such rows are of single tokens. */
static inline bool ls_tile_has_tokens(const LsTileRegion *r, const LsShape *s)
{
    return ls_tile_each(r, s) % r->tokens == 0;
}
/* Those of tile t; whole: of whole samples. */
static inline LsSpan ls_tile_rows(const LsTileRegion *r, const LsShape *s, bool whole, int t)
{
    const int64_t each = ls_tile_each(r, s), first = t > 0 ? r->end[t - 1] : 0, end = r->end[t];
    if (ls_tile_has_tokens(r, s) && !whole)
        return (LsSpan){first * (each / r->tokens), end * (each / r->tokens)};
    return (LsSpan){(first + r->tokens - 1) / r->tokens * each,
                    (end + r->tokens - 1) / r->tokens * each};
}

#endif
