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

#endif
