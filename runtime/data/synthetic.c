/* runtime/data/synthetic.c -- synthetic data that can be learned; each element is a function of
 * (seed, sample, place).
 *
 * Segmentation: noise with bright discs; the target is the class of the disc. Classification: noise
 * over a pattern of the class. Real targets: the first input's values. Integers: the target is the
 * next number. */
#include "runtime/base/element.h"
#include "runtime/base/seed_mix.h"
#include "runtime/base/tensor_copy.h"
#include "runtime/data/dataset.h"
#include "runtime/data/label_input.h"

#include <math.h>

enum { DISCS = 4 };

/* The common part of all keys with the same a and b; ls_mix(begin(a, b) + c) is key(a, b, c). */
static uint64_t begin(uint64_t a, uint64_t b)
{
    return ls_mix(ls_mix(a + 0x9e3779b97f4a7c15u) + b);
}

static uint64_t key(uint64_t a, uint64_t b, uint64_t c) { return ls_mix(begin(a, b) + c); }

static double unit(uint64_t bits) { return (double)(bits >> 11) * 0x1p-53; }

static int64_t classes_of(const LsProgram *p)
{
    return p->target.classes > 0 ? p->target.classes : 2;
}

/* Class of pixel (y, x) of an h by w image: that of the last disc covering it, else 0. */
static int64_t disc_class(const LsDataset *d, int64_t sample, int64_t y, int64_t x, int64_t h,
                          int64_t w)
{
    int64_t k = 0, classes = classes_of(d->p);
    for (uint64_t j = 0; j < DISCS; j++) {
        uint64_t r = key(d->opt.seed, (uint64_t)sample, j);
        double cy = unit(ls_mix(r + 1)) * (double)h, cx = unit(ls_mix(r + 2)) * (double)w;
        double radius = (0.08 + 0.17 * unit(ls_mix(r + 3))) * (double)(h < w ? h : w);
        double dy = (double)y + 0.5 - cy, dx = (double)x + 0.5 - cx;
        if (dy * dy + dx * dx < radius * radius)
            k = 1 + (int64_t)(ls_mix(r + 4) % (uint64_t)(classes - 1));
    }
    return k;
}

/* Whether the data are images with one class per pixel. */
static bool segments(const LsDataset *d)
{
    const LsProgram *p = d->p;
    uint32_t label = ls_label_input(p);
    const LsTensor *x = &p->input[0].t;
    if (label == p->ninput || label == 0 || x->rank != 4 || p->target.classes < 2)
        return false;
    const LsTensor *t = &p->input[label].t;
    const int64_t *size = t->dim + t->rank - 2;
    const bool map = p->target.soft ? t->rank == 4 && p->target.class_axis == 1 : t->rank == 3;
    return map && size[0] == x->dim[2] && size[1] == x->dim[3];
}

static double real_input(const LsDataset *d, uint32_t input, int64_t sample, int64_t i)
{
    const LsTensor *t = &d->p->input[input].t;
    uint64_t s = d->opt.seed;
    double noise = unit(key(s, (uint64_t)sample, (uint64_t)i * 64 + input + 16));
    int64_t k;
    if (input == 0 && segments(d)) {
        int64_t h = t->dim[2], w = t->dim[3], c = i / (h * w), at = i % (h * w);
        k = disc_class(d, sample, at / w, at % w, h, w);
        return 0.4 * noise + (k ? 0.2 + 0.4 * unit(key(s + 1, (uint64_t)k, (uint64_t)c)) : 0.0);
    }
    k = (int64_t)(key(s, (uint64_t)sample, 0) % (uint64_t)classes_of(d->p));
    return 0.5 * noise + 0.5 * unit(key(s + 2, (uint64_t)k, (uint64_t)i));
}

static double label_value(const LsDataset *d, uint32_t input, int64_t sample, int64_t i)
{
    const LsTensor *t = &d->p->input[input].t;
    const LsInput *in = &d->p->input[input];
    const int64_t own = in->low < in->high ? in->high : 0,
                  classes = own > 0 ? own : classes_of(d->p);
    if (ls_takes_labels(d->p, input)) {         /* the probability of a class is 0 or 1 */
        int64_t inner = 1;
        for (int a = d->p->target.class_axis + 1; a < t->rank; a++)
            inner *= t->dim[a];
        const int64_t of = i / (inner * classes) * inner + i % inner,
                      class = segments(d) ? disc_class(d, sample, of / t->dim[3], of % t->dim[3],
                                                       t->dim[2], t->dim[3])
                                          : (int64_t)(key(d->opt.seed, (uint64_t)sample,
                                                          (uint64_t)of)
                                                      % (uint64_t)classes);
        return i / inner % classes == class;
    }
    if (t->type == LS_DT_REAL)
        return real_input(d, 0, sample, i % d->source[0].per_sample);
    if (segments(d) && own == 0)
        return (double)disc_class(d, sample, i / t->dim[2], i % t->dim[2], t->dim[1], t->dim[2]);
    if (d->p->input[0].t.type != LS_DT_REAL)
        return (double)(((int64_t)ls_synthetic_value(d, 0, sample, i % d->source[0].per_sample) + 1)
                        % classes);
    return (double)(key(d->opt.seed, (uint64_t)sample, (uint64_t)i) % (uint64_t)classes);
}

double ls_synthetic_value(const LsDataset *d, uint32_t input, int64_t sample, int64_t i)
{
    const LsInput *in = &d->p->input[input];
    if (d->p->segments == input + 1)            /* three samples in a row */
        return (double)(i * 3 / d->source[input].per_sample);
    uint64_t bits = key(d->opt.seed, (uint64_t)sample, (uint64_t)i * 64 + input + 16);
    if (in->usual == LS_USUAL_ONES || in->usual == LS_USUAL_LENGTH)
        return 1;
    if (in->usual == LS_USUAL_COUNT)
        return (double)(i % in->t.dim[in->t.rank - 1]);
    if (in->is_label)
        return label_value(d, input, sample, i);
    if (in->t.type == LS_DT_REAL)
        return real_input(d, input, sample, i);
    return (double)(bits % (uint64_t)(in->t.type == LS_DT_BOOL ? 2 : classes_of(d->p)));
}

void ls_synthetic_reals(const LsDataset *d, uint32_t input, int64_t sample, int64_t i, int64_t n,
                        void *to, int64_t step)
{
    const LsInput *in = &d->p->input[input];
    const bool plain = !in->is_label && !segments(d);
    uint64_t seed = d->opt.seed, k = key(seed, (uint64_t)sample, 0) % (uint64_t)classes_of(d->p);
    uint64_t noise = begin(seed, (uint64_t)sample) + input + 16, pattern = begin(seed + 2, k);
    for (int64_t j = 0; j < n; j++) {
        uint64_t at = (uint64_t)(i + j);
        double v = plain ? 0.5 * unit(ls_mix(noise + at * 64)) + 0.5 * unit(ls_mix(pattern + at))
                         : ls_synthetic_value(d, input, sample, i + j);
        ls_real_put((char *)to + j * step * d->p->real_bytes, v, d->p->real_bytes);
    }
}
