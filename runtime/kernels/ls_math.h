/* runtime/kernels/ls_math.h -- arithmetic of kernels on numbers and indices, the same on every
 * machine.
 *
 * One text for C11 and for CUDA C++. The including header defines LS_FN (the declaration specifiers
 * of a function) and provides the fixed-width integers, INFINITY, NAN, memcpy and libm's names:
 * ls_kernel.h from the host's headers, ls_cuda.h from the CUDA compiler.
 *
 * In float the functions are polynomials without branches: a loop over them is vectorised (-O3
 * -fno-math-errno -fno-trapping-math), 10 to 30 times the speed of a call of libm per element. They
 * are accurate to about 2 units in the last place and correct for infinities, NaN, zero and
 * denormals. They rely on IEEE arithmetic: no -ffast-math. In double they are libm's, for gradient
 * checks. Minimum, maximum and relu propagate a NaN of either operand, as ONNX and PyTorch do. */
#ifndef LS_RUNTIME_KERNELS_LS_MATH_H
#define LS_RUNTIME_KERNELS_LS_MATH_H

#ifdef LS_F64
typedef double real;
#else
typedef float real;
#endif
#define LS_R(x) ((real)(x))

/* Whether y is a compile-time constant, so that a test of y is free. A GPU's compiler answers too
 * early, before it has inlined the function, and may as well test at run time. */
#ifdef __CUDACC__
#define LS_KNOWN(y) true
#else
#define LS_KNOWN(y) __builtin_constant_p(y)
#endif

/* ---- indices ---- */
LS_FN int64_t ls_least(int64_t a, int64_t b) { return a < b ? a : b; }
#define LS_WITHIN(i, from, to) if ((i) >= (from) && (i) < (to))
/* The variance of n numbers from their sum of squares and their sum. */
LS_FN double ls_variance(double squares, double sum, int64_t n)
{
    const double v = (squares - sum * sum / (double)n) / (double)n;
    return v < 0 ? 0 : v;
}
LS_FN int64_t ls_most(int64_t a, int64_t b) { return a > b ? a : b; }
/* An index that may lie outside 0 .. n - 1: clamped to the nearest inside; reflected at first and
 * last. */
LS_FN int64_t ls_clamp(int64_t i, int64_t n) { return i < 0 ? 0 : i < n ? i : n - 1; }
LS_FN int64_t ls_reflect(int64_t i, int64_t n)
{
    return i < 0 ? -i : i < n ? i : 2 * (n - 1) - i;
}

/* Positions start + r step, r = 0 .. count - 1: the first r that is not negative, and the first
 * that is n or more. */
LS_FN int64_t ls_first_inside(int64_t start, int64_t step)
{
    return start >= 0 ? 0 : (step - 1 - start) / step;
}
LS_FN int64_t ls_end_inside(int64_t start, int64_t step, int64_t n, int64_t count)
{
    return start >= n ? 0 : ls_least(count, (n - start + step - 1) / step);
}

/* ---- bits of a float; 16 bits ---- */
#include "runtime/ls_chacha.h"
#include "runtime/ls_half.h"
LS_FN uint64_t ls_bits64(double x) { uint64_t u; memcpy(&u, &x, sizeof u); return u; }
LS_FN double ls_float64(uint64_t u) { double x; memcpy(&x, &u, sizeof x); return x; }

/* ---- for real and for integers ---- */
LS_FN real ls_max_real(real a, real b)
{
    const real m = a > b ? a : b;
    return a != a ? a : m;
}
LS_FN real ls_min_real(real a, real b)
{
    const real m = a < b ? a : b;
    return a != a ? a : m;
}
LS_FN real ls_abs_real(real a) { return sizeof a == 4 ? fabsf((float)a) : (real)fabs(a); }
LS_FN int64_t ls_max_int(int64_t a, int64_t b) { return a > b ? a : b; }
LS_FN int64_t ls_min_int(int64_t a, int64_t b) { return a < b ? a : b; }
LS_FN int64_t ls_abs_int(int64_t a) { return a < 0 ? -(uint64_t)a : (uint64_t)a; }
/* The name for the type of a. */
#ifdef __cplusplus
template <class T> constexpr bool ls_is_real = false;
template <> constexpr bool ls_is_real<float> = true;
template <> constexpr bool ls_is_real<double> = true;
#define LS_BY_TYPE(name)                                                                           \
    template <class A, class B> LS_FN auto name(A a, B b)                                          \
    {                                                                                              \
        if constexpr (ls_is_real<A>)                                                               \
            return name##_real((real)a, (real)b);                                                  \
        else                                                                                       \
            return name##_int((int64_t)a, (int64_t)b);                                             \
    }
LS_BY_TYPE(ls_max)
LS_BY_TYPE(ls_min)
template <class A> LS_FN auto ls_abs(A a)
{
    if constexpr (ls_is_real<A>)
        return ls_abs_real((real)a);
    else
        return ls_abs_int((int64_t)a);
}
#else
#define LS_BY_TYPE(a, name)                                                                        \
    _Generic((a), float : name##_real, double : name##_real, default : name##_int)
#define ls_max(a, b) LS_BY_TYPE(a, ls_max)(a, b)
#define ls_min(a, b) LS_BY_TYPE(a, ls_min)(a, b)
#define ls_abs(a) LS_BY_TYPE(a, ls_abs)(a)
#endif

/* To the nearest float16 and bfloat16, halves to even. In double precision nothing is rounded. */
#ifdef LS_F64
LS_FN real ls_round_half(real x) { return x; }
LS_FN real ls_round_brain(real x) { return x; }
#else
#ifdef __CUDACC__
LS_FN real ls_round_half(real x) { return ls_from_f16(ls_to_f16(x)); }
#else
LS_FN real ls_round_half(real x) { return ls_nearest_f16(x); }
#endif
LS_FN real ls_round_brain(real x) { return ls_nearest_bf16(x); }
#endif

LS_FN real ls_relu(real x) { return x < 0 ? 0 : x; }

/* a * b + c, rounded once where the machine does that at no cost, also between LS_EXACT_BEGIN and
 * LS_EXACT_END. */
LS_FN real ls_fma(real a, real b, real c)
{
#if defined __CUDACC__ && defined LS_F64
    return __fma_rn(a, b, c);
#elif defined __CUDACC__
    return __fmaf_rn(a, b, c);
#elif defined __FMA__ || defined __ARM_FEATURE_FMA
    return sizeof(real) == 4 ? __builtin_fmaf(a, b, c) : (real)__builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}

/* The remainders of a / b towards zero, which has the sign of a, and downwards, with the sign of
 * b. */
LS_FN real ls_fmod(real a, real b)
{
    return sizeof a == 4 ? fmodf((float)a, (float)b) : (real)fmod(a, b);
}
LS_FN real ls_floor_mod(real a, real b)
{
    const real r = ls_fmod(a, b), zero = b < 0 ? LS_R(-0.0) : LS_R(0);
    const real y = (r < 0) != (b < 0) ? r + b : r;
    return r == 0 ? zero : y;
}

#ifdef LS_F64
LS_FN real ls_sqrt(real x) { return sqrt(x); }
LS_FN real ls_floor(real x) { return floor(x); }
LS_FN real ls_ceil(real x) { return ceil(x); }
LS_FN real ls_round(real x) { return rint(x); }     /* half to even */
LS_FN real ls_exp(real x) { return exp(x); }
LS_EACH_FN real ls_log(real x) { return log(x); }
LS_FN real ls_log1p(real x) { return log1p(x); }
LS_FN real ls_tanh(real x) { return tanh(x); }
LS_FN real ls_erf(real x) { return erf(x); }
LS_FN real ls_pow_real(real x, real y) { return pow(x, y); }
#else
LS_FN real ls_sqrt(real x) { return sqrtf(x); }
LS_FN real ls_floor(real x) { return floorf(x); }
LS_FN real ls_ceil(real x) { return ceilf(x); }
LS_FN real ls_round(real x) { return rintf(x); }    /* half to even */

/* a = n ln 2 + r, |r| <= ln 2 / 2; returns exp r, and n in the low bits of *whole: adding 1.5 *
 * 2^23 rounds to an integer, which the low bits then hold. */
LS_FN float ls_exp_reduced(float a, uint32_t *whole)
{
    const float z = ls_fma(a, 1.44269504f, 12582912.f);
    const float n = z - 12582912.f;
    const float r = ls_fma(n, 2.12194440e-4f, ls_fma(n, -0.693359375f, a));
    float p = 0.000197902482f;
    p = ls_fma(p, r, 0.00139447593f);
    p = ls_fma(p, r, 0.00833349768f);
    p = ls_fma(p, r, 0.0416662954f);
    p = ls_fma(p, r, 0.166666657f);
    p = ls_fma(p, r, 0.5f);
    *whole = ls_bits32(z);
    return ls_fma(p * r, r, r) + 1.f;
}

/* exp x = 2 * 2^(n - 1) exp r. Results below 2.4e-38 become 0. */
LS_FN real ls_exp(real x)
{
    float a = x < -87.5f ? -87.5f : x;
    a = a > 89.f ? 89.f : a;
    uint32_t n;
    float p = ls_exp_reduced(a, &n);
    p *= ls_float32((n << 23) + (126u << 23));
    return p + p;
}

/* x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2); log(1 + f) by s = f / (2 + f) as in FreeBSD's
 * libm, with a different polynomial. */
LS_EACH_FN real ls_log(real x)
{
    const float a = x < 1.17549435e-38f ? x * 8388608.f : x;
    const float shift = x < 1.17549435e-38f ? -23.f : 0.f;
    const uint32_t u = ls_bits32(a) - 0x3f3504f3u;
    const float k = (float)((int32_t)u >> 23) + shift;
    const float f = ls_float32((u & 0x7fffffu) + 0x3f3504f3u) - 1.f;
    const float s = f / (2.f + f), z = s * s, half = 0.5f * f * f;
    float p = 0.235843018f;
    p = ls_fma(p, z, 0.285372078f);
    p = ls_fma(p, z, 0.400003374f);
    p = ls_fma(p, z, 0.666666627f);
    const float y = k * 0.693145752f - ((half - (s * (half + p * z) + k * 1.42860677e-6f)) - f);
    const float edge = x == 0.f ? -INFINITY : NAN;
    const float in = x < INFINITY ? y : x;
    return x > 0.f ? in : edge;
}

/* log(1 + x) for x > -1: corrected by the rounding error of 1 + x, divided by the slope. */
LS_FN real ls_log1p(real x)
{
    const float u = 1.f + x, y = ls_log(u) - ((u - 1.f) - x) / u;
    return u < INFINITY ? y : u;
}

LS_FN real ls_tanh(real x)
{
    const float t = fabsf(x), z = x * x;
    float p = -0.00566698052f;
    p = ls_fma(p, z, 0.0206061807f);
    p = ls_fma(p, z, -0.0537300073f);
    p = ls_fma(p, z, 0.133313313f);
    p = ls_fma(p, z, -0.333332777f);
    const float small = ls_fma(p * z, x, x);
    const float large = 1.f - 2.f / (ls_exp(2.f * t) + 1.f);
    return t < 0.625f ? small : copysignf(large, x);
}

/* Below 0.93 an odd polynomial; above, 1 - exp of a polynomial. */
LS_FN real ls_erf(real x)
{
    const float t = fabsf(x), z = x * x;
    float p = 8.25114112e-05f;
    p = ls_fma(p, z, -0.000811408798f);
    p = ls_fma(p, z, 0.00519846706f);
    p = ls_fma(p, z, -0.0268583465f);
    p = ls_fma(p, z, 0.112836763f);
    p = ls_fma(p, z, -0.376126319f);
    p = ls_fma(p, z, 0.128379166f);
    const float small = ls_fma(p, x, x);
    const float c = t > 4.f ? 4.f : t;
    float q = 2.10950511e-05f;
    q = ls_fma(q, c, -0.000434462621f);
    q = ls_fma(q, c, 0.00417106319f);
    q = ls_fma(q, c, -0.0251194276f);
    q = ls_fma(q, c, 0.108280092f);
    q = ls_fma(q, c, 0.633346915f);
    q = ls_fma(q, c, 0.129514933f);
    q = ls_fma(q, c, -0.00017468445f);
    const float large = 1.f - ls_exp(-(q + c));
    return t < 0.93f ? small : copysignf(large, x);
}

/* exp(y log |x|) in double, which is exact up to the rounding to float. */
LS_FN real ls_pow_real(real x, real y)
{
    if (LS_KNOWN(y) && y == 2.f)
        return x * x;
    if (LS_KNOWN(y) && y == 3.f)
        return x * x * x;
    if (LS_KNOWN(y) && y == 1.f)
        return x;
    if (LS_KNOWN(y) && y == -1.f)
        return 1.f / x;
    const double a = fabs((double)x), magic = 6755399441055744.;     /* 1.5 * 2^52 */
    const uint64_t u = ls_bits64(a) - 0x3fe6a09e667f3bcdu;
    const double k =
        ls_float64(((u + 0x4000000000000000u) >> 52) + 0x4338000000000000u) - magic - 1024.;
    const double f = ls_float64((u & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.;
    const double s = f / (2. + f), z = s * s;
    const double series = 1. + z * (1. / 3 + z * (1. / 5 + z * (1. / 7 + z * (1. / 9 + z * (1. / 11
                        + z * (1. / 13))))));
    double t = y * (k * 0.693147180559945309 + 2. * s * series);
    t = t < -110. ? -110. : t;
    t = t > 95. ? 95. : t;
    const double w = t * 1.44269504088896341 + magic, r = t - (w - magic) * 0.693147180559945309;
    const double e = 1. + r * (1. + r * (1. / 2 + r * (1. / 6 + r * (1. / 24 + r * (1. / 120
                   + r * (1. / 720 + r * (1. / 5040)))))));
    float p = (float)(e * ls_float64((ls_bits64(w) - 0x4338000000000000u + 1023) << 52));
    const float at_zero = y < 0.f ? INFINITY : 0.f, at_inf = y < 0.f ? 0.f : INFINITY;
    p = x == 0.f ? at_zero : p;
    p = a < INFINITY ? p : at_inf;
    p = a == 1. ? 1.f : p;
    const bool whole = floorf(y) == y, odd = whole & (floorf(0.5f * y) * 2.f != y);
    const float broken = a < INFINITY && a > 0.f ? NAN : p;
    const float negative = odd ? -p : whole ? p : broken;
    p = copysignf(1.f, x) < 0.f ? negative : p;
    p = x != x ? x : y != y ? y : p;
    return y == 0.f ? 1.f : x == 1.f ? 1.f : p;
}
#endif

/* Exact, or its low 64 bits; a negative exponent gives the whole part, and 0 for the base 0. */
LS_FN int64_t ls_pow_int(int64_t x, int64_t y)
{
    uint64_t p = 1, power = (uint64_t)x;
    for (uint64_t k = ls_abs_int(y); k != 0; k >>= 1, power *= power)
        p *= k & 1 ? power : 1;
    return y >= 0 || x == 1 || x == -1 ? (int64_t)p : 0;
}
#ifdef __cplusplus
LS_BY_TYPE(ls_pow)
#else
#define ls_pow(x, y) LS_BY_TYPE(x, ls_pow)(x, y)
#endif

LS_FN real ls_sigmoid(real x) { return 1 / (1 + ls_exp(-x)); }
LS_FN real ls_softplus(real x)
{
    return ls_max_real(x, 0) + ls_log1p(ls_exp(-ls_abs_real(x)));
}

#include "runtime/kernels/ls_sample.h"
#include "runtime/kernels/ls_scale.h"
#include "runtime/kernels/ls_tree.h"
#include "runtime/kernels/ls_trig.h"

/* ---- random numbers ---- */
/* Element i of one part (`slice`, of `parts`) of a batch, `inner` elements of which follow each
 * other: its index in the whole batch. */
LS_EACH_FN int64_t ls_index_in_batch(int64_t i, int64_t inner, int64_t parts, int64_t slice)
{
    return (i / inner * parts + slice) * inner + i % inner;
}

/* v k / n, of a sum over n elements; rounded as where n is known (ls_scale in
 * compiler/fold/append.c). */
LS_EACH_FN real ls_counted_share(real v, int64_t k, int64_t n)
{
    return n % k == 0 && n / k < 1 << 24 ? v / (real)(n / k) : v * (real)((double)k / (double)n);
}

/* What makes a sample variance of `n` elements of the population's, relative to that of `all`
 * elements. */
LS_EACH_FN real ls_counted_spread(int64_t n, int64_t all)
{
    const double of_all = (double)all / (double)(all - 1);
    return n == all || n < 2 ? 1 : (real)((double)n / (double)(n - 1) / of_all);
}

/* 32 random bits, a function of the arguments only: every computation of element `index` of node
 * `id` gives the same. The loop over index keeps to 32-bit arithmetic (a keyed bijection in the
 * manner of MurmurHash3's finalizer), everything else is loop-invariant. */
LS_EACH_FN uint32_t ls_random_word(uint64_t seed, int64_t step, int64_t id, int64_t index)
{
    uint64_t key = seed + 0x9e3779b97f4a7c15u * (uint64_t)(id + 1);
    key = (key ^ key >> 30) * 0xbf58476d1ce4e5b9u + (uint64_t)step;
    key = (key ^ key >> 27) * 0x94d049bb133111ebu;
    key = (key ^ key >> 31) * 0xbf58476d1ce4e5b9u;
    const uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t x =
        (uint32_t)index * 0x9e3779b1u + (uint32_t)((uint64_t)index >> 32) * 0x85ebca6bu + k0;
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u + k1;
    x = (x ^ x >> 16) * 0x21f0aaadu;
    x = (x ^ x >> 15) * 0x735a2d97u;
    return x ^ x >> 15;
}

/* A number in [0, 1) with 24 such bits. */
LS_EACH_FN real ls_uniform(uint64_t seed, int64_t step, int64_t id, int64_t index)
{
    const uint32_t x = ls_random_word(seed, step, id, index);
    return (real)(int32_t)(x >> 8) * LS_R(5.9604644775390625e-08);
}

/* 32 random bits for the moments of an element with that gradient: 16 for each of two. The gradient
 * makes those of other tensors differ. */
LS_EACH_FN uint32_t ls_moment_word(uint64_t seed, int64_t update, int64_t index, real gradient)
{
    const uint64_t of = (uint64_t)ls_bits32((float)gradient) << 32;
    return ls_random_word(seed, update, 0xb16, (int64_t)(of ^ (uint64_t)index));
}

/* x rounded up or down to a bfloat16, up with the part of a step that it lies above the lower one,
 * so that it stays on average, also where all that is added to it is less than half a step. */
LS_EACH_FN ls_bf16 ls_randomly_bf16(real x, uint32_t word)
{
    const uint32_t bits = ls_bits32((float)x);
    return ls_to_bf16(x != x ? (float)x : ls_float32(bits + (word & 0xffff)));
}

/* A normal number of mean 0 and deviation 1: sqrt(2) erfinv(2 u - 1) of a number u in (0, 1), by
 * the polynomials of M. Giles, "Approximating the erfinv function" (2010). They are right to seven
 * digits, also in programs in doubles. u: with 24 bits, in [0, 1); half of the last bit is
 * added. */
LS_EACH_FN real ls_normal_of(real u)
{
    const real x = 2 * u - 1 + LS_R(5.9604644775390625e-08);
    const real w = -ls_log((1 - x) * (1 + x)), a = w - LS_R(2.5), b = ls_sqrt(w) - 3;
    real p = LS_R(2.81022636e-08), q = LS_R(-0.000200214257);
    p = LS_R(3.43273939e-07) + p * a;
    p = LS_R(-3.5233877e-06) + p * a;
    p = LS_R(-4.39150654e-06) + p * a;
    p = LS_R(0.00021858087) + p * a;
    p = LS_R(-0.00125372503) + p * a;
    p = LS_R(-0.00417768164) + p * a;
    p = LS_R(0.246640727) + p * a;
    p = LS_R(1.50140941) + p * a;
    q = LS_R(0.000100950558) + q * b;
    q = LS_R(0.00134934322) + q * b;
    q = LS_R(-0.00367342844) + q * b;
    q = LS_R(0.00573950773) + q * b;
    q = LS_R(-0.0076224613) + q * b;
    q = LS_R(0.00943887047) + q * b;
    q = LS_R(1.00167406) + q * b;
    q = LS_R(2.83297682) + q * b;
    return (w < 5 ? p : q) * x * LS_R(1.41421356237309505);
}

/* The same as a function of its arguments, as ls_uniform. */
LS_EACH_FN real ls_normal(uint64_t seed, int64_t step, int64_t id, int64_t index)
{
    return ls_normal_of(ls_uniform(seed, step, id, index));
}

/* 24 bits of a word, in [0, 1). */
LS_EACH_FN real ls_uniform_of(uint32_t bits)
{
    return (real)(int32_t)(bits >> 8) * LS_R(5.9604644775390625e-08);
}

/* A normal number for the noise of private training: the sum of four normal numbers, by 2. It ends
 * at 10.8 deviations in place of 5.42, and no single number of 24 bits decides its value. They come
 * from the block of ChaCha20 of this element (below 2^48, of as many updates and 2^32 ids): who
 * knows all other elements of all updates can tell nothing about it. */
LS_EACH_FN real ls_noise(const uint32_t key[LS_KEY_WORDS], int64_t update, int64_t id,
                         int64_t index)
{
    uint32_t word[LS_BLOCK_WORDS];
    const uint32_t high = (uint32_t)(update >> 32) << 16 | (uint32_t)((uint64_t)index >> 32);
    ls_chacha_block(key, (uint32_t)index, (uint32_t)id, (uint32_t)update, high, word);
    const real a = ls_normal_of(ls_uniform_of(word[0])), b = ls_normal_of(ls_uniform_of(word[1]));
    const real c = ls_normal_of(ls_uniform_of(word[2])), d = ls_normal_of(ls_uniform_of(word[3]));
    return LS_R(0.5) * ((a + b) + (c + d));
}

#endif
