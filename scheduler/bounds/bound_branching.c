/* scheduler/bounds/bound_branching.c -- best-first branch and bound; each case, a leaf of the tree,
 * is a list of decisions. */
#include "scheduler/bounds/bound_branching.h"

#include <math.h>
#include <string.h>

enum { DEEPEST = 200, CUTS = 10 };

#define NONE UINT32_MAX

typedef struct Case {
    uint32_t parent, deep;      /* number of decisions */
    uint32_t x;                 /* the last decision: number in net->again */
    int8_t choice;
    double grains;              /* bound proven for the case */
    double *price;
} Case;

typedef struct Tree {
    LsBoundDual *d;
    LsArena *arena;
    int64_t budget;
    double enough;
    Case *list; uint32_t nlist, list_room;
    uint32_t *heap, nheap, heap_room;       /* open cases, the least bound first */
    double least_done;          /* least bound of the cases that no decision improves */
} Tree;

static bool before(const Tree *t, uint32_t a, uint32_t b)
{
    if (t->list[a].grains != t->list[b].grains)
        return t->list[a].grains < t->list[b].grains;
    return a < b;
}

static void open_case(Tree *t, uint32_t c)
{
    t->heap = ls_arena_grow(t->arena, t->heap, t->nheap, t->nheap + 1u, sizeof *t->heap,
                            &t->heap_room);
    uint32_t at = t->nheap++;
    for (; at > 0 && before(t, c, t->heap[(at - 1) / 2]); at = (at - 1) / 2)
        t->heap[at] = t->heap[(at - 1) / 2];
    t->heap[at] = c;
}

static uint32_t take_case(Tree *t)
{
    uint32_t top = t->heap[0], last = t->heap[--t->nheap], at = 0;
    for (uint32_t kid; (kid = 2 * at + 1) < t->nheap; at = kid) {
        kid += kid + 1 < t->nheap && before(t, t->heap[kid + 1], t->heap[kid]);
        if (!before(t, t->heap[kid], last))
            break;
        t->heap[at] = t->heap[kid];
    }
    t->heap[at] = last;
    return top;
}

/* Applies the decisions of a case to the network. */
static void enter(Tree *t, uint32_t c)
{
    for (uint32_t x = 0; x < t->d->net->nagain; x++)
        if (t->d->choice[x] != 0)
            ls_bound_dual_choose(t->d, x, 0);
    for (; c != NONE && t->list[c].deep > 0; c = t->list[c].parent)
        ls_bound_dual_choose(t->d, t->list[c].x, t->list[c].choice);
}

/* Returns the stake of number x of net->again at the last prices, grains. */
static double stake(const LsBoundDual *d, uint32_t x)
{
    const LsBoundGraph *b = d->net->b;
    const LsBoundAgain *again = &d->net->again[x];
    double bytes = 0;
    for (uint32_t j = b->out.at[again->group]; j < b->out.at[again->group + 1]; j++)
        bytes += (double)ls_bound_bytes(b->p, b->out.id[j]);
    return (double)again->cost + 0.01 * d->price[again->k] * bytes;
}

/* Returns the run that the last prices leave most undecided, weighted by its stake; NONE: none is
 * undecided. */
static uint32_t undecided(const LsBoundDual *d)
{
    uint32_t best = NONE, n = d->net->nagain;
    double most = 0, total = 0;
    for (uint32_t i = 0; i < d->nsolution; i++)
        total += d->weight[i];
    for (uint32_t x = 0; total > 0 && x < n; x++) {
        double part = 0;
        for (uint32_t i = 0; i < d->nsolution; i++)
            part += d->runs[(size_t)i * n + x] ? d->weight[i] / total : 0;
        part = part < 0.5 ? part : 1 - part;
        if (d->choice[x] != 0 || part < 1e-6)
            continue;
        double score = part * stake(d, x);
        if (score > most) {
            most = score;
            best = x;
        }
    }
    return best;
}

/* Bounds the case, then opens its two halves. */
static void expand(Tree *t, uint32_t c)
{
    LsBoundDual *d = t->d;
    uint32_t n = d->net->nsep;
    enter(t, c);
    memcpy(d->price, t->list[c].price, n * sizeof *d->price);
    double grains = ls_bound_dual_search(d, t->budget, t->enough, CUTS);
    grains = grains > t->list[c].grains ? grains : t->list[c].grains;
    if (grains > (double)d->most || grains >= t->enough)        /* closed */
        return;
    uint32_t x = d->reached || t->list[c].deep >= DEEPEST ? NONE : undecided(d);
    if (x == NONE) {
        t->least_done = grains < t->least_done ? grains : t->least_done;
        return;
    }
    double *price = ls_arena_alloc(t->arena, n + 1u, sizeof *price);
    memcpy(price, d->price, n * sizeof *price);
    for (int8_t choice = -1; choice <= 1; choice += 2) {
        t->list = ls_arena_grow(t->arena, t->list, t->nlist, t->nlist + 1u, sizeof *t->list,
                                &t->list_room);
        t->list[t->nlist] = (Case){c, t->list[c].deep + 1, x, choice, grains, price};
        open_case(t, t->nlist++);
    }
}

double ls_bound_tree(LsBoundDual *d, int64_t budget, double enough, double grains, uint64_t work)
{
    const LsFlow *f = &d->net->flow;
    /* about the ns of a min-cut and of the next prices */
    uint64_t each = 25 * ((uint64_t)f->n + f->nedge) + 40000, from = d->cuts;
    Tree t = {.d = d, .arena = ls_arena_new(), .budget = budget, .enough = enough,
              .least_done = INFINITY};
    t.list = ls_arena_grow(t.arena, NULL, 0, 1, sizeof *t.list, &t.list_room);
    t.list[0] = (Case){NONE, 0, NONE, 0, grains,
                       ls_arena_alloc(t.arena, d->net->nsep + 1u, sizeof(double))};
    memcpy(t.list[0].price, d->price, d->net->nsep * sizeof(double));
    t.nlist = 1;
    open_case(&t, 0);
    while (t.nheap > 0 && (d->cuts - from) * each < work
           && t.list[t.heap[0]].grains < t.least_done)
        expand(&t, take_case(&t));
    double least = t.nheap > 0 ? t.list[t.heap[0]].grains : INFINITY;
    least = t.least_done < least ? t.least_done : least;
    enter(&t, NONE);
    memcpy(d->price, t.list[0].price, d->net->nsep * sizeof(double));
    ls_arena_free(t.arena);
    if (least == INFINITY && enough < INFINITY)     /* all cases reached `enough` */
        least = enough;
    return least > grains ? least : grains;
}
