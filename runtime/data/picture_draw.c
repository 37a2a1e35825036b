/* runtime/data/picture_draw.c -- see picture_draw.h. */
#include "runtime/data/picture_draw.h"

#include "runtime/base/seed_mix.h"
#include "runtime/data/sample_order.h"

#include <math.h>

/* What a number is for. Each has room for the tries of one decision. */
enum {
    FLIP = 0x100,
    VFLIP = 0x200,
    TOP = 0x300,
    LEFT = 0x400,
    AREA = 0x500,
    SHAPE = 0x600,
    COLOUR = 0x700,
    MIX_HOW = 0x800,
    MIX_TOP = 0x900,
    MIX_LEFT = 0xa00,
    TURN = 0xb00,
    SHARE = 0x10000,      /* and beyond */
    PARTNERS = 0x5061726e /* of the order that says who is mixed with whom */
};

uint64_t ls_draw_key(uint64_t seed, int64_t epoch, int64_t sample)
{
    const uint64_t of = ls_mix(seed + 0x6175676d656e7473u); /* the order of an epoch has another */
    return ls_mix(ls_mix(of + (uint64_t)epoch) + (uint64_t)sample);
}

double ls_draw_unit(uint64_t key, uint64_t k)
{
    return (double)(ls_mix(key + (k + 1) * 0x9e3779b97f4a7c15u) >> 11) * 0x1p-53;
}

int64_t ls_draw_below(uint64_t key, uint64_t k, int64_t n)
{
    const int64_t v = (int64_t)(ls_draw_unit(key, k) * (double)n);
    return v < n ? v : n - 1;
}

static double between(uint64_t key, uint64_t k, double least, double most)
{
    return least + ls_draw_unit(key, k) * (most - least);
}

/* ---- windows ---- */

LsWindow ls_window_centre(const LsPictureSize *s)
{
    return (LsWindow){.top = (s->from_high - s->high) / 2,
                      .left = (s->from_wide - s->wide) / 2,
                      .high = s->high,
                      .wide = s->wide};
}

/* The largest window in the middle whose shape is allowed. */
static void fall_back(const LsAugment *a, const LsPictureSize *s, LsWindow *w)
{
    const double shape = (double)s->from_wide / (double)s->from_high;
    w->high = s->from_high;
    w->wide = s->from_wide;
    if (shape < a->narrow)
        w->high = (int64_t)rint((double)w->wide / a->narrow);
    else if (shape > a->broad)
        w->wide = (int64_t)rint((double)w->high * a->broad);
    w->high = w->high > 0 ? w->high : 1;
    w->wide = w->wide > 0 ? w->wide : 1;
    w->top = (s->from_high - w->high) / 2;
    w->left = (s->from_wide - w->wide) / 2;
}

/* As torchvision's RandomResizedCrop chooses: ten tries, then the middle. */
static void draw_resized(const LsAugment *a, const LsPictureSize *s, uint64_t key, LsWindow *w)
{
    enum { TRIES = 10 };
    const double all = (double)s->from_high * (double)s->from_wide;
    w->resized = true;
    for (uint64_t k = 0; k < TRIES; k++) {
        const double area = all * between(key, AREA + k, a->least, a->most);
        const double shape = exp(between(key, SHAPE + k, log(a->narrow), log(a->broad)));
        w->wide = (int64_t)rint(sqrt(area * shape));
        w->high = (int64_t)rint(sqrt(area / shape));
        if (w->wide < 1 || w->high < 1 || w->wide > s->from_wide || w->high > s->from_high)
            continue;
        w->top = ls_draw_below(key, TOP + k, s->from_high - w->high + 1);
        w->left = ls_draw_below(key, LEFT + k, s->from_wide - w->wide + 1);
        return;
    }
    fall_back(a, s, w);
}

LsWindow ls_window_draw(const LsAugment *a, const LsPictureSize *s, uint64_t key)
{
    LsWindow w = ls_window_centre(s);
    w.flip = ls_draw_unit(key, FLIP) < a->flip;
    w.vflip = ls_draw_unit(key, VFLIP) < a->vflip;
    w.reflect = a->reflect;
    if (a->rotate > 0) {
        const double angle = between(key, TURN, -a->rotate, a->rotate) * (M_PI / 180);
        w.turned = true;
        w.cosine = cos(angle);
        w.sine = sin(angle);
    }
    if (a->resized) {
        draw_resized(a, s, key, &w);
    } else if (a->crop) {
        w.top = ls_draw_below(key, TOP, s->from_high + 2 * a->pad - s->high + 1) - a->pad;
        w.left = ls_draw_below(key, LEFT, s->from_wide + 2 * a->pad - s->wide + 1) - a->pad;
    }
    return w;
}

/* ---- colours ---- */

void ls_colours_draw(const LsAugment *a, uint64_t key, float factor[LS_COLOURS])
{
    for (int k = 0; k < LS_COLOURS; k++) {
        const double most = a->colour[k], usual = k == LS_HUE ? 0 : 1;
        const double least = k != LS_HUE && most > 1 ? 0 : usual - most;
        factor[k] = (float)between(key, COLOUR + (uint64_t)k, least, usual + most);
    }
}

/* ---- mixing ---- */

/* The logarithm of a number with the distribution Gamma(alpha). Marsaglia and Tsang's method for
 * alpha + 1, times u^(1/alpha). Numbers from *k on are used. */
static double log_gamma_draw(uint64_t key, uint64_t *k, double alpha)
{
    const double d = alpha + 2.0 / 3, c = 1 / (3 * sqrt(d));
    for (;;) {
        const double a = 2 * ls_draw_unit(key, (*k)++) - 1, b = 2 * ls_draw_unit(key, (*k)++) - 1;
        const double u = 1 - ls_draw_unit(key, (*k)++), r = a * a + b * b;
        if (r >= 1 || r == 0)
            continue;
        const double x = a * sqrt(-2 * log(r) / r), v = 1 + c * x, cube = v * v * v;
        if (v <= 0 || log(u) >= 0.5 * x * x + d - d * cube + d * log(cube))
            continue;
        return log(d * cube) + log(1 - ls_draw_unit(key, (*k)++)) / alpha;
    }
}

/* Beta(alpha, alpha). */
static double draw_share(uint64_t key, double alpha)
{
    uint64_t k = SHARE;
    const double x = log_gamma_draw(key, &k, alpha), y = log_gamma_draw(key, &k, alpha);
    return 1 / (1 + exp(y - x));
}

static float exact_share(double v)
{
    return (float)(rint(v * 0x1p24) * 0x1p-24);
}

/* A box with its middle anywhere, of the part `share` of the picture where it lies within it. */
static void draw_box(LsMix *m, uint64_t key, double share, int64_t high, int64_t wide)
{
    const double side = sqrt(share);
    const int64_t h = (int64_t)((double)high * side), w = (int64_t)((double)wide * side);
    const int64_t y = ls_draw_below(key, MIX_TOP, high), x = ls_draw_below(key, MIX_LEFT, wide);
    const int64_t bottom = y - h / 2 + h, right = x - w / 2 + w;
    m->top = y - h / 2 > 0 ? y - h / 2 : 0;
    m->left = x - w / 2 > 0 ? x - w / 2 : 0;
    m->high = (bottom < high ? bottom : high) - m->top;
    m->wide = (right < wide ? right : wide) - m->left;
    m->own = exact_share(1 - (double)(m->high * m->wide) / (double)(high * wide));
}

LsMix ls_mix_draw(const LsAugment *a, uint64_t seed, int64_t epoch, int64_t samples, int64_t sample,
                  int64_t high, int64_t wide)
{
    LsMix m = {.own = 1};
    const uint64_t key = ls_draw_key(seed, epoch, sample);
    if (!ls_augment_mixes(a))
        return m;
    const bool box = a->cutmix > 0 && (a->mixup == 0 || ls_draw_unit(key, MIX_HOW) < 0.5);
    m.how = box ? LS_MIX_BOX : LS_MIX_ALL;
    m.other = ls_shuffled(ls_mix(seed + PARTNERS), epoch, samples, sample);
    const double share = draw_share(key, box ? a->cutmix : a->mixup);
    if (box)
        draw_box(&m, key, 1 - share, high, wide);
    else
        m.own = exact_share(share);
    return m;
}
