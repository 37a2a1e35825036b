/* runtime/kernels/ls_amx_conv.h -- convolutions and data gradients of bfloat16 in AMX tiles
 * (ls_amx.h), without the gathered matrix.
 *
 * Lines of the source are copied once, with their padding. There, what a tap reads lies at equal
 * distances from the tap's offset on, so that tiles are loaded from the lines. Places of the
 * padding count as positions, too; their results are dropped. Bits are those of other blocks: sums
 * in the order of tiles do not depend on blocks (ls_dot16.h). */
#ifndef LS_RUNTIME_KERNELS_LS_AMX_CONV_H
#define LS_RUNTIME_KERNELS_LS_AMX_CONV_H

#include "runtime/kernels/ls_conv_pack.h"

#ifdef LS_AMX_UNIT
enum {
    LS_LINES_ROOM = 384 * 1024,         /* elements of a block's lines */
    LS_LINES_ROWS = 320,                /* rows of a block, if a line is not longer */
    LS_LINES_MOST = 1024,               /* the same for few positions, and many weights; elements of
                                         * their packed weights */
    LS_LINES_WORDS = 128 * 1024,
};

/* A block: `tall` lines of results of each of `images`, from `tall + halo` lines of `wide` places,
 * whose channels lie `pitch` apart. A row is a place from which results are computed. */
typedef struct LsLines { int64_t images, tall, wide, halo, pitch; } LsLines;

LS_INLINE int64_t ls_lines_image(const LsLines *l) { return (l->tall + l->halo) * l->wide; }

/* tall: 0 where no line fits. */
LS_SHARED_FN LsLines ls_lines_of(const LsConv *d, bool few)
{
    const LsAxis *y = &d->ax[1], *x = &d->ax[2];
    LsLines l = {.images = 1,
                 .wide = x->count + x->off_step * (x->taps - 1),
                 .halo = y->off_step * (y->taps - 1)};
    /* to spread over cache sets */
    l.pitch = d->cin + (d->cin % (4 * LS_APART_DEPTH) == 0 ? LS_APART_DEPTH : 0);
    const int64_t lines = (LS_LINES_ROOM / l.pitch - LS_AMX_SIDE) / l.wide;
    const int64_t most = few ? LS_LINES_MOST / l.wide : ls_most(LS_LINES_ROWS / l.wide, 1);
    l.tall = ls_least(ls_least(most, lines - l.halo), y->count);
    if (l.tall < 1)
        return (LsLines){0};
    l.tall = ls_even_block(y->count, l.tall, 1);
    if (l.tall == y->count && most >= l.tall + l.halo)
        l.images = ls_even_block(d->images,
                                 ls_least(ls_least(most, lines) / (l.tall + l.halo), d->images), 1);
    return l;
}

/* Columns of a unit: fewer where there are few blocks for several threads. */
LS_INLINE int64_t ls_lines_blocks(const LsConv *d, const LsLines *l)
{
    return d->group * ls_ceil_div(d->images, l->images) * ls_ceil_div(d->ax[1].count, l->tall);
}
LS_INLINE int64_t ls_lines_cols(const LsConv *d, const LsLines *l, bool few)
{
    const int64_t parts = ls_most(ls_ceil_div(few ? 8 : 16, ls_lines_blocks(d, l)),
                                  few ? ls_ceil_div(d->cout, LS_FEW_COLS) : 1);
    return ls_ceil_div(ls_ceil_div(d->cout, parts), LS_NR) * LS_NR;
}

/* Lines pay where the channels of a tile are those of one tap, and less than half of the rows is
 * dropped. */
LS_SHARED_FN bool ls_lines_pay(const LsConv *d, bool few)
{
    const LsAxis *a = d->ax;
    bool fits = (d->dot16 & LS_AMX) != 0 && d->cin % LS_APART_DEPTH == 0 && a[0].taps == 1
                && a[0].count == 1 && a[0].from_dim == 1 && a[0].off == 0 && a[0].to_dim == 1;
    for (int i = 1; i < 3; i++)
        fits &= a[i].from_step == 1 && a[i].taps > 0 && a[i].count > 0;
    if (!fits || !ls_amx_on())
        return false;
    const LsLines l = ls_lines_of(d, few);
    const int64_t rows = ls_ceil_div(l.images * ls_lines_image(&l) - l.halo * l.wide, 16) * 16;
    return l.tall > 0 && 2 * l.images * l.tall * a[2].count > rows
        && (!few || (l.images * ls_lines_image(&l) <= LS_LINES_MOST
                     && a[2].taps * d->cin / 2 * ls_lines_cols(d, &l, few) <= LS_LINES_WORDS));
}

LS_INLINE int64_t ls_lines_units(const LsConv *d, bool few)
{
    const LsLines l = ls_lines_of(d, few);
    return ls_lines_blocks(d, &l) * ls_ceil_div(d->cout, ls_lines_cols(d, &l, few));
}

/* A unit: images, lines from y on and columns from j on of group g. rows: as many as are
 * computed. */
typedef struct LsLinesUnit { LsLines l; int64_t g, image, y, j, n, rows; } LsLinesUnit;

LS_SHARED_FN LsLinesUnit ls_lines_unit(const LsConv *d, bool few, int64_t unit)
{
    LsLinesUnit u = {.l = ls_lines_of(d, few)};
    const int64_t cols = ls_lines_cols(d, &u.l, few), col_blocks = ls_ceil_div(d->cout, cols);
    const int64_t down = ls_ceil_div(d->ax[1].count, u.l.tall),
                  images = ls_ceil_div(d->images, u.l.images);
    u.j = unit % col_blocks * cols;
    u.n = ls_least(cols, d->cout - u.j);
    unit /= col_blocks;
    u.y = unit % down * u.l.tall;
    u.l.tall = ls_least(u.l.tall, d->ax[1].count - u.y);
    unit /= down;
    u.image = unit % images * u.l.images;
    u.l.images = ls_least(u.l.images, d->images - u.image);
    u.g = unit / images;
    u.rows = u.l.images * ls_lines_image(&u.l) - u.l.halo * u.l.wide - (u.l.wide - d->ax[2].count);
    return u;
}

/* The lines of a unit. */
LS_SHARED_FN void ls_lines_fill(const LsConv *d, const LsLinesUnit *u, LsSource x, ls_bf16 *to)
{
    const LsAxis *a = d->ax;
    const int64_t wide = u->l.wide, pitch = u->l.pitch, lines = u->l.tall + u->l.halo;
    const int64_t lo = ls_least(ls_most(-a[2].off, 0), wide),
                  hi = ls_most(ls_least(a[2].from_dim - a[2].off, wide), lo);
    for (int64_t r = 0; r < u->l.images * lines; r++, to += wide * pitch) {
        const int64_t image = u->image + r / lines, from = u->y + a[1].off + r % lines;
        if (from < 0 || from >= a[1].from_dim || lo == hi) {
            memset(to, 0, (size_t)(wide * pitch) * sizeof *to);
            continue;
        }
        memset(to, 0, (size_t)(lo * pitch) * sizeof *to);
        ls_brain_rows(x, (image * a[1].from_dim + from) * a[2].from_dim + a[2].off + lo, hi - lo,
                      u->g * d->cin, d->cin, to + lo * pitch, pitch);
        memset(to + hi * pitch, 0, (size_t)((wide - hi) * pitch) * sizeof *to);
    }
}

/* Writes rows i .. i + m of columns j .. j + n. */
LS_SHARED_FN void ls_lines_scatter(const LsConv *d, const LsConvArgs *arg, const LsLinesUnit *u,
                                   int64_t i, int64_t m, int64_t j, int64_t n, const real *from,
                                   int64_t ld)
{
    const int64_t count = d->ax[2].count, image = ls_lines_image(&u->l);
    for (int64_t end = i + m, some; i < end; i += some, from += some * ld) {
        const int64_t x = i % u->l.wide, y = i % image / u->l.wide;
        const bool result = x < count && y < u->l.tall;
        some = ls_least((result ? count : u->l.wide) - x, end - i);
        if (result)
            ls_conv_scatter(d, arg,
                            ((u->image + i / image) * d->ax[1].count + u->y + y) * count + x, some,
                            n, from, ld, u->g * d->cout + j);
    }
}

LS_INLINE LsTaps ls_lines_taps(const LsConv *d, const LsLines *l)
{
    const int64_t place = l->pitch / 2;
    return (LsTaps){d->ax[1].taps, d->ax[2].taps, d->ax[1].off_step * l->wide * place,
                    d->ax[2].off_step * place};
}

/* One gather serves all columns; a panel of weights lies packed. */
LS_SHARED_FN void ls_lines_conv(const LsConv *d, const LsConvArgs *arg, int64_t unit)
{
    _Alignas(64) ls_bf16 room[LS_LINES_ROOM];
    _Alignas(64) real sums[LS_LINES_ROWS * LS_NR];
    const LsLinesUnit u = ls_lines_unit(d, false, unit);
    const LsTaps taps = ls_lines_taps(d, &u.l);
    const int64_t lda = u.l.pitch / 2;
    ls_lines_fill(d, &u, arg->x, room);
    for (int64_t j = u.j; j < u.j + u.n; j += LS_NR) {
        const int64_t n = ls_least(u.j + u.n - j, LS_NR);
        const real *bias = arg->bias != NULL ? arg->bias + u.g * d->cout + j : ls_no_bias;
        for (int64_t i = 0; i < u.rows; i += LS_LINES_ROWS) {
            const int64_t some = ls_least(u.rows - i, LS_LINES_ROWS);
            ls_amx_begin();
            ls_amx_panel(some, n, &taps, d->cin / 2, (const real *)room + i * lda, lda,
                         ls_conv_panel(d, arg->packed, u.g, j), ls_panel_width(n), bias, 0, sums,
                         LS_NR);
            ls_amx_end();
            ls_lines_scatter(d, arg, &u, i, some, j, n, sums, LS_NR);
        }
    }
}

/* Few positions: each unit packs its own weights, those of a line of taps at a time. */
LS_SHARED_FN void ls_lines_few(const LsConv *d, const LsConvArgs *arg, int64_t unit)
{
    _Alignas(64) ls_bf16 room[LS_LINES_ROOM];
    _Alignas(64) real words[LS_LINES_WORDS], sums[LS_LINES_MOST * LS_FEW_COLS];
    const LsLinesUnit u = ls_lines_unit(d, true, unit);
    const LsTaps all = ls_lines_taps(d, &u.l), line = {1, all.cols, 0, all.across};
    const int64_t lda = u.l.pitch / 2, k = d->ax[2].taps * d->cin, first = u.g * d->cout + u.j;
    ls_lines_fill(d, &u, arg->x, room);
    for (int64_t t = 0; t < all.rows; t++) {
        ls_conv_panel_words(d, arg->w, u.g, u.j, u.n, t * k, k, words, k / 2);
        ls_amx_begin();
        for (int64_t j = 0; j < u.n; j += LS_NR) {
            const int64_t n = ls_least(u.n - j, LS_NR);
            const real *bias = arg->bias != NULL ? arg->bias + first + j : ls_no_bias;
            ls_amx_panel(u.rows, n, &line, d->cin / 2, (const real *)room + t * all.down, lda,
                         words + j * k / 2, ls_panel_width(n), t == 0 ? bias : sums + j,
                         t == 0 ? 0 : LS_FEW_COLS, sums + j, LS_FEW_COLS);
        }
        ls_amx_end();
    }
    ls_lines_scatter(d, arg, &u, 0, u.rows, u.j, u.n, sums, LS_FEW_COLS);
}
#else       /* never called */
LS_INLINE bool ls_lines_pay(const LsConv *d, bool few) { return (void)d, (void)few, false; }
LS_INLINE int64_t ls_lines_units(const LsConv *d, bool few) { return (void)d, (void)few, 0; }
LS_INLINE void ls_lines_conv(const LsConv *d, const LsConvArgs *arg, int64_t unit)
{
    (void)d, (void)arg, (void)unit;
}
LS_INLINE void ls_lines_few(const LsConv *d, const LsConvArgs *arg, int64_t unit)
{
    (void)d, (void)arg, (void)unit;
}
#endif

#endif
