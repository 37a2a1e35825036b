/* compiler/packed/half_bits.h -- numbers of 16 bits by their bits: float16 and bfloat16. */
#ifndef LS_COMPILER_PACKED_HALF_BITS_H
#define LS_COMPILER_PACKED_HALF_BITS_H

#include <stdint.h>
#include <string.h>

static inline float ls_half_value(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 1023;
    if (exponent == 0) {
        float tiny = (float)mantissa * 0x1p-24f;
        return sign != 0 ? -tiny : tiny;
    }
    uint32_t bits = sign | (exponent == 31 ? 255u : exponent + 112) << 23 | mantissa << 13;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline float ls_brain_value(uint16_t h)
{
    uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* The nearest bfloat16, halves to even; NaNs stay so. */
static inline uint16_t ls_brain_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return (uint16_t)((x != x ? u | 0x400000u : u + 0x7fffu + (u >> 16 & 1)) >> 16);
}

/* The nearest float16, halves to even; what is larger than all becomes infinite. */
static inline uint16_t ls_half_bits(float x)
{
    uint32_t u, a, sign;
    memcpy(&u, &x, sizeof u);
    sign = u >> 16 & 0x8000;
    a = u & 0x7fffffffu;
    if (a > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00);
    if (a >= 0x477ff000u)       /* 65520 */
        return (uint16_t)(sign | 0x7c00);
    if (a < 0x38800000u) {      /* below 2^-14: steps of 2^-24, as from 0.5 on */
        float v;
        uint32_t t;
        memcpy(&v, &a, sizeof v);
        v += 0.5f;
        memcpy(&t, &v, sizeof t);
        return (uint16_t)(sign | (t - 0x3f000000u));
    }
    return (uint16_t)(sign | (((a + 0xfffu + (a >> 13 & 1)) >> 13) - (112u << 10)));
}

#endif
