/* tests/support/comm_in_threads.h -- ranks that are threads of the test. */
#ifndef LS_TESTS_SUPPORT_COMM_IN_THREADS_H
#define LS_TESTS_SUPPORT_COMM_IN_THREADS_H

#include "runtime/comm/comm_threads.h"

#include <check.h>
#include <pthread.h>

/* Calls `rank_main` with the LsComm of each rank, which it closes, in a thread of its own, and
 * waits for all. size: up to 8. */
static inline void comm_run_in_threads(void *(*rank_main)(void *), int size)
{
    LsComm *c[8];
    pthread_t thread[8];
    LsError e = {0};
    ck_assert_msg(ls_comm_threads_open(size, c, &e), "%s", e.text);
    for (int k = 0; k < size; k++)
        ck_assert_int_eq(pthread_create(&thread[k], NULL, rank_main, c[k]), 0);
    for (int k = 0; k < size; k++)
        pthread_join(thread[k], NULL);
}

#endif
