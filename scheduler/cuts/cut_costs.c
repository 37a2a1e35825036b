/* scheduler/cuts/cut_costs.c -- see the header. */
#include "scheduler/cuts/cut_costs.h"

#include "scheduler/cuts/cut_tensors.h"
#include "scheduler/cuts/node_times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool meets(const uint64_t *a, const uint64_t *b, uint32_t nword)
{
    for (uint32_t w = 0; w < nword; w++)
        if (a[w] & b[w])
            return true;
    return false;
}

static bool holds(const uint64_t *a, const uint64_t *b, uint32_t nword)
{
    for (uint32_t w = 0; w < nword; w++)
        if (b[w] & ~a[w])
            return false;
    return true;
}

/* A result that may lie in the place of an operand needs none of its own. */
static int64_t touched(const LsProb *p, uint32_t i)
{
    const LsDagNode *node = &p->dag->node[i];
    int64_t bytes = 0;
    for (uint32_t k = p->in.at[i]; k < p->in.at[i + 1]; k++)
        bytes += p->size[p->in.id[k]];
    for (uint32_t k = p->out.at[i]; k < p->out.at[i + 1]; k++) {
        bool own = true;
        for (uint32_t j = 0; j < node->ninplace; j++)
            own &= node->inplace[j].out != p->out.id[k];
        bytes += own ? p->size[p->out.id[k]] : 0;
    }
    return bytes;
}

static bool has_alternative(const LsProb *p, uint32_t i)
{
    return p->swap.at[i] < p->swap.at[i + 1];
}

/* A set of nodes as a set of vertices. */
static const uint64_t *of_vertices(LsArena *arena, const LsForward *f, const LsAnchors *a,
                                   uint32_t node)
{
    const uint64_t *places = a->places + (size_t)node * a->nword;
    uint64_t *set = ls_arena_alloc(arena, f->nword, sizeof *set);
    for (uint32_t v = 0; v < f->n; v++)
        if (ls_bit(places, f->node[v]))
            ls_bit_add(set, v);
    return set;
}

/* Bytes that a run of the node touches while as many micro-batches as ever hold something. For sure
 * only those of phase B, and of W where it is a part of B. */
static int64_t need_of(const LsCutCosts *c, const LsAnchors *a, const LsCertain *sure, uint32_t i)
{
    const LsProb *p = c->f->prob;
    const bool certain = sure->runs[i] && p->dag->node[i].kind != LS_DAG_OPTIMIZER
                         && !(c->model.apart && ls_phase_of(p, i) == LS_PHASE_W);
    return a->loose[i] || has_alternative(p, i) || (c->model.sure && !certain) ? 0 : touched(p, i);
}

static void add_times(LsArena *arena, LsCutCosts *c, const LsAnchors *a, const LsCertain *sure)
{
    const LsProb *p = c->f->prob;
    c->loose = ls_arena_alloc(arena, p->n + 1u, sizeof *c->loose);
    for (uint32_t i = 0; i < p->n; i++) {
        if (!p->needed[i])
            continue;
        const uint32_t v = c->f->vertex[a->at[i]];
        c->total += c->node[i];
        if (c->model.sure && !sure->stays[i])
            continue;
        if (a->loose[i])
            c->loose[c->nloose++] = (LsCutLoose){c->node[i], p->dag->node[i].kind == LS_DAG_FORWARD,
                                                 of_vertices(arena, c->f, a, i)};
        else
            c->time[v] += c->node[i];
        const int64_t bytes = need_of(c, a, sure, i);
        c->need[v] = bytes > c->need[v] ? bytes : c->need[v];
    }
}

static void add_state(LsArena *arena, LsCutCosts *c, const LsAnchors *a, const LsCertain *sure)
{
    const LsForward *f = c->f;
    const LsDag *g = f->prob->dag;
    uint64_t **read = ls_arena_alloc(arena, g->ntensor + 1u, sizeof *read);
    c->state = ls_arena_alloc(arena, g->ntensor + 1u, sizeof *c->state);
    for (uint32_t t = 0; t < g->ntensor; t++)
        if (g->tensor[t].persistent) {
            read[t] = ls_arena_alloc(arena, f->nword, sizeof **read);
            const int64_t own = ls_align(g->tensor[t].bytes, g->alignment);
            c->state[c->nstate++] =
                (LsCutState){c->model.state != NULL ? c->model.state[t] : own, read[t]};
        }
    for (uint32_t i = 0; i < g->nnode; i++)
        for (uint32_t k = 0; f->prob->needed[i] && !a->loose[i]
                             && (!c->model.sure || sure->stays[i]) && k < g->node[i].nin;
             k++)
            if (g->tensor[g->node[i].in[k]].persistent)
                ls_bit_add(read[g->node[i].in[k]], f->vertex[a->at[i]]);
}

typedef struct Priced { LsCutTensor *tensor; double price; } Priced;

static int by_price(const void *x, const void *y)
{
    const Priced *a = x, *b = y;
    if (a->price != b->price)
        return a->price < b->price ? -1 : 1;
    return a->tensor < b->tensor ? -1 : a->tensor > b->tensor;
}

/* ns per byte of the maker's results together: one run makes all of them again. */
static void sort_by_price(LsArena *arena, LsCutCosts *c)
{
    Priced *row = ls_arena_alloc(arena, c->ntensor + 1u, sizeof *row);
    uint32_t n = 0;
    for (uint32_t k = 0; k < c->ntensor; k++) {
        LsCutTensor *t = &c->tensor[k];
        if (t->again)
            row[n++] = (Priced){t, c->node[c->f->node[t->maker]] / (double)c->f->mem[t->maker]};
    }
    qsort(row, n, sizeof *row, by_price);
    c->by_price = ls_arena_alloc(arena, n + 1u, sizeof(LsCutTensor *));
    for (uint32_t k = 0; k < n; k++)
        c->by_price[k] = row[k].tensor;
    c->nprice = n;
}

/* By vertex: a set of those that it depends on, or with `down` of those that depend on it; with
 * itself. */
static uint64_t *reachable(LsArena *arena, const LsForward *f, bool down)
{
    uint64_t *set = ls_arena_alloc(arena, (size_t)f->n * f->nword + 1, sizeof *set);
    const LsRows *edge = down ? &f->succ : &f->pred;
    for (uint32_t k = 0; k < f->n; k++) {
        const uint32_t v = down ? f->n - 1 - k : k;
        uint64_t *mine = set + (size_t)v * f->nword;
        ls_bit_add(mine, v);
        for (uint32_t j = edge->at[v]; j < edge->at[v + 1]; j++)
            for (uint32_t w = 0; w < f->nword; w++)
                mine[w] |= set[(size_t)edge->id[j] * f->nword + w];
    }
    return set;
}

/* Time of what lies between the vertices of a set. */
static double time_between(LsArena *tmp, const LsCutCosts *c, const uint64_t *set,
                           const uint64_t *up, const uint64_t *down)
{
    const uint32_t nword = c->f->nword;
    uint64_t *above = ls_arena_alloc(tmp, nword, sizeof *above),
             *below = ls_arena_alloc(tmp, nword, sizeof *below);
    double ns = 0;
    for (uint32_t v = 0; v < c->f->n; v++)
        for (uint32_t w = 0; ls_bit(set, v) && w < nword; w++) {
            above[w] |= up[(size_t)v * nword + w];
            below[w] |= down[(size_t)v * nword + w];
        }
    for (uint32_t v = 0; v < c->f->n; v++)
        ns += ls_bit(above, v) && ls_bit(below, v) ? c->time[v] : 0;
    return ns;
}

/* Parameters that nodes of several vertices read. */
static void add_groups(LsArena *arena, LsCutCosts *c)
{
    const LsProb *p = c->f->prob;
    LsArena *tmp = ls_arena_new();
    const uint64_t *up = reachable(tmp, c->f, false), *down = reachable(tmp, c->f, true);
    c->group = ls_arena_alloc(arena, c->nstate + 1u, sizeof *c->group);
    bool *updated = ls_arena_alloc(tmp, p->nt + 1u, 1);
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = 0; p->needed[i] && k < p->dag->node[i].nupd; k++)
            updated[p->dag->node[i].upd[k]] = true;
    uint32_t at = 0;
    for (uint32_t t = 0; t < p->nt; t++) {
        if (!p->dag->tensor[t].persistent)
            continue;
        const uint64_t *set = c->state[at++].read;
        uint32_t n = 0;
        for (uint32_t w = 0; w < c->f->nword; w++)
            n += (uint32_t)__builtin_popcountll(set[w]);
        if (updated[t] && n > 1)
            c->group[c->ngroup++] = (LsCutGroup){set, time_between(tmp, c, set, up, down)};
    }
    ls_arena_free(tmp);
}

static double *own_times(LsArena *arena, const LsProb *p)
{
    double *ns = ls_arena_alloc(arena, p->n + 1u, sizeof *ns);
    for (uint32_t i = 0; i < p->n; i++)
        ns[i] = p->needed[i] ? p->cost[i] : 0;
    return ns;
}

LsCutCosts *ls_cut_costs(LsArena *arena, const LsForward *f, const LsCutModel *model)
{
    LsCutCosts *c = ls_arena_alloc(arena, 1, sizeof *c);
    const LsAnchors a = ls_anchors(arena, f->prob);
    const LsCertain sure = ls_certain_runs(arena, f->prob, &a, model->cheapest && model->sure);
    c->f = f;
    c->model = *model;
    c->node = model->cheapest ? ls_least_times(arena, f->prob, NULL) : own_times(arena, f->prob);
    c->time = ls_arena_alloc(arena, f->n + 1u, sizeof *c->time);
    c->need = ls_arena_alloc(arena, f->n + 1u, sizeof *c->need);
    c->again = ls_arena_alloc(arena, f->nword, sizeof *c->again);
    add_times(arena, c, &a, &sure);
    ls_cut_tensors(arena, c, &a, &sure);
    add_state(arena, c, &a, &sure);
    add_groups(arena, c);
    sort_by_price(arena, c);
    return c;
}

double ls_cut_sum(const LsCutCosts *c, const uint64_t *low)
{
    double ns = 0;
    for (uint32_t v = 0; v < c->f->n; v++)
        ns += ls_bit(low, v) ? c->time[v] : 0;
    for (uint32_t k = 0; k < c->nloose; k++) {
        const LsCutLoose *l = &c->loose[k];
        ns += (l->latest ? holds(low, l->places, c->f->nword) : meets(low, l->places, c->f->nword))
                  ? l->ns
                  : 0;
    }
    return ns;
}

bool ls_cut_keeps(const LsCutCosts *c, const LsCutGroup *group, const uint64_t *set)
{
    return !meets(set, group->set, c->f->nword) || holds(set, group->set, c->f->nword);
}

/* Bytes of a stage. */
typedef struct Bytes {
    int64_t state;
    int64_t need;               /* of one run */
    int64_t kept;               /* between F and B, with nothing made again */
    int64_t fixed;              /* of `kept`: what cannot be made again in the stage */
} Bytes;

static Bytes measure(const LsCutCosts *c, const uint64_t *set)
{
    Bytes b = {0};
    const uint32_t nword = c->f->nword;
    for (uint32_t k = 0; k < c->nstate; k++)
        b.state += meets(c->state[k].read, set, nword) ? c->state[k].bytes : 0;
    for (uint32_t k = 0; k < c->ntensor; k++) {
        const LsCutTensor *t = &c->tensor[k];
        const bool own = ls_bit(set, t->maker);
        if (!meets(t->later, set, nword)
            || !(own ? c->early[t->maker] : meets(t->forward, set, nword)))
            continue;
        b.kept += t->bytes;
        b.fixed += !t->again || !own ? t->bytes : 0;
    }
    for (uint32_t w = 0; w < nword; w++)
        for (uint64_t s = set[w]; s != 0; s &= s - 1) {
            const uint32_t v = 64 * w + (uint32_t)__builtin_ctzll(s);
            b.need = c->need[v] > b.need ? c->need[v] : b.need;
        }
    return b;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

static bool is_again(const LsCutLimits *l)
{
    return l->keep == LS_KEEP_ALWAYS || l->keep == LS_KEEP_EXCEPT_LAST;
}

int64_t ls_cut_bytes(const LsCutCosts *c, const LsCutLimits *l, const uint64_t *set)
{
    const Bytes b = measure(c, set);
    /* of one micro-batch, and of each other */
    const int64_t most = l->keep == LS_KEEP_ALWAYS ? b.fixed : b.kept;
    return b.state + (int64_t)(l->slots - 1) * (is_again(l) ? b.fixed : b.kept)
           + larger(most, b.need);
}

/* Whether a stage that makes a tensor, and all of phase F again, does so with this one. */
static bool is_forgotten(const LsCutCosts *c, const LsCutTensor *t, const uint64_t *set)
{
    return t->forgotten && holds(set, t->elsewhere, c->f->nword);
}

/* Whether phases B and W read a result of the vertex that must be made again. *avoid: ns that it
 * takes at least to do without. */
static bool is_read_again(const LsCutCosts *c, uint32_t v, const uint64_t *set, double *avoid)
{
    bool again = false;
    *avoid = 0;
    for (uint32_t k = c->first[v]; k < c->first[v + 1]; k++) {
        const LsCutTensor *t = &c->tensor[k];
        if (!is_forgotten(c, t, set))
            continue;
        again |= meets(t->later, set, c->f->nword);
        if (meets(t->soft, set, c->f->nword))
            *avoid = fmax(*avoid, t->avoid), again |= !c->model.sure;
    }
    return again;
}

/* Runs of all that phases B and W read, and of what these runs read in turn. What is not early has
 * its first run then. */
static double of_all_again(const LsCutCosts *c, const uint64_t *set)
{
    const LsProb *p = c->f->prob;
    double ns = 0, avoid;
    memset(c->again, 0, c->f->nword * sizeof *c->again);
    for (uint32_t w = c->f->nword; w-- > 0;)
        for (uint64_t left = set[w]; left != 0;) {
            const uint32_t bit = 63 - (uint32_t)__builtin_clzll(left), v = 64 * w + bit,
                           i = c->f->node[v];
            left ^= UINT64_C(1) << bit;
            if (!is_read_again(c, v, set, &avoid) && !ls_bit(c->again, v)) {
                ns += c->early[v] ? fmin(avoid, c->node[i]) : 0;
                continue;
            }
            ns += c->early[v] ? c->node[i] : 0;
            for (uint32_t k = p->in.at[i]; k < p->in.at[i + 1]; k++) {
                const uint32_t row = c->row[p->in.id[k]];
                if (row != LS_NO_ID && ls_bit(set, c->tensor[row].maker)
                    && is_forgotten(c, &c->tensor[row], set))
                    ls_bit_add(c->again, c->tensor[row].maker);
            }
        }
    return ns;
}

/* The least time to make so many bytes again: the cheapest first, the last in part. */
static double of_bytes_again(const LsCutCosts *c, const uint64_t *set, int64_t bytes)
{
    double ns = 0;
    for (uint32_t k = 0; k < c->nprice && bytes > 0; k++) {
        const LsCutTensor *t = c->by_price[k];
        if (!ls_bit(set, t->maker) || !c->early[t->maker] || !meets(t->later, set, c->f->nword))
            continue;
        const int64_t of = t->bytes < bytes ? t->bytes : bytes;
        ns += c->node[c->f->node[t->maker]] * (double)of / (double)c->f->mem[t->maker];
        bytes -= of;
    }
    return ns;
}

/* The bytes of each micro-batch that the stage must make again to keep the limit; -1: it cannot. */
static int64_t bytes_to_shed(const LsCutLimits *l, const Bytes *b)
{
    const int64_t room = l->bytes - b->state;
    /* kept by each, between F and B */
    int64_t most = room / l->slots;
    if (room < b->need || room < 0)
        return -1;
    /* and while a run needs its bytes */
    if (l->slots > 1)
        most = (room - b->need) / (l->slots - 1) < most ? (room - b->need) / (l->slots - 1) : most;
    return most < b->fixed ? -1 : larger(0, b->kept - most);
}

double ls_cut_time(const LsCutCosts *c, const LsCutLimits *l, double ns, const uint64_t *set)
{
    if (is_again(l))
        ns += l->again * of_all_again(c, set);
    if (l->bytes <= 0)
        return ns;
    if (l->keep != LS_KEEP_AUTO)
        return ls_cut_bytes(c, l, set) <= l->bytes ? ns : INFINITY;
    const Bytes b = measure(c, set);
    const int64_t shed = bytes_to_shed(l, &b);
    return shed < 0 ? INFINITY : ns + of_bytes_again(c, set, shed);
}

int64_t ls_cut_crossing(const LsCutCosts *c, const uint64_t *low)
{
    const uint32_t nword = c->f->nword;
    int64_t bytes = 0;
    for (uint32_t k = 0; k < c->ntensor; k++) {
        const LsCutTensor *t = &c->tensor[k];
        if (ls_bit(low, t->maker)
            && !(holds(low, t->forward, nword) && holds(low, t->later, nword)
                 && holds(low, t->soft, nword)))
            bytes += t->bytes;
    }
    return bytes;
}
