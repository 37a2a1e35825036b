/* scheduler/cuts/cut_tensors.c -- see the header. */
#include "scheduler/cuts/cut_tensors.h"

#include "scheduler/cuts/node_times.h"

#include <math.h>

enum { FORWARD, LATER, SOFT, ELSEWHERE, SETS };

typedef struct Build {
    LsArena *arena;
    LsCutCosts *c;
    const LsProb *p;
    const LsAnchors *a;
    const LsCertain *sure;
    uint64_t *(*set)[SETS];     /* by row */
} Build;

/* Tensors of phase F without readers, by maker. */
static void list_tensors(Build *b)
{
    LsCutCosts *c = b->c;
    const LsProb *p = b->p;
    const LsForward *f = c->f;
    for (uint32_t v = 0; v < f->n; c->first[++v] = c->ntensor) {
        const uint32_t i = f->node[v];
        c->early[v] = b->sure->early[i];
        for (uint32_t k = p->out.at[i]; k < p->out.at[i + 1]; k++) {
            const uint32_t t = p->out.id[k], at = c->ntensor;
            const bool alternative = p->swap.at[i] < p->swap.at[i + 1];
            /* c->node counts on it already */
            const double avoid = c->model.sure && !b->sure->runs[i] ? 0 : INFINITY;
            const bool once =
                c->model.sure ? (p->dag->node[i].once || p->dag->node[i].nupd > 0) && !alternative
                              : p->stuck[i];
            if (p->size[t] == 0)
                continue;
            for (int s = 0; s < SETS; s++)
                b->set[at][s] = ls_arena_alloc(b->arena, f->nword, sizeof ***b->set);
            c->row[t] = at;
            c->tensor[c->ntensor++] =
                (LsCutTensor){v,
                              p->size[t],
                              !once,
                              b->sure->forgets[i] && !p->dag->tensor[t].output,
                              b->set[at][FORWARD],
                              b->set[at][LATER],
                              b->set[at][SOFT],
                              b->set[at][ELSEWHERE],
                              avoid};
        }
    }
}

/* Adds the stages that node i may be in, of those where no node of phase F reads the tensor,
 * too. */
static void add_elsewhere(const Build *b, uint32_t i, uint64_t *const *set)
{
    const uint64_t *places = b->a->places + (size_t)i * b->a->nword;
    for (uint32_t v = 0; v < b->c->f->n; v++)
        if (ls_bit(places, b->c->f->node[v]) && !ls_bit(set[FORWARD], v))
            ls_bit_add(set[ELSEWHERE], v);
}

/* Node i reads the tensor in phase B or W. */
static void add_reader(const Build *b, uint32_t i, uint32_t t)
{
    const LsCutModel *m = &b->c->model;
    LsCutTensor *tensor = &b->c->tensor[b->c->row[t]];
    uint64_t *const *set = b->set[b->c->row[t]];
    const bool update = b->p->dag->node[i].kind == LS_DAG_OPTIMIZER, loose = b->a->loose[i];
    const double avoid = loose ? 0 : m->cheapest ? ls_avoid_time(b->p, b->c->node, i, t) : INFINITY;
    add_elsewhere(b, i, set);
    tensor->forgotten &= !update;               /* it may read after all micro-batches */
    if (m->sure && (loose || update || !b->sure->runs[i]))
        return;
    ls_bit_add(set[isinf(avoid) ? LATER : SOFT], b->c->f->vertex[b->a->at[i]]);
    tensor->avoid = fmin(tensor->avoid, avoid);
}

static void add_readers(const Build *b, bool forward)
{
    const LsProb *p = b->p;
    for (uint32_t i = 0; i < p->n; i++) {
        const bool in_f = p->dag->node[i].kind == LS_DAG_FORWARD || b->sure->ahead[i];
        for (uint32_t k = p->in.at[i]; p->needed[i] && in_f == forward && k < p->in.at[i + 1];
             k++) {
            const uint32_t t = p->in.id[k];
            if (b->c->row[t] == LS_NO_ID)
                continue;
            if (!forward)
                add_reader(b, i, t);
            else if (!b->c->model.sure || (!b->a->loose[i] && !b->sure->ahead[i]))
                ls_bit_add(b->set[b->c->row[t]][FORWARD], b->c->f->vertex[b->a->at[i]]);
        }
    }
}

void ls_cut_tensors(LsArena *arena, LsCutCosts *c, const LsAnchors *a, const LsCertain *sure)
{
    const LsProb *p = c->f->prob;
    Build b = {arena, c, p, a, sure, ls_arena_alloc(arena, p->nt + 1u, sizeof *b.set)};
    c->tensor = ls_arena_alloc(arena, p->nt + 1u, sizeof *c->tensor);
    c->first = ls_arena_alloc(arena, c->f->n + 1u, sizeof *c->first);
    c->early = ls_arena_alloc(arena, c->f->n + 1u, sizeof *c->early);
    c->row = ls_arena_alloc(arena, p->nt + 1u, sizeof *c->row);
    for (uint32_t t = 0; t < p->nt; t++)
        c->row[t] = LS_NO_ID;
    list_tensors(&b);
    add_readers(&b, true);
    add_readers(&b, false);
}
