/* scheduler/packing/packing_block.h -- the block, the unit of packing: bytes that live from one
 * step to another. */
#ifndef LS_SCHEDULER_PACKING_PACKING_BLOCK_H
#define LS_SCHEDULER_PACKING_PACKING_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct LsBlock {
    int64_t size;               /* bytes, >= 0 */
    uint32_t from, to;          /* live range: first and last step, from <= to */
    int64_t rest;               /* > 0: bytes of its lower end that live on after step `full`, at
                                 * most `size` */
    uint32_t full;              /* if rest > 0: last step of the whole block, from <= full < to */
} LsBlock;

/* Returns whether the fields keep the rules above. */
static inline bool ls_block_is_sound(const LsBlock *b)
{
    bool shrinks = b->rest > 0;
    return b->size >= 0 && b->from <= b->to && b->rest >= 0 && b->rest <= b->size
           && (!shrinks || (b->from <= b->full && b->full < b->to));
}

#endif
