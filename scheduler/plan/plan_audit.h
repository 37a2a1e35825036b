/* scheduler/plan/plan_audit.h -- an independent check of a plan against its graph. */
#ifndef LS_SCHEDULER_PLAN_PLAN_AUDIT_H
#define LS_SCHEDULER_PLAN_PLAN_AUDIT_H

#include <stddef.h>

#include "scheduler/candidates/plan_steps.h"

/* Replays `plan`: every read finds its tensor alive and not overwritten, every result is made
 * where nothing else lies, whatever must run runs, nothing runs twice that may not, updates come
 * after all readers, and live peak, arena, cost and base cost are the stated ones. Shares no
 * code with the planner. returns false with the first violation in why (a sentence). */
bool ls_audit(const LsDag *dag, const LsPlan *plan, char *why, size_t size);

#endif
