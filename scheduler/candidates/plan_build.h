/* scheduler/candidates/plan_build.h -- turns a sequence of runs into a plan with frees, in-place
 * reuses and offsets. */
#ifndef LS_SCHEDULER_CANDIDATES_PLAN_BUILD_H
#define LS_SCHEDULER_CANDIDATES_PLAN_BUILD_H

#include "scheduler/candidates/plan_steps.h"
#include "scheduler/order/liveness.h"
#include "scheduler/packing/offsets.h"

/* Packs seq, unless p->unplaced, and writes its plan; everything in *out comes from `arena`. Takes
 * the first packing of at most `enough` bytes, else the best one (enough = 0: always the best). */
void ls_plan_build(LsArena *arena, const LsProb *p, const LsSeq *seq, const char *strategy,
                   LsPackEffort effort, int64_t enough, LsPlan *out);

/* Chooses the offset of each block, whose steps are runs. tensor: by block, the one that lies in it
 * last; LS_NO_ID: the block is a workspace. */
typedef struct LsPlacer {
    void (*place)(void *self, const LsBlock *block, const uint32_t *tensor, uint32_t n,
                  int64_t alignment, int64_t *offset);
    void *self;
} LsPlacer;

/* The same with another packing. */
void ls_plan_build_by(LsArena *arena, const LsProb *p, const LsSeq *seq, const char *strategy,
                      const LsPlacer *placer, LsPlan *out);

#endif
