/* runtime/kernels/ls_codes.h -- blocks of numbers in codes of 8 or 4 bits, with a scale for each
 * block. Included behind ls_kernel.h or ls_cuda.h.
 *
 * A number is a value of the table times the scale of its block, which is the block's largest
 * magnitude, at least LS_CODES_LEAST. It is stored as the code of the nearest value, of two that
 * are as near as the upper one. Two codes of 4 bits share a byte, the first in its high half. The
 * tables are those of torchao: dynamic ones, signed and not, which are finest near zero, and of 4
 * bits without a sign the sixteenths from 1 / 16 on. A number that is not finite makes the scale
 * of its block, and so the whole block, not finite. */
#ifndef LS_RUNTIME_KERNELS_LS_CODES_H
#define LS_RUNTIME_KERNELS_LS_CODES_H

#include "runtime/ls_signed_codes.h"

#define LS_CODES_LEAST LS_R(1e-12)

LS_CODES_TABLE float ls_codes_unsigned8[256] = {
    0.0f, 3.2500003e-7f, 7.75e-7f, 2.1249998e-6f, 4.3749997e-6f, 6.625e-6f, 8.874999e-6f,
    1.5624999e-5f, 2.6875001e-5f, 3.8125e-5f, 4.9374998e-5f, 6.0625003e-5f, 7.1875e-5f,
    8.312499e-5f, 9.4375e-5f, 0.000128125f, 0.000184375f, 0.00024062501f, 0.00029687502f,
    0.00035312498f, 0.00040937503f, 0.00046562502f, 0.00052187504f, 0.000578125f, 0.000634375f,
    0.00069062505f, 0.000746875f, 0.0008031251f, 0.00085937505f, 0.000915625f, 0.00097187504f,
    0.001140625f, 0.001421875f, 0.001703125f, 0.001984375f, 0.002265625f, 0.0025468748f,
    0.002828125f, 0.0031093748f, 0.0033906251f, 0.003671875f, 0.003953125f, 0.0042343745f,
    0.004515625f, 0.0047968747f, 0.005078125f, 0.005359375f, 0.0056406246f, 0.005921875f,
    0.0062031248f, 0.006484375f, 0.0067656254f, 0.0070468746f, 0.007328125f, 0.0076093744f,
    0.007890625f, 0.008171875f, 0.008453124f, 0.008734375f, 0.009015624f, 0.0092968745f,
    0.009578126f, 0.009859375f, 0.010703126f, 0.012109376f, 0.013515624f, 0.014921876f,
    0.016328124f, 0.017734377f, 0.019140625f, 0.020546874f, 0.021953126f, 0.023359375f,
    0.024765624f, 0.026171876f, 0.027578129f, 0.028984373f, 0.030390626f, 0.031796873f,
    0.033203125f, 0.034609374f, 0.036015626f, 0.03742188f, 0.038828123f, 0.040234376f,
    0.041640624f, 0.043046873f, 0.044453125f, 0.045859374f, 0.047265626f, 0.04867187f,
    0.050078124f, 0.051484372f, 0.052890625f, 0.054296877f, 0.05570313f, 0.057109382f,
    0.058515627f, 0.059921872f, 0.061328124f, 0.06273438f, 0.06414063f, 0.06554688f, 0.06695312f,
    0.068359375f, 0.06976563f, 0.07117188f, 0.072578125f, 0.07398438f, 0.07539063f, 0.07679688f,
    0.07820313f, 0.07960938f, 0.081015624f, 0.08242188f, 0.08382813f, 0.085234374f, 0.086640626f,
    0.08804687f, 0.08945312f, 0.090859376f, 0.09226563f, 0.09367188f, 0.095078126f, 0.09648438f,
    0.09789063f, 0.099296875f, 0.103515625f, 0.11054687f, 0.11757813f, 0.12460937f, 0.13164061f,
    0.13867188f, 0.14570314f, 0.15273437f, 0.15976563f, 0.16679686f, 0.17382812f, 0.18085939f,
    0.18789062f, 0.19492188f, 0.20195311f, 0.20898438f, 0.21601564f, 0.22304687f, 0.23007813f,
    0.23710936f, 0.24414062f, 0.25117186f, 0.25820312f, 0.26523438f, 0.2722656f, 0.27929688f,
    0.28632814f, 0.29335937f, 0.3003906f, 0.30742186f, 0.31445312f, 0.3214844f, 0.32851562f,
    0.33554685f, 0.3425781f, 0.34960938f, 0.35664064f, 0.36367187f, 0.3707031f, 0.37773436f,
    0.38476562f, 0.3917969f, 0.39882812f, 0.40585935f, 0.4128906f, 0.41992188f, 0.42695314f,
    0.43398437f, 0.4410156f, 0.44804686f, 0.45507812f, 0.4621094f, 0.46914062f, 0.47617185f,
    0.4832031f, 0.49023438f, 0.4972656f, 0.5042969f, 0.5113281f, 0.51835936f, 0.5253906f,
    0.5324218f, 0.53945315f, 0.54648435f, 0.5535157f, 0.5605469f, 0.56757814f, 0.5746094f,
    0.5816406f, 0.5886719f, 0.5957031f, 0.6027344f, 0.60976565f, 0.61679685f, 0.6238282f,
    0.6308594f, 0.63789064f, 0.6449219f, 0.6519531f, 0.6589844f, 0.6660156f, 0.6730469f,
    0.68007815f, 0.68710935f, 0.6941407f, 0.7011719f, 0.70820314f, 0.7152344f, 0.7222656f,
    0.7292969f, 0.7363281f, 0.7433594f, 0.75039065f, 0.75742185f, 0.7644532f, 0.7714844f,
    0.7785156f, 0.7855469f, 0.7925781f, 0.7996094f, 0.8066406f, 0.8136718f, 0.82070315f,
    0.82773435f, 0.8347657f, 0.8417969f, 0.8488281f, 0.8558594f, 0.8628906f, 0.8699219f,
    0.8769531f, 0.8839843f, 0.89101565f, 0.89804685f, 0.9050782f, 0.9121094f, 0.9191406f,
    0.9261719f, 0.9332031f, 0.9402344f, 0.9472656f, 0.9542968f, 0.96132815f, 0.96835935f,
    0.9753907f, 0.9824219f, 0.9894531f, 0.9964844f, 1.0f,
};

LS_CODES_TABLE float ls_codes_signed4[16] = {
    -0.8875f, -0.6625f, -0.4375f, -0.21249999f, -0.0775f, -0.032500003f, -0.0055f, 0.0f, 0.0055f,
    0.032500003f, 0.0775f, 0.21249999f, 0.4375f, 0.6625f, 0.8875f, 1.0f,
};

LS_CODES_TABLE float ls_codes_unsigned4[16] = {
    0.0625f, 0.125f, 0.1875f, 0.25f, 0.3125f, 0.375f, 0.4375f, 0.5f, 0.5625f, 0.625f, 0.6875f,
    0.75f, 0.8125f, 0.875f, 0.9375f, 1.0f,
};

LS_EXACT_BEGIN

/* The scale of n numbers, a multiple of 16. */
LS_FN real ls_codes_scale(const real *x, int64_t n)
{
    real lane[16];
    for (int64_t l = 0; l < 16; l++)
        lane[l] = LS_CODES_LEAST;
    for (int64_t i = 0; i < n; i += 16)
        for (int64_t l = 0; l < 16; l++)
            lane[l] = ls_max_real(lane[l], ls_abs_real(x[i + l]));
    for (int64_t half = 8; half > 0; half /= 2)
        for (int64_t l = 0; l < half; l++)
            lane[l] = ls_max_real(lane[l], lane[l + half]);
    return lane[0];
}

/* The code of a number that is divided by its scale. half: of the number of values. */
LS_FN int32_t ls_codes_nearest(real x, const float *value, int32_t half)
{
    const int32_t last = 2 * half - 1;
    int32_t at = 0;
    for (int32_t step = half; step > 0; step /= 2)
        at += x >= value[at + step] ? step : 0;
    const int32_t up = at < last ? at + 1 : last;
    const real below = value[at];
    return x - below >= (value[up] - below) * LS_R(0.5) ? up : at;
}

/* Number j of a block, from its codes. */
LS_FN real ls_codes_get8(const uint8_t *code, int64_t j, real scale, const float *value)
{
    return value[code[j]] * scale;
}
LS_FN real ls_codes_get4(const uint8_t *code, int64_t j, real scale, const float *value)
{
    return value[code[j / 2] >> (j % 2 == 0 ? 4 : 0) & 15] * scale;
}

/* Byte j of the codes of a block of numbers. */
LS_FN uint8_t ls_codes_put8(const real *x, int64_t j, real scale, const float *value)
{
    return (uint8_t)ls_codes_nearest(x[j] / scale, value, 128);
}
LS_FN uint8_t ls_codes_put4(const real *x, int64_t j, real scale, const float *value)
{
    return (uint8_t)(ls_codes_nearest(x[2 * j] / scale, value, 8) << 4
                     | ls_codes_nearest(x[2 * j + 1] / scale, value, 8));
}

/* The number that is `part` of the way from a to b; the last product and sum are rounded once. */
LS_FN real ls_codes_towards(real a, real b, real part)
{
    return part < LS_R(0.5) ? ls_fma(part, b - a, a) : ls_fma(part - 1, b - a, b);
}

LS_EXACT_END

#endif
