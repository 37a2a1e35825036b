/* runtime/engine/thread_pool.h -- the threads that share the work of a kernel (ls_parallel of
 * ls_program.h). */
#ifndef LS_RUNTIME_ENGINE_THREAD_POOL_H
#define LS_RUNTIME_ENGINE_THREAD_POOL_H

#include "runtime/ls_program.h"

typedef struct LsPool LsPool;

/* A pool in which `threads` threads work, the caller of ls_parallel included: threads - 1 are
 * started. threads < 1 counts as 1. NULL: out of memory, or threads could not be started. */
LsPool *ls_pool_create(int threads);

/* A pool of the caller's threads: parallel_for calls task(of, k) once for each k in [0, tasks), in
 * any order on any threads, and returns when all have ended. */
typedef void (*LsParallelFor)(void *context, int tasks, void (*task)(void *of, int k), void *of);
LsPool *ls_pool_borrow(LsParallelFor parallel_for, void *context, int tasks);

void ls_pool_destroy(LsPool *pool);     /* NULL is allowed; no ls_parallel may be in progress */
/* Gives back the memory alone: in a forked process, which has none of the threads. */
void ls_pool_forget(LsPool *pool);
int ls_pool_threads(const LsPool *pool);

#endif
