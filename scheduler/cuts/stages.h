/* scheduler/cuts/stages.h -- the training graph cut into stages of a pipeline, one rank each.
 *
 * Lower sets L_1 < ... < L_K of the forward graph make the cut: stage k has the forward nodes of
 * L_k without L_(k-1). Backward nodes and updates go where their forward node is, unless gradients
 * that they read force them into an earlier stage (forward_owner.h). A micro-batch passes the
 * stages in three phases: F upwards, B downwards, and W, which no node of phase F or B waits for:
 * weight gradients, their sums over micro-batches, and updates. What the stages send each other:
 * scheduler/pipeline/phases_and_messages.h. */
#ifndef LS_SCHEDULER_CUTS_STAGES_H
#define LS_SCHEDULER_CUTS_STAGES_H

#include "base/arena.h"
#include "scheduler/graph/instance.h"
#include "scheduler/cuts/pipeline_schedules.h"

enum { LS_MOST_STAGES = 64 };

typedef struct LsStages {
    uint32_t k;
    uint32_t *stage;            /* by node; LS_NO_ID: alternatives, and nodes that need not run */
    uint8_t *phase;             /* by node: LsPipePhase */
    double (*ns)[LS_PHASES];    /* by stage: of a micro-batch, every node once */
    double bottleneck;          /* ns of a micro-batch in the slowest stage, likewise */
    double estimate;            /* likewise, with the recomputation that the mode and the budget
                                 * will take; of ls_stages_find */
    double bound;               /* no cut into k stages has a smaller bottleneck; 0: not computed */
    const char *note;           /* what a reader must know about the search; or NULL */
} LsStages;

typedef struct LsStageOptions {
    uint32_t stages;            /* K, from 1 to LS_MOST_STAGES */
    uint32_t micros;            /* M, micro-batches of a step, at least 1 */
    LsOrderKind order;
    LsKeepMode keep;
    int64_t budget;             /* bytes of a rank, state included; 0: none */
    const int64_t *state;       /* by persistent tensor: bytes of it in a rank whose nodes read it;
                                 * NULL: its own */
    const int64_t *margin;      /* by stage: bytes that its plan took beyond the estimate; NULL:
                                 * none */
} LsStageOptions;

/* Cuts p's graph into the stages with the least bottleneck found. False, with a sentence in `why`:
 * more stages than forward nodes, or no cut whose stages keep the budget. */
bool ls_stages_find(LsArena *arena, const LsProb *p, const LsStageOptions *o, LsStages *out,
                    char *why, size_t room);

/* Cuts the forward nodes in list order into parts of nearly equal time. */
bool ls_stages_in_file_order(LsArena *arena, const LsProb *p, const LsStageOptions *o,
                             LsStages *out, char *why, size_t room);

/* Completes a cut of the forward nodes: stages of all other nodes, phases, times. out->k is set,
 * and out->stage of nodes with p->forward. */
void ls_stages_complete(LsArena *arena, const LsProb *p, LsStages *out);

#endif
