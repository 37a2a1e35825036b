/* dataset/ordered_work.h -- work in threads whose results are taken in the order of its numbers. */
#ifndef LS_DATASET_ORDERED_WORK_H
#define LS_DATASET_ORDERED_WORK_H

#include "runtime/base/run_error.h"

#include <stdint.h>

/* Chunk c is made in slot c % slots by any thread; then, one at a time and in the order of c,
 * taken. Both get the slot; `make` may not touch anything else that changes. */
typedef struct LsOrderedWork {
    int64_t chunks;
    int threads, slots;
    void (*make)(void *to, int64_t chunk, int slot);
    bool (*take)(void *to, int64_t chunk, int slot); /* false: the work ends */
    void *to;
} LsOrderedWork;

/* False: `take` ended it, or there are no threads, which `e` says. */
bool ls_ordered_work(const LsOrderedWork *w, LsError *e);

#endif
