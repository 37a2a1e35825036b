/* runtime/pipeline/stage_threads.h -- a pipeline within one process: each stage is a thread, and all share the state. */
#ifndef LS_RUNTIME_PIPELINE_STAGE_THREADS_H
#define LS_RUNTIME_PIPELINE_STAGE_THREADS_H

#include "runtime/pipeline/stage_run.h"

#include <pthread.h>

typedef struct LsPipeline {
    uint32_t n;                 /* stages */
    LsStageRun *stage;
    LsComm **comm;
    LsPartRun *part; int64_t nparts;    /* of the update under way; room for LsProgram.parts */
    LsLoss *loss;               /* by part, of the last update */
    int64_t readers;            /* stages that read inputs */
    /* Stage 0 runs on the caller's thread, the others on threads of their own. */
    pthread_t *thread; uint32_t nthread;
    pthread_mutex_t lock;
    pthread_cond_t go, done;
    int64_t round;              /* updates begun */
    uint32_t busy;              /* threads in this update */
    bool stop, ready;
    LsError error;              /* of the first stage that failed */
} LsPipeline;

/* threads: of each stage, for its kernels; pool: of stage 0. Close the pipeline in any case. */
bool ls_pipeline_open(LsPipeline *l, const LsProgram *p, const LsMemory *m, LsLoader *loader, int threads, struct LsPool *pool,
                      LsError *e);
void ls_pipeline_close(LsPipeline *l);
/* Runs the update of part[0 .. nparts); afterwards `loss` has their losses. */
bool ls_pipeline_update(LsPipeline *l, LsError *e);

#endif
