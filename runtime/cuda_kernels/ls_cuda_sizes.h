/* runtime/cuda_kernels/ls_cuda_sizes.h -- sizes and structs that GPU kernels share with the
 * emitters, which size arrays, grids and workspaces by them. Plain C without code, also for nvcc
 * and NVRTC. */
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

/* Weight gradients of 3 by 3 taps (ls_cuda_taps.h): points of a strip; a block's channels of x and
 * of y, its threads; a thread's sums. */
enum { LS_TAPS_ALL = 9, LS_TAPS_STRIP = 16, LS_TAPS_X = 64, LS_TAPS_ACROSS = 32, LS_TAPS_DOWN = 8 };
#define LS_TAPS_Y(m) (16 * (m))
#define LS_TAPS_SUMS(m) (4 * LS_TAPS_ALL * (m))

#endif
