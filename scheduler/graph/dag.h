/* scheduler/graph/dag.h -- the problem: a training graph as plain arrays of sizes, costs and edges.
 *
 * The scheduler knows no operators. Ids are dense and start at 0; the node list is a topological
 * order. The fields have the meanings of the interchange format "lowerset-graph" version 1, which
 * dag_read.c reads and dag_write.c writes. */
#ifndef LS_SCHEDULER_GRAPH_DAG_H
#define LS_SCHEDULER_GRAPH_DAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { LS_DAG_FORWARD, LS_DAG_BACKWARD, LS_DAG_OPTIMIZER } LsDagKind;

typedef struct LsDagTensor {
    const char *name;
    int64_t bytes;
    bool persistent;            /* state, input or constant: outside the arena, not part of any
                                 * peak */
    bool output;                /* must be live at the end of the schedule */
} LsDagTensor;

typedef struct LsDagPair { uint32_t out, in; } LsDagPair;   /* tensor ids */

typedef struct LsDagNode {
    const char *name, *op;
    LsDagKind kind;
    double cost;                /* of one run, ns */
    int64_t workspace;          /* bytes, while the node runs */
    const uint32_t *in;  uint32_t nin;      /* tensors that the node really reads */
    const uint32_t *out; uint32_t nout;     /* tensors that it makes; none is persistent */
    const uint32_t *upd; uint32_t nupd;     /* persistent tensors that it changes; such a node runs
                                             * exactly once, and no node reads these tensors
                                             * afterwards */
    const LsDagPair *inplace; uint32_t ninplace;
    bool once, required, alternative;
    int64_t of;                 /* forward node of a backward or optimizer node; -1: none */
} LsDagNode;

typedef struct LsDag {
    const char *name;
    int64_t alignment;          /* of every arena offset, bytes */
    LsDagTensor *tensor; uint32_t ntensor;
    LsDagNode *node;     uint32_t nnode;
    const uint32_t *pass;       /* by node: large values are made in parts, each by a node of its
                                 * own, and nodes of the same pass follow each other part by part.
                                 * NULL: there are no parts */
    const char *const *type; uint32_t ntype;    /* for people: types of the first ntype tensors,
                                                 * where their elements have 16 bits ("bf16"); NULL
                                                 * of others */
    const char *const *label;   /* for people: what these tensors are, such as "lm_head [64x96]", as
                                 * names of temporary values say nothing; NULL: not known */
} LsDag;

/* The type of a tensor of 16 bits; NULL: others, or not known. */
static inline const char *ls_dag_type(const LsDag *g, uint32_t tensor)
{
    return tensor < g->ntype ? g->type[tensor] : NULL;
}

/* What a tensor is called before people. */
static inline const char *ls_dag_label(const LsDag *g, uint32_t tensor)
{
    return g->label != NULL && tensor < g->ntype ? g->label[tensor] : g->tensor[tensor].name;
}

/* Returns the least multiple of `to` that is at least n. */
static inline int64_t ls_align(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

/* Returns the bytes of inputs, state and constants, which lie outside the arena. */
static inline int64_t ls_dag_persistent_bytes(const LsDag *g)
{
    int64_t bytes = 0;
    for (uint32_t t = 0; t < g->ntensor; t++)
        bytes += g->tensor[t].persistent ? g->tensor[t].bytes : 0;
    return bytes;
}

/* Is id in the list? */
static inline bool ls_id_in(const uint32_t *list, uint32_t n, uint32_t id)
{
    for (uint32_t k = 0; k < n; k++)
        if (list[k] == id)
            return true;
    return false;
}

#endif
