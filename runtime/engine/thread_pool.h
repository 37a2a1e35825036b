/* runtime/engine/thread_pool.h -- the threads that share the work of a kernel (ls_parallel of
 * ls_program.h). */
#ifndef LS_RUNTIME_ENGINE_THREAD_POOL_H
#define LS_RUNTIME_ENGINE_THREAD_POOL_H

#include "runtime/ls_program.h"

typedef struct LsPool LsPool;

/* A pool in which `threads` threads work, the caller of ls_parallel included: threads - 1 are
 * started. threads < 1 counts as 1. NULL: out of memory, or threads could not be started. */
LsPool *ls_pool_create(int threads);
void ls_pool_destroy(LsPool *pool);     /* NULL is allowed; no ls_parallel may be in progress */
int ls_pool_threads(const LsPool *pool);

#endif
