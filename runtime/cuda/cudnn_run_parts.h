/* runtime/cuda/cudnn_run_parts.h -- the state of a program's convolutions, shared by tuning and
 * running. */
#ifndef LS_CUDNN_RUN_PARTS_H
#define LS_CUDNN_RUN_PARTS_H

#include "runtime/cuda/cudnn_conv.h"
#include "runtime/cuda/cudnn_pack.h"
#include "runtime/cuda/cudnn_tally.h"
#include "runtime/cuda/plan_cache.h"
#include "runtime/cuda/stopwatch.h"

#include <stdio.h>

typedef struct LsDnnReady {     /* a prepared convolution */
    const LsCudaConv *c;
    const char *node;           /* the first node that it computes, for notes; NULL: not known */
    LsDnnPlan plan;             /* .plan NULL: not yet */
    bool own;                   /* c->own computes it, chosen by timing; no plan is used */
    bool alone;                 /* plan covers only the convolution; c->behind does the rest */
    bool kept;                  /* the compiler's plan is used */
    bool timed;                 /* no timing is needed any more */
    bool ran;
    LsDnnPacks packs;
} LsDnnReady;

typedef struct LsDnnRuns {
    LsDnn lib;
    LsDnnDesc device;
    void *handle, *stream;      /* handle: created when a convolution first runs */
    char *json;                 /* of the device */
    LsPlanCache *cache;         /* of timed choices, and of plans that were slow to compile */
    const LsStopwatch *tune;
    FILE *notes;
    bool noted;                 /* it was printed that plans were made again */
    int apart;                  /* convolutions with a kernel behind them so far */
    LsDnnReady *ready; int nready, cap;
    LsDnnTally tally;
} LsDnnRuns;

typedef struct LsDnnJob {       /* one run of a convolution */
    LsDnnRuns *r;
    LsDnnDesc plan, pack;
    void (*behind)(LsRun *run, void *const arg[]);      /* NULL: nothing */
    LsRun *run;
    void *const *arg;
    int status;
} LsDnnJob;

/* Bytes of the room at arg_workspace that a plan may use, whatever the room's alignment. */
int64_t ls_dnn_room_of(const LsCudaConv *c);
/* Loads a plan from text, if it is readable and fits the room. alone: the plan covers only the
 * convolution. */
bool ls_dnn_take(LsDnnRuns *r, LsDnnReady *q, const char *json, bool alone, LsError *why);
/* Plans for the whole step, or for the convolution alone. Compiling engines are only asked for a
 * whole step that the compiler planned as convolution alone. NULL: no plan. */
LsDnnSearch *ls_dnn_search_for(LsDnnRuns *r, const LsDnnReady *q, bool alone, LsError *e);
/* Sets the fields of the job. */
bool ls_dnn_set_job(LsDnnJob *j, LsDnnReady *q, LsDnnDesc plan, bool alone, LsError *e);
bool ls_dnn_execute(void *job);         /* an LsDnnJob; false: j->status says why */

#endif
