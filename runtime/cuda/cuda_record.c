/* runtime/cuda/cuda_record.c -- a phase as a CUDA graph. If there are two graphs of the same steps,
 * one in sequence and one with explicit dependencies, the faster is used.
 *
 * Both give the same bits, so timing may decide: they take turns in the first runs, with an event
 * before and after each. */
#include "runtime/cuda/cuda_record.h"

#include "runtime/cuda/cuda_error.h"
#include "runtime/cuda/cuda_follow.h"
#include "runtime/cuda/cuda_ranges.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { APART, IN_ORDER, NWAYS };
enum { TURNS = 5 };             /* timed runs of each way; the fastest counts */

typedef struct Recording {
    cudaGraphExec_t way[NWAYS]; /* APART: NULL where there is only one way */
    cudaEvent_t lap[2];         /* around the last timed run */
    float least[NWAYS];         /* ms; 0: not timed yet */
    int runs;                   /* timed runs; -1: timing is over */
    int best;
} Recording;

bool ls_cuda_record(LsDevice *d)
{
    LsCuda *c = ls_cuda_of(d);
    if (c->unrecordable)
        return false;
    /* Threads that fill batches make no CUDA calls, but profilers in other threads may. */
    return c->recording =
               ls_cuda_check(c, cudaStreamBeginCapture(c->stream, cudaStreamCaptureModeThreadLocal),
                             "record a step");
}

/* Handles a failed recording. The same steps have just run unrecorded: a library may do something
 * that recordings forbid. From here on, steps are issued one by one, which costs host time, or
 * replayed in sequence, if that could be recorded. A broken device will fail again. */
static void do_without(LsCuda *c, bool in_order)
{
    const bool silent = c->d.p->accelerator.silent;
    if (!in_order && !silent)
        fprintf(stderr,
                "note: steps cannot be recorded; their kernels are launched one by one: %s\n",
                c->d.error.text);
    else if (!c->told && !silent)
        fprintf(stderr, "note: steps are replayed one after the other: %s\n", c->d.error.text);
    c->unrecordable = !in_order;
    c->told = true;
    c->d.error = (LsError){0};
    cudaGetLastError();
}

/* Ends a recording; NULL: it failed. */
static cudaGraphExec_t finish(LsCuda *c)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    c->recording = false;
    ls_cuda_join(c);
    cudaError_t err = cudaStreamEndCapture(c->stream, &graph);
    if (err == cudaSuccess)
        err = cudaGraphInstantiate(&exec, graph, 0);
    if (err == cudaSuccess)
        err = cudaGraphUpload(exec, c->stream);
    if (graph != NULL)
        cudaGraphDestroy(graph);
    if (ls_cuda_check(c, err, "record a step") && c->d.error.code == LS_EXIT_DONE)
        return exec;
    if (exec != NULL)
        cudaGraphExecDestroy(exec);
    return NULL;
}

/* Creates the events; without them there is no choice between ways. */
static void set_clocks(Recording *r)
{
    if (cudaEventCreate(&r->lap[0]) != cudaSuccess || cudaEventCreate(&r->lap[1]) != cudaSuccess) {
        cudaGetLastError();
        r->runs = -1;
    }
}

void *ls_cuda_recorded(LsDevice *d, void *beside)
{
    LsCuda *c = ls_cuda_of(d);
    Recording *r = beside;
    cudaGraphExec_t exec = finish(c);
    if (exec == NULL) {
        do_without(c, beside != NULL);
        return beside;
    }
    if (r == NULL) {
        r = calloc(1, sizeof *r);
        if (r == NULL) {
            cudaGraphExecDestroy(exec);
            ls_device_fail(d, LS_EXIT_FAIL, "out of memory");
            return NULL;
        }
        r->way[IN_ORDER] = exec;
        r->best = IN_ORDER;
    } else {
        r->way[APART] = exec;
        set_clocks(r);
    }
    return r;
}

/* Reads the time of the last timed run; it is over, as the next run with its batch's slot
 * begins. */
static void read_clock(Recording *r)
{
    float ms;
    int way = (r->runs - 1) % NWAYS;
    if (r->runs > 0 && cudaEventElapsedTime(&ms, r->lap[0], r->lap[1]) != cudaSuccess)
        cudaGetLastError();
    else if (r->runs > 0 && (r->least[way] == 0 || ms < r->least[way]))
        r->least[way] = ms;
}

static void choose(LsCuda *c, Recording *r)
{
    r->runs = -1;
    r->best = r->least[APART] > 0 && r->least[APART] < r->least[IN_ORDER] ? APART : IN_ORDER;
    if (!c->told && !c->d.p->accelerator.silent)
        fprintf(stderr, "note: steps one after the other take %.3f ms, at the same time %.3f ms\n",
                (double)r->least[IN_ORDER], (double)r->least[APART]);
    c->told = true;
}

/* Chooses the way of this run; *timed: the run is timed for the decision. */
static int next_way(LsCuda *c, Recording *r, bool *timed)
{
    if (r->way[APART] != NULL && r->runs >= 0) {
        read_clock(r);
        if (r->runs == NWAYS * TURNS)
            choose(c, r);
    }
    *timed = r->way[APART] != NULL && r->runs >= 0;
    return *timed ? r->runs++ % NWAYS : r->best;
}

bool ls_cuda_replay(LsDevice *d, void *recording)
{
    LsCuda *c = ls_cuda_of(d);
    Recording *r = recording;
    bool timed;
    int way = next_way(c, r, &timed);
    char name[48];
    snprintf(name, sizeof name, "step %" PRId64, d->update);
    nvtxRangePushA(name);
    cudaError_t err = timed ? cudaEventRecord(r->lap[0], c->stream) : cudaSuccess;
    if (err == cudaSuccess)
        err = cudaGraphLaunch(r->way[way], c->stream);
    if (err == cudaSuccess && timed)
        err = cudaEventRecord(r->lap[1], c->stream);
    nvtxRangePop();
    return ls_cuda_check(c, err, "start the step");
}

void ls_cuda_forget(LsDevice *d, void *recording)
{
    Recording *r = recording;
    (void)d;
    for (int k = 0; k < NWAYS; k++)
        if (r->way[k] != NULL)
            cudaGraphExecDestroy(r->way[k]);
    for (int k = 0; k < 2; k++)
        if (r->lap[k] != NULL)
            cudaEventDestroy(r->lap[k]);
    free(r);
}
