/* runtime/cuda/cudnn_run.h -- convolutions by cuDNN, behind ls_cudnn.h. This layer does not ask for
 * a device, so tests can substitute cuDNN. */
#ifndef LS_CUDNN_RUN_H
#define LS_CUDNN_RUN_H

#include "runtime/base/run_error.h"
#include "runtime/cuda/cudnn_conv_step.h"
#include "runtime/cuda/cudnn_tally.h"
#include "runtime/cuda/stopwatch.h"

#include <stdio.h>

typedef struct LsDnnRuns LsDnnRuns;     /* a program's prepared convolutions */

typedef struct LsDnnSetup {
    int device;                 /* ordinal of the current device */
    const char *described;      /* its description, used instead of the device; NULL: use the
                                 * device */
    const char *cache;          /* folder of cached timed choices, created if missing; NULL: no
                                 * cache */
    FILE *notes;                /* receives a note when plans are made again */
} LsDnnSetup;

/* Opens cuDNN. False with LS_EXIT_DEVICE and a sentence that names the file when cuDNN is missing
 * or unsuitable, or there is no device. */
bool ls_dnn_runs_open(LsDnnRuns **to, const LsDnnSetup *setup, LsError *e);
/* Caches new choices and closes; NULL is allowed. */
void ls_dnn_runs_close(LsDnnRuns *r);

/* From now on (watch not NULL) the first run of a convolution times the candidates; the fastest is
 * used and cached, unless the cache has a choice already. */
void ls_dnn_tune(LsDnnRuns *r, const LsStopwatch *watch);

/* Prepares the plan of one convolution, unless it is prepared. c must outlive r: its address
 * identifies the convolution. node: named in the error sentence, or NULL. */
bool ls_dnn_ready(LsDnnRuns *r, const LsCudaConv *c, const char *node, LsError *e);
/* Puts one convolution on the stream (a cudaStream_t). run: for c->behind. */
bool ls_dnn_run(LsDnnRuns *r, LsRun *run, const LsCudaConv *c, void *const arg[], void *stream,
                LsError *e);

/* For people and tests. */
LsDnnTally ls_dnn_tally(const LsDnnRuns *r);

#endif
