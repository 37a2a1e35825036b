/* cli/commands/check_plan.h -- lowerset check PLAN.json --graph GRAPH.json. */
#ifndef LS_CLI_COMMANDS_CHECK_PLAN_H
#define LS_CLI_COMMANDS_CHECK_PLAN_H

#include "cli/options/options.h"

/* Replays the schedule of one file on the graph of another, and prints its cost and memory in one
 * line. 0; LS_EXIT_CHECK after the first violation; LS_EXIT_MODEL when a file cannot be read. */
int ls_check_plan(const LsOptions *o);

#endif
