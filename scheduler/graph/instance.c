/* scheduler/graph/instance.c -- flat arrays for the inner loops, and the few decisions that all
 * strategies share. */
#include "scheduler/graph/instance.h"

#include <stdlib.h>
#include <string.h>

/* Returns, by node, its operands (or results) that lie in the arena. */
static LsRows rows_of(LsArena *arena, const LsProb *p, bool inputs)
{
    LsArena *tmp = ls_arena_new();  /* many problems live at a time */
    LsPairs of = {0};
    for (uint32_t i = 0; i < p->n; i++) {
        const LsDagNode *node = &p->dag->node[i];
        for (uint32_t j = 0; j < (inputs ? node->nin : node->nout); j++) {
            uint32_t t = inputs ? node->in[j] : node->out[j];
            if (!p->dag->tensor[t].persistent)
                ls_pairs_add(tmp, &of, i, t);
        }
    }
    LsRows rows = ls_rows(arena, &of, p->n);
    ls_arena_free(tmp);
    return rows;
}

/* Returns whether the alternative may replace v: it has exactly the results of v, and v itself need
 * not run. */
static bool may_replace(const LsDagNode *alt, const LsDagNode *v)
{
    bool same = alt->nout == v->nout && alt->nupd == 0 && v->nupd == 0 && !v->required;
    for (uint32_t k = 0; k < alt->nout; k++)
        same &= ls_id_in(v->out, v->nout, alt->out[k]);
    return same;
}

/* By node: its alternatives. */
static LsRows alternatives_of(LsArena *arena, const LsProb *p)
{
    LsPairs of = {0};
    for (uint32_t i = 0; i < p->n; i++) {
        const LsDagNode *alt = &p->dag->node[i];
        if (!alt->alternative || p->out.at[i] == p->out.at[i + 1])
            continue;
        uint32_t v = p->maker[p->out.id[p->out.at[i]]];
        if (may_replace(alt, &p->dag->node[v]))
            ls_pairs_add(arena, &of, v, i);
    }
    return ls_rows(arena, &of, p->n);
}

/* By node with updates: every other node that reads a tensor it updates. */
static LsRows readers_of_updated(LsArena *arena, const LsProb *p)
{
    const LsDag *g = p->dag;
    LsPairs readers = {0};
    uint32_t *updater = ls_arena_alloc(arena, p->nt, sizeof *updater);
    for (uint32_t t = 0; t < p->nt; t++)
        updater[t] = LS_NO_ID;
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = 0; k < g->node[i].nupd && !g->node[i].alternative; k++)
            updater[g->node[i].upd[k]] = i;
    for (uint32_t i = 0; i < p->n; i++)
        for (uint32_t k = 0; (p->needed[i] || g->node[i].alternative) && k < g->node[i].nin; k++) {
            uint32_t u = updater[g->node[i].in[k]];
            if (u != LS_NO_ID && u != i)
                ls_pairs_add(arena, &readers, u, i);
        }
    return ls_rows(arena, &readers, p->n);
}

/* Marks the nodes that must run and those whose results they need. The list is a topological order,
 * so one pass from its end sees every reader first. Two updates of one tensor would break this; the
 * reader of graphs refuses them. */
static void mark_needed(LsArena *arena, LsProb *p)
{
    const LsDag *g = p->dag;
    bool *wanted = ls_arena_alloc(arena, p->nt, sizeof *wanted);
    for (uint32_t t = 0; t < p->nt; t++)
        wanted[t] = g->tensor[t].output;
    for (uint32_t i = p->n; i-- > 0;) {
        const LsDagNode *node = &g->node[i];
        if (!p->used[i])
            continue;
        bool need = node->required || node->nupd > 0;
        for (uint32_t k = p->out.at[i]; k < p->out.at[i + 1]; k++)
            need |= wanted[p->out.id[k]];
        p->needed[i] = need;
        for (uint32_t k = p->in.at[i]; need && k < p->in.at[i + 1]; k++)
            wanted[p->in.id[k]] = true;
    }
}

/* Finds the updates, and the leaves: gradients that only updates read. Nodes further back are no
 * leaves, though only leaves read, for example, the whole backward pass of the first layer.
 * Alternatives run on the spine. */
static void mark_roles(LsArena *arena, LsProb *p)
{
    const LsDag *g = p->dag;
    uint8_t *most = ls_arena_alloc(arena, p->nt, 1);     /* 1: a leaf, 2: the spine reads it */
    for (uint32_t i = p->n; i-- > 0;) {
        const LsDagNode *node = &g->node[i];
        for (uint32_t k = p->in.at[i]; node->alternative && k < p->in.at[i + 1]; k++)
            most[p->in.id[k]] = 2;
        if (!p->needed[i])
            continue;
        uint8_t read = 0;
        for (uint32_t k = p->out.at[i]; k < p->out.at[i + 1]; k++)
            if (most[p->out.id[k]] > read)
                read = most[p->out.id[k]];
        bool has_out = p->out.at[i + 1] > p->out.at[i];
        LsRole role = LS_ROLE_SPINE;
        if (read == 0 && (!has_out || node->kind == LS_DAG_OPTIMIZER))
            role = LS_ROLE_UPDATE;
        else if (read == 0 && node->kind == LS_DAG_BACKWARD && node->nupd == 0)
            role = LS_ROLE_LEAF;
        p->role[i] = (uint8_t)role;
        uint8_t mine = role == LS_ROLE_UPDATE ? 0 : role == LS_ROLE_LEAF ? 1 : 2;
        for (uint32_t k = p->in.at[i]; k < p->in.at[i + 1]; k++)
            if (most[p->in.id[k]] < mine)
                most[p->in.id[k]] = mine;
    }
}

/* If a node that others wait for updates a tensor, the tensor's readers cannot run after it and so
 * not twice. */
static void mark_stuck(LsProb *p)
{
    const LsDag *g = p->dag;
    for (uint32_t i = 0; i < p->n; i++) {
        p->stuck[i] |= g->node[i].once || g->node[i].nupd > 0;
        for (uint32_t k = p->before.at[i]; k < p->before.at[i + 1]; k++)
            if (p->role[i] != LS_ROLE_UPDATE)
                p->stuck[p->before.id[k]] = true;
    }
}

static void mark_forward(LsProb *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        bool f = p->needed[i] && p->dag->node[i].kind == LS_DAG_FORWARD
                 && p->role[i] == LS_ROLE_SPINE;
        for (uint32_t k = p->in.at[i]; k < p->in.at[i + 1]; k++)
            f &= p->forward[p->maker[p->in.id[k]]];
        p->forward[i] = f;
    }
}

LsProb *ls_prob_new(LsArena *arena, const LsDag *dag, bool inplace)
{
    LsProb *p = ls_arena_alloc(arena, 1, sizeof *p);
    *p = (LsProb){.dag = dag, .n = dag->nnode, .nt = dag->ntensor,
                  .inplace = inplace};
    p->size = ls_arena_alloc(arena, p->nt + 1u, sizeof *p->size);
    p->maker = ls_arena_alloc(arena, p->nt + 1u, sizeof *p->maker);
    p->workspace = ls_arena_alloc(arena, p->n + 1u, sizeof *p->workspace);
    p->cost = ls_arena_alloc(arena, p->n + 1u, sizeof *p->cost);
    p->used = ls_arena_alloc(arena, p->n + 1u, sizeof *p->used);
    p->needed = ls_arena_alloc(arena, p->n + 1u, sizeof *p->needed);
    p->stuck = ls_arena_alloc(arena, p->n + 1u, sizeof *p->stuck);
    p->forward = ls_arena_alloc(arena, p->n + 1u, sizeof *p->forward);
    p->role = ls_arena_alloc(arena, p->n + 1u, sizeof *p->role);
    for (uint32_t t = 0; t < p->nt; t++) {
        p->size[t] = dag->tensor[t].persistent ? 0 : ls_align(dag->tensor[t].bytes, dag->alignment);
        p->maker[t] = LS_NO_ID;
    }
    p->in = rows_of(arena, p, true);
    p->out = rows_of(arena, p, false);
    for (uint32_t i = 0; i < p->n; i++) {
        p->workspace[i] = ls_align(dag->node[i].workspace, dag->alignment);
        p->cost[i] = dag->node[i].cost;
        p->used[i] = !dag->node[i].alternative;
        for (uint32_t k = p->out.at[i]; k < p->out.at[i + 1] && p->used[i]; k++)
            p->maker[p->out.id[k]] = i;
    }
    p->swap = alternatives_of(arena, p);
    mark_needed(arena, p);
    for (uint32_t i = 0; i < p->n; i++)
        p->base_cost += p->needed[i] ? p->cost[i] : 0;
    p->before = readers_of_updated(arena, p);
    mark_roles(arena, p);
    mark_stuck(p);
    mark_forward(p);
    return p;
}

LsProb *ls_prob_variant(LsArena *arena, const LsProb *p, const uint32_t *instead)
{
    LsProb *q = ls_arena_alloc(arena, 1, sizeof *q);
    *q = *p;
    q->maker = ls_arena_alloc(arena, p->nt + 1u, sizeof *q->maker);
    q->used = ls_arena_alloc(arena, p->n + 1u, sizeof *q->used);
    q->needed = ls_arena_alloc(arena, p->n + 1u, sizeof *q->needed);
    q->stuck = ls_arena_alloc(arena, p->n + 1u, sizeof *q->stuck);
    q->forward = ls_arena_alloc(arena, p->n + 1u, sizeof *q->forward);
    q->role = ls_arena_alloc(arena, p->n + 1u, sizeof *q->role);
    memcpy(q->maker, p->maker, p->nt * sizeof *q->maker);
    memcpy(q->used, p->used, p->n * sizeof *q->used);
    for (uint32_t v = 0; v < p->n; v++) {
        if (!p->used[v] || instead[v] == v)
            continue;
        q->used[v] = false;
        q->used[instead[v]] = true;
        for (uint32_t k = p->out.at[v]; k < p->out.at[v + 1]; k++)
            q->maker[p->out.id[k]] = instead[v];
    }
    mark_needed(arena, q);
    for (uint32_t v = 0; v < p->n; v++)
        if (q->needed[v] && !p->needed[v] && !p->dag->node[v].alternative)
            return NULL;
    mark_roles(arena, q);
    mark_stuck(q);
    mark_forward(q);
    return q;
}

static int by_number(const void *x, const void *y)
{
    const uint32_t *a = x, *b = y;
    return *a < *b ? -1 : *a > *b;
}

uint32_t ls_prob_remake(const LsProb *p, uint32_t t, const bool *there, uint32_t *mark,
                        uint32_t stamp, uint32_t *to)
{
    uint32_t n = 0;
    to[n++] = p->maker[t];
    mark[p->maker[t]] = stamp;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t j = p->in.at[to[k]]; j < p->in.at[to[k] + 1]; j++) {
            uint32_t in = p->in.id[j], m = p->maker[in];
            if (!there[in] && mark[m] != stamp) {
                mark[m] = stamp;
                to[n++] = m;
            }
        }
    qsort(to, n, sizeof *to, by_number);
    return n;
}

bool ls_prob_takes_place(const LsProb *p, uint32_t v, uint32_t t)
{
    const LsDagNode *node = &p->dag->node[v];
    for (uint32_t k = 0; k < node->ninplace; k++)
        if (node->inplace[k].in == t)
            return true;
    return false;
}

LsRows ls_prob_reads(LsArena *arena, const LsProb *p)
{
    LsPairs pairs = {0};
    for (uint32_t v = 0; v < p->n; v++)
        for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1] && ls_prob_is_listed(p, v); k++)
            ls_pairs_add(arena, &pairs, p->in.id[k], v);
    return ls_rows(arena, &pairs, p->nt);
}
