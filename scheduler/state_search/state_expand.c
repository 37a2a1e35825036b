/* scheduler/state_search/state_expand.c -- expands states by the steps that may come before
 * them. */
#include "scheduler/state_search/state_expand.h"

#include <assert.h>
#include <string.h>

#include "scheduler/state_search/state_bits.h"

/* Units of work, fitted to times of many windows (search_limit.h): a node tried, a possible step, a
 * step looked up in the table. */
enum { PICK_WORK = 51, STEP_WORK = 41, REACH_WORK = 273 };

static const uint64_t *bits_of(const LsTails *t, uint32_t k)
{
    return t->word + (size_t)k * t->row;
}

/* Returns whether v may run just before `state`. */
static bool may_run(const LsTails *t, uint32_t v, const uint64_t *state)
{
    const LsDagNode *n = &t->dag->node[v];
    if (t->never[v] || (t->o.barred != NULL && t->o.barred[v]))
        return false;
    if (t->bit[v] != LS_NO_ID && ls_tails_runs_once(n) && ls_tails_has(state, t->bit[v]))
        return false;
    for (uint32_t k = t->updaters.at[v]; k < t->updaters.at[v + 1]; k++) {
        uint32_t u = t->updaters.id[k];
        if (t->bit[u] != LS_NO_ID && !ls_tails_has(state, t->bit[u]))
            return false;
    }
    return true;
}

/* Returns the bytes asked for before a run of v, less the bytes asked for after it. */
static int64_t change_of(const LsTails *t, uint32_t v, const uint64_t *state)
{
    const LsDagNode *n = &t->dag->node[v];
    int64_t change = 0;
    for (uint32_t k = 0; k < n->nout; k++)
        change -= ls_tails_has(state, n->out[k]) ? t->size[n->out[k]] : 0;
    for (uint32_t k = t->asks.at[v]; k < t->asks.at[v + 1]; k++)
        change += !ls_tails_has(state, t->asks.id[k]) ? t->size[t->asks.id[k]] : 0;
    return change;
}

/* Returns the bytes that in-place reuse saves in a run of v before `state`; charges long matchings
 * as work. */
static int64_t spared(LsTails *t, uint32_t v, const uint64_t *state)
{
    enum { USUAL = 16, EACH = 3 };
    if (t->pairs == NULL)
        return 0;
    t->pairs->looks = 0;
    int64_t bytes = ls_inplace_spared(t->pairs, v, state);
    t->work += t->pairs->looks > USUAL ? EACH * (t->pairs->looks - USUAL) : 0;
    return bytes;
}

/* Returns the bytes while v runs before state k; -1: more than the budget. */
static int64_t bytes_at(LsTails *t, uint32_t k, uint32_t v, int64_t before)
{
    const LsDagNode *n = &t->dag->node[v];
    int64_t bytes = before + t->workspace[v];
    for (uint32_t j = 0; j < n->nout; j++)
        bytes += t->size[n->out[j]];
    if (!t->o.peak && bytes - t->spare[v] > t->o.budget)
        return -1;
    bytes -= spared(t, v, bits_of(t, k));
    return t->o.peak || bytes <= t->o.budget ? bytes : -1;
}

/* Returns whether the demand of `next` still needs the group. */
static bool is_needed(const LsTails *t, uint32_t group)
{
    const LsBoundGraph *b = t->b;
    const uint64_t *need = t->next + t->words;
    for (uint32_t k = b->out.at[group]; k < b->out.at[group + 1]; k++)
        if (ls_tails_has(t->next, b->out.id[k]) && !ls_tails_is_given(t, b->out.id[k]))
            return true;
    for (uint32_t k = t->musts.at[group]; k < t->musts.at[group + 1]; k++)
        if (!ls_tails_has(t->next, t->bit[t->musts.id[k]]))
            return true;
    for (uint32_t k = t->readers.at[group]; k < t->readers.at[group + 1]; k++)
        if (ls_tails_has(need, t->readers.id[k]))
            return true;
    return false;
}

/* Updates the groups that `next`, the state before a run of v, needs. Returns their cost less the
 * cost of the groups needed after the run. */
static double change_need(LsTails *t, uint32_t v)
{
    const LsDagNode *n = &t->dag->node[v];
    uint64_t *need = t->next + t->words;
    uint32_t group = t->b->group[v];
    double change = 0;
    for (uint32_t k = 0; k < n->nin; k++) {         /* an alternative may read more than others */
        uint32_t maker = t->b->maker[n->in[k]];
        if (maker == LS_NO_ID || ls_tails_has(need, maker))
            continue;
        for (uint32_t j = 0; j < t->group_words; j++) {
            uint64_t more = t->behind[(size_t)n->in[k] * t->group_words + j] & ~need[j];
            need[j] |= more;
            for (; more != 0; more &= more - 1)
                change += t->group_price[64 * j + (uint32_t)__builtin_ctzll(more)];
        }
    }
    if (group != LS_NO_ID && ls_tails_has(need, group) && !is_needed(t, group)) {
        ls_tails_drop(need, group);
        change -= t->group_price[group];
    }
    return change;
}

/* Builds the state before a run of v before state k in t->next; false: v may not run there. */
static bool step_back(LsTails *t, uint32_t k, uint32_t v, LsTail *step)
{
    const LsDagNode *n = &t->dag->node[v];
    const LsTail *after = &t->tail[k];
    if (!may_run(t, v, bits_of(t, k)))
        return false;
    t->work += STEP_WORK + t->wide[v];
    *step = (LsTail){.then = k, .node = v, .bytes = after->bytes + change_of(t, v, bits_of(t, k))};
    int64_t bytes = bytes_at(t, k, v, step->bytes);
    if (bytes < 0)
        return false;
    memcpy(t->next, bits_of(t, k), t->row * sizeof *t->next);
    for (uint32_t j = 0; j < n->nout; j++)
        ls_tails_drop(t->next, n->out[j]);
    for (uint32_t j = t->asks.at[v]; j < t->asks.at[v + 1]; j++)
        ls_tails_put(t->next, t->asks.id[j]);
    if (t->bit[v] != LS_NO_ID)
        ls_tails_put(t->next, t->bit[v]);
    const double change = t->group_words > 0 ? change_need(t, v) : 0;
    if (t->o.peak) {
        step->cost = (double)bytes > after->cost ? (double)bytes : after->cost;
        return true;
    }
    step->cost = after->cost + t->price[v];
    step->ahead = after->ahead + change;
    return true;
}

/* Returns whether the step just built is as good here as anywhere earlier in the schedule. This
 * fails if an alternative could replace it, or could ask again for a group that nothing else
 * needs; and if something before still needs the group, so that it would run twice: that costs
 * time, and bytes in between. */
static bool is_free(const LsTails *t, const LsTail *step)
{
    const LsTail *after = &t->tail[step->then];
    uint32_t group = t->b->group[step->node];
    return group != LS_NO_ID && t->b->alone[group] && !ls_tails_has(t->pulled, group)
           && step->bytes <= after->bytes
           && step->cost + step->ahead == after->cost + after->ahead
           && !(t->o.peak && ls_tails_has(t->next + t->words, group));
}

/* Records that the step reaches the state in t->next. */
static void reach(LsTails *t, const LsTail *step)
{
    if (t->most != NULL && ls_tails_rank(t, step) >= t->most[ls_tails_left_of(t, t->next)])
        return;
    assert(step->bytes >= 0 && step->then < t->n);
    t->work += REACH_WORK;
    uint32_t state = ls_tails_find(t);
    LsTail *tail = &t->tail[state];
    if (tail->closed || tail->cost <= step->cost)
        return;
    *tail = *step;
    t->fresh = ls_arena_grow(t->arena, t->fresh, t->nfresh, t->nfresh + 1u, sizeof *t->fresh,
                             &t->fresh_room);
    t->fresh[t->nfresh++] = state;
}

/* Returns the first result of v that the state asks for, or LS_NO_ID; cached for the state of
 * t->stamp. */
static uint32_t asked_of(LsTails *t, uint32_t v, const uint64_t *state)
{
    const LsDagNode *n = &t->dag->node[v];
    uint32_t k = 0;
    if (t->met[v] == t->stamp)
        return t->first[v];
    while (k < n->nout && !ls_tails_has(state, n->out[k]))
        k++;
    t->met[v] = t->stamp;
    return t->first[v] = k < n->nout ? n->out[k] : LS_NO_ID;
}

/* Writes to t->pick the nodes that make a tensor asked for or must still run; returns their
 * number. */
static uint32_t find_picks(LsTails *t, const uint64_t *state)
{
    const LsDagNode *node = t->dag->node;
    uint32_t n = 0;
    t->stamp++;
    for (uint32_t w = 0; w < t->tensors; w++)
        for (uint64_t x = state[w]; x != 0; x &= x - 1) {
            uint32_t tensor = 64 * w + (uint32_t)__builtin_ctzll(x);
            for (uint32_t j = t->makers.at[tensor]; j < t->makers.at[tensor + 1]; j++)
                if (asked_of(t, t->makers.id[j], state) == tensor)
                    t->pick[n++] = t->makers.id[j];
        }
    for (uint32_t v = 0; v < t->dag->nnode; v++)
        if (t->bit[v] != LS_NO_ID && ls_tails_must_run(&node[v])
            && !ls_tails_has(state, t->bit[v]) && asked_of(t, v, state) == LS_NO_ID)
            t->pick[n++] = v;
    return n;
}

void ls_tails_expand(LsTails *t, uint32_t k)
{
    assert(k < t->n && !t->tail[k].closed);
    LsTail step;
    uint32_t n = find_picks(t, bits_of(t, k));
    t->nfresh = 0;
    t->work += (uint64_t)PICK_WORK * n;
    t->tail[k].closed = true;
    for (uint32_t j = 0; j < n && t->group_words > 0; j++) {
        uint32_t v = t->pick[j];
        if (change_of(t, v, bits_of(t, k)) <= 0 && step_back(t, k, v, &step)
            && is_free(t, &step)) {
            reach(t, &step);
            return;
        }
    }
    for (uint32_t j = 0; j < n; j++)
        if (step_back(t, k, t->pick[j], &step))
            reach(t, &step);
}
