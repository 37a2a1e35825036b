/* runtime/kernels/ls_conv_pack.h -- what direct convolutions and data gradients begin and end with:
 * the weights in panels, and results at the places of their positions. */
#ifndef LS_RUNTIME_KERNELS_LS_CONV_PACK_H
#define LS_RUNTIME_KERNELS_LS_CONV_PACK_H

#include "runtime/kernels/ls_gather.h"

/* Columns of a unit of packing: rows of words are as long as pays. */
LS_INLINE int64_t ls_conv_pack_cols(const LsConv *d)
{
    return d->dot16 & LS_AMX ? LS_WORDS_COLS : LS_NR;
}
LS_INLINE int64_t ls_conv_panels(const LsConv *d)
{
    return d->group * ls_ceil_div(d->cout, ls_conv_pack_cols(d));
}

/* Distance of panels in rows. */
LS_INLINE int64_t ls_conv_pitch(const LsConv *d)
{
    return ls_panel_pitch(d->dot16 & LS_DOTS, ls_conv_depth(d));
}

LS_INLINE real *ls_conv_panel(const LsConv *d, real *packed, int64_t g, int64_t j)
{
    return packed + d->packed + ls_conv_pitch(d) * (g * ls_packed_cols(d->cout) + j);
}

/* Rows k0..k0+k of the panel of columns j..: w[cout][taps][cin] transposed, or, for the data
 * gradient, w[cin][kernel][cout] with the phase's taps only. As reals; and as the micro-kernel
 * takes them. */
LS_SHARED_FN void ls_conv_panel_reals(const LsConv *d, LsSource w, int64_t g, int64_t j,
                                     int64_t k0, int64_t k, real *to)
{
    int64_t kernel = ls_conv_kernel(d), n = d->cout - j, depth = ls_conv_depth(d);
    if (!d->back) {
        ls_pack_turned_of(to, w, (g * d->cout + j) * depth + k0, depth, k, n, 1);
        return;
    }
    while (k > 0) {
        int64_t c = k0 % d->cin, some = ls_least(k, d->cin - c);
        ls_pack_rows_of(to, w,
                        ((g * d->cin + c) * kernel + ls_conv_tap(d, k0 / d->cin)) * d->cout + j,
                        kernel * d->cout, some, n, 1);
        to += some * ls_panel_width(n);
        k0 += some;
        k -= some;
    }
}

/* Panels of n columns, `pitch` rows apart, as words of AMX tiles, without reals in between. */
LS_SHARED_FN void ls_conv_panel_words(const LsConv *d, LsSource w, int64_t g, int64_t j, int64_t n,
                                      int64_t k0, int64_t k, real *to, int64_t pitch)
{
    enum { AHEAD = 16 };        /* rows: each is far from the one before it, where the processor
                                 * prefetches nothing */
    const int64_t depth = ls_conv_depth(d), kernel = ls_conv_kernel(d);
    LsWordsRows rows = {.to = to, .n = n, .pitch = pitch};
    if (!d->back) {
        ls_words_turned_panels(w, (g * d->cout + j) * depth + k0, depth, n, k, to, pitch);
        return;
    }
    for (int64_t end = k0 + k, some; k0 < end; k0 += some) {
        const int64_t c = k0 % d->cin, tap = ls_conv_tap(d, k0 / d->cin);
        some = ls_least(end - k0, d->cin - c);
        for (int64_t q = 0; q < some; q++) {
            const int64_t at = ((g * d->cin + c + q) * kernel + tap) * d->cout + j;
            if (q + AHEAD < some)
                ls_source_prefetch(w, at + AHEAD * kernel * d->cout, n);
            ls_words_rows_take(&rows, w, at);
        }
    }
    ls_words_rows_end(&rows);
}

/* Panels of n columns, at most LS_WORDS_COLS, as the micro-kernel takes them. */
LS_INLINE void ls_conv_panel_rows(const LsConv *d, LsSource w, int64_t g, int64_t j, int64_t n,
                                  int64_t k0, int64_t k, real *to, int64_t pitch)
{
    if (d->dot16 & LS_AMX) {
        ls_conv_panel_words(d, w, g, j, n, k0, k, to, pitch);
        return;
    }
    for (int64_t c = 0; c < n; c += LS_NR) {
        ls_conv_panel_reals(d, w, g, j + c, k0, k, to + c * pitch);
        if (d->dot16 & LS_WORDS)
            ls_words_down(to + c * pitch, to + c * pitch, k, ls_panel_width(n - c), LS_WORD_FILL);
    }
}

LS_SHARED_FN void ls_conv_pack(const LsConv *d, const LsConvArgs *arg, int64_t unit)
{
    const int64_t cols = ls_conv_pack_cols(d), per_group = ls_ceil_div(d->cout, cols);
    const int64_t g = unit / per_group, j = unit % per_group * cols;
    ls_conv_panel_rows(d, arg->w, g, j, ls_least(cols, d->cout - j), 0, ls_conv_depth(d),
                       ls_conv_panel(d, arg->packed, g, j), ls_conv_pitch(d));
}

/* Writes rows of a block to the places of their positions, from channel `first` on. */
LS_SHARED_FN void ls_conv_scatter(const LsConv *d, const LsConvArgs *arg, int64_t p, int64_t m,
                                  int64_t n, const real *from, int64_t ld, int64_t first)
{
    const LsAxis *a = d->ax;
    LsPlace at = ls_place(d, p);
    for (int64_t i = 0; i < m; i++, ls_next(d, &at)) {
        int64_t to = at.image;
        for (int k = 0; k < 3; k++)
            to = to * a[k].to_dim + a[k].to + a[k].to_step * at.i[k];
        to = to * d->group * d->cout + first;
        if (arg->to == LS_STORED_REAL)
            ls_copy((real *)arg->y + to, from + i * ld, n);
        else
            ls_give(arg->to, arg->y, to, from + i * ld, n);
    }
}

#endif
