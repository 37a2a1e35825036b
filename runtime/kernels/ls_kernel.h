/* runtime/kernels/ls_kernel.h -- the primitives of generated kernels, for the CPU.
 *
 * Included once by every generated program, before any kernel, with LS_F64 defined or not.
 * Everything is static and needs only <math.h> and <stdint.h>, so a generated file is one
 * translation unit that the C compiler sees whole. ls_math.h, shared with the GPU, has the
 * arithmetic (real, ls_exp, ls_max, ls_uniform...). */
#ifndef LS_RUNTIME_KERNELS_LS_KERNEL_H
#define LS_RUNTIME_KERNELS_LS_KERNEL_H

#include "runtime/ls_program.h"

#include <math.h>
#include <string.h>

#define LS_FN static inline
/* Heads functions that are inlined although many kernels call them: else no loop that calls them is
 * vectorised. */
#ifdef __OPTIMIZE__
#define LS_EACH_FN static inline __attribute__((always_inline))
#else
#define LS_EACH_FN LS_FN
#endif
#include "runtime/kernels/ls_math.h"

/* LS_INLINE heads functions that are inlined, LS_SHARED_FN functions that never are. Programs that
 * are not optimised inline nothing: their functions are compiled once each, if they are called, and
 * the compiler takes half the time. */
#ifdef __OPTIMIZE__
#define LS_INLINE static inline __attribute__((always_inline, unused))
#define LS_SHARED_FN static __attribute__((noinline, unused))
#else
#define LS_INLINE static inline __attribute__((unused))
#define LS_SHARED_FN static inline __attribute__((unused))
#endif

/* ---- rounding ----
 * Between these two, every operation of a function is rounded by itself: no product is contracted
 * with the sum that reads it, as contraction would depend on the surrounding code. FUSED kernels
 * lie there, so that a statement gives the same bits in every kernel. */
#ifdef __clang__
#define LS_EXACT_BEGIN _Pragma("STDC FP_CONTRACT OFF")
#define LS_EXACT_END _Pragma("STDC FP_CONTRACT DEFAULT")
#else
#define LS_EXACT_BEGIN _Pragma("GCC push_options") _Pragma("GCC optimize(\"fp-contract=off\")")
#define LS_EXACT_END _Pragma("GCC pop_options")
#endif

/* The iterations of the next loop are independent. Clang is not told: its own pragma for this also
 * lets it reorder sums. */
#ifdef __clang__
#define LS_INDEPENDENT
#else
#define LS_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* ---- parts of kernels ---- A part computes units lo .. hi of a grid, for any lo and hi: a thread
 * of the pool takes some. The same text runs on a GPU, where a block of threads computes one unit
 * (runtime/cuda_kernels/ls_cuda.h defines these words for it). Every thread of the block executes
 * the text outside LS_LANES and LS_ROWS, so that text must be idempotent.
 *
 *   LS_PART(name, narg, x, y)      the head: of narg arguments, for blocks of x times y threads
 *   LS_UNITS;                      the first line
 *   LS_IN(type, name, k);          argument k, which is read
 *   LS_OUT(type, name, k);         argument k, which is written
 *   LS_SAME(j, k)                  arguments j and k lie in the same place
 *   LS_LANES(i, from, to) {}       independent steps, shared by the x threads of a row
 *   LS_LANES4(i, from, to) {}      the same where from, to - from and all strides are multiples of
 *                                  four elements: a thread takes four neighbours
 *   LS_LANES8 {}, LS_ONCE8 {}      and what belongs to them: the same of eight, in kernels of GPUs
 * with elements of 16 bits (runtime/cuda_kernels/ls_cuda_wide.h) LS_PUT4(y, at, v); y[at] = v of
 * real numbers, in LS_LANES4 once for each of the four: they are stored together, after all earlier
 * reads LS_WITHIN(i, from, to) {}      executed where i is at least `from` and below `to`;
 * LS_WITHIN4: in LS_LANES4, of multiples of four LS_BELOW(i, end, a, b)         a where i is below
 * `end`, else b LS_WHOLE4(n)                   n, a multiple of four LS_FOUR(v);  LS_GET4(v, x, at)
 * before LS_LANES4: a place; there, once for each of the four: x[at] of real numbers, which are
 * read together into that place of v's own LS_BYTES4(v);  LS_GET4B  LS_PUT4B      the same of
 * arrays of uint8_t; a place for each of the two LS_ONCE(i, from, to) {}  LS_ONCE4      the same
 * where a thread has at most one step (four neighbours in LS_ONCE4): at most x steps, or 4 x
 *   LS_ROWS(j, from, to) {}        independent steps, shared by the y rows of threads
 *   LS_GROUPS(n, g, from, to) {}   sequential steps of each thread: on a GPU n at a time, so that
 *                                  the loads of all n are issued before the first arrives. In it,
 *                                  in this order:
 *   LS_AHEAD(j, g) {}              of the group at g: LS_FETCH4 in LS_ONCE4, for all that it reads
 *   LS_OF_GROUP(n, j, g) {}        each step j of it
 *   LS_FOUR_OF(n, v);  LS_FETCH4(n, v, x, at, step, g);  LS_FETCHED4(v, x, at)     as LS_FOUR and
 * LS_GET4: a place for n steps, whose elements are `step` apart; reads those of the first and the
 * following; one of step j LS_ONE {}  LS_LEAD {}          executed once; by one thread of each row
 *   LS_FOLD(k, y) {}               k = 1 .. y - 1: the other rows' LS_OF_ROW(name, k), for
 * LS_ROWS(0, 1) LS_HELPER                      head of a function that parts call. LS_THREADS
 * behind its last parameter, LS_ITS_THREADS behind the last argument: its LS_LANES know x as those
 * of the part do LS_SYNC; LS_ROW_SYNC;          barriers of the block, of the row: earlier writes
 * of its threads can be read LS_LOCAL(type, name, n);       an array shared by the block
 *   LS_LOCAL_ROWS(type, name, n, y);       one for each of the y rows of threads
 *   LS_OWNED(type, name, n);       likewise, but each thread has only the elements of its own step
 *                                  of LS_ONCE, as LS_OWN(name, at), or of LS_ONCE4, as
 * LS_OWN4(name, at)
 *
 * Two LS_LANES over the same bounds give a thread the same steps. */
#define LS_PART(name, narg, x, y)                                                                  \
    static void name(LsRun *run, void *const arg[], int64_t lo, int64_t hi)
#define LS_UNITS (void)run, (void)arg, (void)lo, (void)hi
#define LS_IN(type, name, k) const type *const name = arg[k]
#define LS_OUT(type, name, k) type *const name = arg[k]
#define LS_SAME(j, k) (arg[j] == arg[k])
#define LS_LANES(i, from, to) LS_INDEPENDENT for (int64_t i = (from); i < (to); i++)
#define LS_LANES4(i, from, to) LS_LANES(i, from, to)
#define LS_ONCE(i, from, to) LS_LANES(i, from, to)
#define LS_ONCE4(i, from, to) LS_LANES(i, from, to)
#define LS_WITHIN4(i, from, to) LS_WITHIN(i, from, to)
#define LS_BELOW(i, end, a, b) ((i) < (end) ? (a) : (b))
#define LS_WHOLE4(n) (n)
#define LS_PUT4(y, at, v) (y)[at] = (v)
#define LS_FOUR(v) (void)0
#define LS_GET4(v, x, at) (x)[at]
#define LS_BYTES4(v) (void)0
#define LS_GET4B(v, x, at) (x)[at]
#define LS_PUT4B(v, y, at, value) (y)[at] = (value)
#define LS_ROWS(j, from, to) for (int64_t j = (from); j < (to); j++)
#define LS_GROUPS(n, g, from, to) for (int64_t g = (from); g < (to); g++)
#define LS_AHEAD(j, g) if (0)
#define LS_OF_GROUP(n, j, g) const int64_t j = (g);
#define LS_FOUR_OF(n, v) (void)0
#define LS_FETCH4(n, v, x, at, step, g) (void)0
#define LS_FETCHED4(v, x, at) (x)[at]
#define LS_ONE
#define LS_LEAD
#define LS_FOLD(k, y) for (int64_t k = 1; k < 1; k++)
#define LS_OF_ROW(name, k) name
#define LS_HELPER static __attribute__((noinline))
#define LS_THREADS
#define LS_ITS_THREADS
#define LS_SYNC (void)0
#define LS_ROW_SYNC (void)0
#define LS_LOCAL(type, name, n) type name[n]
#define LS_LOCAL_ROWS(type, name, n, y) type name[n]
#define LS_OWNED(type, name, n) type name[n]
#define LS_OWN(name, at) (name)[at]
#define LS_OWN4(name, at) (name)[at]
#define LS_COPY(to, from, n) memcpy(to, from, (size_t)(n) * sizeof *(to))

/* Sum of n values, n a power of two up to 256, as a tree. */
static inline double ls_sum_lanes(const real *lane, int64_t n)
{
    double t[256];
    if (n < 1)
        __builtin_unreachable();
    for (int64_t l = 0; l < n; l++)
        t[l] = lane[l];
    for (int64_t half = n / 2; half > 0; half /= 2)
        for (int64_t l = 0; l < half; l++)
            t[l] += t[l + half];
    return t[0];
}

/* ---- rows ----
 * Over x[0 .. n): `lanes` running values (a power of two up to 256; both constants where it is
 * called), so that the loop is vectorised; at the end they are combined as a tree, sums in
 * double. */
LS_INLINE real ls_row_max(const real *x, int64_t n, int64_t lanes)
{
    real lane[256];
    int64_t i = 0;
    for (int64_t l = 0; l < lanes; l++)
        lane[l] = -INFINITY;
    for (; i + lanes <= n; i += lanes)
#pragma GCC unroll 1
        for (int64_t l = 0; l < lanes; l++)
            lane[l] = ls_max_real(lane[l], x[i + l]);
    for (int64_t l = 0; i + l < n; l++)
        lane[l] = ls_max_real(lane[l], x[i + l]);
    for (int64_t half = lanes / 2; half > 0; half /= 2)
        for (int64_t l = 0; l < half; l++)
            lane[l] = ls_max_real(lane[l], lane[l + half]);
    return lane[0];
}

/* name(..., n, lanes): sum of `term`, an expression in i. */
#define LS_ROW_SUM(name, term, ...)                                     \
    LS_INLINE double name(__VA_ARGS__, int64_t n, int64_t lanes)        \
    {                                                                   \
        real lane[256];                                                 \
        for (int64_t l = 0; l < lanes; l++)                             \
            lane[l] = 0;                                                \
        const int64_t whole = n / lanes * lanes;                        \
        for (int64_t at = 0; at < whole; at += lanes) {                 \
            LS_INDEPENDENT _Pragma("GCC unroll 1")                      \
            for (int64_t l = 0; l < lanes; l++) {                       \
                const int64_t i = at + l;                               \
                lane[l] += term;                                        \
            }                                                           \
        }                                                               \
        LS_INDEPENDENT                                                  \
        for (int64_t l = 0; l < n - whole; l++) {                       \
            const int64_t i = whole + l;                                \
            lane[l] += term;                                            \
        }                                                               \
        return ls_sum_lanes(lane, lanes);                               \
    }
LS_ROW_SUM(ls_row_sum, x[i], const real *x)
LS_ROW_SUM(ls_row_dot, a[i] * b[i], const real *a, const real *b)
LS_ROW_SUM(ls_row_square, (x[i] - mean) * (x[i] - mean), const real *x, real mean)
LS_ROW_SUM(ls_row_normal_dot, dy[i] * scale[i] * ((x[i] - mean) * invstd), const real *dy,
           const real *scale, const real *x, real mean, real invstd)
LS_ROW_SUM(ls_row_exp, ls_exp(x[i] - shift), const real *x, real shift)
LS_ROW_SUM(ls_row_exp_to, (y[i] = ls_exp(x[i] - shift)), real *y, const real *x, real shift)

/* ---- transposition ----
 * to[c * ldt + r] = from[r * ldf + c] for r < rows, c < cols, through tiles of 16 by 16, so that
 * both sides are accessed in whole cache lines. Named by the size of an element in bits. */
#define LS_TRANSPOSE(bits)                                                                       \
    typedef uint##bits##_t ls_four##bits                                                         \
        __attribute__((vector_size(bits / 2), aligned(bits / 8), may_alias));                    \
    static inline void ls_block##bits(uint##bits##_t *to, int64_t ldt, const uint##bits##_t *from, \
                                      int64_t ldf)                                               \
    {                                                                                            \
        const ls_four##bits a = *(const ls_four##bits *)from;                                    \
        const ls_four##bits b = *(const ls_four##bits *)(from + ldf);                            \
        const ls_four##bits c = *(const ls_four##bits *)(from + 2 * ldf);                        \
        const ls_four##bits d = *(const ls_four##bits *)(from + 3 * ldf);                        \
        const ls_four##bits ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);                      \
        const ls_four##bits cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);                      \
        const ls_four##bits ba = __builtin_shufflevector(a, b, 2, 6, 3, 7);                      \
        const ls_four##bits dc = __builtin_shufflevector(c, d, 2, 6, 3, 7);                      \
        *(ls_four##bits *)to = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);                      \
        *(ls_four##bits *)(to + ldt) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);              \
        *(ls_four##bits *)(to + 2 * ldt) = __builtin_shufflevector(ba, dc, 0, 1, 4, 5);          \
        *(ls_four##bits *)(to + 3 * ldt) = __builtin_shufflevector(ba, dc, 2, 3, 6, 7);          \
    }                                                                                            \
    static inline void ls_transpose##bits(void *y, int64_t ldt, const void *x, int64_t ldf,      \
                                          int64_t rows, int64_t cols)                            \
    {                                                                                            \
        uint##bits##_t *const to = y;                                                            \
        const uint##bits##_t *const from = x;                                                    \
        const int64_t whole_r = rows / 16 * 16, whole_c = cols / 16 * 16;                        \
        uint##bits##_t tile[256];                                                                \
        for (int64_t r = 0; r < whole_r; r += 16)                                                \
            for (int64_t c = 0; c < whole_c; c += 16) {                                          \
                for (int64_t i = 0; i < 16; i += 4)                                              \
                    for (int64_t j = 0; j < 16; j += 4)                                          \
                        ls_block##bits(tile + j * 16 + i, 16, from + (r + i) * ldf + c + j, ldf); \
                for (int64_t j = 0; j < 16; j++)                                                 \
                    memcpy(to + (c + j) * ldt + r, tile + j * 16, sizeof tile / 16);             \
            }                                                                                    \
        for (int64_t c = 0; c < cols; c++)                                                       \
            for (int64_t r = c < whole_c ? whole_r : 0; r < rows; r++)                           \
                to[c * ldt + r] = from[r * ldf + c];                                             \
    }
LS_TRANSPOSE(16)
LS_TRANSPOSE(32)
LS_TRANSPOSE(64)
static inline void ls_transpose8(uint8_t *to, int64_t ldt, const uint8_t *from, int64_t ldf,
                                 int64_t rows, int64_t cols)
{
    for (int64_t c = 0; c < cols; c++)
        for (int64_t r = 0; r < rows; r++)
            to[c * ldt + r] = from[r * ldf + c];
}

#endif
