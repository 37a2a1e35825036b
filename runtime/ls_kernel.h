/* runtime/ls_kernel.h -- the primitives that generated kernels are written in, for the CPU.
 *
 * Included once by every generated program, before any kernel, with LS_F64 defined or not.
 * Everything is static and needs only <math.h> and <stdint.h>, so a generated file is one
 * translation unit that the C compiler sees whole.
 *
 * In float the functions are polynomials without branches: a loop over them becomes vector code
 * (-O3 -fno-math-errno -fno-trapping-math), 10 to 30 times the speed of a call of libm per element.
 * They are accurate to about 2 units in the last place and right for infinities, NaN, zero and
 * denormals. They rely on IEEE arithmetic: no -ffast-math. In double they are libm's, for gradient
 * checks. Minimum, maximum and relu hand on a NaN of either operand, as ONNX and PyTorch do. */
#ifndef LS_KERNEL_H
#define LS_KERNEL_H

#include "ls_program.h"

#include <math.h>
#include <string.h>

#ifdef LS_F64
typedef double real;
#else
typedef float real;
#endif
#define LS_R(x) ((real)(x))

/* ---- rounding ----
 * Between these two, every operation of a function is rounded by itself: no product is contracted
 * with the sum that reads it, which a compiler decides by what else is around it. FUSED kernels lie
 * there, so that a statement gives the same bits in whichever kernel it stands. */
#ifdef __clang__
#define LS_EXACT_BEGIN _Pragma("STDC FP_CONTRACT OFF")
#define LS_EXACT_END _Pragma("STDC FP_CONTRACT DEFAULT")
#else
#define LS_EXACT_BEGIN _Pragma("GCC push_options") _Pragma("GCC optimize(\"fp-contract=off\")")
#define LS_EXACT_END _Pragma("GCC pop_options")
#endif

/* ---- indices ---- */
static inline int64_t ls_least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t ls_most(int64_t a, int64_t b) { return a > b ? a : b; }
/* An index that may lie outside 0 .. n - 1: the nearest inside; mirrored at first and last. */
static inline int64_t ls_clamp(int64_t i, int64_t n) { return i < 0 ? 0 : i < n ? i : n - 1; }
static inline int64_t ls_reflect(int64_t i, int64_t n)
{
    return i < 0 ? -i : i < n ? i : 2 * (n - 1) - i;
}

/* Positions start + r step, r = 0 .. count - 1: the first r that is not negative, and the first
 * that is n or more. */
static inline int64_t ls_first_inside(int64_t start, int64_t step)
{
    return start >= 0 ? 0 : (step - 1 - start) / step;
}
static inline int64_t ls_end_inside(int64_t start, int64_t step, int64_t n, int64_t count)
{
    return start >= n ? 0 : ls_least(count, (n - start + step - 1) / step);
}

/* ---- bits of a float ---- */
static inline uint32_t ls_bits32(float x) { uint32_t u; memcpy(&u, &x, sizeof u); return u; }
static inline float ls_float32(uint32_t u) { float x; memcpy(&x, &u, sizeof x); return x; }
static inline uint64_t ls_bits64(double x) { uint64_t u; memcpy(&u, &x, sizeof u); return u; }
static inline double ls_float64(uint64_t u) { double x; memcpy(&x, &u, sizeof x); return x; }

/* ---- for real and for integers ---- */
static inline real ls_max_real(real a, real b)
{
    const real m = a > b ? a : b;
    return a != a ? a : m;
}
static inline real ls_min_real(real a, real b)
{
    const real m = a < b ? a : b;
    return a != a ? a : m;
}
static inline real ls_abs_real(real a) { return sizeof a == 4 ? fabsf(a) : (real)fabs(a); }
static inline int64_t ls_max_int(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t ls_min_int(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t ls_abs_int(int64_t a) { return a < 0 ? -(uint64_t)a : (uint64_t)a; }
#define LS_BY_TYPE(a, name)                                                                        \
    _Generic((a), float : name##_real, double : name##_real, default : name##_int)
#define ls_max(a, b) LS_BY_TYPE(a, ls_max)(a, b)
#define ls_min(a, b) LS_BY_TYPE(a, ls_min)(a, b)
#define ls_abs(a) LS_BY_TYPE(a, ls_abs)(a)

static inline real ls_relu(real x) { return x < 0 ? 0 : x; }

/* a * b + c, rounded once where the machine can do that at no cost, also between LS_EXACT_BEGIN
 * and LS_EXACT_END. */
static inline real ls_fma(real a, real b, real c)
{
#if defined __FMA__ || defined __ARM_FEATURE_FMA
    return sizeof(real) == 4 ? __builtin_fmaf(a, b, c) : (real)__builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}

#ifdef LS_F64
static inline real ls_sqrt(real x) { return sqrt(x); }
static inline real ls_floor(real x) { return floor(x); }
static inline real ls_ceil(real x) { return ceil(x); }
static inline real ls_round(real x) { return rint(x); }     /* half to even */
static inline real ls_exp(real x) { return exp(x); }
static inline real ls_log(real x) { return log(x); }
static inline real ls_log1p(real x) { return log1p(x); }
static inline real ls_tanh(real x) { return tanh(x); }
static inline real ls_erf(real x) { return erf(x); }
static inline real ls_pow_real(real x, real y) { return pow(x, y); }
#else
static inline real ls_sqrt(real x) { return sqrtf(x); }
static inline real ls_floor(real x) { return floorf(x); }
static inline real ls_ceil(real x) { return ceilf(x); }
static inline real ls_round(real x) { return rintf(x); }    /* half to even */

/* x = n ln 2 + r, |r| <= ln 2 / 2; exp x = 2 * 2^(n - 1) exp r. Adding 1.5 * 2^23 rounds to an
 * integer and leaves it in the low bits. Results below 2.4e-38 become 0. */
static inline real ls_exp(real x)
{
    float a = x < -87.5f ? -87.5f : x;
    a = a > 89.f ? 89.f : a;
    const float z = ls_fma(a, 1.44269504f, 12582912.f);
    const float n = z - 12582912.f;
    const float r = ls_fma(n, 2.12194440e-4f, ls_fma(n, -0.693359375f, a));
    float p = 0.000197902482f;
    p = ls_fma(p, r, 0.00139447593f);
    p = ls_fma(p, r, 0.00833349768f);
    p = ls_fma(p, r, 0.0416662954f);
    p = ls_fma(p, r, 0.166666657f);
    p = ls_fma(p, r, 0.5f);
    p = ls_fma(p * r, r, r) + 1.f;
    p *= ls_float32((ls_bits32(z) << 23) + (126u << 23));
    return p + p;
}

/* x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2); log(1 + f) by s = f / (2 + f) as in FreeBSD's
 * libm, with a polynomial of our own. */
static inline real ls_log(real x)
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

/* log(1 + x) for x > -1: the rounding error of 1 + x is divided by the slope. */
static inline real ls_log1p(real x)
{
    const float u = 1.f + x, y = ls_log(u) - ((u - 1.f) - x) / u;
    return u < INFINITY ? y : u;
}

static inline real ls_tanh(real x)
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
static inline real ls_erf(real x)
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

/* exp(y log |x|) in double, which leaves no more than the rounding to float. */
static inline real ls_pow_real(real x, real y)
{
    if (__builtin_constant_p(y) && y == 2.f)
        return x * x;
    if (__builtin_constant_p(y) && y == 3.f)
        return x * x * x;
    if (__builtin_constant_p(y) && y == 1.f)
        return x;
    if (__builtin_constant_p(y) && y == -1.f)
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

static inline real ls_pow_int(int64_t x, int64_t y)
{
    real p = 1;
    for (uint64_t k = ls_abs_int(y); k != 0; k >>= 1, x *= x)
        p *= k & 1 ? (real)x : 1;
    return y < 0 ? 1 / p : p;
}
#define ls_pow(x, y) LS_BY_TYPE(x, ls_pow)(x, y)

static inline real ls_sigmoid(real x) { return 1 / (1 + ls_exp(-x)); }
static inline real ls_softplus(real x)
{
    return ls_max_real(x, 0) + ls_log1p(ls_exp(-ls_abs_real(x)));
}

/* Sum of n values, n a power of two up to 256, as a tree. */
static inline double ls_sum_lanes(const real *lane, int64_t n)
{
    double t[256];
    for (int64_t l = 0; l < n; l++)
        t[l] = lane[l];
    for (int64_t half = n / 2; half > 0; half /= 2)
        for (int64_t l = 0; l < half; l++)
            t[l] += t[l + half];
    return t[0];
}

/* ---- rows ----
 * Over x[0 .. n): `lanes` running values (a power of two up to 256; both constants where it is
 * called), so that the loop becomes vector code; at the end they are combined as a tree, sums in
 * double. */
#define LS_ROW static inline __attribute__((always_inline))
LS_ROW real ls_row_max(const real *x, int64_t n, int64_t lanes)
{
    real lane[256];
    int64_t i = 0;
    for (int64_t l = 0; l < lanes; l++)
        lane[l] = -INFINITY;
    for (; i + lanes <= n; i += lanes)
#pragma GCC unroll 1
        for (int64_t l = 0; l < lanes; l++)
            lane[l] = ls_max_real(lane[l], x[i + l]);
    for (int64_t l = 0; i + l < n; l++)
        lane[l] = ls_max_real(lane[l], x[i + l]);
    for (int64_t half = lanes / 2; half > 0; half /= 2)
        for (int64_t l = 0; l < half; l++)
            lane[l] = ls_max_real(lane[l], lane[l + half]);
    return lane[0];
}

/* name(..., n, lanes): sum of `term`, an expression in i. */
#define LS_ROW_SUM(name, term, ...)                                     \
    LS_ROW double name(__VA_ARGS__, int64_t n, int64_t lanes)           \
    {                                                                   \
        real lane[256];                                                 \
        for (int64_t l = 0; l < lanes; l++)                             \
            lane[l] = 0;                                                \
        const int64_t whole = n / lanes * lanes;                        \
        for (int64_t at = 0; at < whole; at += lanes) {                 \
            _Pragma("GCC ivdep") _Pragma("GCC unroll 1")                \
            for (int64_t l = 0; l < lanes; l++) {                       \
                const int64_t i = at + l;                               \
                lane[l] += term;                                        \
            }                                                           \
        }                                                               \
        _Pragma("GCC ivdep")                                            \
        for (int64_t l = 0; l < n - whole; l++) {                       \
            const int64_t i = whole + l;                                \
            lane[l] += term;                                            \
        }                                                               \
        return ls_sum_lanes(lane, lanes);                               \
    }
LS_ROW_SUM(ls_row_sum, x[i], const real *x)
LS_ROW_SUM(ls_row_dot, a[i] * b[i], const real *a, const real *b)
LS_ROW_SUM(ls_row_square, (x[i] - mean) * (x[i] - mean), const real *x, real mean)
LS_ROW_SUM(ls_row_normal_dot, dy[i] * scale[i] * ((x[i] - mean) * invstd), const real *dy,
           const real *scale, const real *x, real mean, real invstd)
LS_ROW_SUM(ls_row_exp, ls_exp(x[i] - shift), const real *x, real shift)
LS_ROW_SUM(ls_row_exp_to, (y[i] = ls_exp(x[i] - shift)), real *y, const real *x, real shift)

/* ---- transposition ----
 * to[c * ldt + r] = from[r * ldf + c] for r < rows, c < cols, through tiles of 16 by 16, so that
 * both sides are touched in whole cache lines. By the size of an element in bits. */
#define LS_TRANSPOSE(bits)                                                                       \
    typedef uint##bits##_t ls_four##bits                                                         \
        __attribute__((vector_size(bits / 2), aligned(bits / 8), may_alias));                    \
    static inline void ls_block##bits(uint##bits##_t *to, int64_t ldt, const uint##bits##_t *from, \
                                      int64_t ldf)                                               \
    {                                                                                            \
        const ls_four##bits a = *(const ls_four##bits *)from;                                    \
        const ls_four##bits b = *(const ls_four##bits *)(from + ldf);                            \
        const ls_four##bits c = *(const ls_four##bits *)(from + 2 * ldf);                        \
        const ls_four##bits d = *(const ls_four##bits *)(from + 3 * ldf);                        \
        const ls_four##bits ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);                      \
        const ls_four##bits cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);                      \
        const ls_four##bits ba = __builtin_shufflevector(a, b, 2, 6, 3, 7);                      \
        const ls_four##bits dc = __builtin_shufflevector(c, d, 2, 6, 3, 7);                      \
        *(ls_four##bits *)to = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);                      \
        *(ls_four##bits *)(to + ldt) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);              \
        *(ls_four##bits *)(to + 2 * ldt) = __builtin_shufflevector(ba, dc, 0, 1, 4, 5);          \
        *(ls_four##bits *)(to + 3 * ldt) = __builtin_shufflevector(ba, dc, 2, 3, 6, 7);          \
    }                                                                                            \
    static inline void ls_transpose##bits(void *y, int64_t ldt, const void *x, int64_t ldf,      \
                                          int64_t rows, int64_t cols)                            \
    {                                                                                            \
        uint##bits##_t *const to = y;                                                            \
        const uint##bits##_t *const from = x;                                                    \
        const int64_t whole_r = rows / 16 * 16, whole_c = cols / 16 * 16;                        \
        uint##bits##_t tile[256];                                                                \
        for (int64_t r = 0; r < whole_r; r += 16)                                                \
            for (int64_t c = 0; c < whole_c; c += 16) {                                          \
                for (int64_t i = 0; i < 16; i += 4)                                              \
                    for (int64_t j = 0; j < 16; j += 4)                                          \
                        ls_block##bits(tile + j * 16 + i, 16, from + (r + i) * ldf + c + j, ldf); \
                for (int64_t j = 0; j < 16; j++)                                                 \
                    memcpy(to + (c + j) * ldt + r, tile + j * 16, sizeof tile / 16);             \
            }                                                                                    \
        for (int64_t c = 0; c < cols; c++)                                                       \
            for (int64_t r = c < whole_c ? whole_r : 0; r < rows; r++)                           \
                to[c * ldt + r] = from[r * ldf + c];                                             \
    }
LS_TRANSPOSE(32)
LS_TRANSPOSE(64)
static inline void ls_transpose8(uint8_t *to, int64_t ldt, const uint8_t *from, int64_t ldf,
                                 int64_t rows, int64_t cols)
{
    for (int64_t c = 0; c < cols; c++)
        for (int64_t r = 0; r < rows; r++)
            to[c * ldt + r] = from[r * ldf + c];
}

/* ---- random numbers ----
 * A number in [0, 1) with 24 random bits, a function of its arguments alone: whoever computes
 * element `index` of node `id`, and however often, gets the same. The loop over index keeps to
 * 32-bit arithmetic (a keyed bijection in the manner of MurmurHash3's finalizer), everything else
 * is loop-invariant. */
static inline real ls_uniform(uint64_t seed, int64_t step, int64_t id, int64_t index)
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
    x ^= x >> 15;
    return (real)(int32_t)(x >> 8) * LS_R(5.9604644775390625e-08);
}

#endif
