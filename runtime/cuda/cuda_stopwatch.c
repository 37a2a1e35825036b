/* runtime/cuda/cuda_stopwatch.c -- times work with two events around it. */
#include "runtime/cuda/cuda_stopwatch.h"

enum {
    ROUNDS = 3,                 /* the fastest round counts */
    MOST = 20,                  /* most runs in a round */
};
static const double enough = 2e5;       /* ns of a round; makes the launch overhead negligible */

/* ns of n consecutive runs; < 0: failed. */
static double round_of(LsCuda *c, int n, bool (*run)(void *job), void *job)
{
    float ms = 0;
    bool ok = cudaEventRecord(c->lap[0], c->stream) == cudaSuccess;
    for (int k = 0; k < n && ok; k++)
        ok = run(job);
    ok = ok && cudaEventRecord(c->lap[1], c->stream) == cudaSuccess
        && cudaEventSynchronize(c->lap[1]) == cudaSuccess
        && cudaEventElapsedTime(&ms, c->lap[0], c->lap[1]) == cudaSuccess;
    return ok ? (double)ms * 1e6 : -1;
}

double ls_cuda_time(void *self, bool (*run)(void *job), void *job)
{
    LsCuda *c = self;
    for (int k = 0; k < 2; k++)
        if (c->lap[k] == NULL && cudaEventCreate(&c->lap[k]) != cudaSuccess)
            return -1;
    double once = round_of(c, 1, run, job);     /* a warm-up, which loads code and is not timed */
    once = once < 0 ? once : round_of(c, 1, run, job);
    if (once < 0) {
        cudaGetLastError();
        return -1;
    }
    int n = once * MOST <= enough ? MOST : once >= enough ? 1 : (int)(enough / once);
    double least = once;
    for (int k = 0; k < ROUNDS; k++) {
        double ns = round_of(c, n, run, job) / n;
        if (ns < 0) {
            cudaGetLastError();
            return -1;
        }
        least = ns < least ? ns : least;
    }
    return least;
}
