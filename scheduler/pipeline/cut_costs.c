/* scheduler/pipeline/cut_costs.c -- see the header. */
#include "scheduler/pipeline/cut_costs.h"

#include "scheduler/pipeline/anchors.h"

#include <math.h>
#include <stdlib.h>

static bool meets(const uint64_t *a, const uint64_t *b, uint32_t nword)
{
    for (uint32_t w = 0; w < nword; w++)
        if (a[w] & b[w])
            return true;
    return false;
}

/* Of a node or its cheapest alternative. */
static double least_time(const LsProb *p, uint32_t i)
{
    double least = p->cost[i];
    for (uint32_t k = p->swap.at[i]; k < p->swap.at[i + 1]; k++)
        least = fmin(least, p->cost[p->swap.id[k]]);
    return least;
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

static bool has_alternative(const LsProb *p, uint32_t i) { return p->swap.at[i] < p->swap.at[i + 1]; }

static void add_times(LsCutCosts *c, const LsAnchors *a)
{
    const LsProb *p = c->f->prob;
    for (uint32_t i = 0; i < p->n; i++) {
        if (!p->needed[i])
            continue;
        const double ns = least_time(p, i);
        const uint32_t v = c->f->vertex[a->at[i]];
        c->total += ns;
        c->time[v] += ns;
        c->sure[v] += a->loose[i] ? 0 : ns;
        c->first[v] += p->dag->node[i].kind == LS_DAG_FORWARD ? ns : 0;
        const int64_t bytes = a->loose[i] || has_alternative(p, i) ? 0 : touched(p, i);
        c->need[v] = bytes > c->need[v] ? bytes : c->need[v];
    }
}

/* Tensors of phase F, with the vertices to which their readers belong. */
static void add_tensors(LsArena *arena, LsCutCosts *c, const LsAnchors *a)
{
    const LsForward *f = c->f;
    const LsProb *p = f->prob;
    uint64_t **forward = ls_arena_alloc(arena, p->nt + 1u, sizeof *forward);
    uint64_t **later = ls_arena_alloc(arena, p->nt + 1u, sizeof *later);
    c->tensor = ls_arena_alloc(arena, p->nt + 1u, sizeof *c->tensor);
    for (uint32_t t = 0; t < p->nt; t++) {
        forward[t] = later[t] = NULL;
        if (p->maker[t] == LS_NO_ID || !p->forward[p->maker[t]] || p->size[t] == 0)
            continue;
        forward[t] = ls_arena_alloc(arena, f->nword, sizeof **forward);
        later[t] = ls_arena_alloc(arena, f->nword, sizeof **later);
        c->tensor[c->ntensor++] = (LsCutTensor){f->vertex[p->maker[t]], p->size[t], !p->stuck[p->maker[t]], forward[t],
                                                later[t]};
    }
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = p->in.at[i]; p->needed[i] && k < p->in.at[i + 1]; k++) {
            const uint32_t t = p->in.id[k];
            uint64_t *set = p->dag->node[i].kind == LS_DAG_FORWARD ? forward[t] : later[t];
            /* A cheaper node may stand in for this one and read something else; a loose one may read it elsewhere. */
            if (set != NULL && (set == forward[t] || !(has_alternative(p, i) || a->loose[i])))
                ls_bit_add(set, f->vertex[a->at[i]]);
        }
}

static void add_state(LsArena *arena, LsCutCosts *c, const LsAnchors *a)
{
    const LsForward *f = c->f;
    const LsDag *g = f->prob->dag;
    uint64_t **read = ls_arena_alloc(arena, g->ntensor + 1u, sizeof *read);
    c->state = ls_arena_alloc(arena, g->ntensor + 1u, sizeof *c->state);
    for (uint32_t t = 0; t < g->ntensor; t++)
        if (g->tensor[t].persistent) {
            read[t] = ls_arena_alloc(arena, f->nword, sizeof **read);
            c->state[c->nstate++] = (LsCutState){ls_align(g->tensor[t].bytes, g->alignment), read[t]};
        }
    for (uint32_t i = 0; i < g->nnode; i++)
        for (uint32_t k = 0; f->prob->needed[i] && !a->loose[i] && k < g->node[i].nin; k++)
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
            row[n++] = (Priced){t, least_time(c->f->prob, c->f->node[t->maker]) / (double)c->f->mem[t->maker]};
    }
    qsort(row, n, sizeof *row, by_price);
    c->by_price = ls_arena_alloc(arena, n + 1u, sizeof(LsCutTensor *));
    for (uint32_t k = 0; k < n; k++)
        c->by_price[k] = row[k].tensor;
    c->nprice = n;
}

LsCutCosts *ls_cut_costs(LsArena *arena, const LsForward *f)
{
    LsCutCosts *c = ls_arena_alloc(arena, 1, sizeof *c);
    const LsAnchors a = ls_anchors(arena, f->prob);
    c->f = f;
    c->time = ls_arena_alloc(arena, f->n + 1u, sizeof *c->time);
    c->sure = ls_arena_alloc(arena, f->n + 1u, sizeof *c->sure);
    c->first = ls_arena_alloc(arena, f->n + 1u, sizeof *c->first);
    c->need = ls_arena_alloc(arena, f->n + 1u, sizeof *c->need);
    add_times(c, &a);
    add_tensors(arena, c, &a);
    add_state(arena, c, &a);
    sort_by_price(arena, c);
    return c;
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
        if (!meets(t->later, set, nword))
            continue;
        b.kept += t->bytes;
        b.fixed += !t->again || !ls_bit(set, t->maker) ? t->bytes : 0;
    }
    for (uint32_t w = 0; w < nword; w++)
        for (uint64_t s = set[w]; s != 0; s &= s - 1) {
            const uint32_t v = 64 * w + (uint32_t)__builtin_ctzll(s);
            b.need = c->need[v] > b.need ? c->need[v] : b.need;
        }
    return b;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* With `kept` bytes of each micro-batch. The first micro-batch of except-last keeps everything, until its B begins. */
static int64_t in_all(const LsCutLimits *l, const Bytes *b, int64_t kept)
{
    const int64_t others = (int64_t)(l->slots - 1) * kept;
    const int64_t now = l->keep == LS_KEEP_EXCEPT_LAST ? b->kept : kept;
    return b->state + others + larger(now, b->need);
}

int64_t ls_cut_bytes(const LsCutCosts *c, const LsCutLimits *l, const uint64_t *set)
{
    const Bytes b = measure(c, set);
    const bool again = l->keep == LS_KEEP_ALWAYS || l->keep == LS_KEEP_EXCEPT_LAST;
    return in_all(l, &b, again ? b.fixed : b.kept);
}

/* Runs of all that phases B and W read. */
static double of_all_again(const LsCutCosts *c, const uint64_t *set)
{
    double ns = 0;
    uint32_t last = LS_NO_ID;           /* tensors come by maker, so that one run is counted once */
    for (uint32_t k = 0; k < c->ntensor; k++) {
        const LsCutTensor *t = &c->tensor[k];
        if (!t->again || t->maker == last || !ls_bit(set, t->maker) || !meets(t->later, set, c->f->nword))
            continue;
        last = t->maker;
        ns += least_time(c->f->prob, c->f->node[t->maker]);
    }
    return ns;
}

/* The least time to make so many bytes again: the cheapest first, the last in part. */
static double of_bytes_again(const LsCutCosts *c, const uint64_t *set, int64_t bytes)
{
    double ns = 0;
    for (uint32_t k = 0; k < c->nprice && bytes > 0; k++) {
        const LsCutTensor *t = c->by_price[k];
        if (!ls_bit(set, t->maker) || !meets(t->later, set, c->f->nword))
            continue;
        const int64_t of = t->bytes < bytes ? t->bytes : bytes;
        ns += least_time(c->f->prob, c->f->node[t->maker]) * (double)of / (double)c->f->mem[t->maker];
        bytes -= of;
    }
    return ns;
}

/* The bytes of each micro-batch that the stage must make again to keep the limit; -1: it cannot. */
static int64_t bytes_to_shed(const LsCutLimits *l, const Bytes *b)
{
    const int64_t room = l->bytes - b->state;
    int64_t most = room / l->slots;                                     /* kept by each, between F and B */
    if (room < b->need || room < 0)
        return -1;
    if (l->slots > 1)                                                   /* and while a run needs its bytes */
        most = (room - b->need) / (l->slots - 1) < most ? (room - b->need) / (l->slots - 1) : most;
    return most < b->fixed ? -1 : larger(0, b->kept - most);
}

double ls_cut_time(const LsCutCosts *c, const LsCutLimits *l, double ns, const uint64_t *set)
{
    if (l->keep == LS_KEEP_ALWAYS)
        ns += of_all_again(c, set);
    if (l->keep == LS_KEEP_EXCEPT_LAST)
        ns += of_all_again(c, set) * (l->micros - 1) / l->micros;
    if (l->bytes <= 0)
        return ns;
    if (l->keep != LS_KEEP_AUTO)
        return ls_cut_bytes(c, l, set) <= l->bytes ? ns : INFINITY;
    const Bytes b = measure(c, set);
    const int64_t shed = bytes_to_shed(l, &b);
    return shed < 0 ? INFINITY : ns + of_bytes_again(c, set, shed);
}

int64_t ls_cut_traffic(const LsCutCosts *c, const uint64_t *set)
{
    int64_t bytes = 0;
    for (uint32_t k = 0; k < c->ntensor; k++) {
        const LsCutTensor *t = &c->tensor[k];
        if (!ls_bit(set, t->maker) && (meets(t->forward, set, c->f->nword) || meets(t->later, set, c->f->nword)))
            bytes += t->bytes;
    }
    return bytes;
}
