/* scheduler/pipeline/stages.h -- the training graph cut into stages of a pipeline, one rank each.
 *
 * Lower sets L_1 < ... < L_K of the forward graph make the cut: stage k has the forward nodes of L_k without L_(k-1).
 * Backward nodes and updates go where their forward node is, unless gradients that they read force them into an earlier
 * stage (anchors.h).
 * A micro-batch passes the stages in three phases: F upwards, B downwards, and W, which no node of phase F or B waits
 * for: weight gradients, their sums over micro-batches, and updates.
 *
 * A tensor that another stage reads is sent from its maker's stage straight to each reader's, past those between. A
 * parameter that nodes of several stages read (tied weights) belongs to the stage of its update. The other stages hold
 * a copy, which they get once per step; their parts of its gradient are messages like others. */
#ifndef LS_SCHEDULER_PIPELINE_STAGES_H
#define LS_SCHEDULER_PIPELINE_STAGES_H

#include "base/arena.h"
#include "scheduler/graph/instance.h"
#include "scheduler/pipeline/orders.h"

enum { LS_MOST_STAGES = 64 };

typedef struct LsStageSend {    /* a tensor on its way */
    uint32_t tensor;
    uint32_t from, to;          /* stages */
    LsPipePhase made, read;         /* phase of its maker; the first phase of stage `to` that reads it */
    bool once;                  /* once per step, after the last W: what updates tell each other, as a norm over all
                                 * gradients; else once per micro-batch */
    int64_t bytes;
} LsStageSend;

typedef struct LsStageCopy {    /* a parameter that stage `to` reads and stage `from` updates, sent once per step */
    uint32_t tensor;
    uint32_t from, to;
    int64_t bytes;
} LsStageCopy;

typedef struct LsStageFigures { /* of a stage; times are of a micro-batch, bytes of a rank's memory */
    double ns[LS_PHASES];       /* B: with recomputation */
    double again_ns;            /* recomputation among them */
    int64_t kept;               /* of a micro-batch between F and B */
    int64_t late;               /* of a micro-batch between B and W, in orders that run them apart */
    int64_t peak[LS_PHASES];    /* of a micro-batch while it is in the phase, at most */
    int64_t state;              /* persistent tensors that the stage's nodes read, copies with them */
} LsStageFigures;

typedef struct LsStages {
    uint32_t k;
    uint32_t *stage;            /* by node; of an alternative, that of the node which it replaces if all its operands are
                                 * there; LS_NO_ID: other alternatives, and nodes that need not run */
    uint8_t *phase;             /* by node: LsPipePhase */
    LsStageSend *send; uint32_t nsend;      /* by from, to, made, tensor */
    LsStageCopy *copy; uint32_t ncopy;
    LsStageFigures *of;         /* by stage: without recomputation, in list order; see stage_plans.h */
    double bottleneck;          /* ns of a micro-batch in the slowest stage, by `of` */
    double bound;               /* no cut into k stages has a smaller bottleneck; 0: not computed */
    const char *note;           /* what a reader must know about the search; or NULL */
} LsStages;

typedef struct LsStageOptions {
    uint32_t stages;            /* K, from 1 to LS_MOST_STAGES */
    uint32_t micros;            /* M, micro-batches of a step, at least 1 */
    LsOrderKind order;
    LsKeepMode keep;
    int64_t budget;             /* bytes of a rank, state included; 0: none */
    const int64_t *margin;      /* by stage: bytes that its plan took beyond the estimate; NULL: none */
} LsStageOptions;

/* Cuts p's graph into the stages with the least bottleneck found. False, with a sentence in `why`: more stages than
 * forward nodes, or no cut whose stages keep the budget. */
bool ls_stages_find(LsArena *arena, const LsProb *p, const LsStageOptions *o, LsStages *out, char *why, size_t room);

/* Cuts the forward nodes in list order into parts of nearly equal time. */
bool ls_stages_in_file_order(LsArena *arena, const LsProb *p, const LsStageOptions *o, LsStages *out, char *why,
                             size_t room);

/* Completes a cut of the forward nodes: stages of all other nodes, phases, messages, figures. out->k is set, and out->stage
 * of nodes with p->forward. */
void ls_stages_complete(LsArena *arena, const LsProb *p, LsStages *out);

#endif
