/* scheduler/state_search/state_table.c -- the table of states, and the facts of the graph that all
 * states share. */
#include "scheduler/state_search/state_table.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "scheduler/state_search/state_bits.h"

static LsRows makers_of(LsTails *t)
{
    LsPairs p = {0};
    for (uint32_t v = 0; v < t->dag->nnode; v++)
        for (uint32_t k = 0; k < t->dag->node[v].nout; k++)
            ls_pairs_add(t->arena, &p, t->dag->node[v].out[k], v);
    return ls_rows(t->arena, &p, t->dag->ntensor);
}

/* By node: the nodes that update a tensor it reads. */
static LsRows updaters_of(LsTails *t)
{
    const LsDag *g = t->dag;
    LsPairs p = {0};
    uint32_t *updater = ls_arena_alloc(t->arena, g->ntensor + 1u, sizeof *updater);
    memset(updater, 0xff, (g->ntensor + 1u) * sizeof *updater);
    for (uint32_t v = 0; v < g->nnode; v++)
        for (uint32_t k = 0; k < g->node[v].nupd && !g->node[v].alternative; k++)
            updater[g->node[v].upd[k]] = v;
    for (uint32_t v = 0; v < g->nnode; v++)
        for (uint32_t k = 0; k < g->node[v].nin; k++)
            if (updater[g->node[v].in[k]] != LS_NO_ID && updater[g->node[v].in[k]] != v)
                ls_pairs_add(t->arena, &p, v, updater[g->node[v].in[k]]);
    return ls_rows(t->arena, &p, g->nnode);
}

/* Returns whether a tensor, or a tensor of a form set, is available at the beginning. */
static bool is_there(const LsTails *t, uint32_t id)
{
    const LsBoundGraph *b = t->b;
    if (id < b->p->nt)
        return ls_tails_is_given(t, id);
    uint32_t set = id - b->p->nt;
    bool any = false;
    for (uint32_t k = b->form.at[set]; k < b->form.at[set + 1]; k++)
        any |= ls_tails_is_given(t, b->form.id[k]);
    return any;
}

static LsRows readers_of(LsTails *t)
{
    LsPairs p = {0};
    for (uint32_t v = 0; v < t->dag->nnode; v++)
        for (uint32_t k = t->b->in.at[v]; k < t->b->in.at[v + 1]; k++)
            if (!is_there(t, t->b->in.id[k]))
                ls_pairs_add(t->arena, &p, t->b->maker[t->b->in.id[k]], v);
    return ls_rows(t->arena, &p, t->dag->nnode);
}

static LsRows musts_of(LsTails *t)
{
    LsPairs p = {0};
    for (uint32_t v = 0; v < t->dag->nnode; v++)
        if (t->bit[v] != LS_NO_ID && ls_tails_must_run(&t->dag->node[v]))
            ls_pairs_add(t->arena, &p, t->b->group[v], v);
    return ls_rows(t->arena, &p, t->dag->nnode);
}

/* By tensor and by group: the groups that must run before it, unless states have no words for
 * groups. */
static void find_behind(LsTails *t)
{
    const LsBoundGraph *b = t->b;
    uint32_t n = b->p->n, w = t->group_words;
    uint64_t *of = ls_arena_alloc(t->arena, (size_t)n * w + 1, sizeof *of);
    t->behind = ls_arena_alloc(t->arena, (size_t)b->p->nt * w + 1, sizeof *t->behind);
    t->must_behind = of;
    for (uint32_t v = 0; v < n && w > 0; v++) {
        if (b->group[v] != v)
            continue;
        ls_tails_put(of + (size_t)v * w, v);
        for (uint32_t k = b->in.at[v]; k < b->in.at[v + 1]; k++)
            for (uint32_t j = 0; !is_there(t, b->in.id[k]) && j < w; j++)
                of[(size_t)v * w + j] |= of[(size_t)b->maker[b->in.id[k]] * w + j];
        for (uint32_t k = b->out.at[v]; k < b->out.at[v + 1]; k++)
            if (!ls_tails_is_given(t, b->out.id[k]))
                memcpy(t->behind + (size_t)b->out.id[k] * w, of + (size_t)v * w, w * sizeof *of);
    }
}

/* Finds the groups that a member may require although the group itself does not. */
static void find_pulled(LsTails *t)
{
    uint32_t w = t->group_words;
    t->pulled = ls_arena_alloc(t->arena, w + 1u, sizeof *t->pulled);
    for (uint32_t v = 0; v < t->dag->nnode; v++) {
        const LsDagNode *node = &t->dag->node[v];
        uint32_t group = t->b->group[v];
        bool asked = group != LS_NO_ID, alone = asked && t->b->alone[group];
        for (uint32_t k = 0; !alone && k < node->nin; k++)
            for (uint32_t j = 0; j < w; j++)
                t->pulled[j] |= t->behind[(size_t)node->in[k] * w + j]
                                & ~(asked ? t->must_behind[(size_t)group * w + j] : 0);
    }
}

/* Returns whether the pair may be used for in-place reuse. */
static bool pair_fits(const void *tails, LsDagPair x)
{
    const LsTails *t = tails;
    const LsProb *p = t->b->p;
    return !t->dag->tensor[x.in].persistent
           && (t->o.padded ? ls_prob_fits(p, x) : ls_bound_pair_fits(p, x));
}

static void find_sizes(LsTails *t)
{
    const LsProb *p = t->b->p;
    t->size = ls_arena_alloc(t->arena, p->nt + 1u, sizeof *t->size);
    t->workspace = ls_arena_alloc(t->arena, p->n + 1u, sizeof *t->workspace);
    t->spare = ls_arena_alloc(t->arena, p->n + 1u, sizeof *t->spare);
    for (uint32_t k = 0; k < p->nt; k++)
        t->size[k] = t->o.padded ? p->size[k] : ls_bound_bytes(p, k);
    if (p->inplace)
        t->pairs = ls_inplace_new(t->arena, t->dag, t->size, pair_fits, t);
    for (uint32_t v = 0; v < p->n; v++) {
        t->workspace[v] = t->o.padded ? p->workspace[v] : t->dag->node[v].workspace;
        for (uint32_t k = 0; t->pairs != NULL && k < t->pairs->node[v].nout; k++)
            t->spare[v] += t->size[t->pairs->node[v].out[k]];
    }
}

/* Finds the operands of each node, and the work for nodes with many operands and results. */
static void find_reads(LsTails *t)
{
    enum { USUAL = 64, EACH = 2 };
    const LsDag *g = t->dag;
    LsPairs asks = {0};
    uint32_t *met = ls_arena_alloc(t->arena, g->ntensor + 1u, sizeof *met); /* node + 1 */
    t->never = ls_arena_alloc(t->arena, g->nnode + 1u, sizeof *t->never);
    t->wide = ls_arena_alloc(t->arena, g->nnode + 1u, sizeof *t->wide);
    for (uint32_t v = 0; v < g->nnode; v++) {
        const LsDagNode *n = &g->node[v];
        for (uint32_t k = 0; k < n->nin; k++) {
            if (met[n->in[k]] != v + 1 && !g->tensor[n->in[k]].persistent)
                ls_pairs_add(t->arena, &asks, v, n->in[k]);
            met[n->in[k]] = v + 1;
        }
        for (uint32_t k = 0; k < n->nout; k++)
            t->never[v] |= met[n->out[k]] == v + 1;
        uint32_t many = n->nin + n->nout;
        t->wide[v] = many > USUAL ? EACH * (many - USUAL) : 0;
    }
    t->asks = ls_rows(t->arena, &asks, g->nnode);
}

/* Rounds costs down to multiples of a small power of two, so that sums of many runs are exact. The
 * cost of a state then does not depend on the way to it and stays a lower bound. */
static void find_prices(LsTails *t)
{
    enum { BITS = 46 };
    const LsBoundGraph *b = t->b;
    uint32_t n = b->p->n;
    double all = 0;
    t->price = ls_arena_alloc(t->arena, n + 1u, sizeof *t->price);
    t->group_price = ls_arena_alloc(t->arena, n + 1u, sizeof *t->group_price);
    for (uint32_t v = 0; v < n; v++)
        all += t->dag->node[v].cost;
    int power;
    frexp(all, &power);
    double unit = ldexp(1, power - BITS);
    for (uint32_t v = 0; v < n; v++) {
        t->price[v] = floor(t->dag->node[v].cost / unit) * unit;
        t->group_price[v] = b->group[v] == v ? floor(b->cost[v] / unit) * unit : 0;
    }
}

LsTails *ls_tails_new(const LsBoundGraph *b, LsTailOptions options)
{
    LsArena *arena = ls_arena_new();
    LsTails *t = ls_arena_alloc(arena, 1, sizeof *t);
    *t = (LsTails){.b = b, .dag = b->p->dag, .arena = arena, .o = options};
    enum { MANY = 3000 };       /* more take too much room where only bytes count */
    uint32_t n = b->p->n, bits = 0;
    t->tensors = (b->p->nt + 63) / 64;
    t->group_words = options.peak && n > MANY ? 0 : (n + 63) / 64;
    t->bit = ls_arena_alloc(arena, n + 1u, sizeof *t->bit);
    for (uint32_t v = 0; v < n; v++) {
        const LsDagNode *node = &t->dag->node[v];
        bool tracked = options.track && (ls_tails_must_run(node) || ls_tails_runs_once(node));
        t->bit[v] = tracked ? 64 * t->tensors + bits++ : LS_NO_ID;
    }
    t->words = t->tensors + (bits + 63) / 64;
    t->row = t->words + t->group_words;
    find_sizes(t);
    find_reads(t);
    find_prices(t);
    t->makers = makers_of(t);
    t->updaters = updaters_of(t);
    t->readers = readers_of(t);
    t->musts = musts_of(t);
    find_behind(t);
    find_pulled(t);
    t->next = ls_arena_alloc(arena, t->row + 1u, sizeof *t->next);
    t->pick = ls_arena_alloc(arena, n + 1u, sizeof *t->pick);
    t->first = ls_arena_alloc(arena, n + 1u, sizeof *t->first);
    t->met = ls_arena_alloc(arena, n + 1u, sizeof *t->met);
    return t;
}

void ls_tails_free(LsTails *t)
{
    ls_arena_free(t->arena);
}

static uint32_t hash_of(const uint64_t *word, uint32_t n)
{
    uint64_t h = 0;
    for (uint32_t k = 0; k < n; k++) {
        h = (h ^ word[k]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    return (uint32_t)(h * UINT64_C(0xbf58476d1ce4e5b9) >> 32);
}

static void rehash(LsTails *t)
{
    t->slots = t->slots ? 2 * t->slots : 1024;
    t->table = ls_arena_alloc(t->arena, t->slots, sizeof *t->table);
    for (uint32_t k = 0; k < t->n; k++) {
        uint32_t h = hash_of(t->word + (size_t)k * t->row, t->words), at = h;
        while (t->table[at & (t->slots - 1)].state != 0)
            at++;
        t->table[at & (t->slots - 1)] = (LsTailSlot){h, k + 1};
    }
}

static void make_room(LsTails *t)
{
    if (t->n < t->room)
        return;
    const size_t want = t->n < 512 ? 512 : t->n + 1u;
    uint32_t room = t->room;
    t->word = ls_arena_grow(t->arena, t->word, t->n, want, t->row * sizeof *t->word, &room);
    t->tail = ls_arena_grow(t->arena, t->tail, t->n, want, sizeof *t->tail, &t->room);
}

uint32_t ls_tails_find(LsTails *t)
{
    if (2 * (t->n + 1) > t->slots)
        rehash(t);
    uint32_t h = hash_of(t->next, t->words), at = h;
    for (;; at++) {
        LsTailSlot slot = t->table[at & (t->slots - 1)];
        if (slot.state == 0)
            break;
        if (slot.hash == h && memcmp(t->word + (size_t)(slot.state - 1) * t->row, t->next,
                                     t->words * sizeof *t->next) == 0)
            return slot.state - 1;
    }
    make_room(t);
    memcpy(t->word + (size_t)t->n * t->row, t->next, t->row * sizeof *t->next);
    t->tail[t->n] = (LsTail){.cost = INFINITY, .then = LS_NO_ID, .node = LS_NO_ID};
    t->table[at & (t->slots - 1)] = (LsTailSlot){h, t->n + 1};
    return t->n++;
}

/* Writes to `next` the groups that its demand requires; returns the sum of their prices. */
static double find_need(LsTails *t)
{
    uint32_t w = t->group_words;
    uint64_t *need = t->next + t->words;
    double sum = 0;
    if (w == 0)
        return 0;
    for (uint32_t k = 0; k < t->dag->ntensor; k++)
        for (uint32_t j = 0; ls_tails_has(t->next, k) && j < w; j++)
            need[j] |= t->behind[(size_t)k * w + j];
    for (uint32_t v = 0; v < t->dag->nnode; v++)
        for (uint32_t j = 0; t->bit[v] != LS_NO_ID && ls_tails_must_run(&t->dag->node[v]) && j < w;
             j++)
            need[j] |= t->must_behind[(size_t)t->b->group[v] * w + j];
    for (uint32_t v = 0; v < t->dag->nnode; v++)
        sum += ls_tails_has(need, v) ? t->group_price[v] : 0;
    return sum;
}

uint32_t ls_tails_end(LsTails *t, uint32_t node, double cost)
{
    assert(node == LS_NO_ID || node < t->dag->nnode);
    memset(t->next, 0, t->row * sizeof *t->next);
    for (uint32_t k = 0; k < t->dag->ntensor; k++)
        if (node == LS_NO_ID && t->dag->tensor[k].output && !t->dag->tensor[k].persistent)
            ls_tails_put(t->next, k);
    for (uint32_t k = 0; node != LS_NO_ID && k < t->dag->node[node].nin; k++)
        if (!t->dag->tensor[t->dag->node[node].in[k]].persistent)
            ls_tails_put(t->next, t->dag->node[node].in[k]);
    const double ahead = find_need(t);
    uint32_t end = ls_tails_find(t);
    t->tail[end].cost = cost;
    t->tail[end].ahead = t->o.peak ? 0 : ahead;
    for (uint32_t k = 0; k < t->dag->ntensor; k++)
        t->tail[end].bytes += ls_tails_has(t->next, k) ? t->size[k] : 0;
    return end;
}

bool ls_tails_is_start(const LsTails *t, uint32_t state)
{
    const uint64_t *bits = t->word + (size_t)state * t->row;
    bool start = true;
    for (uint32_t k = 0; k < t->tensors; k++)
        for (uint64_t x = bits[k]; x != 0 && start; x &= x - 1)
            start = ls_tails_is_given(t, 64 * k + (uint32_t)__builtin_ctzll(x));
    for (uint32_t v = 0; v < t->dag->nnode && start; v++)
        start = t->bit[v] == LS_NO_ID || !ls_tails_must_run(&t->dag->node[v])
                || ls_tails_has(bits, t->bit[v]);
    return start;
}

uint32_t ls_tails_left(const LsTails *t, uint32_t state)
{
    return ls_tails_left_of(t, t->word + (size_t)state * t->row);
}

LsSeq ls_tails_schedule(const LsTails *t, uint32_t state, LsArena *arena)
{
    assert(state < t->n && ls_tails_is_start(t, state));
    uint32_t n = 0;
    for (uint32_t k = state; t->tail[k].then != LS_NO_ID; k = t->tail[k].then)
        n++;
    LsSeq seq = {ls_arena_alloc(arena, n + 1u, sizeof *seq.node), 0};
    for (uint32_t k = state; t->tail[k].then != LS_NO_ID; k = t->tail[k].then)
        seq.node[seq.n++] = t->tail[k].node;
    return seq;
}
