/* scheduler/plan/spread_offsets.h -- changes the offsets of a plan so that more of its runs can go
 * on at the same time.
 *
 * A packing that aims at few bytes puts a value where another has just ended. This costs nothing
 * when runs go one at a time. A machine that does several runs at a time would have to wait: the
 * next layer's data gradient would wait for the weight gradient that still reads those bytes. The
 * arena is full at one moment only, so there is mostly room elsewhere. */
#ifndef LS_SCHEDULER_PLAN_SPREAD_OFFSETS_H
#define LS_SCHEDULER_PLAN_SPREAD_OFFSETS_H

#include "scheduler/candidates/plan_steps.h"

/* Moves values and workspaces within the plan's arena, away from bytes touched by recent runs that
 * their own runs need not wait for otherwise. Order, cost, live peak and in-place results stay; the
 * arena does not grow. The plan must be sound and have offsets; it gets new lists of offsets. */
void ls_spread(LsArena *arena, const LsDag *dag, LsPlan *plan);

#endif
