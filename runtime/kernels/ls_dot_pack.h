/* runtime/kernels/ls_dot_pack.h -- factors of bfloat16, packed as the program's unit takes them
 * (ls_dot16.h), and their product. Sources are rows of memory, source.row elements apart, which are
 * stored in bfloat16 or rounded to it. */
#ifndef LS_RUNTIME_KERNELS_LS_DOT_PACK_H
#define LS_RUNTIME_KERNELS_LS_DOT_PACK_H

#include "runtime/kernels/ls_packing.h"

/* Panels of B's rows i .. i + k, all n columns of them, ls_panel_pitch rows apart. */
LS_SHARED_FN void ls_dot_panels(LsSource b, int64_t i, int64_t k, int64_t n, real *to)
{
    enum { MOST = 8 * LS_VEC_BYTES };           /* columns that ls_words_panels takes */
    const int64_t pitch = ls_panel_pitch(LS_DOTS, k);
    for (int64_t c = 0; c < n && LS_AMX; c += MOST)
        ls_words_panels(b, c, ls_least(MOST, n - c), i, k, to + c * pitch, pitch);
    for (int64_t c = 0; c < n && !LS_AMX; c += LS_NR) {
        real *const panel = to + c * pitch;
        ls_pack_rows_of(panel, b, i * b.row + c, b.row, k, n - c, 1);
        if (LS_WORDS)
            ls_words_down(panel, panel, k, ls_panel_width(n - c), LS_WORD_FILL);
    }
}

/* The same of a transposed B: its columns are rows j .. j + n, of k elements. */
LS_SHARED_FN void ls_dot_turned_panels(LsSource b, int64_t j, int64_t n, int64_t k, real *to)
{
    const int64_t pitch = ls_panel_pitch(LS_DOTS, k);
    if (LS_AMX)
        ls_words_turned_panels(b, j * b.row, b.row, n, k, to, pitch);
    for (int64_t c = 0; c < n && !LS_AMX; c += LS_NR) {
        real *const panel = to + c * pitch;
        ls_pack_turned_of(panel, b, (j + c) * b.row, b.row, k, n - c, 1);
        if (LS_WORDS)
            ls_words_down(panel, panel, k, ls_panel_width(n - c), LS_WORD_FILL);
    }
}

/* Rows i .. i + m of A, of k elements, as rows `ld` apart. */
LS_SHARED_FN void ls_dot_rows(LsSource a, int64_t i, int64_t m, int64_t k, real *to, int64_t ld)
{
    if (LS_AMX) {
        ls_words_rows(a, i, m, 0, k, to, ld);
        return;
    }
    ls_source_rows(a, i, 1, m, 0, k, to, ld);
    if (LS_WORDS)
        ls_words_along(to, ld, m, k);
}

/* The m leading columns of a transposed A, of k rows; m: at most LS_DW_ROWS. In tiles, or in rows
 * `ld` apart. AMX tiles are made of rows that ls_dot_rows has packed, ldp apart. */
LS_SHARED_FN void ls_dot_turned_rows(LsSource a, const real *packed, int64_t ldp, int64_t m,
                                     int64_t k, real *to, int64_t ld)
{
    if (LS_AMX) {
        ls_words_turned_near((const ls_bf16 *)packed, 2 * ldp, m, k, to, ld);
        return;
    }
    ls_tile_computed(to, a, 0, 0, k, m);
    ls_tile_words(LS_DOTS, to, k, m);
}

/* A sum of k terms for m rows of A, made by ls_dot_rows or, `turned`, by ls_dot_turned_rows. */
typedef struct LsDotRows { bool turned; int64_t m, k; const real *at; int64_t ld; } LsDotRows;

/* c[m][n] = init + a * panels, which have `rows` rows each, of which the first `skip` are left out,
 * whole tiles. Called between ls_dots_begin and ls_dots_end. */
LS_INLINE void ls_dot_multiply(LsDotRows a, int64_t n, const real *panels, int64_t rows,
                               int64_t skip, const real *init, int64_t ldi, real *c, int64_t ldc)
{
    const int64_t pitch = ls_panel_pitch(LS_DOTS, rows), k = ls_dot_depth(LS_DOTS, a.k);
    for (int64_t j = 0; j < n; j += LS_NR) {
        const int64_t width = ls_panel_width(n - j), some = ls_least(LS_NR, n - j);
        const real *const b = panels + j * pitch + ls_dot_depth(LS_DOTS, skip) * width;
        const real *const from = ldi > 0 ? init + j : init;
        if (a.turned && !LS_AMX)
            ls_panel_tiles(LS_DOTS, a.m, some, k, a.at, b, width, from, ldi, c + j, ldc);
        else
            ls_panel(LS_DOTS, a.m, some, k, a.at, a.ld, b, width, from, ldi, c + j, ldc);
    }
}

#endif
