/* scheduler/pipeline/pipe_flow.h -- the order in which each stage runs the phases of micro-batches, with their slots,
 * and the proof that no stages wait for each other in a circle. */
#ifndef LS_SCHEDULER_PIPELINE_PIPE_FLOW_H
#define LS_SCHEDULER_PIPELINE_PIPE_FLOW_H

#include "scheduler/pipeline/pipe_cut.h"

/* The plans of a stage. With LS_KEEP_EXCEPT_LAST one micro-batch has a plan of its own. */
enum { LS_PIPE_USUAL, LS_PIPE_KEPT, LS_PIPE_PLANS };

typedef struct LsPipeTurn { uint8_t phase; uint32_t micro, slot; uint8_t plan; } LsPipeTurn;

typedef struct LsPipeFlow {
    LsPipeTurn *turn; uint32_t nturn;      /* of a step */
    uint32_t slots;             /* micro-batches under way, the most at any time */
    bool reads;                 /* the stage reads inputs of the model or labels */
} LsPipeFlow;

/* Sets the flow of each stage (c->k of them), and *ring: how many micro-batches of input the stages need to have at a
 * time. A message is never stored: its sender cannot use the memory again before the receiver has begun its phase. False,
 * with a sentence, if the order is a deadlock. reads: by stage. */
bool ls_pipe_flow(LsArena *arena, const LsPipeCut *c, LsOrderKind kind, uint32_t micros, const bool *reads,
                   LsPipeFlow *flow, uint32_t *ring, char *why, size_t room);

/* Gives LS_PIPE_KEPT to the micro-batch whose B is the first of the stage. What it keeps is gone when the next B makes its own
 * things again, so they can lie in the same bytes. As the phases take the micro-batches in rising order, it is the first one:
 * it is in slot 0, and has samples in every step. */
void ls_pipe_flow_keep(LsPipeFlow *flow);

/* Whether all stages come to the end of their flows, by a run without times, with `ring` micro-batches of input. Else false,
 * with a sentence that says who waits for what. */
bool ls_pipe_flow_ends(const LsPipeCut *c, const LsPipeFlow *flow, uint32_t micros, uint32_t ring, char *why, size_t room);

#endif
