/* runtime/data/picture_colour.c -- changes of colours, with the formulas of torchvision. */
#include "runtime/data/picture_resample.h"

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

/* A channel of a colour with the hue h of 6: from `top` down by `range`, as h is further from
 * it. */
static float channel(float h, float offset, float top, float range)
{
    float k = h + offset;
    k = k - (k >= 6 ? 6.0f : 0.0f);
    const float far = k < 4 - k ? k : 4 - k;
    return top - range * within(far);
}

/* Turns the hue of all pixels by `by` of the circle: to hue, largest and smallest channel, and
 * back. Without branches: hues have no order that a processor could guess. */
static void turn(float *restrict r, float *restrict g, float *restrict b, int64_t n, float by)
{
    const float turned = (by < 0 ? by + 1 : by) * 6;
    for (int64_t k = 0; k < n; k++) {
        const float x = r[k], y = g[k], z = b[k];
        const float xy = x > y ? x : y, below = x < y ? x : y;
        const float top = xy > z ? xy : z, low = below < z ? below : z, range = top - low;
        const float part = 1 / (range == 0 ? 1.0f : range);     /* grey has any hue */
        /* which channel is the largest, the first of several */
        const float is_x = x == top ? 1.0f : 0.0f;
        const float is_y = (y == top ? 1.0f : 0.0f) * (1 - is_x), is_z = 1 - is_x - is_y;
        float h = ((y - z) * is_x + (z - x) * is_y + (x - y) * is_z) * part + 2 * is_y + 4 * is_z;
        h = h + (h < 0 ? 6.0f : 0.0f) + turned;
        h = h - (h >= 6 ? 6.0f : 0.0f);
        r[k] = channel(h, 5, top, range);
        g[k] = channel(h, 3, top, range);
        b[k] = channel(h, 1, top, range);
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
    if (factor[LS_HUE] != 0)
        turn(plane, plane + n, plane + 2 * n, n, factor[LS_HUE]);
}
