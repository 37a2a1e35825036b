/* runtime/cuda/cudnn_run.h -- the library behind ls_cudnn.h, which asks for no device itself: tests
 * put another cuDNN in its place. */
#ifndef LS_CUDNN_RUN_H
#define LS_CUDNN_RUN_H

#include "runtime/base/run_error.h"
#include "runtime/cuda/cudnn_conv_step.h"
#include "runtime/cuda/cudnn_tally.h"
#include "runtime/cuda/stopwatch.h"

#include <stdio.h>

typedef struct LsDnnRuns LsDnnRuns;     /* a program's convolutions, made ready */

typedef struct LsDnnSetup {
    int device;                 /* ordinal of the device in use */
    const char *described;      /* its description, instead of the device; NULL: the device */
    const char *cache;          /* folder of the choices that were timed, made when missing; NULL:
                                 * none is read or kept */
    FILE *notes;                /* where it is said that plans were made again */
} LsDnnSetup;

/* Opens cuDNN. Without it, with one that will not do or without a device: false, LS_EXIT_DEVICE and
 * a sentence that names the file. */
bool ls_dnn_runs_open(LsDnnRuns **to, const LsDnnSetup *setup, LsError *e);
/* Keeps new choices and closes; NULL is allowed. */
void ls_dnn_runs_close(LsDnnRuns *r);

/* From now on (not NULL) candidates are timed when a convolution first runs, and the fastest is taken
 * and kept, unless that was done in an earlier process. */
void ls_dnn_tune(LsDnnRuns *r, const LsStopwatch *watch);

/* Makes the plan of one convolution, unless that is done. c must outlive r: its address is its
 * name. node: for the sentence, or NULL. */
bool ls_dnn_ready(LsDnnRuns *r, const LsCudaConv *c, const char *node, LsError *e);
/* Puts one convolution on the stream (a cudaStream_t). run: for c->behind. */
bool ls_dnn_run(LsDnnRuns *r, LsRun *run, const LsCudaConv *c, void *const arg[], void *stream,
                LsError *e);

/* For people and tests. */
LsDnnTally ls_dnn_tally(const LsDnnRuns *r);

#endif
