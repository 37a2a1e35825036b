/* runtime/data/picture_resample.h -- brings a window of a picture to the size of an input, and
 * changes its colours, in float32. */
#ifndef LS_RUNTIME_DATA_PICTURE_RESAMPLE_H
#define LS_RUNTIME_DATA_PICTURE_RESAMPLE_H

#include "runtime/data/picture_read.h"

/* Weights of bilinear interpolation along one axis: element x of the result has `taps` elements of
 * the window from first[x] on. */
typedef struct LsTaps {
    int32_t *first;
    float *weight;
    int64_t taps;
} LsTaps;

/* Memory for one picture at a time, or, to turn it, for two: room for what ls_scratch_bytes says.
 */
typedef struct LsScratch {
    float *plane;  /* the picture, [channel][high][wide] */
    float *turned; /* another one; NULL: nothing is turned */
    float *row;    /* of the picture in the data, twice */
    LsTaps down, across;
    char *other; /* the sample to mix with, of one input */
} LsScratch;

int64_t ls_scratch_bytes(const LsPictureSize *s, int64_t channels, bool turns,
                         int64_t other_bytes);
LsScratch ls_scratch_at(void *memory, const LsPictureSize *s, int64_t channels, bool turns);

/* The numbers of one axis, of a window of `length` elements from which `n` are made: triangles as
 * wide as the larger of both elements' distances, as PyTorch's interpolate(antialias=True). */
void ls_taps_set(LsTaps *t, int64_t n, int64_t length, bool flip);

/* Reads a window of a sample to s->plane, as the data have it, before --scale. */
void ls_picture_resample(const LsDataset *d, uint32_t input, int64_t sample, const LsWindow *w,
                         const LsPictureSize *size, LsScratch *s);
/* Turns s->plane: each pixel is interpolated between four ones, with zeros around the picture. */
void ls_picture_turn(const LsWindow *w, const LsPictureSize *size, int64_t channels, LsScratch *s);
/* Stores s->plane to the sample's place in a batch: with --scale, --mean and --std. */
void ls_picture_store(const LsDataset *d, uint32_t input, const LsScratch *s, void *to);

/* What is white in the data: 255 of bytes; of reals 1, behind --scale. */
double ls_picture_white(const LsDataset *d, uint32_t input);

/* picture_colour.c: brightness, contrast, saturation and hue, in this order, of planes of n pixels
 * from 0 (black) to 1. Of one channel, only the first two. */
void ls_picture_colour(float *plane, int64_t channels, int64_t n, const float factor[LS_COLOURS]);

#endif
