/* cli/commands/plan_stages.h -- lowerset plan --stages: cuts a model into the stages of a pipeline,
 * and plans it. */
#ifndef LS_CLI_COMMANDS_PLAN_STAGES_H
#define LS_CLI_COMMANDS_PLAN_STAGES_H

#include "cli/options/options.h"

/* Prints orders and modes of recomputation side by side, and the stages of the chosen one. Returns
 * the exit code. */
int ls_plan_stages(const LsOptions *o);

#endif
