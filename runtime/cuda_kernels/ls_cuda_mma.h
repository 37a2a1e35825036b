/* runtime/cuda_kernels/ls_cuda_mma.h -- the part of ls_cuda.h for products on tensor cores.
 *
 * A block has 32 by y threads. Each row of threads, a warp, holds 16 rows of a product with all
 * columns, in registers, as fragments of 16 by 8. Lane 4 g + t holds four elements of each
 * fragment:
 *   factor a   (g, t) (g + 8, t) (g, t + 4) (g + 8, t + 4)
 *   sum    c   (g, 2 t) (g, 2 t + 1) (g + 8, 2 t) (g + 8, 2 t + 1)
 * The other factor b is 8 by 8: (t, g) (t + 4, g). It lies in shared memory as a tile with rows of
 * 8 pieces + 4 numbers, so that the lanes of a warp use 32 different banks along rows and columns.
 * Factors are TF32, floats that end in 13 zero bits; sums are float. All lanes of a warp take part.
 * (PTX ISA, "Matrix Fragments for mma.m16n8k8".) */
#ifndef LS_RUNTIME_CUDA_KERNELS_LS_CUDA_MMA_H
#define LS_RUNTIME_CUDA_KERNELS_LS_CUDA_MMA_H

#if defined __CUDA_ARCH__ && __CUDA_ARCH__ >= 800
#define LS_TENSOR_CORES
#endif

/* Rounds to nearest, halves away from zero. */
LS_FN float ls_tf32(float x)
{
#ifdef LS_TENSOR_CORES
    uint32_t bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return ls_float32(bits);
#elif defined LS_EXACT_FACTORS      /* for a test that compares with products of floats */
    return x;
#else
    const uint32_t bits = ls_bits32(x);
    if ((bits & 0x7f800000u) == 0x7f800000u)
        return x != x ? NAN : x;
    return ls_float32((bits + 0x1000u) & ~0x1fffu);
#endif
}

/* The same for devices without that instruction. */
LS_FN void ls_mma_shuffled(float c[4], const float a[4], const float b[2])
{
    const int g = (int)threadIdx.x / 4, t = (int)threadIdx.x % 4;
    LS_UNROLL for (int k = 0; k < 8; k++) {
        const int high = k / 4, from = k % 4;
        const float a0 = __shfl_sync(0xffffffffu, a[2 * high], 4 * g + from);
        const float a8 = __shfl_sync(0xffffffffu, a[2 * high + 1], 4 * g + from);
        const float b0 = __shfl_sync(0xffffffffu, b[high], 8 * t + from);
        const float b1 = __shfl_sync(0xffffffffu, b[high], 8 * t + 4 + from);
        c[0] = ls_fma(a0, b0, c[0]);
        c[1] = ls_fma(a0, b1, c[1]);
        c[2] = ls_fma(a8, b0, c[2]);
        c[3] = ls_fma(a8, b1, c[3]);
    }
}

/* c += a b. */
LS_FN void ls_mma(float c[4], const float a[4], const float b[2])
{
#if defined LS_TENSOR_CORES
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(ls_bits32(a[0])), "r"(ls_bits32(a[1])), "r"(ls_bits32(a[2])),
                   "r"(ls_bits32(a[3])), "r"(ls_bits32(b[0])), "r"(ls_bits32(b[1])));
#elif defined __CUDACC__
    ls_mma_shuffled(c, a, b);
#else
    exec_mma(c, a, b);
#endif
}

/* Row and column of element e of a sum. */
LS_FN int ls_mma_row(int e)
{
    return LS_MMA_ROWS * (int)threadIdx.y + (int)threadIdx.x / 4 + e % 4 / 2 * 8;
}
LS_FN int ls_mma_column(int e)
{
    return e / 4 * 8 + (int)threadIdx.x % 4 * 2 + e % 2;
}

/* a: the warp's rows of x times `by`. x has `have` rows, `row` elements apart; missing rows are
 * 0. */
LS_FN void ls_mma_rows(real *a, const real *x, int64_t row, int64_t have, int columns, int pieces,
                       real by)
{
    const int t = (int)threadIdx.x % 4;
    LS_UNROLL for (int e = 0; e < 4 * pieces; e++) {
        const int r = ls_mma_row(e % 2 * 2), c = e / 4 * 8 + e % 4 / 2 * 4 + t;
        a[e] = r < have && c < columns ? ls_tf32(x[r * row + c] * by) : 0;
    }
}

/* Copies rows 0 .. `have` of x to a tile of `rows` rows, by the whole block; the other rows are 0.
 * Where columns are a multiple of 4, x and its rows are aligned to 16 bytes. */
LS_FN void ls_mma_tile_of(real *tile, const real *x, int64_t row, int64_t have, int rows,
                          int columns, int pieces, int threads)
{
    const int me = (int)threadIdx.y * 32 + (int)threadIdx.x, fours = 2 * pieces, all = rows * fours;
    LS_UNROLL for (int first = 0; first < all; first += threads) {
        const int at = first + me, r = at / fours, c = at % fours * 4;
        real four[4] = {0, 0, 0, 0};
        if (first + threads > all && at >= all)
            continue;
        if (columns % 4 == 0 && r < have && c < columns)
            ls_get4(four, x + r * row + c);
        LS_UNROLL for (int l = 0; l < 4; l++) {
            if (columns % 4 != 0 && r < have && c + l < columns)
                four[l] = x[r * row + c + l];
            four[l] = ls_tf32(four[l]);
        }
        LS_UNROLL for (int l = 0; l < 4; l++) tile[r * LS_TILE_ROW(pieces) + c + l] = four[l];
    }
}
#define ls_mma_tile(tile, x, row, have, rows, columns, pieces)                                     \
    ls_mma_tile_of(tile, x, row, have, rows, columns, pieces, 32 * LS_Y)

/* c += a times the transpose of the tile, of 8 n rows. */
LS_FN void ls_mma_by_rows(real *c, const real *a, const real *tile, int pieces, int n)
{
    const real *const from =
        tile + (int)threadIdx.x / 4 * LS_TILE_ROW(pieces) + (int)threadIdx.x % 4;
    LS_UNROLL for (int k = 0; k < pieces; k++)
        LS_UNROLL for (int m = 0; m < n; m++) {
            const real *const at = from + 8 * m * LS_TILE_ROW(pieces) + 8 * k;
            const real b[2] = {at[0], at[4]};
            ls_mma(c + 4 * m, a + 4 * k, b);
        }
}

/* c += s times the tile, of 8 n rows, where s is a sum. Its columns 2 t and 2 t + 1 serve as
 * columns t and t + 4 of a factor, and the tile's rows likewise, as the order of summands is
 * free. */
LS_FN void ls_mma_by_columns(real *c, const real *s, const real *tile, int pieces, int n)
{
    const real *const from =
        tile + (int)threadIdx.x % 4 * 2 * LS_TILE_ROW(pieces) + (int)threadIdx.x / 4;
    LS_UNROLL for (int k = 0; k < n; k++) {
        const real a[4] = {ls_tf32(s[4 * k]), ls_tf32(s[4 * k + 2]), ls_tf32(s[4 * k + 1]),
                           ls_tf32(s[4 * k + 3])};
        LS_UNROLL for (int m = 0; m < pieces; m++) {
            const real *const at = from + 8 * k * LS_TILE_ROW(pieces) + 8 * m;
            const real b[2] = {at[0], at[LS_TILE_ROW(pieces)]};
            ls_mma(c + 4 * m, a, b);
        }
    }
}

/* Stores the sum to the warp's rows of y, which has `have` rows, rounded to the type of its
 * elements. */
LS_FN void LS_NAMED(ls_keep, real)(real *y, real v) { *y = v; }
LS_FN void LS_NAMED(ls_keep, ls_bf16)(ls_bf16 *y, real v)
{
    *y = ls_to_bf16((float)ls_round_brain(v));
}
LS_FN void LS_NAMED(ls_keep, ls_f16)(ls_f16 *y, real v) { *y = ls_to_f16((float)ls_round_half(v)); }
#define LS_MMA_PUT(type)                                                                           \
    LS_FN void LS_NAMED(ls_mma_put_to, type)(type *y, int64_t row, int64_t have, int columns,      \
                                             const real *c, int pieces)                            \
    {                                                                                              \
        LS_UNROLL for (int e = 0; e < 4 * pieces; e++)                                             \
            if (ls_mma_row(e) < have && ls_mma_column(e) < columns)                                \
                LS_NAMED(ls_keep, type)(&y[ls_mma_row(e) * row + ls_mma_column(e)], c[e]);         \
    }
LS_MMA_PUT(real)
LS_MMA_PUT(ls_bf16)
LS_MMA_PUT(ls_f16)
#define ls_mma_put(y, row, have, columns, c, pieces)                                               \
    LS_ROW_OF(y, ls_mma_put_to)(y, row, have, columns, c, pieces)

/* Accurate enough for products in TF32, on a unit that is mostly idle. */
LS_FN real ls_mma_exp(real x)
{
#ifdef __CUDACC__
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f));
    return y;
#else
    return ls_exp(x);
#endif
}

/* Maximum over the four lanes that hold a row of a sum. */
LS_FN real ls_mma_max(real x)
{
    x = ls_max_real(x, __shfl_xor_sync(0xffffffffu, x, 1));
    return ls_max_real(x, __shfl_xor_sync(0xffffffffu, x, 2));
}
LS_FN real ls_mma_sum(real x)
{
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

#include "runtime/cuda_kernels/ls_cuda_mma16.h"

#endif
