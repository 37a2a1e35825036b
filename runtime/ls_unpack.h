/* runtime/ls_unpack.h -- reals that are kept in codes of 16, 8 or 4 bits.
 *
 * One text for C11 and for CUDA C++, for kernels and for the trainer. A packed tensor is one block
 * of bytes: the codes, their scales, the zero points, and what codes of scales stand for; each part
 * begins at a multiple of 64. The value of a code is a float32: the number of 16 bits, or
 * (code - zero) * scale, or table[code] * scale.
 *
 * The elements are an outer x axis x inner tensor. Blocks of `block` elements along the axis have
 * one scale; block 0: each index along the axis has one. */
#ifndef LS_UNPACK_H
#define LS_UNPACK_H

#include "runtime/ls_half.h"
#include "runtime/ls_signed_codes.h"

/* FP4, NF4: bitsandbytes' tables, the even index in the high half of a byte. U4, I4: ONNX's
 * integers, the even index in the low half. */
typedef enum {
    LS_PACKED_FP4,
    LS_PACKED_NF4,
    LS_PACKED_U4,
    LS_PACKED_I4,
    LS_PACKED_U8,
    LS_PACKED_I8,
    LS_PACKED_BF16,
    LS_PACKED_F16,
    LS_NPACKED
} LsPackedForm;

/* Of `count` elements. scales, zeros, nested: where those parts begin, in bytes; 0: there are none.
 * A zero point is a byte for each scale. nested: scales are codes of 8 bits themselves, LS_NESTED
 * of which share a float there, and the float behind these is added to all. */
typedef struct LsPacked {
    LsPackedForm form;
    int64_t count, axis, inner, block;
    int64_t nscales, scales, zeros, nested;
} LsPacked;

enum { LS_NESTED = 256 };

LS_CODES_TABLE float ls_packed_table[2][16] = {
    {0.0f, 5.208333333e-03f, 0.66666667f, 1.0f, 0.33333333f, 0.5f, 0.16666667f, 0.25f, -0.0f,
     -5.208333333e-03f, -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f},
    {-1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,
     -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0.0f,
     0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f,
     0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f},
};

/* Bytes from the first code to the end of the last part. */
LS_FN int64_t ls_packed_bytes(const LsPacked *p)
{
    const int64_t groups = (p->nscales + LS_NESTED - 1) / LS_NESTED;
    if (p->nested > 0)
        return p->nested + 4 * (groups + 1);
    if (p->zeros > 0)
        return p->zeros + p->nscales;
    return p->form >= LS_PACKED_BF16 ? 2 * p->count : p->scales + 4 * p->nscales;
}

/* The scale of element i, in the order of the scales. */
LS_FN int64_t ls_packed_scale_of(const LsPacked *p, int64_t i)
{
    const int64_t along = i / p->inner % p->axis;
    if (p->block == 0)
        return along;
    const int64_t blocks = (p->axis + p->block - 1) / p->block;
    return (i / p->inner / p->axis * blocks + along / p->block) * p->inner + i % p->inner;
}

LS_FN float ls_packed_float(const uint8_t *from, int64_t i)
{
    float x;
    memcpy(&x, from + 4 * i, 4);
    return x;
}

/* Scale s. */
LS_FN float ls_packed_scale(const LsPacked *p, const uint8_t *data, int64_t s)
{
    if (p->nested == 0)
        return ls_packed_float(data + p->scales, s);
    const float value = ls_codes_signed8[data[p->scales + s]]
                      * ls_packed_float(data + p->nested, s / LS_NESTED);
    return value + ls_packed_float(data + p->nested, (p->nscales + LS_NESTED - 1) / LS_NESTED);
}

/* The number that code i stands for, before its scale. zero: of its block. */
LS_FN float ls_packed_code(LsPackedForm form, const uint8_t *code, int64_t i, int zero)
{
    const int low = code[i / 2] & 15, high = code[i / 2] >> 4;
    switch (form) {
    case LS_PACKED_FP4:
    case LS_PACKED_NF4: return ls_packed_table[form][i % 2 == 0 ? high : low];
    case LS_PACKED_U4:  return (float)((i % 2 == 0 ? low : high) - zero);
    case LS_PACKED_I4:  return (float)(((i % 2 == 0 ? low : high) ^ 8) - 8 - zero);
    case LS_PACKED_U8:  return (float)(code[i] - zero);
    default:            return (float)((int8_t)code[i] - zero);
    }
}

LS_FN int ls_packed_zero(const LsPacked *p, const uint8_t *data, int64_t s)
{
    if (p->zeros == 0)
        return 0;
    const uint8_t z = data[p->zeros + s];
    return p->form == LS_PACKED_I4 || p->form == LS_PACKED_I8 ? (int8_t)z : z;
}

/* Element i. */
LS_FN float ls_packed_at(const LsPacked *p, const uint8_t *data, int64_t i)
{
    if (p->form >= LS_PACKED_BF16) {
        uint16_t bits;
        memcpy(&bits, data + 2 * i, 2);
        if (p->form == LS_PACKED_BF16)
            return ls_float32((uint32_t)bits << 16);
        ls_f16 half;
        half.bits = bits;
        return ls_from_f16(half);
    }
    const int64_t s = ls_packed_scale_of(p, i);
    return ls_packed_code(p->form, data, i, ls_packed_zero(p, data, s))
         * ls_packed_scale(p, data, s);
}

#endif
