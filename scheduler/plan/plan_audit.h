/* scheduler/plan/plan_audit.h -- an independent check of a plan against its graph. */
#ifndef LS_SCHEDULER_PLAN_PLAN_AUDIT_H
#define LS_SCHEDULER_PLAN_PLAN_AUDIT_H

#include <stddef.h>

#include "scheduler/candidates/plan_steps.h"

/* Replays `plan` and checks: every read finds its tensor live and not overwritten, every result
 * overlaps no live value, every required node runs, no node runs twice that may not, updates come
 * after all readers, and live peak, arena, cost and base cost are the stated ones. Shares no code
 * with the planner. Returns false, with the first violation in `why` (a sentence). */
bool ls_audit(const LsDag *dag, const LsPlan *plan, char *why, size_t size);

#endif
