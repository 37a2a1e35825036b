/* runtime/ls_gemm.h -- matrix product: a register-blocked micro-kernel, and the loops around it.
 *
 * The micro-kernel computes LS_MR x LS_NR results from k columns of A, read where they lie, and a
 * *panel* of B: LS_NR columns side by side for each k. Panels are packed beforehand. As in Goto &
 * van de Geijn (2008): a panel of LS_KC rows stays in the L1 cache while the rows of A, in L2,
 * pass over it.
 *
 * Every result is the sum over k in ascending order, rounded to memory at the same places
 * (multiples of LS_KC) whichever block or tail it falls in: bits do not depend on how work
 * is cut. */
#ifndef LS_GEMM_H
#define LS_GEMM_H

#include "ls_vector.h"

enum {
    LS_KC = 1024 / sizeof(real),              /* depth of a block: a panel is then at most 32 KiB */
    LS_ROWS = 280,                            /* rows of a block */
    LS_COLS = 256,                            /* columns of a block */
    LS_L1_ROWS = LS_MR * (LS_MR > 8 ? 2 : 4), /* rows that stay in the L1 cache while panels pass */
    LS_LDA = LS_KC + LS_V, /* distance of copied rows: odd in vectors, to spread over cache sets */
    LS_TILE_LD = LS_MR > 8 ? 16 : 8, /* distance in a tile of turned rows */
};

/* c[rows][nv * LS_V] = init + a * b. a(i, k) is at a[i * lda + k], or a[k * lda + i] when turned;
 * init has row distance ldi, 0 for a bias that all rows share. */
#define LS_MICRO_PARAMS int64_t k, const real *restrict a, int64_t lda, const real *restrict b, \
    int64_t ldb, const real *init, int64_t ldi, real *c, int64_t ldc

LS_INLINE void ls_micro_body(const int rows, const int nv, const bool turned, LS_MICRO_PARAMS)
{
    ls_vec s[LS_MR][2];
    /* Rows hang on one of three pointers, five to each: one pointer for 14 rows, or one for each,
     * is more address registers than x86 has. The empty asm keeps the compiler from deriving one
     * from another. */
    const real *p[3] = {a, a + (turned ? 0 : 5 * lda), a + (turned ? 0 : 10 * lda)};
    __asm__("" : "+r"(p[1]), "+r"(p[2]));
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) {
        s[i][0] = ls_load(init + i * ldi);
        s[i][1] = nv == 2 ? ls_load(init + i * ldi + LS_V) : (ls_vec){0};
    }
    for (; k > 0; k--) {
        ls_vec b0 = ls_load(b), b1 = nv == 2 ? ls_load(b + LS_V) : b0;
#pragma GCC unroll 14
        for (int i = 0; i < rows; i++) {
            ls_vec x = ls_splat(turned ? a[i] : p[i / 5][i % 5 * lda]);
            s[i][0] += x * b0;
            if (nv == 2)
                s[i][1] += x * b1;
        }
        a += lda;
        for (int i = 0; i < 3 && !turned; i++)
            p[i]++;
        b += ldb;
    }
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) {
        ls_store(c + i * ldc, s[i][0]);
        if (nv == 2)
            ls_store(c + i * ldc + LS_V, s[i][1]);
    }
}

#define LS_MICRO(rows, nv, turned)                                                              \
    LS_SHARED_FN void ls_micro_##rows##x##nv##_##turned(LS_MICRO_PARAMS)                        \
    {                                                                                           \
        ls_micro_body(rows, nv, turned, k, a, lda, b, ldb, init, ldi, c, ldc);                  \
    }
#define LS_MICROS(rows) LS_MICRO(rows, 1, 0) LS_MICRO(rows, 2, 0) LS_MICRO(rows, 1, 1) \
    LS_MICRO(rows, 2, 1)
#define LS_MICRO_ROW(rows) {{ls_micro_##rows##x1_0, ls_micro_##rows##x2_0},                     \
                            {ls_micro_##rows##x1_1, ls_micro_##rows##x2_1}}
#if LS_MR == 14
LS_MICROS(14) LS_MICROS(8)
#else
LS_MICROS(6)
#endif
LS_MICROS(4) LS_MICROS(2) LS_MICROS(1)

typedef void LsMicro(LS_MICRO_PARAMS);
static const struct { int rows; LsMicro *fn[2][2]; } ls_micro[] __attribute__((unused)) = {
#if LS_MR == 14
    {14, LS_MICRO_ROW(14)}, {8, LS_MICRO_ROW(8)},
#else
    {6, LS_MICRO_ROW(6)},
#endif
    {4, LS_MICRO_ROW(4)}, {2, LS_MICRO_ROW(2)}, {1, LS_MICRO_ROW(1)},
};

/* c[m][n] = init + a * panel, n <= LS_NR. Panels are LS_NR wide, or LS_V where n <= LS_V. Outside
 * its n columns c is not touched and init not read. */
LS_SHARED_FN void ls_panel(bool turned, int64_t m, int64_t n, int64_t k, const real *a, int64_t lda,
                           const real *b, int64_t ldb, const real *init, int64_t ldi, real *c,
                           int64_t ldc)
{
    int nv = n > LS_V ? 2 : 1, kind = 0;
    bool full = n == nv * LS_V;
    for (int64_t i = 0; i < m; i += ls_micro[kind].rows) {
        while (ls_micro[kind].rows > m - i)
            kind++;
        const real *ai = a + i * (turned ? 1 : lda), *from = init + i * ldi;
        LsMicro *fn = ls_micro[kind].fn[turned][nv - 1];
        if (full) {
            fn(k, ai, lda, b, ldb, from, ldi, c + i * ldc, ldc);
            continue;
        }
        real t[LS_MR * LS_NR];
        for (int r = 0; r < ls_micro[kind].rows; r++) {
            ls_zero(t + r * LS_NR, LS_NR);
            ls_copy(t + r * LS_NR, from + r * ldi, n);
        }
        fn(k, ai, lda, b, ldb, t, LS_NR, t, LS_NR);
        for (int r = 0; r < ls_micro[kind].rows; r++)
            ls_copy(c + (i + r) * ldc, t + r * LS_NR, n);
    }
}

/* Rows this far apart compete for the same few lines of the L1 cache: better copy them. */
LS_INLINE bool ls_crowded(int64_t ld) { return ld * (int64_t)sizeof(real) % 4096 == 0; }

/* Turned rows a[k][m], m of them, as tiles of LS_MR rows: to[tile][k][LS_TILE_LD]. */
LS_SHARED_FN void ls_tile_turned(real *restrict to, const real *restrict a, int64_t lda, int64_t k,
                                 int64_t m)
{
    for (int64_t i = 0; i < m; i += LS_MR, to += k * LS_TILE_LD)
        if (m - i >= LS_TILE_LD)
            for (int64_t q = 0; q < k; q++)
                ls_copy(to + q * LS_TILE_LD, a + q * lda + i, LS_TILE_LD);
        else
            for (int64_t q = 0; q < k; q++)
                ls_copy(to + q * LS_TILE_LD, a + q * lda + i, ls_least(LS_MR, m - i));
}

/* ls_panel with such tiles. */
LS_INLINE void ls_panel_tiles(int64_t m, int64_t n, int64_t k, const real *tiles, const real *b,
                              int64_t ldb, const real *init, int64_t ldi, real *c, int64_t ldc)
{
    for (int64_t i = 0; i < m; i += LS_MR, tiles += k * LS_TILE_LD)
        ls_panel(true, ls_least(LS_MR, m - i), n, k, tiles, LS_TILE_LD, b, ldb, init + i * ldi, ldi,
                 c + i * ldc, ldc);
}

/* Where accumulation starts without a bias. */
static const real ls_no_bias[LS_COLS] __attribute__((unused));

/* Width of the panel that begins with n columns to go, and size of a matrix of n columns in
 * panels. */
LS_INLINE int64_t ls_panel_width(int64_t n) { return n > LS_V ? LS_NR : LS_V; }
LS_INLINE int64_t ls_packed_cols(int64_t n) { return ls_ceil_div(n, LS_V) * LS_V; }

/* One panel from rows of B: to[k][width] = scale * b[k * ldb + 0..n). */
LS_SHARED_FN void ls_pack_rows(real *restrict to, const real *restrict b, int64_t ldb, int64_t k,
                               int64_t n, real scale)
{
    int64_t width = ls_panel_width(n);
    n = ls_least(n, width);
    for (int64_t i = 0; i < k; i++, to += width, b += ldb) {
        ls_copy(to, b, n);
        if (n < width)
            ls_zero(to + n, width - n);
        if (scale != 1)
            for (int64_t j = 0; j < n; j++)
                to[j] *= scale;
    }
}

/* to[k][j] = from[j][k] of a square of four. */
typedef real ls_vec4
    __attribute__((vector_size(4 * sizeof(real)), aligned(sizeof(real)), may_alias));
LS_INLINE void ls_turn4(real *to, int64_t ldt, const real *from, int64_t ldf)
{
    ls_vec4 a = *(const ls_vec4 *)from, b = *(const ls_vec4 *)(from + ldf);
    ls_vec4 c = *(const ls_vec4 *)(from + 2 * ldf), d = *(const ls_vec4 *)(from + 3 * ldf);
    ls_vec4 ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
            cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    *(ls_vec4 *)to = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *(ls_vec4 *)(to + ldt) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    ab = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(ls_vec4 *)(to + 2 * ldt) = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *(ls_vec4 *)(to + 3 * ldt) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}

/* to[k * ldt + j] = from[j][k] of a square of LS_V. */
LS_INLINE void ls_pack_square(real *to, int64_t ldt, const real *from)
{
    for (int i = 0; i < LS_V; i += LS_V > 4 ? 4 : LS_V)
        for (int j = 0; j < LS_V; j += LS_V > 4 ? 4 : LS_V)
            if (LS_V >= 4)
                ls_turn4(to + i * ldt + j, ldt, from + j * LS_V + i, LS_V);
            else
                for (int q = 0; q < LS_V * LS_V; q++)
                    to[q / LS_V * ldt + q % LS_V] = from[q % LS_V * LS_V + q / LS_V];
}

/* The same from B turned: to[k][width] = scale * b[j * ldb + k]. */
LS_SHARED_FN void ls_pack_turned(real *restrict to, const real *restrict b, int64_t ldb, int64_t k,
                                 int64_t n, real scale)
{
    int64_t width = ls_panel_width(n), n4 = ls_least(n, width) / 4 * 4, k4 = k / 4 * 4;
    n = ls_least(n, width);
    for (int64_t i = 0; i < k4; i += 4)
        for (int64_t j = 0; j < n4; j += 4)
            ls_turn4(to + i * width + j, width, b + j * ldb + i, ldb);
    for (int64_t i = 0; i < k; i++, to += width) {
        for (int64_t j = i < k4 ? n4 : 0; j < n; j++)
            to[j] = b[j * ldb + i];
        if (n < width)
            ls_zero(to + n, width - n);
        if (scale != 1)
            for (int64_t j = 0; j < n; j++)
                to[j] *= scale;
    }
}

/* c[m][n] = alpha * a * b + bias; `turn_a`: a is [k][m], `turn_b`: b is [n][k] in memory. */
typedef struct LsMatmul {
    int64_t m, n, k;
    bool turn_a, turn_b;
    real alpha;
    int64_t rows, cols;     /* of a block, at most LS_ROWS and LS_COLS */
} LsMatmul;

/* Size of a block of at most `most`, a multiple of `step`, such that all are about equal. */
LS_INLINE int64_t ls_even_block(int64_t n, int64_t most, int64_t step)
{
    return ls_ceil_div(ls_ceil_div(n, ls_ceil_div(n, most)), step) * step;
}

/* Blocks of one product: enough for several threads where it is large, each worth its packing. */
LS_SHARED_FN LsMatmul ls_matmul_blocks(LsMatmul d)
{
    d.rows = ls_even_block(d.m, LS_ROWS, LS_MR);
    d.cols = LS_COLS;
    while (ls_ceil_div(d.m, d.rows) * ls_ceil_div(d.n, d.cols) < 8 && d.cols > 64)
        d.cols /= 2;
    return d;
}

LS_SHARED_FN int64_t ls_matmul_units(const LsMatmul *d)
{
    LsMatmul b = ls_matmul_blocks(*d);
    return ls_ceil_div(d->m, b.rows) * ls_ceil_div(d->n, b.cols);
}

/* One block of depth k: c[m][n] = init + a * panels, a as it is or turned. */
LS_SHARED_FN void ls_matmul_rows(const LsMatmul *d, int64_t m, int64_t n, int64_t k, const real *a,
                                 const real *panels, const real *init, int64_t ldi, real *c)
{
    _Alignas(64) real copy[LS_L1_ROWS * LS_LDA];
    bool crowded = ls_crowded(d->k);
    for (int64_t i = 0; i < m; i += LS_L1_ROWS) {
        int64_t some = ls_least(LS_L1_ROWS, m - i);
        for (int64_t r = 0; crowded && r < some; r++)
            ls_copy(copy + r * LS_LDA, a + (i + r) * d->k, k);
        for (int64_t j = 0; j < n; j += LS_NR)
            ls_panel(false, some, ls_least(LS_NR, n - j), k, crowded ? copy : a + i * d->k,
                     crowded ? LS_LDA : d->k, panels + j * k, ls_panel_width(n - j),
                     init + i * ldi + j, ldi, c + i * d->n + j, d->n);
    }
}

LS_SHARED_FN void ls_matmul_turned(const LsMatmul *d, int64_t m, int64_t n, int64_t k,
                                   const real *a, const real *panels, const real *init, int64_t ldi,
                                   real *c)
{
    _Alignas(64) real tiles[LS_KC * (LS_ROWS / LS_MR + 1) * LS_TILE_LD];
    ls_tile_turned(tiles, a, d->m, k, m);
    for (int64_t j = 0; j < n; j += LS_NR)
        ls_panel_tiles(m, ls_least(LS_NR, n - j), k, tiles, panels + j * k, ls_panel_width(n - j),
                       init + j, ldi, c + j, d->n);
}

LS_SHARED_FN void ls_matmul_unit(const LsMatmul *shape, const real *a, const real *b,
                                 const real *bias, real *c, int64_t unit)
{
    const LsMatmul d = ls_matmul_blocks(*shape);
    int64_t col_blocks = ls_ceil_div(d.n, d.cols);
    int64_t i0 = unit / col_blocks * d.rows, j0 = unit % col_blocks * d.cols;
    int64_t m = ls_least(d.rows, d.m - i0), n = ls_least(d.cols, d.n - j0);
    int64_t ldb = d.turn_b ? d.k : d.n;
    _Alignas(64) real panels[LS_KC * LS_COLS];
    for (int64_t k0 = 0; k0 < d.k; k0 += LS_KC) {
        int64_t k = ls_least(LS_KC, d.k - k0);
        for (int64_t j = 0; j < n; j += LS_NR)
            if (d.turn_b)
                ls_pack_turned(panels + j * k, b + (j0 + j) * ldb + k0, ldb, k, n - j, d.alpha);
            else
                ls_pack_rows(panels + j * k, b + k0 * ldb + j0 + j, ldb, k, n - j, d.alpha);
        const real *init = bias != NULL ? bias + j0 : ls_no_bias;
        real *to = c + i0 * d.n + j0;
        if (d.turn_a)
            ls_matmul_turned(&d, m, n, k, a + k0 * d.m + i0, panels, k0 > 0 ? to : init,
                             k0 > 0 ? d.n : 0, to);
        else
            ls_matmul_rows(&d, m, n, k, a + i0 * d.k + k0, panels, k0 > 0 ? to : init,
                           k0 > 0 ? d.n : 0, to);
    }
}

#endif
