/* scheduler/improve.h -- local changes to a sequence: forgetting more, recomputing less. */
#ifndef LS_SCHEDULER_IMPROVE_H
#define LS_SCHEDULER_IMPROVE_H

#include "scheduler/candidates.h"

/* While the live peak is above `target` (aligned bytes): of what is idle at the peak, ends that
 * of least cost per byte early and makes it again before its next reader. false when that does
 * not get there. Renews the pool's prob->arena; seq->node belongs to the caller and has room for
 * `room`. */
bool ls_seq_repair(LsCandidates *pool, LsSeq *seq, uint32_t room, int64_t target);

/* Takes recomputations back, dearest first, as long as the live peak stays within `target`. */
void ls_seq_improve(LsCandidates *pool, LsSeq *seq, int64_t target);

#endif
