/* scheduler/plan/run_dependencies.h -- a plan by the pieces of memory that its runs touch, and which runs must
 * wait for which.
 *
 * A plan is an order of runs, and a machine that does one after the other needs no more. One that
 * does several at a time has to know what the order is for: a run waits for those before it that
 * made what it reads, or that still use the bytes it writes. */
#ifndef LS_SCHEDULER_PLAN_RUN_DEPENDENCIES_H
#define LS_SCHEDULER_PLAN_RUN_DEPENDENCIES_H

#include "scheduler/candidates/plan_steps.h"

/* A value with all results that take its place, a workspace, or a persistent tensor. */
typedef struct LsPiece {
    uint32_t first, last;       /* the runs that it lies in the arena from and to, both inclusive */
    int64_t bytes;              /* of its largest value */
    int64_t offset;             /* in the arena; -1: persistent */
} LsPiece;

typedef struct LsPieceUse { uint32_t piece; bool writes; } LsPieceUse;

typedef struct LsPieces {       /* runs are counted from 0, without the plan's frees */
    LsPiece *piece; uint32_t npiece;
    LsPieceUse *touch;             /* of run r: [of[r], of[r + 1]) */
    uint32_t *of, nrun;
    uint32_t *result;           /* by entry of LsPlan.offset: the piece it is in */
    uint32_t *workspace;        /* by run: the piece, or LS_NO_PIECE */
    double *begin;              /* by run: ns from the first, one after the other; [nrun]: the end */
} LsPieces;

#define LS_NO_PIECE UINT32_MAX

/* plan: a sound one (scheduler/plan/plan_audit.h) with places. Everything comes from arena. */
LsPieces ls_pieces(LsArena *arena, const LsDag *dag, const LsPlan *plan);

/* What a run waits for: only those that no other of them waits for itself, rising. */
typedef struct LsWaits {
    uint32_t *run;              /* of run r: [of[r], of[r + 1]) */
    uint32_t *of;
    uint64_t *before; uint32_t words;   /* of run r: bit i of [r * words ..): r waits for i, or for
                                         * one that does */
} LsWaits;

/* By the places that the pieces have; apart: as if no two lay on the same bytes, so that a run waits
 * only for what concerns the same pieces. */
LsWaits ls_waits(LsArena *arena, const LsPieces *p, bool apart);

static inline bool ls_waits_for(const LsWaits *w, uint32_t run, uint32_t other)
{
    return w->before[(size_t)run * w->words + other / 64] >> other % 64 & 1;
}

/* ns that the longest chain of runs takes: no machine is faster, however much it does at a time. */
double ls_waits_longest(const LsPieces *p, const LsWaits *w);

#endif
