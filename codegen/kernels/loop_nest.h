/* codegen/kernels/loop_nest.h -- nested loops over a box of indices, and each tensor's strides in
 * them.
 *
 * Axes stand in walk order, outermost first, each with a stride per tensor. Merging joins adjacent
 * axes that every tensor walks as one, so a dense tensor of any rank becomes one long loop. */
#ifndef LS_CODEGEN_KERNELS_LOOP_NEST_H
#define LS_CODEGEN_KERNELS_LOOP_NEST_H

#include "codegen/emit/kernel_emit.h"

enum { LS_NEST_AXES = 2 * LS_MAX_RANK };

typedef struct LsNest {
    struct LsArena *arena;
    int naxis, ntensor;
    int64_t size[LS_NEST_AXES];
    bool reduced[LS_NEST_AXES];
    bool alone[LS_NEST_AXES];           /* neither joined with a neighbour nor dropped */
    int64_t whole[LS_NEST_AXES];        /* by axis before merging: its size */
    int last[LS_NEST_AXES];             /* the last axis before merging that this axis walks; the
                                         * first such axis follows the previous axis' last */
    int64_t (*stride)[LS_NEST_AXES];    /* by tensor, elements */
    int64_t *before;                    /* by tensor, elements: subtracted from its offset, for a
                                         * tensor that covers a part of the axes */
    const char *var[LS_NEST_AXES]; /* name of the axis' index in the text: i is the innermost */
    bool eights;                        /* a GPU's kernel takes eight neighbours at a time where it
                                         * can */
} LsNest;

/* The axes of `space` in the order of `layout`; all strides are 0. */
LsNest *ls_nest_new(const LsGraph *g, const LsShape *space, LsLayout layout, int ntensor);
/* Logical axes in the order in which `layout` stores them. */
void ls_walk_order(const LsShape *s, LsLayout layout, int order[LS_MAX_RANK]);
/* The last axis of that order. */
int ls_innermost(const LsShape *s, LsLayout layout);
/* Sets the strides of one tensor, given by logical axis of the space. */
void ls_nest_tensor(LsNest *n, const LsShape *space, LsLayout layout, int tensor,
                    const int64_t stride[LS_MAX_RANK]);
/* Drops axes of length 1 and joins neighbours, except axes that stay alone, and names the axes
 * left. At least one axis stays. */
void ls_nest_merge(LsNest *n);
int64_t ls_nest_count(const LsNest *n);

/* "j * 64 + i": offset of the tensor's element, over axes from .. to-1; "0": no axis moves it. Ends
 * in " - 32" if the tensor's `before` is 32. */
const char *ls_nest_offset(const LsNest *n, int tensor, int from, int to);
/* "j / 56 % 56": the index along axis k of the nest before merging. */
const char *ls_nest_index(const LsNest *n, int k);
/* "j < valid * 3136": the index along axis k of the nest before merging is below `count` times
 * `times`. */
const char *ls_nest_below(const LsNest *n, int k, const char *count, int64_t times);
/* Innermost axis that moves the tensor; -1: none. */
int ls_nest_level(const LsNest *n, int tensor);
/* Prints the indices of the listed axes from a flat one: "const int64_t j = u / 7 % 56;". */
void ls_nest_decode(LsEmit *e, const LsNest *n, const char *flat, int count, const int axis[]);

/* ---- units ---- A unit is a box of about ls_unit elements: some rows of the innermost axis, or a
 * piece of one row if rows are long. Every unit starts its loops anew, so a result's bits do not
 * depend on the number of threads. */
typedef struct LsBoxes {
    int64_t inner, mid;         /* elements of a row, and rows, in one unit */
    int64_t ninner, nmid, outer;    /* units along each axis; product of the axes outside */
    int64_t units;
    int wide;                   /* neighbours of the innermost axis that are taken together: 8, 4,
                                 * or 0: one */
    bool gpu;
} LsBoxes;
LsBoxes ls_boxes(const LsKernelText *k, const LsNest *n);
/* The grid of these units. */
LsGrid ls_boxes_grid(const char *suffix, const LsBoxes *b);
/* Prints the loop over units and over a unit's rows; returns the braces opened. */
int ls_boxes_open(LsEmit *e, const LsNest *n, const LsBoxes *b);
/* Prints the loop over the innermost axis: one brace. */
void ls_boxes_inner(LsEmit *e, const LsNest *n, const LsBoxes *b);

/* Accumulators for a reduction of n elements to one: a power of two up to 256, so that a float sum
 * has few terms and short rows have little to combine. */
int64_t ls_lanes(int64_t n);

/* Elements that make a worthwhile unit on the kernel's target. */
int64_t ls_unit(const LsKernelText *k);
/* The least power of two that is n or more, capped at `most` (a power of two). */
int ls_threads(int64_t n, int most);
/* The grid of a loop over n elements in LS_LANES, ls_unit elements per unit. */
LsGrid ls_flat_grid(const LsKernelText *k, const char *suffix, int64_t n);
/* Rows of n elements that make a worthwhile unit; on a GPU a multiple of a block's rows of
 * threads. */
int64_t ls_row_group(const LsKernelText *k, int64_t n);
/* Lines of n elements that make a worthwhile unit where a lane computes a line in sequence. */
int64_t ls_line_group(const LsKernelText *k, int64_t n);
/* The grid of a reduction over rows of n elements (ls_row_sum, ...), `group` rows in a unit as
 * LS_ROWS. */
LsGrid ls_rows_grid(const char *suffix, int64_t rows, int64_t group, int64_t n);
/* Neighbours that a thread takes together of n elements: 4, or 8 if there may be eights; 0: one at
 * a time. */
static inline int ls_wide(int64_t n, bool eights)
{
    return eights && n % 8 == 0 ? 8 : n % 4 == 0 ? 4 : 0;
}
static inline int ls_fours(int64_t n) { return ls_wide(n, false); }
/* LS_LANES4 or LS_LANES8 if every tensor that moves along the loop does so in fours or eights, else
 * LS_LANES. */
static inline const char *ls_lanes_word(int wide)
{
    return wide == 8 ? LS_FOURS "LS_LANES8" : wide == 4 ? LS_FOURS "LS_LANES4" : "LS_LANES";
}
/* An element of that type is one of several that are read or written together in such a loop. */
static inline bool ls_in_wide(const LsKernelText *k, int wide, LsType t)
{
    return wide > 0 && (t == LS_REAL || (ls_is_16(t) && k->target->kind == LS_TARGET_CUDA));
}

/* ---- text that many emitters share ---- */
/* Prints "y[at] = v;", or in LS_LANES4, for four neighbours, "LS_PUT4(y, at, v);", likewise for
 * eight. v is then a real, whatever the type of y's elements (ls_in_wide). */
void ls_emit_put(LsEmit *e, int wide, const char *y, const char *at, const char *v);
/* "x[at]", or in LS_LANES4 "LS_GET4(v, x, at)", a real, which "LS_FOUR(v);" must precede; likewise
 * for eight. */
const char *ls_get_text(struct LsArena *a, int wide, const char *v, const char *x,
                        const char *at);
/* Prints "LS_FOUR(v);" or "LS_EIGHT(v);". */
void ls_emit_room(LsEmit *e, int wide, const char *v);
void ls_emit_close(LsEmit *e, int count);

static inline int64_t ls_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

#endif
