/* runtime/data/augmenter.c -- see augmenter.h. */
#include "runtime/data/augmenter.h"

#include "runtime/base/element.h"
#include "runtime/base/tensor_copy.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- what fits the program and its data ---- */

static bool same_size(const LsPictureSize *a, const LsPictureSize *b)
{
    return a->high == b->high && a->wide == b->wide && a->from_high == b->from_high
           && a->from_wide == b->from_wide;
}

static LsInputKind kind_of(const LsDataset *d, uint32_t k, const LsPictureSize *size)
{
    const LsInput *in = &d->p->input[k];
    LsPictureSize own;
    if (d->source[k].whole)
        return LS_INPUT_AS_IS;
    if (in->is_label && d->label_is_input)
        return kind_of(d, d->label_input, size) == LS_INPUT_PICTURE ? LS_INPUT_PICTURE
                                                                    : LS_INPUT_AS_IS;
    if (!ls_map_size(d, k, &own) || !same_size(&own, size))
        return LS_INPUT_AS_IS;
    return ls_picture_size(d, k, &own)                ? LS_INPUT_PICTURE
           : in->is_label || in->t.type != LS_DT_REAL ? LS_INPUT_MAP
                                                      : LS_INPUT_AS_IS;
}

/* What an input of three axes or more says of places must move with the pictures. */
static bool moves_together(const LsAugmenter *a, LsError *e)
{
    const LsDataset *d = a->data;
    char dims[96];
    for (uint32_t k = 0; k < d->p->ninput; k++) {
        const LsInput *in = &d->p->input[k];
        if (in->t.rank >= 3 && !d->source[k].whole && a->kind[k] == LS_INPUT_AS_IS)
            return ls_fail(e, LS_EXIT_USAGE,
                           "--augment: '%s' is %s, and its data may be of another size: what moves "
                           "with pictures of %" PRId64 "x%" PRId64 " (%" PRId64 "x%" PRId64
                           " in the data) has their rows and columns as its last two axes",
                           in->t.name, ls_dims_text(in->t.rank, in->t.dim, dims), a->size.high,
                           a->size.wide, a->size.from_high, a->size.from_wide);
    }
    return true;
}

static bool window_fits(const LsAugmenter *a, LsError *e)
{
    const LsPictureSize *s = &a->size;
    const int64_t pad = a->how.pad;
    if (a->how.crop && (s->from_high + 2 * pad < s->high || s->from_wide + 2 * pad < s->wide))
        return ls_fail(e, LS_EXIT_USAGE,
                       "--augment: crop=%" PRId64 ": the pictures are %" PRId64 "x%" PRId64
                       ", and the program takes %" PRId64 "x%" PRId64
                       "; resized-crop enlarges smaller ones",
                       pad, s->from_high, s->from_wide, s->high, s->wide);
    if (a->how.crop && a->how.reflect && (pad >= s->from_high || pad >= s->from_wide))
        return ls_fail(e, LS_EXIT_USAGE,
                       "--augment: crop=%" PRId64 ":reflect: the pictures are %" PRId64 "x%" PRId64
                       ", and mirror images of them have fewer rows and columns",
                       pad, s->from_high, s->from_wide);
    return ls_augment_crops(&a->how) || (s->from_high == s->high && s->from_wide == s->wide)
           || ls_fail(e, LS_EXIT_USAGE,
                      "--augment: the pictures are %" PRId64 "x%" PRId64
                      ", and the program takes %" PRId64 "x%" PRId64
                      "; resized-crop or crop takes a part of each",
                      s->from_high, s->from_wide, s->high, s->wide);
}

static bool colours_fit(const LsAugmenter *a, LsError *e)
{
    const LsDataset *d = a->data;
    const bool grey = a->how.colour[LS_SATURATION] == 0 && a->how.colour[LS_HUE] == 0;
    for (uint32_t k = 0; k < d->p->ninput && ls_augment_colours(&a->how); k++) {
        const int64_t channels = d->source[k].channel;
        if (a->kind[k] == LS_INPUT_PICTURE && channels != 3 && !(channels == 1 && grey))
            return ls_fail(
                e, LS_EXIT_USAGE,
                "--augment: jitter changes pictures of 3 channels (red, green, blue), or, "
                "without saturation and hue, of 1; '%s' has %" PRId64,
                d->p->input[k].t.name, channels);
    }
    return true;
}

static bool mixes_fit(const LsAugmenter *a, LsError *e)
{
    const LsProgram *p = a->data->p;
    const char *what = a->how.mixup > 0 ? "mixup" : "cutmix";
    if (p->privacy.expected > 0)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--augment: %s mixes samples, and the guarantee of private training is for "
                       "each sample alone",
                       what);
    for (uint32_t k = 0; k < p->ninput; k++)
        if (p->input[k].t.type != LS_DT_REAL && !a->data->source[k].whole)
            return ls_fail(
                e, LS_EXIT_USAGE,
                p->input[k].is_label
                    ? "--augment: %s mixes targets, and '%s' has integer labels; compile "
                      "with --loss soft_ce, whose target has probabilities"
                    : "--augment: %s mixes reals, and '%s' has integers",
                what, p->input[k].t.name);
    return true;
}

static bool describe(LsAugmenter *a, LsError *e)
{
    const LsDataset *d = a->data;
    const uint32_t first = ls_first_picture(d);
    const bool pictures =
        ls_augment_moves(&a->how) || ls_augment_colours(&a->how) || a->how.cutmix > 0;
    if (first < d->p->ninput)
        ls_picture_size(d, first, &a->size);
    else if (pictures)
        return ls_fail(e, LS_EXIT_USAGE,
                       "--augment: the program takes no pictures, which are reals of four axes "
                       "(samples, channels, rows, columns); mixup alone takes other reals");
    for (uint32_t k = 0; k < d->p->ninput && first < d->p->ninput; k++) {
        a->kind[k] = (uint8_t)kind_of(d, k, &a->size);
        if (a->kind[k] == LS_INPUT_PICTURE && d->source[k].channel > a->channels)
            a->channels = d->source[k].channel;
    }
    const bool moves = ls_augment_moves(&a->how) || a->how.cutmix > 0;
    return (!moves || moves_together(a, e)) && (first == d->p->ninput || window_fits(a, e))
           && colours_fit(a, e) && (!ls_augment_mixes(&a->how) || mixes_fit(a, e));
}

static bool windows_fit(const LsAugmenter *a, LsError *e)
{
    return !a->windows || a->data->p->privacy.expected == 0
           || ls_fail(e, LS_EXIT_USAGE,
                      "--random-windows: the guarantee of private training is for windows that "
                      "stay the same");
}

/* ---- opening ---- */

bool ls_augmenter_open(LsAugmenter *a, const LsAugment *how, const LsDataset *d, uint64_t seed,
                       int rooms, LsError *e)
{
    *a = (LsAugmenter){.data = d, .seed = seed, .rooms = rooms, .windows = d->moves > 0};
    if (how != NULL)
        a->how = *how;
    a->kind = calloc(d->p->ninput + 1, 1);
    if (a->kind == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    if (!windows_fit(a, e) || (how != NULL && !describe(a, e)))
        return false;
    int64_t other = 0;
    for (uint32_t k = 0; k < d->p->ninput && ls_augment_mixes(&a->how); k++) {
        const int64_t bytes = d->source[k].per_sample * d->p->real_bytes;
        other = bytes > other ? bytes : other;
    }
    a->room = ls_scratch_bytes(&a->size, a->channels, a->how.rotate > 0, other);
    if (how != NULL
        && posix_memalign((void **)&a->memory, 64, (size_t)a->room * (size_t)rooms + 64) != 0) {
        a->memory = NULL;
        return ls_fail(e, LS_EXIT_FAIL, "no memory for --augment, %" PRId64 " bytes",
                       a->room * rooms);
    }
    return true;
}

void ls_augmenter_close(LsAugmenter *a)
{
    free(a->kind);
    free(a->memory);
    *a = (LsAugmenter){0};
}

const char *ls_augmenter_leaves(const LsAugmenter *a)
{
    const LsProgram *p = a->data->p;
    for (uint32_t k = 0; k < p->ninput && ls_augment_moves(&a->how); k++)
        if (p->input[k].is_label && p->input[k].t.type == LS_DT_REAL && a->kind[k] == LS_INPUT_AS_IS
            && !ls_takes_labels(p, k))
            return p->input[k].t.name;
    return NULL;
}

/* ---- reading ---- */

/* Tokens by which the windows of a stream are moved in an epoch. */
static int64_t moved(const LsAugmenter *a, int64_t epoch)
{
    return a->windows ? ls_draw_below(ls_draw_key(a->seed, epoch, -1), 0, a->data->moves + 1) : 0;
}

static bool read_picture(const LsAugmenter *a, LsScratch *s, uint32_t input, int64_t sample,
                         const LsWindow *w, uint64_t key, void *to, LsError *e)
{
    const LsDataset *d = a->data;
    const bool coloured = ls_augment_colours(&a->how);
    if (!w->resized && !w->turned && !coloured)
        return ls_window_read(d, input, sample, w, to, e);
    const int64_t n = a->size.high * a->size.wide, channels = d->source[input].channel;
    ls_picture_resample(d, input, sample, w, &a->size, s);
    if (w->turned)
        ls_picture_turn(w, &a->size, d->source[input].per_sample / n, s);
    if (coloured) {
        const double white = ls_picture_white(d, input);
        float factor[LS_COLOURS];
        ls_colours_draw(&a->how, key, factor);
        for (int64_t k = 0; k < channels * n; k++)
            s->plane[k] = s->plane[k] * (float)(1 / white);
        ls_picture_colour(s->plane, channels, n, factor);
        for (int64_t k = 0; k < channels * n; k++)
            s->plane[k] = s->plane[k] * (float)white;
    }
    ls_picture_store(d, input, s, to);
    return true;
}

/* A sample that is not mixed. */
static bool read_one(const LsAugmenter *a, LsScratch *s, uint32_t input, int64_t sample,
                     int64_t epoch, void *to, LsError *e)
{
    const uint64_t key = ls_draw_key(a->seed, epoch, sample);
    if (a->kind[input] == LS_INPUT_AS_IS)
        return ls_dataset_read_moved(a->data, input, sample, moved(a, epoch), 0, to, e);
    const LsWindow w = ls_window_draw(&a->how, &a->size, key);
    return a->kind[input] == LS_INPUT_PICTURE ? read_picture(a, s, input, sample, &w, key, to, e)
                                              : ls_window_read(a->data, input, sample, &w, to, e);
}

/* ---- mixing ---- */

/* to = own * to + (1 - own) * other */
static void blend(void *to, const void *other, int64_t n, float own, int real_bytes)
{
    const float rest = 1 - own;
    for (int64_t k = 0; k < n && real_bytes == 4; k++)
        ((float *)to)[k] = own * ((float *)to)[k] + rest * ((const float *)other)[k];
    for (int64_t k = 0; k < n && real_bytes == 8; k++)
        ((double *)to)[k] =
            (double)own * ((double *)to)[k] + (double)rest * ((const double *)other)[k];
}

/* The box of each plane becomes the other's. */
static void paste(const LsAugmenter *a, uint32_t input, const LsMix *m, char *to, const char *other)
{
    const LsTensor *t = &a->data->p->input[input].t;
    const bool last = t->channels_last && t->rank >= 3;
    const int64_t all = a->data->source[input].per_sample / (a->size.high * a->size.wide),
                  planes = last ? 1 : all, each = (last ? all : 1) * a->data->p->real_bytes;
    for (int64_t p = 0; p < planes; p++)
        for (int64_t y = 0; y < m->high; y++) {
            const int64_t at = ((p * a->size.high + m->top + y) * a->size.wide + m->left) * each;
            memcpy(to + at, other + at, (size_t)(m->wide * each));
        }
}

bool ls_augmenter_read(const LsAugmenter *a, int room, uint32_t input, int64_t sample,
                       int64_t epoch, void *to, LsError *e)
{
    const LsDataset *d = a->data;
    LsScratch s = {0};
    if (a->memory != NULL)
        s = ls_scratch_at(a->memory + room * a->room, &a->size, a->channels, a->how.rotate > 0);
    if (!read_one(a, &s, input, sample, epoch, to, e))
        return false;
    const LsMix m =
        ls_mix_draw(&a->how, a->seed, epoch, d->samples, sample, a->size.high, a->size.wide);
    if (m.how == LS_MIX_NONE || d->source[input].whole)
        return true;
    if (!read_one(a, &s, input, m.other, epoch, s.other, e))
        return false;
    if (m.how == LS_MIX_BOX && a->kind[input] != LS_INPUT_AS_IS)
        paste(a, input, &m, to, s.other);
    else
        blend(to, s.other, d->source[input].per_sample, m.own, d->p->real_bytes);
    return true;
}
