/* tests/support/tape_tools.h -- a tape against liveness.h, for the scheduler's tests. */
#ifndef LS_TESTS_SUPPORT_TAPE_TOOLS_H
#define LS_TESTS_SUPPORT_TAPE_TOOLS_H

#include <check.h>

#include "scheduler/order/edited_order.h"

/* Peak and cost of a tape without bad reads are those of its sequence. */
static inline void tape_is_as_live(LsArena *a, const LsTape *t, const char *when, uint64_t seed)
{
    LsSeq seq = {ls_arena_alloc(a, t->n + 1u, sizeof *seq.node), 0};
    ls_tape_store(t, &seq);
    ck_assert_uint_eq(seq.n, t->n);
    LsLive *live = ls_live_new(a, t->p);
    ls_live(t->p, &seq, live);
    ck_assert_msg(live->peak == ls_tape_peak(t), "seed %d, %s: peak %ld, liveness.h has %ld",
                  (int)seed, when, (long)ls_tape_peak(t), (long)live->peak);
    ck_assert_double_eq_tol(live->cost, t->cost, 1e-9 * (1 + live->cost));
}

#endif
