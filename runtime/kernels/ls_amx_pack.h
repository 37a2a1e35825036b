/* runtime/kernels/ls_amx_pack.h -- factors of AMX tiles (ls_amx.h): matrices of bfloat16 become
 * words of two adjacent k, without a detour through f32. What fills up A is 0, and B -0: the
 * products change no sum. */
#ifndef LS_RUNTIME_KERNELS_LS_AMX_PACK_H
#define LS_RUNTIME_KERNELS_LS_AMX_PACK_H

#include "runtime/kernels/ls_gemm.h"

enum {
    LS_AMX_ROWS = 4 * LS_AMX_SIDE,      /* rows of A that are packed at a time */
    LS_AMX_WORDS = LS_APART_DEPTH / 2,  /* words along k of a tile */
    LS_WORDS_COLS = 128,                /* most columns of panels that are made of single rows */
};

_Static_assert((int)LS_AMX_ROWS <= (int)LS_DW_ROWS,
               "rows of A fit where those of gradients of weights do");

#ifdef LS_AMX_UNIT
/* Elements at .. at + n of memory of any type, rounded if need be. */
LS_INLINE void ls_take_brains(LsSource s, int64_t at, ls_bf16 *restrict to, int64_t n)
{
    enum { SOME = 256 };
    real each[SOME];
    if (s.type == LS_STORED_BF16) {
        memcpy(to, (const ls_bf16 *)s.at + at, (size_t)n * sizeof *to);
        return;
    }
    if (s.type == LS_STORED_REAL) {
        ls_give(LS_STORED_BF16, to, 0, ls_reals(s) + at, n);
        return;
    }
    for (int64_t i = 0; i < n; i += SOME) {
        ls_take(s, at + i, each, ls_least(SOME, n - i));
        ls_give(LS_STORED_BF16, to, i, each, ls_least(SOME, n - i));
    }
}

/* Channels c .. c + n of `count` places from `place` on, computed or not, to rows ld apart. */
LS_SHARED_FN void ls_brain_rows(LsSource s, int64_t place, int64_t count, int64_t c, int64_t n,
                                ls_bf16 *to, int64_t ld)
{
    enum { ROOM = 16 * 1024 };
    _Alignas(64) real rows[ROOM];
    if (s.compute == NULL) {
        for (int64_t q = 0; q < count; q++)
            ls_take_brains(s, (place + q) * s.row + c, to + q * ld, n);
        return;
    }
    for (int64_t q = 0, some; q < count; q += some) {
        some = ls_least(ROOM / n, count - q);
        s.compute(s.run, s.arg, place + q, 1, some, c, n, rows, n);
        for (int64_t r = 0; r < some; r++)
            ls_give(LS_STORED_BF16, to + (q + r) * ld, 0, rows + r * n, n);
    }
}

LS_INLINE void ls_fill_brains(ls_bf16 *to, int64_t n, uint16_t bits)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (ls_bf16){bits};
}

/* to[c][r] = from[r][c] of 16 x 16 words: 2 x 2 squares of words, of pairs, of fours, of eights. */
LS_INLINE void ls_words_square(real *to, int64_t ldt, const real *from, int64_t ldf)
{
#define LS_FOUR_TIMES(a, b, i, j, k, l)                                                            \
    __builtin_shufflevector(a, b, i, j, k, l, i + 4, j + 4, k + 4, l + 4, i + 8, j + 8, k + 8,     \
                            l + 8, i + 12, j + 12, k + 12, l + 12)
#define LS_FOURS_OF(a, b, i, j)                                                                    \
    __builtin_shufflevector(a, b, i, i + 1, i + 2, i + 3, j, j + 1, j + 2, j + 3, i + 16, i + 17,  \
                            i + 18, i + 19, j + 16, j + 17, j + 18, j + 19)
    ls_vec_32 a[16], b[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; i++)
        a[i] = (ls_vec_32)ls_load(from + i * ldf);
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 2) {
        b[i] = LS_FOUR_TIMES(a[i], a[i + 1], 0, 16, 1, 17);
        b[i + 1] = LS_FOUR_TIMES(a[i], a[i + 1], 2, 18, 3, 19);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 16; i += 4)
        for (int j = 0; j < 2; j++) {
            a[i + 2 * j] = LS_FOUR_TIMES(b[i + j], b[i + 2 + j], 0, 1, 16, 17);
            a[i + 2 * j + 1] = LS_FOUR_TIMES(b[i + j], b[i + 2 + j], 2, 3, 18, 19);
        }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 2; j++) {
            const ls_vec_32 low =
                j == 0 ? LS_FOURS_OF(a[i], a[4 + i], 0, 8) : LS_FOURS_OF(a[i], a[4 + i], 4, 12);
            const ls_vec_32 high = j == 0 ? LS_FOURS_OF(a[8 + i], a[12 + i], 0, 8)
                                          : LS_FOURS_OF(a[8 + i], a[12 + i], 4, 12);
            ls_store(to + (4 * j + i) * ldt, (ls_vec)LS_FOURS_OF(low, high, 0, 8));
            ls_store(to + (8 + 4 * j + i) * ldt, (ls_vec)LS_FOURS_OF(low, high, 4, 12));
        }
#undef LS_FOUR_TIMES
#undef LS_FOURS_OF
}

/* The same of any multiples of 16. */
LS_INLINE void ls_words_transpose(real *to, int64_t ldt, const real *from, int64_t ldf,
                                  int64_t rows, int64_t cols)
{
    for (int64_t r = 0; r < rows; r += 16)
        for (int64_t c = 0; c < cols; c += 16)
            ls_words_square(to + c * ldt + r, ldt, from + r * ldf + c, ldf);
}

/* A row of words from two rows; width: a multiple of 16. */
typedef uint16_t ls_brains __attribute__((vector_size(64), aligned(2), may_alias));
LS_INLINE void ls_words_of_pair(real *to, const ls_bf16 *even, const ls_bf16 *odd, int64_t width)
{
    int64_t j = 0;
    for (; j + 32 <= width; j += 32) {
        const ls_brains a = *(const ls_brains *)(even + j), b = *(const ls_brains *)(odd + j);
        *(ls_brains *)(to + j) =
            __builtin_shufflevector(a, b, 0, 32, 1, 33, 2, 34, 3, 35, 4, 36, 5, 37, 6, 38, 7, 39, 8,
                                    40, 9, 41, 10, 42, 11, 43, 12, 44, 13, 45, 14, 46, 15, 47);
        *(ls_brains *)(to + j + 16) = __builtin_shufflevector(
            a, b, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53, 22, 54, 23, 55, 24, 56, 25, 57,
            26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63);
    }
    for (; j < width; j += LS_V) {
        const ls_vec_32 low = __builtin_convertvector(*(const ls_vec_16 *)(even + j), ls_vec_32);
        const ls_vec_32 high = __builtin_convertvector(*(const ls_vec_16 *)(odd + j), ls_vec_32);
        ls_store(to + j, (ls_vec)(low | high << 16));
    }
}

/* Makes panels of words, `pitch` rows apart, of rows that come one by one: in pairs, up to a whole
 * tile. */
typedef struct LsWordsRows {
    real *to;
    int64_t n, pitch, taken;    /* columns of a row, at most LS_WORDS_COLS; rows */
    ls_bf16 pair[2][LS_WORDS_COLS];
} LsWordsRows;

LS_INLINE void ls_words_rows_next(LsWordsRows *r)
{
    const int64_t row = r->taken++ / 2;
    if (r->taken % 2 == 0)
        for (int64_t c = 0; c < r->n; c += LS_NR) {
            const int64_t width = r->n - c > LS_V ? LS_NR : LS_V;
            ls_words_of_pair(r->to + c * r->pitch + row * width, r->pair[0] + c, r->pair[1] + c,
                             width);
        }
}

/* The next row, from `at` on. */
LS_INLINE void ls_words_rows_take(LsWordsRows *r, LsSource s, int64_t at)
{
    ls_bf16 *const row = r->pair[r->taken % 2];
    if (r->n == LS_WORDS_COLS) {
        ls_take_brains(s, at, row, LS_WORDS_COLS);
    } else {
        ls_take_brains(s, at, row, r->n);
        ls_fill_brains(row + r->n, ls_ceil_div(r->n, LS_V) * LS_V - r->n, 0);
    }
    ls_words_rows_next(r);
}

LS_INLINE void ls_words_rows_end(LsWordsRows *r)
{
    while (r->taken % LS_APART_DEPTH != 0) {
        ls_fill_brains(r->pair[r->taken % 2], LS_WORDS_COLS, LS_WORD_FILL >> 16);
        ls_words_rows_next(r);
    }
}

/* A panel of k rows, ld apart and at least 32 wide; what fills up is B's. */
LS_SHARED_FN void ls_words_panel(real *to, const ls_bf16 *rows, int64_t ld, int64_t k)
{
    ls_bf16 none[LS_NR];
    ls_fill_brains(none, LS_NR, LS_WORD_FILL >> 16);
    for (int64_t q = 0; q < 2 * ls_dot_depth(LS_DOTS, k); q += 2, to += LS_NR)
        ls_words_of_pair(to, q < k ? rows + q * ld : none, q + 1 < k ? rows + (q + 1) * ld : none,
                         LS_NR);
}

/* Rows i .. i + m of A at depths k0 .. k0 + k, as rows of words `ld` apart. */
LS_SHARED_FN void ls_words_rows(LsSource a, int64_t i, int64_t m, int64_t k0, int64_t k, real *to,
                                int64_t ld)
{
    ls_bf16 *const brain = (ls_bf16 *)to;
    ls_brain_rows(a, i, m, k0, k, brain, 2 * ld);
    for (int64_t r = 0; r < m; r++)
        ls_fill_brains(brain + 2 * r * ld + k, 2 * ls_dot_depth(LS_DOTS, k) - k, 0);
}

/* The same of a transposed A: places are depths, channels rows. m: at most LS_DW_ROWS. */
LS_SHARED_FN void ls_words_turned(LsSource a, int64_t i, int64_t m, int64_t k0, int64_t k, real *to,
                                  int64_t ld)
{
    enum { LD = LS_DW_ROWS };
    _Alignas(64) ls_bf16 brain[LS_APART_DEPTH * LD];
    _Alignas(64) real words[LS_AMX_WORDS * LD];
    const int64_t wide = ls_ceil_div(m, 16) * 16;
    for (int64_t r = 0; r < LS_APART_DEPTH && m < wide; r++)
        ls_fill_brains(brain + r * LD + m, wide - m, 0);
    for (int64_t q = 0; q < k; q += LS_APART_DEPTH, to += LS_AMX_WORDS) {
        const int64_t some = ls_least(LS_APART_DEPTH, k - q);
        ls_brain_rows(a, k0 + q, some, i, m, brain, LD);
        for (int64_t r = some; r < LS_APART_DEPTH; r++)
            ls_fill_brains(brain + r * LD, wide, 0);
        for (int64_t r = 0; r < LS_AMX_WORDS; r++)
            ls_words_of_pair(words + r * LD, brain + 2 * r * LD, brain + (2 * r + 1) * LD, wide);
        ls_words_transpose(to, ld, words, LD, LS_AMX_WORDS, wide);
    }
}

/* The same of k rows in reach, lda apart, whose elements go on to a multiple of 16 (what lies there
 * does not matter). */
LS_SHARED_FN void ls_words_turned_near(const ls_bf16 *a, int64_t lda, int64_t m, int64_t k,
                                       real *to, int64_t ld)
{
    enum { LD = LS_DW_ROWS };
    _Alignas(64) ls_bf16 none[LD];
    _Alignas(64) real words[LS_AMX_WORDS * LD];
    const int64_t wide = ls_ceil_div(m, 16) * 16;
    ls_fill_brains(none, wide, 0);
    for (int64_t q = 0; q < k; q += LS_APART_DEPTH, to += LS_AMX_WORDS) {
        for (int64_t r = 0; r < LS_AMX_WORDS; r++) {
            const int64_t even = q + 2 * r, odd = even + 1;
            ls_words_of_pair(words + r * LD, even < k ? a + even * lda : none,
                             odd < k ? a + odd * lda : none, wide);
        }
        ls_words_transpose(to, ld, words, LD, LS_AMX_WORDS, wide);
    }
}

/* Panels of B's rows k0 .. k0 + k and columns j .. j + n, n at most LS_ACROSS, `pitch` rows
 * apart. */
LS_SHARED_FN void ls_words_panels(LsSource b, int64_t j, int64_t n, int64_t k0, int64_t k, real *to,
                                  int64_t pitch)
{
    enum { SOME = 8, LD = 8 * LS_VEC_BYTES + LS_NR };
    _Alignas(64) ls_bf16 brain[SOME * LD];
    const int64_t wide = ls_ceil_div(n, LS_V) * LS_V, depth = 2 * ls_dot_depth(LS_DOTS, k);
    for (int64_t r = 0; r < SOME && n < wide; r++)
        ls_fill_brains(brain + r * LD + n, wide - n, 0);
    for (int64_t q = 0; q < depth; q += SOME) {
        const int64_t some = ls_most(ls_least(SOME, k - q), 0);
        for (int64_t r = 0; r < SOME && b.compute == NULL && q + SOME + r < k; r++)
            ls_source_prefetch(b, (k0 + q + SOME + r) * b.row + j, n);
        ls_brain_rows(b, k0 + q, some, j, n, brain, LD);
        for (int64_t r = some; r < SOME; r++)
            ls_fill_brains(brain + r * LD, wide, LS_WORD_FILL >> 16);
        for (int64_t c = 0; c < wide; c += LS_NR) {
            const int64_t width = ls_least(LS_NR, wide - c);
            for (int64_t r = 0; r < SOME; r += 2)
                ls_words_of_pair(to + c * pitch + (q + r) / 2 * width, brain + r * LD + c,
                                 brain + (r + 1) * LD + c, width);
        }
    }
}

/* The same of a transposed B: place j has the column's elements. `at`: element k0 of column j, ld:
 * from one to the next. */
LS_SHARED_FN void ls_words_turned_panels(LsSource b, int64_t at, int64_t ld, int64_t n, int64_t k,
                                         real *to, int64_t pitch)
{
    enum { SOME = 4 * LS_APART_DEPTH, LD = SOME / 2 + LS_V };       /* of k; words of a row */
    _Alignas(64) real rows[LS_NR * LD];
    for (int64_t j = 0; j < n; j += LS_NR, to += LS_NR * pitch, at += LS_NR * ld) {
        const int64_t cols = ls_least(LS_NR, n - j), width = cols > LS_V ? LS_NR : LS_V;
        memset(rows + cols * LD, 0, (size_t)(width - cols) * LD * sizeof *rows);
        for (int64_t q = 0; q < k; q += SOME) {
            const int64_t some = ls_least(SOME, k - q), words = ls_dot_depth(LS_DOTS, some);
            for (int64_t c = 0; c < cols; c++) {
                ls_bf16 *const brain = (ls_bf16 *)(rows + c * LD);
                ls_source_prefetch(b, at + c * ld + q + SOME, ls_least(SOME, k - q - some));
                ls_take_brains(b, at + c * ld + q, brain, some);
                ls_fill_brains(brain + some, 2 * words - some, LS_WORD_FILL >> 16);
            }
            ls_words_transpose(to + q / 2 * width, width, rows, LD, width, words);
        }
    }
}
#else       /* never called */
typedef struct LsWordsRows { real *to; int64_t n, pitch; } LsWordsRows;
LS_INLINE void ls_words_rows_take(LsWordsRows *r, LsSource s, int64_t at)
{
    (void)r, (void)s, (void)at;
}
LS_INLINE void ls_words_rows_end(LsWordsRows *r) { (void)r; }
LS_INLINE void ls_words_panel(real *to, const ls_bf16 *rows, int64_t ld, int64_t k)
{
    (void)to, (void)rows, (void)ld, (void)k;
}
LS_INLINE void ls_words_rows(LsSource a, int64_t i, int64_t m, int64_t k0, int64_t k, real *to,
                             int64_t ld)
{
    (void)a, (void)i, (void)m, (void)k0, (void)k, (void)to, (void)ld;
}
LS_INLINE void ls_words_turned(LsSource a, int64_t i, int64_t m, int64_t k0, int64_t k, real *to,
                               int64_t ld)
{
    ls_words_rows(a, i, m, k0, k, to, ld);
}
LS_INLINE void ls_words_turned_near(const ls_bf16 *a, int64_t lda, int64_t m, int64_t k, real *to,
                                    int64_t ld)
{
    (void)a, (void)lda, (void)m, (void)k, (void)to, (void)ld;
}
LS_INLINE void ls_words_panels(LsSource b, int64_t j, int64_t n, int64_t k0, int64_t k, real *to,
                               int64_t pitch)
{
    ls_words_rows(b, j, n, k0, k, to, pitch);
}
LS_INLINE void ls_words_turned_panels(LsSource b, int64_t at, int64_t ld, int64_t n, int64_t k,
                                      real *to, int64_t pitch)
{
    ls_words_rows(b, at, ld, n, k, to, pitch);
}
#endif

#endif
