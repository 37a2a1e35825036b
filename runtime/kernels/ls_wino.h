/* runtime/kernels/ls_wino.h -- Winograd's minimal filtering F(4x4, 3x3) for stride-1 3x3
 * convolutions and their gradients (Lavin & Gray, 2016).
 *
 * A tile of 4x4 results needs 6x6 of the source. Small linear transforms map both the source tile
 * and the kernel to 36 points. There a convolution is 36 independent products over channels, 36
 * multiplications instead of 144 per tile and pair of channels; a third transform maps back.
 * Rounding errors are some 1e-6 of the largest result, a few times those of the direct sum.
 *
 * Blocks of tiles go through all three stages on one thread's stack, which fits the L2 cache. The
 * transforms run over vectors of channels; the number of channels is a multiple of LS_WINO_STEP. */
#ifndef LS_RUNTIME_KERNELS_LS_WINO_H
#define LS_RUNTIME_KERNELS_LS_WINO_H

#include "runtime/kernels/ls_gather.h"

enum {
    LS_WINO_ROOM = 12 << 16,    /* elements on the stack for a block: 3 MiB of float */
    LS_WINO_TILES = 8 * LS_MR,  /* most tiles of a block */
    LS_WINO_SLICE = 64,         /* channels of a tile computed together */
};

/* Zeros, read in place of places outside the source. */
static const real ls_wino_zero[LS_WINO_DEPTH] __attribute__((unused));

/* ---- the transforms, in one dimension, for points 0, 1, -1, 2, -2 and infinity ---- */
LS_INLINE void ls_wino_source(ls_vec o[6], const ls_vec d[6])
{
    ls_vec a = d[4] - 4 * d[2], b = d[3] - 4 * d[1], c = d[4] - d[2], e = 2 * (d[3] - d[1]);
    o[0] = 4 * d[0] - 5 * d[2] + d[4];
    o[1] = a + b;
    o[2] = a - b;
    o[3] = c + e;
    o[4] = c - e;
    o[5] = 4 * d[1] - 5 * d[3] + d[5];
}

LS_INLINE void ls_wino_kernel(ls_vec o[6], const ls_vec g[3])
{
    ls_vec a = (g[0] + g[2]) * LS_R(-1.0 / 6), b = g[1] * LS_R(1.0 / 6);
    ls_vec c = g[0] * LS_R(1.0 / 24) + g[2] * LS_R(1.0 / 6), d = g[1] * LS_R(1.0 / 12);
    o[0] = g[0] * LS_R(0.25);
    o[1] = a - b;
    o[2] = a + b;
    o[3] = c + d;
    o[4] = c - d;
    o[5] = g[2];
}

LS_INLINE void ls_wino_result(ls_vec o[4], const ls_vec m[6])
{
    ls_vec a = m[1] + m[2], b = m[1] - m[2], c = m[3] + m[4], d = m[3] - m[4];
    o[0] = m[0] + a + c;
    o[1] = b + 2 * d;
    o[2] = a + 4 * c;
    o[3] = b + 8 * d + m[5];
}

/* ---- kernels at the points: U[point][panels of cin x cout] ---- */
LS_INLINE int64_t ls_wino_blocks(const LsConv *d) { return d->cout / LS_V; }

/* Transforms nine vectors g, `step` apart in the order of the phase's taps, to 36. */
LS_INLINE void ls_wino_kernel_2d(const LsConv *d, LsSource w, int64_t at, int64_t step, real *to,
                                 int64_t ld)
{
    ls_vec t[6][3];
    for (int j = 0; j < 3; j++) {
        ls_vec g[3], o[6];
        for (int i = 0; i < 3; i++)
            g[i] = ls_source_load(w, at + ls_conv_tap(d, 3 * i + j) * step);
        ls_wino_kernel(o, g);
        for (int i = 0; i < 6; i++)
            t[i][j] = o[i];
    }
    for (int i = 0; i < 6; i++) {
        ls_vec o[6];
        ls_wino_kernel(o, t[i]);
        for (int j = 0; j < 6; j++)
            ls_store(to + (6 * i + j) * ld, o[j]);
    }
}

LS_INLINE real *ls_wino_panel(const LsConv *d, real *u, int64_t point, int64_t j)
{
    return u + d->packed + (point * d->cout + j) * d->cin;
}

/* Packs LS_V result channels. In the data gradient, w[cin][9][cout], vectors run along these
 * channels; forward, w[cout][9][cin], they run along source channels and are transposed at the
 * points. */
LS_SHARED_FN void ls_wino_pack(const LsConv *d, const LsConvArgs *arg, int64_t unit)
{
    _Alignas(64) real square[LS_WINO_POINTS][LS_V * LS_V];
    int64_t n = unit * LS_V, j = n / LS_NR * LS_NR, width = ls_panel_width(d->cout - j);
    real *to = ls_wino_panel(d, arg->packed, 0, j) + (n - j);
    for (int64_t k = 0; k < d->cin && d->back; k++)
        ls_wino_kernel_2d(d, arg->w, k * 9 * d->cout + n, d->cout, to + k * width,
                          d->cout * d->cin);
    for (int64_t k = 0; k < d->cin && !d->back; k += LS_V) {
        for (int q = 0; q < LS_V; q++)
            ls_wino_kernel_2d(d, arg->w, (n + q) * 9 * d->cin + k, d->cin, square[0] + q * LS_V,
                              LS_V * LS_V);
        for (int point = 0; point < LS_WINO_POINTS; point++)
            ls_pack_square(to + point * d->cout * d->cin + k * width, width, square[point]);
    }
}

/* ---- a block of tiles ---- */
typedef struct LsWinoBlock { int64_t tiles, cols; } LsWinoBlock;

LS_INLINE int64_t ls_wino_tiles(const LsConv *d)
{
    return d->images * ls_ceil_div(d->ax[1].count, LS_WINO_SIDE)
        * ls_ceil_div(d->ax[2].count, LS_WINO_SIDE);
}

/* As many tiles as the room allows; if the result has so many channels that few tiles would fit, a
 * part of the channels at a time. */
LS_INLINE LsWinoBlock ls_wino_block(const LsConv *d)
{
    LsWinoBlock b = {0, d->cout};
    int64_t all = ls_wino_tiles(d);
    while (b.cols > 2 * LS_NR && LS_WINO_POINTS * 2 * LS_MR * (d->cin + b.cols) > LS_WINO_ROOM)
        b.cols = ls_ceil_div(b.cols / 2, LS_NR) * LS_NR;
    b.tiles = LS_WINO_ROOM / 4 / (LS_WINO_POINTS * (d->cin + b.cols)) / LS_MR * LS_MR;
    b.tiles = ls_most(ls_least(b.tiles, LS_WINO_TILES), 2 * LS_MR);
    while (b.tiles > LS_MR && b.tiles * LS_WINO_POINTS * (d->cin + b.cols) > LS_WINO_ROOM)
        b.tiles -= LS_MR;
    if (all <= 3 * b.tiles / 2 && all * LS_WINO_POINTS * (d->cin + b.cols) <= LS_WINO_ROOM)
        b.tiles = all;
    return b;
}

LS_INLINE int64_t ls_wino_units(const LsConv *d)
{
    LsWinoBlock b = ls_wino_block(d);
    return ls_ceil_div(ls_wino_tiles(d), b.tiles) * ls_ceil_div(d->cout, b.cols);
}

typedef struct LsWinoTile { int64_t image, y, x; } LsWinoTile;  /* y, x: of its first result */

LS_INLINE LsWinoTile ls_wino_tile(const LsConv *d, int64_t tile)
{
    int64_t across = ls_ceil_div(d->ax[2].count, 4), down = ls_ceil_div(d->ax[1].count, 4);
    return (LsWinoTile){tile / across / down, tile / across % down * 4, tile % across * 4};
}

/* Offset of column k in row t of `rows` of a matrix of n columns in panels. */
LS_INLINE int64_t ls_wino_in_panels(int64_t rows, int64_t n, int64_t t, int64_t k)
{
    int64_t j = k / LS_NR * LS_NR;
    return j * rows + t * ls_panel_width(n - j) + (k - j);
}

/* Channels c .. c + n of the 6 x 6 places of a tile, computed; zeros outside the source. */
LS_SHARED_FN void ls_wino_compute(const LsConv *d, LsSource x, const LsWinoTile *at, int64_t c,
                                  int64_t n, real *to)
{
    const LsAxis *a = d->ax;
    int64_t s2 = at->x + a[2].off, lo = ls_least(ls_first_inside(s2, 1), 6);
    int64_t hi = ls_most(ls_end_inside(s2, 1, a[2].from_dim, 6), lo);
    for (int i = 0; i < 6; i++, to += 6 * LS_WINO_SLICE) {
        int64_t s1 = at->y + a[1].off + i;
        bool in = s1 >= 0 && s1 < a[1].from_dim;
        for (int64_t j = 0; j < 6; j++)
            if (!in || j < lo || j >= hi)
                ls_zero(to + j * LS_WINO_SLICE, n);
        if (in && lo < hi)
            ls_source_rows(x, (at->image * a[1].from_dim + s1) * a[2].from_dim + s2 + lo, 1,
                           hi - lo, c, n, to + lo * LS_WINO_SLICE, LS_WINO_SLICE);
    }
}

/* The addresses of 6 x 6 places from the first on: `line` apart down, `step` apart across. */
LS_INLINE void ls_wino_places(const real *first, int64_t line, int64_t step,
                              const real *from[6][6])
{
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            from[i][j] = first + i * line + j * step;
}

/* The address of each of the 6 x 6 places of a tile; in `slice` where they are computed. Few tiles
 * lie at the source's edge: for the others no place is looked at by itself, which would take longer
 * than the transform of 16 channels. */
LS_INLINE void ls_wino_find(const LsConv *d, LsSource x, const LsWinoTile *at, const real *slice,
                            const real *from[6][6])
{
    const int64_t down = d->ax[1].from_dim, across = d->ax[2].from_dim;
    const int64_t s1 = at->y + d->ax[1].off, s2 = at->x + d->ax[2].off;
    const int64_t place = (at->image * down + s1) * across + s2;
    if (!ls_in_place(x)) {
        ls_wino_places(slice, 6 * LS_WINO_SLICE, LS_WINO_SLICE, from);
    } else if (s1 >= 0 && s2 >= 0 && s1 + 6 <= down && s2 + 6 <= across) {
        ls_wino_places(ls_reals(x) + place * d->cin, across * d->cin, d->cin, from);
    } else {
        for (int64_t i = 0; i < 6; i++)
            for (int64_t j = 0; j < 6; j++) {
                bool in = s1 + i >= 0 && s1 + i < down && s2 + j >= 0 && s2 + j < across;
                from[i][j] =
                    in ? ls_reals(x) + (place + i * across + j) * d->cin : ls_wino_zero;
            }
    }
}

/* The source of tile number `tile` at the points, as row t of v[point][rows][cin], in panels or
 * row-major. */
LS_SHARED_FN void ls_wino_take(const LsConv *d, LsSource x, int64_t tile, real *v, int64_t rows,
                               int64_t t, bool panels)
{
    _Alignas(64) real slice[36 * LS_WINO_SLICE];
    int64_t point_step = rows * d->cin;
    LsWinoTile at = ls_wino_tile(d, tile);
    const real *from[6][6];
    ls_wino_find(d, x, &at, slice, from);
    for (int64_t k = 0; k < d->cin; k += LS_V) {
        int64_t at_k = !ls_in_place(x) ? k % LS_WINO_SLICE : k;
        if (!ls_in_place(x) && at_k == 0)
            ls_wino_compute(d, x, &at, k, ls_least(LS_WINO_SLICE, d->cin - k), slice);
        ls_vec s[6][6];
        real *to = v + (panels ? ls_wino_in_panels(rows, d->cin, t, k) : t * d->cin + k);
        for (int j = 0; j < 6; j++) {
            ls_vec c[6], o[6];
            for (int i = 0; i < 6; i++)
                c[i] = ls_load(from[i][j] + at_k);
            ls_wino_source(o, c);
            for (int i = 0; i < 6; i++)
                s[i][j] = o[i];
        }
        for (int i = 0; i < 6; i++) {
            ls_vec o[6];
            ls_wino_source(o, s[i]);
            for (int j = 0; j < 6; j++)
                ls_store(to + (6 * i + j) * point_step, o[j]);
        }
    }
}

/* Stores results n channels wide, from channel n0 on, from m[point][tile of the block][n]. */
LS_SHARED_FN void ls_wino_give(const LsConv *d, const LsConvArgs *arg, const real *m,
                               int64_t point_step, int64_t n, int64_t n0, int64_t tile)
{
    LsWinoTile at = ls_wino_tile(d, tile);
    const LsAxis *a = d->ax;
    int64_t down = ls_least(4, a[1].count - at.y), across = ls_least(4, a[2].count - at.x);
    int64_t line = a[2].count * d->cout;
    int64_t to = ((at.image * a[1].count + at.y) * a[2].count + at.x) * d->cout + n0;
    for (int64_t k = 0; k < n; k += LS_V) {
        ls_vec t[4][6], b = arg->bias != NULL ? ls_load(arg->bias + n0 + k) : (ls_vec){0};
        for (int j = 0; j < 6; j++) {
            ls_vec c[6], o[4];
            for (int i = 0; i < 6; i++)
                c[i] = ls_load(m + (6 * i + j) * point_step + k);
            ls_wino_result(o, c);
            for (int i = 0; i < 4; i++)
                t[i][j] = o[i];
        }
        for (int i = 0; i < down; i++) {
            ls_vec o[4];
            ls_wino_result(o, t[i]);
            for (int j = 0; j < across; j++)
                ls_give_vector(arg->to, arg->y, to + i * line + j * d->cout + k, o[j] + b);
        }
    }
}

LS_SHARED_FN void ls_wino_unit(const LsConv *d, const LsConvArgs *arg, int64_t unit)
{
    _Alignas(64) real room[LS_WINO_ROOM];
    LsWinoBlock b = ls_wino_block(d);
    int64_t col_blocks = ls_ceil_div(d->cout, b.cols), n0 = unit % col_blocks * b.cols;
    int64_t first = unit / col_blocks * b.tiles, n = ls_least(b.cols, d->cout - n0);
    int64_t tiles = ls_least(b.tiles, ls_wino_tiles(d) - first);
    int64_t v_step = tiles * d->cin, m_step = tiles * n;
    real *v = room, *m = room + LS_WINO_POINTS * v_step;
    for (int64_t t = 0; t < tiles; t++)
        ls_wino_take(d, arg->x, first + t, v, tiles, t, false);
    for (int64_t point = 0; point < LS_WINO_POINTS; point++)
        for (int64_t j = 0; j < n; j += LS_NR)
            ls_panel(0, tiles, ls_least(n - j, LS_NR), d->cin, v + point * v_step, d->cin,
                     ls_wino_panel(d, arg->packed, point, n0 + j), ls_panel_width(n - j),
                     ls_no_bias, 0, m + point * m_step + j, n);
    for (int64_t t = 0; t < tiles; t++)
        ls_wino_give(d, arg, m + t * n, m_step, n, n0, first + t);
}

static const LsConvWork ls_wino_pack_work = {ls_wino_blocks, ls_wino_pack};
static const LsConvWork ls_wino_work = {ls_wino_units, ls_wino_unit};

/* ---- weight gradient: the same transforms transposed ----
 * At each point, dU += (results' gradient)' * source over all tiles; dU is transformed back to dW.
 * Tiles are transformed in chunks that fit the workspace. */
LS_INLINE void ls_wino_result_back(ls_vec o[6], const ls_vec y[4])
{
    ls_vec a = y[0] + y[2], b = y[1] + y[3], c = y[0] + 4 * y[2], d = 2 * y[1] + 8 * y[3];
    o[0] = y[0];
    o[1] = a + b;
    o[2] = a - b;
    o[3] = c + d;
    o[4] = c - d;
    o[5] = y[3];
}

LS_INLINE void ls_wino_kernel_back(ls_vec o[3], const ls_vec u[6])
{
    ls_vec a = (u[1] + u[2]) * LS_R(-1.0 / 6), b = u[3] + u[4];
    o[0] = LS_R(0.25) * u[0] + a + LS_R(1.0 / 24) * b;
    o[1] = (u[2] - u[1]) * LS_R(1.0 / 6) + (u[3] - u[4]) * LS_R(1.0 / 12);
    o[2] = a + LS_R(1.0 / 6) * b + u[5];
}

/* The gradient of the results of a tile at the points: row t of g[point][rows][cout]. */
LS_SHARED_FN void ls_wino_take_back(const LsConv *d, LsSource dy, int64_t tile, real *g,
                                    int64_t rows, int64_t t)
{
    LsWinoTile at = ls_wino_tile(d, tile);
    const LsAxis *a = d->ax;
    int64_t down = ls_least(4, a[1].count - at.y), across = ls_least(4, a[2].count - at.x);
    const int64_t from = ((at.image * a[1].count + at.y) * a[2].count + at.x) * d->cout;
    for (int64_t k = 0; k < d->cout; k += LS_V) {
        ls_vec s[6][4];
        for (int j = 0; j < 4; j++) {
            ls_vec c[4], o[6];
            for (int i = 0; i < 4; i++)
                c[i] = i < down && j < across
                           ? ls_source_load(dy, from + (i * a[2].count + j) * d->cout + k)
                           : (ls_vec){0};
            ls_wino_result_back(o, c);
            for (int i = 0; i < 6; i++)
                s[i][j] = o[i];
        }
        for (int i = 0; i < 6; i++) {
            ls_vec o[6];
            ls_wino_result_back(o, s[i]);
            for (int j = 0; j < 6; j++)
                ls_store(g + ((6 * i + j) * rows + t) * d->cout + k, o[j]);
        }
    }
}

typedef struct LsWinoDw {
    const LsConv *d;
    LsSource dy, x;
    real *dw, *u, *v, *g;       /* result; dU[point][cout][cin]; source and gradient of the chunk */
    int64_t first, tiles;       /* the chunk */
} LsWinoDw;

LS_SHARED_FN void ls_wino_dw_take(LsRun *run, void *const arg[], int64_t lo, int64_t hi)
{
    const LsWinoDw *w = arg[0];
    (void)run;
    for (int64_t t = lo; t < hi; t++) {
        ls_wino_take(w->d, w->x, w->first + t, w->v, w->tiles, t, true);
        ls_wino_take_back(w->d, w->dy, w->first + t, w->g, w->tiles, t);
    }
}

/* Tiles of an image; behind the last one that is added up. */
LS_INLINE int64_t ls_wino_image(const LsConv *d)
{
    return d->image > 0 ? d->image : ls_wino_tiles(d) / d->images;
}
LS_INLINE int64_t ls_wino_end(const LsConv *d)
{
    return d->image > 0 ? d->to : ls_wino_tiles(d);
}

/* Tiles from tile t on that make a block of the sum. */
LS_INLINE int64_t ls_wino_dw_block(const LsConv *d, int64_t t)
{
    return ls_dw_block(t + d->before, ls_wino_image(d), LS_WINO_IMAGE);
}

/* The same that make a chunk: whole blocks. */
LS_INLINE int64_t ls_wino_chunk(const LsConv *d, int64_t first)
{
    const int64_t all = ls_wino_end(d);
    int64_t n = 0;
    if (ls_wino_image(d) < LS_WINO_IMAGE)
        return ls_least(d->chunk, all - first);
    while (first + n < all && n + ls_wino_dw_block(d, first + n) <= d->chunk)
        n += ls_wino_dw_block(d, first + n);
    return n;
}

/* Unit: a point. */
LS_SHARED_FN void ls_wino_dw_sum(LsRun *run, void *const arg[], int64_t lo, int64_t hi)
{
    _Alignas(64) real tiles[LS_DW_DEPTH * LS_DW_TILES * LS_TILE_LD];
    const LsWinoDw *w = arg[0];
    int64_t m = w->d->cout, n = w->d->cin;
    (void)run;
    for (int64_t point = lo; point < hi; point++)
        for (int64_t i = 0; i < m; i += LS_DW_ROWS)
            for (int64_t t = 0, k; t < w->tiles; t += k) {
                const int64_t some = ls_least(LS_DW_ROWS, m - i);
                k = ls_least(ls_wino_dw_block(w->d, w->first + t), w->tiles - t);
                const real *v = w->v + point * w->tiles * n;
                const bool begin = w->first + t + w->d->before == 0;
                ls_tile_turned(tiles, w->g + (point * w->tiles + t) * m + i, m, k, some);
                for (int64_t j = 0; j < n; j += LS_NR) {
                    real *c = w->u + (point * m + i) * n + j;
                    ls_panel_tiles(0, some, ls_least(LS_NR, n - j), k, tiles,
                                   v + ls_wino_in_panels(w->tiles, n, t, j), ls_panel_width(n - j),
                                   begin ? ls_no_bias : c, begin ? 0 : n, c, n);
                }
            }
}

/* Unit: a result channel. */
LS_SHARED_FN void ls_wino_dw_give(LsRun *run, void *const arg[], int64_t lo, int64_t hi)
{
    const LsWinoDw *w = arg[0];
    int64_t m = w->d->cout, n = w->d->cin;
    (void)run;
    for (int64_t i = lo; i < hi; i++)
        for (int64_t k = 0; k < n; k += LS_V) {
            ls_vec s[3][6];
            for (int j = 0; j < 6; j++) {
                ls_vec c[6], o[3];
                for (int q = 0; q < 6; q++)
                    c[q] = ls_load(w->u + ((6 * q + j) * m + i) * n + k);
                ls_wino_kernel_back(o, c);
                for (int q = 0; q < 3; q++)
                    s[q][j] = o[q];
            }
            for (int q = 0; q < 3; q++) {
                ls_vec o[3];
                ls_wino_kernel_back(o, s[q]);
                for (int j = 0; j < 3; j++)
                    ls_store(w->dw + (i * 9 + 3 * q + j) * n + k, o[j]);
            }
        }
}

/* Adds up the sums u at the points: [36][cout][cin]. room: 36 * chunk * (cout + cin) elements. */
LS_SHARED_FN void ls_wino_dw_points(LsRun *run, const LsConv *d, LsSource dy, LsSource x, real *u,
                                    real *room)
{
    LsWinoDw w = {.d = d, .dy = dy, .x = x, .u = u, .v = room, .first = d->from};
    void *const arg[] = {&w};
    w.g = w.v + LS_WINO_POINTS * d->chunk * d->cin;
    for (; w.first < ls_wino_end(d); w.first += w.tiles) {
        w.tiles = ls_wino_chunk(d, w.first);
        ls_parallel(run, ls_wino_dw_take, w.tiles, arg);
        ls_parallel(run, ls_wino_dw_sum, LS_WINO_POINTS, arg);
    }
}

/* dw of the sums at the points. */
LS_SHARED_FN void ls_wino_dw_end(LsRun *run, const LsConv *d, const real *u, real *dw)
{
    LsWinoDw w = {.d = d, .u = (real *)(uintptr_t)u, .dw = dw};
    void *const arg[] = {&w};
    ls_parallel(run, ls_wino_dw_give, d->cout, arg);
}

/* The whole kernel; room: 36 * (cout * cin + chunk * (cout + cin)) elements. */
LS_SHARED_FN void ls_wino_dw(LsRun *run, const LsConv *d, LsSource dy, LsSource x, real *dw,
                             real *room)
{
    ls_wino_dw_points(run, d, dy, x, room, room + LS_WINO_POINTS * d->cout * d->cin);
    ls_wino_dw_end(run, d, room, dw);
}

#endif
