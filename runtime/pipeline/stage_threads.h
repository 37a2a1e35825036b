/* runtime/pipeline/stage_threads.h -- the stages of a pipeline that this process runs: all, each on
 * a thread, with one state; or the one of its rank. */
#ifndef LS_RUNTIME_PIPELINE_STAGE_THREADS_H
#define LS_RUNTIME_PIPELINE_STAGE_THREADS_H

#include "runtime/ranks/rank_packets.h"
#include "runtime/pipeline/stage_run.h"

#include <pthread.h>

typedef struct LsPipeline {
    uint32_t n;                 /* stages here */
    LsStageRun *stage;
    LsComm *rank;               /* of the process, whose stage has its number; NULL: all stages are
                                 * here */
    LsPackets news;             /* of the ranks, if there are any (stage_ranks.h) */
    LsComm **comm;              /* by stage, if all are here */
    LsPartRun *part; int64_t nparts;    /* of the update under way; room for
                                         * LsDivision.micro_batches */
    LsLoss *loss;               /* by part, of the last update */
    int64_t readers;            /* stages that read inputs */
    /* The first stage here runs on the caller's thread, the others on threads of their own. */
    pthread_t *thread; uint32_t nthread;
    pthread_mutex_t lock;
    pthread_cond_t go, done;
    int64_t round;              /* updates begun */
    uint32_t busy;              /* threads in this update */
    bool stop, ready;
    LsError error;              /* of the first stage that failed */
} LsPipeline;

/* rank: NULL, or that of the process; threads: of each stage, for its kernels; pool: of the first
 * stage here. Close the pipeline in any case. */
bool ls_pipeline_open(LsPipeline *l, const LsProgram *p, const LsMemory *m, LsLoader *loader,
                      LsComm *rank, int threads, struct LsPool *pool, LsError *e);
void ls_pipeline_close(LsPipeline *l);
/* Runs the update of part[0 .. nparts); afterwards `loss` has their losses, if the stage that has
 * them is here. */
bool ls_pipeline_update(LsPipeline *l, LsError *e);

#endif
