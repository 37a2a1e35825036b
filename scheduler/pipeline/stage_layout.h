/* scheduler/pipeline/stage_layout.h -- lays out the plans of a stage in its arena. */
#ifndef LS_SCHEDULER_PIPELINE_STAGE_LAYOUT_H
#define LS_SCHEDULER_PIPELINE_STAGE_LAYOUT_H

#include "scheduler/candidates/plan_build.h"
#include "scheduler/pipeline/stage_arena.h"
#include "scheduler/pipeline/stage_graph.h"

/* Lays out the runs of a plan of the stage's graph without the late phase, as LS_PIPE_USUAL. full:
 * the graph with it, of which p is. Returns false if the layout would take more than `most` bytes
 * (<= 0: any). */
bool ls_pipe_layout(LsArena *arena, const LsPipeCut *c, uint32_t stage, const LsPipeGraph *full,
                    const LsProb *p, const LsPlan *plan, const LsPipeFlow *flow, int64_t most,
                    LsPipeLayout *out);

/* Adds the plan LS_PIPE_KEPT to a layout that ls_pipe_layout made. */
void ls_pipe_layout_kept(LsArena *arena, const LsPipeCut *c, uint32_t stage,
                         const LsPipeGraph *full, const LsProb *p, const LsPlan *plan,
                         LsPipeLayout *io);

#endif
