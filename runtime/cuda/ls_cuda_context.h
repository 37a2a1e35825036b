/* runtime/cuda/ls_cuda_context.h -- what the parts of the CUDA runtime share: the context behind
 * LsRun.device, and how failures are told. */
#ifndef LS_CUDA_CONTEXT_H
#define LS_CUDA_CONTEXT_H

#include "runtime/base/run_error.h"
#include "runtime/cuda/ls_cuda_run.h"
#include "runtime/cuda/stopwatch.h"

#include <cuda_runtime_api.h>

typedef struct LsCudaInfo {     /* of the device in use */
    int device;                 /* ordinal */
    int major, minor;           /* compute capability */
    int processors;             /* streaming multiprocessors */
    int driver;                 /* CUDA version of the driver, 1000 major + 10 minor */
    char name[64];
} LsCudaInfo;

/* Where all steps run, in order. Being recorded at times: no call that waits, or that allocates. */
cudaStream_t ls_cuda_stream(const LsRun *run);
const LsCudaInfo *ls_cuda_info(const LsRun *run);
/* The node whose step is being given out, for messages; NULL: none is. */
const char *ls_cuda_node(const LsRun *run);
/* What LsCudaLibrary.open made; NULL: the program does not use the library. */
void *ls_cuda_library(const LsRun *run, LsCudaSlot slot);

/* The clock to choose by, when the user asked for that (--tune); else NULL. Only for a step's first
 * run, which is not recorded. */
const LsStopwatch *ls_cuda_tuning(const LsRun *run);

/* Ends the run after this step with a sentence, to which the step's number and its node are added.
 * The first failure is kept. */
__attribute__((format(printf, 3, 4)))
void ls_cuda_fail(LsRun *run, LsExit code, const char *fmt, ...);
/* err is cudaSuccess; else fails, saying what could not be done ("launch k4_relu_part") and why. */
bool ls_cuda_ok(LsRun *run, cudaError_t err, const char *what);

#endif
