/* scheduler/pipeline/pipe_layout.h -- the arena of a stage that has several micro-batches under way.
 *
 * What lives only within a phase lies in one region at the start, as phases run one after the other. What outlives its
 * phase lies in the slot of its micro-batch. The slots follow, and each has the same offsets:
 *   [0, transient)  [transient, transient + first)  [transient + first, transient + first + slot)  ...
 *
 * A micro-batch with a plan of its own (LS_PIPE_KEPT) is in slot 0, and lies anywhere before slot 1: also in the region that
 * the phases share, where it leaves the bytes alone that phases of other micro-batches use between its own. Slot 0 may be
 * larger than the others for it. */
#ifndef LS_SCHEDULER_PIPELINE_PIPE_LAYOUT_H
#define LS_SCHEDULER_PIPELINE_PIPE_LAYOUT_H

#include "scheduler/candidates/plan_build.h"
#include "scheduler/pipeline/pipe_flow.h"
#include "scheduler/pipeline/pipe_graph.h"

typedef struct LsPipeRuns {
    LsPlan plan;                /* the runs of a micro-batch in slot 0, then those of the late phase, with their offsets */
    uint32_t phase_at[LS_STAGE_PHASES + 1];     /* by phase: number of its first run */
} LsPipeRuns;

typedef struct LsPipeLayout {
    LsPipeRuns of[LS_PIPE_PLANS]; uint32_t nplan;
    int64_t transient;          /* bytes that all micro-batches share */
    int64_t first, slot;        /* bytes of slot 0, of every other one */
    uint32_t slots;
    int64_t arena;              /* bytes in all */
} LsPipeLayout;

/* Bytes from slot 0 to another one: what LS_PIPE_USUAL has from `transient` on lies so much higher there. */
static inline int64_t ls_pipe_slot_at(const LsPipeLayout *l, uint32_t slot)
{
    return slot > 0 ? l->first + (slot - 1) * l->slot : 0;
}

/* Cost of the runs of a micro-batch, the mean of all. */
static inline double ls_pipe_cost(const LsPipeLayout *l, uint32_t micros)
{
    const double usual = l->of[LS_PIPE_USUAL].plan.cost;
    return l->nplan > 1 ? usual + (l->of[LS_PIPE_KEPT].plan.cost - usual) / micros : usual;
}

/* Lays out the runs of a plan of the stage's graph without the late phase, as LS_PIPE_USUAL. full: the graph with it, of which p
 * is. Returns false if the layout would take more than `most` bytes (<= 0: any). */
bool ls_pipe_layout(LsArena *arena, const LsPipeCut *c, uint32_t stage, const LsPipeGraph *full, const LsProb *p,
                    const LsPlan *plan, uint32_t slots, int64_t most, LsPipeLayout *out);

/* Adds the plan LS_PIPE_KEPT to a layout, for the turns of the flow that have it. */
void ls_pipe_layout_kept(LsArena *arena, const LsPipeCut *c, uint32_t stage, const LsPipeGraph *full, const LsProb *p,
                         const LsPlan *plan, const LsPipeFlow *flow, LsPipeLayout *io);

#endif
