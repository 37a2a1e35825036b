/* scheduler/pipeline/stage_arena.h -- the arena of a stage that has several micro-batches under
 * way.
 *
 * The arena is a row of regions, each of so many copies of the same bytes. Micro-batch m lies in
 * copy m % copies of each:
 *   [at, at + bytes) [at + bytes, at + 2 bytes) ...
 * Region 0 has one copy, for what lives within a phase. What outlives its phase lies in a region
 * with as many copies as there are micro-batches that need such values at a time: what B or W reads
 * of F, what W reads of B, messages on their way. Places of such a region that are not in use yet,
 * or no longer, take what else fits.
 *
 * A micro-batch with a plan of its own (LS_PIPE_KEPT) is the first one. Its values lie anywhere in
 * the first copies where no other micro-batch has something meanwhile, and what finds no place
 * there, in a region of its own behind the others. */
#ifndef LS_SCHEDULER_PIPELINE_STAGE_ARENA_H
#define LS_SCHEDULER_PIPELINE_STAGE_ARENA_H

#include "scheduler/candidates/plan_steps.h"
#include "scheduler/pipeline/value_lifetimes.h"

enum { LS_PIPE_REGIONS = 8 };  /* and one more of a micro-batch with a plan of its own */

/* bytes: of one copy */
typedef struct LsPipeRegion { int64_t at, bytes; uint32_t copies; } LsPipeRegion;

typedef struct LsPipeRuns {
    LsPlan plan;                /* the runs of a micro-batch, then those of the late phase, with
                                 * their offsets in the first copy of each region */
    uint32_t phase_at[LS_STAGE_PHASES + 1];     /* by phase: number of its first run */
} LsPipeRuns;

/* offsets in a copy of the region */
typedef struct LsPipePlaced { int64_t lo, hi; uint32_t kind, region; } LsPipePlaced;

typedef struct LsPipeLayout {
    LsPipeRuns of[LS_PIPE_PLANS]; uint32_t nplan;
    LsPipeRegion region[LS_PIPE_REGIONS + 1]; uint32_t nregion;     /* by offset */
    int64_t arena;              /* bytes of all regions */
    LsPipeWindows *windows;     /* for ls_pipe_layout_kept: the kinds of values, and where
                                 * LS_PIPE_USUAL has them */
    LsPipePlaced *placed; uint32_t nplaced;
} LsPipeLayout;

/* Cost of the runs of a micro-batch, the mean of all. */
static inline double ls_pipe_cost(const LsPipeLayout *l, uint32_t micros)
{
    const double usual = l->of[LS_PIPE_USUAL].plan.cost;
    return l->nplan > 1 ? usual + (l->of[LS_PIPE_KEPT].plan.cost - usual) / micros : usual;
}

#endif
