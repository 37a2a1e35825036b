/* runtime/kernels/ls_sample.h -- filters around a place between the elements of an axis; part of
 * ls_math.h.
 *
 * A filter has 1, 2 or 4 taps: elements of the axis with their weights, and the slopes of the
 * weights along the axis. A tap outside of the axis has the element -1, or the element where `edge`
 * puts it. */
#ifndef LS_RUNTIME_KERNELS_LS_SAMPLE_H
#define LS_RUNTIME_KERNELS_LS_SAMPLE_H

/* What an axis goes on with beyond its ends: nothing, the end, the axis reflected at the middle of
 * the ends' elements, or at their borders. */
enum { LS_EDGE_NOTHING, LS_EDGE_CLAMP, LS_EDGE_MIDDLE, LS_EDGE_BORDER };

/* Element i of an axis of n, at most n + 6 outside. */
LS_FN int64_t ls_tap(int64_t i, int64_t n, int edge)
{
    if (i >= 0 && i < n)
        return i;
    if (edge == LS_EDGE_NOTHING)
        return -1;
    if (edge == LS_EDGE_CLAMP || n == 1)
        return i < 0 ? 0 : n - 1;
    const int64_t turn = edge == LS_EDGE_MIDDLE ? 2 * (n - 1) : 2 * n;
    const int64_t r = (i % turn + turn) % turn;
    return r < n ? r : edge == LS_EDGE_MIDDLE ? turn - r : turn - 1 - r;
}

/* The whole number `whole` as an index. What lies far outside is brought near, where no tap reaches
 * the axis; a NaN becomes 0, so that its weights, which are NaN, are seen. */
LS_FN int64_t ls_tap_base(real whole, int64_t n)
{
    const real most = (real)(n + 5), near = whole < LS_R(-5) ? LS_R(-5)
                                            : whole > most   ? most
                                                             : whole;
    return near == near ? (int64_t)near : 0;
}

/* The nearest element, halves to even. */
LS_FN void ls_taps_nearest(real at, int64_t n, int edge, int64_t tap[], real by[], real slope[])
{
    tap[0] = ls_tap(ls_tap_base(ls_round(at), n), n, edge);
    by[0] = at == at ? LS_R(1) : at;
    slope[0] = 0;
}

LS_FN void ls_taps_linear(real at, int64_t n, int edge, int64_t tap[], real by[], real slope[])
{
    const real low = ls_floor(at), part = at - low;
    const int64_t base = ls_tap_base(low, n);
    tap[0] = ls_tap(base, n, edge);
    tap[1] = ls_tap(base + 1, n, edge);
    by[0] = 1 - part;
    by[1] = part;
    slope[0] = -1;
    slope[1] = 1;
}

/* Cubic convolution (R. G. Keys) with a = -0.75, as in PyTorch and ONNX. */
LS_FN void ls_taps_cubic(real at, int64_t n, int edge, int64_t tap[], real by[], real slope[])
{
    const real a = LS_R(-0.75), low = ls_floor(at), part = at - low;
    const int64_t base = ls_tap_base(low, n);
    for (int k = 0; k < 4; k++) {
        const bool outer = k == 0 || k == 3;
        const real t = k == 0 ? part + 1 : k == 1 ? part : k == 2 ? 1 - part : 2 - part;
        const real weight =
            outer ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : ((a + 2) * t - (a + 3)) * t * t + 1;
        const real along =
            outer ? (3 * a * t - 10 * a) * t + 8 * a : (3 * (a + 2) * t - 2 * (a + 3)) * t;
        tap[k] = ls_tap(base + k - 1, n, edge);
        by[k] = weight;
        slope[k] = k < 2 ? along : -along;
    }
}

/* ---- bins of boxes ---- */

/* Samples of a bin along an axis: `count`, in the middles of parts of length `step` from `first`
 * on. Those from `lo` to hi - 1 may be in the image. */
typedef struct LsBin { real first, step, count; int64_t lo, hi; } LsBin;

/* n: elements of the axis. False: a NaN, or too long. */
LS_FN int ls_bin(real first, real size, int64_t n, LsBin *b)
{
    const real count = size > 0 ? ls_ceil(size) : LS_R(0);
    b->first = first;
    b->count = count;
    b->step = count > 0 ? size / count : LS_R(0);
    b->lo = b->hi = 0;
    if (!(size <= LS_R(1e9)) || !(first == first))
        return 0;
    if (!(count > 0))
        return 1;
    /* A sample more on either side: each is looked at again. */
    const real lo = ls_floor((-1 - first) / b->step) - 1,
               hi = ls_ceil(((real)n - first) / b->step) + 1;
    b->lo = lo > 0 ? (int64_t)(lo < count ? lo : count) : 0;
    b->hi = hi > 0 ? (int64_t)(hi < count ? hi : count) : 0;
    return 1;
}

/* The elements around sample i, and their weights. False: it is outside. */
LS_FN int ls_bin_tap(const LsBin *b, int64_t i, int64_t n, int64_t tap[2], real by[2])
{
    real at = b->first + ((real)i + LS_R(0.5)) * b->step;
    if (!(at >= -1 && at <= (real)n))
        return 0;
    at = at < 0 ? LS_R(0) : at > (real)(n - 1) ? (real)(n - 1) : at;
    const real low = ls_floor(at);
    tap[0] = (int64_t)low;
    tap[1] = tap[0] + 1 < n ? tap[0] + 1 : tap[0];
    by[1] = at - low;
    by[0] = 1 - by[1];
    return 1;
}

#endif
