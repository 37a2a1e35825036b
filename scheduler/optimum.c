/* scheduler/optimum.c -- best-first search over states in a hash table. */
#include "scheduler/optimum.h"

#include <math.h>
#include <string.h>

typedef struct Entry { double f; uint32_t state; double g; } Entry;

typedef struct Search {
    const LsBoundGraph *b;
    const LsDag *dag;
    LsArena *arena;
    bool peak;                  /* least peak in place of least cost */
    double budget;              /* bytes; with peak: none */
    double enough;              /* what costs as much is left out */
    bool left_out;
    bool padded;                /* bytes, and what fits in whose place, as plans are packed */
    int64_t *size;              /* by tensor: bytes, 0 if persistent */
    int64_t *workspace, *spare; /* by node: bytes; what in-place reuse spares of them at the most */
    uint32_t tensors, words;    /* words of a state: of its tensors; of all */
    uint32_t *bit;              /* by node: its bit behind those of the tensors, or LS_NO_ID */
    LsRows makers;              /* by tensor: nodes */
    LsRows updaters;            /* by node: those that must run after it */
    uint64_t *behind;           /* by tensor: groups without which it is not; group_words each */
    uint64_t *must_behind;      /* by node that must run: likewise */
    uint32_t group_words;
    uint64_t *word; uint32_t nstate, room;  /* by state: its bits */
    double *best;               /* by state: cost, or peak, of what follows */
    bool *closed;
    uint32_t *then, *node;      /* by state: the one that follows, and what runs between them */
    uint32_t goal;              /* the state at the beginning that was found */
    uint32_t *table, slots;     /* of states + 1, open addressing */
    Entry *heap; uint32_t nheap, heap_room;
    uint64_t *next, *need;      /* a state under construction; groups */
} Search;

static bool has(const uint64_t *set, uint32_t k) { return set[k / 64] >> (k % 64) & 1; }
static void put(uint64_t *set, uint32_t k) { set[k / 64] |= UINT64_C(1) << (k % 64); }
static void drop(uint64_t *set, uint32_t k) { set[k / 64] &= ~(UINT64_C(1) << (k % 64)); }

static bool must_run(const LsDagNode *n) { return !n->alternative && (n->required || n->nupd > 0); }
static bool runs_once(const LsDagNode *n) { return n->once || n->nupd > 0; }

static LsRows makers_of(const LsBoundGraph *b, LsArena *arena)
{
    const LsDag *g = b->p->dag;
    LsRows r = {ls_arena_alloc(arena, g->ntensor + 2u, sizeof *r.at), NULL};
    for (uint32_t v = 0; v < g->nnode; v++)
        for (uint32_t k = 0; k < g->node[v].nout; k++)
            r.at[g->node[v].out[k] + 2]++;
    for (uint32_t t = 2; t < g->ntensor + 2; t++)
        r.at[t] += r.at[t - 1];
    r.id = ls_arena_alloc(arena, r.at[g->ntensor + 1] + 1u, sizeof *r.id);
    for (uint32_t v = 0; v < g->nnode; v++)
        for (uint32_t k = 0; k < g->node[v].nout; k++)
            r.id[r.at[g->node[v].out[k] + 1]++] = v;
    return r;
}

/* By node: the nodes that update what it reads. */
static LsRows updaters_of(const LsBoundGraph *b, LsArena *arena)
{
    const LsDag *g = b->p->dag;
    uint32_t *updater = ls_arena_alloc(arena, g->ntensor + 1u, sizeof *updater), n = 0;
    LsRows r = {ls_arena_alloc(arena, g->nnode + 1u, sizeof *r.at), NULL};
    memset(updater, 0xff, (g->ntensor + 1u) * sizeof *updater);
    for (uint32_t v = 0; v < g->nnode; v++)
        for (uint32_t k = 0; k < g->node[v].nupd && !g->node[v].alternative; k++)
            updater[g->node[v].upd[k]] = v;
    for (uint32_t v = 0; v < g->nnode; v++)
        n += g->node[v].nin;
    r.id = ls_arena_alloc(arena, n + 1u, sizeof *r.id);
    for (uint32_t v = 0; v < g->nnode; v++) {
        r.at[v + 1] = r.at[v];
        for (uint32_t k = 0; k < g->node[v].nin; k++)
            if (updater[g->node[v].in[k]] != LS_NO_ID && updater[g->node[v].in[k]] != v)
                r.id[r.at[v + 1]++] = updater[g->node[v].in[k]];
    }
    return r;
}

/* By tensor and by node that must run: the groups without which it cannot be. */
static void find_behind(Search *s)
{
    const LsBoundGraph *b = s->b;
    uint32_t n = b->p->n, w = s->group_words = (n + 63) / 64;
    uint64_t *of = ls_arena_alloc(s->arena, (size_t)n * w + 1, sizeof *of);
    s->behind = ls_arena_alloc(s->arena, (size_t)b->p->nt * w + 1, sizeof *s->behind);
    s->must_behind = of;
    for (uint32_t v = 0; v < n; v++) {
        if (b->group[v] != v)
            continue;
        put(of + (size_t)v * w, v);
        for (uint32_t k = b->in.at[v]; k < b->in.at[v + 1]; k++)
            for (uint32_t j = 0; j < w; j++)
                of[(size_t)v * w + j] |= s->behind[(size_t)b->in.id[k] * w + j];
        for (uint32_t k = b->out.at[v]; k < b->out.at[v + 1]; k++)
            memcpy(s->behind + (size_t)b->out.id[k] * w, of + (size_t)v * w, w * sizeof *of);
    }
}

/* Cost of all that must still run before what the state asks for is there. */
static double ahead(Search *s, const uint64_t *state)
{
    const LsBoundGraph *b = s->b;
    uint32_t w = s->group_words;
    double cost = 0;
    if (s->peak)
        return 0;
    memset(s->need, 0, w * sizeof *s->need);
    for (uint32_t k = 0; k < s->tensors; k++)
        for (uint64_t x = state[k]; x != 0; x &= x - 1) {
            uint32_t t = 64 * k + (uint32_t)__builtin_ctzll(x);
            for (uint32_t j = 0; j < w; j++)
                s->need[j] |= s->behind[(size_t)t * w + j];
        }
    for (uint32_t v = 0; v < b->p->n; v++)
        if (must_run(&s->dag->node[v]) && !has(state, s->bit[v]))
            for (uint32_t j = 0; j < w; j++)
                s->need[j] |= s->must_behind[(size_t)b->group[v] * w + j];
    for (uint32_t j = 0; j < w; j++)
        for (uint64_t x = s->need[j]; x != 0; x &= x - 1)
            cost += b->cost[64 * j + (uint32_t)__builtin_ctzll(x)];
    return cost;
}

static uint64_t hash_of(const uint64_t *word, uint32_t n)
{
    uint64_t h = 0;
    for (uint32_t k = 0; k < n; k++) {
        h = (h ^ word[k]) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    return h;
}

static void rehash(Search *s)
{
    s->slots = s->slots ? 2 * s->slots : 1024;
    s->table = ls_arena_alloc(s->arena, s->slots, sizeof *s->table);
    for (uint32_t k = 0; k < s->nstate; k++) {
        uint64_t h = hash_of(s->word + (size_t)k * s->words, s->words);
        while (s->table[h & (s->slots - 1)] != 0)
            h++;
        s->table[h & (s->slots - 1)] = k + 1;
    }
}

static void make_room(Search *s)
{
    uint32_t room = s->room, same = s->room;
    size_t used = (size_t)s->nstate * s->words, want = used + s->words;
    if (s->nstate < s->room)
        return;
    s->room = room ? 2 * room : 512;
    uint64_t *word = ls_arena_alloc(s->arena, (size_t)s->room * s->words, sizeof *word);
    double *best = ls_arena_alloc(s->arena, s->room, sizeof *best);
    bool *closed = ls_arena_alloc(s->arena, s->room, sizeof *closed);
    uint32_t *then = ls_arena_alloc(s->arena, s->room, sizeof *then);
    uint32_t *node = ls_arena_alloc(s->arena, s->room, sizeof *node);
    if (same > 0) {
        memcpy(word, s->word, (want - s->words) * sizeof *word);
        memcpy(best, s->best, s->nstate * sizeof *best);
        memcpy(closed, s->closed, s->nstate * sizeof *closed);
        memcpy(then, s->then, s->nstate * sizeof *then);
        memcpy(node, s->node, s->nstate * sizeof *node);
    }
    s->word = word;
    s->best = best;
    s->closed = closed;
    s->then = then;
    s->node = node;
}

/* The number of the state in s->next; a new one has best = INFINITY. */
static uint32_t find(Search *s)
{
    if (2 * (s->nstate + 1) > s->slots)
        rehash(s);
    uint64_t h = hash_of(s->next, s->words);
    for (;; h++) {
        uint32_t k = s->table[h & (s->slots - 1)];
        if (k == 0)
            break;
        if (memcmp(s->word + (size_t)(k - 1) * s->words, s->next, s->words * sizeof *s->next) == 0)
            return k - 1;
    }
    make_room(s);
    memcpy(s->word + (size_t)s->nstate * s->words, s->next, s->words * sizeof *s->next);
    s->best[s->nstate] = INFINITY;
    s->table[h & (s->slots - 1)] = s->nstate + 1;
    return s->nstate++;
}

static bool earlier(const Entry *a, const Entry *b)
{
    if (a->f != b->f)
        return a->f < b->f;
    return a->g != b->g ? a->g > b->g : a->state < b->state;
}

/* The state in s->next, reached with g; `node` leads from it to state `then`. */
static void offer(Search *s, double g, uint32_t then, uint32_t node)
{
    uint32_t k = find(s);
    if (s->closed[k] || s->best[k] <= g)
        return;
    s->best[k] = g;
    s->then[k] = then;
    s->node[k] = node;
    Entry e = {g + ahead(s, s->next), k, g};
    if (e.f >= s->enough) {
        s->left_out = true;
        return;
    }
    s->heap = ls_arena_grow(s->arena, s->heap, s->nheap, s->nheap + 1u, sizeof *s->heap,
                            &s->heap_room);
    uint32_t at = s->nheap++;
    for (; at > 0 && earlier(&e, &s->heap[(at - 1) / 2]); at = (at - 1) / 2)
        s->heap[at] = s->heap[(at - 1) / 2];
    s->heap[at] = e;
}

static Entry take(Search *s)
{
    Entry top = s->heap[0], last = s->heap[--s->nheap];
    uint32_t at = 0;
    for (uint32_t kid; (kid = 2 * at + 1) < s->nheap; at = kid) {
        kid += kid + 1 < s->nheap && earlier(&s->heap[kid + 1], &s->heap[kid]);
        if (!earlier(&s->heap[kid], &last))
            break;
        s->heap[at] = s->heap[kid];
    }
    s->heap[at] = last;
    return top;
}

static bool pair_fits(const Search *s, LsDagPair x)
{
    const LsProb *p = s->b->p;
    return s->padded ? p->inplace && ls_prob_fits(p, x) : ls_bound_pair_fits(p, x);
}

/* The most bytes that pairs of n from `pair` on can spare when `state` follows. */
static int64_t spared(const Search *s, const LsDagNode *n, const uint64_t *state, uint32_t pair,
                      uint64_t taken)
{
    int64_t best = 0;
    for (; pair < n->ninplace && pair < 64; pair++) {
        LsDagPair x = n->inplace[pair];
        bool may = !s->dag->tensor[x.in].persistent && !has(state, x.in)
                   && pair_fits(s, x);
        for (uint32_t k = 0; k < pair; k++)
            may &= !(taken >> k & 1) || (n->inplace[k].in != x.in && n->inplace[k].out != x.out);
        if (!may)
            continue;
        int64_t with = s->size[x.out]
                       + spared(s, n, state, pair + 1, taken | UINT64_C(1) << pair);
        best = with > best ? with : best;
    }
    return best;
}

/* Whether v may run just before `state`. */
static bool may_run(const Search *s, uint32_t v, const uint64_t *state)
{
    const LsDagNode *n = &s->dag->node[v];
    if (s->bit[v] != LS_NO_ID && runs_once(n) && has(state, s->bit[v]))
        return false;
    for (uint32_t k = s->updaters.at[v]; k < s->updaters.at[v + 1]; k++) {
        uint32_t u = s->updaters.id[k];
        if (s->bit[u] != LS_NO_ID && !has(state, s->bit[u]))
            return false;
    }
    for (uint32_t k = 0; k < n->nin; k++)
        if (ls_id_in(n->out, n->nout, n->in[k]))
            return false;
    return true;
}

/* Puts a run of v before state k. */
static void step_back(Search *s, uint32_t k, uint32_t v)
{
    const LsDagNode *n = &s->dag->node[v];
    const uint64_t *state = s->word + (size_t)k * s->words;
    int64_t bytes = s->workspace[v];
    if (!may_run(s, v, state))
        return;
    memcpy(s->next, state, s->words * sizeof *state);
    for (uint32_t j = 0; j < n->nout; j++) {
        drop(s->next, n->out[j]);
        bytes += s->size[n->out[j]];
    }
    for (uint32_t j = 0; j < n->nin; j++)
        if (!s->dag->tensor[n->in[j]].persistent)
            put(s->next, n->in[j]);
    if (s->bit[v] != LS_NO_ID)
        put(s->next, s->bit[v]);
    for (uint32_t w = 0; w < s->tensors; w++)
        for (uint64_t x = s->next[w]; x != 0; x &= x - 1)
            bytes += s->size[64 * w + (uint32_t)__builtin_ctzll(x)];
    double g = s->best[k];
    if (!s->peak && (double)bytes > s->budget + (double)s->spare[v])
        return;
    bytes -= s->b->p->inplace ? spared(s, n, state, 0, 0) : 0;
    if (s->peak)
        offer(s, (double)bytes > g ? (double)bytes : g, k, v);
    else if ((double)bytes <= s->budget)
        offer(s, g + n->cost, k, v);
}

static bool is_start(const Search *s, const uint64_t *state)
{
    bool start = true;
    for (uint32_t k = 0; k < s->tensors; k++)
        start &= state[k] == 0;
    for (uint32_t v = 0; v < s->dag->nnode && start; v++)
        start = s->bit[v] == LS_NO_ID || !must_run(&s->dag->node[v]) || has(state, s->bit[v]);
    return start;
}

static void expand(Search *s, uint32_t k)
{
    const LsDag *g = s->dag;
    for (uint32_t w = 0; w < s->tensors; w++)
        for (uint64_t x = s->word[(size_t)k * s->words + w]; x != 0; x &= x - 1) {
            uint32_t t = 64 * w + (uint32_t)__builtin_ctzll(x);
            for (uint32_t j = s->makers.at[t]; j < s->makers.at[t + 1]; j++)
                step_back(s, k, s->makers.id[j]);
        }
    for (uint32_t v = 0; v < g->nnode; v++)
        if (s->bit[v] != LS_NO_ID && must_run(&g->node[v])
            && !has(s->word + (size_t)k * s->words, s->bit[v]))
            step_back(s, k, v);
}

static LsOptimum run(Search *s, uint32_t most)
{
    LsOptimum r = {INFINITY, false, 0};
    double least = -1;          /* proven so far: f never falls but by rounding */
    while (s->nheap > 0) {
        Entry e = take(s);
        if (s->closed[e.state] || e.g > s->best[e.state])
            continue;
        least = e.f > least ? e.f : least;
        r.exact = is_start(s, s->word + (size_t)e.state * s->words);
        if (r.exact || r.states == most) {
            r.value = least;
            s->goal = e.state;
            return r;
        }
        s->closed[e.state] = true;
        r.states++;
        expand(s, e.state);
    }
    r.exact = !s->left_out;
    r.value = s->left_out ? s->enough : INFINITY;
    return r;
}

static void find_sizes(Search *s)
{
    const LsProb *p = s->b->p;
    s->size = ls_arena_alloc(s->arena, p->nt + 1u, sizeof *s->size);
    s->workspace = ls_arena_alloc(s->arena, p->n + 1u, sizeof *s->workspace);
    s->spare = ls_arena_alloc(s->arena, p->n + 1u, sizeof *s->spare);
    for (uint32_t t = 0; t < p->nt; t++)
        s->size[t] = s->padded ? p->size[t] : ls_bound_bytes(p, t);
    for (uint32_t v = 0; v < p->n; v++) {
        const LsDagNode *n = &s->dag->node[v];
        s->workspace[v] = s->padded ? p->workspace[v] : n->workspace;
        for (uint32_t k = 0; k < n->ninplace; k++)  /* a result of two pairs counts twice */
            s->spare[v] += pair_fits(s, n->inplace[k]) ? s->size[n->inplace[k].out] : 0;
    }
}

/* track: carry the nodes that must run or may run only once. */
static Search start(const LsBoundGraph *b, bool peak, bool track, bool padded)
{
    Search s = {.b = b, .dag = b->p->dag, .arena = ls_arena_new(), .peak = peak,
                .padded = padded, .enough = INFINITY};
    uint32_t n = b->p->n, bits = 0;
    s.tensors = (b->p->nt + 63) / 64;
    s.bit = ls_arena_alloc(s.arena, n + 1u, sizeof *s.bit);
    for (uint32_t v = 0; v < n; v++) {
        bool tracked = track && (must_run(&s.dag->node[v]) || runs_once(&s.dag->node[v]));
        s.bit[v] = tracked ? 64 * s.tensors + bits++ : LS_NO_ID;
    }
    s.words = s.tensors + (bits + 63) / 64;
    find_sizes(&s);
    s.makers = makers_of(b, s.arena);
    s.updaters = updaters_of(b, s.arena);
    if (!peak)
        find_behind(&s);
    s.next = ls_arena_alloc(s.arena, s.words + 1u, sizeof *s.next);
    s.need = ls_arena_alloc(s.arena, s.group_words + 1u, sizeof *s.need);
    return s;
}

static int64_t put_outputs(Search *s)
{
    int64_t bytes = 0;
    for (uint32_t t = 0; t < s->dag->ntensor; t++)
        if (s->dag->tensor[t].output && !s->dag->tensor[t].persistent) {
            put(s->next, t);
            bytes += s->size[t];
        }
    return bytes;
}

LsOptimum ls_optimum_cost(const LsBoundGraph *b, int64_t budget, double enough, uint32_t most)
{
    Search s = start(b, false, true, false);
    s.budget = (double)budget;
    s.enough = enough;
    LsOptimum r = {INFINITY, true, 0};
    if (put_outputs(&s) <= budget) {
        offer(&s, 0, LS_NO_ID, LS_NO_ID);
        r = run(&s, most);
    }
    ls_arena_free(s.arena);
    return r;
}

LsOptimum ls_optimum_peak(const LsBoundGraph *b, int64_t known, uint32_t most)
{
    Search s = start(b, true, true, false);
    int64_t bytes = put_outputs(&s);
    offer(&s, (double)(bytes > known ? bytes : known), LS_NO_ID, LS_NO_ID);
    LsOptimum r = run(&s, most);
    ls_arena_free(s.arena);
    return r;
}

LsOptimum ls_optimum_peak_of(const LsBoundGraph *b, uint32_t node, int64_t known, uint32_t most)
{
    Search s = start(b, true, false, false);
    const LsDagNode *n = &s.dag->node[node];
    for (uint32_t k = 0; k < n->nin; k++)
        if (!s.dag->tensor[n->in[k]].persistent)
            put(s.next, n->in[k]);
    offer(&s, (double)known, LS_NO_ID, LS_NO_ID);
    LsOptimum r = run(&s, most);
    r.exact = false;
    ls_arena_free(s.arena);
    return r;
}

/* What runs from the beginning that was found to the end. */
static LsSeq schedule_of(const Search *s, LsArena *arena)
{
    uint32_t n = 0;
    for (uint32_t k = s->goal; s->then[k] != LS_NO_ID; k = s->then[k])
        n++;
    LsSeq seq = {ls_arena_alloc(arena, n + 1u, sizeof *seq.node), 0};
    for (uint32_t k = s->goal; s->then[k] != LS_NO_ID; k = s->then[k])
        seq.node[seq.n++] = s->node[k];
    return seq;
}

LsOptimum ls_optimum_plan(LsArena *arena, const LsBoundGraph *b, int64_t budget, uint32_t most,
                          LsSeq *seq)
{
    bool peak = budget <= 0;
    Search s = start(b, peak, true, true);
    s.budget = (double)budget;
    int64_t bytes = put_outputs(&s);
    LsOptimum r = {INFINITY, true, 0};
    if (peak || bytes <= budget) {
        offer(&s, peak ? (double)bytes : 0, LS_NO_ID, LS_NO_ID);
        r = run(&s, most);
    }
    if (r.exact && r.value < INFINITY)
        *seq = schedule_of(&s, arena);
    ls_arena_free(s.arena);
    return r;
}
