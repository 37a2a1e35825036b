/* runtime/data/augment.h -- what --augment asks for: changes of the samples of training, which are
 * drawn anew in every epoch. */
#ifndef LS_RUNTIME_DATA_AUGMENT_H
#define LS_RUNTIME_DATA_AUGMENT_H

#include "runtime/base/run_error.h"

#include <stdbool.h>
#include <stdint.h>

enum { LS_BRIGHTNESS, LS_CONTRAST, LS_SATURATION, LS_HUE, LS_COLOURS };

typedef struct LsAugment {
    double flip, vflip; /* chances of a mirror image: left and right, top and bottom */
    bool crop;          /* a window of the input's size, of the picture with `pad` more rows
                         * and columns on each side: zeros, or (reflect) its mirror image */
    int64_t pad;
    bool reflect;
    bool resized; /* a window of an area between least and most of the picture's, as
                   * wide as narrow to broad times its height, brought to the input's
                   * size */
    double least, most, narrow, broad;
    double rotate; /* largest turn, in degrees, around the middle of the window; 0: none */
    double colour[LS_COLOURS]; /* largest change; 0: none */
    double mixup, cutmix;      /* alpha of the Beta distribution; 0: off */
} LsAugment;

/* Parses "flip,crop=4:reflect,mixup=0.2", which docs/data.md describes. An error is LS_EXIT_USAGE.
 */
bool ls_augment_parse(LsAugment *a, const char *text, LsError *e);

/* Whether windows, mirror images or turns are taken; whether windows are; whether colours change;
 * whether samples are mixed. */
static inline bool ls_augment_moves(const LsAugment *a)
{
    return a->flip > 0 || a->vflip > 0 || a->crop || a->resized || a->rotate > 0;
}
static inline bool ls_augment_crops(const LsAugment *a)
{
    return a->crop || a->resized;
}
static inline bool ls_augment_colours(const LsAugment *a)
{
    bool any = false;
    for (int k = 0; k < LS_COLOURS; k++)
        any |= a->colour[k] > 0;
    return any;
}
static inline bool ls_augment_mixes(const LsAugment *a)
{
    return a->mixup > 0 || a->cutmix > 0;
}

#endif
