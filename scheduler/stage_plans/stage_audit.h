/* scheduler/stage_plans/stage_audit.h -- replays the steps of a stage with all its micro-batches, byte range by byte range. */
#ifndef LS_SCHEDULER_STAGE_PLANS_STAGE_AUDIT_H
#define LS_SCHEDULER_STAGE_PLANS_STAGE_AUDIT_H

#include "scheduler/stage_plans/stage_flow.h"
#include "scheduler/stage_plans/stage_layout.h"

/* Whether every run finds its operands as they were made, and every message is as it was until its receiver has it. Shares no
 * code with what made the layout. False, with a sentence. */
bool ls_stage_audit(const LsStageGraph *full, const LsStageCut *c, uint32_t stage, const LsStageLayout *l,
                    const LsStageFlow *flow, char *why, size_t room);

#endif
