/* codegen/kernels/reduce.h -- shared by the files of reductions: the walk over the axes, the text
 * of accumulators, the loops of one unit. Callbacks get a format with one %d for the result's
 * number if they need one. */
#ifndef LS_CODEGEN_REDUCE_H
#define LS_CODEGEN_REDUCE_H

#include "codegen/kernels/printed_body.h"

enum { LS_REDUCE_RUN = 16 };    /* rows summed in float before the sum goes to double */

typedef struct LsReduce {
    LsBody body;
    LsEmit *e;              /* takes the text */
    int kept[LS_NEST_AXES], nkept;      /* kept axes, except an innermost one */
    int red[LS_NEST_AXES], nred;        /* reduced axes, except an innermost one */
    bool rows;              /* the innermost axis is kept */
    int64_t inner;          /* length of the innermost axis */
    int64_t outer;          /* points of the kept axes */
    int64_t group;          /* kept points in one unit */
    int64_t tile, ntile;    /* rows: accumulators, tiles of the innermost axis */
    int64_t lanes;          /* not rows: accumulators */
    int wide;               /* rows: neighbours of the innermost axis taken together, as
                             * LsBoxes.wide */
    LsGrid part[2];
    int cut;                /* the axis cut into pieces */
    int64_t piece, npiece;  /* length of a piece, number of pieces */
    bool state;             /* of some samples: results are states (LsFused.states), of all npiece
                             * pieces; the unit's axes are cut as those of all samples are */
    int64_t before, length; /* state: rows of the cut axis in front of these, of all samples */
    int64_t first, some;    /* state: the pieces that the rows touch */
    int64_t count;          /* elements reduced to one */
} LsReduce;

/* ---- codegen/kernels/reduce.c: bodies with reductions ---- */
void ls_reduce_emit(const LsKernelText *k);
int64_t ls_reduce_workspace(const LsGraph *g, LsNodeId n, const LsTarget *t);
/* Whether some samples or rows, those from of.first on, can go on with the sums of those before,
 * and the bits are those of all together. Sets the pieces of the sums, and their results. */
bool ls_reduce_may_go_on(const LsGraph *g, LsNodeId n, const LsTarget *t, LsTilePlace of,
                         int64_t *pieces, int64_t *points);

/* ---- codegen/kernels/accumulator.c ---- */
LsType ls_reduce_type(const LsReduce *r, int y);    /* of result y */
/* Whether result y is a sum of floats, which runs in float and goes on in double. */
bool ls_long_sum(const LsReduce *r, int y);
bool ls_any_long_sum(const LsReduce *r);
/* Type of the total and of its accumulators; those of long sums are `real`. */
const char *ls_total_type(const LsReduce *r, int y);
const char *ls_total_start(const LsReduce *r, int y);
/* Prints "total += x;", or the like for other reductions. */
void ls_total_combine(const LsReduce *r, int y, const char *total, const char *x);
/* Prints result y from its total. */
void ls_total_finish(const LsReduce *r, int y, const char *total);
/* Declares "NAMEy": n accumulators of type `type` in each row of the part's threads. */
void ls_local_rows(const LsReduce *r, const LsGrid *part, const char *type, const char *name, int y,
                   int64_t n);
/* The format with y in the place of its one %d. */
const char *ls_reduce_text(const LsReduce *r, const char *format, int y);
/* Calls print for every reduced result. */
void ls_reduce_each(const LsReduce *r,
                    void (*print)(const LsReduce *, const char *format, int y), const char *format);

/* ---- codegen/kernels/reduce_unit.c ---- */
/* Whether (rows) the innermost reduced axis is walked in runs, each followed by the move to
 * double. */
bool ls_reduce_runs(const LsReduce *r);
/* Print a unit whose innermost axis is kept, or reduced, and deliver its totals. */
void ls_reduce_rows(const LsReduce *r);
void ls_reduce_lanes(const LsReduce *r);

#endif
