/* runtime/kernels/ls_depthwise.h -- convolutions with one channel per group in and out: loops over
 * vectors of channels, no products of matrices. */
#ifndef LS_RUNTIME_KERNELS_LS_DEPTHWISE_H
#define LS_RUNTIME_KERNELS_LS_DEPTHWISE_H

#include "runtime/kernels/ls_gather.h"

/* Unit t packs tap t: packed[t][channel]. */
LS_SHARED_FN void ls_depthwise_pack(const LsConv *d, const LsConvArgs *arg, int64_t unit)
{
    real *to = arg->packed + d->packed + unit * d->group;
    int64_t tap = ls_conv_tap(d, unit), kernel = ls_conv_kernel(d);
    for (int64_t c = 0; c < d->group; c++)
        to[c] = ls_source_at(arg->w, c * kernel + tap);
}

LS_INLINE int64_t ls_depthwise_units(const LsConv *d)
{
    return d->images * d->ax[0].count * d->ax[1].count;
}

/* The line of the source that taps (t0, t1, .) of the line of `at` read; -1: padding. */
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
LS_INLINE void ls_depthwise_sum(int64_t channels, int n, const real *const from[],
                                const real *const w[], real *restrict to)
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

enum { LS_DEPTHWISE_SOME = 64 };        /* channels that are widened together */

/* Adds to n channels from c0 on of one result, at position `at`; `to` holds the bias. n: at most
 * LS_DEPTHWISE_SOME unless the source is in place. */
LS_INLINE void ls_depthwise_position(const LsConv *d, const LsConvArgs *arg, const LsPlace *at,
                                     int64_t c0, int64_t n, real *to)
{
    const LsAxis *a = d->ax;
    const real *from[LS_TAPS], *weight[LS_TAPS], *w = arg->packed + d->packed + c0;
    real wide[LS_TAPS][LS_DEPTHWISE_SOME];
    int taps = 0;
    for (int64_t t0 = 0; t0 < a[0].taps; t0++)
        for (int64_t t1 = 0; t1 < a[1].taps; t1++) {
            int64_t line = ls_conv_line(d, at, t0, t1);
            int64_t s2 = a[2].from_step * at->i[2] + a[2].off;
            for (int64_t t2 = 0; t2 < a[2].taps; t2++, s2 += a[2].off_step, w += d->group) {
                if (line < 0 || s2 < 0 || s2 >= a[2].from_dim)
                    continue;
                int64_t place = line * a[2].from_dim + s2;
                from[taps] =
                    ls_in_place(arg->x) ? ls_reals(arg->x) + place * d->group + c0 : wide[taps];
                if (!ls_in_place(arg->x))
                    ls_source_rows(arg->x, place, 1, 1, c0, n, wide[taps], 0);
                weight[taps++] = w;
                if (taps == LS_TAPS) {
                    ls_depthwise_sum(n, taps, from, weight, to);
                    taps = 0;
                }
            }
        }
    ls_depthwise_sum(n, taps, from, weight, to);
}

/* One line of positions. */
LS_SHARED_FN void ls_depthwise_unit(const LsConv *d, const LsConvArgs *arg, int64_t unit)
{
    const LsAxis *a = d->ax;
    LsPlace at = ls_place(d, unit * a[2].count);
    bool real_both = ls_in_place(arg->x) && arg->to == LS_STORED_REAL;
    int64_t channels = d->group, some = real_both ? channels : LS_DEPTHWISE_SOME;
    int64_t line = (at.image * a[0].to_dim + a[0].to + a[0].to_step * at.i[0]) * a[1].to_dim
        + a[1].to + a[1].to_step * at.i[1];
    for (at.i[2] = 0; at.i[2] < a[2].count; at.i[2]++)
        for (int64_t c = 0; c < channels; c += some) {
            int64_t to = (line * a[2].to_dim + a[2].to + a[2].to_step * at.i[2]) * channels + c;
            int64_t n = ls_least(some, channels - c);
            real room[LS_DEPTHWISE_SOME], *sum = real_both ? (real *)arg->y + to : room;
            if (arg->bias != NULL)
                ls_copy(sum, arg->bias + c, n);
            else
                ls_zero(sum, n);
            ls_depthwise_position(d, arg, &at, c, n, sum);
            if (!real_both)
                ls_give(arg->to, arg->y, to, sum, n);
        }
}

LS_INLINE int64_t ls_depthwise_dw_units(const LsConv *d)
{
    return d->splits * ls_ceil_div(d->group, LS_V);
}

/* Adds the contribution of a line of positions to taps (t0, t1, t2), t2 = 0.., of n <= LS_V
 * channels. at_g, at_x: elements of the gradient and the source, at the line and the first of the
 * channels. */
LS_INLINE void ls_depthwise_dw_line(const LsConv *d, LsSource g, int64_t at_g, LsSource x,
                                    int64_t at_x, int64_t n, real (*sum)[LS_V])
{
    const LsAxis *a = &d->ax[2];
    int64_t channels = d->group, step = a->from_step * channels;
    for (int64_t t = 0, s = a->off; t < a->taps; t++, s += a->off_step) {
        int64_t i = s >= 0 ? 0 : ls_ceil_div(-s, a->from_step);
        int64_t end =
            ls_least(a->count, s < a->from_dim ? ls_ceil_div(a->from_dim - s, a->from_step) : 0);
        int64_t from = at_x + (s + i * a->from_step) * channels;
        if (n < LS_V) {
            for (; i < end; i++, from += step)
                for (int64_t c = 0; c < n; c++)
                    sum[t][c] +=
                        ls_source_at(g, at_g + i * channels + c) * ls_source_at(x, from + c);
            continue;
        }
        ls_vec even = ls_load(sum[t]), odd = {0};
        for (; i + 2 <= end; i += 2, from += 2 * step) {
            even += ls_source_load(g, at_g + i * channels) * ls_source_load(x, from);
            odd += ls_source_load(g, at_g + (i + 1) * channels) * ls_source_load(x, from + step);
        }
        if (i < end)
            even += ls_source_load(g, at_g + i * channels) * ls_source_load(x, from);
        ls_store(sum[t], even + odd);
    }
}

/* dw[channel][tap] of LS_V channels, or one of `splits` parts. Rows of taps are processed in groups
 * of at most LS_TAPS; for longer rows the emitter chooses another algorithm. */
LS_SHARED_FN void ls_depthwise_dw_unit(const LsConv *d, LsSource dy, LsSource x, real *dw,
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
                    ls_depthwise_dw_line(d, dy, p * a[2].count * channels + c0, x,
                                         line * a[2].from_dim * channels + c0, n,
                                         sum + (row - first) * a[2].taps);
            }
        }
        for (int64_t t = first * a[2].taps; t < last * a[2].taps; t++)
            for (int64_t c = 0; c < n; c++)
                dw[(split * channels + c0 + c) * taps + t] = sum[t - first * a[2].taps][c];
    }
}

static const LsConvWork ls_depthwise_pack_work = {ls_conv_taps, ls_depthwise_pack};
static const LsConvWork ls_depthwise_work = {ls_depthwise_units, ls_depthwise_unit};

#endif
