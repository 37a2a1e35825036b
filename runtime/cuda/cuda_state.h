/* runtime/cuda/cuda_state.h -- the device of kind "cuda"; for this folder's core only, libraries'
 * modules use ls_cuda_context.h. */
#ifndef LS_CUDA_STATE_H
#define LS_CUDA_STATE_H

#include "runtime/cuda/ls_cuda_context.h"
#include "runtime/cuda/stopwatch.h"
#include "runtime/engine/device.h"

/* The nodes of a recording that steps end with: of step k, node[of[k] .. of[k + 1]). */
typedef struct LsCudaEnds {
    cudaGraphNode_t *node; uint32_t room;
    uint32_t *of, nstep, room_of;
    bool *awaited; uint32_t room_awaited;       /* by step: another waits for it */
} LsCudaEnds;

typedef struct LsCuda {
    LsDevice d;
    const LsCudaProgram *program;
    LsCudaInfo info;
    cudaStream_t stream, copy;  /* steps; batches on their way here */
    char *memory; /* state, constants, batches, LsRun: one allocation beside the arena */
    LsRun *numbers;             /* the device's copy of LsRun */
    LsRun *sent;                /* [LS_DEVICE_SLOTS] here, pinned: what is copied there */
    double (*losses)[2];        /* [LS_DEVICE_SLOTS] here, pinned: loss and weight, real_bytes of each
                                 * are used */
    bool weighed[LS_DEVICE_SLOTS];          /* there is a weight */
    cudaEvent_t ready[LS_DEVICE_SLOTS];     /* the slot's batch has arrived */
    cudaEvent_t done[LS_DEVICE_SLOTS];      /* the slot's last run is over, its loss here */
    cudaLibrary_t image;
    cudaKernel_t *kernel;       /* by part */
    void *library[LS_CUDA_SLOTS];
    uint32_t nopen;             /* of LsCudaProgram.use */
    cudaEvent_t *moment; uint32_t nmoment;
    bool recording;
    bool unrecordable;          /* a recording failed: none is made any more */
    bool told;                  /* how recorded steps are replayed */
    bool following;             /* steps are told what to wait for */
    LsCudaEnds ends;            /* of the steps recorded so far */
    LsStopwatch watch;          /* for libraries that choose by the clock */
    cudaEvent_t lap[2];         /* of it; NULL: not yet */
} LsCuda;

static inline LsCuda *ls_cuda_of(LsDevice *d) { return (LsCuda *)(void *)d; }

/* err is cudaSuccess; else keeps a failure that says what could not be done, and returns false. */
bool ls_cuda_check(LsCuda *c, cudaError_t err, const char *what);

/* Loads the program's device code and finds its parts. */
bool ls_cuda_load(LsCuda *c, LsError *e);

/* LsStopwatch.time, of an LsCuda. Waits: not while work is recorded. */
double ls_cuda_time(void *self, bool (*run)(void *job), void *job);

/* Of a recording whose steps were told what to wait for: its end waits for all. */
bool ls_cuda_join(LsCuda *c);

/* Part of ls_cuda_device: cuda_order.c, cuda_record.c, cuda_follow.c. */
bool ls_cuda_feed(LsDevice *d, int slot, const void *here, int64_t bytes);
bool ls_cuda_fed(LsDevice *d, int slot);
bool ls_cuda_begin(LsDevice *d, int slot, const LsRun *run);
bool ls_cuda_end(LsDevice *d, int slot, const void *loss, const void *weight);
bool ls_cuda_loss(LsDevice *d, int slot, double *loss, double *weight);
void ls_cuda_enter(LsDevice *d, const char *name);
void ls_cuda_leave(LsDevice *d);
bool ls_cuda_record(LsDevice *d);
bool ls_cuda_follow(LsDevice *d, uint32_t k, const uint32_t *step, uint32_t n);
void *ls_cuda_recorded(LsDevice *d, void *beside);
bool ls_cuda_replay(LsDevice *d, void *recording);
void ls_cuda_forget(LsDevice *d, void *recording);
bool ls_cuda_marks(LsDevice *d, uint32_t n);
void ls_cuda_mark(LsDevice *d, uint32_t k);
int64_t ls_cuda_took(LsDevice *d, uint32_t a, uint32_t b);

#endif
