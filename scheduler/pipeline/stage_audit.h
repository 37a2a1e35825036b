/* scheduler/pipeline/stage_audit.h -- replays the steps of a stage with all its micro-batches, byte
 * range by byte range. */
#ifndef LS_SCHEDULER_PIPELINE_STAGE_AUDIT_H
#define LS_SCHEDULER_PIPELINE_STAGE_AUDIT_H

#include "scheduler/pipeline/turn_order.h"
#include "scheduler/pipeline/stage_layout.h"

/* Whether every run finds its operands as they were made, and every message is as it was until its
 * receiver has it. Shares no code with what made the layout. False, with a sentence. */
bool ls_pipe_audit(const LsPipeGraph *full, const LsPipeCut *c, uint32_t stage,
                   const LsPipeLayout *l, const LsPipeFlow *flow, char *why, size_t room);

#endif
