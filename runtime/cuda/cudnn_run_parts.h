/* runtime/cuda/cudnn_run_parts.h -- a program's convolutions, made ready: what the choice by the clock
 * and the runs are made of. */
#ifndef LS_CUDNN_RUN_PARTS_H
#define LS_CUDNN_RUN_PARTS_H

#include "runtime/cuda/cudnn_conv.h"
#include "runtime/cuda/cudnn_pack.h"
#include "runtime/cuda/cudnn_tally.h"
#include "runtime/cuda/plan_cache.h"
#include "runtime/cuda/stopwatch.h"

#include <stdio.h>

typedef struct LsDnnReady {     /* a convolution made ready */
    const LsCudaConv *c;
    const char *node;           /* the first that it computes, for notes; NULL: not known */
    LsDnnPlan plan;             /* .plan NULL: not yet */
    bool own;                   /* c->own computes it: by the clock, and without a plan */
    bool alone;                 /* it is that of the convolution alone, c->behind does the rest */
    bool kept;                  /* as the compiler made it */
    bool timed;                 /* no clock is needed any more */
    bool ran;
    LsDnnPacks packs;
} LsDnnReady;

typedef struct LsDnnRuns {
    LsDnn lib;
    LsDnnDesc device;
    void *handle, *stream;      /* handle: made when a convolution first runs */
    char *json;                 /* of the device */
    LsPlanCache *cache;         /* of choices by the clock, and of plans that took compiling */
    const LsStopwatch *tune;
    FILE *notes;
    bool noted;                 /* that plans were made again */
    int apart;                  /* convolutions with a kernel behind them, so far */
    LsDnnReady *ready; int nready, cap;
    LsDnnTally tally;
} LsDnnRuns;

typedef struct LsDnnJob {       /* a convolution that is run */
    LsDnnRuns *r;
    LsDnnDesc plan, pack;
    void (*behind)(LsRun *run, void *const arg[]);      /* NULL: nothing */
    LsRun *run;
    void *const *arg;
    int status;
} LsDnnJob;

/* Bytes that a plan may take of the room at arg_workspace, wherever that begins. */
int64_t ls_dnn_room_of(const LsCudaConv *c);
/* Takes a plan from text if it reads and fits the room. alone: it is the convolution's alone. */
bool ls_dnn_take(LsDnnRuns *r, LsDnnReady *q, const char *json, bool alone, LsError *why);
/* Plans for all of the convolution, or for it alone. Engines that compile are asked for all of one
 * that the compiler planned alone, and for nothing else. NULL: there is none. */
LsDnnSearch *ls_dnn_search_for(LsDnnRuns *r, const LsDnnReady *q, bool alone, LsError *e);
/* Sets what the job runs. */
bool ls_dnn_set_job(LsDnnJob *j, LsDnnReady *q, LsDnnDesc plan, bool alone, LsError *e);
bool ls_dnn_execute(void *job);         /* an LsDnnJob; false: j->status says why */

#endif
