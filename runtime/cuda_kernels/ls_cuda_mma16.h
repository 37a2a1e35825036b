/* runtime/cuda_kernels/ls_cuda_mma16.h -- products of factors of 16 bits on tensor cores. Included
 * by ls_cuda_mma.h, whose sums these are.
 *
 * A fragment of factor a is 16 by 16. Lane 4 g + t holds four words of it, two neighbours of a row
 * in each:
 *   factor a   (g, 2 t) (g + 8, 2 t) (g, 2 t + 8) (g + 8, 2 t + 8)
 * Factor b is 16 by 8: (2 t, g) (2 t + 8, g), two neighbours of a column in each word. It lies in
 * shared memory as a tile with rows of 16 pieces + 8 elements, so that eight rows of 16 bytes are
 * in different banks. Pieces are of 16 columns. (PTX ISA, "Matrix Fragments for mma.m16n8k16",
 * "ldmatrix".) */
#ifndef LS_RUNTIME_CUDA_KERNELS_LS_CUDA_MMA16_H
#define LS_RUNTIME_CUDA_KERNELS_LS_CUDA_MMA16_H

/* Two numbers, rounded to the type, in a word. */
#ifdef LS_TENSOR_CORES
#define LS_PACK_16(type, word)                                                                     \
    LS_FN uint32_t ls_pack_##type(real low, real high)                                             \
    {                                                                                              \
        uint32_t two;                                                                              \
        asm("cvt.rn." word "x2.f32 %0, %1, %2;" : "=r"(two) : "f"((float)high), "f"((float)low));  \
        return two;                                                                                \
    }
LS_PACK_16(ls_bf16, "bf16")
LS_PACK_16(ls_f16, "f16")
#else
LS_FN uint32_t ls_pack_ls_bf16(real low, real high)
{
    return ls_pair_ls_bf16(ls_round_brain(low), ls_round_brain(high));
}
LS_FN uint32_t ls_pack_ls_f16(real low, real high)
{
    return ls_pair_ls_f16(ls_round_half(low), ls_round_half(high));
}
#endif

/* c += a b. Without the instruction as two products of half the depth, whose columns t and t + 4
 * are 2 t and 2 t + 1: the order of summands is free. */
#ifdef LS_TENSOR_CORES
#define LS_MMA_16(type, word)                                                                      \
    LS_FN void ls_mma_##type(float c[4], const uint32_t a[4], const uint32_t b[2])                 \
    {                                                                                              \
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." word "." word ".f32 "                \
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"             \
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                              \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));          \
    }
#else
#define LS_MMA_16(type, word)                                                                      \
    LS_FN void ls_mma_##type(float c[4], const uint32_t a[4], const uint32_t b[2])                 \
    {                                                                                              \
        LS_UNROLL for (int k = 0; k < 2; k++) {                                                    \
            const uint32_t up = a[2 * k], down = a[2 * k + 1];                                     \
            const float rows[4] = {(float)ls_low_##type(up), (float)ls_low_##type(down),           \
                                   (float)ls_high_##type(up), (float)ls_high_##type(down)};        \
            const float columns[2] = {(float)ls_low_##type(b[k]), (float)ls_high_##type(b[k])};    \
            ls_mma(c, rows, columns);                                                              \
        }                                                                                          \
    }
#endif
LS_MMA_16(ls_bf16, "bf16")
LS_MMA_16(ls_f16, "f16")

/* The lane's words of four fragments of 8 by 8 of a tile: two below each other and two beside them,
 * in the order that `across` gives. turned: words hold neighbours of a column instead of a row. */
#ifdef LS_TENSOR_CORES
LS_FN void ls_mma16_load(uint32_t w[4], const void *lane_row, bool turned)
{
    uint32_t at;
    asm("{ .reg .u64 p; cvta.to.shared.u64 p, %1; cvt.u32.u64 %0, p; }" : "=r"(at) : "l"(lane_row));
    if (turned)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "r"(at) : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]) : "r"(at) : "memory");
}
#define LS_MMA16_WORDS(type)                                                                       \
    LS_FN void ls_mma16_words_##type(uint32_t w[4], const type *tile, int row, bool across,        \
                                     bool turned)                                                  \
    {                                                                                              \
        const int lane = (int)threadIdx.x, i = lane / 8;                                           \
        const int down = across ? i % 2 : i / 2, right = across ? i / 2 : i % 2;                   \
        ls_mma16_load(w, tile + (8 * down + lane % 8) * row + 8 * right, turned);                  \
    }
#else
#define LS_MMA16_WORDS(type)                                                                       \
    LS_FN void ls_mma16_words_##type(uint32_t w[4], const type *tile, int row, bool across,        \
                                     bool turned)                                                  \
    {                                                                                              \
        const int g = (int)threadIdx.x / 4, t = (int)threadIdx.x % 4;                              \
        LS_UNROLL for (int i = 0; i < 4; i++) {                                                    \
            const int down = across ? i % 2 : i / 2, right = across ? i / 2 : i % 2;               \
            const type *const from = tile + 8 * down * row + 8 * right                             \
                                   + (turned ? 2 * t * row + g : g * row + 2 * t);                 \
            w[i] = (uint32_t)from[0].bits | (uint32_t)from[turned ? row : 1].bits << 16;           \
        }                                                                                          \
    }
#endif
LS_MMA16_WORDS(ls_bf16)
LS_MMA16_WORDS(ls_f16)

#define LS_MMA16(type)                                                                             \
    /* The first two of n elements in a word; missing ones are 0. */                               \
    LS_FN uint32_t ls_mma16_two_##type(const type *x, int64_t n)                                   \
    {                                                                                              \
        return (n > 0 ? (uint32_t)x[0].bits : 0) | (n > 1 ? (uint32_t)x[1].bits << 16 : 0);        \
    }                                                                                              \
    LS_FN void LS_NAMED(ls_mma16_rows_of, type)(uint32_t *a, const type *x, int64_t row,           \
                                                int64_t have, int columns, int pieces)             \
    {                                                                                              \
        LS_UNROLL for (int e = 0; e < 4 * pieces; e++) {                                           \
            const int r = ls_mma_row(e % 2 * 2);                                                   \
            const int c = e / 4 * 16 + e % 4 / 2 * 8 + (int)threadIdx.x % 4 * 2;                   \
            a[e] = r < have ? ls_mma16_two_##type(x + r * row + c, columns - c) : 0;               \
        }                                                                                          \
    }                                                                                              \
    LS_FN void LS_NAMED(ls_mma16_tile_of, type)(type *tile, const type *x, int64_t row,            \
                                                int64_t have, int rows, int columns, int pieces,   \
                                                int threads)                                       \
    {                                                                                              \
        const int me = (int)threadIdx.y * 32 + (int)threadIdx.x, all = rows * 2 * pieces;          \
        const bool aligned = ((uintptr_t)x | (uintptr_t)(2 * row)) % 16 == 0;                      \
        LS_UNROLL for (int first = 0; first < all; first += threads) {                             \
            const int at = first + me, r = at / (2 * pieces), c = at % (2 * pieces) * 8;           \
            uint32_t word[4] = {0, 0, 0, 0};                                                       \
            if (first + threads > all && at >= all)                                                \
                continue;                                                                          \
            if (aligned && r < have && c + 8 <= columns)                                           \
                ls_load16(word, x + r * row + c);                                                  \
            else if (r < have)                                                                     \
                LS_UNROLL for (int l = 0; l < 4; l++)                                              \
                    word[l] = ls_mma16_two_##type(x + r * row + c + 2 * l, columns - c - 2 * l);   \
            ls_store16(tile + r * LS_TILE16_ROW(pieces) + c, word);                                \
        }                                                                                          \
    }                                                                                              \
    LS_FN void LS_NAMED(ls_mma16_by_rows_of, type)(real *c, const uint32_t *a, const type *tile,   \
                                                   int pieces, int n)                              \
    {                                                                                              \
        LS_UNROLL for (int k = 0; k < pieces; k++)                                                 \
            LS_UNROLL for (int m = 0; m < n; m += 2) {                                             \
                uint32_t b[4];                                                                     \
                ls_mma16_words_##type(b, tile + 8 * m * LS_TILE16_ROW(pieces) + 16 * k,            \
                                      LS_TILE16_ROW(pieces), false, false);                        \
                ls_mma_##type(c + 4 * m, a + 4 * k, b);                                            \
                ls_mma_##type(c + 4 * m + 4, a + 4 * k, b + 2);                                    \
            }                                                                                      \
    }                                                                                              \
    LS_FN void LS_NAMED(ls_mma16_by_columns_of, type)(real *c, const real *s, const type *tile,    \
                                                      int pieces, int n)                           \
    {                                                                                              \
        LS_UNROLL for (int k = 0; k < n / 2; k++) {                                                \
            uint32_t a[4];                                                                         \
            LS_UNROLL for (int e = 0; e < 4; e++)                                                  \
                a[e] = ls_pack_##type(s[8 * k + 2 * e], s[8 * k + 2 * e + 1]);                     \
            LS_UNROLL for (int m = 0; m < 2 * pieces; m += 2) {                                    \
                uint32_t b[4];                                                                     \
                ls_mma16_words_##type(b, tile + 16 * k * LS_TILE16_ROW(pieces) + 8 * m,            \
                                      LS_TILE16_ROW(pieces), true, true);                          \
                ls_mma_##type(c + 4 * m, a, b);                                                    \
                ls_mma_##type(c + 4 * m + 4, a, b + 2);                                            \
            }                                                                                      \
        }                                                                                          \
    }
LS_MMA16(ls_bf16)
LS_MMA16(ls_f16)

/* a: the warp's rows of x, which has `have` rows, `row` elements apart; missing rows and columns
 * are 0. */
#define ls_mma16_rows(a, x, row, have, columns, pieces)                                            \
    LS_NAMED_16(x, ls_mma16_rows_of)(a, x, row, have, columns, pieces)
/* Copies rows 0 .. `have` of x to a tile of `rows` rows, by the whole block; the other rows and
 * columns are 0. */
#define ls_mma16_tile(tile, x, row, have, rows, columns, pieces)                                   \
    LS_NAMED_16(x, ls_mma16_tile_of)(tile, x, row, have, rows, columns, pieces, 32 * LS_Y)
/* c += a times the transpose of the tile, of 8 n rows; n is even. */
#define ls_mma16_by_rows(c, a, tile, pieces, n)                                                    \
    LS_NAMED_16(tile, ls_mma16_by_rows_of)(c, a, tile, pieces, n)
/* c += s times the tile, of 8 n rows, where s is a sum that is rounded to the tile's type. */
#define ls_mma16_by_columns(c, s, tile, pieces, n)                                                 \
    LS_NAMED_16(tile, ls_mma16_by_columns_of)(c, s, tile, pieces, n)

#endif
