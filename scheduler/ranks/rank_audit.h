/* scheduler/ranks/rank_audit.h -- replays the steps of a stage with all its micro-batches, byte range by byte range. */
#ifndef LS_SCHEDULER_RANKS_RANK_AUDIT_H
#define LS_SCHEDULER_RANKS_RANK_AUDIT_H

#include "scheduler/ranks/rank_flow.h"
#include "scheduler/ranks/rank_layout.h"

/* Whether every run finds its operands as they were made, and every message is as it was until its receiver has it. Shares no
 * code with what made the layout. False, with a sentence. */
bool ls_rank_audit(const LsRankGraph *full, const LsRankCut *c, uint32_t stage, const LsRankLayout *l,
                    const LsRankFlow *flow, char *why, size_t room);

#endif
