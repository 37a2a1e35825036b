/* cli/option_groups/part_group.h -- how an update is divided: parts, ranks, stages. */
#ifndef LS_CLI_OPTION_GROUPS_PART_GROUP_H
#define LS_CLI_OPTION_GROUPS_PART_GROUP_H

#include "cli/option_groups/option_group.h"

/* Parts of an update. */
typedef struct LsPartGroup {
    int64_t accumulate, microbatches;   /* 0: not given */
    const char *mixed, *sums;
} LsPartGroup;
extern const LsOptionGroup ls_parts_group;

/* Processes that share the parts. */
typedef struct LsRankGroup {
    int64_t count;              /* 0: not given; LS_OPTION_ANY */
    const char *comm;
} LsRankGroup;
extern const LsOptionGroup ls_ranks_group;

/* Stages of a pipeline. */
typedef struct LsPipeGroup {
    int64_t stages;             /* 0: none */
    const char *order, *link;
} LsPipeGroup;
extern const LsOptionGroup ls_pipe_group;

#endif
