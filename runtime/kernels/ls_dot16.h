/* runtime/kernels/ls_dot16.h -- products of bfloat16 factors, in the orders of the processors' dot
 * products.
 *
 * A program sums over k in one of two orders. Either way it takes and gives subnormal numbers as
 * zeros and rounds to the nearest. Products of two bfloat16 are exact in f32, so multiply-adds of
 * vectors give the bits of the instructions.
 *
 *   LS_DOT16_TILES 0   *pairs*, of x86's VDPBF16PS: first the product of k + 1, then that of k,
 * each by a fused multiply-add. An odd number of terms ends with a single one LS_DOT16_TILES 1
 * *tiles*, of x86's TDPBF16PS: of each 32 terms the even and the odd ones add up apart, from 0, by
 *                      fused multiply-adds; then both together, then that and the sum before
 *
 * The program may use what is faster:
 *
 *   LS_DOT16_UNIT 0    multiply-adds; factors are packed as f32, like those of other products
 *   LS_DOT16_UNIT 1    VDPBF16PS, for pairs; factors are packed as *words* of two, the even k in
 * the lower half LS_DOT16_UNIT 2    words and multiply-adds, so that words are tested everywhere
 *   LS_DOT16_UNIT 3    TDPBF16PS, for tiles, of words (ls_amx.h)
 *
 * TDPBF16PS has 16 times the rate of f32 multiply-adds: where the compiler's target has it, tiles
 * are the default. VDPBF16PS has twice their rate on AMD's Zen 4, half of it on Intel's Sapphire
 * Rapids (measured). So 1 is the default only where the target has it and is AMD's, which alone
 * have SSE4A.
 *
 * A program with such products defines LS_DOT16 as 2, a bit of `how` in ls_gemm.h. Payloads of NaN
 * may differ. On processors without fused multiply-add, or neither x86 nor AArch64, sums with
 * subnormal products may differ, too. */
#ifndef LS_RUNTIME_KERNELS_LS_DOT16_H
#define LS_RUNTIME_KERNELS_LS_DOT16_H

#if defined __AMX_BF16__ && defined __AMX_TILE__ && defined __AVX512F__ && defined __linux__
#define LS_HAS_AMX 1
#else
#define LS_HAS_AMX 0
#endif
#ifndef LS_DOT16_TILES
#define LS_DOT16_TILES LS_HAS_AMX
#endif
#ifndef LS_DOT16_UNIT
#if LS_DOT16_TILES && LS_HAS_AMX
#define LS_DOT16_UNIT 3
#elif !LS_DOT16_TILES && defined __AVX512BF16__ && defined __SSE4A__
#define LS_DOT16_UNIT 1
#else
#define LS_DOT16_UNIT 0
#endif
#endif
#if LS_DOT16_TILES ? LS_DOT16_UNIT == 1 : LS_DOT16_UNIT == 3
#error "VDPBF16PS adds up in pairs, TDPBF16PS in tiles"
#endif
#if LS_DOT16_UNIT == 3 && defined LS_DOT16
#define LS_AMX_UNIT
#endif

#include "runtime/kernels/ls_amx.h"

enum {
#ifdef LS_DOT16
    LS_DOTS = LS_DOT16,
#else
    LS_DOTS = 0,                                /* no product is of bfloat16 */
#endif
    LS_WORDS = LS_DOT16_UNIT != 0 ? LS_DOTS : 0,        /* such products take words ... */
    LS_PAIRS = LS_DOT16_TILES ? 0 : LS_DOTS & ~LS_WORDS,        /* ... or pairs of f32; ... */
    LS_APART = LS_DOT16_TILES ? LS_DOTS : 0,            /* ... add up even and odd terms apart
                                                         * ... */
    LS_AMX = LS_DOT16_UNIT == 3 ? LS_DOTS : 0,          /* ... in AMX tiles */
    LS_APART_DEPTH = 32,                                /* terms of such a sum */
};

/* Elements of a packed sum over k; dots: LS_DOTS, or 0. AMX tiles are filled up, with products
 * -0. */
LS_INLINE int64_t ls_dot_depth(int dots, int64_t k)
{
    if (dots & LS_AMX)
        return ls_ceil_div(k, LS_APART_DEPTH) * (LS_APART_DEPTH / 2);
    return dots & LS_WORDS ? (k + 1) / 2 : k;
}

/* Least distance of panels of k rows, in rows, that are packed as reals and then as words in their
 * place. */
LS_INLINE int64_t ls_panel_pitch(int dots, int64_t k)
{
    return dots ? ls_most(k, LS_DOT16_PITCH) : k;
}

/* Blocks of a sum begin where pairs and tiles do. */
LS_INLINE int64_t ls_dot_begin(int dots, int64_t k)
{
    const int64_t step = dots & LS_APART ? LS_APART_DEPTH : dots ? 2 : 1;
    return ls_ceil_div(k, step) * step;
}

/* ---- subnormal numbers as zeros, and tiles ---- Between begin and end there is nothing but calls
 * of micro-kernels: what is computed or rounded otherwise keeps its subnormal numbers. */
LS_INLINE uint64_t ls_dots_begin(int dots)
{
    uint64_t mode = 0;
    if (!dots)
        return mode;
    if (dots & LS_AMX && ls_amx_on()) {
        ls_amx_begin();
        return mode;
    }
#if defined __SSE__
    enum { FLUSH = 0x8000 | 0x0040 };           /* results; operands */
    uint32_t old, now;
    __asm__ volatile("stmxcsr %0" : "=m"(old) : : "memory");
    now = old | FLUSH;
    __asm__ volatile("ldmxcsr %0" : : "m"(now) : "memory");
    mode = old;
#elif defined __aarch64__
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode) : : "memory");
    __asm__ volatile("msr fpcr, %0" : : "r"(mode | 1u << 24) : "memory");
#endif
    return mode;
}
LS_INLINE void ls_dots_end(int dots, uint64_t mode)
{
    if (!dots)
        return;
    if (dots & LS_AMX && ls_amx_on()) {
        ls_amx_end();
        return;
    }
#if defined __SSE__
    uint32_t old = (uint32_t)mode;
    __asm__ volatile("ldmxcsr %0" : : "m"(old) : "memory");
#elif defined __aarch64__
    __asm__ volatile("msr fpcr, %0" : : "r"(mode) : "memory");
#endif
    (void)mode;
}

/* ---- words ---- */
#ifdef LS_DOT16
/* sum + the two products in each lane of a and b. */
#if LS_DOT16_UNIT == 1
#include <immintrin.h>
LS_INLINE ls_vec ls_dot(ls_vec sum, ls_vec a, ls_vec b)
{
    return (ls_vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)a, (__m512bh)b);
}
#else
LS_INLINE ls_vec ls_dot(ls_vec sum, ls_vec a, ls_vec b)
{
    const ls_vec_32 u = (ls_vec_32)a, v = (ls_vec_32)b;
    sum += (ls_vec)(u & 0xffff0000u) * (ls_vec)(v & 0xffff0000u);
    sum += (ls_vec)(u << 16) * (ls_vec)(v << 16);
    return sum;
}
#endif

/* The even products of the words go to one sum, the odd ones to another. */
LS_INLINE void ls_dot_apart(ls_vec *even, ls_vec *odd, ls_vec a, ls_vec b)
{
    const ls_vec_32 u = (ls_vec_32)a, v = (ls_vec_32)b;
    *even += (ls_vec)(u << 16) * (ls_vec)(v << 16);
    *odd += (ls_vec)(u & 0xffff0000u) * (ls_vec)(v & 0xffff0000u);
}

/* The word there in all lanes. */
LS_INLINE ls_vec ls_splat_word(const real *at)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return (ls_vec)(word - (ls_vec_32){0});
}

LS_INLINE uint32_t ls_word_at(const real *even, const real *odd)
{
    uint32_t low, high = 0;
    memcpy(&low, even, sizeof low);
    if (odd != NULL)
        memcpy(&high, odd, sizeof high);
    return low >> 16 | (high & 0xffff0000u);
}

/* Rows 2 i and 2 i + 1 of k rows become row i of words; width: whole vectors. `to` may begin at
 * `from`. Rows behind k hold `fill`: 0 in one factor and LS_WORD_FILL, -0, in the other, whose
 * product changes no sum. */
#define LS_WORD_FILL 0x80000000u
LS_SHARED_FN void ls_words_down(real *to, const real *from, int64_t k, int64_t width, uint32_t fill)
{
    for (int64_t i = 0; i < 2 * ls_dot_depth(LS_DOTS, k); i += 2, from += 2 * width, to += width)
        for (int64_t j = 0; j < width; j += LS_V) {
            ls_vec_32 even = fill - (ls_vec_32){0}, odd = even;
            if (i < k)
                even = (ls_vec_32)ls_load(from + j);
            if (i + 1 < k)
                odd = (ls_vec_32)ls_load(from + width + j);
            ls_store(to + j, (ls_vec)(even >> 16 | (odd & 0xffff0000u)));
        }
}

/* Each of `rows` rows of k elements, `ld` apart, becomes a row of words in its place, filled up
 * with 0. */
LS_SHARED_FN void ls_words_along(real *x, int64_t ld, int64_t rows, int64_t k)
{
    for (; rows > 0; rows--, x += ld) {
        int64_t i = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        for (; i + LS_V <= k; i += LS_V)
            *(ls_vec_16 *)(x + i / 2) =
                __builtin_convertvector((ls_vec_32)ls_load(x + i) >> 16, ls_vec_16);
#endif
        for (; i < k; i += 2) {
            const uint32_t word = ls_word_at(x + i, i + 1 < k ? x + i + 1 : NULL);
            memcpy(x + i / 2, &word, sizeof word);
        }
        memset(x + (k + 1) / 2, 0, (size_t)(ls_dot_depth(LS_DOTS, k) - (k + 1) / 2) * sizeof *x);
    }
}
#else       /* never called */
#define LS_WORD_FILL 0
LS_INLINE ls_vec ls_dot(ls_vec sum, ls_vec a, ls_vec b) { return (void)a, (void)b, sum; }
LS_INLINE void ls_dot_apart(ls_vec *even, ls_vec *odd, ls_vec a, ls_vec b)
{
    (void)even, (void)odd, (void)a, (void)b;
}
LS_INLINE ls_vec ls_splat_word(const real *at) { return ls_load(at); }
LS_INLINE void ls_words_down(real *to, const real *from, int64_t k, int64_t width, uint32_t fill)
{
    (void)to, (void)from, (void)k, (void)width, (void)fill;
}
LS_INLINE void ls_words_along(real *x, int64_t ld, int64_t rows, int64_t k)
{
    (void)x, (void)ld, (void)rows, (void)k;
}
#endif

#endif
