/* scheduler/pipes/pipe_layout.h -- the arena of a stage that has several micro-batches under way.
 *
 * What lives only within a phase lies in one region at the start, as phases run one after the other. What outlives its
 * phase lies in the slot of its micro-batch. The slots follow, and each has the same offsets:
 *   [0, transient)  [transient, transient + slot)  [transient + slot, transient + 2 slot)  ... */
#ifndef LS_SCHEDULER_PIPES_PIPE_LAYOUT_H
#define LS_SCHEDULER_PIPES_PIPE_LAYOUT_H

#include "scheduler/candidates/plan_build.h"
#include "scheduler/pipes/pipe_graph.h"

typedef struct LsPipeLayout {
    LsPlan plan;                /* the runs of a micro-batch in slot 0, then those of the late phase, with their offsets */
    uint32_t phase_at[LS_STAGE_PHASES + 1];     /* by phase: number of its first run */
    int64_t transient, slot;    /* bytes */
    uint32_t slots;
    int64_t arena;              /* transient + slots * slot */
} LsPipeLayout;

/* Lays out the runs of a plan of the stage's graph without the late phase. full: the graph with it, of which p is.
 * Returns false if the layout would take more than `most` bytes (<= 0: any). */
bool ls_pipe_layout(LsArena *arena, const LsPipeCut *c, uint32_t stage, const LsPipeGraph *full, const LsProb *p,
                    const LsPlan *plan, uint32_t slots, int64_t most, LsPipeLayout *out);

#endif
