/* scheduler/pipes/pipe_flow.h -- the order in which each stage runs the phases of micro-batches, with their slots,
 * and the proof that no stages wait for each other in a circle. */
#ifndef LS_SCHEDULER_PIPES_PIPE_FLOW_H
#define LS_SCHEDULER_PIPES_PIPE_FLOW_H

#include "scheduler/pipes/pipe_cut.h"

typedef struct LsPipeTurn { uint8_t phase; uint32_t micro, slot; } LsPipeTurn;

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

#endif
