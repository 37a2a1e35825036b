/* runtime/data/augment.c -- see augment.h. */
#include "runtime/data/augment.h"

#include "runtime/base/number.h"

#include <stdio.h>
#include <string.h>

enum { WORD = 80 };

static bool bad(const char *word, const char *takes, LsError *e)
{
    return ls_fail(e, LS_EXIT_USAGE, "--augment: '%s': %s", word, takes);
}

/* Takes the number at *at, up to one of the characters `ends`, or to the end. */
static bool number(const char **at, const char *ends, double least, double most, double *v)
{
    char text[WORD];
    const size_t n = strcspn(*at, ends);
    if (n >= sizeof text)
        return false;
    memcpy(text, *at, n);
    text[n] = '\0';
    *at += n;
    return ls_number_real(text, least, most, v);
}

/* "A-B", both within bounds, A not above B. */
static bool range(const char **at, const char *ends, double least, double most, double v[2])
{
    return number(at, "-", least, most, &v[0]) && *(*at)++ == '-'
           && number(at, ends, least, most, &v[1]) && v[0] <= v[1];
}

/* ---- one function for each word; value: what follows '=', NULL: nothing does ---- */

static bool chance(double *to, const char *word, const char *value, LsError *e)
{
    *to = 0.5;
    return value == NULL || (number(&value, "", 0, 1, to) && *to > 0)
           || bad(word, "takes a chance above 0, at most 1, as in flip=0.5", e);
}

static bool flip(LsAugment *a, const char *word, const char *value, LsError *e)
{
    return chance(word[0] == 'v' ? &a->vflip : &a->flip, word, value, e);
}

static bool crop(LsAugment *a, const char *word, const char *value, LsError *e)
{
    double pad = 0;
    const char *at = value;
    a->crop = true;
    bool ok = value == NULL || number(&at, ":", 0, 1 << 20, &pad);
    if (ok && value != NULL && *at == ':') {
        a->reflect = strcmp(at, ":reflect") == 0;
        ok = a->reflect || strcmp(at, ":zero") == 0;
    }
    a->pad = (int64_t)pad;
    return (ok && (double)a->pad == pad)
           || bad(word, "takes the pixels to add on each side, as in crop=4 or crop=4:reflect", e);
}

static bool resized_crop(LsAugment *a, const char *word, const char *value, LsError *e)
{
    double area[2] = {0.08, 1}, shape[2] = {3.0 / 4, 4.0 / 3};
    const char *at = value;
    bool ok = value == NULL || (range(&at, ":", 0, 1, area) && area[0] > 0);
    if (ok && value != NULL && *at == ':')
        ok = at++ != NULL && range(&at, "", 1e-3, 1e3, shape);
    a->resized = true;
    a->least = area[0], a->most = area[1];
    a->narrow = shape[0], a->broad = shape[1];
    return ok
           || bad(
               word,
               "takes the smallest and the largest part of the picture, and of width over height, "
               "as in resized-crop=0.08-1 or resized-crop=0.08-1:0.75-1.333",
               e);
}

static bool rotate(LsAugment *a, const char *word, const char *value, LsError *e)
{
    return (value != NULL && number(&value, "", 0, 180, &a->rotate) && a->rotate > 0)
           || bad(word, "takes the largest turn in degrees, above 0, at most 180, as in rotate=10",
                  e);
}

static bool jitter(LsAugment *a, const char *word, const char *value, LsError *e)
{
    static const double most[LS_COLOURS] = {10, 10, 10, 0.5};
    bool ok = value != NULL, any = false;
    for (int k = 0; k < LS_COLOURS && ok && *value; k++) {
        ok = number(&value, "/", 0, most[k], &a->colour[k]);
        any |= a->colour[k] > 0;
        if (*value == '/')
            ok = ok && value[1] && k + 1 < LS_COLOURS && value++ != NULL;
    }
    return (ok && any)
           || bad(word,
                  "takes the largest changes of brightness, contrast, saturation and hue (at most "
                  "0.5), as in jitter=0.4/0.4/0.4/0.1; later ones may be left out",
                  e);
}

static bool mix(LsAugment *a, const char *word, const char *value, LsError *e)
{
    double *to = word[0] == 'm' ? &a->mixup : &a->cutmix;
    return (value != NULL && number(&value, "", 1e-3, 1e3, to))
           || bad(word,
                  "takes the alpha of a Beta distribution, from 0.001 to 1000, as in mixup=0.2", e);
}

static const struct {
    const char *name;
    bool (*take)(LsAugment *, const char *word, const char *value, LsError *);
} known[] = {
    {"flip", flip},     {"vflip", flip},    {"crop", crop}, {"resized-crop", resized_crop},
    {"rotate", rotate}, {"jitter", jitter}, {"mixup", mix}, {"cutmix", mix},
};
enum { NKNOWN = sizeof known / sizeof *known };

static bool take(LsAugment *a, const char *word, unsigned *seen, LsError *e)
{
    const size_t n = strcspn(word, "=");
    for (int k = 0; k < NKNOWN; k++) {
        if (strlen(known[k].name) != n || strncmp(known[k].name, word, n) != 0)
            continue;
        if ((*seen & 1u << k) != 0)
            return bad(word, "is there twice", e);
        *seen |= 1u << k;
        return known[k].take(a, word, word[n] ? word + n + 1 : NULL, e);
    }
    return bad(word, "is not one of flip, vflip, crop, resized-crop, rotate, jitter, mixup, cutmix",
               e);
}

bool ls_augment_parse(LsAugment *a, const char *text, LsError *e)
{
    enum { MOST = 160 };        /* ranks compare the whole text */
    unsigned seen = 0;
    if (strlen(text) > MOST)
        return ls_fail(e, LS_EXIT_USAGE, "--augment takes at most %d characters", MOST);
    *a = (LsAugment){0};
    for (const char *at = text;; at++) {
        char word[WORD];
        const size_t n = strcspn(at, ",");
        if (n >= sizeof word)
            return bad(text, "has a word that is too long", e);
        memcpy(word, at, n);
        word[n] = '\0';
        if (!take(a, word, &seen, e))
            return false;
        at += n;
        if (*at == '\0')
            break;
    }
    return !(a->crop && a->resized)
           || ls_fail(e, LS_EXIT_USAGE,
                      "--augment: crop and resized-crop both choose a window; give one of them");
}
