/* scheduler/state_search/state_bits.h -- sets of bits, and which nodes a state has bits for. */
#ifndef LS_SCHEDULER_STATE_SEARCH_STATE_BITS_H
#define LS_SCHEDULER_STATE_SEARCH_STATE_BITS_H

#include "scheduler/graph/dag.h"

static inline bool ls_tails_has(const uint64_t *set, uint32_t k)
{
    return set[k / 64] >> (k % 64) & 1;
}

static inline void ls_tails_put(uint64_t *set, uint32_t k)
{
    set[k / 64] |= UINT64_C(1) << (k % 64);
}

static inline void ls_tails_drop(uint64_t *set, uint32_t k)
{
    set[k / 64] &= ~(UINT64_C(1) << (k % 64));
}

static inline bool ls_tails_must_run(const LsDagNode *n)
{
    return !n->alternative && (n->required || n->nupd > 0);
}

static inline bool ls_tails_runs_once(const LsDagNode *n) { return n->once || n->nupd > 0; }

#endif
