/* scheduler/state_search/inplace_matching.h -- the most bytes that in-place reuse can spare while a node runs.
 *
 * An operand hands its place to one result at most, and a result takes one place at most: the pairs
 * that are used are a matching of results with operands. A result that is matched spares its own
 * size, whichever operand it is matched with. Sets of results that can be matched are therefore the
 * independent sets of a matroid, and taking the largest results first, each by an augmenting path,
 * spares the most (Edmonds and Fulkerson 1965): work is polynomial in the pairs. */
#ifndef LS_SCHEDULER_STATE_SEARCH_INPLACE_MATCHING_H
#define LS_SCHEDULER_STATE_SEARCH_INPLACE_MATCHING_H

#include "base/csr.h"
#include "scheduler/graph/dag.h"

typedef struct LsInplaceNode {
    uint32_t *out, nout;        /* results of usable pairs: tensors, the largest first */
    uint32_t *in, nin;          /* operands of usable pairs: tensors */
    LsRows may;                 /* by number in `out`: numbers in `in` */
    bool apart;                 /* no tensor is in two of the pairs */
} LsInplaceNode;

typedef struct LsInplace {
    LsInplaceNode *node;        /* by node */
    const int64_t *size;        /* by tensor: bytes */
    uint32_t *held, *holder;    /* scratch: by number in `out`, `in`: the other end of its pair */
    uint32_t *from, *queue;     /* of the search for an augmenting path: by number in `in`; results */
    uint32_t *seen, stamp;      /* by number in `in` */
    uint64_t looks;             /* pairs looked at so far; the owner may clear it */
} LsInplace;

/* may_use: whether a pair may be used at all. Uses `arena` for all it makes; `size` must last. */
LsInplace *ls_inplace_new(LsArena *arena, const LsDag *dag, const int64_t *size,
                          bool (*may_use)(const void *of, LsDagPair pair), const void *of);

/* Bytes spared by a run of `node` when the tensors in `stays` (a bit each) live on behind it. Of a
 * node with so many pairs that the best matching would take too long: no less than that. */
int64_t ls_inplace_spared(LsInplace *x, uint32_t node, const uint64_t *stays);

#endif
