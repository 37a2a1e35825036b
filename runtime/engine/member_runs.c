/* runtime/engine/member_runs.c -- ls_members: a kernel of one model, run for every member of an ensemble.
 *
 * Where there are at least as many members as threads, each thread takes whole members, whose kernels then run on that
 * thread alone: small models need no threads inside. What is left over, fewer members than threads, runs one after the
 * other, each on all threads. The results are the same either way. */
#include "runtime/engine/thread_pool.h"

typedef struct Call {
    LsKernel one;
    int narg;
    const int64_t *apart;
    void *const *arg;
} Call;

static void run_member(const LsRun *run, struct LsPool *pool, const Call *c, int64_t member)
{
    void *at[c->narg + 1];
    LsRun mine = *run;
    mine.pool = pool;
    mine.seed = run->seeds != NULL ? run->seeds[member] : run->seed;
    mine.lr = run->rates != NULL ? run->rates[member] : run->lr;
    for (int i = 0; i < c->narg; i++)
        at[i] = c->arg[i] != NULL ? (char *)c->arg[i] + c->apart[i] * member : NULL;
    c->one(&mine, at);
}

static void run_some(LsRun *run, void *const arg[], int64_t lo, int64_t hi)
{
    for (int64_t k = lo; k < hi; k++)
        run_member(run, NULL, arg[0], k);
}

void ls_members(LsRun *run, LsKernel one, int64_t members, int narg, const int64_t *apart, void *const arg[])
{
    Call call = {one, narg, apart, arg};
    void *const job[] = {&call};
    const int64_t threads = run->pool != NULL ? ls_pool_threads(run->pool) : 1;
    const int64_t alone = members / threads * threads;
    ls_parallel(run, run_some, alone, job);
    for (int64_t k = alone; k < members; k++)
        run_member(run, run->pool, &call, k);
}
