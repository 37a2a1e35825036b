/* scheduler/state_search/best_first_search.c -- A* over the states of state_table.h. */
#include "scheduler/state_search/best_first_search.h"

#include <assert.h>
#include <math.h>

#include "scheduler/state_search/state_expand.h"
#include "scheduler/state_search/state_heap.h"

typedef struct Search {
    LsTails *t;
    LsTailHeap heap;
    double enough;              /* states of this cost or more are left out */
    bool left_out;
    uint32_t goal;              /* the start state that was found */
} Search;

static void put(Search *s, uint32_t k)
{
    const LsTail *tail = &s->t->tail[k];
    double least = tail->cost + tail->ahead;
    if (least >= s->enough)
        s->left_out = true;
    else
        ls_tail_heap_put(&s->heap, s->t->arena, (LsTailEntry){least, k, tail->cost});
}

/* Returns the work of so many states. In large graphs a few states examine every node. */
static uint64_t work_of(const LsTails *t, uint32_t states)
{
    enum { EACH_NODE = 400, FEW = 16 };
    return (uint64_t)LS_TAIL_STATE_WORK * states + (uint64_t)EACH_NODE * FEW * t->dag->nnode;
}

static LsOptimum run(Search *s, uint32_t most)
{
    LsOptimum r = {.value = INFINITY};
    const uint64_t most_work = work_of(s->t, most);
    double least = -1;          /* the bound proven so far, which never falls */
    while (s->heap.n > 0) {
        LsTailEntry e = ls_tail_heap_take(&s->heap);
        const LsTail *tail = &s->t->tail[e.state];
        if (tail->closed || e.cost > tail->cost)
            continue;
        least = e.least > least ? e.least : least;
        r.exact = ls_tails_is_start(s->t, e.state);
        if (r.exact || r.states == most || s->t->work >= most_work) {
            r.value = least;
            r.work = s->t->work;
            s->goal = e.state;
            return r;
        }
        r.states++;
        ls_tails_expand(s->t, e.state);
        for (uint32_t k = 0; k < s->t->nfresh; k++)
            put(s, s->t->fresh[k]);
    }
    r.work = s->t->work;
    r.exact = !s->left_out;
    r.value = s->left_out ? s->enough : INFINITY;
    return r;
}

static Search start(const LsBoundGraph *b, LsTailOptions o, uint32_t node, double cost)
{
    Search s = {.t = ls_tails_new(b, o), .enough = INFINITY};
    uint32_t end = ls_tails_end(s.t, node, cost);
    double bytes = (double)s.t->tail[end].bytes;
    if (o.peak && s.t->tail[end].cost < bytes)
        s.t->tail[end].cost = bytes;
    if (o.peak || s.t->tail[end].bytes <= o.budget)
        put(&s, end);
    return s;
}

LsOptimum ls_optimum_cost(const LsBoundGraph *b, int64_t budget, double enough, uint32_t most)
{
    Search s = start(b, (LsTailOptions){.budget = budget, .track = true}, LS_NO_ID, 0);
    s.enough = enough;
    LsOptimum r = run(&s, most);
    ls_tails_free(s.t);
    return r;
}

LsOptimum ls_optimum_peak(const LsBoundGraph *b, int64_t known, uint32_t most)
{
    Search s = start(b, (LsTailOptions){.peak = true, .track = true}, LS_NO_ID, (double)known);
    LsOptimum r = run(&s, most);
    ls_tails_free(s.t);
    return r;
}

LsOptimum ls_optimum_peak_of(const LsBoundGraph *b, uint32_t node, int64_t known, uint32_t most)
{
    Search s = start(b, (LsTailOptions){.peak = true}, node, (double)known);
    LsOptimum r = run(&s, most);
    r.exact = false;
    ls_tails_free(s.t);
    return r;
}

/* Runs the search and sets *seq, from `arena`, if a schedule was found. */
static LsOptimum find(LsArena *arena, Search *s, double enough, uint32_t most, LsSeq *seq)
{
    s->enough = enough;
    LsOptimum r = run(s, most);
    if (r.exact && r.value < INFINITY)
        *seq = ls_tails_schedule(s->t, s->goal, arena);
    ls_tails_free(s->t);
    return r;
}

LsOptimum ls_optimum_plan(LsArena *arena, const LsBoundGraph *b, int64_t budget, double enough,
                          uint32_t most, LsSeq *seq)
{
    LsTailOptions o = {.budget = budget, .peak = budget <= 0, .track = true, .padded = true};
    Search s = start(b, o, LS_NO_ID, 0);
    return find(arena, &s, enough, most, seq);
}

LsOptimum ls_optimum_part(LsArena *arena, const LsBoundGraph *b, const LsOptimumPart *part,
                          double enough, uint32_t most, LsSeq *seq)
{
    assert(part->have != NULL && part->barred != NULL);
    LsTailOptions o = {.budget = part->budget, .track = true, .padded = true, .have = part->have,
                       .barred = part->barred};
    Search s = start(b, o, LS_NO_ID, 0);
    return find(arena, &s, enough, most, seq);
}
