/* scheduler/relaxation/group_graph_types.h -- what every schedule of a graph has in common, as arrays
 * by group, tensor and form set; group_graph.h says what these are. */
#ifndef LS_SCHEDULER_RELAXATION_GROUP_GRAPH_TYPES_H
#define LS_SCHEDULER_RELAXATION_GROUP_GRAPH_TYPES_H

#include "scheduler/graph/instance.h"

/* Payments of a group to groups that are not needed and of which its members read something. */
typedef struct LsBoundPay {
    uint32_t n;
    LsRows of;           /* by node: numbers of those it makes */
    uint32_t *from, *to; /* groups */
    double *paid;        /* ns */
} LsBoundPay;

typedef struct LsBoundGraph {
    const LsProb *p;
    LsArena *arena;
    uint32_t *group;            /* by node; LS_NO_ID: an alternative for nothing */
    LsRows member;              /* by group: nodes */
    uint32_t *maker;            /* by tensor: a group, or LS_NO_ID; by form set: of its root */
    LsRows in, out;             /* by group: tensors in the arena, each once; form sets read */
    LsRows form, sets;          /* by form set: its tensors, the root first; by tensor: its sets */
    uint32_t nform;             /* set k has the id p->nt + k */
    int64_t *bytes;             /* by tensor, form set: of what is live; 0 if persistent. What a set
                                 * counts for, its tensors do not */
    double *cost;               /* by group: of one run */
    bool *needed;               /* by group: every schedule runs it */
    bool *alone;                /* by group: one node */
    bool *stuck;                /* by group: may not run twice */
    int64_t *own;               /* by group: bytes while it runs, at the least */
    double base;                /* cost of every needed group once, and of what that draws in */
    LsBoundPay *pay;            /* that; NULL: nothing */
    double least_cost;          /* a schedule's cost comes in multiples of it; 0: unknown */
    /* Nodes each of which waits for the one before: their first runs part every schedule alike. */
    uint32_t *path, npath;      /* groups of one node */
    uint32_t *before;           /* by group: first place of the path that waits for it, or npath */
    uint32_t *after;            /* by group: places of the path up to the last that it waits for
                                 * or is; 0: none */
    int64_t *crowd;             /* by place: bytes there if nothing were ever made again */
} LsBoundGraph;

/* Whether the group is at that place of the path or waits for it: it runs there or later. */
static inline bool ls_bound_is_later(const LsBoundGraph *b, uint32_t group, uint32_t place)
{
    return b->after[group] > place;
}

/* Whether it waits for it: all its runs are behind. */
static inline bool ls_bound_is_behind(const LsBoundGraph *b, uint32_t group, uint32_t place)
{
    return ls_bound_is_later(b, group, place) && b->path[place] != group;
}

/* Whether that place of the path waits for the group: it has run before. */
static inline bool ls_bound_has_run(const LsBoundGraph *b, uint32_t group, uint32_t place)
{
    return b->before[group] <= place;
}

/* Whether all members of the group read tensor t. */
static inline bool ls_bound_reads(const LsBoundGraph *b, uint32_t group, uint32_t t)
{
    return ls_id_in(b->in.id + b->in.at[group], b->in.at[group + 1] - b->in.at[group], t);
}

static inline int64_t ls_bound_bytes(const LsProb *p, uint32_t tensor)
{
    return p->dag->tensor[tensor].persistent ? 0 : p->dag->tensor[tensor].bytes;
}

#endif
