/* scheduler/algorithms/max_flow.h -- min-cuts of one network under changing capacities. */
#ifndef LS_SCHEDULER_ALGORITHMS_MAX_FLOW_H
#define LS_SCHEDULER_ALGORITHMS_MAX_FLOW_H

#include <stdbool.h>

#include "base/arena.h"

/* An edge and its reverse arc are stored with the vertices they leave. */
typedef struct LsFlowArc { uint32_t to, back; int64_t room; } LsFlowArc;

typedef struct LsFlow {
    LsArena *arena;
    uint32_t n;                 /* vertices, source and sink among them */
    uint32_t *end; int64_t *capacity;       /* by edge: from, to; its capacity */
    uint32_t nedge, edge_room, capacity_room;
    int64_t *supply, *demand;   /* by vertex: from the source, to the sink */
    uint64_t work;              /* of cuts, about as search_limit.h counts it */
    bool laid;                  /* the arrays below hold the edges */
    uint32_t *first;            /* by vertex: its first arc; one extra entry at the end */
    uint32_t *at;               /* by edge: its arc */
    LsFlowArc *arc;
    int64_t *excess;            /* by vertex: inflow less outflow; < 0: a deficit */
    uint32_t *level, *next, *queue, *bucket, *count;        /* of the search */
} LsFlow;

enum { LS_FLOW_SOURCE, LS_FLOW_SINK };
#define LS_FLOW_ENDLESS (INT64_C(1) << 52)      /* no sum of finite capacities may reach it */

LsFlow ls_flow_new(LsArena *arena, uint32_t nvertex);

/* Adds an edge before the first cut. Returns its number for ls_flow_set. */
uint32_t ls_flow_edge(LsFlow *f, uint32_t from, uint32_t to, int64_t capacity);

/* Set the capacity of an edge between two vertices, or a vertex's capacity from the source and to
 * the sink. The next cut starts from the last flow. */
void ls_flow_set(LsFlow *f, uint32_t edge, int64_t capacity);
void ls_flow_set_ends(LsFlow *f, uint32_t vertex, int64_t supply, int64_t demand);

/* side[v]: v is on the source's side of the min-cut nearest to the source (push-relabel, Goldberg
 * and Tarjan 1988, from any pseudoflow as Hochbaum 2008). */
void ls_flow_cut(LsFlow *f, bool *side);

#endif
