/* scheduler/relaxation/group_graph.c -- finds the groups, the needed groups, and the path of
 * separators. */
#include "scheduler/relaxation/group_graph.h"

#include <math.h>
#include <string.h>

#include "scheduler/relaxation/form_sets.h"
#include "scheduler/relaxation/single_run_cost.h"

bool ls_bound_pair_fits(const LsProb *p, LsDagPair pair)
{
    return p->inplace && p->size[pair.out] <= p->size[pair.in];
}

int64_t ls_bound_spared(const LsProb *p, uint32_t v)
{
    const LsDagNode *n = &p->dag->node[v];
    int64_t spared = 0;
    for (uint32_t k = 0; k < n->nout; k++) {
        bool fits = false;
        for (uint32_t j = 0; j < n->ninplace; j++)
            fits |= n->inplace[j].out == n->out[k] && ls_bound_pair_fits(p, n->inplace[j]);
        spared += fits ? ls_bound_bytes(p, n->out[k]) : 0;
    }
    return spared;
}

static int64_t own_bytes(const LsProb *p, uint32_t v)
{
    const LsDagNode *n = &p->dag->node[v];
    int64_t bytes = n->workspace - ls_bound_spared(p, v);
    for (uint32_t k = 0; k < n->nin; k++)
        bytes += ls_id_in(n->in, k, n->in[k]) ? 0 : ls_bound_bytes(p, n->in[k]);
    for (uint32_t k = 0; k < n->nout; k++)
        bytes += ls_bound_bytes(p, n->out[k]);
    return bytes;
}

static uint32_t root(const uint32_t *group, uint32_t v)
{
    while (group[v] != v)
        v = group[v];
    return v;
}

/* Joins every alternative with the ordinary nodes whose tensors it makes; the least id names the
 * group. */
static void find_groups(LsBoundGraph *b)
{
    const LsDag *g = b->p->dag;
    for (uint32_t t = 0; t < g->ntensor; t++)
        b->maker[t] = LS_NO_ID;
    for (uint32_t v = 0; v < g->nnode; v++) {
        b->group[v] = g->node[v].alternative ? LS_NO_ID : v;
        for (uint32_t k = 0; !g->node[v].alternative && k < g->node[v].nout; k++)
            b->maker[g->node[v].out[k]] = v;
    }
    for (uint32_t v = 0; v < g->nnode; v++)
        for (uint32_t k = 0; g->node[v].alternative && k < g->node[v].nout; k++) {
            uint32_t m = b->maker[g->node[v].out[k]];
            if (m == LS_NO_ID)
                continue;
            m = root(b->group, m);
            if (b->group[v] != LS_NO_ID) {
                uint32_t other = root(b->group, b->group[v]);
                b->group[m > other ? m : other] = m < other ? m : other;
                m = m < other ? m : other;
            }
            b->group[v] = m;
        }
    for (uint32_t v = 0; v < g->nnode; v++)
        b->group[v] = b->group[v] == LS_NO_ID ? LS_NO_ID : root(b->group, b->group[v]);
    for (uint32_t t = 0; t < g->ntensor; t++)
        b->maker[t] = b->maker[t] == LS_NO_ID ? LS_NO_ID : b->group[b->maker[t]];
}

/* Adds to row v the tensors that all n members of group v read. */
static void add_common_reads(const LsBoundGraph *b, LsPairs *in, uint32_t v, const uint32_t *member,
                             uint32_t n)
{
    const LsDag *g = b->p->dag;
    const LsDagNode *first = &g->node[member[0]];
    for (uint32_t k = 0; k < first->nin; k++) {
        uint32_t t = first->in[k];
        bool all = !g->tensor[t].persistent && b->maker[t] != LS_NO_ID;
        for (uint32_t j = 1; j < n; j++)
            all &= ls_id_in(g->node[member[j]].in, g->node[member[j]].nin, t);
        if (all)
            ls_pairs_add_once(b->arena, in, v, t);
    }
}

static void fill_rows(LsBoundGraph *b)
{
    const LsProb *p = b->p;
    const LsDag *g = p->dag;
    LsRows of = b->member = ls_rows_by(b->arena, b->group, p->n, p->n);
    LsPairs in = {0}, out = {0};
    for (uint32_t v = 0; v < p->n; v++) {
        const uint32_t *member = of.id + of.at[v];
        uint32_t n = of.at[v + 1] - of.at[v];
        b->alone[v] = n == 1;
        b->stuck[v] = n == 1 && (g->node[v].once || g->node[v].nupd > 0);
        for (uint32_t k = 0; k < n; k++) {
            const LsDagNode *node = &g->node[member[k]];
            int64_t own = own_bytes(p, member[k]);
            b->cost[v] = k == 0 || node->cost < b->cost[v] ? node->cost : b->cost[v];
            b->own[v] = k == 0 || own < b->own[v] ? own : b->own[v];
            for (uint32_t j = 0; j < node->nout; j++)
                if (b->maker[node->out[j]] == v)
                    ls_pairs_add_once(b->arena, &out, v, node->out[j]);
        }
        if (n > 0)
            add_common_reads(b, &in, v, member, n);
    }
    b->in = ls_rows(b->arena, &in, p->n);
    b->out = ls_rows(b->arena, &out, p->n);
}

static bool is_output(const LsBoundGraph *b, uint32_t id)
{
    return id < b->p->nt && b->p->dag->tensor[id].output;
}

static void find_needed(LsBoundGraph *b)
{
    const LsDag *g = b->p->dag;
    bool *wanted = ls_arena_alloc(b->arena, g->ntensor + 1u, sizeof *wanted);
    for (uint32_t v = 0; v < g->nnode; v++)
        if (b->group[v] != LS_NO_ID && !g->node[v].alternative)
            b->needed[b->group[v]] |= g->node[v].required || g->node[v].nupd > 0;
    for (uint32_t t = 0; t < g->ntensor; t++)
        wanted[t] = g->tensor[t].output;
    bool whole = true;
    int64_t common = 0;
    for (uint32_t v = g->nnode; v-- > 0;) {
        for (uint32_t k = b->out.at[v]; k < b->out.at[v + 1]; k++)
            b->needed[v] |= wanted[b->out.id[k]];
        if (!b->needed[v])
            continue;
        for (uint32_t k = b->in.at[v]; k < b->in.at[v + 1]; k++)
            b->needed[b->maker[b->in.id[k]]] = true;
        b->base += b->cost[v];
        whole &= b->cost[v] < 9e15 && b->cost[v] == floor(b->cost[v]);
        for (int64_t x = whole ? (int64_t)b->cost[v] : 0, rest; x != 0; x = rest) {
            rest = common % x;
            common = x;
        }
    }
    bool choice = false;        /* a choice of members, which have different costs */
    for (uint32_t v = 0; v < g->nnode; v++)
        choice |= b->needed[v] && !b->alone[v];
    if (choice)
        b->base = ls_bound_base(b) * (1 - 1e-12);
    b->least_cost = whole && !choice ? (double)common : 0;
}

/* Returns the live bytes at each needed group when all run once in list order. */
static int64_t *bytes_in_order(const LsBoundGraph *b)
{
    const LsProb *p = b->p;
    int64_t *live = ls_arena_alloc(b->arena, p->n + 2u, sizeof *live);
    uint32_t *last = ls_arena_alloc(b->arena, p->nt + b->nform + 1u, sizeof *last);
    for (uint32_t v = 0; v < p->n; v++)
        for (uint32_t k = b->in.at[v]; b->needed[v] && k < b->in.at[v + 1]; k++)
            last[b->in.id[k]] = v;
    for (uint32_t t = 0; t < p->nt + b->nform; t++) {
        uint32_t v = b->maker[t];
        if (v == LS_NO_ID || !b->needed[v])
            continue;
        live[v] += b->bytes[t];
        live[is_output(b, t) ? p->n : (last[t] > v ? last[t] : v) + 1] -= b->bytes[t];
    }
    for (uint32_t v = 1; v < p->n; v++)
        live[v] += live[v - 1];
    return live;
}

/* Finds the path with the most live bytes along it. */
static void find_path(LsBoundGraph *b)
{
    const LsProb *p = b->p;
    const int64_t *live = bytes_in_order(b);
    double *sum = ls_arena_alloc(b->arena, p->n + 1u, sizeof *sum);
    uint32_t *from = ls_arena_alloc(b->arena, p->n + 1u, sizeof *from), end = LS_NO_ID;
    for (uint32_t v = 0; v < p->n; v++) {
        from[v] = LS_NO_ID;
        if (!b->needed[v])
            continue;
        for (uint32_t k = b->in.at[v]; k < b->in.at[v + 1]; k++) {
            uint32_t m = b->maker[b->in.id[k]];
            if (from[v] == LS_NO_ID || sum[m] > sum[from[v]])
                from[v] = m;
        }
        sum[v] = (from[v] == LS_NO_ID ? 0 : sum[from[v]]) + 1 + (double)live[v];
        if (end == LS_NO_ID || sum[v] > sum[end])
            end = v;
    }
    b->path = ls_arena_alloc(b->arena, p->n + 1u, sizeof *b->path);
    for (uint32_t v = end; v != LS_NO_ID; v = from[v])
        if (b->alone[v])
            b->path[b->npath++] = v;
    for (uint32_t k = 0; k < b->npath / 2; k++) {
        uint32_t v = b->path[k];
        b->path[k] = b->path[b->npath - 1 - k];
        b->path[b->npath - 1 - k] = v;
    }
}

/* Returns whether all runs of r, which reads a tensor that v updates, come before v. */
static bool precedes(const LsBoundGraph *b, uint32_t r, uint32_t v)
{
    return r < v && b->alone[r] && b->alone[v] && b->needed[r];
}

/* Computes `before` and `after`: who waits for whom, as places of the path. */
static void place_groups(LsBoundGraph *b)
{
    const LsProb *p = b->p;
    uint32_t *place = ls_arena_alloc(b->arena, p->n + 1u, sizeof *place);   /* from 1 */
    for (uint32_t j = 0; j < b->npath; j++)
        place[b->path[j]] = j + 1;
    for (uint32_t v = 0; v < p->n; v++) {
        b->before[v] = b->npath;
        for (uint32_t k = b->in.at[v]; k < b->in.at[v + 1]; k++) {
            uint32_t a = b->after[b->maker[b->in.id[k]]];
            b->after[v] = a > b->after[v] ? a : b->after[v];
        }
        for (uint32_t k = p->before.at[v]; k < p->before.at[v + 1]; k++) {
            uint32_t r = p->before.id[k];
            if (precedes(b, r, v) && b->after[r] > b->after[v])
                b->after[v] = b->after[r];
        }
        b->after[v] = place[v] ? place[v] : b->after[v];
    }
    for (uint32_t v = p->n; v-- > 0;) {
        if (!b->needed[v])
            continue;
        uint32_t at = place[v] ? place[v] - 1 : b->before[v];
        for (uint32_t k = b->in.at[v]; k < b->in.at[v + 1]; k++) {
            uint32_t m = b->maker[b->in.id[k]];
            b->before[m] = at < b->before[m] ? at : b->before[m];
        }
        for (uint32_t k = p->before.at[v]; k < p->before.at[v + 1]; k++) {
            uint32_t r = p->before.id[k];
            if (precedes(b, r, v) && at < b->before[r])
                b->before[r] = at;
        }
    }
}

/* By tensor and form set: the last place of the path at or after which it is read, from 1. */
static uint32_t *last_reads(const LsBoundGraph *b)
{
    uint32_t *until = ls_arena_alloc(b->arena, b->p->nt + b->nform + 1u, sizeof *until);
    for (uint32_t v = 0; v < b->p->n; v++)
        for (uint32_t k = b->in.at[v]; b->needed[v] && k < b->in.at[v + 1]; k++) {
            bool on = b->after[v] > 0 && b->path[b->after[v] - 1] == v;
            uint32_t to = b->after[v] - on;
            until[b->in.id[k]] = to > until[b->in.id[k]] ? to : until[b->in.id[k]];
        }
    return until;
}

/* A tensor made before a place and read after it is live there unless it is recomputed. An output
 * counts from where it can be made: if it is not live, the operands of its maker must be. */
static void measure_crowd(LsBoundGraph *b)
{
    const LsProb *p = b->p;
    const uint32_t *until = last_reads(b);
    b->crowd = ls_arena_alloc(b->arena, b->npath + 2u, sizeof *b->crowd);
    for (uint32_t t = 0; t < p->nt + b->nform; t++) {
        uint32_t m = b->maker[t];
        if (m == LS_NO_ID || !b->needed[m])
            continue;
        bool output = is_output(b, t);
        uint32_t to = output ? b->npath : until[t];
        uint32_t from = output || b->before[m] < b->after[m] ? b->after[m] : b->before[m];
        if (from < to) {
            b->crowd[from] += b->bytes[t];
            b->crowd[to] -= b->bytes[t];
        }
    }
    for (uint32_t j = 1; j < b->npath; j++)
        b->crowd[j] += b->crowd[j - 1];
    for (uint32_t j = 0; j < b->npath; j++)
        b->crowd[j] += b->own[b->path[j]];
}

LsBoundGraph *ls_bound_graph_new(LsArena *arena, const LsProb *p)
{
    LsBoundGraph *b = ls_arena_alloc(arena, 1, sizeof *b);
    *b = (LsBoundGraph){.p = p, .arena = arena};
    b->group = ls_arena_alloc(arena, p->n + 1u, sizeof *b->group);
    b->maker = ls_arena_alloc(arena, 2 * (size_t)p->nt + 1, sizeof *b->maker);
    b->bytes = ls_arena_alloc(arena, 2 * (size_t)p->nt + 1, sizeof *b->bytes);
    b->cost = ls_arena_alloc(arena, p->n + 1u, sizeof *b->cost);
    b->needed = ls_arena_alloc(arena, p->n + 1u, sizeof *b->needed);
    b->alone = ls_arena_alloc(arena, p->n + 1u, sizeof *b->alone);
    b->stuck = ls_arena_alloc(arena, p->n + 1u, sizeof *b->stuck);
    b->own = ls_arena_alloc(arena, p->n + 1u, sizeof *b->own);
    b->before = ls_arena_alloc(arena, p->n + 1u, sizeof *b->before);
    b->after = ls_arena_alloc(arena, p->n + 1u, sizeof *b->after);
    find_groups(b);
    fill_rows(b);
    for (uint32_t t = 0; t < p->nt; t++)
        b->bytes[t] = ls_bound_bytes(p, t);
    ls_bound_find_forms(b);
    find_needed(b);
    find_path(b);
    place_groups(b);
    measure_crowd(b);
    return b;
}
