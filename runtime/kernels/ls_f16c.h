/* runtime/kernels/ls_f16c.h -- rows of float16 by the instructions that convert them, where the
 * program is compiled for them; the same bits as ls_half.h's. Both functions convert the whole
 * vectors of a row and return their elements' number: 0 elsewhere. Assembly, as <immintrin.h> takes
 * longer to compile than most kernels. */
#ifndef LS_RUNTIME_KERNELS_LS_F16C_H
#define LS_RUNTIME_KERNELS_LS_F16C_H

#if defined __F16C__ && !defined LS_F64 && defined __x86_64__
#if defined __AVX512F__
enum { LS_F16C = 16 };          /* elements of a vector */
#define LS_F16C_VECTOR "v"
#else
enum { LS_F16C = 8 };
#define LS_F16C_VECTOR "x"
#endif

typedef float ls_f16c_wide __attribute__((vector_size(4 * LS_F16C), aligned(4), may_alias));
typedef uint16_t ls_f16c_narrow __attribute__((vector_size(2 * LS_F16C), aligned(2), may_alias));

/* to[i] = from[i], widened. */
LS_INLINE int64_t ls_f16c_widen(float *restrict to, const ls_f16 *restrict from, int64_t n)
{
    int64_t i = 0;
    for (; i + LS_F16C <= n; i += LS_F16C) {
        ls_f16c_wide v;
        __asm__("vcvtph2ps %1, %0"
                : "=" LS_F16C_VECTOR(v)
                : LS_F16C_VECTOR "m"(*(const ls_f16c_narrow *)(from + i)));
        *(ls_f16c_wide *)(to + i) = v;
    }
    return i;
}

/* to[i] = from[i], rounded to the nearest, halves to even. */
LS_INLINE int64_t ls_f16c_round(ls_f16 *restrict to, const float *restrict from, int64_t n)
{
    int64_t i = 0;
    for (; i + LS_F16C <= n; i += LS_F16C)
        __asm__("vcvtps2ph $0, %1, %0" : "=" LS_F16C_VECTOR "m"(*(ls_f16c_narrow *)(to + i))
                : LS_F16C_VECTOR(*(const ls_f16c_wide *)(from + i)));
    return i;
}
#else
LS_INLINE int64_t ls_f16c_widen(real *to, const ls_f16 *from, int64_t n)
{
    return (void)to, (void)from, (void)n, 0;
}
LS_INLINE int64_t ls_f16c_round(ls_f16 *to, const real *from, int64_t n)
{
    return (void)to, (void)from, (void)n, 0;
}
#endif

#endif
