/* scheduler/flow.c -- Dinic's algorithm: breadth-first levels, then a blocking flow along them. */
#include "scheduler/flow.h"

#include <string.h>

LsFlow ls_flow_new(LsArena *arena, uint32_t nvertex)
{
    return (LsFlow){.arena = arena, .n = nvertex,
                    .head = ls_arena_alloc(arena, nvertex, sizeof(uint32_t))};
}

static void add(LsFlow *f, uint32_t from, uint32_t to, int64_t room)
{
    f->edge[f->nedge++] = (LsFlowEdge){to, f->head[from], room};
    f->head[from] = f->nedge;
}

void ls_flow_edge(LsFlow *f, uint32_t from, uint32_t to, int64_t capacity)
{
    f->edge = ls_arena_grow(f->arena, f->edge, f->nedge, f->nedge + 2u, sizeof *f->edge,
                            &f->edge_room);
    add(f, from, to, capacity);
    add(f, to, from, 0);
}

/* level[v]: edges from the source, from 1; 0: not reached. */
static bool find_levels(const LsFlow *f, uint32_t *level, uint32_t *queue)
{
    uint32_t nqueue = 0;
    memset(level, 0, f->n * sizeof *level);
    queue[nqueue++] = LS_FLOW_SOURCE;
    level[LS_FLOW_SOURCE] = 1;
    for (uint32_t k = 0; k < nqueue; k++)
        for (uint32_t e = f->head[queue[k]]; e != 0; e = f->edge[e - 1].next) {
            const LsFlowEdge *edge = &f->edge[e - 1];
            if (edge->room > 0 && level[edge->to] == 0) {
                level[edge->to] = level[queue[k]] + 1;
                queue[nqueue++] = edge->to;
            }
        }
    return level[LS_FLOW_SINK] != 0;
}

static void push(LsFlow *f, const uint32_t *path, uint32_t n)
{
    int64_t most = INT64_MAX;
    for (uint32_t k = 0; k < n; k++)
        most = f->edge[path[k]].room < most ? f->edge[path[k]].room : most;
    for (uint32_t k = 0; k < n; k++) {
        f->edge[path[k]].room -= most;
        f->edge[path[k] ^ 1].room += most;
    }
}

/* Paths by depth, each vertex going on from the edge it last tried. */
static void block(LsFlow *f, const uint32_t *level, uint32_t *next, uint32_t *path)
{
    uint32_t n = 0, v = LS_FLOW_SOURCE;
    memcpy(next, f->head, f->n * sizeof *next);
    for (;;) {
        if (v == LS_FLOW_SINK) {
            push(f, path, n);
            uint32_t k = 0;                         /* back to before the first full edge */
            while (f->edge[path[k]].room > 0)
                k++;
            n = k;
            v = f->edge[path[k] ^ 1].to;
            continue;
        }
        uint32_t e = next[v];
        if (e == 0) {                               /* a dead end */
            if (n == 0)
                return;
            v = f->edge[path[--n] ^ 1].to;
            next[v] = f->edge[next[v] - 1].next;
            continue;
        }
        const LsFlowEdge *edge = &f->edge[e - 1];
        if (edge->room > 0 && level[edge->to] == level[v] + 1) {
            path[n++] = e - 1;
            v = edge->to;
        } else {
            next[v] = edge->next;
        }
    }
}

void ls_flow_cut(LsFlow *f, bool *side)
{
    uint32_t *level = ls_arena_alloc(f->arena, f->n, sizeof *level);
    uint32_t *work = ls_arena_alloc(f->arena, f->n, sizeof *work);
    uint32_t *path = ls_arena_alloc(f->arena, f->n, sizeof *path);
    while (find_levels(f, level, work))
        block(f, level, work, path);
    for (uint32_t v = 0; v < f->n; v++)
        side[v] = level[v] != 0;
}
