/* scheduler/local_search/window_search.h -- finds the cheapest runs for a window, a part of a
 * sequence.
 *
 * The tensors live after the window stay the same, and the tensors live before it may be used. In
 * between any nodes may run in any order and any number of times, also nodes that did not run there
 * before. So nothing outside gets worse. */
#ifndef LS_SCHEDULER_LOCAL_SEARCH_WINDOW_SEARCH_H
#define LS_SCHEDULER_LOCAL_SEARCH_WINDOW_SEARCH_H

#include "scheduler/order/liveness.h"

typedef struct LsWindow {
    uint32_t from, to;          /* runs of the sequence: from .. to - 1 */
    int64_t target;             /* live peak, bytes */
    uint32_t most;              /* states to try */
    bool fit;                   /* accept any result within the target, even a dearer one */
} LsWindow;

typedef struct LsWindowSpent {
    uint64_t states;            /* states tried */
    uint64_t work;              /* as search_limit.h counts it */
} LsWindowSpent;

/* live: the liveness of seq. Returns whether a better sequence was found: *better, from `arena`.
 * *spent counts the work. At most some 60 nodes may run in the window. */
bool ls_window_improve(LsArena *arena, const LsProb *p, const LsSeq *seq, const LsLive *live,
                       const LsWindow *w, LsSeq *better, LsWindowSpent *spent);

#endif
