/* compiler/packed/dynamic_codes.c -- see the header. Seven decades, each with twice as many steps
 * as the one below: the middles of 2^k steps between a tenth and 1, times a power of ten. */
#include "compiler/packed/dynamic_codes.h"

/* Number i of `steps` + 1 ones from a tenth to 1, each of which is rounded once, as torch.linspace
 * does it. */
static float tenths(int steps, int i)
{
    const float tenth = 0.1f, step = (1.0f - tenth) / (float)steps;
    return i < (steps + 1) / 2 ? (float)((double)tenth + (double)step * i)
                               : (float)(1.0 - (double)step * (steps - i));
}

void ls_dynamic_map(float map[256])
{
    enum { DECADES = 7, ZERO = 127 };
    static const float ten[DECADES] = {1e-6f, 1e-5f, 1e-4f, 1e-3f, 1e-2f, 1e-1f, 1.0f};
    int n = ZERO + 1;
    for (int i = 0; i < DECADES; i++) {
        const int steps = 1 << i;
        for (int k = 0; k < steps; k++, n++) {
            map[n] = ten[i] * ((tenths(steps, k) + tenths(steps, k + 1)) / 2.0f);
            map[2 * ZERO - n] = -map[n];
        }
    }
    map[ZERO] = 0;
    map[255] = 1;
}

uint8_t ls_dynamic_code(const float map[256], float x)
{
    int low = 0, high = 255;    /* map[low] <= x < map[high], but for what lies outside */
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        *(x >= map[middle] ? &low : &high) = middle;
    }
    return (uint8_t)(x > (map[low] + map[high]) * 0.5f ? high : low);
}
