/* scheduler/relaxation/group_graph_types.h -- the relaxed graph as arrays by group, tensor and form
 * set; group_graph.h defines these. */
#ifndef LS_SCHEDULER_RELAXATION_GROUP_GRAPH_TYPES_H
#define LS_SCHEDULER_RELAXATION_GROUP_GRAPH_TYPES_H

#include "scheduler/graph/instance.h"

/* Payments of groups to groups that are not needed but whose results their members read. */
typedef struct LsBoundPay {
    uint32_t n;
    LsRows of;           /* by node: numbers of its payments */
    uint32_t *from, *to; /* groups */
    double *paid;        /* ns */
} LsBoundPay;

typedef struct LsBoundGraph {
    const LsProb *p;
    LsArena *arena;
    uint32_t *group;            /* by node; LS_NO_ID: an alternative that replaces nothing */
    LsRows member;              /* by group: nodes */
    uint32_t *maker;            /* by tensor: its group, or LS_NO_ID; by form set: the group of its
                                 * root */
    LsRows in, out;             /* by group: tensors in the arena that it reads, each once, and form
                                 * sets; that it makes */
    LsRows form, sets;          /* by form set: its tensors, the root first; by tensor: its sets */
    uint32_t nform;             /* set k has the id p->nt + k */
    int64_t *bytes;             /* by tensor and form set: bytes while live; 0 if persistent. Bytes
                                 * counted for a set are not counted for its tensors */
    double *cost;               /* by group: of one run */
    bool *needed;               /* by group: every schedule runs it */
    bool *alone;                /* by group: one node */
    bool *stuck;                /* by group: may not run twice */
    int64_t *own;               /* by group: least bytes while it runs */
    double base;                /* lower bound on the cost of one run of every needed group and of
                                 * the groups these require */
    LsBoundPay *pay;            /* the payments for required groups; NULL: none */
    double least_cost;          /* every schedule's cost is a multiple of it; 0: unknown */
    /* The path: a chain of nodes, each waiting for the one before. Their first runs split every
     * schedule in the same order. */
    uint32_t *path, npath;      /* groups of one node */
    uint32_t *before;           /* by group: first place of the path that waits for the group, or
                                 * npath */
    uint32_t *after;            /* by group: number of places up to the last one that it waits for
                                 * or is; 0: none */
    int64_t *crowd;             /* by place: live bytes without any recomputation */
} LsBoundGraph;

/* Returns whether the group is at that place of the path or waits for it, so runs there or
 * later. */
static inline bool ls_bound_is_later(const LsBoundGraph *b, uint32_t group, uint32_t place)
{
    return b->after[group] > place;
}

/* Returns whether the group waits for that place, so all its runs come after. */
static inline bool ls_bound_is_behind(const LsBoundGraph *b, uint32_t group, uint32_t place)
{
    return ls_bound_is_later(b, group, place) && b->path[place] != group;
}

/* Returns whether that place of the path waits for the group, so the group has run before. */
static inline bool ls_bound_has_run(const LsBoundGraph *b, uint32_t group, uint32_t place)
{
    return b->before[group] <= place;
}

/* Returns whether all members of the group read tensor t. */
static inline bool ls_bound_reads(const LsBoundGraph *b, uint32_t group, uint32_t t)
{
    return ls_id_in(b->in.id + b->in.at[group], b->in.at[group + 1] - b->in.at[group], t);
}

static inline int64_t ls_bound_bytes(const LsProb *p, uint32_t tensor)
{
    return p->dag->tensor[tensor].persistent ? 0 : p->dag->tensor[tensor].bytes;
}

#endif
