/* compiler/onnx_repair/four_bits.c -- see the header. */
#include "compiler/onnx_repair/four_bits.h"

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
    for (int64_t i = 0; i < count; i++) {
        const int c = i % 2 == 0 ? code[i / 2] >> 4 : code[i / 2] & 15;
        to[i] = ls_four_bits[form][c] * scale[i / block];
    }
}
