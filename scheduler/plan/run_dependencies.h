/* scheduler/plan/run_dependencies.h -- the pieces of memory that a plan's runs touch, and which
 * runs must wait for which.
 *
 * A plan orders its runs, and a machine that does one run at a time needs no more. A machine that
 * does several at a time must know the reasons for the order: a run waits for the earlier runs that
 * made its operands or that still use the bytes it writes. */
#ifndef LS_SCHEDULER_PLAN_RUN_DEPENDENCIES_H
#define LS_SCHEDULER_PLAN_RUN_DEPENDENCIES_H

#include "base/csr.h"
#include "scheduler/candidates/plan_steps.h"

/* A piece: a value with all results that take its place, a workspace, or a persistent tensor. */
typedef struct LsPiece {
    uint32_t first, last;       /* live range in the arena: runs, both inclusive */
    int64_t bytes;              /* size of its largest value */
    int64_t offset;             /* bytes from the start of the arena; -1: persistent */
} LsPiece;

typedef struct LsPieceUse { uint32_t piece; bool writes; } LsPieceUse;

typedef struct LsPieces {       /* runs count from 0, without the plan's free steps */
    LsPiece *piece; uint32_t npiece;
    LsPieceUse *touch;             /* of run r: [of[r], of[r + 1]) */
    uint32_t *of, nrun;
    uint32_t *result;           /* by entry of LsPlan.offset: its piece */
    uint32_t *workspace;        /* by run: the piece of its workspace, or LS_NO_PIECE */
    double *begin;              /* by run: its start, ns from the first run, one run at a time;
                                 * [nrun]: the end */
} LsPieces;

#define LS_NO_PIECE UINT32_MAX

/* Finds the pieces of a sound plan (scheduler/plan/plan_audit.h) with offsets. Everything comes
 * from `arena`. */
LsPieces ls_pieces(LsArena *arena, const LsDag *dag, const LsPlan *plan);

/* The runs that each run waits for, rising, without those that another of them already waits
 * for. */
typedef struct LsWaits {
    LsRows on;                  /* by run */
    uint64_t *before; uint32_t words;   /* of run r: bit i of [r * words ..): r waits for i,
                                         * directly or through other runs */
} LsWaits;

/* Computes the waits from the pieces' offsets. apart: treats pieces as if no two shared bytes, so
 * that a run waits only for runs that touch the same pieces. */
LsWaits ls_waits(LsArena *arena, const LsPieces *p, bool apart);

static inline bool ls_waits_for(const LsWaits *w, uint32_t run, uint32_t other)
{
    return w->before[(size_t)run * w->words + other / 64] >> other % 64 & 1;
}

/* Returns the time of the longest chain of runs, ns: a lower bound for any machine, however many
 * runs it does at a time. */
double ls_waits_longest(const LsPieces *p, const LsWaits *w);

#endif
