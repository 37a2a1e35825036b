/* compiler/ops/resize_line.c -- see the header. */
#include "compiler/ops/resize_line.h"

#include <math.h>

LsResizeLine ls_resize_axis(const LsResizeAttr *at, int k)
{
    return (LsResizeLine){.mode = at->mode == LS_RESIZE_NEAREST ? LS_LINE_NEAREST : LS_LINE_LINEAR,
                          .coord = (LsLineCoord)at->coord,
                          .nearest = at->nearest,
                          .scale = at->scale[k],
                          .x = at->x.dim[k],
                          .y = at->y.dim[k]};
}

/* Where element i of the result lies in the operand. */
static double source(const LsResizeLine *l, int64_t i)
{
    double at = (double)i, x = (double)l->x, y = l->scale * x;  /* y: not rounded */
    switch (l->coord) {
    case LS_LINE_PYTORCH_HALF_PIXEL:
        return l->y == 1 ? 0 : (at + 0.5) / l->scale - 0.5;
    case LS_LINE_ALIGN_CORNERS:
        return l->y == 1 ? 0 : at * (x - 1) / (y - 1);
    case LS_LINE_ASYMMETRIC:
        return at / l->scale;
    case LS_LINE_HALF_PIXEL_SYMMETRIC:      /* the centres of operand and result coincide */
        return x / 2 * (1 - (double)l->y / y) + (at + 0.5) / l->scale - 0.5;
    case LS_LINE_CROP:
        return l->lo * (x - 1)
            + (l->hi - l->lo) * (x - 1) * (l->y == 1 ? 0.5 : at / (y - 1));
    case LS_LINE_TF_HALF_PIXEL:
        return (at + 0.5) / l->scale;
    case LS_LINE_HALF_PIXEL:
        break;
    }
    return (at + 0.5) / l->scale - 0.5;
}

bool ls_line_outside(const LsResizeLine *l, int64_t i)
{
    const double at = source(l, i);
    return l->coord == LS_LINE_CROP && !(at >= 0 && at <= (double)(l->x - 1));
}

static int64_t clamp(double at, int64_t length)
{
    return (int64_t)fmin(fmax(at, 0), (double)(length - 1));
}

static double rounded(LsRound how, double at)
{
    switch (how) {
    case LS_ROUND_FLOOR: return floor(at);
    case LS_ROUND_CEIL: return ceil(at);
    case LS_ROUND_PREFER_FLOOR: return ceil(at - 0.5);
    case LS_ROUND_PREFER_CEIL: break;
    }
    return floor(at + 0.5);
}

/* Weight of an element at distance t. */
static double weight(const LsResizeLine *l, double t)
{
    double a = l->cubic_a;
    t = fabs(t);
    if (l->mode == LS_LINE_LINEAR)
        return fmax(1 - t, 0);
    if (t <= 1)
        return ((a + 2) * t - (a + 3)) * t * t + 1;
    return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

/* Antialiasing widens the neighbourhood where the axis shrinks. */
static double narrow(const LsResizeLine *l) { return l->antialias ? fmin(l->scale, 1) : 1; }

/* The first neighbour of a place, counted from the last element before it. */
static double first_tap(const LsResizeLine *l)
{
    return floor(-(l->mode == LS_LINE_CUBIC ? 2 : 1) / narrow(l)) + 1;
}

int64_t ls_line_most_taps(const LsResizeLine *l)
{
    return l->mode == LS_LINE_NEAREST ? 1 : (int64_t)(2 - 2 * first_tap(l));
}

static int64_t neighbours(const LsResizeLine *l, double at, LsLineTap tap[])
{
    const double first = first_tap(l), base = ceil(at) - 1;
    double sum = 0;
    int64_t n = 0;
    for (double k = base + first; k < base + 2 - first; k++) {
        if (l->exclude_outside && (k < 0 || k > (double)(l->x - 1)))
            continue;
        tap[n] = (LsLineTap){clamp(k, l->x), weight(l, narrow(l) * (k - at))};
        sum += tap[n++].by;
    }
    for (int64_t k = 0; k < n; k++)
        tap[k].by /= sum;
    return sum != 0 && isfinite(sum) ? n : 0;
}

int64_t ls_line_taps(const LsResizeLine *l, int64_t i, LsLineTap tap[])
{
    const double at = source(l, i), low = floor(at);
    if (ls_line_outside(l, i))
        return 0;
    if (l->mode == LS_LINE_NEAREST) {
        tap[0] = (LsLineTap){clamp(rounded(l->nearest, at), l->x), 1};
        return 1;
    }
    if (l->mode == LS_LINE_CUBIC || l->antialias)
        return neighbours(l, at, tap);
    tap[0] = (LsLineTap){clamp(low, l->x), 1 - (at - low)};
    tap[1] = (LsLineTap){clamp(low + 1, l->x), at - low};
    return 2;
}
