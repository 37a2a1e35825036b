/* models/weight_fill.c -- counter-based random weights: SplitMix64's output function (Steele, Lea,
 * Flood 2014) on a key of the seed and the name plus the element's number; normal values by Box and
 * Muller (1958), two from each pair of uniform ones. */
#include "models/weight_fill.h"

#include <math.h>

static const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t key_of(const char *name, uint64_t seed)
{
    uint64_t h = mix(seed + golden);
    for (; *name != '\0'; name++)
        h = mix((h ^ (unsigned char)*name) + golden);
    return h;
}

static uint64_t bits(uint64_t key, int64_t i) { return mix(key + ((uint64_t)i + 1) * golden); }

static void fill_uniform(float *out, float scale, uint64_t key, int64_t start, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float unit = (float)(bits(key, start + i) >> 40) * 0x1p-24f;    /* [0, 1) */
        out[i] = (2 * unit - 1) * scale;
    }
}

static void fill_normal(float *out, float scale, uint64_t key, int64_t start, int64_t n)
{
    for (int64_t i = 0; i < n; i += 2) {
        uint64_t r = bits(key, start + i);
        double u = (double)((r >> 32) + 1) * 0x1p-32;           /* (0, 1] */
        double angle = (double)(r & UINT32_MAX) * 0x1p-32 * 6.283185307179586;
        double radius = sqrt(-2 * log(u)) * (double)scale;
        out[i] = (float)(radius * cos(angle));
        if (i + 1 < n)
            out[i + 1] = (float)(radius * sin(angle));
    }
}

size_t ls_fill_element(const LsWeight *w)
{
    return w->fill == LS_FILL_CAUSAL ? 1 : w->fill == LS_FILL_COUNT ? 8 : sizeof(float);
}

void ls_fill(const LsWeight *w, uint64_t seed, int64_t start, int64_t n, void *out)
{
    uint64_t key = key_of(w->name, seed);
    int64_t side = w->dim[w->rank - 1];
    switch (w->fill) {
    case LS_FILL_ZERO:
    case LS_FILL_ONE:
        for (int64_t i = 0; i < n; i++)
            ((float *)out)[i] = w->fill == LS_FILL_ONE;
        break;
    case LS_FILL_UNIFORM:
        fill_uniform(out, w->scale, key, start, n);
        break;
    case LS_FILL_NORMAL:
        fill_normal(out, w->scale, key, start, n);
        break;
    case LS_FILL_COUNT:
        for (int64_t i = 0; i < n; i++)
            ((int64_t *)out)[i] = start + i;
        break;
    case LS_FILL_CAUSAL:
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)out)[i] = (start + i) % side > (start + i) / side % side;
        break;
    }
}
