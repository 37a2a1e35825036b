/* scheduler/local_search/window_search.c -- turns a window into a small graph and searches that
 * from its end. */
#include "scheduler/local_search/window_search.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "scheduler/state_search/best_first_search.h"

enum { MOST_NODES = 64 };
/* Work besides the search (search_limit.h): per window, and per node and tensor of the graph. */
enum { WINDOW_WORK = 140000, SIZE_WORK = 7 };
/* Work per operand, result and pair beyond those of windows of usual kernels. */
enum { USUAL_LISTED = 1000, LISTED_WORK = 100 };

typedef struct Part {
    const LsProb *p;
    LsArena *arena;
    const LsSeq *seq;
    const LsLive *live;
    const LsWindow *w;
    uint32_t *here;             /* by node: its number in the part + 1, or 0 */
    uint32_t node[MOST_NODES + 1], nnode;       /* node[0]: makes the tensors from outside */
    uint32_t *there;            /* by tensor: its number in the part + 1, or 0 */
    uint32_t *tensor, ntensor;
    bool *enters, *leaves;      /* by tensor of the graph: live before; live after */
    bool *ran;                  /* by node: it ran in the window */
    bool *barred;               /* by node: it reads a tensor updated before the window */
    uint64_t listed;            /* operands, results and pairs of the part's nodes */
} Part;

static void find_ends(Part *x)
{
    for (uint32_t k = 0; k < x->live->ninst; k++) {
        const LsInstance *in = &x->live->inst[k];
        x->enters[in->tensor] |= in->from < x->w->from && in->to >= x->w->from;
        x->leaves[in->tensor] |= in->from < x->w->to && in->to >= x->w->to;
    }
    for (uint32_t s = 0; s < x->w->from; s++) {
        uint32_t v = x->seq->node[s];
        for (uint32_t k = x->p->before.at[v]; k < x->p->before.at[v + 1]; k++)
            x->barred[x->p->before.id[k]] = true;
    }
}

static void take(Part *x, uint32_t v)
{
    bool may = v != LS_NO_ID && (x->ran[v] || (!x->p->stuck[v] && !x->barred[v]));
    if (may && x->here[v] == 0 && x->nnode < MOST_NODES) {
        x->node[x->nnode++] = v;
        x->here[v] = 1;
    }
}

/* Finds the nodes of the part: those that ran there, then the makers of their operands and of the
 * leaving tensors, near ones first, with their alternatives. */
static void find_nodes(Part *x)
{
    const LsProb *p = x->p;
    x->nnode = 1;
    for (uint32_t s = x->w->from; s < x->w->to; s++) {
        x->ran[x->seq->node[s]] = true;
        take(x, x->seq->node[s]);
    }
    for (uint32_t t = 0; t < p->nt; t++)
        if (x->leaves[t])
            take(x, p->maker[t]);
    for (uint32_t k = 1; k < x->nnode; k++) {
        uint32_t v = x->node[k];
        for (uint32_t j = p->in.at[v]; j < p->in.at[v + 1]; j++)
            take(x, p->maker[p->in.id[j]]);
        for (uint32_t j = p->out.at[v]; j < p->out.at[v + 1]; j++)
            take(x, p->maker[p->out.id[j]]);
        for (uint32_t j = p->swap.at[v]; j < p->swap.at[v + 1]; j++)
            take(x, p->swap.id[j]);
    }
}

static void sort_nodes(Part *x)
{
    for (uint32_t k = 2; k < x->nnode; k++) {
        uint32_t v = x->node[k], at = k;
        for (; at > 1 && x->node[at - 1] > v; at--)
            x->node[at] = x->node[at - 1];
        x->node[at] = v;
    }
    for (uint32_t k = 1; k < x->nnode; k++)
        x->here[x->node[k]] = k + 1;
}

static uint32_t number_of(Part *x, uint32_t t)
{
    if (x->there[t] == 0) {
        x->tensor[x->ntensor++] = t;
        x->there[t] = x->ntensor;
    }
    return x->there[t] - 1;
}

static const uint32_t *numbers_of(Part *x, const uint32_t *id, uint32_t n)
{
    uint32_t *to = ls_arena_alloc(x->arena, n + 1u, sizeof *to);
    for (uint32_t k = 0; k < n; k++)
        to[k] = number_of(x, id[k]);
    return to;
}

static LsDagNode copy_node(Part *x, uint32_t v)
{
    LsDagNode n = x->p->dag->node[v];
    LsDagPair *pair = ls_arena_alloc(x->arena, n.ninplace + 1u, sizeof *pair);
    n.in = numbers_of(x, n.in, n.nin);
    n.out = numbers_of(x, n.out, n.nout);
    n.upd = numbers_of(x, n.upd, n.nupd);
    for (uint32_t k = 0; k < n.ninplace; k++)
        pair[k] = (LsDagPair){number_of(x, n.inplace[k].out), number_of(x, n.inplace[k].in)};
    n.inplace = pair;
    x->listed += (uint64_t)n.nin + n.nout + n.nupd + n.ninplace;
    n.required &= x->ran[v];
    n.of = -1;
    return n;
}

/* Returns the part as a graph. Its first node stands for everything before the window: it makes the
 * tensors that no other node of the part makes, and never runs. */
static LsDag *graph_of(Part *x)
{
    const LsDag *whole = x->p->dag;
    LsDag *g = ls_arena_alloc(x->arena, 1, sizeof *g);
    *g = (LsDag){.name = "part", .alignment = whole->alignment, .nnode = x->nnode};
    g->node = ls_arena_alloc(x->arena, x->nnode + 1u, sizeof *g->node);
    for (uint32_t k = 1; k < x->nnode; k++)
        g->node[k] = copy_node(x, x->node[k]);
    g->ntensor = x->ntensor;
    g->tensor = ls_arena_alloc(x->arena, x->ntensor + 1u, sizeof *g->tensor);
    uint32_t *first = ls_arena_alloc(x->arena, x->ntensor + 1u, sizeof *first), nfirst = 0;
    for (uint32_t k = 0; k < x->ntensor; k++) {
        uint32_t t = x->tensor[k];
        g->tensor[k] = whole->tensor[t];
        g->tensor[k].output = x->leaves[t];
        uint32_t maker = x->p->maker[t];
        if (!whole->tensor[t].persistent && (maker == LS_NO_ID || x->here[maker] == 0))
            first[nfirst++] = k;
    }
    g->node[0] = (LsDagNode){.name = "before", .op = "", .out = first, .nout = nfirst, .of = -1};
    return g;
}

static double cost_of(const Part *x)
{
    double cost = 0;
    for (uint32_t s = x->w->from; s < x->w->to; s++)
        cost += x->p->cost[x->seq->node[s]];
    return cost;
}

static LsSeq replace(const Part *x, LsArena *arena, const LsSeq *part)
{
    const LsSeq *old = x->seq;
    LsSeq seq = {ls_arena_alloc(arena, old->n + part->n + 1u, sizeof *seq.node), 0};
    for (uint32_t s = 0; s < x->w->from; s++)
        seq.node[seq.n++] = old->node[s];
    for (uint32_t s = 0; s < part->n; s++)
        seq.node[seq.n++] = x->node[part->node[s]];
    for (uint32_t s = x->w->to; s < old->n; s++)
        seq.node[seq.n++] = old->node[s];
    return seq;
}

static Part begin(LsArena *arena, const LsProb *p, const LsSeq *seq, const LsLive *live,
                  const LsWindow *w)
{
    Part x = {.p = p, .arena = arena, .seq = seq, .live = live, .w = w};
    x.here = ls_arena_alloc(arena, p->n + 1u, sizeof *x.here);
    x.there = ls_arena_alloc(arena, p->nt + 1u, sizeof *x.there);
    x.tensor = ls_arena_alloc(arena, p->nt + 1u, sizeof *x.tensor);
    x.enters = ls_arena_alloc(arena, p->nt + 1u, sizeof *x.enters);
    x.leaves = ls_arena_alloc(arena, p->nt + 1u, sizeof *x.leaves);
    x.ran = ls_arena_alloc(arena, p->n + 1u, sizeof *x.ran);
    x.barred = ls_arena_alloc(arena, p->n + 1u, sizeof *x.barred);
    return x;
}

/* Returns the tensors available at the start, the nodes barred for lack of operands, and the budget
 * less the bytes that pass through. */
static LsOptimumPart ends_of(Part *x, const LsDag *g)
{
    bool *have = ls_arena_alloc(x->arena, g->ntensor + 1u, sizeof *have);
    bool *barred = ls_arena_alloc(x->arena, g->nnode + 1u, sizeof *barred);
    LsOptimumPart ends = {.have = have, .barred = barred, .budget = x->w->target};
    for (uint32_t t = 0; t < x->p->nt; t++)
        if (x->there[t])
            have[x->there[t] - 1] = x->enters[t];
        else if (x->leaves[t])
            ends.budget -= x->p->size[t];
    barred[0] = true;
    for (uint32_t k = 1; k < g->nnode; k++)
        for (uint32_t j = 0; j < g->node[k].nin; j++)
            barred[k] |= !have[g->node[k].in[j]]
                         && ls_id_in(g->node[0].out, g->node[0].nout, g->node[k].in[j]);
    return ends;
}

bool ls_window_improve(LsArena *arena, const LsProb *p, const LsSeq *seq, const LsLive *live,
                       const LsWindow *w, LsSeq *better, LsWindowSpent *spent)
{
    assert(w->from < w->to && w->to <= seq->n);
    LsArena *own = ls_arena_new();
    Part x = begin(own, p, seq, live, w);
    find_ends(&x);
    find_nodes(&x);
    sort_nodes(&x);
    LsDag *g = graph_of(&x);
    LsOptimumPart ends = ends_of(&x, g);
    LsBoundGraph *b = ls_bound_graph_new(own, ls_prob_new(own, g, p->inplace));
    LsSeq part;
    double enough = w->fit ? INFINITY : cost_of(&x) * (1 - 1e-9);
    LsOptimum o = ls_optimum_part(own, b, &ends, enough, w->most, &part);
    spent->states += o.states;
    spent->work += WINDOW_WORK + (uint64_t)SIZE_WORK * (p->n + p->nt) + o.work;
    if (x.listed > USUAL_LISTED)
        spent->work += LISTED_WORK * (x.listed - USUAL_LISTED);
    bool found = o.exact && o.value < INFINITY;
    if (found)
        *better = replace(&x, arena, &part);
    ls_arena_free(own);
    return found;
}
