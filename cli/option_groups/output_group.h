/* cli/option_groups/output_group.h -- what commands write and say, and sizes of the model. */
#ifndef LS_CLI_OPTION_GROUPS_OUTPUT_GROUP_H
#define LS_CLI_OPTION_GROUPS_OUTPUT_GROUP_H

#include "cli/option_groups/option_group.h"

/* What a command writes and says. */
typedef struct LsOutputGroup {
    const char *file, *emit, *prefix, *save_temps;
    bool dry_run, verbose, quiet;
    int64_t max_errors;
    const char *dump_pass;
} LsOutputGroup;
extern const LsOptionGroup ls_output_group;

/* Sizes that the file leaves open. */
typedef struct LsSizeGroup {
    LsList dim, shape;
    int64_t batch;
} LsSizeGroup;
extern const LsOptionGroup ls_sizes_group;

#endif
