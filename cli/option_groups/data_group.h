/* cli/option_groups/data_group.h -- options of lowerset data. */
#ifndef LS_CLI_OPTION_GROUPS_DATA_GROUP_H
#define LS_CLI_OPTION_GROUPS_DATA_GROUP_H

#include "cli/option_groups/option_group.h"

typedef struct LsDataGroup {
    LsList words; /* what is no option: pack or show, and files */
    const char *size, *crop, *masks, *label_column, *categories, *leave_out, *missing, *text, *raw;
    const char *like;
    const char *input_name, *label_name;
    int64_t channels, length, threads; /* 0: not given */
    bool one_hot, pack, skip_bad, check;
} LsDataGroup;
extern const LsOptionGroup ls_data_group;

#endif
