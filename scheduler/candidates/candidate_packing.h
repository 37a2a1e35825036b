/* scheduler/candidates/candidate_packing.h -- plans of candidates. */
#ifndef LS_SCHEDULER_CANDIDATES_CANDIDATE_PACKING_H
#define LS_SCHEDULER_CANDIDATES_CANDIDATE_PACKING_H

#include "scheduler/candidates/candidate_pool.h"

enum { LS_PACK_TOGETHER = 2 };

/* The plan of a candidate: packed quickly, and if that takes more than `good` bytes, with more
 * effort and in other orders of its runs (0: all there is), unless that is hopeless. What has been
 * found before stays, and what fits in some bytes fits in more, whatever is asked first. */
const LsPlan *ls_candidates_plan(LsCandidates *pool, LsCand *cand, int64_t good);

/* Makes the plans of n <= LS_PACK_TOGETHER candidates so, side by side. */
void ls_candidates_pack(LsCandidates *pool, LsCand *const *cand, uint32_t n, int64_t good);

#endif
