/* cli/option_groups/command_group.h -- options of single commands. */
#ifndef LS_CLI_OPTION_GROUPS_COMMAND_GROUP_H
#define LS_CLI_OPTION_GROUPS_COMMAND_GROUP_H

#include "cli/option_groups/option_group.h"

/* Lowerset check. */
typedef struct LsCheckGroup {
    const char *data, *graph, *against;
    int64_t elements;           /* number of gradient elements checked; 0: the program decides */
} LsCheckGroup;
extern const LsOptionGroup ls_check_group;

/* Lowerset calibrate. */
typedef struct LsCalibrateGroup {
    int64_t threads;            /* 0: all */
    bool quick;
} LsCalibrateGroup;
extern const LsOptionGroup ls_calibrate_group;

/* Lowerset dp. */
typedef struct LsDpGroup {
    const char *sample_rate, *noise, *epsilon, *delta;
    int64_t steps, samples, batch, epochs;      /* 0: not given */
} LsDpGroup;
extern const LsOptionGroup ls_dp_group;

#endif
