/* scheduler/state_search/state_bits.h -- what state_table.c and state_expand.c share. */
#ifndef LS_SCHEDULER_STATE_SEARCH_STATE_BITS_H
#define LS_SCHEDULER_STATE_SEARCH_STATE_BITS_H

#include "scheduler/state_search/state_table.h"

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

static inline bool ls_tails_is_given(const LsTails *t, uint32_t tensor)
{
    return t->o.have != NULL && t->o.have[tensor];
}

static inline uint32_t ls_tails_left_of(const LsTails *t, const uint64_t *row)
{
    uint32_t left = 0;
    for (uint32_t j = t->words; j < t->row; j++)
        left += (uint32_t)__builtin_popcountll(row[j]);
    return left;
}

/* The number of the state in t->next; a new one has cost INFINITY. */
uint32_t ls_tails_find(LsTails *t);

#endif
