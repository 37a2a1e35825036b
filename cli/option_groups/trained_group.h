/* cli/option_groups/trained_group.h -- what is trained, and what norms and dropouts do. */
#ifndef LS_CLI_OPTION_GROUPS_TRAINED_GROUP_H
#define LS_CLI_OPTION_GROUPS_TRAINED_GROUP_H

#include "cli/option_groups/option_group.h"

/* What is trained. */
typedef struct LsTrainedGroup {
    LsList freeze, train, only, stop;
    bool tie;
    LsList quantize;            /* --quantize-frozen */
    const char *lora, *adapter;
    bool merge;
} LsTrainedGroup;
extern const LsOptionGroup ls_trained_group;

/* What depends on training or evaluation. */
typedef struct LsModeGroup {
    const char *bn, *bn_var, *dropout;
    bool drop_bias;
} LsModeGroup;
extern const LsOptionGroup ls_norms_group;

#endif
