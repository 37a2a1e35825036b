/* runtime/pipeline/stage_threads.c -- see stage_threads.h. Between updates all threads but the
 * caller's wait, so that the caller may read and write state and arenas. */
#include "runtime/pipeline/stage_threads.h"

#include "runtime/comm/comm_threads.h"
#include "runtime/engine/thread_pool.h"
#include "runtime/pipeline/stage_ranks.h"

#include <signal.h>
#include <stdlib.h>

/* Runs one stage; if it fails, the others end, too. */
static void run_stage(LsPipeline *l, uint32_t k)
{
    LsError e = {0};
    if (ls_stage_update(&l->stage[k], l->part, l->nparts, &e))
        return;
    if (l->rank != NULL) {      /* the trainer leaves the ranks */
        l->error = e;
        return;
    }
    const bool first = l->comm[k]->engine->abandon(l->comm[k], &e);
    pthread_mutex_lock(&l->lock);
    if (first)
        l->error = e;
    pthread_mutex_unlock(&l->lock);
}

typedef struct Start { LsPipeline *l; uint32_t k; } Start;

static void *work(void *user)
{
    const Start start = *(Start *)user;
    LsPipeline *l = start.l;
    free(user);
    pthread_mutex_lock(&l->lock);
    for (int64_t seen = 0;;) {
        while (l->round == seen && !l->stop)
            pthread_cond_wait(&l->go, &l->lock);
        if (l->stop)
            break;
        seen = l->round;
        pthread_mutex_unlock(&l->lock);
        run_stage(l, start.k);
        pthread_mutex_lock(&l->lock);
        l->busy--;
        pthread_cond_signal(&l->done);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* Signals go to the caller's thread. */
static bool start(LsPipeline *l, uint32_t k)
{
    Start *s = malloc(sizeof *s);
    sigset_t all, before;
    if (s == NULL)
        return false;
    *s = (Start){l, k};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool ok = pthread_create(&l->thread[l->nthread], NULL, work, s) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    l->nthread += ok;
    if (!ok)
        free(s);
    return ok;
}

static bool open_stage(LsPipeline *l, const LsProgram *p, const LsMemory *m, LsLoader *loader,
                       uint32_t k, int threads, struct LsPool *pool, LsError *e)
{
    const uint32_t number = l->rank != NULL ? (uint32_t)l->rank->rank : k;
    if (!ls_stage_open(&l->stage[k], p, number, m, l->rank != NULL ? l->rank : l->comm[k], loader,
                       l->loss, e))
        return false;
    l->stage[k].engine.run.pool = k == 0 ? pool : ls_pool_create(threads);
    l->readers += p->pipeline.stage[number].reads_input;
    return l->stage[k].engine.run.pool != NULL
           || ls_fail(e, LS_EXIT_FAIL, "cannot start %d threads", threads);
}

bool ls_pipeline_open(LsPipeline *l, const LsProgram *p, const LsMemory *m, LsLoader *loader,
                      LsComm *rank, int threads, struct LsPool *pool, LsError *e)
{
    const size_t n = rank != NULL ? 1 : p->pipeline.nstage,
                 parts = (size_t)(p->division.micro_batches > 1 ? p->division.micro_batches : 1);
    *l = (LsPipeline){.n = (uint32_t)n,
                      .rank = rank,
                      .stage = calloc(n, sizeof *l->stage),
                      .comm = calloc(n, sizeof(LsComm *)),
                      .part = calloc(parts, sizeof *l->part),
                      .loss = calloc(parts, sizeof *l->loss),
                      .thread = calloc(n, sizeof *l->thread)};
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->go, NULL);
    pthread_cond_init(&l->done, NULL);
    l->ready = true;
    if (!l->stage || !l->comm || !l->part || !l->loss || !l->thread)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    if (rank == NULL ? !ls_comm_threads_open((int)n, l->comm, e)
                     : !ls_packets_open(&l->news, rank, LS_TAG_NEWS, (int64_t)parts,
                                        ls_rank_packet_bytes((int64_t)parts, 0) + LS_STAGE_NEWS, e))
        return false;
    for (uint32_t k = 0; k < n; k++)
        if (!open_stage(l, p, m, loader, k, threads, pool, e))
            return false;
    for (uint32_t k = 1; k < n; k++)
        if (!start(l, k))
            return ls_fail(e, LS_EXIT_FAIL, "cannot start a thread for stage %u", k + 1);
    return true;
}

void ls_pipeline_close(LsPipeline *l)
{
    if (!l->ready)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_cond_broadcast(&l->go);
    pthread_mutex_unlock(&l->lock);
    for (uint32_t k = 0; k < l->nthread; k++)
        pthread_join(l->thread[k], NULL);
    for (uint32_t k = 0; l->stage != NULL && k < l->n; k++) {
        if (k > 0)
            ls_pool_destroy(l->stage[k].engine.run.pool);
        ls_stage_close(&l->stage[k]);
    }
    for (uint32_t k = 0; l->comm != NULL && k < l->n; k++)
        if (l->comm[k] != NULL)
            l->comm[k]->engine->close(l->comm[k]);
    pthread_cond_destroy(&l->go);
    pthread_cond_destroy(&l->done);
    pthread_mutex_destroy(&l->lock);
    ls_packets_close(&l->news);
    free(l->stage);
    free(l->comm);
    free(l->part);
    free(l->loss);
    free(l->thread);
    *l = (LsPipeline){0};
}

bool ls_pipeline_update(LsPipeline *l, LsError *e)
{
    pthread_mutex_lock(&l->lock);
    l->round++;
    l->busy = l->nthread;
    pthread_cond_broadcast(&l->go);
    pthread_mutex_unlock(&l->lock);
    run_stage(l, 0);
    pthread_mutex_lock(&l->lock);
    while (l->busy > 0)
        pthread_cond_wait(&l->done, &l->lock);
    const LsError error = l->error;
    pthread_mutex_unlock(&l->lock);
    return error.code == LS_EXIT_DONE || ls_fail(e, error.code, "%s", error.text);
}
