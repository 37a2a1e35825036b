/* dataset/picture_size.c -- sizes of pictures: resampling and the centre.
 *
 * Bilinear: each side is reduced by a triangle that is as wide as two pixels of the result, first
 * along rows, then along columns, with weights of 22 bits and a rounding to bytes after each. These
 * are the arithmetic and the order of Pillow (Resample.c), so the bytes are the same. */
#include "dataset/picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 22 }; /* of a weight: 32 less a byte and two bits for the sum */

/* What output k takes of the input: `n` values from `first` on, with weights at k * most. */
typedef struct Weights {
    int most;
    int *first, *n, *weight;
} Weights;

static void weights_free(Weights *w)
{
    free(w->first);
    free(w->weight);
}

static void set_weights(Weights *w, int k, double centre, double support, double filter, int in,
                        double *real)
{
    int low = (int)(centre - support + 0.5), high = (int)(centre + support + 0.5);
    double sum = 0;
    low = low < 0 ? 0 : low;
    high = high > in ? in : high;
    w->first[k] = low;
    w->n[k] = high - low;
    for (int i = 0; i < high - low; i++) {
        const double x = fabs((i + low - centre + 0.5) * (1.0 / filter));
        real[i] = x < 1.0 ? 1.0 - x : 0.0;
        sum += real[i];
    }
    for (int i = 0; i < high - low; i++)
        w->weight[k * w->most + i] =
            (int)(0.5 + (sum != 0 ? real[i] / sum : real[i]) * (1 << BITS));
}

static bool weights_make(Weights *w, int in, int out)
{
    const double scale = (double)in / out, filter = scale < 1 ? 1 : scale, support = filter;
    w->most = (int)ceil(support) * 2 + 1;
    w->first = malloc(2 * (size_t)out * sizeof *w->first);
    w->weight = calloc((size_t)out * (size_t)w->most, sizeof *w->weight);
    double *real = malloc((size_t)w->most * sizeof *real);
    const bool ok = w->first && w->weight && real;
    w->n = ok ? w->first + out : NULL;
    for (int k = 0; ok && k < out; k++)
        set_weights(w, k, (k + 0.5) * scale, support, filter, in, real);
    free(real);
    return ok;
}

static unsigned char rounded(int sum)
{
    sum >>= BITS;
    return (unsigned char)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void along_rows(const LsPicture *from, LsPicture *to, const Weights *w)
{
    const int channels = from->channels;
    for (int y = 0; y < to->height; y++) {
        const unsigned char *row = from->data + (size_t)y * (size_t)from->width * (size_t)channels;
        unsigned char *at = to->data + (size_t)y * (size_t)to->width * (size_t)channels;
        for (int x = 0; x < to->width; x++)
            for (int c = 0; c < channels; c++) {
                const int *weight = w->weight + x * w->most;
                const unsigned char *p = row + w->first[x] * channels + c;
                int sum = 1 << (BITS - 1);
                for (int i = 0; i < w->n[x]; i++)
                    sum += p[i * channels] * weight[i];
                *at++ = rounded(sum);
            }
    }
}

static bool along_columns(const LsPicture *from, LsPicture *to, const Weights *w)
{
    const int row = from->width * from->channels;
    int *sum = malloc((size_t)row * sizeof *sum);
    for (int y = 0; sum && y < to->height; y++) {
        const int *weight = w->weight + y * w->most;
        for (int x = 0; x < row; x++)
            sum[x] = 1 << (BITS - 1);
        for (int i = 0; i < w->n[y]; i++) {
            const unsigned char *p = from->data + (size_t)(w->first[y] + i) * (size_t)row;
            for (int x = 0; x < row; x++)
                sum[x] += p[x] * weight[i];
        }
        for (int x = 0; x < row; x++)
            to->data[(size_t)y * (size_t)row + (size_t)x] = rounded(sum[x]);
    }
    free(sum);
    return sum != NULL;
}

/* One side; the picture is replaced. */
static bool resize_side(LsPicture *p, int width, int height, const char *path, LsError *e)
{
    LsPicture to;
    Weights w = {0};
    const bool rows = width != p->width;
    if (!ls_picture_room(&to, path, width, height, p->channels, e))
        return false;
    to.rounded = p->rounded;
    to.had_alpha = p->had_alpha;
    bool ok = weights_make(&w, rows ? p->width : p->height, rows ? width : height);
    if (ok && rows)
        along_rows(p, &to, &w);
    else if (ok)
        ok = along_columns(p, &to, &w);
    weights_free(&w);
    free(p->data);
    *p = to;
    return ok || ls_fail(e, LS_EXIT_FAIL, "out of memory");
}

static bool take_nearest(LsPicture *p, int width, int height, const char *path, LsError *e)
{
    LsPicture to;
    if (!ls_picture_room(&to, path, width, height, p->channels, e))
        return false;
    const double across = (double)p->width / width, down = (double)p->height / height;
    const size_t channels = (size_t)p->channels;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            const size_t sx = (size_t)((x + 0.5) * across), sy = (size_t)((y + 0.5) * down);
            memcpy(to.data + ((size_t)y * (size_t)width + (size_t)x) * channels,
                   p->data + (sy * (size_t)p->width + sx) * channels, channels);
        }
    free(p->data);
    *p = to;
    return true;
}

bool ls_picture_resize(LsPicture *p, int width, int height, bool nearest, const char *path,
                       LsError *e)
{
    if (width == p->width && height == p->height)
        return true;
    if (nearest)
        return take_nearest(p, width, height, path, e);
    return (width == p->width || resize_side(p, width, p->height, path, e))
           && (height == p->height || resize_side(p, p->width, height, path, e));
}

/* Half a pixel goes to the even side, as Python rounds. */
static int middle(int room)
{
    return room % 4 == 3 ? room / 2 + 1 : room / 2;
}

void ls_picture_crop(LsPicture *p, int width, int height)
{
    const int left = middle(p->width - width), top = middle(p->height - height);
    const size_t channels = (size_t)p->channels, bytes = (size_t)width * channels;
    for (int y = 0; y < height; y++)
        memmove(p->data + (size_t)y * bytes,
                p->data + ((size_t)(top + y) * (size_t)p->width + (size_t)left) * channels, bytes);
    p->width = width;
    p->height = height;
}
