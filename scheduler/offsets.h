/* scheduler/offsets.h -- places in one arena for blocks with known lifetimes. */
#ifndef LS_SCHEDULER_OFFSETS_H
#define LS_SCHEDULER_OFFSETS_H

#include "compiler/arena.h"

#include <stdbool.h>

typedef struct LsBlock {
    int64_t size;               /* bytes */
    uint32_t from, to;          /* first and last step it is there */
} LsBlock;

/* Writes a multiple of `alignment` per block to offset[n]; blocks that are there at the same
 * step never overlap. Returns the largest end. Best fits by several orders, then a search that
 * puts forward what ended highest; it stops when the end is at most `good`, and after a fixed
 * number of rounds. */
int64_t ls_offsets(const LsBlock *block, uint32_t n, int64_t alignment, int64_t good,
                   int64_t *offset);

/* The largest sum of sizes at any step: no placement ends lower. */
int64_t ls_offsets_bound(const LsBlock *block, uint32_t n);

#endif
