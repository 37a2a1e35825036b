/* scheduler/pipeline/deadlock.h -- whether ranks that wait for each other's messages come to the end of their orders. */
#ifndef LS_SCHEDULER_PIPELINE_DEADLOCK_H
#define LS_SCHEDULER_PIPELINE_DEADLOCK_H

#include "scheduler/pipeline/flows.h"

/* Runs the orders without times. A rank begins a phase by receiving its messages one after the other, each wait blocking,
 * and ends it by sending. room: messages that a link from one rank to another holds; a send to a full link waits, and with
 * room 0 each send waits for its receive. False, with a sentence in `why`, if the ranks wait in a circle, or if an order
 * does not have F, B and W of every micro-batch in this sequence. */
bool ls_orders_run(const LsStages *s, const LsFlows *flows, const LsRankOrder *order, uint32_t micros, uint32_t room,
                   char *why, size_t size);

#endif
