/* codegen/kernels/loop_nest.h -- a box of indices walked by nested loops, and where each tensor's
 * element lies.
 *
 * Axes stand in walk order, outermost first, each with a stride per tensor. Merging joins
 * neighbours that every tensor walks as one, so that a dense tensor of any rank becomes one long
 * loop. */
#ifndef LS_CODEGEN_KERNELS_LOOP_NEST_H
#define LS_CODEGEN_KERNELS_LOOP_NEST_H

#include "codegen/emit/kernel_emit.h"

enum { LS_NEST_AXES = 2 * LS_MAX_RANK };

typedef struct LsNest {
    struct LsArena *arena;
    int naxis, ntensor;
    int64_t size[LS_NEST_AXES];
    bool reduced[LS_NEST_AXES];
    bool alone[LS_NEST_AXES];           /* not joined with a neighbour, nor dropped */
    int64_t whole[LS_NEST_AXES];        /* by axis before merging: its size */
    int last[LS_NEST_AXES];             /* the last of those that this one walks; it begins behind
                                         * that of the axis before */
    int64_t (*stride)[LS_NEST_AXES];    /* by tensor, elements */
    int64_t *before;                    /* by tensor: elements that its first lies before index 0 of
                                         * all axes (a part of what the axes span) */
    const char *var[LS_NEST_AXES]; /* name of the axis' index in the text: i is the innermost */
} LsNest;

/* The axes of `space` in the order of `layout`; all strides are 0. */
LsNest *ls_nest_new(const LsGraph *g, const LsShape *space, LsLayout layout, int ntensor);
/* Logical axes in the order in which `layout` stores them. */
void ls_walk_order(const LsShape *s, LsLayout layout, int order[LS_MAX_RANK]);
/* The last of these. */
int ls_innermost(const LsShape *s, LsLayout layout);
/* Strides of one tensor, given by logical axis of the space. */
void ls_nest_tensor(LsNest *n, const LsShape *space, LsLayout layout, int tensor,
                    const int64_t stride[LS_MAX_RANK]);
/* Drops axes of length 1 and joins neighbours, except those that stay alone; names the rest. At
 * least one axis stays. */
void ls_nest_merge(LsNest *n);
int64_t ls_nest_count(const LsNest *n);

/* "j * 64 + i": offset of the tensor's element, over axes from .. to-1; "0": nothing moves it.
 * Behind it " - 32" where it begins before. */
const char *ls_nest_offset(const LsNest *n, int tensor, int from, int to);
/* "j / 56 % 56": the index along axis k of before merging. */
const char *ls_nest_index(const LsNest *n, int k);
/* Innermost axis that moves the tensor; -1: none. */
int ls_nest_level(const LsNest *n, int tensor);
/* Prints the indices of the listed axes from a flat one: "const int64_t j = u / 7 % 56;". */
void ls_nest_decode(LsEmit *e, const LsNest *n, const char *flat, int count, const int axis[]);

/* ---- units ----
 * A unit is a box of about ls_unit elements: some rows of the innermost axis, or a piece of one row
 * where rows are long. Every unit starts its loops anew, so the bits of a result do not depend on
 * the threads. */
typedef struct LsBoxes {
    int64_t inner, mid;         /* elements of a row, and rows, in one unit */
    int64_t ninner, nmid, outer;    /* units along each axis; product of the axes outside */
    int64_t units;
    bool fours;                 /* LS_LANES4 serves the innermost axis */
    bool gpu;
} LsBoxes;
LsBoxes ls_boxes(const LsKernelText *k, const LsNest *n);
/* The grid of these units. */
LsGrid ls_boxes_grid(const char *suffix, const LsBoxes *b);
/* The loop over units, and over the rows of one: how many braces that opened. */
int ls_boxes_open(LsEmit *e, const LsNest *n, const LsBoxes *b);
/* The loop over the innermost axis: one brace. */
void ls_boxes_inner(LsEmit *e, const LsNest *n, const LsBoxes *b);

/* Running values for a loop over n elements that ends in one: a power of two up to 256, so that a
 * float sum has few terms and short rows little to combine. */
int64_t ls_lanes(int64_t n);

/* Elements that are worth a unit on the kernel's machine. */
int64_t ls_unit(const LsKernelText *k);
/* The least power of two from n on, at most `most` (itself one). */
int ls_threads(int64_t n, int most);
/* The grid of a loop over n elements: ls_unit of them each, LS_LANES over all. */
LsGrid ls_flat_grid(const LsKernelText *k, const char *suffix, int64_t n);
/* Rows of n elements that are worth a unit; on a GPU as many as a block's rows of threads, or a
 * multiple. */
int64_t ls_row_group(const LsKernelText *k, int64_t n);
/* The grid of rows of n elements whose sums are taken (ls_row_sum, ...), `group` in a unit as
 * LS_ROWS. */
LsGrid ls_rows_grid(const char *suffix, int64_t rows, int64_t group, int64_t n);
/* LS_LANES or LS_LANES4, by whether all that moves along it does so in fours. */
static inline const char *ls_lanes_word(bool fours) { return fours ? LS_FOURS "LS_LANES4" :
"LS_LANES"; }

/* ---- text that many emitters share ---- */
/* "y[at] = v;", or of four neighbours in LS_LANES4, all real numbers, "LS_PUT4(y, at, v);". */
void ls_emit_put(LsEmit *e, bool fours, const char *y, const char *at, const char *v);
/* "x[at]", or in LS_LANES4 of real numbers "LS_GET4(v, x, at)", behind "LS_FOUR(v);". */
const char *ls_get_text(struct LsArena *a, bool fours, const char *v, const char *x,
                        const char *at);
void ls_emit_close(LsEmit *e, int count);

static inline int64_t ls_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

#endif
