/* scheduler/blocks/keep_option.h -- a choice of values that a range of blocks keeps for its
 * backward part, with its price. */
#ifndef LS_SCHEDULER_BLOCKS_KEEP_OPTION_H
#define LS_SCHEDULER_BLOCKS_KEEP_OPTION_H

#include <stdbool.h>
#include <stdint.h>

typedef struct LsKeepOption {
    bool *keep;                 /* by tensor that the blocks make, in the order of LsBlocks.made:
                                 * kept */
    bool brief;                 /* a recomputed value of another block is not held for that block's
                                 * backward part but recomputed there */
    int64_t kept;               /* bytes that stay from the forward to the backward part */
    int64_t peak;               /* peak memory of either part, bytes, without the values that
                                 * earlier blocks keep but with gradients on their way to those
                                 * blocks */
    double again;               /* cost of recomputation */
} LsKeepOption;

typedef struct LsKeepOptions { LsKeepOption *item; uint32_t n; } LsKeepOptions;

#endif
