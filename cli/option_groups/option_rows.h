/* cli/option_groups/option_rows.h -- words of the rows of option tables; only tables include it. */
#ifndef LS_CLI_OPTION_GROUPS_OPTION_ROWS_H
#define LS_CLI_OPTION_GROUPS_OPTION_ROWS_H

#include "cli/option_groups/option_group.h"

#define FLAG LS_OPTION_FLAG, 0, 0
#define TEXT LS_OPTION_TEXT, 0, 0
#define MAYBE LS_OPTION_MAYBE, 0, 0
#define INTEGER(least, most) LS_OPTION_WHOLE, least, most
#define LIST LS_OPTION_LIST, 0, 0
#define GROUP(heading, rows) {heading, rows, sizeof rows / sizeof *rows}

/* Commands that take an option. */
enum {
    BUILD = LS_CMD_COMPILE | LS_CMD_PLAN | LS_CMD_SWEEP | LS_CMD_CHECK,
    ALL = BUILD | LS_CMD_INSPECT,
    MEMORY = LS_CMD_COMPILE | LS_CMD_PLAN | LS_CMD_CHECK | LS_CMD_GRAPH,
    SEARCH = MEMORY | LS_CMD_SWEEP,
    REPORT = LS_CMD_PLAN | LS_CMD_GRAPH,
    SWEEP = LS_CMD_SWEEP | LS_CMD_GRAPH,
    PRODUCT = LS_CMD_COMPILE | LS_CMD_SWEEP | LS_CMD_CHECK | LS_CMD_MEASURE,
    GPU = LS_CMD_GPU
};
enum { MOST_MEMBERS = 4096, MOST_BATCH = 1 << 30, MOST_COUNT = 1 << 20 };
#define MOST_STEPS (INT64_C(1) << 40)

#endif
