/* runtime/kernels/ls_kernel_sizes.h -- sizes and structs that CPU kernels share with the emitters,
 * which size arrays and workspaces by them and print tables of them. Plain C without code. */
#ifndef LS_RUNTIME_KERNELS_LS_KERNEL_SIZES_H
#define LS_RUNTIME_KERNELS_LS_KERNEL_SIZES_H

#include <stdint.h>

enum {
    LS_VEC_BYTES_MOST = 64,     /* largest vector of any processor, in bytes */
    LS_COLS = 256,              /* columns of a block of a product */
    LS_MATMUL_ROWS = 256, LS_MATMUL_COLS = 128,     /* most rows and columns of a unit of a
                                                     * MATMUL */

    /* Convolutions (ls_conv.h). */
    LS_CONV_AXES = 3,
    LS_CONV_COLS = 2 * LS_COLS, /* most result channels of a block */
    LS_FEW_ROWS = 504, LS_FEW_COLS = 128,   /* of a block of few positions; 504 = 36 * 14 = 84 *
                                             * 6 */
    LS_DW_ROWS = 224,           /* result channels of a block of the weight gradient */
    LS_DW_DEPTH = 192,          /* positions of a block of its sum, at most */
    LS_SUM_UNIT = 1024,         /* elements of it that a unit adds up of its parts */
    LS_DW_IMAGE = 512,          /* least positions of an image at whose end a block of the weight
                                 * gradient's sum ends, too */
    LS_DOT16_PITCH = 16,        /* least rows of a panel of bfloat16 factors */
    LS_TAPS = 32,               /* most taps per group in the weight gradient of a depthwise
                                 * convolution */

    /* Winograd's algorithm (ls_wino.h). */
    LS_WINO_SIDE = 4,           /* results of a tile along an axis */
    LS_WINO_POINTS = 36,
    LS_WINO_STEP = 16,          /* channels are a multiple of it: whole vectors everywhere */
    LS_WINO_DEPTH = 1024,       /* most channels of the source */
    LS_WINO_IMAGE = 96,         /* as LS_DW_IMAGE, tiles */
};

/* How the elements of an operand or a result are stored. LS_STORED_PACKED: in codes, of an operand
 * alone (runtime/ls_unpack.h). */
typedef enum { LS_STORED_REAL, LS_STORED_BF16, LS_STORED_F16, LS_STORED_PACKED } LsStored;

/* One spatial axis of a convolution. */
typedef struct LsAxis {
    int64_t count;                      /* positions */
    int64_t to, to_step, to_dim; /* position i is coordinate to + to_step * i of the result */
    int64_t from_step, from_dim; /* tap t reads from_step * i + off + off_step * t of the source */
    int64_t taps, off, off_step;
    int64_t tap, tap_step, tap_dim;     /* tap t is coordinate tap + tap_step * t of the kernel */
} LsAxis;

#endif
