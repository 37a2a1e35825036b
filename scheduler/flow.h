/* scheduler/flow.h -- minimum cuts. */
#ifndef LS_SCHEDULER_FLOW_H
#define LS_SCHEDULER_FLOW_H

#include <stdbool.h>

#include "compiler/arena.h"

/* edge k ^ 1 is the way back */
typedef struct LsFlowEdge { uint32_t to, next; int64_t room; } LsFlowEdge;

typedef struct LsFlow {
    LsArena *arena;
    uint32_t n, nedge, edge_room;
    uint32_t *head;             /* by vertex: its first edge + 1, or 0 */
    LsFlowEdge *edge;
} LsFlow;

enum { LS_FLOW_SOURCE, LS_FLOW_SINK };
#define LS_FLOW_ENDLESS (INT64_MAX / 4)

LsFlow ls_flow_new(LsArena *arena, uint32_t nvertex);
void ls_flow_edge(LsFlow *f, uint32_t from, uint32_t to, int64_t capacity);

/* side[v]: v is on the source's side of the minimum cut nearest to the source (Dinic 1970). */
void ls_flow_cut(LsFlow *f, bool *side);

#endif
