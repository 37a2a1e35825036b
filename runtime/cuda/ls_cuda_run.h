/* runtime/cuda/ls_cuda_run.h -- the tables of a program for NVIDIA GPUs in addition to
 * ls_program.h, and the functions that its steps call. Plain C: a generated host program needs no
 * header of the CUDA toolkit.
 *
 * The program says
 *
 *     extern const unsigned char ls_cuda_fatbin[];             (embedded by X_data.S)
 *     static const LsCudaPart part[] = {{"k4_relu_part", 2, 128, 1}, ...};
 *     static const LsCudaUse use[] = {{&ls_cudnn, &conv_plans}, {&ls_cublaslt, NULL}};
 *     static const LsCudaProgram cuda = {.fatbin = ls_cuda_fatbin, .archs = "sm_90a, PTX
 * compute_80", .part = part, .npart = N, .use = use, .nuse = 2}; const LsProgram ls_program = {...,
 * .device = &ls_cuda_device, .device_program = &cuda};
 *
 * and a step's function launches instead of computing:
 *
 *     static void k4_relu(LsRun *run, void *const arg[]) { ls_cuda_launch(run, 0, 5113, arg); }
 *
 * The launches of a phase are recorded once and replayed in every step. So such a function must not
 * depend on the numbers in LsRun: kernels read them on the device, from a copy of LsRun that is
 * renewed before every step. The function waits for nothing, allocates nothing, and fails by
 * ls_cuda_fail. The first run of a phase is not recorded: libraries load, compile and plan then, or
 * when they are opened. */
#ifndef LS_CUDA_RUN_H
#define LS_CUDA_RUN_H

#include "runtime/ls_program.h"

/* A kernel of the device text. Its parameters are
 *     const LsRun *run              the device's copy (pool and device mean nothing there)
 *     struct { void *at[narg]; }    by value: operands, results, workspace (NULL: absent), numbers
 * and block u of x * y threads computes unit u. */
typedef struct LsCudaPart { const char *name; uint16_t narg, x, y; } LsCudaPart;

/* A library that steps of a program call: cuDNN, cuBLASLt. It is opened before the first step, only
 * in programs that use it. */
struct LsError;
typedef enum { LS_CUDA_CUDNN, LS_CUDA_CUBLASLT, LS_CUDA_SLOTS } LsCudaSlot;
typedef struct LsCudaLibrary {
    LsCudaSlot slot;
    /* Loads the library, makes its handle and everything that its steps need. data: LsCudaUse.data.
     * The context is ready: see ls_cuda_context.h. ls_cuda_library later returns *self. False with
     * a sentence that names the files tried and the version found. */
    bool (*open)(LsRun *run, const void *data, void **self, struct LsError *e);
    void (*close)(void *self);
} LsCudaLibrary;
typedef struct LsCudaUse { const LsCudaLibrary *library; const void *data; } LsCudaUse;

typedef struct LsCudaProgram {
    const unsigned char *fatbin;        /* in the toolkit's format, or in that of
                                         * codegen/toolchain/cuda_toolchain.h */
    const char *archs;          /* its contents, for people: "sm_80, sm_90a, PTX compute_80" */
    const LsCudaPart *part; uint32_t npart;
    const LsCudaUse *use; uint32_t nuse;
    uint32_t add;               /* programs over ranks: the part of ls_cuda_add.h */
} LsCudaProgram;

/* Computes units 0 .. units - 1 of a part. units = 0 does nothing. */
void ls_cuda_launch(LsRun *run, uint32_t part, int64_t units, void *const arg[]);

/* The same for a part that kernels with different numbers share: the part's last n arguments are
 * these numbers. arg has the other narg arguments. */
enum { LS_CUDA_ARGS = 256 };    /* most arguments of a part, with its numbers */
void ls_cuda_launch_with(LsRun *run, uint32_t part, int64_t units, void *const arg[], int narg,
                         const int64_t number[], int n);

extern const struct LsDeviceKind ls_cuda_device;
extern const struct LsDeviceRanks ls_cuda_ranks;        /* only programs over ranks are linked with
                                                         * it */

#endif
