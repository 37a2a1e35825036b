/* scheduler/algorithms/max_flow.c -- push-relabel, highest label first, with gaps and global
 * relabelling.
 *
 * Source and sink are not in the network: a vertex starts with its supply less its demand as
 * excess. Excess is pushed towards vertices with a deficit until none can be reached. The vertices
 * reachable from a vertex with excess left are the source's side. So a flow that a changed capacity
 * has broken is a valid start: the flow that no longer fits becomes excess where the edge begins
 * and a deficit where it ends. */
#include "scheduler/algorithms/max_flow.h"

#include <string.h>

#define NONE UINT32_MAX

LsFlow ls_flow_new(LsArena *arena, uint32_t nvertex)
{
    return (LsFlow){.arena = arena, .n = nvertex,
                    .supply = ls_arena_alloc(arena, nvertex, sizeof(int64_t)),
                    .demand = ls_arena_alloc(arena, nvertex, sizeof(int64_t))};
}

static bool is_end(uint32_t v) { return v == LS_FLOW_SOURCE || v == LS_FLOW_SINK; }

uint32_t ls_flow_edge(LsFlow *f, uint32_t from, uint32_t to, int64_t capacity)
{
    if (from == LS_FLOW_SOURCE && !is_end(to))
        f->supply[to] += capacity;
    if (to == LS_FLOW_SINK && !is_end(from))
        f->demand[from] += capacity;
    if (is_end(from) || is_end(to) || from == to)
        return NONE;
    f->end = ls_arena_grow(f->arena, f->end, 2 * (size_t)f->nedge, 2 * ((size_t)f->nedge + 1),
                           sizeof *f->end, &f->edge_room);
    f->capacity = ls_arena_grow(f->arena, f->capacity, f->nedge, f->nedge + 1u,
                                sizeof *f->capacity, &f->capacity_room);
    f->end[2 * f->nedge] = from;
    f->end[2 * f->nedge + 1] = to;
    f->capacity[f->nedge] = capacity;
    return f->nedge++;
}

/* Lays out the arcs by the vertex they leave, without flow. */
static void lay(LsFlow *f)
{
    f->first = ls_arena_alloc(f->arena, f->n + 2u, sizeof *f->first);
    f->at = ls_arena_alloc(f->arena, f->nedge + 1u, sizeof *f->at);
    f->arc = ls_arena_alloc(f->arena, 2 * (size_t)f->nedge + 1, sizeof *f->arc);
    f->excess = ls_arena_alloc(f->arena, f->n, sizeof *f->excess);
    f->level = ls_arena_alloc(f->arena, f->n, sizeof *f->level);
    f->next = ls_arena_alloc(f->arena, f->n, sizeof *f->next);
    f->queue = ls_arena_alloc(f->arena, f->n, sizeof *f->queue);
    f->bucket = ls_arena_alloc(f->arena, f->n + 1u, sizeof *f->bucket);
    f->count = ls_arena_alloc(f->arena, f->n + 1u, sizeof *f->count);
    for (uint32_t k = 0; k < 2 * f->nedge; k++)
        f->first[f->end[k] + 2]++;
    for (uint32_t v = 2; v < f->n + 2; v++)
        f->first[v] += f->first[v - 1];
    for (uint32_t k = 0; k < f->nedge; k++) {
        uint32_t from = f->end[2 * k], to = f->end[2 * k + 1];
        uint32_t a = f->first[from + 1]++, b = f->first[to + 1]++;
        f->arc[a] = (LsFlowArc){to, b, f->capacity[k]};
        f->arc[b] = (LsFlowArc){from, a, 0};
        f->at[k] = a;
    }
    for (uint32_t v = 0; v < f->n; v++)
        f->excess[v] = f->supply[v] - f->demand[v];
    f->laid = true;
}

void ls_flow_set(LsFlow *f, uint32_t edge, int64_t capacity)
{
    int64_t more = capacity - f->capacity[edge];
    f->capacity[edge] = capacity;
    if (!f->laid)
        return;
    LsFlowArc *a = &f->arc[f->at[edge]], *b = &f->arc[a->back];
    a->room += more;
    if (a->room < 0) {          /* flow that no longer fits returns to the edge's start */
        f->excess[f->end[2 * edge]] -= a->room;
        f->excess[f->end[2 * edge + 1]] += a->room;
        b->room += a->room;
        a->room = 0;
    }
}

void ls_flow_set_ends(LsFlow *f, uint32_t v, int64_t supply, int64_t demand)
{
    if (f->laid)
        f->excess[v] += supply - f->supply[v] - demand + f->demand[v];
    f->supply[v] = supply;
    f->demand[v] = demand;
}

/* Sets level[v] to the edges to the nearest vertex with a deficit; f->n: none can be reached. */
static void relabel_all(LsFlow *f)
{
    uint32_t n = 0;
    memset(f->count, 0, (f->n + 1) * sizeof *f->count);
    for (uint32_t v = 0; v < f->n; v++) {
        f->level[v] = f->excess[v] < 0 ? 0 : f->n;
        if (f->excess[v] < 0)
            f->queue[n++] = v;
    }
    for (uint32_t k = 0; k < n; k++) {
        uint32_t v = f->queue[k];
        f->count[f->level[v]]++;
        for (uint32_t a = f->first[v]; a < f->first[v + 1]; a++) {
            uint32_t u = f->arc[a].to;
            if (f->level[u] == f->n && f->arc[f->arc[a].back].room > 0) {
                f->level[u] = f->level[v] + 1;
                f->queue[n++] = u;
            }
        }
    }
}

/* Fills the buckets, by level, with the vertices with excess that may still push; returns the
 * highest level. */
static uint32_t fill_buckets(LsFlow *f)
{
    uint32_t top = 0;
    memset(f->bucket, 0xff, (f->n + 1) * sizeof *f->bucket);
    for (uint32_t v = 0; v < f->n; v++)
        if (f->excess[v] > 0 && f->level[v] < f->n) {
            f->next[v] = f->bucket[f->level[v]];
            f->bucket[f->level[v]] = v;
            top = f->level[v] > top ? f->level[v] : top;
        }
    return top;
}

/* No vertex is left on level `gap`, so vertices above it reach no deficit. Those with excess stay
 * in their buckets and are skipped there. */
static void close_gap(LsFlow *f, uint32_t gap)
{
    for (uint32_t v = 0; v < f->n; v++)
        if (f->level[v] > gap && f->level[v] < f->n) {
            f->count[f->level[v]]--;
            f->level[v] = f->n;
        }
}

/* Pushes as much as possible along arcs that go down; the arcs examined count as work. */
static void push_down(LsFlow *f, uint32_t v)
{
    for (uint32_t a = f->first[v]; a < f->first[v + 1] && f->excess[v] > 0; a++) {
        LsFlowArc *arc = &f->arc[a];
        f->work++;
        if (arc->room == 0 || f->level[v] != f->level[arc->to] + 1)
            continue;
        int64_t x = f->excess[v] < arc->room ? f->excess[v] : arc->room;
        arc->room -= x;
        f->arc[arc->back].room += x;
        f->excess[v] -= x;
        bool wakes = f->excess[arc->to] <= 0 && f->excess[arc->to] + x > 0;
        f->excess[arc->to] += x;
        if (wakes) {
            f->next[arc->to] = f->bucket[f->level[arc->to]];
            f->bucket[f->level[arc->to]] = arc->to;
        }
    }
}

static void lift(LsFlow *f, uint32_t v)
{
    uint32_t old = f->level[v], low = f->n;
    for (uint32_t a = f->first[v]; a < f->first[v + 1]; a++)
        if (f->arc[a].room > 0 && f->level[f->arc[a].to] + 1 < low)
            low = f->level[f->arc[a].to] + 1;
    f->work += f->first[v + 1] - f->first[v];
    f->level[v] = low;
    f->count[old]--;
    if (low < f->n)
        f->count[low]++;
    if (f->count[old] == 0 && old > 0) {
        close_gap(f, old);
        f->work += f->n / 8;
    }
}

/* Lets v push and rise until its excess is gone or cannot leave; returns the highest level it
 * reached. */
static uint32_t discharge(LsFlow *f, uint32_t v)
{
    uint32_t top = f->level[v];
    while (f->level[v] < f->n) {
        push_down(f, v);
        top = f->level[v] > top ? f->level[v] : top;
        if (f->excess[v] <= 0)
            break;
        lift(f, v);
    }
    return top;
}

/* Relabels all and fills the buckets; returns the highest level. *next: the work at which to do so
 * again. */
static uint32_t start_over(LsFlow *f, uint64_t *next)
{
    const uint64_t mine = 6 * (uint64_t)f->n + 2 * (uint64_t)f->nedge;
    relabel_all(f);
    f->work += mine;
    *next = f->work + mine;
    return fill_buckets(f);
}

static void spread(LsFlow *f)
{
    uint64_t next;
    uint32_t top = start_over(f, &next);
    for (;;) {
        while (top > 0 && f->bucket[top] == NONE)
            top--;
        uint32_t v = f->bucket[top];
        if (v == NONE)
            return;
        f->bucket[top] = f->next[v];
        if (f->level[v] != top)                     /* it no longer reaches a deficit */
            continue;
        uint32_t reached = discharge(f, v);
        top = reached > top ? reached : top;
        if (f->work > next)
            top = start_over(f, &next);
    }
}

void ls_flow_cut(LsFlow *f, bool *side)
{
    uint32_t n = 0;
    if (!f->laid)
        lay(f);
    spread(f);
    for (uint32_t v = 0; v < f->n; v++) {
        side[v] = f->excess[v] > 0;
        if (side[v])
            f->queue[n++] = v;
    }
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t a = f->first[f->queue[k]]; a < f->first[f->queue[k] + 1]; a++)
            if (f->arc[a].room > 0 && !side[f->arc[a].to]) {
                side[f->arc[a].to] = true;
                f->queue[n++] = f->arc[a].to;
            }
    side[LS_FLOW_SOURCE] = true;
    side[LS_FLOW_SINK] = false;
}
