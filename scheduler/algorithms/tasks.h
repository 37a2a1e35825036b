/* scheduler/algorithms/tasks.h -- work that is done side by side.
 *
 * Nothing that comes of it may depend on which part ends first, nor on how many processors there
 * are: plans are the same everywhere. So each part has a problem, an arena and candidates of its
 * own, and what the parts found is taken over in a fixed order. */
#ifndef LS_SCHEDULER_ALGORITHMS_TASKS_H
#define LS_SCHEDULER_ALGORITHMS_TASKS_H

#include <stdint.h>

/* That this process may run on. */
int ls_processors(void);

typedef struct LsTask LsTask;

/* Runs run(what) on a thread of its own; where none is to be had, before this returns. */
LsTask *ls_task_start(void (*run)(void *what), void *what);

/* Waits for its end and frees it. */
void ls_task_wait(LsTask *task);

/* job(what, k) for all k < n, in any order, on as many threads as there are processors. */
void ls_side_by_side(uint32_t n, void (*job)(void *what, uint32_t k), void *what);

#endif
