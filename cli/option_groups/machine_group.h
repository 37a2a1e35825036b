/* cli/option_groups/machine_group.h -- targets, machines, precisions, compilers. */
#ifndef LS_CLI_OPTION_GROUPS_MACHINE_GROUP_H
#define LS_CLI_OPTION_GROUPS_MACHINE_GROUP_H

#include "cli/option_groups/option_group.h"

/* What the program runs on, and who compiles it. */
typedef struct LsMachineGroup {
    const char *target, *name, *costs;          /* name: --machine */
    int64_t threads;            /* 0: all */
    const char *precision, *eval_precision, *bf16_sums;
    LsList wide;                /* --precision-of */
    const char *march, *opt, *cc;
    const char *arch, *nvcc, *workspace;
    bool nondeterministic, compiled_engines, no_overlap;
} LsMachineGroup;
extern const LsOptionGroup ls_machine_group;

#endif
