/* scheduler/candidates/candidate_packing.h -- turns candidates into plans. */
#ifndef LS_SCHEDULER_CANDIDATES_CANDIDATE_PACKING_H
#define LS_SCHEDULER_CANDIDATES_CANDIDATE_PACKING_H

#include "scheduler/candidates/candidate_pool.h"

enum { LS_PACK_TOGETHER = 2 };

/* Returns the plan of a candidate, packed quickly. If that takes more than `good` bytes, packs with
 * more effort and in other orders of its runs (good = 0: with all effort), unless that is hopeless.
 * Earlier results are kept, and a plan found for some bytes is found for more, in any order of
 * calls. */
const LsPlan *ls_candidates_plan(LsCandidates *pool, LsCand *cand, int64_t good);

/* Makes the plans of n <= LS_PACK_TOGETHER candidates likewise, in parallel. */
void ls_candidates_pack(LsCandidates *pool, LsCand *const *cand, uint32_t n, int64_t good);

#endif
