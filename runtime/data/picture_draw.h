/* runtime/data/picture_draw.h -- what augmentation draws for a sample.
 *
 * Every number is a function of the seed, the epoch, the number of the sample and what it is for.
 * Nothing depends on batches, threads or ranks, or on what was drawn before. */
#ifndef LS_RUNTIME_DATA_PICTURE_DRAW_H
#define LS_RUNTIME_DATA_PICTURE_DRAW_H

#include "runtime/data/augment.h"

/* Key of all numbers of a sample in an epoch. */
uint64_t ls_draw_key(uint64_t seed, int64_t epoch, int64_t sample);
/* Number k of a key: at least 0 and below 1, a multiple of 2^-53. */
double ls_draw_unit(uint64_t key, uint64_t k);
/* A whole number from 0 to n - 1. */
int64_t ls_draw_below(uint64_t key, uint64_t k, int64_t n);

/* Pixels: of the input, and of the picture that it is taken from. */
typedef struct LsPictureSize {
    int64_t high, wide, from_high, from_wide;
} LsPictureSize;

/* The part of a picture that becomes the input. It may reach beyond the picture: there it has
 * zeros, or the mirror image of the picture. */
typedef struct LsWindow {
    int64_t top, left, high, wide;
    bool flip, vflip, reflect;
    bool resized; /* brought to the input's size, even if it has it; else it has it */
    bool turned;  /* around its middle, at the input's size, behind the mirror */
    double cosine, sine;
} LsWindow;

/* Where row y and column x of a turned window, `high` and `wide`, come from: a place in the window
 * that is not turned. */
static inline void ls_window_turn(const LsWindow *w, int64_t high, int64_t wide, int64_t y,
                                  int64_t x, double from[2])
{
    const double my = (double)(high - 1) / 2, mx = (double)(wide - 1) / 2;
    const double dy = (double)y - my, dx = (double)x - mx;
    from[0] = w->sine * dx + w->cosine * dy + my;
    from[1] = w->cosine * dx - w->sine * dy + mx;
}

LsWindow ls_window_centre(const LsPictureSize *s);
LsWindow ls_window_draw(const LsAugment *a, const LsPictureSize *s, uint64_t key);

/* Factors of brightness, contrast and saturation, and what is added to the hue. */
void ls_colours_draw(const LsAugment *a, uint64_t key, float factor[LS_COLOURS]);

typedef enum { LS_MIX_NONE, LS_MIX_ALL, LS_MIX_BOX } LsMixHow;
/* How a sample is mixed with another one. */
typedef struct LsMix {
    LsMixHow how;  /* LS_MIX_BOX: the box of the picture is the other's */
    int64_t other; /* sample */
    float own;     /* share of the sample: a multiple of 2^-24, so that 1 - own is
                    * exact */
    int64_t top, left, high, wide;
} LsMix;

/* high, wide: of the pictures of LS_MIX_BOX. */
LsMix ls_mix_draw(const LsAugment *a, uint64_t seed, int64_t epoch, int64_t samples, int64_t sample,
                  int64_t high, int64_t wide);

#endif
