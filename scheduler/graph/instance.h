/* scheduler/graph/instance.h -- the graph prepared for planning: which nodes must run, who reads
 * each tensor, which nodes may wait. */
#ifndef LS_SCHEDULER_GRAPH_INSTANCE_H
#define LS_SCHEDULER_GRAPH_INSTANCE_H

#include "base/csr.h"
#include "scheduler/graph/dag.h"

#define LS_NO_ID UINT32_MAX

typedef enum {
    LS_ROLE_SPINE,              /* other nodes wait for its results */
    LS_ROLE_LEAF,               /* only updates wait for it: a weight gradient */
    LS_ROLE_UPDATE              /* no node waits for it: it updates a weight or a statistic */
} LsRole;

typedef struct LsProb {
    const LsDag *dag;
    uint32_t n, nt;             /* nodes, tensors */
    int64_t *size;              /* by tensor: bytes, a multiple of the alignment; 0 if persistent */
    int64_t *workspace;         /* by node: bytes, a multiple of the alignment */
    double *cost;               /* by node */
    uint32_t *maker;            /* by tensor: its producer, or LS_NO_ID */
    LsRows in, out;             /* by node: the tensors in the arena that it reads; that it makes */
    LsRows swap;                /* by node that an alternative may replace: the alternatives with
                                 * exactly its results */
    LsRows before;              /* by updating node: the readers of the tensors that it updates */
    bool *used;                 /* by node: strategies run it: an ordinary node or, in a variant, an
                                 * alternative that replaces one */
    bool *needed;               /* by used node: it must run, or a node that must run needs its
                                 * results */
    bool *stuck;                /* by node: it may not run twice */
    bool *forward;              /* by node: it is a vertex of the forward graph */
    uint8_t *role;              /* by node: LsRole */
    bool inplace;               /* a result may take the place of an operand */
    bool unplaced;              /* plans give no offsets; set by the maker of the problem, constant
                                 * afterwards */
    double base_cost;           /* of every needed node once. Nodes whose results only alternatives
                                 * read are not needed */
} LsProb;

/* The node must run, and others may wait for it: strategies that go through the list run it there,
 * and updates as soon as they can. */
static inline bool ls_prob_is_listed(const LsProb *p, uint32_t v)
{
    return p->needed[v] && p->role[v] != LS_ROLE_UPDATE;
}

/* By tensor: the listed nodes that read it, in order. Allocates in `arena`. */
LsRows ls_prob_reads(LsArena *arena, const LsProb *p);

/* Returns whether the result may lie in the place of the operand: the result is not larger, before
 * rounding either. */
static inline bool ls_prob_fits(const LsProb *p, LsDagPair pair)
{
    return p->size[pair.out] > 0
           && p->dag->tensor[pair.out].bytes <= p->dag->tensor[pair.in].bytes;
}

/* Returns whether a result of node v may take the place of tensor t. A value or sum that is put
 * together part by part is such a t: it is made before other operands of v, so that all the parts
 * before are done with. */
bool ls_prob_takes_place(const LsProb *p, uint32_t v, uint32_t t);

/* Allocates in `arena`. Alternatives are never `needed`: a plan may run one instead of the node
 * that it stands for. */
LsProb *ls_prob_new(LsArena *arena, const LsDag *dag, bool inplace);

/* Returns the same problem with other nodes in use: instead[v] runs where v did (v itself: no
 * change). A sequence of one problem is a sequence of the other. In the list an alternative must
 * come before all readers of its results. Returns NULL if a node becomes needed that was not
 * before. Shares arrays with p, which must last. */
LsProb *ls_prob_variant(LsArena *arena, const LsProb *p, const uint32_t *instead);

/* Writes to `to` (room for p->n) the nodes that must run to recompute tensor t while the tensors
 * `there` (flags) are in memory, by rising id. Returns their number. mark: by node, nowhere `stamp`
 * on entry; marks these nodes with `stamp`. */
uint32_t ls_prob_remake(const LsProb *p, uint32_t t, const bool *there, uint32_t *mark,
                        uint32_t stamp, uint32_t *to);

#endif
