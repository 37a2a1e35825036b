/* runtime/kernels/ls_amx.h -- products of bfloat16 by Intel's AMX tiles (TDPBF16PS), on Linux.
 *
 * A tile is 16 rows of 64 bytes. The unit takes 16 rows of A with 16 words each, and 16 rows of
 * words of B with 16 columns, as ls_dot16.h packs them. Linux lends the tiles to a process that
 * asks; where it refuses, the same words go to vectors (ls_apart in ls_gemm.h), with the same
 * bits. */
#ifndef LS_RUNTIME_KERNELS_LS_AMX_H
#define LS_RUNTIME_KERNELS_LS_AMX_H

#include "runtime/kernels/ls_vector.h"

#include <stdio.h>

enum { LS_AMX_SIDE = 32 };      /* rows and columns of a product of 2 x 2 tiles */

/* A sum in parts of k words each: part i, j of A begins i * down + j * across words further, those
 * of B follow each other. */
typedef struct LsTaps { int64_t rows, cols, down, across; } LsTaps;
static const LsTaps ls_one_tap __attribute__((unused)) = {1, 1, 0, 0};

#ifdef LS_AMX_UNIT
enum { LS_AMX_UNKNOWN, LS_AMX_ALLOWED, LS_AMX_REFUSED };
static int ls_amx_state;        /* of the process */

/* Asks for the tiles. The answer is the same for every thread. */
LS_SHARED_FN int ls_amx_ask(void)
{
    enum { ARCH_PRCTL = 158, ARCH_REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18 };
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"((long)ARCH_PRCTL), "D"((long)ARCH_REQ_XCOMP_PERM), "S"((long)XTILEDATA)
                     : "rcx", "r11", "memory");
    const int state = result == 0 ? LS_AMX_ALLOWED : LS_AMX_REFUSED;
    int old = LS_AMX_UNKNOWN;
    if (__atomic_compare_exchange_n(&ls_amx_state, &old, state, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED)
        && result != 0)
        fprintf(stderr,
                "note: this system refuses AMX tiles (error %ld); products of bf16 are slower, "
                "with the same bits\n",
                -result);
    return state;
}

LS_INLINE bool ls_amx_on(void)
{
    int state = __atomic_load_n(&ls_amx_state, __ATOMIC_RELAXED);
    if (state == LS_AMX_UNKNOWN)
        state = ls_amx_ask();
    return state == LS_AMX_ALLOWED;
}

/* All eight tiles are whole, between begin and end. */
LS_INLINE void ls_amx_begin(void)
{
    typedef struct Config {
        uint8_t palette, start, zero[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } Config;
    static const _Alignas(64) Config config = {.palette = 1,
                                               .bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                                               .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    __asm__ volatile("ldtilecfg %0" : : "m"(config));
}
LS_INLINE void ls_amx_end(void) { __asm__ volatile("tilerelease" : : : "memory"); }

/* Inline assembly, as the intrinsics of some compilers do not say that they read memory. Strides
 * are in bytes. */
#define LS_AMX_LOAD(tile, at, stride)                                                              \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile                                            \
                     :                                                                             \
                     : "r"(at), "r"((int64_t)(stride))                                             \
                     : "memory")
#define LS_AMX_STORE(tile, at, stride)                                                             \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)"                                        \
                     :                                                                             \
                     : "r"(at), "r"((int64_t)(stride))                                             \
                     : "memory")
#define LS_AMX_DOT(to, a, b) __asm__ volatile("tdpbf16ps %tmm" #b ", %tmm" #a ", %tmm" #to)

#define LS_AMX_PARAMS                                                                              \
    const LsTaps *taps, int64_t k, const real *a, int64_t lda, const real *b, int64_t ldb,         \
        const real *init, int64_t ldi, real *c, int64_t ldc

/* c += a * b of 16 * down rows and 16 * across columns; k words, a multiple of 16; else as the
 * micro-kernel. */
LS_INLINE void ls_amx_part(const int down, const int across, int64_t k, const real *a, int64_t lda,
                           const real *b, int64_t ldb)
{
    enum { WORD = sizeof(real) };
    for (; k > 0; k -= 16, a += 16, b += 16 * ldb) {
        LS_AMX_LOAD(4, a, lda * WORD);
        LS_AMX_LOAD(6, b, ldb * WORD);
        LS_AMX_DOT(0, 4, 6);
        if (across == 2) {
            LS_AMX_LOAD(7, b + 16, ldb * WORD);
            LS_AMX_DOT(1, 4, 7);
        }
        if (down == 2) {
            LS_AMX_LOAD(5, a + 16 * lda, lda * WORD);
            LS_AMX_DOT(2, 5, 6);
        }
        if (down == 2 && across == 2)
            LS_AMX_DOT(3, 5, 7);
    }
}

/* c = init + the sum of all parts. */
LS_INLINE void ls_amx_product(const int down, const int across, LS_AMX_PARAMS)
{
    enum { WORD = sizeof(real) };
    LS_AMX_LOAD(0, init, ldi * WORD);
    if (across == 2)
        LS_AMX_LOAD(1, init + 16, ldi * WORD);
    if (down == 2)
        LS_AMX_LOAD(2, init + 16 * ldi, ldi * WORD);
    if (down == 2 && across == 2)
        LS_AMX_LOAD(3, init + 16 * ldi + 16, ldi * WORD);
    for (int64_t i = 0; i < taps->rows; i++)
        for (int64_t j = 0; j < taps->cols; j++, b += k * ldb)
            ls_amx_part(down, across, k, a + i * taps->down + j * taps->across, lda, b, ldb);
    LS_AMX_STORE(0, c, ldc * WORD);
    if (across == 2)
        LS_AMX_STORE(1, c + 16, ldc * WORD);
    if (down == 2)
        LS_AMX_STORE(2, c + 16 * ldc, ldc * WORD);
    if (down == 2 && across == 2)
        LS_AMX_STORE(3, c + 16 * ldc + 16, ldc * WORD);
}

#define LS_AMX_SHAPE(down, across)                                                                 \
    LS_SHARED_FN void ls_amx_##down##x##across(LS_AMX_PARAMS)                                      \
    {                                                                                              \
        ls_amx_product(down, across, taps, k, a, lda, b, ldb, init, ldi, c, ldc);                  \
    }
LS_AMX_SHAPE(1, 1) LS_AMX_SHAPE(1, 2) LS_AMX_SHAPE(2, 1) LS_AMX_SHAPE(2, 2)

/* c[m][n] = init + a * panel, n <= 32, of rows of A that continue to a multiple of 16 (what lies
 * there does not matter). Panels are 32 wide, or 16 where n <= 16. */
LS_SHARED_FN void ls_amx_panel(int64_t m, int64_t n, LS_AMX_PARAMS)
{
    typedef void Product(LS_AMX_PARAMS);
    static Product *const product[2][2] = {{ls_amx_1x1, ls_amx_1x2}, {ls_amx_2x1, ls_amx_2x2}};
    _Alignas(64) real t[LS_AMX_SIDE * LS_AMX_SIDE];
    const int64_t width = n > 16 ? 32 : 16;
    for (int64_t i = 0; i < m; i += LS_AMX_SIDE) {
        const int64_t rows = ls_least(m - i, LS_AMX_SIDE), height = rows > 16 ? 32 : 16;
        Product *const fn = product[height / 32][width / 32];
        const real *ai = a + i * lda, *from = init + i * ldi;
        real *const to = c + i * ldc;
        if (rows == height && n == width) {
            fn(taps, k, ai, lda, b, ldb, from, ldi, to, ldc);
            continue;
        }
        for (int64_t r = 0; r < height; r++) {
            ls_zero(t + r * width, width);
            ls_copy(t + r * width, from + r * ldi, r < rows ? n : 0);
        }
        fn(taps, k, ai, lda, b, ldb, t, width, t, width);
        for (int64_t r = 0; r < rows; r++)
            ls_copy(to + r * ldc, t + r * width, n);
    }
}
#else       /* never called */
LS_INLINE bool ls_amx_on(void) { return false; }
LS_INLINE void ls_amx_begin(void) {}
LS_INLINE void ls_amx_end(void) {}
LS_INLINE void ls_amx_panel(int64_t m, int64_t n, const LsTaps *taps, int64_t k, const real *a,
                            int64_t lda, const real *b, int64_t ldb, const real *init, int64_t ldi,
                            real *c, int64_t ldc)
{
    (void)taps, (void)m, (void)n, (void)k, (void)a, (void)lda, (void)b, (void)ldb, (void)init,
        (void)ldi, (void)c, (void)ldc;
}
#endif

#endif
