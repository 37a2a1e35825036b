/* scheduler/strategies/order_beam.c -- beam search for the order of all nodes with the least peak.
 *
 * Without a backward pass the order matters more than any recomputation. A state is the set of
 * nodes that have run. Each step keeps the states with the least sum of peak so far and live bytes.
 * Among ways to the same set, the lower peak wins. */
#include <stdlib.h>
#include <string.h>

#include "scheduler/strategies/published_strategies.h"

typedef struct State {
    uint64_t hash;              /* of the set of nodes that have run */
    int64_t live, peak;         /* bytes: in memory, most so far */
    uint32_t *reads;            /* by tensor: readers yet to run */
    uint32_t *waits;            /* by node: predecessors yet to run */
    uint32_t *ready, nready;    /* nodes that may run next */
} State;

typedef struct Way { double score; uint64_t hash; int64_t live, peak; uint32_t from, node; } Way;

typedef struct Step { uint32_t from, node; } Step;

typedef struct Beam {
    const LsProb *p;
    LsArena *arena;
    uint32_t width, total;      /* states, steps */
    LsRows then;                /* by node: the nodes that wait for it */
    LsRows pair;                /* by node: in-place pairs, without those whose operand or result an
                                 * earlier pair may take */
    State first, *now, *next; uint32_t n;
    Way *way; uint32_t nway, room;
    uint64_t ways;              /* ways examined so far */
    Step *step;                 /* by step, by state */
} Beam;

static uint64_t mix(uint64_t x)
{
    x = (x + 1) * UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ (x >> 32);
}

static State new_state(const Beam *b)
{
    return (State){.reads = ls_arena_alloc(b->arena, b->p->nt + 1u, sizeof(uint32_t)),
                   .waits = ls_arena_alloc(b->arena, b->p->n + 1u, sizeof(uint32_t)),
                   .ready = ls_arena_alloc(b->arena, b->p->n + 1u, sizeof(uint32_t))};
}

/* Finds the predecessors of each node: makers of its operands, and readers of the tensors it
 * updates. */
static void find_edges(Beam *b)
{
    const LsProb *p = b->p;
    LsPairs then = {0};
    for (uint32_t v = 0; v < p->n; v++) {
        if (!p->needed[v])
            continue;
        uint32_t before = then.n;
        for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++)
            ls_pairs_add(b->arena, &then, p->maker[p->in.id[k]], v);
        for (uint32_t k = p->before.at[v]; k < p->before.at[v + 1]; k++)
            if (p->needed[p->before.id[k]])
                ls_pairs_add(b->arena, &then, p->before.id[k], v);
        b->first.waits[v] = then.n - before;
    }
    b->then = ls_rows(b->arena, &then, p->n);
}

static void find_pairs(Beam *b)
{
    const LsProb *p = b->p;
    LsPairs usable = {0};
    uint32_t *met = ls_arena_alloc(b->arena, p->nt + 1u, sizeof *met);     /* node + 1 */
    for (uint32_t v = 0; v < p->n && p->inplace; v++)
        for (uint32_t k = 0; k < p->dag->node[v].ninplace; k++) {
            LsDagPair x = p->dag->node[v].inplace[k];
            if (ls_prob_fits(p, x) && met[x.in] != v + 1 && met[x.out] != v + 1)
                ls_pairs_add(b->arena, &usable, v, k);
            met[x.in] = met[x.out] = v + 1;
        }
    b->pair = ls_rows(b->arena, &usable, p->n);
}

static Beam new_beam(LsArena *arena, const LsProb *p, uint32_t width)
{
    Beam b = {.p = p, .arena = arena, .width = width};
    b.first = new_state(&b);
    find_edges(&b);
    find_pairs(&b);
    for (uint32_t t = 0; t < p->nt; t++)
        b.first.reads[t] = p->dag->tensor[t].output;
    for (uint32_t v = 0; v < p->n; v++) {
        if (!p->needed[v])
            continue;
        b.total++;
        for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++)
            b.first.reads[p->in.id[k]]++;
        if (b.first.waits[v] == 0)
            b.first.ready[b.first.nready++] = v;
    }
    b.now = ls_arena_alloc(arena, width, sizeof *b.now);
    b.next = ls_arena_alloc(arena, width, sizeof *b.next);
    for (uint32_t k = 0; k < width; k++) {
        b.now[k] = k == 0 ? b.first : new_state(&b);
        b.next[k] = new_state(&b);
    }
    b.n = 1;
    b.step = ls_arena_alloc(arena, (size_t)b.total * width + 1, sizeof *b.step);
    return b;
}

/* Returns the bytes of results of v in the places of operands that v is the last to read. */
static int64_t saved(const Beam *b, const State *s, uint32_t v)
{
    const LsDagPair *pair = b->p->dag->node[v].inplace;
    int64_t bytes = 0;
    for (uint32_t k = b->pair.at[v]; k < b->pair.at[v + 1]; k++)
        if (s->reads[pair[b->pair.id[k]].in] == 1)
            bytes += b->p->size[pair[b->pair.id[k]].out];
    return bytes;
}

/* Returns the way that runs v, a ready node. */
static Way follow(const Beam *b, uint32_t from, uint32_t v)
{
    const LsProb *p = b->p;
    const State *s = &b->now[from];
    Way w = {.hash = s->hash ^ mix(v), .live = s->live, .peak = s->peak, .from = from, .node = v};
    int64_t during = s->live + p->workspace[v] - saved(b, s, v);
    for (uint32_t k = p->out.at[v]; k < p->out.at[v + 1]; k++) {
        during += p->size[p->out.id[k]];
        w.live += s->reads[p->out.id[k]] > 0 ? p->size[p->out.id[k]] : 0;
    }
    for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++)
        w.live -= s->reads[p->in.id[k]] == 1 ? p->size[p->in.id[k]] : 0;
    w.peak = during > w.peak ? during : w.peak;
    w.score = (double)w.live + (double)w.peak;
    return w;
}

static int by_score(const void *x, const void *y)
{
    const Way *a = x, *b = y;
    if (a->score != b->score)
        return a->score < b->score ? -1 : 1;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

/* Makes *to the state after the way. */
static void enter(const Beam *b, const Way *w, State *to)
{
    const LsProb *p = b->p;
    const State *s = &b->now[w->from];
    to->hash = w->hash;
    to->live = w->live;
    to->peak = w->peak;
    to->nready = 0;
    memcpy(to->reads, s->reads, p->nt * sizeof *to->reads);
    memcpy(to->waits, s->waits, p->n * sizeof *to->waits);
    for (uint32_t k = 0; k < s->nready; k++)
        if (s->ready[k] != w->node)
            to->ready[to->nready++] = s->ready[k];
    for (uint32_t k = p->in.at[w->node]; k < p->in.at[w->node + 1]; k++)
        to->reads[p->in.id[k]]--;
    for (uint32_t k = b->then.at[w->node]; k < b->then.at[w->node + 1]; k++)
        if (--to->waits[b->then.id[k]] == 0)
            to->ready[to->nready++] = b->then.id[k];
}

static bool is_new(const State *s, uint32_t n, uint64_t hash)
{
    for (uint32_t k = 0; k < n; k++)
        if (s[k].hash == hash)
            return false;
    return true;
}

/* Advances all states by one step, or only the best if so many nodes are ready that all states
 * would take too long. */
static void advance(Beam *b, Step *step)
{
    enum { MOST_WAYS = 10000000 };
    uint32_t n = 0, width = b->ways < MOST_WAYS ? b->width : 1;
    b->nway = 0;
    for (uint32_t k = 0; k < b->n; k++)
        for (uint32_t j = 0; j < b->now[k].nready; j++) {
            b->way = ls_arena_grow(b->arena, b->way, b->nway, b->nway + 1u, sizeof *b->way,
                                   &b->room);
            b->way[b->nway++] = follow(b, k, b->now[k].ready[j]);
        }
    b->ways += b->nway;
    qsort(b->way, b->nway, sizeof *b->way, by_score);
    for (uint32_t k = 0; k < b->nway && n < width; k++) {
        if (!is_new(b->next, n, b->way[k].hash))
            continue;
        enter(b, &b->way[k], &b->next[n]);
        step[n++] = (Step){b->way[k].from, b->way[k].node};
    }
    State *old = b->now;
    b->now = b->next;
    b->next = old;
    b->n = n;
}

/* Limits: steps of all states, and width. */
enum { LOOKS = 150000, WIDEST = 1024 };

void ls_strategy_order(LsCandidates *pool)
{
    enum { MOST = 3000 };
    const LsProb *p = pool->prob;
    if (p->n == 0 || p->n > MOST || pool->has_turn)
        return;
    LsArena *arena = ls_arena_new();
    Beam b = new_beam(arena, p, LOOKS / p->n < WIDEST ? LOOKS / p->n : WIDEST);
    for (uint32_t k = 0; k < b.total; k++)
        advance(&b, b.step + (size_t)k * b.width);
    LsSeq seq = {ls_arena_alloc(arena, b.total + 1u, sizeof *seq.node), b.total};
    for (uint32_t k = b.total, at = 0; k-- > 0;) {
        Step s = b.step[(size_t)k * b.width + at];
        seq.node[k] = s.node;
        at = s.from;
    }
    if (pool->n == 0 || b.now[0].peak < pool->cand[0].peak)
        ls_candidates_offer(pool, &seq, "auto");
    ls_arena_free(arena);
}
