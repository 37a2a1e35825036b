/* tests/codegen/cuda_text.cu -- kernels as the emitters print them. cuda_text.sh checks their
 * accesses: all of 16 bytes, to memory that the compiler knows to be global. */
#include "runtime/cuda_kernels/ls_cuda.h"

LS_PART(pointwise_part, 3, 256, 1)
{
    LS_UNITS;
    LS_IN(real, x0, 0);
    LS_IN(real, x1, 1);
    LS_OUT(real, y0, 2);
    for (int64_t u = lo; u < hi; u++) {
        const int64_t i0 = u * 2048;
        const int64_t i1 = ls_least(i0 + 2048, 100000);
        LS_LANES4(i, i0, i1) {
            const real v0 = x0[i], v1 = x1[i];
            y0[i] = ls_max(v0 + v1 * LS_R(0.5), LS_R(0));
        }
    }
}

LS_PART(update_part, 3, 256, 1)
{
    LS_UNITS;
    LS_OUT(real, p, 0);
    LS_IN(real, g, 1);
    LS_OUT(real, v, 2);
    const real lr = (real)run->lr;
    LS_LANES4(i, lo * 2048, ls_least(hi * 2048, 100000)) {
        const real w = LS_R(0.9) * v[i] + g[i];
        v[i] = w;
        p[i] -= lr * w;
    }
}

/* Normalization and ReLU, channels last; values per channel may be read one by one. */
LS_PART(channels_part, 5, 32, 8)
{
    LS_UNITS;
    LS_NUMBER4(n0, 4);
    LS_IN(real, x0, 0);
    LS_IN(real, x1, 1);
    LS_IN(real, x2, 2);
    LS_OUT(real, y0, 3);
    for (int64_t u = lo; u < hi; u++) {
        const int64_t j0 = u * 16;
        LS_ROWS(j, j0, j0 + 16) {
            LS_LANES4(i, 0, n0) {
                const real v0 = ls_fma(x0[j * n0 + i] - x1[i], x2[i], LS_R(0.5));
                LS_PUT4(y0, j * n0 + i, v0 < 0 ? 0 : v0);
            }
        }
    }
}

/* Functions that no kernel above calls: they compile. */
LS_PART(functions_part, 2, 256, 1)
{
    LS_UNITS;
    LS_IN(real, x, 0);
    LS_OUT(real, y, 1);
    LS_LANES4(i, lo * 2048, hi * 2048) {
        const real v = x[i];
        const real turn = ls_sin(v) + ls_cos(v) + ls_tan(v) + ls_asin(v) + ls_acos(v) + ls_atan(v);
        const real hyper = ls_sinh(v) + ls_cosh(v) + ls_asinh(v) + ls_acosh(v) + ls_atanh(v);
        const real rest = ls_fmod(v, LS_R(2)) + ls_floor_mod(v, LS_R(3))
            + (real)ls_pow_int((int64_t)v, 3);
        y[i] = turn + hyper + rest + ls_round_half(v) + ls_round_brain(v);
    }
}

/* x by y threads; a row is 768 elements. */
#define SOFTMAX(name, x, y)                                                                        \
    LS_PART(name, 2, x, y)                                                                         \
    {                                                                                              \
        LS_UNITS;                                                                                  \
        LS_IN(real, all_x, 0);                                                                     \
        LS_OUT(real, all_y, 1);                                                                    \
        LS_ROWS(j, lo * 8, ls_least(hi * 8, 100)) {                                                \
            const int64_t at = j * 768;                                                            \
            const real max = ls_row_max(all_x + at, 768, 32);                                      \
            const real scale = (real)(1 / ls_row_exp_to(all_y + at, all_x + at, max, 768, 32));    \
            LS_LANES4(i, at, at + 768) { all_y[i] *= scale; }                                      \
        }                                                                                          \
    }
SOFTMAX(softmax_part, 32, 8)
SOFTMAX(softmax_block_part, 256, 1)

LS_PART(copy_part, 2, 32, 4)
{
    LS_UNITS;
    LS_IN(real, x, 0);
    LS_OUT(real, y, 1);
    LS_ROWS(j, lo * 4, ls_least(hi * 4, 77)) LS_COPY(y + j * 64, x + j * 48, 48);
}

#ifndef LS_F64
/* Products on tensor cores, all in registers: x wT w. */
LS_PART(tensor_part, 3, 32, 4)
{
    LS_UNITS;
    LS_IN(real, x, 0);
    LS_IN(real, w, 1);
    LS_OUT(real, y, 2);
    LS_LOCAL(real, tile, 32 * LS_TILE_ROW(8));
    real a[32], c[16] = {0}, d[32] = {0};
    ls_mma_rows(a, x, 64, 64, 64, 8, LS_R(1));
    ls_mma_tile(tile, w, 64, 32, 32, 64, 8);
    LS_SYNC;
    ls_mma_by_rows(c, a, tile, 8, 4);
    LS_UNROLL for (int e = 0; e < 16; e++) c[e] = ls_mma_exp(c[e] - ls_mma_max(c[e]));
    ls_mma_by_columns(d, c, tile, 8, 4);
    ls_mma_put(y, 64, 64, 64, d, 8);
}
#endif
