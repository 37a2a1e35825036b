/* runtime/ls_gemm.h -- matrix product: a register-blocked micro-kernel, and the loops around it.
 *
 * The micro-kernel computes LS_MR x LS_NR results from k columns of A, read where they lie, and a *panel*
 * of B: LS_NR columns side by side for each k. Panels are packed beforehand. As in Goto & van de Geijn
 * (2008): a panel of LS_KC rows stays in the L1 cache while the rows of A, in L2, pass over it.
 *
 * Every result is the sum over k in ascending order, rounded to memory at the same places (multiples of
 * LS_KC) whichever block or tail it falls in: bits do not depend on how work is cut. */
#ifndef LS_GEMM_H
#define LS_GEMM_H

#include "ls_vector.h"

enum {
    LS_KC = 1024 / sizeof(real),    /* depth of a block: a panel is then at most 32 KiB */
    LS_ROWS = 252,                  /* rows of a block: a multiple of 14 and 6 */
    LS_COLS = 256,                  /* columns of a block */
};

/* c[rows][nv * LS_V] = init + a * b. a(i, k) is at a[i * lda + k], or a[k * lda + i] when turned; init has
 * row distance ldi, 0 for a bias that all rows share. */
#define LS_MICRO_PARAMS int64_t k, const real *restrict a, int64_t lda, const real *restrict b, \
    int64_t ldb, const real *init, int64_t ldi, real *c, int64_t ldc

LS_INLINE void ls_micro_body(const int rows, const int nv, const bool turned, LS_MICRO_PARAMS)
{
    ls_vec s[LS_MR][2];
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) {
        s[i][0] = ls_load(init + i * ldi);
        s[i][1] = nv == 2 ? ls_load(init + i * ldi + LS_V) : (ls_vec){0};
    }
    for (; k > 0; k--) {
        ls_vec b0 = ls_load(b), b1 = nv == 2 ? ls_load(b + LS_V) : b0;
#pragma GCC unroll 14
        for (int i = 0; i < rows; i++) {
            ls_vec x = ls_splat(turned ? a[i] : a[i * lda]);
            s[i][0] += x * b0;
            if (nv == 2)
                s[i][1] += x * b1;
        }
        a += turned ? lda : 1;
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

/* c[m][n] = init + a * panel, n <= LS_NR. Panels are LS_NR wide, or LS_V where n <= LS_V. Outside its n
 * columns c is not touched and init not read. */
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

/* Where accumulation starts without a bias. */
static const real ls_no_bias[LS_COLS] __attribute__((unused));

/* Width of the panel that begins with n columns to go, and size of a matrix of n columns in panels. */
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

/* The same from B turned: to[k][width] = scale * b[j * ldb + k]. */
LS_SHARED_FN void ls_pack_turned(real *restrict to, const real *restrict b, int64_t ldb, int64_t k,
                                 int64_t n, real scale)
{
    int64_t width = ls_panel_width(n);
    n = ls_least(n, width);
    for (int64_t i = 0; i < k; i++, to += width) {
        for (int64_t j = 0; j < n; j++)
            to[j] = scale * b[j * ldb + i];
        for (int64_t j = n; j < width; j++)
            to[j] = 0;
    }
}

/* c[m][n] = alpha * a * b + bias; `turn_a`: a is [k][m], `turn_b`: b is [n][k] in memory. */
typedef struct LsMatmul {
    int64_t m, n, k;
    bool turn_a, turn_b;
    real alpha;
    int64_t rows, cols;     /* of a block, at most LS_ROWS and LS_COLS */
} LsMatmul;

/* Blocks of one product: enough for several threads where it is large, each worth its packing. */
LS_SHARED_FN LsMatmul ls_matmul_blocks(LsMatmul d)
{
    d.rows = LS_ROWS;
    d.cols = LS_COLS;
    while (ls_ceil_div(d.m, d.rows) * ls_ceil_div(d.n, d.cols) < 16 && d.cols > 64)
        d.cols /= 2;
    return d;
}

LS_SHARED_FN int64_t ls_matmul_units(const LsMatmul *d)
{
    LsMatmul b = ls_matmul_blocks(*d);
    return ls_ceil_div(d->m, b.rows) * ls_ceil_div(d->n, b.cols);
}

LS_SHARED_FN void ls_matmul_unit(const LsMatmul *shape, const real *a, const real *b, const real *bias,
                                 real *c, int64_t unit)
{
    const LsMatmul d = ls_matmul_blocks(*shape);
    int64_t col_blocks = ls_ceil_div(d.n, d.cols);
    int64_t i0 = unit / col_blocks * d.rows, j0 = unit % col_blocks * d.cols;
    int64_t m = ls_least(d.rows, d.m - i0), n = ls_least(d.cols, d.n - j0);
    int64_t lda = d.turn_a ? d.m : d.k, ldb = d.turn_b ? d.k : d.n;
    _Alignas(64) real panels[LS_KC * LS_COLS];
    for (int64_t k0 = 0; k0 < d.k; k0 += LS_KC) {
        int64_t k = ls_least(LS_KC, d.k - k0);
        const real *ak = d.turn_a ? a + k0 * lda + i0 : a + i0 * lda + k0;
        for (int64_t j = 0; j < n; j += LS_NR) {
            real *panel = panels + j * k, *cj = c + i0 * d.n + j0 + j;
            if (d.turn_b)
                ls_pack_turned(panel, b + (j0 + j) * ldb + k0, ldb, k, n - j, d.alpha);
            else
                ls_pack_rows(panel, b + k0 * ldb + j0 + j, ldb, k, n - j, d.alpha);
            const real *init = k0 > 0 ? cj : bias != NULL ? bias + j0 + j : ls_no_bias;
            ls_panel(d.turn_a, m, ls_least(LS_NR, n - j), k, ak, lda, panel, ls_panel_width(n - j),
                     init, k0 > 0 ? d.n : 0, cj, d.n);
        }
    }
}

#endif
