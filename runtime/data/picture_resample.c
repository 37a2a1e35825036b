/* runtime/data/picture_resample.c -- see picture_resample.h.
 *
 * A row of the result is first combined of rows of the picture, then of columns: the first loop
 * reads bytes in order, and the second one has a single row in its cache. */
#include "runtime/data/picture_resample.h"

#include "runtime/base/element.h"

#include <math.h>
#include <string.h>

static int64_t aligned(int64_t n)
{
    return (n + 63) & ~(int64_t)63;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Of a window as long as the whole picture, or shorter. */
static int64_t most_taps(int64_t n, int64_t length)
{
    if (n == 0) /* there are no pictures */
        return 0;
    const int64_t taps = 2 * ((length + n - 1) / n) + 2;
    return taps < length ? taps : length;
}

static int64_t taps_bytes(int64_t n, int64_t length)
{
    return aligned(n * (int64_t)sizeof(int32_t))
           + aligned(n * most_taps(n, length) * (int64_t)sizeof(float));
}

static int64_t plane_bytes(const LsPictureSize *s, int64_t channels)
{
    return aligned(channels * s->high * s->wide * (int64_t)sizeof(float));
}

static int64_t row_bytes(const LsPictureSize *s)
{
    return aligned(most(s->from_wide, s->wide) * (int64_t)sizeof(float));
}

int64_t ls_scratch_bytes(const LsPictureSize *s, int64_t channels, bool turns, int64_t other_bytes)
{
    return (1 + turns) * plane_bytes(s, channels) + 2 * row_bytes(s)
           + taps_bytes(s->high, s->from_high) + taps_bytes(s->wide, s->from_wide)
           + aligned(other_bytes);
}

static LsTaps taps_at(char **memory, int64_t n, int64_t length)
{
    LsTaps t = {.first = (int32_t *)(void *)*memory};
    t.weight = (float *)(void *)(*memory + aligned(n * (int64_t)sizeof(int32_t)));
    *memory += taps_bytes(n, length);
    return t;
}

LsScratch ls_scratch_at(void *memory, const LsPictureSize *s, int64_t channels, bool turns)
{
    char *at = memory;
    LsScratch of = {.plane = memory};
    at += plane_bytes(s, channels);
    if (turns) {
        of.turned = (float *)(void *)at;
        at += plane_bytes(s, channels);
    }
    of.row = (float *)(void *)at;
    at += 2 * row_bytes(s);
    of.down = taps_at(&at, s->high, s->from_high);
    of.across = taps_at(&at, s->wide, s->from_wide);
    of.other = at;
    return of;
}

/* ---- weights ---- */

void ls_taps_set(LsTaps *t, int64_t n, int64_t length, bool flip)
{
    const double scale = (double)length / (double)n, reach = scale > 1 ? scale : 1;
    const int64_t span = 2 * (int64_t)ceil(reach) + 1;
    t->taps = span < length ? span : length;
    for (int64_t k = 0; k < n; k++) {
        const int64_t x = flip ? n - 1 - k : k;
        const double middle = scale * ((double)k + 0.5);
        int64_t first = (int64_t)floor(middle - reach + 0.5);
        first = first < 0 ? 0 : first > length - t->taps ? length - t->taps : first;
        float *weight = t->weight + x * t->taps;
        double sum = 0;
        t->first[x] = (int32_t)first;
        for (int64_t j = 0; j < t->taps; j++)
            sum += fmax(0, 1 - fabs((double)(first + j) - middle + 0.5) / reach);
        for (int64_t j = 0; j < t->taps; j++)
            weight[j] =
                (float)(fmax(0, 1 - fabs((double)(first + j) - middle + 0.5) / reach) / sum);
    }
}

/* ---- rows ---- */

/* A row of the data as float32: n elements from element `from` of the sample on. */
static void fetch(const LsDataset *d, uint32_t input, int64_t sample, int64_t from, int64_t n,
                  float *to)
{
    const LsSource *s = &d->source[input];
    if (s->array.type == LS_U8 && s->table != NULL && !s->one) {
        const unsigned char *at = ls_dataset_bytes(d, input, sample) + from;
        for (int64_t k = 0; k < n; k++)
            to[k] = at[k];
    } else {
        ls_dataset_raw(d, input, sample, from, n, to);
    }
}

/* to += weight * the row, or (first) to = weight * the row. */
static void add_row(const unsigned char *bytes, const float *row, float weight, bool first,
                    int64_t n, float *to)
{
    if (first && bytes != NULL)
        for (int64_t k = 0; k < n; k++)
            to[k] = weight * (float)bytes[k];
    else if (first)
        for (int64_t k = 0; k < n; k++)
            to[k] = weight * row[k];
    else if (bytes != NULL)
        for (int64_t k = 0; k < n; k++)
            to[k] += weight * (float)bytes[k];
    else
        for (int64_t k = 0; k < n; k++)
            to[k] += weight * row[k];
}

/* Combines columns. The usual numbers of taps have loops of their own, with the same sums. */
static void across(const LsTaps *t, const float *row, int64_t n, float *to)
{
    const float *w = t->weight;
    if (t->taps == 3) {
        for (int64_t x = 0; x < n; x++, w += 3) {
            const float *v = row + t->first[x];
            to[x] = v[0] * w[0] + v[1] * w[1] + v[2] * w[2];
        }
        return;
    }
    for (int64_t x = 0; x < n; x++, w += t->taps) {
        const float *v = row + t->first[x];
        float sum = v[0] * w[0];
        for (int64_t j = 1; j < t->taps; j++)
            sum += v[j] * w[j];
        to[x] = sum;
    }
}

static void resample_plane(const LsDataset *d, uint32_t input, int64_t sample, const LsWindow *w,
                           const LsPictureSize *size, LsScratch *s, int64_t p)
{
    const LsSource *source = &d->source[input];
    const bool plain = source->array.type == LS_U8 && source->table != NULL && !source->one;
    const unsigned char *bytes = plain ? ls_dataset_bytes(d, input, sample) : NULL;
    float *sum = s->row, *row = s->row + row_bytes(size) / (int64_t)sizeof(float);
    for (int64_t y = 0; y < size->high; y++) {
        bool first = true;
        for (int64_t j = 0; j < s->down.taps; j++) {
            const float weight = s->down.weight[y * s->down.taps + j];
            const int64_t from =
                (p * size->from_high + w->top + s->down.first[y] + j) * size->from_wide + w->left;
            if (weight == 0)
                continue;
            if (bytes == NULL)
                fetch(d, input, sample, from, w->wide, row);
            add_row(bytes != NULL ? bytes + from : NULL, row, weight, first, w->wide, sum);
            first = false;
        }
        across(&s->across, sum, size->wide, s->plane + (p * size->high + y) * size->wide);
    }
}

/* Rows of the picture as they are. */
static void copy_plane(const LsDataset *d, uint32_t input, int64_t sample, const LsWindow *w,
                       const LsPictureSize *size, LsScratch *s, int64_t p)
{
    LsPiece r, c;
    for (int64_t y = 0; ls_window_piece(w, size, true, y, &r); y += r.n)
        for (int64_t k = 0; k < r.n; k++) {
            float *to = s->plane + (p * size->high + y + k) * size->wide;
            const int64_t from = (p * size->from_high + r.from + k * r.step) * size->from_wide;
            if (r.from >= 0)
                fetch(d, input, sample, from, size->from_wide, s->row);
            for (int64_t x = 0; ls_window_piece(w, size, false, x, &c); x += c.n)
                for (int64_t j = 0; j < c.n; j++)
                    to[x + j] = r.from < 0 || c.from < 0 ? 0 : s->row[c.from + j * c.step];
        }
}

void ls_picture_resample(const LsDataset *d, uint32_t input, int64_t sample, const LsWindow *w,
                         const LsPictureSize *size, LsScratch *s)
{
    const int64_t planes = d->source[input].per_sample / (size->high * size->wide);
    if (w->resized) {
        ls_taps_set(&s->down, size->high, w->high, w->vflip);
        ls_taps_set(&s->across, size->wide, w->wide, w->flip);
    }
    for (int64_t p = 0; p < planes; p++)
        if (w->resized)
            resample_plane(d, input, sample, w, size, s, p);
        else
            copy_plane(d, input, sample, w, size, s, p);
}

/* ---- turning ---- */

/* The part of a pixel that row y and column x have in the value at a place between pixels. */
static float weigh(const float *plane, const LsPictureSize *s, int64_t y, int64_t x, double part)
{
    return y < 0 || x < 0 || y >= s->high || x >= s->wide
               ? 0
               : (float)part * plane[y * s->wide + x];
}

void ls_picture_turn(const LsWindow *w, const LsPictureSize *size, int64_t channels, LsScratch *s)
{
    const int64_t n = size->high * size->wide;
    for (int64_t k = 0; k < n; k++) {
        double from[2];
        ls_window_turn(w, size->high, size->wide, k / size->wide, k % size->wide, from);
        const double top = floor(from[0]), left = floor(from[1]);
        const double down = from[0] - top, right = from[1] - left;
        const int64_t y = (int64_t)top, x = (int64_t)left;
        for (int64_t p = 0; p < channels; p++) {
            const float *plane = s->plane + p * n;
            s->turned[p * n + k] = weigh(plane, size, y, x, (1 - down) * (1 - right))
                                   + weigh(plane, size, y, x + 1, (1 - down) * right)
                                   + weigh(plane, size, y + 1, x, down * (1 - right))
                                   + weigh(plane, size, y + 1, x + 1, down * right);
        }
    }
    float *const plane = s->plane;
    s->plane = s->turned;
    s->turned = plane;
}

/* ---- storing ---- */

/* Bytes are divided by 255, unless there is --scale. */
static double unit(const LsSource *s)
{
    return s->scale != 0 ? s->scale : s->table != NULL ? 1 / 255.0 : 1;
}

double ls_picture_white(const LsDataset *d, uint32_t input)
{
    const LsSource *s = &d->source[input];
    return s->table != NULL ? 255 : 1 / unit(s);
}

void ls_picture_store(const LsDataset *d, uint32_t input, const LsScratch *s, void *to)
{
    const LsTensor *t = &d->p->input[input].t;
    const LsSource *from = &d->source[input];
    const int64_t n = t->dim[2] * t->dim[3], channels = from->per_sample / n;
    const int64_t apart = t->channels_last ? channels : 1;
    for (int64_t c = 0; c < channels; c++) {
        const int64_t of = from->mean != NULL ? c % from->channel : 0;
        const double std = from->mean != NULL ? from->std[of] : 1;
        const float factor = (float)(unit(from) / std),
                    plus = from->mean != NULL ? (float)(-from->mean[of] / std) : 0;
        const float *v = s->plane + c * n;
        const int64_t first = t->channels_last ? c : c * n;
        if (d->p->real_bytes == 4)
            for (int64_t k = 0; k < n; k++)
                ((float *)to)[first + k * apart] = v[k] * factor + plus;
        else
            for (int64_t k = 0; k < n; k++)
                ((double *)to)[first + k * apart] = (double)(v[k] * factor + plus);
    }
}
