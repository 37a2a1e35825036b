/* tests/support/wave_weight.h -- weights of small hand-made models. */
#ifndef LS_TESTS_SUPPORT_WAVE_WEIGHT_H
#define LS_TESTS_SUPPORT_WAVE_WEIGHT_H

#include "tests/support/command_line.h"
#include "tests/support/onnx_make.h"

/* An initializer of at most 256 elements; seed 0: ones. */
static inline void wave_weight(Make *mk, const char *name, const char *dims, int n, int seed)
{
    float v[256];
    for (int i = 0; i < n; i++)
        v[i] = seed == 0 ? 1 : 0.7f * wave(i, seed);
    MAKE_PUSH(mk, mk->g->initializer, mk->g->n_initializer,
              make_tensor(mk, name, MAKE_FLOAT, dims, v, (size_t)n * sizeof *v));
}

#endif
