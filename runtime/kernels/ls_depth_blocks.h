/* runtime/kernels/ls_depth_blocks.h -- the blocks of a product's sums, for kernels and for those
 * who cut a sum into parts at their ends. Plain C. */
#ifndef LS_RUNTIME_KERNELS_LS_DEPTH_BLOCKS_H
#define LS_RUNTIME_KERNELS_LS_DEPTH_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

/* Terms of a block: about so many reals, on average at most those. */
#define LS_BLOCK_TERMS(real_bytes) (1024 / (int64_t)(real_bytes))
#define LS_BLOCK_AVERAGE(real_bytes) (LS_BLOCK_TERMS(real_bytes) * 17 / 16)

/* Number of blocks of the sum of k terms: about equal, so that none is too short to pay. Blocks of
 * AMX tiles (twice) may have twice the depth: words are half as many. */
static inline int64_t ls_depth_blocks(int64_t k, int64_t real_bytes, bool twice)
{
    const int64_t terms = LS_BLOCK_TERMS(real_bytes), depth = twice ? (k + 1) / 2 : k,
                  least = (depth + terms / 2) / terms, n = least > 1 ? least : 1;
    return n * LS_BLOCK_AVERAGE(real_bytes) < depth ? n + 1 : n;
}

/* The term that the block begins with, of n blocks: blocks begin at whole lines. */
static inline int64_t ls_depth_block(int64_t k, int64_t n, int64_t block, int64_t line)
{
    const int64_t at = (k * block / n + line - 1) / line * line;
    return at < k ? at : k;
}

/* The block that the term `at` lies in. */
static inline int64_t ls_depth_block_of(int64_t k, int64_t n, int64_t at, int64_t line)
{
    const int64_t block = at * n / k;           /* or the one before it, as lines are whole */
    return block < n && ls_depth_block(k, n, block + 1, line) <= at ? block + 1 : block;
}

/* Terms of a block of the sum of a weight gradient over an image of so many terms. Images of at
 * least `least` consist of equal blocks of at most `most`, so that their sums go on from image to
 * image; smaller ones have blocks of `most`. */
static inline int64_t ls_dw_block_size(int64_t image, int64_t least, int64_t most)
{
    const int64_t blocks = (image + most - 1) / most;
    return image < least ? most : (image + blocks - 1) / blocks;
}

#endif
