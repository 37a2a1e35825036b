/* cli/option_groups/memory_group.h -- plans and sweeps over budgets. */
#ifndef LS_CLI_OPTION_GROUPS_MEMORY_GROUP_H
#define LS_CLI_OPTION_GROUPS_MEMORY_GROUP_H

#include "cli/option_groups/option_group.h"

/* The plan. */
typedef struct LsMemoryGroup {
    const char *budget, *budget_of, *strategy, *recompute, *tiles;
    bool max_batch;
    LsList keep, forget;
    const char *plan_time;
    int64_t plan_effort;        /* percent; 0: the default */
    bool prove, no_inplace, no_offsets, no_alternatives, store_gradients, no_epilogues, no_tiles;
} LsMemoryGroup;
extern const LsOptionGroup ls_memory_group;

/* Budgets side by side. */
typedef struct LsSweepGroup {
    const char *from, *to, *strategies;
    int64_t points;
    bool table, measure;
} LsSweepGroup;
extern const LsOptionGroup ls_sweep_group;

#endif
