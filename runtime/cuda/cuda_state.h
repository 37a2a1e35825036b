/* runtime/cuda/cuda_state.h -- the device of kind "cuda". Only for this folder's core; the
 * libraries' modules use ls_cuda_context.h. */
#ifndef LS_CUDA_STATE_H
#define LS_CUDA_STATE_H

#include "runtime/cuda/ls_cuda_context.h"
#include "runtime/cuda/stopwatch.h"
#include "runtime/engine/device.h"

/* The last graph nodes of each recorded step: of step k, node[of[k] .. of[k + 1]). */
typedef struct LsCudaEnds {
    cudaGraphNode_t *node; uint32_t room;
    uint32_t *of, nstep, room_of;
    bool *awaited; uint32_t room_awaited;       /* by step: another step waits for it */
} LsCudaEnds;

enum { LS_CUDA_TAKEN = 8 };

typedef struct LsCuda {
    LsDevice d;
    const LsCudaProgram *program;
    LsCudaInfo info;
    cudaStream_t stream, copy;  /* of steps; of incoming batches */
    char *memory; /* state, constants, batches, LsRun: one allocation beside the arena */
    LsRun *numbers;             /* the device's copy of LsRun */
    LsRun *sent;                /* [LS_DEVICE_SLOTS] on the host, pinned: source of the copies */
    double (*losses)[2];        /* [LS_DEVICE_SLOTS] on the host, pinned: loss and weight,
                                 * real_bytes of each are used */
    bool weighed[LS_DEVICE_SLOTS];          /* there is a weight */
    cudaEvent_t ready[LS_DEVICE_SLOTS];     /* the slot's batch has arrived */
    cudaEvent_t done[LS_DEVICE_SLOTS];      /* the slot's last run is done, its loss is on the
                                             * host */
    cudaEvent_t theirs, ours;   /* the caller's stream and the steps come so far (cuda_caller.c);
                                 * NULL: there is no such stream yet */
    cudaLibrary_t image;
    cudaKernel_t *kernel;       /* by part */
    void *library[LS_CUDA_SLOTS];
    uint32_t nopen;             /* libraries of LsCudaProgram.use that are open */
    cudaEvent_t *moment; uint32_t nmoment;
    bool recording;
    bool unrecordable;          /* a recording failed: no more are made */
    bool told;                  /* the way of replaying recorded steps was printed */
    bool following;             /* steps have explicit dependencies */
    LsCudaEnds ends;            /* of the steps recorded so far */
    LsStopwatch watch;          /* for libraries that choose by timing */
    cudaEvent_t lap[2];         /* its events; NULL: not created yet */
    /* For programs over ranks (runtime/cuda_ranks/cuda_ranks.c): */
    cudaStream_t messages;      /* of NCCL; NULL: there is none */
    cudaStream_t beside;        /* of copies to the host beside the steps; NULL: there is none */
    cudaEvent_t *point, *copied; uint32_t npoint;       /* points among the steps; copies that
                                                         * waited for them */
    void *taken[LS_CUDA_TAKEN]; uint32_t ntaken;        /* memory, to be given back */
    LsRun *begun;               /* `numbers` while a step reads others; else NULL */
    void *set; uint32_t nset;   /* LsRunSet */
} LsCuda;

static inline LsCuda *ls_cuda_of(LsDevice *d) { return (LsCuda *)(void *)d; }

#endif
