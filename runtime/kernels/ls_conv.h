/* runtime/kernels/ls_conv.h -- convolution, its data gradient and its weight gradient as matrix
 * products.
 *
 *   forward        Y = gather(X) * W'
 *   data gradient  dX = gather(dY) * W, phase by phase
 *   weights        dW = dY' * gather(X)
 *
 * Gathered rows (ls_gather.h) go through a block that stays in the L1 cache. ls_depthwise.h and
 * ls_wino.h are alternatives; codegen/kernels/conv_geometry.c chooses. */
#ifndef LS_RUNTIME_KERNELS_LS_CONV_H
#define LS_RUNTIME_KERNELS_LS_CONV_H

#include "runtime/kernels/ls_depthwise.h"
#include "runtime/kernels/ls_amx_conv.h"
#include "runtime/kernels/ls_squares.h"
#include "runtime/kernels/ls_wino.h"

/* ---- result = gather(source) * weights ---- */

/* Columns of a block: all of them (one gather serves all), unless that leaves too few blocks for
 * several threads. */
LS_INLINE int64_t ls_conv_cols(const LsConv *d)
{
    int64_t blocks = d->group * ls_ceil_div(ls_conv_positions(d), LS_MC);
    int64_t parts = ls_most(ls_ceil_div(16, blocks), ls_ceil_div(d->cout, LS_CONV_COLS));
    return ls_most(ls_ceil_div(ls_ceil_div(d->cout, parts), LS_NR) * LS_NR, LS_NR);
}

LS_INLINE int64_t ls_conv_units(const LsConv *d)
{
    if (ls_lines_pay(d, false))
        return ls_lines_units(d, false);
    return d->group * ls_ceil_div(ls_conv_positions(d), LS_MC) *
           ls_ceil_div(d->cout, ls_conv_cols(d));
}

/* A block of the result: rows p..p+m, columns j..j+n of group g, depth k0..k0+k. */
typedef struct LsConvBlock { int64_t g, p, m, j, n, k0, k; } LsConvBlock;

/* Blocks of the sum over `depth`, and the depth at which block i begins. */
LS_INLINE int64_t ls_conv_blocks(int64_t depth) { return ls_most(ls_ceil_div(depth, LS_KC), 1); }
LS_INLINE int64_t ls_conv_block_at(const LsConv *d, int64_t depth, int64_t i)
{
    return ls_least(ls_dot_begin(d->dot16 & LS_DOTS, depth * i / ls_conv_blocks(depth)), depth);
}

/* Elements k0 .. k1 of gathered rows p .. p + n of bfloat16 in memory, ld apart. */
LS_SHARED_FN void ls_conv_gather_brains(const LsConv *d, const ls_bf16 *x, int64_t g, int64_t p,
                                        int64_t n, int64_t k0, int64_t k1, ls_bf16 *to, int64_t ld)
{
    const LsAxis *a = d->ax;
    const bool touch = d->group == 1 && a[2].off_step == 1;     /* the taps of a line */
    const int64_t run = touch ? a[2].taps * d->cin : d->cin, runs = touch ? 1 : a[2].taps;
    const int64_t channels = d->group * d->cin, line = a[2].from_dim * channels;
    for (int64_t r = k0 / run; r * run < k1 && k0 < k1; r++) {
        const int64_t from = ls_most(k0 - r * run, 0), end = ls_least(k1 - r * run, run);
        const int64_t t2 = r % runs, t1 = r / runs % a[1].taps, t0 = r / runs / a[1].taps;
        LsPlace at = ls_place(d, p);
        ls_bf16 *row = to + r * run + from - k0;
        for (int64_t i = 0; i < n; i++, row += ld, ls_next(d, &at)) {
            const int64_t s0 = a[0].from_step * at.i[0] + a[0].off + a[0].off_step * t0;
            const int64_t s1 = a[1].from_step * at.i[1] + a[1].off + a[1].off_step * t1;
            const int64_t e =
                (a[2].from_step * at.i[2] + a[2].off + a[2].off_step * t2) * channels + from;
            const bool inside = s0 >= 0 && s0 < a[0].from_dim && s1 >= 0 && s1 < a[1].from_dim;
            const int64_t len = end - from, lo = inside ? ls_least(ls_most(-e, 0), len) : len;
            const int64_t hi = ls_most(ls_least(line - e, len), lo);
            const int64_t start =
                ((at.image * a[0].from_dim + s0) * a[1].from_dim + s1) * line + g * d->cin;
            memset(row, 0, (size_t)lo * sizeof *row);
            if (lo < hi)
                memcpy(row + lo, x + start + e + lo, (size_t)(hi - lo) * sizeof *row);
            memset(row + hi, 0, (size_t)(len - hi) * sizeof *row);
        }
    }
}

/* The same of reals, which are rounded. */
LS_SHARED_FN void ls_conv_gather_rounded(const LsConv *d, LsSource x, int64_t g, int64_t p,
                                         int64_t n, int64_t k0, int64_t k1, ls_bf16 *to, int64_t ld)
{
    enum { SOME = 16 };
    _Alignas(64) real rows[SOME * LS_LDA];
    for (int64_t k = k0; k < k1; k += LS_KC, to += LS_KC)
        for (int64_t i = 0; i < n; i += SOME) {
            const int64_t some = ls_least(SOME, n - i), deep = ls_least(LS_KC, k1 - k);
            ls_gather_runs(d, ls_conv_line_run(d), (LsSource){.at = x.at, .row = x.row}, g, p + i,
                           some, k, k + deep, rows, LS_LDA);
            for (int64_t r = 0; r < some; r++)
                ls_give(LS_STORED_BF16, to + (i + r) * ld, 0, rows + r * LS_LDA, deep);
        }
}

/* The source is gathered as it lies in memory: even channels of bfloat16 as words, which vectors
 * hold. */
LS_INLINE bool ls_conv_in_memory(const LsConv *d, LsSource x)
{
    return x.compute == NULL && x.type != LS_STORED_F16 && (d->dot16 & LS_AMX) != 0;
}
LS_INLINE void ls_conv_gather_words(const LsConv *d, LsSource x, int64_t g, int64_t p, int64_t n,
                                    int64_t k0, int64_t k1, real *to, int64_t ld)
{
    if (x.type == LS_STORED_REAL) {
        ls_conv_gather_rounded(d, x, g, p, n, k0, k1, (ls_bf16 *)to, 2 * ld);
        return;
    }
    if (d->cin % 2 != 0) {
        ls_conv_gather_brains(d, x.at, g, p, n, k0, k1, (ls_bf16 *)to, 2 * ld);
        return;
    }
    LsConv half = *d;
    half.cin /= 2;
    ls_gather_runs(&half, ls_conv_line_run(&half), (LsSource){.at = x.at, .row = x.row / 2}, g, p,
                   n, k0 / 2, k1 / 2, to, ld);
}

/* Rows p .. p + n at depths k0 .. k0 + k as rows of words, LS_LDA apart. */
LS_SHARED_FN void ls_conv_words(const LsConv *d, LsSource x, int64_t g, int64_t p, int64_t n,
                                int64_t k0, int64_t k, real *to)
{
    if (!ls_conv_in_memory(d, x)) {
        ls_gather(d, x, g, p, n, k0, k0 + k, to, LS_LDA);
        ls_words_along(to, LS_LDA, n, k);
        return;
    }
    ls_conv_gather_words(d, x, g, p, n, k0, k0 + k, to, LS_LDA);
    for (int64_t i = 0; i < n; i++)
        memset((ls_bf16 *)(to + i * LS_LDA) + k, 0,
               (size_t)(2 * ls_dot_depth(LS_DOTS, k) - k) * sizeof(ls_bf16));
}

/* Computes one block; `panels`: the panel of column b.j at depth k0; the panel j columns further
 * lies j * `panel_depth` elements further. Where positions are not contiguous in the result, or not
 * real, `sums` accumulates. */
LS_SHARED_FN void ls_conv_block(const LsConv *d, const LsConvArgs *arg, LsConvBlock b,
                                const real *panels, int64_t panel_depth, int64_t skip, real *sums)
{
    enum { SOME = LS_AMX ? LS_AMX_ROWS : LS_L1_ROWS };
    _Alignas(64) real rows[SOME * LS_LDA];
    int64_t in = d->group * d->cin, out = d->group * d->cout, first = b.g * d->cout + b.j;
    bool begin = b.k0 == 0;
    bool direct = ls_conv_direct(d) && !ls_crowded(in) && ls_in_place(arg->x);
    int64_t lda = direct ? in : LS_LDA, ldc = sums == NULL ? out : b.n;
    const real *bias = arg->bias != NULL ? arg->bias + first : ls_no_bias;
    const int dots = d->dot16 & LS_DOTS;
    const int64_t k = ls_dot_depth(dots, b.k), skipped = ls_dot_depth(dots, skip);
    const int64_t step = dots & LS_AMX ? SOME : LS_L1_ROWS;
    for (int64_t i = 0; i < b.m; i += step) {
        int64_t some = ls_least(step, b.m - i);
        const real *a = direct ? ls_reals(arg->x) + (b.p + i) * in + b.g * d->cin + b.k0 : rows;
        real *c = sums == NULL ? (real *)arg->y + (b.p + i) * out + first : sums + i * b.n;
        if (dots & LS_WORDS)
            ls_conv_words(d, arg->x, b.g, b.p + i, some, b.k0, b.k, rows);
        else if (!direct)
            ls_gather(d, arg->x, b.g, b.p + i, some, b.k0, b.k0 + b.k, rows, LS_LDA);
        const uint64_t mode = ls_dots_begin(dots);
        for (int64_t j = 0; j < b.n; j += LS_NR) {
            int64_t width = ls_panel_width(b.n - j);
            const real *shared = arg->bias != NULL ? bias + j : bias;
            ls_panel(dots, some, ls_least(b.n - j, LS_NR), k, a, lda,
                     panels + j * panel_depth + skipped * width, width, begin ? shared : c + j,
                     begin ? 0 : ldc, c + j, ldc);
        }
        ls_dots_end(dots, mode);
    }
}

LS_SHARED_FN void ls_conv_gathered_unit(const LsConv *d, const LsConvArgs *arg, int64_t unit)
{
    _Alignas(64) real room[LS_MC * LS_CONV_COLS];
    int64_t depth = ls_conv_depth(d), positions = ls_conv_positions(d), cols = ls_conv_cols(d);
    int64_t col_blocks = ls_ceil_div(d->cout, cols), row_blocks = ls_ceil_div(positions, LS_MC);
    LsConvBlock b = {.g = unit / col_blocks / row_blocks,
                     .p = unit / col_blocks % row_blocks * LS_MC,
                     .j = unit % col_blocks * cols};
    b.m = ls_least(LS_MC, positions - b.p);
    b.n = ls_least(cols, d->cout - b.j);
    const real *panels = ls_conv_panel(d, arg->packed, b.g, b.j);
    real *sums = ls_conv_dense(d) && arg->to == LS_STORED_REAL ? NULL : room;
    for (int64_t i = 0; i < ls_conv_blocks(depth); i++, b.k0 += b.k) {
        b.k = ls_conv_block_at(d, depth, i + 1) - b.k0;
        ls_conv_block(d, arg, b, panels, ls_conv_pitch(d), b.k0, sums);
    }
    if (sums != NULL)
        ls_conv_scatter(d, arg, b.p, b.m, b.n, sums, b.n, b.g * d->cout + b.j);
}

LS_INLINE void ls_conv_unit(const LsConv *d, const LsConvArgs *arg, int64_t unit)
{
    if (ls_lines_pay(d, false))
        ls_lines_conv(d, arg, unit);
    else
        ls_conv_gathered_unit(d, arg, unit);
}

/* Few positions and many weights: each unit packs its own weights, block by block, so that weights
 * are read once and no workspace is needed. */
LS_INLINE int64_t ls_conv_few_cols(const LsConv *d)
{
    int64_t blocks = d->group * ls_ceil_div(ls_conv_positions(d), LS_FEW_ROWS), cols = LS_FEW_COLS;
    while (blocks * ls_ceil_div(d->cout, cols) < 8 && cols > LS_NR)
        cols /= 2;
    return cols;
}

LS_INLINE int64_t ls_conv_few_units(const LsConv *d)
{
    if (ls_lines_pay(d, true))
        return ls_lines_units(d, true);
    return d->group * ls_ceil_div(ls_conv_positions(d), LS_FEW_ROWS)
        * ls_ceil_div(d->cout, ls_conv_few_cols(d));
}

LS_SHARED_FN void ls_conv_few_gathered_unit(const LsConv *d, const LsConvArgs *arg, int64_t unit)
{
    _Alignas(64) real panels[LS_KC * LS_FEW_COLS], room[LS_FEW_ROWS * LS_FEW_COLS];
    int64_t depth = ls_conv_depth(d), positions = ls_conv_positions(d), cols = ls_conv_few_cols(d);
    int64_t row_blocks = ls_ceil_div(positions, LS_FEW_ROWS),
            col_blocks = ls_ceil_div(d->cout, cols);
    LsConvBlock b = {.g = unit / row_blocks / col_blocks, .p = unit % row_blocks * LS_FEW_ROWS,
                     .j = unit / row_blocks % col_blocks * cols};
    b.m = ls_least(LS_FEW_ROWS, positions - b.p);
    b.n = ls_least(cols, d->cout - b.j);
    real *sums = ls_conv_dense(d) && arg->to == LS_STORED_REAL ? NULL : room;
    for (int64_t i = 0; i < ls_conv_blocks(depth); i++, b.k0 += b.k) {
        b.k = ls_conv_block_at(d, depth, i + 1) - b.k0;
        const int64_t pitch = ls_panel_pitch(d->dot16 & LS_DOTS, b.k);
        ls_conv_panel_rows(d, arg->w, b.g, b.j, b.n, b.k0, b.k, panels, pitch);
        ls_conv_block(d, arg, b, panels, pitch, 0, sums);
    }
    if (sums != NULL)
        ls_conv_scatter(d, arg, b.p, b.m, b.n, sums, b.n, b.g * d->cout + b.j);
}

LS_INLINE void ls_conv_few_unit(const LsConv *d, const LsConvArgs *arg, int64_t unit)
{
    if (ls_lines_pay(d, true))
        ls_lines_few(d, arg, unit);
    else
        ls_conv_few_gathered_unit(d, arg, unit);
}

/* ---- weight gradient ---- */

/* Result channels of a block. */
LS_INLINE int64_t ls_conv_dw_height(const LsConv *d)
{
    return ls_even_block(d->cout, LS_DW_ROWS, d->dot16 & LS_AMX ? LS_AMX_SIDE : LS_MR);
}

/* Columns of a block. In tiles copies take long beside products: few rows have many columns. */
LS_SHARED_FN int64_t ls_conv_dw_cols(const LsConv *d)
{
    enum { MANY = 8 };          /* units */
    const int64_t depth = ls_conv_depth(d), height = ls_conv_dw_height(d);
    const int64_t others = d->splits * d->group * ls_ceil_div(d->cout, height);
    int64_t most = d->dot16 & LS_AMX ? ls_least(LS_DW_SUMS / height, LS_DW_WIDE) : LS_COLS;
    while (others * ls_ceil_div(depth, most) < MANY && most > LS_COLS)
        most /= 2;
    return ls_even_block(depth, ls_most(most / LS_NR * LS_NR, LS_COLS), LS_NR);
}

LS_INLINE int64_t ls_conv_dw_units(const LsConv *d)
{
    return d->splits * d->group * ls_ceil_div(d->cout, ls_conv_dw_height(d))
        * ls_ceil_div(ls_conv_depth(d), ls_conv_dw_cols(d));
}

/* Rows p .. p + k of dY, channels g0 .. g0 + m, as the micro-kernel takes a transposed A. */
LS_SHARED_FN void ls_conv_dw_tiles(const LsConv *d, LsSource dy, int64_t p, int64_t k, int64_t g0,
                                   int64_t m, real *to)
{
    const int64_t out = d->group * d->cout;
    if (d->dot16 & LS_AMX) {
        ls_words_turned(dy, g0, m, p, k, to, LS_DW_WORDS_LD);
        return;
    }
    if (ls_in_place(dy))
        ls_tile_turned(to, ls_reals(dy) + p * out + g0, out, k, m);
    else
        ls_tile_computed(to, dy, p, g0, k, m);
    ls_tile_words(d->dot16 & LS_DOTS, to, k, m);
}

/* The block of dW, or when splits > 1 of one of its parts, that a unit computes: rows i..i+m of
 * group g, columns j..j+n. */
typedef struct LsDwBlock { int64_t split, g, i, m, j, n; } LsDwBlock;

LS_INLINE LsDwBlock ls_conv_dw_block(const LsConv *d, int64_t unit)
{
    const int64_t depth = ls_conv_depth(d), cols = ls_conv_dw_cols(d),
                  height = ls_conv_dw_height(d);
    const int64_t col_blocks = ls_ceil_div(depth, cols), row_blocks = ls_ceil_div(d->cout, height);
    LsDwBlock b = {.split = unit / col_blocks / row_blocks / d->group,
                   .g = unit / col_blocks / row_blocks % d->group,
                   .i = unit / col_blocks % row_blocks * height,
                   .j = unit % col_blocks * cols};
    b.m = ls_least(height, d->cout - b.i);
    b.n = ls_least(cols, depth - b.j);
    return b;
}

/* Computes a block into `to`, whose rows are `apart`. */
LS_SHARED_FN void ls_conv_dw_into(const LsConv *d, LsSource dy, LsSource x, const LsDwBlock *b,
                                  real *to, int64_t apart)
{
    enum { LD = LS_DW_WIDE / 2 + LS_V };        /* words of a row of all columns */
    _Alignas(64) real wide[LS_AMX ? LS_DW_DEPTH * LD : 1],
        sums[LS_AMX ? LS_DW_SUMS + LS_DW_ROWS * LS_V : 1];
    _Alignas(64) real rows[LS_DW_DEPTH * LS_NR], tiles[LS_DW_DEPTH * LS_DW_TILES * LS_TILE_LD];
    const int64_t positions = ls_conv_positions(d);
    const int dots = d->dot16 & LS_DOTS;
    const bool taken = ls_conv_in_memory(d, x);
    const int64_t all = d->all > 0 ? d->all : positions, first = all * b->split / d->splits;
    const int64_t image = d->image > 0 ? d->image : positions / d->images;
    const int64_t begin = ls_most(first - d->before, d->from);
    const int64_t end = ls_least(all * (b->split + 1) / d->splits - d->before,
                                 d->image > 0 ? d->to : positions);
    const bool tiles16 = dots & LS_AMX;         /* whose sums stay in the cache */
    real *const c = tiles16 ? sums : to;
    const int64_t ldc = tiles16 ? ls_ceil_div(b->n, LS_V) * LS_V + LS_V : apart;
    for (int64_t i = 0; i < b->m && tiles16 && begin + d->before > first; i++)
        ls_copy(sums + i * ldc, to + i * apart, b->n);
    for (int64_t p = begin, k; p < end; p += k) {
        k = ls_least(ls_dw_block(p + d->before, image, LS_DW_IMAGE), end - p);
        ls_conv_dw_tiles(d, dy, p, k, b->g * d->cout + b->i, b->m, tiles);
        if (taken)
            ls_conv_gather_words(d, x, b->g, p, k, b->j, b->j + b->n, wide, LD);
        for (int64_t j = 0; j < b->n; j += LS_NR) {
            const int64_t some = ls_least(b->n - j, LS_NR);
            if (taken)
                ls_words_panel(rows, (const ls_bf16 *)wide + j, 2 * LD, k);
            else
                ls_gather(d, x, b->g, p, k, b->j + j, b->j + j + some, rows, LS_NR);
            if (dots & LS_WORDS && !taken)
                ls_words_down(rows, rows, k, LS_NR, LS_WORD_FILL);
            const uint64_t mode = ls_dots_begin(dots);
            const bool on = p + d->before > first;      /* the sum goes on */
            const real *init = on ? c + j : ls_no_bias;
            const int64_t ldi = on ? ldc : 0, words = ls_dot_depth(dots, k);
            if (dots & LS_AMX)
                ls_panel(dots, b->m, some, words, tiles, LS_DW_WORDS_LD, rows, LS_NR, init, ldi,
                         c + j, ldc);
            else
                ls_panel_tiles(dots, b->m, some, words, tiles, rows, LS_NR, init, ldi, c + j, ldc);
            ls_dots_end(dots, mode);
        }
    }
    for (int64_t i = 0; i < b->m && tiles16 && begin < end; i++)
        ls_copy(to + i * apart, sums + i * ldc, b->n);
}

/* dw, or when splits > 1 one of its parts, which are contiguous at `dw`. */
LS_SHARED_FN void ls_conv_dw_unit(const LsConv *d, LsSource dy, LsSource x, real *dw, int64_t unit)
{
    const LsDwBlock b = ls_conv_dw_block(d, unit);
    const int64_t depth = ls_conv_depth(d);
    ls_conv_dw_into(d, dy, x, &b, dw + ((b.split * d->group + b.g) * d->cout + b.i) * depth + b.j,
                    depth);
}

/* The sum of squares of a block, which is not stored. */
LS_SHARED_FN real ls_conv_dw_squares(const LsConv *d, LsSource dy, LsSource x, int64_t unit)
{
    _Alignas(64)
        real tile[LS_AMX ? LS_DW_SUMS + LS_DW_ROWS * LS_NR : (LS_DW_ROWS + LS_MR) * LS_COLS];
    const LsDwBlock b = ls_conv_dw_block(d, unit);
    ls_conv_dw_into(d, dy, x, &b, tile, b.n);
    return ls_squares_of(tile, b.n, b.m, b.n);
}

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

static const LsConvWork ls_conv_pack_work = {ls_conv_panels, ls_conv_pack};
static const LsConvWork ls_conv_work = {ls_conv_units, ls_conv_unit};
static const LsConvWork ls_conv_few_work = {ls_conv_few_units, ls_conv_few_unit};

#endif
