/* scheduler/algorithms/tasks.h -- work in parallel.
 *
 * Results may not depend on which part ends first, nor on the number of processors: plans are the
 * same everywhere. So each part has its own problem, arena and candidates, and their results are
 * merged in a fixed order. */
#ifndef LS_SCHEDULER_ALGORITHMS_TASKS_H
#define LS_SCHEDULER_ALGORITHMS_TASKS_H

#include <stdint.h>

/* Returns the number of processors that this process may run on. */
int ls_processors(void);

typedef struct LsTask LsTask;

/* Runs run(what) on a new thread or, if none can be made, before returning. */
LsTask *ls_task_start(void (*run)(void *what), void *what);

/* Waits for the task to end and frees it. */
void ls_task_wait(LsTask *task);

/* Calls job(what, k) for all k < n, in any order, on as many threads as there are processors. */
void ls_side_by_side(uint32_t n, void (*job)(void *what, uint32_t k), void *what);

#endif
