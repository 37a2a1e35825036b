/* compiler/packed/four_bits.c -- see the header. */
#include "compiler/packed/four_bits.h"

#include <math.h>

const float ls_four_bits[2][16] = {
    [LS_FP4] = {0.0f, 5.208333333e-03f, 0.66666667f, 1.0f, 0.33333333f, 0.5f, 0.16666667f, 0.25f,
                -0.0f, -5.208333333e-03f, -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f,
                -0.25f},
    [LS_NF4] = {-1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,
                -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0.0f,
                0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f,
                0.33791524171829224f, 0.44070982933044434f, 0.5626170039176941f,
                0.7229568362236023f, 1.0f},
};

void ls_four_bits_decode(LsFourBits form, const uint8_t *code, const float *scale, int64_t block,
                         int64_t count, float *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = ls_four_bits_value(form, code, i) * scale[i / block];
}

/* Codes in the order of their values. FP4 has two zeros: negative numbers take the first one. */
static const uint8_t sorted[2][16] = {
    [LS_FP4] = {11, 10, 13, 12, 15, 14, 9, 0, 8, 1, 6, 7, 4, 5, 2, 3},
    [LS_NF4] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
};

static uint8_t nearest(LsFourBits form, float x)
{
    const float *value = ls_four_bits[form];
    int k = 0;
    while (k < 15 && x > (value[sorted[form][k]] + value[sorted[form][k + 1]]) * 0.5f)
        k++;
    return sorted[form][k];
}

float ls_largest_magnitude(const float *x, int64_t n)
{
    float most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    return most;
}

void ls_four_bits_encode(LsFourBits form, const float *from, int64_t block, int64_t count,
                         uint8_t *code, float *scale)
{
    float inverse = 0;
    for (int64_t i = 0; i < count + count % 2; i++) {
        if (i < count && i % block == 0) {
            const int64_t left = count - i;
            scale[i / block] = ls_largest_magnitude(from + i, left < block ? left : block);
            inverse = 1.0f / fmaxf(scale[i / block], 1e-38f);
        }
        const float x = i < count ? from[i] * inverse : 0;
        const uint8_t c = nearest(form, fminf(fmaxf(x, -1.0f), 1.0f));
        code[i / 2] = (uint8_t)(i % 2 == 0 ? c << 4 : code[i / 2] | c);
    }
}
