/* cli/option_groups/sample_group.h -- what runs for each sample and for each member. */
#ifndef LS_CLI_OPTION_GROUPS_SAMPLE_GROUP_H
#define LS_CLI_OPTION_GROUPS_SAMPLE_GROUP_H

#include "cli/option_groups/option_group.h"

/* What is computed for each sample. */
typedef struct LsSampleGroup {
    const char *grads, *norms, *privacy;        /* --grads, --sample-norms, --dp */
} LsSampleGroup;
extern const LsOptionGroup ls_samples_group;

/* What is computed for each member. */
typedef struct LsEnsembleGroup {
    int64_t members, lanes;     /* 0: none; of them at the same time, 0: one */
    const char *batches;
    const char *randomness;     /* also of samples */
} LsEnsembleGroup;
extern const LsOptionGroup ls_ensemble_group;

#endif
