/* cli/option_groups/training_group.h -- loss and updates. */
#ifndef LS_CLI_OPTION_GROUPS_TRAINING_GROUP_H
#define LS_CLI_OPTION_GROUPS_TRAINING_GROUP_H

#include "cli/option_groups/option_group.h"

/* --loss and what belongs to it. */
typedef struct LsLossGroup {
    const char *spec, *input, *label, *class_axis, *label_shape, *smoothing, *ignore,
        *class_weights, *head_chunks, *head_gradient;
    bool segments;
} LsLossGroup;
extern const LsOptionGroup ls_loss_group;

/* What becomes of gradients. */
typedef struct LsUpdateGroup {
    const char *optimizer, *lr, *schedule;
    LsList no_decay;
    const char *ema, *clip_norm, *clip_value, *scale;
} LsUpdateGroup;
extern const LsOptionGroup ls_update_group;

#endif
