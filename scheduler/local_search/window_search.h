/* scheduler/local_search/window_search.h -- the cheapest way through a part of a sequence.
 *
 * What is live behind the part stays as it is, and what is live in front of it may be used; between
 * them nodes may run in any order and any number of times, also such as did not run there before.
 * So nothing outside gets worse. */
#ifndef LS_SCHEDULER_LOCAL_SEARCH_WINDOW_SEARCH_H
#define LS_SCHEDULER_LOCAL_SEARCH_WINDOW_SEARCH_H

#include "scheduler/order/liveness.h"

typedef struct LsWindow {
    uint32_t from, to;          /* runs of the sequence: from .. to - 1 */
    int64_t target;             /* bytes of live peak */
    uint32_t most;              /* states to try */
    bool fit;                   /* what is within the target will do, though it costs more */
} LsWindow;

typedef struct LsWindowSpent {
    uint64_t states;            /* that were tried */
    uint64_t work;              /* as search_limit.h counts it */
} LsWindowSpent;

/* live: of seq. Whether there is something that will do: *better, from `arena`. *spent counts
 * what was done. No more than some 60 nodes may run in the window. */
bool ls_window_improve(LsArena *arena, const LsProb *p, const LsSeq *seq, const LsLive *live,
                       const LsWindow *w, LsSeq *better, LsWindowSpent *spent);

#endif
