/* runtime/data/picture_colour.c -- changes of colours, with the formulas of torchvision. */
#include "runtime/data/picture_resample.h"

#include <math.h>

static float within(float v)
{
    return v < 0 ? 0 : v > 1 ? 1 : v;
}

static float grey(float r, float g, float b)
{
    return 0.2989f * r + 0.587f * g + 0.114f * b;
}

static void brighten(float *v, int64_t n, float factor)
{
    for (int64_t k = 0; k < n; k++)
        v[k] = within(factor * v[k]);
}

/* The mean of the picture in grey. Partial sums of double, in the order of the pixels. */
static float mean_grey(const float *v, int64_t channels, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += channels == 3 ? grey(v[k], v[n + k], v[2 * n + k]) : v[k];
    return (float)(sum / (double)n);
}

static void contrast(float *v, int64_t channels, int64_t n, float factor)
{
    const float rest = (1 - factor) * mean_grey(v, channels, n);
    for (int64_t k = 0; k < channels * n; k++)
        v[k] = within(factor * v[k] + rest);
}

static void saturate(float *v, int64_t n, float factor)
{
    float *r = v, *g = v + n, *b = v + 2 * n;
    for (int64_t k = 0; k < n; k++) {
        const float rest = (1 - factor) * grey(r[k], g[k], b[k]);
        r[k] = within(factor * r[k] + rest);
        g[k] = within(factor * g[k] + rest);
        b[k] = within(factor * b[k] + rest);
    }
}

/* Turns the hue of a pixel by `by` of the circle: to hue, saturation, value and back. */
static void turn(float *r, float *g, float *b, float by)
{
    const float top = fmaxf(*r, fmaxf(*g, *b)), low = fminf(*r, fminf(*g, *b)), range = top - low;
    if (range == 0) /* grey has no hue */
        return;
    const float s = range / top;
    const float rc = (top - *r) / range, gc = (top - *g) / range, bc = (top - *b) / range;
    float h = *r == top ? bc - gc : *g == top ? 2 + rc - bc : 4 + gc - rc;
    h = h / 6 + 1 + by;
    h -= floorf(h);
    const float six = h * 6, sector = floorf(six), f = six - sector;
    const float p = within(top * (1 - s)), q = within(top * (1 - s * f)),
                t = within(top * (1 - s * (1 - f)));
    switch ((int)sector % 6) {
    case 0: *r = top, *g = t, *b = p; return;
    case 1: *r = q, *g = top, *b = p; return;
    case 2: *r = p, *g = top, *b = t; return;
    case 3: *r = p, *g = q, *b = top; return;
    case 4: *r = t, *g = p, *b = top; return;
    default: *r = top, *g = p, *b = q; return;
    }
}

void ls_picture_colour(float *plane, int64_t channels, int64_t n, const float factor[LS_COLOURS])
{
    if (factor[LS_BRIGHTNESS] != 1)
        brighten(plane, channels * n, factor[LS_BRIGHTNESS]);
    if (factor[LS_CONTRAST] != 1)
        contrast(plane, channels, n, factor[LS_CONTRAST]);
    if (channels != 3)
        return;
    if (factor[LS_SATURATION] != 1)
        saturate(plane, n, factor[LS_SATURATION]);
    for (int64_t k = 0; k < n && factor[LS_HUE] != 0; k++)
        turn(plane + k, plane + n + k, plane + 2 * n + k, factor[LS_HUE]);
}
