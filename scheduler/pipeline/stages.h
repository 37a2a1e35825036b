/* scheduler/pipeline/stages.h -- the training graph cut into stages of a pipeline, one rank each.
 *
 * Lower sets L_1 < ... < L_K of the forward graph make the cut: stage k has the forward nodes of L_k without L_(k-1).
 * Backward nodes and updates go where their forward node is, unless their operands force them into an earlier stage.
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

typedef struct LsStageSend {    /* a tensor on its way, once per micro-batch */
    uint32_t tensor;
    uint32_t from, to;          /* stages */
    LsPipePhase made, read;         /* phase of its maker; the first phase of stage `to` that reads it */
    int64_t bytes;
} LsStageSend;

typedef struct LsStageCopy {    /* a parameter that stage `to` reads and stage `from` updates, sent once per step */
    uint32_t tensor;
    uint32_t from, to;
    int64_t bytes;
} LsStageCopy;

typedef struct LsStageFigures { /* of a stage; the times are of a micro-batch */
    double ns[LS_PHASES];       /* without recomputation */
    double again_ns;            /* recomputation before B by the chosen mode */
    int64_t kept;               /* bytes that a micro-batch keeps between F and B */
    int64_t transient;          /* bytes beside those of the kept micro-batches, the most at any time */
    int64_t state;              /* persistent tensors that the stage's nodes read, copies with them */
} LsStageFigures;

typedef struct LsStages {
    uint32_t k;
    uint32_t *stage;            /* by node; LS_NO_ID: an alternative that no stage can run alone, or a node that need not
                                 * run at all */
    uint8_t *phase;             /* by node: LsPipePhase */
    LsStageSend *send; uint32_t nsend;      /* by from, to, made, tensor */
    LsStageCopy *copy; uint32_t ncopy;
    LsStageFigures *of;         /* by stage */
    double bottleneck;          /* ns of a micro-batch in the slowest stage */
    double bound;               /* no cut into k stages has a smaller bottleneck */
} LsStages;

typedef struct LsStageOptions {
    uint32_t stages;            /* K, from 1 to LS_MOST_STAGES */
    uint32_t micros;            /* M, micro-batches of a step, at least 1 */
    LsOrderKind order;
    LsKeepMode keep;
    int64_t budget;             /* bytes of a rank, state included; 0: none */
} LsStageOptions;

/* Cuts p's graph into the stages with the least bottleneck found. False, with a sentence in `why`: more stages than
 * forward nodes, or no cut whose stages keep the budget. */
bool ls_stages_find(LsArena *arena, const LsProb *p, const LsStageOptions *o, LsStages *out, char *why, size_t room);

/* Cuts the forward nodes in list order into parts of nearly equal time. */
bool ls_stages_in_file_order(LsArena *arena, const LsProb *p, const LsStageOptions *o, LsStages *out, char *why,
                             size_t room);

/* Completes out->k and the stages of the forward nodes: backward nodes, phases, messages, figures without recomputation.
 * out->stage: by node, set for nodes with p->forward. */
void ls_stages_complete(LsArena *arena, const LsProb *p, LsStages *out);

#endif
