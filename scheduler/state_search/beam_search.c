/* scheduler/state_search/beam_search.c -- one heap of states per number of nodes left, expanded
 * from the most to none. */
#include "scheduler/state_search/beam_search.h"

#include <math.h>

#include "scheduler/state_search/state_expand.h"
#include "scheduler/state_search/state_heap.h"

typedef struct Beam {
    LsTails *t;
    const LsBeamOptions *o;
    LsTailHeap *heap;           /* by nodes left: the best states, the worst on top */
    double *most;               /* by nodes left: the rank that a state must beat */
    uint32_t now;               /* nodes left in the states being expanded */
    uint32_t goal;              /* the cheapest complete schedule found, or LS_NO_ID */
    uint64_t most_work;         /* as LsTails counts it */
    LsBeamResult r;
} Beam;

/* Heaps hold some more entries than are expanded: some prove not to be the cheapest way to their
 * state. */
static uint32_t room_of(const Beam *b) { return b->o->width + b->o->width / 4; }

static void put(Beam *b, uint32_t k)
{
    const LsTail *tail = &b->t->tail[k];
    uint32_t left = ls_tails_left(b->t, k);
    left = left < b->now ? left : b->now;           /* an alternative may leave more */
    LsTailHeap *heap = &b->heap[left];
    if (tail->cost + tail->ahead >= b->r.cost)
        return;
    if (ls_tails_is_start(b->t, k)) {
        b->goal = k;
        b->r.cost = tail->cost;
        return;
    }
    ls_tail_heap_put(heap, b->t->arena,
                     (LsTailEntry){-ls_tails_rank(b->t, tail), k, tail->cost});
    if (heap->n > room_of(b))
        ls_tail_heap_take(heap);
    if (heap->n == room_of(b))
        b->most[left] = -heap->entry[0].least;
}

/* Moves the states with `left` nodes left to a heap with the best on top. */
static void collect(Beam *b, uint32_t left, LsTailHeap *best)
{
    LsTailHeap *heap = &b->heap[left];
    for (uint32_t k = 0; k < heap->n; k++) {
        LsTailEntry e = heap->entry[k];
        e.least = -e.least;
        ls_tail_heap_put(best, b->t->arena, e);
    }
    heap->n = 0;
}

/* Expands the states with `left` nodes left. Recomputations leave as many nodes, so their states
 * enter the same heap. */
static void advance(Beam *b, uint32_t left)
{
    b->now = left;
    LsTailHeap best = {0};
    collect(b, left, &best);
    for (uint32_t tried = 0; tried < b->o->width && best.n > 0 && b->t->work < b->most_work;) {
        LsTailEntry e = ls_tail_heap_take(&best);
        const LsTail *tail = &b->t->tail[e.state];
        if (tail->closed || e.cost > tail->cost || tail->cost + tail->ahead >= b->r.cost)
            continue;
        tried++;
        b->r.states++;
        ls_tails_expand(b->t, e.state);
        for (uint32_t k = 0; k < b->t->nfresh; k++)
            put(b, b->t->fresh[k]);
        collect(b, left, &best);
    }
}

LsBeamResult ls_beam(LsArena *arena, const LsBoundGraph *graph, const LsBeamOptions *options,
                     LsSeq *seq)
{
    LsTails *t = ls_tails_new(graph, (LsTailOptions){.budget = options->budget, .track = true,
                                                     .padded = true});
    uint32_t n = graph->p->n, end = ls_tails_end(t, LS_NO_ID, 0);
    Beam b = {.t = t, .o = options, .now = n, .goal = LS_NO_ID, .r = {options->enough, 0}};
    t->byte_price = options->price * graph->base / (double)options->budget;
    b.most_work = (uint64_t)LS_TAIL_STATE_WORK * options->width * (n + 1);
    b.heap = ls_arena_alloc(t->arena, n + 1u, sizeof *b.heap);
    b.most = ls_arena_alloc(t->arena, n + 1u, sizeof *b.most);
    for (uint32_t left = 0; left <= n; left++)
        b.most[left] = INFINITY;
    t->most = b.most;
    if (t->tail[end].bytes <= options->budget)
        put(&b, end);
    for (uint32_t left = n + 1; left-- > 0;)
        advance(&b, left);
    if (b.goal != LS_NO_ID)
        *seq = ls_tails_schedule(t, b.goal, arena);
    else
        b.r.cost = INFINITY;
    b.r.states = ls_tails_count(b.r.states, t->work);
    ls_tails_free(t);
    return b.r;
}
