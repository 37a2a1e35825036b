/* scheduler/candidates/plan_build.h -- from a sequence of runs to a plan: frees, reuses, places. */
#ifndef LS_SCHEDULER_CANDIDATES_PLAN_BUILD_H
#define LS_SCHEDULER_CANDIDATES_PLAN_BUILD_H

#include "scheduler/candidates/plan_steps.h"
#include "scheduler/order/liveness.h"
#include "scheduler/packing/offsets.h"

/* Packs seq, unless p->unplaced, and writes its plan; everything in *out comes from `arena`. Takes
 * the first packing of at most `enough` bytes, and the best if there is none; 0: the best, if need
 * be. */
void ls_plan_build(LsArena *arena, const LsProb *p, const LsSeq *seq, const char *strategy,
                   LsPackEffort effort, int64_t enough, LsPlan *out);

#endif
