/* scheduler/blocks/keep_option.h -- what some neighbouring blocks keep for their backward part, and
 * what that takes. */
#ifndef LS_SCHEDULER_BLOCKS_KEEP_OPTION_H
#define LS_SCHEDULER_BLOCKS_KEEP_OPTION_H

#include <stdbool.h>
#include <stdint.h>

typedef struct LsKeepOption {
    bool *keep;                 /* by tensor that the blocks make, in the order of LsBlocks.made */
    bool brief;                 /* what is made again for another block than the one whose backward
                                 * part runs is made once more there, rather than held */
    int64_t kept;               /* bytes that stay from the forward to the backward part */
    int64_t peak;               /* most bytes at a time in either part, without what earlier blocks
                                 * keep; with gradients on their way to those */
    double again;               /* cost of what is made again */
} LsKeepOption;

typedef struct LsKeepOptions { LsKeepOption *item; uint32_t n; } LsKeepOptions;

#endif
