/* runtime/cuda_kernels/ls_cuda.h -- the primitives of generated kernels, for NVIDIA GPUs.
 *
 * The counterpart of ls_kernel.h: the same kernel text gives the same numbers. A *part* is a kernel
 * with a grid of one block per unit. The block's x threads with the same threadIdx.y (a *row* of
 * threads) share the iterations of LS_LANES and the sums over a row of numbers; its y rows share
 * LS_ROWS. x is a power of two; collective operations of a row (LS_ROW_SYNC, ls_row_..., LS_COPY)
 * need x <= 32 or y == 1.
 *
 * For nvcc and NVRTC (which has no host headers), and for the C compiler with CUDA's words defined:
 * tests/support/cuda_executor.h. Compiled with -fmad=false, so that a statement gives the same bits
 * in every kernel; without atomics and in a fixed order, so that every run gives the same bits. */
#ifndef LS_RUNTIME_CUDA_KERNELS_LS_CUDA_H
#define LS_RUNTIME_CUDA_KERNELS_LS_CUDA_H

#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef int int32_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef unsigned long uintptr_t;
#define INT64_C(x) x##L
#define INT64_MAX INT64_C(9223372036854775807)
#define INT64_MIN (-INT64_MAX - 1)
#define INT32_MAX 2147483647
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)
#else
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#endif

#define LS_FN static __device__ __forceinline__
#define LS_EACH_FN LS_FN
#include "runtime/cuda_kernels/ls_cuda_sizes.h"
#include "runtime/kernels/ls_math.h"
#include "runtime/ls_run.h"

#define LS_EXACT_BEGIN
#define LS_EXACT_END

#ifdef __CUDACC__
#define LS_CHECK(condition) ((void)0)
#define LS_ALIGNED(bytes) __align__(bytes)
#define LS_UNROLL _Pragma("unroll")
#define LS_ROLLED _Pragma("unroll 1")   /* runs once a block: unrolling is not worth the compile
                                         * time */
#define LS_SHARED(type, name, dims) __shared__ LS_ALIGNED(16) type name dims
#define LS_ENTRY(name, narg, x, y, together)                                                       \
    extern "C" __global__ __launch_bounds__((x) * (y), together) void name(                        \
        const LsRun *run, const __grid_constant__ struct name##_args args)                         \
    {                                                                                              \
        name##_unit(run, args.at, x, y);                                                           \
    }
#endif

/* ---- parts ---- The kernel's parameters: the device's LsRun, and the arguments by value, as one
 * struct. Its body is an inlined function, in which x and y become constants. An optional argument
 * behind y is the number of blocks per multiprocessor that must have registers. */
#define LS_PART(name, narg, ...) LS_PART_OF(name, narg, __VA_ARGS__, 0, 0)
#define LS_PART_OF(name, narg, x, y, together, ...)                                                \
    struct name##_args { void *at[narg]; };                                                        \
    LS_FN void name##_unit(const LsRun *run, void *const *ls_at, const int ls_x, const int ls_y);  \
    LS_ENTRY(name, narg, x, y, together)                                                           \
    LS_FN void name##_unit(const LsRun *run, void *const *ls_at, const int ls_x, const int ls_y)
#define LS_UNITS                                                                                   \
    const int64_t lo = blockIdx.x, hi = lo + 1;                                                    \
    (void)run, (void)ls_at, (void)ls_x, (void)ls_y, (void)lo, (void)hi
#define LS_HELPER LS_FN
#define LS_IN(type, name, k)                                                                       \
    const type *const __restrict__ name = (const type *)__builtin_assume_aligned(ls_at[k], 16)
#define LS_OUT(type, name, k)                                                                      \
    real name##_four[8];                                                                           \
    type *const __restrict__ name = (type *)__builtin_assume_aligned(ls_at[k], 16);                \
    (void)name##_four
#define LS_SAME(j, k) (ls_at[j] == ls_at[k])
/* Argument k as a number: kernels that differ only in some numbers are one kernel, which receives
 * them behind its operands and results. LS_NUMBER4, LS_NUMBER8: a multiple of four, of eight, known
 * to the compiler; otherwise it would not know which of a thread's neighbours an index means, and
 * would keep them in memory. */
#define LS_NUMBER(name, k) const int64_t name = (int64_t)ls_at[k]
#define LS_NUMBER4(name, k) const int64_t name = (int64_t)ls_at[k] & ~INT64_C(3)
#define LS_NUMBER8(name, k) const int64_t name = (int64_t)ls_at[k] & ~INT64_C(7)
#define LS_BELOW(i, end, a, b) ((int64_t)(i) < (int64_t)(end) ? (int64_t)(a) : (int64_t)(b))
#define LS_WHOLE4(n) ((n) & ~INT64_C(3))

/* Threads of a row, rows of threads: constants in a part; in a function that the part calls, the
 * shape of the block. */
enum { ls_x = 0, ls_y = 0 };
#define LS_X ((int)(ls_x > 0 ? ls_x : (int)blockDim.x))
#define LS_Y ((int)(ls_y > 0 ? ls_y : (int)blockDim.y))
#define LS_THREADS , const int ls_x
#define LS_ITS_THREADS , LS_X

/* ---- loops ---- */
#define LS_LANES(i, from, to)                                                                      \
    for (int64_t i = (int64_t)(from) + threadIdx.x; i < (int64_t)(to); i += LS_X)
#define LS_LANES_OF(count, i, from, to)                                                            \
    for (int64_t ls_##i = (int64_t)(from) / count + threadIdx.x; ls_##i < (int64_t)(to) / count;   \
         ls_##i += LS_X)                                                                           \
        LS_UNROLL for (int64_t i = count * ls_##i; i < count * ls_##i + count; i++)
#define LS_LANES4(i, from, to) LS_LANES_OF(4, i, from, to)
#define LS_LANES8(i, from, to) LS_LANES_OF(8, i, from, to)
#define LS_ONCE(i, from, to)                                                                       \
    for (int64_t i = (int64_t)(from) + threadIdx.x, ls_once_##i = 1;                               \
         ls_once_##i && i < (int64_t)(to); ls_once_##i = 0)
#define LS_ONCE_OF(count, i, from, to)                                                             \
    for (int64_t ls_##i = (int64_t)(from) / count + threadIdx.x, ls_once_##i = 1;                  \
         ls_once_##i && ls_##i < (int64_t)(to) / count; ls_once_##i = 0)                           \
        LS_UNROLL for (int64_t i = count * ls_##i; i < count * ls_##i + count; i++)
#define LS_ONCE4(i, from, to) LS_ONCE_OF(4, i, from, to)
#define LS_ONCE8(i, from, to) LS_ONCE_OF(8, i, from, to)
#define LS_ROWS(j, from, to)                                                                       \
    for (int64_t j = (int64_t)(from) + threadIdx.y; j < (int64_t)(to); j += LS_Y)
#define LS_GROUPS(n, g, from, to)                                                                  \
    for (int64_t g = (int64_t)(from), ls_to_##g = (int64_t)(to); g < ls_to_##g; g += (n))
#define LS_AHEAD(j, g) for (int64_t j = (g), ls_once_##j = 1; ls_once_##j; ls_once_##j = 0)
#define LS_OF_GROUP(n, j, g)                                                                       \
    LS_UNROLL for (int ls_of = 0; ls_of < (n); ls_of++)                                            \
        for (int64_t j = (g) + ls_of, ls_once_##j = 1; ls_once_##j && j < ls_to_##g;               \
             ls_once_##j = 0)
#define LS_ONE if (threadIdx.x == 0 && threadIdx.y == 0)
#define LS_LEAD if (threadIdx.x == 0)

/* ---- memory of the block ---- */
#define LS_LOCAL(type, name, n) LS_SHARED(type, name, [n])
#define LS_LOCAL_ROWS(type, name, n, rows)                                                         \
    LS_SHARED(type, name##_rows, [rows][n]);                                                       \
    type *const name = name##_rows[threadIdx.y]
/* In registers: shared memory would be accessed at every step. */
#define LS_OWNED(type, name, n) type name##_own[4] = {0}
#define LS_OWNED8(type, name, n) type name##_own[8] = {0}
#define LS_OWN(name, at) name##_own[0]
#define LS_OWN4(name, at) name##_own[(at) & 3]
#define LS_OWN8(name, at) name##_own[(at) & 7]
#define LS_OF_ROW(name, k) name##_rows[k]
#define LS_FOLD(k, rows) LS_ROLLED for (int64_t k = 1; k < (rows); k++)

/* ---- barriers ---- */
#define LS_SYNC __syncthreads()
#define LS_ROW_SYNC ls_row_sync(LS_X, LS_Y)

/* Mask of this row's lanes within its warp. */
LS_FN uint32_t ls_row_mask(int x)
{
    return x >= 32 ? 0xffffffffu : ((1u << x) - 1u) << (threadIdx.y * (uint32_t)x & 31u);
}

LS_FN void ls_row_sync(int x, int y)
{
    if (x <= 32)
        __syncwarp(ls_row_mask(x));
    else if (y == 1)
        __syncthreads();
    else
        __trap();
}

/* ---- rows ----
 * Functions that all threads of a row call together; each thread gets the result. They are barriers
 * of the row: they see the other threads' writes before the call, and when they return all accesses
 * are done. `lanes` is for the CPU: here every thread keeps four running values, which are then
 * summed in double. */

/* name(own, ls_x, ls_y): a tree reduction of `own` over all threads, halves first, as by
 * ls_sum_lanes on the CPU. No thread returns before all have called. */
#define LS_ROW_TREE(name, type, join)                                                              \
    LS_FN type name(type own, int ls_x, int ls_y)                                                  \
    {                                                                                              \
        const uint32_t mask = ls_row_mask(ls_x), lane = threadIdx.x;                               \
        if (ls_x > 32) {        /* the same lane of every warp */                                  \
            LS_SHARED(type, all, [1024]);                                                          \
            type t[32];                                                                            \
            all[lane] = own;                                                                       \
            ls_row_sync(ls_x, ls_y);                                                               \
            LS_UNROLL for (int w = 0; w < ls_x / 32; w++) t[w] = all[32 * w + (lane & 31u)];       \
            LS_UNROLL for (int half = ls_x / 64; half > 0; half /= 2)                              \
                LS_UNROLL for (int w = 0; w < half; w++) t[w] = join(t[w], t[w + half]);           \
            own = t[0];                                                                            \
        } else {                                                                                   \
            ls_row_sync(ls_x, ls_y);                                                               \
        }                                                                                          \
        LS_UNROLL for (int half = (ls_x < 32 ? ls_x : 32) / 2; half > 0; half /= 2) {              \
            const type other = __shfl_xor_sync(mask, own, half);                                   \
            own = lane & (uint32_t)half ? join(other, own) : join(own, other);                     \
        }                                                                                          \
        return own;                                                                                \
    }
#define LS_ADD(a, b) ((a) + (b))
LS_ROW_TREE(ls_tree_sum, double, LS_ADD)
LS_ROW_TREE(ls_tree_max, real, ls_max_real)

#define LS_WITHIN4(i, from, to) LS_WITHIN((i) & ~(int64_t)3, from, to)
#define LS_WITHIN8(i, from, to) LS_WITHIN((i) & ~(int64_t)7, from, to)

#include "runtime/cuda_kernels/ls_cuda_wide.h"

/* run[0 .. count - 1]: running reductions of the values of elements a, b, c of the arrays x0, x1,
 * x2. Where these and `also` start at multiples of 16 bytes, as they do when n is a multiple of
 * `count`, a thread takes `count` neighbours at a time, which are v[0 .. count - 1] at i for
 * `four`. Otherwise, and for the remainder, it takes as many values a step of all threads apart,
 * each v at i for `one`. */
#define LS_ROW_RUN(count, start, join, value, x0, x1, x2, also, four, one)                         \
    real run[count];                                                                               \
    int64_t ls_from = 0;                                                                           \
    LS_UNROLL for (int l = 0; l < count; l++) run[l] = start;                                      \
    ls_row_sync(ls_x, ls_y);                                                                       \
    if (n % count == 0                                                                             \
        || ((uintptr_t)(x0) | (uintptr_t)(x1) | (uintptr_t)(x2) | (uintptr_t)(also)) % 16 == 0) {  \
        ls_from = n & ~(int64_t)(count - 1);                                                       \
        for (int64_t i = count * (int64_t)threadIdx.x; i < ls_from; i += count * ls_x) {           \
            real a4[count], b4[count], c4[count], v[count];                                        \
            ls_get##count(a4, (x0) + i);                                                           \
            ls_get##count(b4, (x1) + i);                                                           \
            ls_get##count(c4, (x2) + i);                                                           \
            LS_UNROLL for (int l = 0; l < count; l++)                                              \
            {                                                                                      \
                const real a = a4[l], b = b4[l], c = c4[l];                                        \
                (void)a, (void)b, (void)c;                                                         \
                v[l] = value;                                                                      \
            }                                                                                      \
            four;                                                                                  \
            LS_UNROLL for (int l = 0; l < count; l++) run[l] = join(run[l], v[l]);                 \
        }                                                                                          \
    }                                                                                              \
    for (int64_t at = ls_from + threadIdx.x; at < n; at += count * ls_x)                           \
        LS_UNROLL for (int l = 0; l < count; l++)                                                  \
        {                                                                                          \
            const int64_t i = at + l * ls_x;                                                       \
            if (i < n) {                                                                           \
                const real a = ls_one((x0)[i]), b = ls_one((x1)[i]), c = ls_one((x2)[i]);          \
                (void)a, (void)b, (void)c;                                                         \
                const real v = value;                                                              \
                one;                                                                               \
                run[l] = join(run[l], v);                                                          \
            }                                                                                      \
        }

/* The value of an element. */
LS_FN real LS_NAMED(ls_one, real)(real x) { return x; }
LS_FN real LS_NAMED(ls_one, ls_bf16)(ls_bf16 x) { return ls_from_bf16(x); }
LS_FN real LS_NAMED(ls_one, ls_f16)(ls_f16 x) { return ls_from_f16(x); }
#ifndef __cplusplus
#define ls_one(x)                                                                                  \
    _Generic((x), ls_bf16 : ls_one_ls_bf16, ls_f16 : ls_one_ls_f16, default : ls_one_real)(x)
#endif

#define LS_ROW_MAX(count, type)                                                                    \
    LS_FN real LS_NAMED(ls_row_max_of, type)(const type *x, int64_t n, int ls_x, int ls_y)         \
    {                                                                                              \
        LS_ROW_RUN(count, -INFINITY, ls_max_real, a, x, x, x, x, , )                               \
        LS_UNROLL for (int l = 0; l < count; l += 2) run[l] = ls_max_real(run[l], run[l + 1]);     \
        LS_UNROLL for (int l = 4; l < count; l += 4) {                                             \
            run[0] = ls_max_real(run[0], run[l]);                                                  \
            run[2] = ls_max_real(run[2], run[l + 2]);                                              \
        }                                                                                          \
        return ls_tree_max(ls_max_real(run[0], run[2]), ls_x, ls_y);                               \
    }

/* name_of(..., n): sum of the values. */
#define LS_ROW_SUM(count, name, type, value, x0, x1, x2, also, four, one, ...)                     \
    LS_FN double LS_NAMED(name##_of, type)(__VA_ARGS__, int64_t n, int ls_x, int ls_y)             \
    {                                                                                              \
        LS_ROW_RUN(count, 0, LS_ADD, value, x0, x1, x2, also, four, one)                           \
        double sum = 0;                                                                            \
        LS_UNROLL for (int l = 0; l < count; l += 4) {                                             \
            const double part = ((double)run[l] + run[l + 1]) + ((double)run[l + 2] + run[l + 3]); \
            sum = l == 0 ? part : sum + part;                                                      \
        }                                                                                          \
        return ls_tree_sum(sum, ls_x, ls_y);                                                       \
    }
/* ls_row_weighted: of elements and of floats. */
#define LS_ROW_FUNCTIONS(count, type)                                                              \
    LS_ROW_MAX(count, type)                                                                        \
    LS_ROW_SUM(count, ls_row_sum, type, a, x, x, x, x, , , const type *x)                          \
    LS_ROW_SUM(count, ls_row_dot, type, a * b, x, y, y, y, , , const type *x, const type *y)       \
    LS_ROW_SUM(count, ls_row_square, type, (a - mean) * (a - mean), x, x, x, x, , , const type *x, \
               real mean)                                                                          \
    LS_ROW_SUM(count, ls_row_normal_dot, type, a * b * ((c - mean) * invstd), dy, scale, x, x, , , \
               const type *dy, const real *scale, const type *x, real mean, real invstd)           \
    LS_ROW_SUM(count, ls_row_exp, type, ls_exp(a - shift), x, x, x, x, , , const type *x,          \
               real shift)
#define LS_ROW_WEIGHTED(type)                                                                      \
    LS_ROW_SUM(8, ls_row_weighted, type, a * b, x, y, y, y, , , const type *x, const real *y)
LS_ROW_FUNCTIONS(4, real)
LS_ROW_FUNCTIONS(8, ls_bf16)
LS_ROW_FUNCTIONS(8, ls_f16)
LS_ROW_WEIGHTED(ls_bf16)
LS_ROW_WEIGHTED(ls_f16)
LS_ROW_SUM(4, ls_row_exp_to, real, ls_exp(a - shift), x, x, x, y, ls_put4(y + i, v), y[i] = v,
           real *y, const real *x, real shift)
#ifdef __cplusplus
#define LS_ROW_OF(x, name) name
#else
#define LS_ROW_OF(x, name) LS_BY_ELEMENT(x, name)
#endif

/* lane[0 .. n), n a power of two up to 256: the CPU's tree, bit-identical. */
LS_FN double ls_sum_lanes_of(const real *lane, int64_t n, int ls_x, int ls_y)
{
    const int64_t count = n > ls_x ? n / ls_x : 1;
    double t[256];
    t[0] = -0.;                 /* -0 + x is x, also for -0 */
    ls_row_sync(ls_x, ls_y);
    if (threadIdx.x < n) {
        LS_UNROLL for (int64_t k = 0; k < count; k++) t[k] = lane[threadIdx.x + k * ls_x];
        LS_UNROLL for (int64_t half = count / 2; half > 0; half /= 2)
            LS_UNROLL for (int64_t k = 0; k < half; k++) t[k] += t[k + half];
    }
    return ls_tree_sum(t[0], ls_x, ls_y);
}

#define ls_row_max(x, n, lanes) LS_ROW_OF(x, ls_row_max_of)(x, n, LS_X, LS_Y)
#define ls_row_sum(x, n, lanes) LS_ROW_OF(x, ls_row_sum_of)(x, n, LS_X, LS_Y)
#define ls_row_dot(a, b, n, lanes) LS_ROW_OF(a, ls_row_dot_of)(a, b, n, LS_X, LS_Y)
#define ls_row_weighted(a, b, n, lanes)                                                            \
    LS_NAMED_16(a, ls_row_weighted_of)(a, b, n, LS_X, LS_Y)
#define ls_row_square(x, mean, n, lanes) LS_ROW_OF(x, ls_row_square_of)(x, mean, n, LS_X, LS_Y)
#define ls_row_normal_dot(dy, scale, x, mean, invstd, n, lanes)                                    \
    LS_ROW_OF(dy, ls_row_normal_dot_of)(dy, scale, x, mean, invstd, n, LS_X, LS_Y)
#define ls_row_exp(x, shift, n, lanes) LS_ROW_OF(x, ls_row_exp_of)(x, shift, n, LS_X, LS_Y)
#define ls_row_exp_to(y, x, shift, n, lanes)                                                       \
    LS_NAMED(ls_row_exp_to_of, real)(y, x, shift, n, LS_X, LS_Y)
#define ls_sum_lanes(lane, n) ls_sum_lanes_of(lane, n, LS_X, LS_Y)

/* ---- copies ----
 * Copies n elements by the threads of a row, in the largest words that fit. Not a barrier. */
#define LS_COPY_WORDS(to, from, bytes, size)                                                       \
    for (int64_t i = threadIdx.x * (size); i < bytes; i += ls_x * (size))                          \
        memcpy(__builtin_assume_aligned((char *)to + i, size),                                     \
               __builtin_assume_aligned((const char *)from + i, size), size)
LS_FN void ls_copy_of(void *to, const void *from, int64_t bytes, int ls_x)
{
    const uintptr_t odd = (uintptr_t)to | (uintptr_t)from | (uintptr_t)bytes;
    if (odd % 16 == 0)
        LS_COPY_WORDS(to, from, bytes, 16);
    else if (odd % 4 == 0)
        LS_COPY_WORDS(to, from, bytes, 4);
    else if (odd % 2 == 0)
        LS_COPY_WORDS(to, from, bytes, 2);
    else
        LS_COPY_WORDS(to, from, bytes, 1);
}
#define LS_COPY(to, from, n) ls_copy_of(to, from, (int64_t)(n) * (int64_t)sizeof *(to), LS_X)

/* ---- transposition ----
 * to[c * ldt + r] = from[r * ldf + c] for r < rows, c < cols, by all threads of the block: through
 * tiles of 32 by 32 in shared memory, with one padding column so that neither side has bank
 * conflicts. Named by the size of an element in bits. A barrier of the block. */
#define LS_TRANSPOSE(bits)                                                                         \
    LS_FN void ls_transpose##bits##_of(void *y, int64_t ldt, const void *x, int64_t ldf,           \
                                       int64_t rows, int64_t cols, int ls_x, int ls_y)             \
    {                                                                                              \
        LS_SHARED(uint##bits##_t, tile, [32 * 33]);                                                \
        uint##bits##_t *const to = (uint##bits##_t *)y;                                            \
        const uint##bits##_t *const from = (const uint##bits##_t *)x;                              \
        const int me = (int)threadIdx.y * ls_x + (int)threadIdx.x;                                 \
        for (int64_t r = 0; r < rows; r += 32)                                                     \
            for (int64_t c = 0; c < cols; c += 32) {                                               \
                __syncthreads();                                                                   \
                for (int e = me; e < 1024; e += ls_x * ls_y) {                                     \
                    const int i = e / 32, j = e % 32;                                              \
                    if (r + i < rows && c + j < cols)                                              \
                        tile[i * 33 + j] = from[(r + i) * ldf + c + j];                            \
                }                                                                                  \
                __syncthreads();                                                                   \
                for (int e = me; e < 1024; e += ls_x * ls_y) {                                     \
                    const int i = e % 32, j = e / 32;                                              \
                    if (r + i < rows && c + j < cols)                                              \
                        to[(c + j) * ldt + r + i] = tile[i * 33 + j];                              \
                }                                                                                  \
            }                                                                                      \
    }
LS_TRANSPOSE(8)
LS_TRANSPOSE(16)
LS_TRANSPOSE(32)
LS_TRANSPOSE(64)
#define ls_transpose8(to, ldt, from, ldf, rows, cols)                                              \
    ls_transpose8_of(to, ldt, from, ldf, rows, cols, LS_X, LS_Y)
#define ls_transpose16(to, ldt, from, ldf, rows, cols)                                             \
    ls_transpose16_of(to, ldt, from, ldf, rows, cols, LS_X, LS_Y)
#define ls_transpose32(to, ldt, from, ldf, rows, cols)                                             \
    ls_transpose32_of(to, ldt, from, ldf, rows, cols, LS_X, LS_Y)
#define ls_transpose64(to, ldt, from, ldf, rows, cols)                                             \
    ls_transpose64_of(to, ldt, from, ldf, rows, cols, LS_X, LS_Y)

/* ---- ranks ----
 * A stable sort of keys from 0 to INT32_MAX - 1: sorted[r] = key[j] and order[r] = j, where r of
 * the n keys precede key j. A unit ranks 32 keys, one for each of the 32 threads of a row; the rows
 * share the comparisons with all keys, which a warp loads into shared memory by tiles. */
#define LS_RANK_TILE 128
LS_FN void ls_rank_of(int32_t *order, int32_t *sorted, const int32_t *key, int64_t n, int64_t unit,
                      int ls_y)
{
    LS_SHARED(int32_t, tiles, [LS_RANK_KEYS][LS_RANK_TILE]);
    LS_SHARED(int32_t, before, [LS_RANK_KEYS][LS_RANK_KEYS]);
    const int64_t j = LS_RANK_KEYS * unit + threadIdx.x;
    const int32_t own = j < n ? key[j] : 0;
    int32_t *const tile = tiles[threadIdx.y];
    int32_t rank = 0;
    for (int64_t t = LS_RANK_TILE * (int64_t)threadIdx.y; t < n; t += LS_RANK_TILE * ls_y) {
        ls_row_sync(32, ls_y);
        LS_UNROLL for (int k = 0; k < LS_RANK_TILE / 32; k++) {
            const int i = 32 * k + (int)threadIdx.x;
            tile[i] = t + i < n ? key[t + i] : INT32_MAX;
        }
        ls_row_sync(32, ls_y);
        if (t / LS_RANK_TILE == j / LS_RANK_TILE) {
            const int place = (int)(j - t);
            LS_ROLLED for (int i = 0; i < LS_RANK_TILE; i++)
                rank += tile[i] < own || (tile[i] == own && i < place);
        } else {                /* earlier keys count if not greater, later keys if less */
            const int32_t end = own + (t < j);
            LS_UNROLL for (int i = 0; i < LS_RANK_TILE; i++) rank +=
                (int32_t)((uint32_t)(tile[i] - end) >> 31); /* 1 if less, in two instructions */
        }
    }
    before[threadIdx.y][threadIdx.x] = rank;
    __syncthreads();
    if (threadIdx.y == 0 && j < n) {
        for (int k = 1; k < ls_y; k++)
            rank += before[k][threadIdx.x];
        order[rank] = (int32_t)j;
        sorted[rank] = own;
    }
}
#define ls_rank(order, sorted, key, n, unit) ls_rank_of(order, sorted, key, n, unit, LS_Y)

#ifndef LS_F64
#include "runtime/cuda_kernels/ls_cuda_mma.h"
#include "runtime/cuda_kernels/ls_cuda_taps.h"
#endif

#endif
