/* runtime/cuda/ls_cuda_context.h -- shared by the parts of the CUDA runtime: the context behind
 * LsRun.device, and the reporting of failures. */
#ifndef LS_CUDA_CONTEXT_H
#define LS_CUDA_CONTEXT_H

#include "runtime/base/run_error.h"
#include "runtime/cuda/ls_cuda_run.h"
#include "runtime/cuda/stopwatch.h"

#include <cuda_runtime_api.h>
#include <stdio.h>

typedef struct LsCudaInfo {     /* the current device */
    int device;                 /* ordinal */
    int major, minor;           /* compute capability */
    int processors;             /* streaming multiprocessors */
    int driver;                 /* CUDA version of the driver, 1000 major + 10 minor */
    char name[64];
} LsCudaInfo;

/* The stream of all steps, in order. It may be recording: no call may wait or allocate. */
cudaStream_t ls_cuda_stream(const LsRun *run);
const LsCudaInfo *ls_cuda_info(const LsRun *run);
/* The node of the step being issued, for messages; NULL: none. */
const char *ls_cuda_node(const LsRun *run);
/* Where notes go; NULL: nowhere. */
FILE *ls_cuda_notes(const LsRun *run);
/* The object made by LsCudaLibrary.open; NULL: the program does not use the library. */
void *ls_cuda_library(const LsRun *run, LsCudaSlot slot);

/* The stopwatch for tuning, if the user asked for it (--tune); else NULL. Only for a step's first
 * run, which is not recorded. */
const LsStopwatch *ls_cuda_tuning(const LsRun *run);

/* Ends the run after this step with a sentence, which is extended by the step's number and node.
 * The first failure is kept. */
__attribute__((format(printf, 3, 4)))
void ls_cuda_fail(LsRun *run, LsExit code, const char *fmt, ...);
/* True if err is cudaSuccess; else fails with the action ("launch k4_relu_part") and the reason. */
bool ls_cuda_ok(LsRun *run, cudaError_t err, const char *what);

#endif
