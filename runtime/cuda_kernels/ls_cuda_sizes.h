/* runtime/cuda_kernels/ls_cuda_sizes.h -- sizes and structs that GPU kernels share with the emitters, which size
 * arrays, grids and workspaces by them. Plain C without code, also for nvcc and NVRTC. */
#ifndef LS_RUNTIME_CUDA_KERNELS_LS_CUDA_SIZES_H
#define LS_RUNTIME_CUDA_KERNELS_LS_CUDA_SIZES_H

/* Keys of a unit of ls_rank, threads of a row, and the most rows. */
enum { LS_RANK_KEYS = 32 };

/* Products on tensor cores (ls_cuda_mma.h): rows of a warp; numbers of a tile's row in shared
 * memory, and of a thread's part of a factor or a sum, by fragments of 8 columns. */
enum { LS_MMA_ROWS = 16 };
#define LS_TILE_ROW(pieces) (8 * (pieces) + 4)
#define LS_MMA_NUMBERS(pieces) (4 * (pieces))
/* Elements of a row of a tile of 16 bits, of pieces of 16 columns (ls_cuda_mma16.h). */
#define LS_TILE16_ROW(pieces) (16 * (pieces) + 8)

/* Products of very many rows (ls_cuda_tile.h) with tiles of 16 n columns: columns; a thread's numbers of a tile;
 * numbers in both buffers of a factor of so many rows; numbers per column that warps leave. */
enum {
    LS_TILE_ROWS = 128, LS_TILE_DEPTH = 16,
    LS_TILE_X = 32, LS_TILE_Y = 8, LS_TILE_THREADS = LS_TILE_X * LS_TILE_Y,
    LS_TILE_DOWN = 4            /* warps along the rows of a tile */
};
#define LS_TILE_COLUMNS(n) (16 * (n))
#define LS_TILE_NUMBERS(n) (8 * (n))
#define LS_TILE_BUFFERS(rows) (2 * (rows) * LS_TILE_DEPTH)
#define LS_TILE_LEFT(n) (LS_TILE_DOWN * LS_TILE_COLUMNS(n))

/* Of a sample: the count of numbers, their mean, the sum of squared deviations from it. */
typedef struct LsMoments { double count, mean, square; } LsMoments;

/* Weight gradients of 3 by 3 taps (ls_cuda_taps.h): points of a strip; a block's channels of x and of y; a thread's
 * sums. */
enum { LS_TAPS_ALL = 9, LS_TAPS_STRIP = 16, LS_TAPS_X = 64 };
#define LS_TAPS_Y(m) (16 * (m))
#define LS_TAPS_SUMS(m) (4 * LS_TAPS_ALL * (m))

#endif
