/* runtime/kernels/ls_gather.h -- the geometry shared by all convolutions: the source elements of
 * each result.
 *
 * For each position p of a result grid and each tap t of the kernel there is one place of the
 * source, or a zero of the padding. Images are channels-last, so a place is a run of channels, and
 * one row of the implicit matrix [positions][taps * channels] is copied run by run (Chetlur et al.,
 * 2014, do this on GPUs). The data gradient reads dY with the taps reversed; a stride > 1 is split
 * into *phases*: the positions of X with the same taps form a grid of their own. */
#ifndef LS_RUNTIME_KERNELS_LS_GATHER_H
#define LS_RUNTIME_KERNELS_LS_GATHER_H

#include "runtime/kernels/ls_packing.h"

#define LS_AXIS_NONE                                                                               \
    {                                                                                              \
        .count = 1, .to_step = 1, .to_dim = 1, .from_step = 1, .from_dim = 1, .taps = 1,           \
        .off_step = 1, .tap_step = 1, .tap_dim = 1                                                 \
    }

typedef struct LsConv {
    LsAxis ax[LS_CONV_AXES]; /* outermost first; unused ones have one position and one tap */
    int64_t images, group, cin, cout;   /* source and result channels per group */
    int64_t run; /* contiguous elements of a row in the source: cin, or taps of the last axis * cin
                  * where taps touch */
    int64_t splits;                     /* weight gradient: parts of the sum over positions */
    int64_t before, all;                /* weight gradient of some images or rows: terms of those
                                         * in front of them, and of all: positions, or Winograd's
                                         * tiles. all 0: these are all */
    int64_t from, to, image;            /* of some rows of one image: the terms from .. to of them
                                         * are added up; image: terms of all rows. image 0: all
                                         * are */
    int64_t chunk;                      /* Winograd's algorithm: tiles at a time */
    int64_t packed;                     /* offset in the workspace of the packed weights, in
                                         * elements */
    bool back; /* data gradient: w is [cin][kernel][cout], not the reverse */
    int dot16;                          /* as in LsMatmul (ls_matmul.h) */
} LsConv;

typedef struct LsConvArgs {             /* arguments of a convolution or a data gradient */
    LsSource x, w;                      /* w: memory */
    const real *bias;                   /* NULL or one per result channel */
    void *y;                            /* result, and how its elements are stored */
    LsStored to;
    real *packed;                       /* workspace */
} LsConvArgs;

enum {
    LS_MC = LS_MR * (LS_MR > 8 ? 8 : 16),       /* positions of a block */
    LS_DW_TILES = LS_DW_ROWS / LS_MR + 1,
    LS_DW_WIDE = 768,           /* in AMX tiles: most columns of a block, and elements of its
                                 * sums */
    LS_DW_SUMS = 64 * 1024,
    LS_DW_WORDS_LD = LS_DW_DEPTH / 2 + LS_V,    /* distance of rows of words */
};

/* Terms of the block of a weight gradient's sum that has place p, from p on. */
LS_INLINE int64_t ls_dw_block(int64_t p, int64_t image, int64_t least)
{
    const int64_t size = ls_dw_block_size(image, least, LS_DW_DEPTH), at = p % image;
    const int64_t rest = size - at % size;
    return image < least ? size : rest < image - at ? rest : image - at;
}

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

/* Positions are contiguous in the result. */
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

/* Channels c .. c + len of `n` positions of one line, whose first source is `s2` of the line that
 * begins at `place`: computed values, zeros outside the line. */
LS_SHARED_FN void ls_gather_computed(const LsAxis *a, LsSource x, int64_t place, int64_t s2,
                                     int64_t n, int64_t c, int64_t len, real *to, int64_t ld)
{
    int64_t lo = ls_least(ls_first_inside(s2, a->from_step), n);
    int64_t hi = ls_most(ls_end_inside(s2, a->from_step, a->from_dim, n), lo);
    for (int64_t i = 0; i < n; i++)
        if (i < lo || i >= hi)
            ls_zero(to + i * ld, len);
    if (lo < hi)
        ls_source_rows(x, place + s2 + lo * a->from_step, a->from_step, hi - lo, c, len,
                       to + lo * ld, ld);
}

/* `len` elements from element `lo` of run (t0, t1, t2) of positions p..p+n; c0: first channel of
 * the group. A run of a computed source is one place. */
LS_INLINE void ls_gather_tap(const LsConv *d, LsSource x, int64_t c0, int64_t p, int64_t n,
                             int64_t t0, int64_t t1, int64_t t2, int64_t lo, int64_t len, real *to,
                             int64_t ld)
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
        } else if (!ls_in_place(x)) {
            int64_t place = ((at.image * a[0].from_dim + s0) * a[1].from_dim + s1) * a[2].from_dim;
            ls_gather_computed(&a[2], x, place, (e - lo) / channels, some, c0 + lo, len, to, ld);
            to += some * ld;
        } else {
            const real *from =
                ls_reals(x) + c0 + ((at.image * a[0].from_dim + s0) * a[1].from_dim + s1) * line;
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

/* Elements that lie behind each other in a source in memory, if places have no other channels. */
LS_INLINE int64_t ls_conv_line_run(const LsConv *d)
{
    return d->group == 1 && d->ax[2].off_step == 1 ? d->ax[2].taps * d->cin : d->cin;
}

/* Columns k0..k1 of the gathered matrix of group g, rows p..p+n, in runs of so many elements. */
LS_SHARED_FN void ls_gather_runs(const LsConv *d, int64_t run, LsSource x, int64_t g, int64_t p,
                                 int64_t n, int64_t k0, int64_t k1, real *to, int64_t ld)
{
    if (k0 == k1)
        return;
    int64_t runs = d->ax[2].taps * d->cin / run;
    for (int64_t r = k0 / run; r * run < k1; r++) {
        int64_t lo = ls_most(k0, r * run), hi = ls_least(k1, (r + 1) * run);
        int64_t t2 = r % runs, t1 = r / runs % d->ax[1].taps, t0 = r / runs / d->ax[1].taps;
        ls_gather_tap(d, x, g * d->cin, p, n, t0, t1, t2, lo - r * run, hi - lo, to + lo - k0, ld);
    }
}

/* The same. Reals in memory that are rounded are gathered as they are, and rounded by rows: runs
 * of a picture's three channels are short. */
LS_SHARED_FN void ls_gather(const LsConv *d, LsSource x, int64_t g, int64_t p, int64_t n,
                            int64_t k0, int64_t k1, real *to, int64_t ld)
{
    const LsStored round = x.round;
    const bool rounds = x.compute == NULL && x.type == LS_STORED_REAL && round != LS_STORED_REAL;
    if (!rounds) {
        ls_gather_runs(d, d->run, x, g, p, n, k0, k1, to, ld);
        return;
    }
    x.round = LS_STORED_REAL;
    ls_gather_runs(d, ls_conv_line_run(d), x, g, p, n, k0, k1, to, ld);
    for (int64_t i = 0; i < n; i++)
        ls_round_all(round, to + i * ld, k1 - k0);
}

/* Kernel element of tap number t of a phase. */
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

/* ---- units ---- */

/* A kind of work on a phase, and its number of units. */
typedef struct LsConvWork {
    int64_t (*units)(const LsConv *d);
    void (*unit)(const LsConv *d, const LsConvArgs *arg, int64_t unit);
} LsConvWork;

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
