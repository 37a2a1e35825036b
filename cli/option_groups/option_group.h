/* cli/option_groups/option_group.h -- a group of options: a table of rows, and the struct that they
 * fill. A new feature adds a struct and a table, here in a file of their own, and a line to each of
 * the two lists of cli/options/options.h and options.c. */
#ifndef LS_CLI_OPTION_GROUPS_OPTION_GROUP_H
#define LS_CLI_OPTION_GROUPS_OPTION_GROUP_H

#include "runtime/base/option_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    LS_CMD_COMPILE = 1, LS_CMD_PLAN = 2, LS_CMD_INSPECT = 4,
    LS_CMD_GRAPH = 8,           /* in an option's row: the option also applies to a training
                                 * graph */
    LS_CMD_SWEEP = 16, LS_CMD_CHECK = 32,
    LS_CMD_SCHEDULE = 64,       /* likewise to a plan in a file */
    LS_CMD_GPU = 128,           /* in an option's row: the option needs --target=cuda */
    LS_CMD_MEASURE = 256,       /* likewise for a sweep: the option needs --measure */
    LS_CMD_CALIBRATE = 512, LS_CMD_DP = 1024, LS_CMD_DATA = 2048
};

typedef struct LsOptionGroup {
    const char *heading;        /* of the help; NULL: the rows go on under the last one */
    const LsOption *row; int n; /* row->at: within the group's struct */
} LsOptionGroup;

#endif
