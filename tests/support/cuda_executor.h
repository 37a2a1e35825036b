/* tests/support/cuda_executor.h -- runs kernels written for a GPU (runtime/cuda_kernels/ls_cuda.h)
 * on the CPU, thread by thread.
 *
 * The text of the kernels is compiled with LS_EXECUTOR as a shared object that includes this file:
 * it defines the words of CUDA and includes ls_cuda.h, the same text that nvcc reads. The object's
 * host functions call ls_cuda_launch, which ends in exec_launch, in the program that loaded it
 * (linked with cuda_executor.c and -rdynamic).
 *
 * Blocks run one after another. The threads of a block are fibers, each with a stack of its own,
 * that switch only where they wait. Behaviour that is undefined on a GPU is an error here: a
 * barrier that some threads of the block never reach, or reach at another place; a shuffle or a
 * barrier of a warp that names a missing lane; a product of a warp in which some lanes do not take
 * part, or with factors that are not rounded; shared memory that is read before it is written (it
 * holds NaN and -1 when a block starts). exec_order changes the order of threads, which shows
 * results that depend on it. */
#ifndef LS_TESTS_SUPPORT_CUDA_EXECUTOR_H
#define LS_TESTS_SUPPORT_CUDA_EXECUTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct LsRun;

typedef struct ExecPart {       /* a kernel */
    const char *name;
    int narg, x, y;
    void (*unit)(const struct LsRun *run, void *const *at, int x, int y);
} ExecPart;

typedef struct Dim3 { unsigned x, y, z; } Dim3;
typedef struct ExecNow { Dim3 thread, block, block_dim, grid_dim; } ExecNow;
extern const ExecNow *exec_now; /* of the thread that runs */

/* ---- for callers that run kernels ---- */
/* Which threads of a block run first, as far as they can: 0: by number, 1: the reverse, else
 * random, another order after each barrier of the block. */
void exec_order(unsigned seed);
/* Runs the part on a grid of `units` blocks. After an error nothing runs. */
void exec_launch(const ExecPart *part, int64_t units, const struct LsRun *run, void *const arg[]);
/* Factors of products may be any floats: the text was compiled with LS_EXACT_FACTORS. */
void exec_exact_factors(void);
/* The first error since the last call, or NULL: "k3_part: block 2: thread (5, 0) ...". */
const char *exec_error(void);

/* ---- for kernels ---- */
typedef enum { EXEC_BLOCK, EXEC_WARP, EXEC_SHUFFLE, EXEC_MMA } ExecWait;
/* Waits until all threads of the block, or all lanes of mask, wait for the same thing at the same
 * line. A shuffle gives `bits` and returns the bits of lane (own ^ by). */
uint64_t exec_wait(ExecWait what, uint32_t mask, int line, uint64_t bits, unsigned by);
/* An array of the block, filled again when a block first reaches it. */
void exec_shared(void *p, size_t bytes);
/* mma.m16n8k8 of a warp, c += a b: 16 x 8 and 8 x 8 numbers of TF32, of which each lane has some. A
 * factor that is not rounded to TF32 is an error. */
void exec_mma_at(float c[4], const float a[4], const float b[2], int line);
void exec_trap(int line);

#ifdef LS_EXECUTOR
#define __device__
#ifdef __OPTIMIZE__
#define __forceinline__ inline __attribute__((always_inline, unused))
#else                           /* as in ls_kernel.h */
#define __forceinline__ inline __attribute__((unused))
#endif
#define threadIdx (exec_now->thread)
#define blockIdx (exec_now->block)
#define blockDim (exec_now->block_dim)
#define gridDim (exec_now->grid_dim)
#define __syncthreads() ((void)exec_wait(EXEC_BLOCK, 0, __LINE__, 0, 0))
#define __syncwarp(mask) ((void)exec_wait(EXEC_WARP, mask, __LINE__, 0, 0))
#define __shfl_xor_sync(mask, value, by)                                                           \
    _Generic((value), float : exec_shuffle_float, double : exec_shuffle_double)(mask, value, by,   \
                                                                                __LINE__)
#define __shfl_sync(mask, value, lane)                                                             \
    exec_shuffle_float(mask, value,                                                                \
                       (int)((threadIdx.y * blockDim.x + threadIdx.x) % 32) ^ (lane), __LINE__)
#define exec_mma(c, a, b) exec_mma_at(c, a, b, __LINE__)
#define __trap() exec_trap(__LINE__)
#define LS_CHECK(condition) ((condition) ? (void)0 : exec_trap(__LINE__))
#define LS_UNROLL
#define LS_ROLLED
#define LS_SHARED(type, name, dims)                                                                \
    static type name dims __attribute__((aligned(16)));                                            \
    exec_shared(name, sizeof name)
#define LS_ENTRY(name, narg, x, y, together)                                                       \
    static const ExecPart name = {#name, narg, x, y, name##_unit};                                 \
    static const ExecPart *const p_##name __attribute__((unused)) =                                \
        &name; /* by the names in host texts */
#define ls_cuda_launch(run, part, units, arg) exec_launch(part, units, run, arg)
#define ls_cuda_launch_with(run, part, units, arg, narg, number, n)                                \
    exec_launch_with(part, units, run, arg, narg, number, n)

static inline void exec_launch_with(const ExecPart *part, int64_t units, const struct LsRun *run,
                                    void *const arg[], int narg, const int64_t number[], int n)
{
    void *all[256] = {0};
    for (int k = 0; k < narg; k++)
        all[k] = arg[k];
    for (int k = 0; k < n; k++)
        all[part->narg - n + k] = (void *)(intptr_t)number[k];
    exec_launch(part, units, run, all);
}

static inline float exec_shuffle_float(uint32_t mask, float value, int by, int line)
{
    union { float value; uint64_t bits; } x = {.bits = 0};
    x.value = value;
    x.bits = exec_wait(EXEC_SHUFFLE, mask, line, x.bits, (unsigned)by);
    return x.value;
}

static inline double exec_shuffle_double(uint32_t mask, double value, int by, int line)
{
    union { double value; uint64_t bits; } x = {value};
    x.bits = exec_wait(EXEC_SHUFFLE, mask, line, x.bits, (unsigned)by);
    return x.value;
}

#include "runtime/cuda_kernels/ls_cuda.h"
#endif
#endif
