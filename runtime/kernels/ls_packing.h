/* runtime/kernels/ls_packing.h -- matrices in the form that the micro-kernel of ls_gemm.h takes:
 * panels of B, and tiles of a transposed A. */
#ifndef LS_RUNTIME_KERNELS_LS_PACKING_H
#define LS_RUNTIME_KERNELS_LS_PACKING_H

#include "runtime/kernels/ls_amx_pack.h"

/* Width of a panel with n columns left, and size of a matrix of n columns in panels. */
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

/* to[k][j] = from[j][k] for a 4 x 4 square. */
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

/* to[k * ldt + j] = from[j][k] for an LS_V x LS_V square. */
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

/* to[k * ldt + j] = scale * from[j * ldf + k], k < 4, j < LS_V, by whole vectors: each holds four
 * elements of every fourth row, and 4 x 4 squares are transposed side by side. */
#if LS_VEC_BYTES >= 8 * LS_REAL_BYTES
#if LS_VEC_BYTES == 16 * LS_REAL_BYTES
#define LS_FOURS 4
#define LS_WIDE(a, b, i, j, k, l)                                                                  \
    __builtin_shufflevector(a, b, i, j, k, l, i + 4, j + 4, k + 4, l + 4, i + 8, j + 8, k + 8,    \
                            l + 8, i + 12, j + 12, k + 12, l + 12)
#else
#define LS_FOURS 2
#define LS_WIDE(a, b, i, j, k, l)                                                                  \
    __builtin_shufflevector(a, b, i, j, k, l, i + 4, j + 4, k + 4, l + 4)
#endif
typedef real ls_vec8
    __attribute__((vector_size(8 * sizeof(real)), aligned(sizeof(real)), may_alias));
LS_INLINE ls_vec ls_load_fours(const real *from, int64_t ldf)
{
    ls_vec8 x[LS_FOURS / 2];
    for (int i = 0; i < LS_FOURS; i += 2)
        x[i / 2] = __builtin_shufflevector(*(const ls_vec4 *)(from + 4 * i * ldf),
                                           *(const ls_vec4 *)(from + 4 * (i + 1) * ldf), 0, 1, 2,
                                           3, 4, 5, 6, 7);
#if LS_FOURS == 4
    return __builtin_shufflevector(x[0], x[1], 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
                                   15);
#else
    return x[0];
#endif
}

LS_INLINE void ls_turn_wide(real *to, int64_t ldt, const real *from, int64_t ldf, real scale)
{
    ls_vec a = ls_load_fours(from, ldf), b = ls_load_fours(from + ldf, ldf);
    ls_vec c = ls_load_fours(from + 2 * ldf, ldf), d = ls_load_fours(from + 3 * ldf, ldf);
    ls_vec ab = LS_WIDE(a, b, 0, LS_V, 1, LS_V + 1), cd = LS_WIDE(c, d, 0, LS_V, 1, LS_V + 1);
    ls_store(to, scale * LS_WIDE(ab, cd, 0, 1, LS_V, LS_V + 1));
    ls_store(to + ldt, scale * LS_WIDE(ab, cd, 2, 3, LS_V + 2, LS_V + 3));
    ab = LS_WIDE(a, b, 2, LS_V + 2, 3, LS_V + 3);
    cd = LS_WIDE(c, d, 2, LS_V + 2, 3, LS_V + 3);
    ls_store(to + 2 * ldt, scale * LS_WIDE(ab, cd, 0, 1, LS_V, LS_V + 1));
    ls_store(to + 3 * ldt, scale * LS_WIDE(ab, cd, 2, 3, LS_V + 2, LS_V + 3));
}
#else
LS_INLINE void ls_turn_wide(real *to, int64_t ldt, const real *from, int64_t ldf, real scale)
{
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < LS_V; j++)
            to[i * ldt + j] = scale * from[j * ldf + i];
}
#endif

/* The same for a transposed B: to[k][width] = scale * b[j * ldb + k]. */
LS_SHARED_FN void ls_pack_turned(real *restrict to, const real *restrict b, int64_t ldb, int64_t k,
                                 int64_t n, real scale)
{
    int64_t width = ls_panel_width(n), whole = k / 4 * 4, wide;
    n = ls_least(n, width);
    wide = n / LS_V * LS_V;
    for (int64_t i = 0; i < whole; i += LS_LINE)
        for (int64_t j = 0; j < wide; j += LS_V)
            for (int64_t q = i; q < ls_least(i + LS_LINE, whole); q += 4)
                ls_turn_wide(to + q * width + j, width, b + j * ldb + q, ldb, scale);
    for (int64_t i = 0; i < k; i++) {
        for (int64_t j = i < whole ? wide : 0; j < n; j++)
            to[i * width + j] = scale * b[j * ldb + i];
        if (n < width)
            ls_zero(to + i * width + n, width - n);
    }
}

/* ls_pack_rows and ls_pack_turned from element `at` of memory of any type. */
LS_SHARED_FN void ls_pack_rows_of(real *restrict to, LsSource b, int64_t at, int64_t ldb, int64_t k,
                                  int64_t n, real scale)
{
    if (ls_is_plain(b)) {
        ls_pack_rows(to, ls_reals(b) + at, ldb, k, n, scale);
        return;
    }
    real row[LS_NR];
    for (int64_t i = 0; i < k; i++, to += ls_panel_width(n)) {
        ls_take(b, at + i * ldb, row, ls_least(n, ls_panel_width(n)));
        ls_pack_rows(to, row, 0, 1, n, scale);
    }
}
LS_SHARED_FN void ls_pack_turned_of(real *restrict to, LsSource b, int64_t at, int64_t ldb,
                                    int64_t k, int64_t n, real scale)
{
    enum { SOME = 4 * LS_LINE };
    _Alignas(64) real rows[LS_NR * SOME];
    if (ls_is_plain(b)) {
        ls_pack_turned(to, ls_reals(b) + at, ldb, k, n, scale);
        return;
    }
    for (int64_t i = 0; i < k; i += SOME) {
        int64_t some = ls_least(SOME, k - i);
        for (int64_t j = 0; j < ls_least(n, LS_NR); j++)
            ls_take(b, at + j * ldb + i, rows + j * SOME, some);
        ls_pack_turned(to + i * ls_panel_width(n), rows, SOME, some, n, scale);
    }
}

/* The tiles of ls_tile_turned from rows place .. place + k, channels c .. c + m, of a source that
 * is not in place. */
LS_SHARED_FN void ls_tile_computed(real *restrict to, LsSource a, int64_t place, int64_t c,
                                   int64_t k, int64_t m)
{
    enum { SOME = 16, LD = LS_DW_ROWS + LS_TILE_LD };
    _Alignas(64) real rows[SOME * LD];
    for (int64_t q = 0; q < k; q += SOME) {
        int64_t some = ls_least(SOME, k - q);
        ls_source_rows(a, place + q, 1, some, c, m, rows, LD);
        for (int64_t i = 0; i < m; i += LS_MR)
            for (int64_t r = 0; r < some; r++)
                ls_copy(to + (i / LS_MR * k + q + r) * LS_TILE_LD, rows + r * LD + i,
                        ls_least(LS_MR, m - i));
    }
}

/* The tiles of k elements as tiles of words, in place, for dot products that take them. */
LS_SHARED_FN void ls_tile_words(int dots, real *tiles, int64_t k, int64_t m)
{
    for (int64_t i = 0; i < ls_ceil_div(m, LS_MR) && (dots & LS_WORDS) != 0; i++)
        ls_words_down(tiles + i * ls_dot_depth(dots, k) * LS_TILE_LD, tiles + i * k * LS_TILE_LD, k,
                      LS_TILE_LD, 0);
}

/* Size of a block of at most `most`, a multiple of `step`, such that all blocks are about equal. */
LS_INLINE int64_t ls_even_block(int64_t n, int64_t most, int64_t step)
{
    return ls_ceil_div(ls_ceil_div(n, ls_ceil_div(n, most)), step) * step;
}

#endif
