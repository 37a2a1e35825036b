/* runtime/ls_half.h -- reals stored in 16 bits: bfloat16 and float16.
 *
 * One text for C11 and for CUDA C++, for kernels and for the trainer. ls_nearest_ rounds to the
 * nearest number of the type, halves to even. ls_to_ stores such a number, and ls_from_ widens,
 * both exactly. Rounding makes NaNs quiet, and so does ls_from_f16. */
#ifndef LS_HALF_H
#define LS_HALF_H

#ifndef LS_FN
#define LS_FN static inline
#endif

LS_FN uint32_t ls_bits32(float x) { uint32_t u; memcpy(&u, &x, sizeof u); return u; }
LS_FN float ls_float32(uint32_t u) { float x; memcpy(&x, &u, sizeof x); return x; }

typedef struct ls_bf16 { uint16_t bits; } ls_bf16;
typedef struct ls_f16 { uint16_t bits; } ls_f16;
LS_FN float ls_from_bf16(ls_bf16 x) { return ls_float32((uint32_t)x.bits << 16); }
LS_FN ls_bf16 ls_to_bf16(float x)
{
    ls_bf16 y;
    y.bits = (uint16_t)(ls_bits32(x) >> 16);
    return y;
}
#ifdef __CUDACC__               /* one instruction each, with the same numbers; a NaN has other
                                 * bits */
LS_FN float ls_from_f16(ls_f16 x)
{
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}
LS_FN ls_f16 ls_to_f16(float x)
{
    ls_f16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}
#else
LS_FN float ls_from_f16(ls_f16 x)
{
    const uint32_t sign = (uint32_t)(x.bits & 0x8000u) << 16, a = (uint32_t)(x.bits & 0x7fffu);
    /* steps of 2^-24, below 2^-14 */
    const float tiny = (float)(int32_t)a * 5.9604644775390625e-8f;
    const uint32_t normal =
        ((a << 13) + (a < 0x7c00u ? 112u << 23 : 224u << 23)) | (uint32_t)(a > 0x7c00u) << 22;
    return ls_float32(sign | (a < 0x0400u ? ls_bits32(tiny) : normal));
}
LS_FN ls_f16 ls_to_f16(float x)
{
    const uint32_t u = ls_bits32(x), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
    /* steps of 2^-24, as from 0.5 on */
    const uint32_t tiny = ls_bits32(ls_float32(a) + 0.5f) - 0x3f000000u;
    const uint32_t normal = (a >> 13) - (a < 0x7f800000u ? 112u << 10 : 224u << 10);
    ls_f16 y;
    y.bits = (uint16_t)(sign | (a < 0x38800000u ? tiny : normal));
    return y;
}
#endif
LS_FN float ls_nearest_f16(float x)
{
    const uint32_t u = ls_bits32(x), v = u & 0x7fffffffu;
    /* below 2^-14 all steps are 2^-24 */
    const float a = ls_float32(v), tiny = (a + 0.5f) - 0.5f;
    const float b = ls_float32((v + 0xfffu + (v >> 13 & 1)) & 0xffffe000u);
    const float y = a < 6.10351562e-5f ? tiny : b > 65504.f ? ls_float32(0x7f800000u) : b;
    return x != x ? x + x : ls_float32((u & 0x80000000u) | ls_bits32(y));
}
#if defined __CUDACC__ && (!defined __CUDA_ARCH__ || __CUDA_ARCH__ >= 800)
LS_FN float ls_nearest_bf16(float x)
{
    uint16_t bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return ls_float32((uint32_t)bits << 16);
}
#else
LS_FN float ls_nearest_bf16(float x)
{
    const uint32_t u = ls_bits32(x);
    return x != x ? x + x : ls_float32((u + 0x7fffu + (u >> 16 & 1)) & 0xffff0000u);
}
#endif

#endif
