/* scheduler/pipeline/pipe_layout.h -- the arena of a stage that has several micro-batches under way.
 *
 * The arena is a row of regions, each of so many copies of the same bytes. Micro-batch m lies in copy m % copies of each:
 *   [at, at + bytes) [at + bytes, at + 2 bytes) ...
 * Region 0 has one copy, for what lives within a phase. What outlives its phase lies in a region with as many copies as there
 * are micro-batches that need such values at a time: what B or W reads of F, what W reads of B, messages on their way. Places
 * of such a region that are not in use yet, or no longer, take what else fits. */
#ifndef LS_SCHEDULER_PIPELINE_PIPE_LAYOUT_H
#define LS_SCHEDULER_PIPELINE_PIPE_LAYOUT_H

#include "scheduler/candidates/plan_build.h"
#include "scheduler/pipeline/pipe_graph.h"
#include "scheduler/pipeline/pipe_windows.h"

enum { LS_PIPE_REGIONS = 8 };

typedef struct LsPipeRegion { int64_t at, bytes; uint32_t copies; } LsPipeRegion;      /* bytes: of one copy */

typedef struct LsPipeLayout {
    LsPlan plan;                /* the runs of a micro-batch, then those of the late phase, with their offsets in the first
                                 * copy of each region */
    uint32_t phase_at[LS_STAGE_PHASES + 1];     /* by phase: number of its first run */
    LsPipeRegion region[LS_PIPE_REGIONS]; uint32_t nregion;         /* by offset */
    int64_t arena;              /* bytes of all regions */
} LsPipeLayout;

/* Lays out the runs of a plan of the stage's graph without the late phase. full: the graph with it, of which p is.
 * Returns false if the layout would take more than `most` bytes (<= 0: any). */
bool ls_pipe_layout(LsArena *arena, const LsPipeCut *c, uint32_t stage, const LsPipeGraph *full, const LsProb *p,
                    const LsPlan *plan, const LsPipeFlow *flow, int64_t most, LsPipeLayout *out);

#endif
