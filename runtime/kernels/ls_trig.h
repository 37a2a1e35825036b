/* runtime/kernels/ls_trig.h -- trigonometric and hyperbolic functions and their inverses; part of
 * ls_math.h.
 *
 * Like the functions there: in float without branches and accurate to about 3 units in the last
 * place, in double libm's. Polynomials are those of Moshier's Cephes library, single precision. */
#ifndef LS_RUNTIME_KERNELS_LS_TRIG_H
#define LS_RUNTIME_KERNELS_LS_TRIG_H

#ifdef LS_F64
LS_FN real ls_sin(real x) { return sin(x); }
LS_FN real ls_cos(real x) { return cos(x); }
LS_FN real ls_tan(real x) { return tan(x); }
LS_FN real ls_asin(real x) { return asin(x); }
LS_FN real ls_acos(real x) { return acos(x); }
LS_FN real ls_atan(real x) { return atan(x); }
LS_FN real ls_sinh(real x) { return sinh(x); }
LS_FN real ls_cosh(real x) { return cosh(x); }
LS_FN real ls_asinh(real x) { return asinh(x); }
LS_FN real ls_acosh(real x) { return acosh(x); }
LS_FN real ls_atanh(real x) { return atanh(x); }
#else
/* The 32 bits of 4 / pi from bit 8 i - 24 on; i = 0 .. 23. */
LS_FN uint32_t ls_bits_of_4_over_pi(uint32_t i)
{
    static const uint32_t bits[24] = {
        0x000000a2u, 0x0000a2f9u, 0x00a2f983u, 0xa2f9836eu, 0xf9836e4eu, 0x836e4e44u,
        0x6e4e4415u, 0x4e441529u, 0x441529fcu, 0x1529fc27u, 0x29fc2757u, 0xfc2757d1u,
        0x2757d1f5u, 0x57d1f534u, 0xd1f534ddu, 0xf534ddc0u, 0x34ddc0dbu, 0xddc0db62u,
        0xc0db6295u, 0xdb629599u, 0x6295993cu, 0x95993c43u, 0x993c4390u, 0x3c439041u};
    return bits[i];
}

/* |x| = (4 m + q) pi / 2 + r with |r| <= pi / 4; returns r, and q in *quadrant. Up to 2^20 a
 * quotient in double decides; beyond, the product of the mantissa with the bits of 4 / pi that
 * matter, in integers (as in Arm's optimized routines). */
LS_FN float ls_quarter_turns(float x, uint32_t *quadrant)
{
    const double a = fabsf(x), magic = 6755399441055744.;       /* 1.5 * 2^52 */
    const double near = a < 1048576. ? a : 0.;
    const double w = near * 0.63661977236758134 + magic, n = w - magic;
    const double r = (near - n * 1.57079632673412561) - n * 6.07710050650619225e-11;
    const uint32_t u = ls_bits32(x) & 0x7fffffffu, at = u >> 26 & 15;
    const uint32_t m = (u & 0xffffffu) | 0x800000u;
    const uint32_t turned = m << (u >> 23 & 7);
    const uint64_t high = (uint64_t)(turned * ls_bits_of_4_over_pi(at)) << 32;
    const uint64_t low = (uint64_t)turned * ls_bits_of_4_over_pi(at + 8) >> 32;
    const uint64_t p = high + low + (uint64_t)turned * ls_bits_of_4_over_pi(at + 4);
    const uint64_t q = (p + ((uint64_t)1 << 61)) >> 62;
    const uint64_t f = p - (q << 62);           /* signed; in two halves: vectors convert 32 bits */
    const double whole = (double)(int32_t)(uint32_t)(f >> 32) * 4294967296.;
    const double part = (double)(int32_t)((uint32_t)f >> 1) * 2.;
    const double far = (whole + part) * 3.40612158008655459e-19;        /* pi / 2^63 */
    *quadrant = a < 1048576. ? (uint32_t)ls_bits64(w) : (uint32_t)q;
    return (float)(a < 1048576. ? r : far);
}

/* sin r and cos r, |r| <= pi / 4. */
LS_FN float ls_sin_near(float r)
{
    const float z = r * r;
    float p = -1.9515295891e-4f;
    p = ls_fma(p, z, 8.3321608736e-3f);
    p = ls_fma(p, z, -1.6666654611e-1f);
    return ls_fma(p * z, r, r);
}
LS_FN float ls_cos_near(float r)
{
    const float z = r * r;
    float p = 2.443315711809948e-5f;
    p = ls_fma(p, z, -1.388731625493765e-3f);
    p = ls_fma(p, z, 4.166664568298827e-2f);
    return ls_fma(p * z, z, ls_fma(-0.5f, z, 1.f));
}

LS_FN real ls_sin(real x)
{
    uint32_t q;
    const float r = ls_quarter_turns(x, &q), s = ls_sin_near(r), c = ls_cos_near(r);
    const float y = q & 1 ? c : s;
    const uint32_t sign = (q << 30 ^ ls_bits32(x)) & 0x80000000u;
    return fabsf(x) < INFINITY ? ls_float32(ls_bits32(y) ^ sign) : NAN;
}

LS_FN real ls_cos(real x)
{
    uint32_t q;
    const float r = ls_quarter_turns(x, &q), s = ls_sin_near(r), c = ls_cos_near(r);
    const float y = q & 1 ? s : c;
    const uint32_t sign = (q + 1) << 30 & 0x80000000u;
    return fabsf(x) < INFINITY ? ls_float32(ls_bits32(y) ^ sign) : NAN;
}

LS_FN real ls_tan(real x)
{
    uint32_t q;
    const float r = ls_quarter_turns(x, &q), z = r * r;
    float p = 9.38540185543e-3f;
    p = ls_fma(p, z, 3.11992232697e-3f);
    p = ls_fma(p, z, 2.44301354525e-2f);
    p = ls_fma(p, z, 5.34112807005e-2f);
    p = ls_fma(p, z, 1.33387994085e-1f);
    p = ls_fma(p, z, 3.33331568548e-1f);
    const float t = ls_fma(p * z, r, r), y = q & 1 ? -1.f / t : t;
    const uint32_t sign = ls_bits32(x) & 0x80000000u;
    return fabsf(x) < INFINITY ? ls_float32(ls_bits32(y) ^ sign) : NAN;
}

/* asin t = t + t z p(z) for z = t^2 <= 1 / 4; returns z p(z). */
LS_FN float ls_asin_part(float z)
{
    float p = 4.2163199048e-2f;
    p = ls_fma(p, z, 2.4181311049e-2f);
    p = ls_fma(p, z, 4.5470025998e-2f);
    p = ls_fma(p, z, 7.4953002686e-2f);
    p = ls_fma(p, z, 1.6666752422e-1f);
    return p * z;
}

/* Above 1/2: asin x = pi / 2 - 2 asin sqrt((1 - x) / 2). */
LS_FN real ls_asin(real x)
{
    const float a = fabsf(x), z = a > 0.5f ? 0.5f * (1.f - a) : a * a;
    const float t = a > 0.5f ? sqrtf(z) : a, y = ls_fma(ls_asin_part(z), t, t);
    const float far = 1.57079637f - (2.f * y + 4.37113883e-8f);
    return a <= 1.f ? copysignf(a > 0.5f ? far : y, x) : NAN;
}

LS_FN real ls_acos(real x)
{
    const float a = fabsf(x), z = a > 0.5f ? 0.5f * (1.f - a) : a * a;
    const float t = a > 0.5f ? sqrtf(z) : x, y = ls_fma(ls_asin_part(z), t, t);
    const float far = x < 0.f ? 3.14159274f - (2.f * y + 8.74227766e-8f) : 2.f * y;
    return a <= 1.f ? (a > 0.5f ? far : 1.57079637f - (y + 4.37113883e-8f)) : NAN;
}

/* atan a = pi / 2 + atan(-1 / a) = pi / 4 + atan((a - 1) / (a + 1)). */
LS_FN real ls_atan(real x)
{
    const float a = fabsf(x);
    const float middle = (a - 1.f) / (a + 1.f), large = -1.f / a;
    const float t = a > 2.41421366f ? large : a > 0.414213568f ? middle : a, z = t * t;
    float p = 8.05374449538e-2f;
    p = ls_fma(p, z, -1.38776856032e-1f);
    p = ls_fma(p, z, 1.99777106478e-1f);
    p = ls_fma(p, z, -3.33329491539e-1f);
    const float y = ls_fma(p * z, t, t);
    const float turn = a > 2.41421366f ? 1.57079637f : a > 0.414213568f ? 0.785398185f : 0.f;
    const float rest = a > 2.41421366f ? -4.37113883e-8f : a > 0.414213568f ? -2.18556941e-8f : 0.f;
    return x != x ? x : copysignf(turn + (y + rest), x);
}

/* exp(x) / 2 for x >= 0, which is finite a little further than exp(x). */
LS_FN float ls_half_exp(float x)
{
    uint32_t n;
    const float p = ls_exp_reduced(x > 90.f ? 90.f : x, &n),
                half = p * ls_float32((n << 23) + (125u << 23));
    return half + half;
}

LS_FN real ls_sinh(real x)
{
    const float a = fabsf(x), z = a * a, h = ls_half_exp(a);
    float p = 2.03721912945e-4f;
    p = ls_fma(p, z, 8.33028376239e-3f);
    p = ls_fma(p, z, 1.66667160211e-1f);
    const float y = a < 1.f ? ls_fma(p * z, a, a) : h - 0.25f / h;
    return x != x ? x : copysignf(y, x);
}

LS_FN real ls_cosh(real x)
{
    const float h = ls_half_exp(fabsf(x));
    return x != x ? x : h + 0.25f / h;
}

/* Where a^2 has no effect on the sum 1 + a^2, log 2 a; else log1p(a + a^2 / (1 + sqrt(1 +
 * a^2))). */
LS_FN real ls_asinh(real x)
{
    const float a = fabsf(x), b = a > 10000.f ? 0.f : a, z = b * b;
    const float y = ls_log1p(b + z / (1.f + sqrtf(1.f + z)));
    const float far = ls_log(a) + 0.693147182f;
    return copysignf(a > 10000.f ? far : a < 1e-3f ? a - a * (0.166666672f * z) : y, x);
}

LS_FN real ls_acosh(real x)
{
    const float u = x > 10000.f ? 0.f : x - 1.f;
    const float y = ls_log1p(u + sqrtf(u * (2.f + u))), far = ls_log(x) + 0.693147182f;
    const float in = x > 10000.f ? far : y;
    return x >= 1.f ? in : NAN;
}

LS_FN real ls_atanh(real x)
{
    const float a = fabsf(x), twice = a + a;
    const float y = 0.5f * ls_log1p(a < 0.5f ? twice + twice * a / (1.f - a) : twice / (1.f - a));
    return copysignf(a < 1e-3f ? ls_fma(a, 0.333333343f * a * a, a) : y, x);
}
#endif

#endif
