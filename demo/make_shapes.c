/* demo/make_shapes.c -- images of bright discs on noise, with a mask of each:
 * something for a U-Net to learn.
 *
 *   make_shapes COUNT SIZE SEED OUT.npz      x [COUNT,3,SIZE,SIZE] float32,
 *   label [COUNT,SIZE,SIZE] int64 */
#include "runtime/data/npz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t state;

/* Uniform in [0, 1): splitmix64. */
static float uniform(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (float)((z ^ (z >> 31)) >> 40) / (float)(1 << 24);
}

typedef struct Disc { float y, x, r, colour[3]; } Disc;

enum { DISCS = 3 };

/* One image: channel planes of noise, the discs on top; mask 1 inside a disc. */
static void draw(int size, float *image, int64_t *mask)
{
    Disc disc[DISCS];
    for (int k = 0; k < DISCS; k++) {
        disc[k] = (Disc){uniform() * (float)size, uniform() * (float)size,
                         (0.06f + 0.14f * uniform()) * (float)size, {0}};
        for (int c = 0; c < 3; c++)
            disc[k].colour[c] = 0.5f + 0.5f * uniform();
    }
    for (int i = 0; i < size * size; i++) {
        float y = (float)(i / size), x = (float)(i % size);
        mask[i] = 0;
        for (int c = 0; c < 3; c++)
            image[c * size * size + i] = 0.8f * uniform();
        for (int k = 0; k < DISCS; k++)
            if (hypotf(y - disc[k].y, x - disc[k].x) < disc[k].r) {
                mask[i] = 1;
                for (int c = 0; c < 3; c++)
                    image[c * size * size + i] = 0.6f * disc[k].colour[c] + 0.4f * uniform();
            }
    }
}

int main(int argc, char **argv)
{
    int count = argc > 4 ? atoi(argv[1]) : 0, size = argc > 4 ? atoi(argv[2]) : 0;
    if (count < 1 || size < 8 || size > 4096) {
        fprintf(stderr, "usage: make_shapes COUNT SIZE SEED OUT.npz (size 8 to 4096)\n");
        return 2;
    }
    size_t pixels = (size_t)size * (size_t)size;
    float *image = malloc((size_t)count * 3 * pixels * sizeof *image);
    int64_t *mask = malloc((size_t)count * pixels * sizeof *mask);
    static LsNpz z;
    static LsNpzMember room[2];
    LsError e = {0};
    if (image == NULL || mask == NULL) {
        fprintf(stderr, "make_shapes: out of memory\n");
        return 1;
    }
    state = strtoull(argv[3], NULL, 10);
    for (size_t k = 0; k < (size_t)count; k++)
        draw(size, image + 3 * k * pixels, mask + k * pixels);
    bool ok = ls_npz_open(&z, argv[4], room, 2, &e)
        && ls_npz_begin(&z, "x", LS_F32, 4, (int64_t[]){count, 3, size, size}, &e);
    if (ok)
        ls_npz_write(&z, image, (size_t)count * 3 * pixels * sizeof *image);
    ok = ok && ls_npz_begin(&z, "label", LS_I64, 3, (int64_t[]){count, size, size}, &e);
    if (ok)
        ls_npz_write(&z, mask, (size_t)count * pixels * sizeof *mask);
    ok = ok && ls_npz_close(&z, &e);
    if (!ok)
        fprintf(stderr, "make_shapes: %s\n", e.text);
    free(image);
    free(mask);
    return ok ? 0 : 1;
}
