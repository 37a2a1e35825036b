/* runtime/kernels/ls_vector.h -- vectors of `real` for kernels that do not rely on the
 * auto-vectoriser.
 *
 * GNU vector extensions, no intrinsics: the same text serves AVX-512, AVX, SSE, NEON and every
 * other target of gcc or clang. Vectors need not be aligned in memory. */
#ifndef LS_RUNTIME_KERNELS_LS_VECTOR_H
#define LS_RUNTIME_KERNELS_LS_VECTOR_H

#include "runtime/kernels/ls_kernel.h"
#include "runtime/kernels/ls_kernel_sizes.h"

#if defined(__AVX512F__)
#define LS_VEC_BYTES 64
#define LS_MR 14        /* rows of the micro-kernel: LS_MR * 2 accumulators of 32 registers */
#elif defined(__AVX__)
#define LS_VEC_BYTES 32
#define LS_MR 6         /* of 16 registers */
#elif defined(__aarch64__)
#define LS_VEC_BYTES 16
#define LS_MR 14
#else
#define LS_VEC_BYTES 16
#define LS_MR 6
#endif

#ifdef LS_F64
#define LS_REAL_BYTES 8
#else
#define LS_REAL_BYTES 4
#endif

enum {
    LS_V = LS_VEC_BYTES / sizeof(real),     /* elements of a vector */
    LS_NR = 2 * LS_V,                       /* columns of the micro-kernel */
};

_Static_assert(LS_VEC_BYTES <= LS_VEC_BYTES_MOST, "workspaces have room for a vector");

typedef real ls_vec __attribute__((vector_size(LS_VEC_BYTES), aligned(sizeof(real)), may_alias));

LS_INLINE ls_vec ls_load(const real *p) { return *(const ls_vec *)p; }
LS_INLINE void ls_store(real *p, ls_vec v) { *(ls_vec *)p = v; }
LS_INLINE ls_vec ls_splat(real x) { return x - (ls_vec){0}; }
/* a > b ? a : b, element by element: b where one of them is no number. */
LS_INLINE ls_vec ls_vec_max(ls_vec a, ls_vec b)
{
#if defined __AVX__ && !defined LS_F64
    ls_vec to;
    __asm__("vmaxps %2, %1, %0" : "=v"(to) : "v"(a), "v"(b));
    return to;
#else
    for (int l = 0; l < LS_V; l++)
        b[l] = a[l] > b[l] ? a[l] : b[l];
    return b;
#endif
}
LS_INLINE int64_t ls_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* ---- elements stored in 16 bits ---- */
#include "runtime/kernels/ls_f16c.h"
#ifndef LS_F64
typedef uint16_t ls_vec_16 __attribute__((vector_size(LS_VEC_BYTES / 2), aligned(2), may_alias));
typedef uint32_t ls_vec_32 __attribute__((vector_size(LS_VEC_BYTES)));
#endif

/* to[i] = from[i], widened. */
LS_INLINE void ls_widen(LsStored type, real *restrict to, const void *restrict from, int64_t n)
{
    const ls_bf16 *const brain = from;
    const ls_f16 *const half = from;
    int64_t i = 0;
    if (type == LS_STORED_F16) {
        i = ls_f16c_widen(to, half, n);
        LS_INDEPENDENT for (; i < n; i++)
            to[i] = ls_from_f16(half[i]);
        return;
    }
#ifndef LS_F64
    for (; i + LS_V <= n; i += LS_V)
        ls_store(
            to + i,
            (ls_vec)(__builtin_convertvector(*(const ls_vec_16 *)(brain + i), ls_vec_32) << 16));
#endif
    for (; i < n; i++)
        to[i] = ls_from_bf16(brain[i]);
}

/* to[i] = from[i], rounded as ls_round_brain does, of whole vectors; returns their elements'
 * number. */
LS_INLINE int64_t ls_brain_vectors(ls_bf16 *restrict to, const real *restrict from, int64_t n)
{
    int64_t i = 0;
    (void)to, (void)from, (void)n;
#ifndef LS_F64
    for (; i + LS_V <= n; i += LS_V) {
        const ls_vec v = ls_load(from + i);
        const ls_vec_32 u = (ls_vec_32)v, nan = (ls_vec_32)(v != v);
        const ls_vec_32 bits = (nan & (u | 0x400000u)) | (~nan & (u + 0x7fffu + (u >> 16 & 1)));
        *(ls_vec_16 *)(to + i) = __builtin_convertvector(bits >> 16, ls_vec_16);
    }
#endif
    return i;
}

/* to[at + i] = from[i], rounded to the numbers of the type. */
LS_INLINE void ls_give(LsStored type, void *to, int64_t at, const real *restrict from, int64_t n)
{
    ls_bf16 *const brain = (ls_bf16 *)to + at;
    ls_f16 *const half = (ls_f16 *)to + at;
    if (type == LS_STORED_REAL)
        memcpy((real *)to + at, from, (size_t)n * sizeof(real));
    else if (type == LS_STORED_BF16)
        LS_INDEPENDENT for (int64_t i = ls_brain_vectors(brain, from, n); i < n; i++)
            brain[i] = ls_to_bf16((float)ls_round_brain(from[i]));
    else
        LS_INDEPENDENT for (int64_t i = ls_f16c_round(half, from, n); i < n; i++)
            half[i] = ls_to_f16((float)ls_round_half(from[i]));
}

LS_INLINE void ls_give_vector(LsStored type, void *to, int64_t at, ls_vec v)
{
    real each[LS_V];
    if (type == LS_STORED_REAL) {
        ls_store((real *)to + at, v);
        return;
    }
    ls_store(each, v);
    ls_give(type, to, at, each, LS_V);
}

/* Copies n elements. Runs are often a few vectors long, so the loops are written in a form that
 * compilers do not turn into a call of memcpy. */
LS_INLINE void ls_copy(real *restrict to, const real *restrict from, int64_t n)
{
    for (; n >= 4 * LS_V; n -= 4 * LS_V, to += 4 * LS_V, from += 4 * LS_V) {
        ls_vec a = ls_load(from), b = ls_load(from + LS_V);
        ls_vec c = ls_load(from + 2 * LS_V), d = ls_load(from + 3 * LS_V);
        ls_store(to, a);
        ls_store(to + LS_V, b);
        ls_store(to + 2 * LS_V, c);
        ls_store(to + 3 * LS_V, d);
    }
#pragma GCC unroll 8
    for (int part = 2 * LS_V; part > 0; part /= 2)
        if (n & part) {
            memcpy(to, from, (size_t)part * sizeof(real));
            to += part;
            from += part;
        }
}

LS_INLINE void ls_zero(real *to, int64_t n)
{
    for (; n >= LS_V; n -= LS_V, to += LS_V)
        ls_store(to, (ls_vec){0});
    for (int64_t i = 0; i < n; i++)
        to[i] = 0;
}

#endif
