/* scheduler/packing/offsets.h -- places in one arena for blocks with known lifetimes. */
#ifndef LS_SCHEDULER_PACKING_OFFSETS_H
#define LS_SCHEDULER_PACKING_OFFSETS_H

#include "scheduler/packing/packing_block.h"

typedef enum {
    LS_PACK_QUICK,              /* a few greedy fillings: for judging many candidates */
    LS_PACK_SOON,               /* then searches, left when `enough` is hardly to be reached */
    LS_PACK_FULL,               /* the same, cut after a fraction of a second only */
    LS_PACK_LONG                /* the same, cut after some ten seconds */
} LsPackEffort;

/* Writes a multiple of `alignment` per block to offset[n]; blocks that are there at the same
 * step never overlap. Returns the largest end. Looks for none below `good`, and stops at the
 * first at or below `enough` (enough < good: at none). What comes before does not depend on it:
 * what is found for some bytes is found for more, and, unless it is left soon, what is found for
 * none is found for as many bytes as it takes. All limits are counted in work done, so the result
 * depends on the arguments alone. The search ends with the least end that there is unless it is cut
 * (below some dozens of blocks it never is). Returns INT64_MAX, and no offsets, when the blocks of
 * one step exceed 63 bits. */
int64_t ls_offsets(const LsBlock *block, uint32_t n, int64_t alignment, int64_t good,
                   int64_t enough, LsPackEffort effort, int64_t *offset);

/* The largest sum of sizes at any step: no placement ends lower. INT64_MAX: more than 63 bits. */
int64_t ls_offsets_bound(const LsBlock *block, uint32_t n);

#endif
