/* scheduler/graph/instance.h -- the graph prepared for planning: what must run, who reads what, what may
 * wait. */
#ifndef LS_SCHEDULER_GRAPH_INSTANCE_H
#define LS_SCHEDULER_GRAPH_INSTANCE_H

#include "base/csr.h"
#include "scheduler/graph/dag.h"

#define LS_NO_ID UINT32_MAX

typedef enum {
    LS_ROLE_SPINE,              /* others wait for what it makes */
    LS_ROLE_LEAF,               /* only updates wait for it: a weight gradient */
    LS_ROLE_UPDATE              /* nobody waits for it: an update of a weight or of a statistic */
} LsRole;

typedef struct LsProb {
    const LsDag *dag;
    uint32_t n, nt;             /* nodes, tensors */
    int64_t *size;              /* by tensor: bytes, a multiple of the alignment; 0 if persistent */
    int64_t *workspace;         /* by node: likewise */
    double *cost;               /* by node */
    uint32_t *maker;            /* by tensor: the node that makes it, or LS_NO_ID */
    LsRows in, out;             /* by node: tensors in the arena that it reads, makes */
    LsRows swap;                /* by node that need not run itself: the alternatives that make
                                 * exactly what it makes */
    LsRows before;              /* by node that updates: the nodes that read what it updates */
    bool *used;                 /* by node: strategies run it: no alternative, or, in a variant, one
                                 * that is put in the place of what it stands for */
    bool *needed;               /* by node in use: must run, or is read by one that must */
    bool *stuck;                /* by node: may not run twice */
    bool *forward;              /* by node: a vertex of the forward graph */
    uint8_t *role;              /* by node: LsRole */
    bool inplace;               /* operands may hand their place to results */
    bool unplaced;              /* plans give no places; whoever makes the problem sets it, then nothing
                                 * of it changes */
    double base_cost;           /* of every node once, alternatives aside */
    double needed_cost;         /* of every needed node once, or of its cheapest alternative */
} LsProb;

/* Whether the result may lie where the operand does: it is not larger, before rounding either. */
static inline bool ls_prob_fits(const LsProb *p, LsDagPair pair)
{
    return p->size[pair.out] > 0
           && p->dag->tensor[pair.out].bytes <= p->dag->tensor[pair.in].bytes;
}

/* Uses `arena` for all it makes. Alternatives are never `needed`: a plan may run
 * one instead of what it stands for. */
LsProb *ls_prob_new(LsArena *arena, const LsDag *dag, bool inplace);

/* The same problem with other nodes in use: instead[v] runs where v did (v itself: no change).
 * Sequences of the one are sequences of the other. An alternative must come before all readers of
 * what it makes in the list. NULL if something is needed then that was not before. Shares what it
 * can with p, which must last. */
LsProb *ls_prob_variant(LsArena *arena, const LsProb *p, const uint32_t *instead);

/* The nodes that must run to have tensor t made again while the tensors `there` (flags) are:
 * rising, into `to` (room for p->n); how many. mark: by node, `stamp` nowhere before; it is left
 * at these. */
uint32_t ls_prob_remake(const LsProb *p, uint32_t t, const bool *there, uint32_t *mark,
                        uint32_t stamp, uint32_t *to);

#endif
