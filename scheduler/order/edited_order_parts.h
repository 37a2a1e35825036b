/* scheduler/order/edited_order_parts.h -- what the files of the tape (edited_order.h) share among
 * themselves. */
#ifndef LS_SCHEDULER_ORDER_EDITED_ORDER_PARTS_H
#define LS_SCHEDULER_ORDER_EDITED_ORDER_PARTS_H

#include "scheduler/order/edited_order.h"

#define LS_TAPE_EMPTY (-((int64_t)1 << 61))     /* added to slots without a run, so that they are
                                                 * never the peak */

/* Work of a change of the tree. Units of work are fitted to times of whole searches
 * (search_limit.h). */
enum { LS_TAPE_ADD_WORK = 30 };

/* Adds `bytes` to the slots from .. to. */
static inline void ls_tape_add(LsTape *t, uint32_t from, uint32_t to, int64_t bytes)
{
    *t->work += LS_TAPE_ADD_WORK;
    ls_peak_tree_add(&t->tree, from, to, bytes);
}

/* Charges for reads passed one by one; free for values with few readers. */
static inline void ls_tape_charge_scan(const LsTape *t, uint32_t passed)
{
    enum { USUAL = 64 };
    *t->work += passed > USUAL ? passed - USUAL : 0;
}

/* Returns the last write among the first k events, or LS_NO_ID. */
static inline uint32_t ls_tape_write_before(const LsTape *t, const LsTapeList *l, uint32_t k)
{
    uint32_t from = k;
    while (k > 0 && l->event[k - 1] % 2 == 0)
        k--;
    ls_tape_charge_scan(t, from - k);
    return k - 1;                                   /* k = 0: LS_NO_ID */
}

/* Returns the run that ends the instance of write k: its last reader, or the writer; LS_TAPE_END:
 * it lives to the end. */
static inline uint32_t ls_tape_end_of(const LsTape *t, uint32_t tensor, uint32_t k)
{
    const LsTapeList *l = &t->list[tensor];
    uint32_t from = k;
    while (k + 1 < l->n && l->event[k + 1] % 2 == 0)
        k++;
    ls_tape_charge_scan(t, k - from);
    return k + 1 == l->n && t->p->dag->tensor[tensor].output ? LS_TAPE_END : l->event[k] / 2;
}

static inline uint32_t ls_tape_last_slot(const LsTape *t, uint32_t run)
{
    return t->slot[run] - (run == LS_TAPE_END);
}

/* edited_order_events.c. put and take: the read or write of a run on the tape begins to count, or
 * ceases to. */
void ls_tape_put_event(LsTape *t, uint32_t tensor, uint32_t run, bool write);
void ls_tape_take_event(LsTape *t, uint32_t tensor, uint32_t run, bool write);

/* Returns whether the run ends the instance of its operand. */
bool ls_tape_ends(const LsTape *t, uint32_t tensor, uint32_t run);

/* Queues a run whose operands may end elsewhere now; weighs what in-place reuse saves at all queued
 * runs. */
void ls_tape_touch(LsTape *t, uint32_t run);
void ls_tape_weigh(LsTape *t);

/* edited_order_slots.c. A run takes an empty slot, and leaves it. */
void ls_tape_take_slot(LsTape *t, uint32_t slot, uint32_t run);
void ls_tape_leave_slot(LsTape *t, uint32_t slot);

/* Spreads the runs evenly over at least four slots each, and fills the tree. */
void ls_tape_spread(LsTape *t);

/* Returns a free slot between `before` and the run in front of it. */
uint32_t ls_tape_free_slot(LsTape *t, uint32_t before);

#endif
