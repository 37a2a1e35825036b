/* scheduler/packing/packing_block.h -- what is packed: bytes that are there from one step to another. */
#ifndef LS_SCHEDULER_PACKING_PACKING_BLOCK_H
#define LS_SCHEDULER_PACKING_PACKING_BLOCK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct LsBlock {
    int64_t size;               /* bytes, >= 0 */
    uint32_t from, to;          /* first and last step it is there, from <= to */
    int64_t rest;               /* > 0: behind step `full`, from <= full < to, only its lower end */
    uint32_t full;              /* of so many bytes is there, at most `size` */
} LsBlock;

/* What is said of the fields above. */
static inline bool ls_block_is_sound(const LsBlock *b)
{
    bool shrinks = b->rest > 0;
    return b->size >= 0 && b->from <= b->to && b->rest >= 0 && b->rest <= b->size
           && (!shrinks || (b->from <= b->full && b->full < b->to));
}

#endif
