/* scheduler/packing/offsets.h -- chooses offsets in one arena for blocks with known lifetimes. */
#ifndef LS_SCHEDULER_PACKING_OFFSETS_H
#define LS_SCHEDULER_PACKING_OFFSETS_H

#include "scheduler/packing/packing_block.h"

typedef enum {
    LS_PACK_QUICK,              /* a few greedy fillings, to judge many candidates */
    LS_PACK_SOON,               /* then searches; given up early if `enough` is hard to reach */
    LS_PACK_FULL,               /* searches, cut only after a fraction of a second */
    LS_PACK_LONG                /* searches, cut only after some ten seconds */
} LsPackEffort;

/* Writes to offset[n] a multiple of `alignment`, bytes, for each block; blocks that live at the
 * same step never overlap. Returns the largest end, bytes. Does not search below `good`, and stops
 * at the first packing that ends at or below `enough` (enough < good: at none). The search before
 * that does not depend on `enough`: a packing found for some bytes is found for more, and, unless
 * LS_PACK_SOON gives up, a packing found without `enough` is found for as many bytes as it takes.
 * All limits count work, so the result depends on the arguments alone. Finds the least possible end
 * unless the search is cut (never below some dozens of blocks). Returns INT64_MAX, and no offsets,
 * if the blocks of one step exceed 63 bits. */
int64_t ls_offsets(const LsBlock *block, uint32_t n, int64_t alignment, int64_t good,
                   int64_t enough, LsPackEffort effort, int64_t *offset);

/* Returns the largest sum of sizes at any step, a lower bound on the end of every packing, bytes.
 * INT64_MAX: more than 63 bits. */
int64_t ls_offsets_bound(const LsBlock *block, uint32_t n);

#endif
