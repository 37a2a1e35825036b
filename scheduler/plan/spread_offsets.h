/* scheduler/plan/spread_offsets.h -- other places for the same plan, so that more of its runs may go on at the
 * same time.
 *
 * A packing that aims at few bytes puts a value where another has just ended. One after the other
 * that costs nothing; a machine that does several runs at a time would have to wait there: the next
 * layer's data gradient for the weight gradient that still reads those bytes. The arena is full at
 * one moment only, so mostly there is room elsewhere. */
#ifndef LS_SCHEDULER_PLAN_SPREAD_OFFSETS_H
#define LS_SCHEDULER_PLAN_SPREAD_OFFSETS_H

#include "scheduler/candidates/plan_steps.h"

/* Moves values and workspaces within the plan's arena: away from bytes that runs shortly before
 * touch which theirs do not wait for anyway. Order, cost and live peak stay, and in-place results;
 * the arena does not grow. plan: a sound one with places; its lists of places are new ones then. */
void ls_spread(LsArena *arena, const LsDag *dag, LsPlan *plan);

#endif
