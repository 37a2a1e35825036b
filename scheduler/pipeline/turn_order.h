/* scheduler/pipeline/turn_order.h -- the order in which each stage runs the phases of
 * micro-batches, and the proof that no stages wait for each other in a circle. */
#ifndef LS_SCHEDULER_PIPELINE_TURN_ORDER_H
#define LS_SCHEDULER_PIPELINE_TURN_ORDER_H

#include "scheduler/pipeline/phases_and_messages.h"

/* The plans of a stage. With LS_KEEP_EXCEPT_LAST one micro-batch has a plan of its own. */
enum { LS_PIPE_USUAL, LS_PIPE_KEPT, LS_PIPE_PLANS };

typedef struct LsPipeTurn { uint8_t phase, plan; uint32_t micro; } LsPipeTurn;

typedef struct LsPipeFlow {
    LsPipeTurn *turn; uint32_t nturn;      /* of a step */
    uint32_t most;              /* micro-batches under way, at any time */
    bool reads;                 /* the stage reads inputs of the model or labels */
} LsPipeFlow;

/* Sets the flow of each stage (c->k of them). reads: by stage. */
void ls_pipe_flow(LsArena *arena, const LsPipeCut *c, LsOrderKind kind, uint32_t micros,
                  const bool *reads, LsPipeFlow *flow);

/* Gives LS_PIPE_KEPT to the micro-batch whose B is the first of the stage. What it keeps is gone
 * when the next B makes its own things again, so they can lie in the same bytes. As the phases take
 * the micro-batches in rising order, it is the first one, and has samples in every step. */
void ls_pipe_flow_keep(LsPipeFlow *flow);

/* By phase and micro-batch, [LS_PHASES][micros]: the number of the turn in the flow. */
uint32_t *ls_pipe_turns(LsArena *arena, const LsPipeFlow *flow, uint32_t micros);

/* Sets *ring: how many micro-batches of input the stages need to have at a time. False, with a
 * sentence, if the order is a deadlock. */
bool ls_pipe_ring(const LsPipeCut *c, const LsPipeFlow *flow, uint32_t micros, uint32_t *ring,
                  char *why, size_t room);

/* Whether all stages come to the end of their flows, by a run without times, with `ring`
 * micro-batches of input. A message is never stored: its sender waits for the receiver as
 * LsPipeMove says. Else false, with a sentence that says who waits for what. */
bool ls_pipe_flow_ends(const LsPipeCut *c, const LsPipeFlow *flow, uint32_t micros, uint32_t ring,
                       char *why, size_t room);

#endif
