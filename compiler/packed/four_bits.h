/* compiler/packed/four_bits.h -- the values of 4-bit codes of reals: NF4, the quantiles of a
 * normal distribution, and FP4, a float of a sign, two bits of exponent and one of mantissa. Both
 * are multiplied by their block's largest magnitude. */
#ifndef LS_COMPILER_PACKED_FOUR_BITS_H
#define LS_COMPILER_PACKED_FOUR_BITS_H

#include <stdint.h>

typedef enum { LS_FP4, LS_NF4 } LsFourBits;     /* MatMulBnb4's quant_type */

extern const float ls_four_bits[2][16];

/* The value of code i, before its scale; the even index in the high half of a byte. */
static inline float ls_four_bits_value(LsFourBits form, const uint8_t *code, int64_t i)
{
    return ls_four_bits[form][i % 2 == 0 ? code[i / 2] >> 4 : code[i / 2] & 15];
}
/* The largest magnitude: what scales are made of. */
float ls_largest_magnitude(const float *x, int64_t n);

/* The codes' values: two codes a byte, the even index in the high half; `scale` has one element for
 * each block of `block` elements. */
void ls_four_bits_decode(LsFourBits form, const uint8_t *code, const float *scale, int64_t block,
                         int64_t count, float *to);
/* The codes of count reals, by bitsandbytes' rule: a real halfway between two values takes the
 * lower one; an odd end is filled with a zero. One scale for each block. */
void ls_four_bits_encode(LsFourBits form, const float *from, int64_t block, int64_t count,
                         uint8_t *code, float *scale);

#endif
