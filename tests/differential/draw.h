/* tests/differential/draw.h -- the random numbers of kernels, as doubles. */
#ifndef LS_TESTS_DIFFERENTIAL_DRAW_H
#define LS_TESTS_DIFFERENTIAL_DRAW_H

#include <stdint.h>

double draw_uniform(uint64_t seed, int64_t step, int64_t stream, int64_t index);
double draw_normal(uint64_t seed, int64_t step, int64_t stream, int64_t index);

#endif
