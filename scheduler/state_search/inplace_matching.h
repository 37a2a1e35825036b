/* scheduler/state_search/inplace_matching.h -- the most bytes that in-place reuse can save while a
 * node runs.
 *
 * An operand gives its place to at most one result, and a result takes at most one place, so the
 * pairs used form a matching of results with operands. A matched result saves its own size,
 * whichever operand it is matched with. The sets of results that can be matched are the independent
 * sets of a matroid. Taking the largest results first, each by an augmenting path, therefore saves
 * the most (Edmonds and Fulkerson 1965), in time polynomial in the pairs. */
#ifndef LS_SCHEDULER_STATE_SEARCH_INPLACE_MATCHING_H
#define LS_SCHEDULER_STATE_SEARCH_INPLACE_MATCHING_H

#include "base/csr.h"
#include "scheduler/graph/dag.h"

typedef struct LsInplaceNode {
    uint32_t *out, nout;        /* results of usable pairs: tensors, the largest first */
    uint32_t *in, nin;          /* operands of usable pairs: tensors */
    LsRows may;                 /* by number in `out`: numbers in `in` */
    bool apart;                 /* no tensor is in two pairs */
} LsInplaceNode;

typedef struct LsInplace {
    LsInplaceNode *node;        /* by node */
    const int64_t *size;        /* by tensor: bytes */
    uint32_t *held, *holder;    /* scratch, by number in `out` and in `in`: the other end of its
                                 * pair */
    uint32_t *from, *queue;     /* search for an augmenting path: `from` by number in `in`; queue of
                                 * results */
    uint32_t *seen, stamp;      /* by number in `in` */
    uint64_t looks;             /* pairs examined so far; the owner may clear it */
} LsInplace;

/* may_use: whether a pair may be used at all. Allocates in `arena`; `size` must outlast it. */
LsInplace *ls_inplace_new(LsArena *arena, const LsDag *dag, const int64_t *size,
                          bool (*may_use)(const void *of, LsDagPair pair), const void *of);

/* Returns the bytes saved at a run of `node` when the tensors in `stays` (one bit each) stay live
 * after it. For a node with so many pairs that the best matching takes too long, returns an upper
 * bound. */
int64_t ls_inplace_spared(LsInplace *x, uint32_t node, const uint64_t *stays);

#endif
