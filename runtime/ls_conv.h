/* runtime/ls_conv.h -- convolution, its data gradient and its weight gradient as matrix products.
 *
 * All three see the same picture: a *gather*. For each position p of a result grid and each tap t of the
 * kernel there is one place of the source, or a zero of the padding. Images are channels-last, so a place
 * is a run of channels, and one row of the implicit matrix [positions][taps * channels] is copied run by
 * run into a block that stays in cache (Chetlur et al., 2014, do this on GPUs). Then:
 *   forward        Y = gather(X) * W'
 *   data gradient  the same from dY with the taps reversed; a stride > 1 is taken apart into *phases*: the
 *                  positions of X that see the same taps form a grid of their own
 *   weights        dW = dY' * gather(X)
 * Depthwise convolutions have one channel per product and are plain loops over channels instead. */
#ifndef LS_CONV_H
#define LS_CONV_H

#include "ls_gemm.h"

/* One spatial axis. */
typedef struct LsAxis {
    int64_t count;                      /* positions */
    int64_t to, to_step, to_dim;        /* position i is coordinate to + to_step * i of the result */
    int64_t from_step, from_dim;        /* tap t reads from_step * i + off + off_step * t of the source */
    int64_t taps, off, off_step;
    int64_t tap, tap_step, tap_dim;     /* tap t is coordinate tap + tap_step * t of the kernel */
} LsAxis;

#define LS_AXIS_NONE {.count = 1, .to_step = 1, .to_dim = 1, .from_step = 1, .from_dim = 1, .taps = 1, \
                      .off_step = 1, .tap_step = 1, .tap_dim = 1}

typedef struct LsConv {
    LsAxis ax[3];                       /* outermost first; unused ones have one position and one tap */
    int64_t images, group, cin, cout;   /* source and result channels per group */
    int64_t run;                        /* elements of a row that lie side by side in the source: cin, or
                                         * taps of the last axis * cin where taps touch */
    int64_t splits;                     /* weight gradient: parts of the sum over positions */
    int64_t chunk;                      /* by Winograd's algorithm: tiles at a time */
    int64_t packed;                     /* element of the workspace where its weights are packed */
    bool back;                          /* data gradient: w is [cin][kernel][cout], not the reverse */
} LsConv;

typedef struct LsConvArgs {             /* of a convolution or a data gradient */
    const real *x, *w, *bias;           /* source, weights, NULL or one per result channel */
    real *y, *packed;                   /* result, workspace */
} LsConvArgs;

enum {
    LS_MC = LS_MR * (LS_MR > 8 ? 8 : 16),       /* positions of a block */
    LS_DW_ROWS = 224,           /* result channels of a block of the weight gradient */
    LS_DW_DEPTH = 192,          /* positions of a block of the weight gradient */
    LS_DW_TILES = LS_DW_ROWS / LS_MR + 1,
    LS_TAPS = 32,               /* taps that the weight gradient of a depthwise convolution holds */
};

LS_INLINE int64_t ls_conv_positions(const LsConv *d)
{
    return d->images * d->ax[0].count * d->ax[1].count * d->ax[2].count;
}

/* Length of a row of the gathered matrix. */
LS_INLINE int64_t ls_conv_depth(const LsConv *d)
{
    return d->ax[0].taps * d->ax[1].taps * d->ax[2].taps * d->cin;
}

LS_INLINE int64_t ls_conv_kernel(const LsConv *d)
{
    return d->ax[0].tap_dim * d->ax[1].tap_dim * d->ax[2].tap_dim;
}

/* The source itself is the gathered matrix. */
LS_INLINE bool ls_conv_direct(const LsConv *d)
{
    bool yes = true;
    for (int i = 0; i < 3; i++)
        yes &= d->ax[i].taps == 1 && d->ax[i].off == 0 && d->ax[i].from_step == 1
            && d->ax[i].count == d->ax[i].from_dim;
    return yes;
}

/* Positions follow each other in the result. */
LS_INLINE bool ls_conv_dense(const LsConv *d)
{
    bool yes = true;
    for (int i = 0; i < 3; i++)
        yes &= d->ax[i].count == d->ax[i].to_dim;
    return yes;
}

/* ---- the gather ---- */
typedef struct LsPlace { int64_t image, i[3]; } LsPlace;

LS_INLINE LsPlace ls_place(const LsConv *d, int64_t p)
{
    LsPlace at;
    for (int k = 2; k >= 0; k--) {
        at.i[k] = p % d->ax[k].count;
        p /= d->ax[k].count;
    }
    at.image = p;
    return at;
}

LS_INLINE void ls_next(const LsConv *d, LsPlace *at)
{
    if (++at->i[2] < d->ax[2].count)
        return;
    at->i[2] = 0;
    if (++at->i[1] < d->ax[1].count)
        return;
    at->i[1] = 0;
    if (++at->i[0] < d->ax[0].count)
        return;
    at->i[0] = 0;
    at->image++;
}

/* Elements e .. e+n of a source line of `line` elements, zeros outside it. */
LS_INLINE void ls_gather_run(real *to, const real *from, int64_t e, int64_t n, int64_t line)
{
    int64_t lo = ls_least(ls_most(-e, 0), n), hi = ls_most(ls_least(line - e, n), lo);
    ls_zero(to, lo);
    ls_copy(to + lo, from + e + lo, hi - lo);
    ls_zero(to + hi, n - hi);
}

/* `len` elements from element `lo` of run (t0, t1, t2) of positions p..p+n. */
LS_INLINE void ls_gather_tap(const LsConv *d, const real *x, int64_t p, int64_t n, int64_t t0, int64_t t1,
                             int64_t t2, int64_t lo, int64_t len, real *to, int64_t ld)
{
    const LsAxis *a = d->ax;
    int64_t channels = d->group * d->cin, line = a[2].from_dim * channels;
    LsPlace at = ls_place(d, p);
    while (n > 0) {             /* positions of one line at a time */
        int64_t some = ls_least(n, a[2].count - at.i[2]), step = a[2].from_step * channels;
        int64_t s0 = a[0].from_step * at.i[0] + a[0].off + a[0].off_step * t0;
        int64_t s1 = a[1].from_step * at.i[1] + a[1].off + a[1].off_step * t1;
        int64_t e = (a[2].from_step * at.i[2] + a[2].off + a[2].off_step * t2) * channels + lo;
        if (s0 < 0 || s0 >= a[0].from_dim || s1 < 0 || s1 >= a[1].from_dim) {
            for (int64_t i = 0; i < some; i++, to += ld)
                ls_zero(to, len);
        } else {
            const real *from = x + ((at.image * a[0].from_dim + s0) * a[1].from_dim + s1) * line;
            for (int64_t i = 0; i < some; i++, to += ld, e += step)
                if (e < 0 || e + len > line)
                    ls_gather_run(to, from, e, len, line);
                else if (len == LS_NR)
                    ls_copy(to, from + e, LS_NR);
                else
                    ls_copy(to, from + e, len);
        }
        n -= some;
        at.i[2] += some - 1;
        ls_next(d, &at);
    }
}

/* Columns k0..k1 of the gathered matrix, rows p..p+n. x: the source, at the first channel of the group. */
LS_SHARED_FN void ls_gather(const LsConv *d, const real *x, int64_t p, int64_t n, int64_t k0,
                            int64_t k1, real *to, int64_t ld)
{
    if (k0 == k1)
        return;
    int64_t runs = d->ax[2].taps * d->cin / d->run;
    for (int64_t r = k0 / d->run; r * d->run < k1; r++) {
        int64_t lo = ls_most(k0, r * d->run), hi = ls_least(k1, (r + 1) * d->run);
        int64_t t2 = r % runs, t1 = r / runs % d->ax[1].taps, t0 = r / runs / d->ax[1].taps;
        ls_gather_tap(d, x, p, n, t0, t1, t2, lo - r * d->run, hi - lo, to + lo - k0, ld);
    }
}

/* ---- weights, packed into panels per group ---- */
LS_INLINE int64_t ls_conv_panels(const LsConv *d) { return d->group * ls_ceil_div(d->cout, LS_NR); }

LS_INLINE real *ls_conv_panel(const LsConv *d, real *packed, int64_t g, int64_t j)
{
    return packed + d->packed + ls_conv_depth(d) * (g * ls_packed_cols(d->cout) + j);
}

/* Element of the kernel that tap number t of a phase is. */
LS_INLINE int64_t ls_conv_tap(const LsConv *d, int64_t t)
{
    int64_t at = 0, each[3];
    for (int i = 2; i >= 0; i--) {
        each[i] = d->ax[i].tap + d->ax[i].tap_step * (t % d->ax[i].taps);
        t /= d->ax[i].taps;
    }
    for (int i = 0; i < 3; i++)
        at = at * d->ax[i].tap_dim + each[i];
    return at;
}

LS_INLINE int64_t ls_conv_taps(const LsConv *d)
{
    return d->ax[0].taps * d->ax[1].taps * d->ax[2].taps;
}

/* Rows k0..k0+k of the panel of columns j..: w[cout][taps][cin] turned, or of the data gradient
 * w[cin][kernel][cout], taps of the phase only. */
LS_SHARED_FN void ls_conv_panel_rows(const LsConv *d, const real *w, int64_t g, int64_t j, int64_t k0,
                                     int64_t k, real *to)
{
    int64_t kernel = ls_conv_kernel(d), n = d->cout - j, depth = ls_conv_depth(d);
    if (!d->back) {
        ls_pack_turned(to, w + (g * d->cout + j) * depth + k0, depth, k, n, 1);
        return;
    }
    while (k > 0) {
        int64_t c = k0 % d->cin, some = ls_least(k, d->cin - c);
        ls_pack_rows(to, w + ((g * d->cin + c) * kernel + ls_conv_tap(d, k0 / d->cin)) * d->cout + j,
                     kernel * d->cout, some, n, 1);
        to += some * ls_panel_width(n);
        k0 += some;
        k -= some;
    }
}

LS_SHARED_FN void ls_conv_pack(const LsConv *d, const LsConvArgs *arg, int64_t unit)
{
    int64_t per_group = ls_ceil_div(d->cout, LS_NR), g = unit / per_group, j = unit % per_group * LS_NR;
    ls_conv_panel_rows(d, arg->w, g, j, 0, ls_conv_depth(d), ls_conv_panel(d, arg->packed, g, j));
}

/* ---- result = gather(source) * weights ---- */

/* Columns of a block: all of them (one gather serves all), unless that leaves too few blocks to share. */
LS_INLINE int64_t ls_conv_cols(const LsConv *d)
{
    int64_t blocks = d->group * ls_ceil_div(ls_conv_positions(d), LS_MC);
    int64_t parts = ls_most(ls_ceil_div(16, blocks), ls_ceil_div(d->cout, 2 * LS_COLS));
    return ls_most(ls_ceil_div(ls_ceil_div(d->cout, parts), LS_NR) * LS_NR, LS_NR);
}

LS_INLINE int64_t ls_conv_units(const LsConv *d)
{
    return d->group * ls_ceil_div(ls_conv_positions(d), LS_MC) * ls_ceil_div(d->cout, ls_conv_cols(d));
}

/* Rows of a block to the places of their positions. */
LS_SHARED_FN void ls_conv_scatter(const LsConv *d, int64_t p, int64_t m, int64_t n, const real *from,
                                  int64_t ld, real *y)
{
    const LsAxis *a = d->ax;
    LsPlace at = ls_place(d, p);
    for (int64_t i = 0; i < m; i++, ls_next(d, &at)) {
        int64_t to = at.image;
        for (int k = 0; k < 3; k++)
            to = to * a[k].to_dim + a[k].to + a[k].to_step * at.i[k];
        ls_copy(y + to * d->group * d->cout, from + i * ld, n);
    }
}

/* A block of the result: rows p..p+m, columns j..j+n of group g, depth k0..k0+k. */
typedef struct LsConvBlock { int64_t g, p, m, j, n, k0, k; } LsConvBlock;

/* One block; `panels`: the one of column b.j at depth k0, the next `panel_step` columns' worth of depth
 * further on. Where positions do not follow each other in the result, sums gather in `sums`. */
LS_SHARED_FN void ls_conv_block(const LsConv *d, const LsConvArgs *arg, LsConvBlock b,
                                const real *panels, int64_t panel_depth, int64_t skip, real *sums)
{
    _Alignas(64) real rows[LS_L1_ROWS * LS_LDA];
    int64_t in = d->group * d->cin, out = d->group * d->cout, first = b.g * d->cout + b.j;
    bool direct = ls_conv_direct(d) && !ls_crowded(in), begin = b.k0 == 0;
    int64_t lda = direct ? in : LS_LDA, ldc = sums == NULL ? out : b.n;
    const real *bias = arg->bias != NULL ? arg->bias + first : ls_no_bias;
    for (int64_t i = 0; i < b.m; i += LS_L1_ROWS) {
        int64_t some = ls_least(LS_L1_ROWS, b.m - i);
        const real *a = direct ? arg->x + (b.p + i) * in + b.g * d->cin + b.k0 : rows;
        real *c = sums == NULL ? arg->y + (b.p + i) * out + first : sums + i * b.n;
        if (!direct)
            ls_gather(d, arg->x + b.g * d->cin, b.p + i, some, b.k0, b.k0 + b.k, rows, LS_LDA);
        for (int64_t j = 0; j < b.n; j += LS_NR) {
            int64_t width = ls_panel_width(b.n - j);
            const real *shared = arg->bias != NULL ? bias + j : bias;
            ls_panel(false, some, ls_least(b.n - j, LS_NR), b.k, a, lda,
                     panels + j * panel_depth + skip * width, width, begin ? shared : c + j,
                     begin ? 0 : ldc, c + j, ldc);
        }
    }
}

LS_SHARED_FN void ls_conv_unit(const LsConv *d, const LsConvArgs *arg, int64_t unit)
{
    _Alignas(64) real room[LS_MC * 2 * LS_COLS];
    int64_t depth = ls_conv_depth(d), positions = ls_conv_positions(d), cols = ls_conv_cols(d);
    int64_t col_blocks = ls_ceil_div(d->cout, cols), row_blocks = ls_ceil_div(positions, LS_MC);
    LsConvBlock b = {.g = unit / col_blocks / row_blocks, .p = unit / col_blocks % row_blocks * LS_MC,
                     .j = unit % col_blocks * cols};
    b.m = ls_least(LS_MC, positions - b.p);
    b.n = ls_least(cols, d->cout - b.j);
    const real *panels = ls_conv_panel(d, arg->packed, b.g, b.j);
    real *sums = ls_conv_dense(d) ? NULL : room;
    int64_t blocks = ls_most(ls_ceil_div(depth, LS_KC), 1);
    for (int64_t i = 0; i < blocks; i++, b.k0 += b.k) {
        b.k = depth * (i + 1) / blocks - b.k0;
        ls_conv_block(d, arg, b, panels, depth, b.k0, sums);
    }
    if (sums != NULL)
        ls_conv_scatter(d, b.p, b.m, b.n, sums, b.n, arg->y + b.g * d->cout + b.j);
}

/* Few positions and many weights: each unit packs what it needs itself, block by block, so that weights
 * are read once and no workspace is taken. */
enum { LS_FEW_ROWS = 504, LS_FEW_COLS = 128 };  /* of a block; 504 = 36 * 14 = 84 * 6 */

LS_INLINE int64_t ls_conv_few_cols(const LsConv *d)
{
    int64_t blocks = d->group * ls_ceil_div(ls_conv_positions(d), LS_FEW_ROWS), cols = LS_FEW_COLS;
    while (blocks * ls_ceil_div(d->cout, cols) < 8 && cols > LS_NR)
        cols /= 2;
    return cols;
}

LS_INLINE int64_t ls_conv_few_units(const LsConv *d)
{
    return d->group * ls_ceil_div(ls_conv_positions(d), LS_FEW_ROWS)
        * ls_ceil_div(d->cout, ls_conv_few_cols(d));
}

LS_SHARED_FN void ls_conv_few_unit(const LsConv *d, const LsConvArgs *arg, int64_t unit)
{
    _Alignas(64) real panels[LS_KC * LS_FEW_COLS], room[LS_FEW_ROWS * LS_FEW_COLS];
    int64_t depth = ls_conv_depth(d), positions = ls_conv_positions(d), cols = ls_conv_few_cols(d);
    int64_t row_blocks = ls_ceil_div(positions, LS_FEW_ROWS), col_blocks = ls_ceil_div(d->cout, cols);
    LsConvBlock b = {.g = unit / row_blocks / col_blocks, .p = unit % row_blocks * LS_FEW_ROWS,
                     .j = unit / row_blocks % col_blocks * cols};
    b.m = ls_least(LS_FEW_ROWS, positions - b.p);
    b.n = ls_least(cols, d->cout - b.j);
    real *sums = ls_conv_dense(d) ? NULL : room;
    int64_t blocks = ls_most(ls_ceil_div(depth, LS_KC), 1);
    for (int64_t i = 0; i < blocks; i++, b.k0 += b.k) {
        b.k = depth * (i + 1) / blocks - b.k0;
        for (int64_t j = 0; j < b.n; j += LS_NR)
            ls_conv_panel_rows(d, arg->w, b.g, b.j + j, b.k0, b.k, panels + j * b.k);
        ls_conv_block(d, arg, b, panels, b.k, 0, sums);
    }
    if (sums != NULL)
        ls_conv_scatter(d, b.p, b.m, b.n, sums, b.n, arg->y + b.g * d->cout + b.j);
}

/* ---- weight gradient ---- */

LS_INLINE int64_t ls_conv_dw_units(const LsConv *d)
{
    int64_t depth = ls_conv_depth(d);
    return d->splits * d->group * ls_ceil_div(d->cout, ls_even_block(d->cout, LS_DW_ROWS, LS_MR))
        * ls_ceil_div(depth, ls_even_block(depth, LS_COLS, LS_NR));
}

/* dw, or when splits > 1 one of as many parts of it that follow each other at `dw`. */
LS_SHARED_FN void ls_conv_dw_unit(const LsConv *d, const real *dy, const real *x, real *dw, int64_t unit)
{
    _Alignas(64) real rows[LS_DW_DEPTH * LS_NR], tiles[LS_DW_DEPTH * LS_DW_TILES * LS_TILE_LD];
    int64_t depth = ls_conv_depth(d), positions = ls_conv_positions(d);
    int64_t cols = ls_even_block(depth, LS_COLS, LS_NR);
    int64_t height = ls_even_block(d->cout, LS_DW_ROWS, LS_MR);
    int64_t col_blocks = ls_ceil_div(depth, cols), row_blocks = ls_ceil_div(d->cout, height);
    int64_t j0 = unit % col_blocks * cols, i0 = unit / col_blocks % row_blocks * height;
    int64_t g = unit / col_blocks / row_blocks % d->group;
    int64_t split = unit / col_blocks / row_blocks / d->group;
    int64_t m = ls_least(height, d->cout - i0), n = ls_least(cols, depth - j0);
    int64_t out = d->group * d->cout;
    int64_t begin = positions * split / d->splits, end = positions * (split + 1) / d->splits;
    real *c = dw + ((split * d->group + g) * d->cout + i0) * depth + j0;
    for (int64_t p = begin; p < end; p += LS_DW_DEPTH) {
        int64_t k = ls_least(LS_DW_DEPTH, end - p);
        ls_tile_turned(tiles, dy + p * out + g * d->cout + i0, out, k, m);
        for (int64_t j = 0; j < n; j += LS_NR) {
            int64_t wide = ls_least(n - j, LS_NR);
            ls_gather(d, x + g * d->cin, p, k, j0 + j, j0 + j + wide, rows, LS_NR);
            ls_panel_tiles(m, wide, k, tiles, rows, LS_NR, p > begin ? c + j : ls_no_bias,
                           p > begin ? depth : 0, c + j, depth);
        }
    }
}

enum { LS_SUM_UNIT = 1024 };    /* elements of the result */

/* to[i] = sum of part[s * n + i], in the order of s. */
LS_SHARED_FN void ls_sum_parts(real *to, const real *part, int64_t n, int64_t parts, int64_t lo,
                               int64_t hi)
{
    hi = ls_least(hi * LS_SUM_UNIT, n);
    for (int64_t i = lo * LS_SUM_UNIT; i < hi; i++) {
        real s = part[i];
        for (int64_t k = 1; k < parts; k++)
            s += part[k * n + i];
        to[i] = s;
    }
}

/* ---- one channel per group in and out ---- */

/* Unit t packs tap t: packed[t][channel]. */
LS_SHARED_FN void ls_depthwise_pack(const LsConv *d, const LsConvArgs *arg, int64_t unit)
{
    real *to = arg->packed + d->packed + unit * d->group;
    int64_t tap = ls_conv_tap(d, unit), kernel = ls_conv_kernel(d);
    for (int64_t c = 0; c < d->group; c++)
        to[c] = arg->w[c * kernel + tap];
}

LS_INLINE int64_t ls_depthwise_units(const LsConv *d)
{
    return d->images * d->ax[0].count * d->ax[1].count;
}

/* The line of the source that taps (t0, t1, .) of the line of `at` read; -1: it is padding. */
LS_INLINE int64_t ls_conv_line(const LsConv *d, const LsPlace *at, int64_t t0, int64_t t1)
{
    const LsAxis *a = d->ax;
    int64_t s0 = a[0].from_step * at->i[0] + a[0].off + a[0].off_step * t0;
    int64_t s1 = a[1].from_step * at->i[1] + a[1].off + a[1].off_step * t1;
    if (s0 < 0 || s0 >= a[0].from_dim || s1 < 0 || s1 >= a[1].from_dim)
        return -1;
    return (at->image * a[0].from_dim + s0) * a[1].from_dim + s1;
}

/* to[c] (+)= sum over n taps of from[k][c] * w[k][c] */
LS_INLINE void ls_depthwise_sum(int64_t channels, int n, const real *const from[], const real *const w[],
                                real *restrict to)
{
    int64_t c = 0;
    for (; c + LS_NR <= channels; c += LS_NR) {
        ls_vec a = ls_load(to + c), b = ls_load(to + c + LS_V);
        for (int k = 0; k < n; k++) {
            a += ls_load(from[k] + c) * ls_load(w[k] + c);
            b += ls_load(from[k] + c + LS_V) * ls_load(w[k] + c + LS_V);
        }
        ls_store(to + c, a);
        ls_store(to + c + LS_V, b);
    }
    for (; c < channels; c++)
        for (int k = 0; k < n; k++)
            to[c] += from[k][c] * w[k][c];
}

/* One result: position `at`, all channels; `to` holds the bias. */
LS_INLINE void ls_depthwise_position(const LsConv *d, const LsConvArgs *arg, const LsPlace *at, real *to)
{
    const LsAxis *a = d->ax;
    const real *from[LS_TAPS], *weight[LS_TAPS], *w = arg->packed + d->packed;
    int n = 0;
    for (int64_t t0 = 0; t0 < a[0].taps; t0++)
        for (int64_t t1 = 0; t1 < a[1].taps; t1++) {
            int64_t line = ls_conv_line(d, at, t0, t1);
            int64_t s2 = a[2].from_step * at->i[2] + a[2].off;
            for (int64_t t2 = 0; t2 < a[2].taps; t2++, s2 += a[2].off_step, w += d->group) {
                if (line < 0 || s2 < 0 || s2 >= a[2].from_dim)
                    continue;
                from[n] = arg->x + (line * a[2].from_dim + s2) * d->group;
                weight[n++] = w;
                if (n == LS_TAPS) {
                    ls_depthwise_sum(d->group, n, from, weight, to);
                    n = 0;
                }
            }
        }
    ls_depthwise_sum(d->group, n, from, weight, to);
}

/* One line of positions. */
LS_SHARED_FN void ls_depthwise_unit(const LsConv *d, const LsConvArgs *arg, int64_t unit)
{
    const LsAxis *a = d->ax;
    LsPlace at = ls_place(d, unit * a[2].count);
    int64_t channels = d->group;
    int64_t line = (at.image * a[0].to_dim + a[0].to + a[0].to_step * at.i[0]) * a[1].to_dim
        + a[1].to + a[1].to_step * at.i[1];
    for (at.i[2] = 0; at.i[2] < a[2].count; at.i[2]++) {
        real *to = arg->y + (line * a[2].to_dim + a[2].to + a[2].to_step * at.i[2]) * channels;
        if (arg->bias != NULL)
            ls_copy(to, arg->bias, channels);
        else
            ls_zero(to, channels);
        ls_depthwise_position(d, arg, &at, to);
    }
}

LS_INLINE int64_t ls_depthwise_dw_units(const LsConv *d)
{
    return d->splits * ls_ceil_div(d->group, LS_V);
}

/* Adds what a line of positions gives to taps (t0, t1, t2), t2 = 0.., of n <= LS_V channels. g, from: the
 * gradient and the source, at the line and the first of the channels. */
LS_INLINE void ls_depthwise_dw_line(const LsConv *d, const real *g, const real *x, int64_t n,
                                    real (*sum)[LS_V])
{
    const LsAxis *a = &d->ax[2];
    int64_t channels = d->group, step = a->from_step * channels;
    for (int64_t t = 0, s = a->off; t < a->taps; t++, s += a->off_step) {
        int64_t i = s >= 0 ? 0 : ls_ceil_div(-s, a->from_step);
        int64_t end = ls_least(a->count, s < a->from_dim ? ls_ceil_div(a->from_dim - s, a->from_step) : 0);
        const real *from = x + (s + i * a->from_step) * channels;
        if (n < LS_V) {
            for (; i < end; i++, from += step)
                for (int64_t c = 0; c < n; c++)
                    sum[t][c] += g[i * channels + c] * from[c];
            continue;
        }
        ls_vec even = ls_load(sum[t]), odd = {0};
        for (; i + 2 <= end; i += 2, from += 2 * step) {
            even += ls_load(g + i * channels) * ls_load(from);
            odd += ls_load(g + (i + 1) * channels) * ls_load(from + step);
        }
        if (i < end)
            even += ls_load(g + i * channels) * ls_load(from);
        ls_store(sum[t], even + odd);
    }
}

/* dw[channel][tap] of LS_V channels, or one of `splits` parts. Rows of taps in groups that LS_TAPS hold;
 * longer rows than that are the emitter's affair (it takes another way). */
LS_SHARED_FN void ls_depthwise_dw_unit(const LsConv *d, const real *dy, const real *x, real *dw,
                                       int64_t unit)
{
    const LsAxis *a = d->ax;
    int64_t blocks = ls_ceil_div(d->group, LS_V), c0 = unit % blocks * LS_V, split = unit / blocks;
    int64_t channels = d->group, n = ls_least(LS_V, channels - c0), taps = ls_conv_taps(d);
    int64_t lines = ls_conv_positions(d) / a[2].count, rows = a[0].taps * a[1].taps;
    int64_t begin = lines * split / d->splits, end = lines * (split + 1) / d->splits;
    int64_t some = LS_TAPS / a[2].taps;
    for (int64_t first = 0; first < rows; first += some) {
        real sum[LS_TAPS][LS_V] = {{0}};
        int64_t last = ls_least(first + some, rows);
        for (int64_t p = begin; p < end; p++) {
            LsPlace at = ls_place(d, p * a[2].count);
            for (int64_t row = first; row < last; row++) {
                int64_t line = ls_conv_line(d, &at, row / a[1].taps, row % a[1].taps);
                if (line >= 0)
                    ls_depthwise_dw_line(d, dy + p * a[2].count * channels + c0,
                                         x + line * a[2].from_dim * channels + c0, n,
                                         sum + (row - first) * a[2].taps);
            }
        }
        for (int64_t t = first * a[2].taps; t < last * a[2].taps; t++)
            for (int64_t c = 0; c < n; c++)
                dw[(split * channels + c0 + c) * taps + t] = sum[t - first * a[2].taps][c];
    }
}

/* ---- what kernels call ---- */

/* A kind of work on a phase, and how many units of it there are. */
typedef struct LsConvWork {
    int64_t (*units)(const LsConv *d);
    void (*unit)(const LsConv *d, const LsConvArgs *arg, int64_t unit);
} LsConvWork;
static const LsConvWork ls_conv_pack_work = {ls_conv_panels, ls_conv_pack};
static const LsConvWork ls_conv_work = {ls_conv_units, ls_conv_unit};
static const LsConvWork ls_conv_few_work = {ls_conv_few_units, ls_conv_few_unit};
static const LsConvWork ls_depthwise_pack_work = {ls_conv_taps, ls_depthwise_pack};
static const LsConvWork ls_depthwise_work = {ls_depthwise_units, ls_depthwise_unit};

/* All phases together. */
LS_INLINE int64_t ls_conv_all(const LsConv *d, int phases, const LsConvWork *work)
{
    int64_t n = 0;
    for (int i = 0; i < phases; i++)
        n += work->units(d + i);
    return n;
}

/* Units lo..hi of all phases together. */
LS_SHARED_FN void ls_conv_some(const LsConv *d, int phases, const LsConvWork *work,
                               const LsConvArgs *arg, int64_t lo, int64_t hi)
{
    for (int i = 0; i < phases; i++) {
        int64_t n = work->units(d + i);
        for (int64_t u = ls_most(lo, 0); u < ls_least(hi, n); u++)
            work->unit(d + i, arg, u);
        lo -= n;
        hi -= n;
    }
}

#endif
