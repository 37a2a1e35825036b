/* scheduler/pipeline/message_lifetimes.h -- how long the stages of a pipeline keep the messages
 * that they send. */
#ifndef LS_SCHEDULER_PIPELINE_MESSAGE_LIFETIMES_H
#define LS_SCHEDULER_PIPELINE_MESSAGE_LIFETIMES_H

#include "scheduler/pipeline/pipeline_simulation.h"

/* Sets `until` and `lag` of all messages: each is kept as shortly as the simulated step takes no
 * longer for it. of: by stage, times of the phases by LS_PIPE_USUAL; link: as in LsPipelineRun. */
void ls_pipe_holds(LsPipeCut *c, LsOrderKind kind, uint32_t micros,
                   LsStageTimes (*of)[LS_PIPE_PLANS], LsLinkSpeed link);

#endif
