/* runtime/cuda_kernels/ls_cuda_taps.h -- the part of ls_cuda.h for weight gradients of convolutions
 * of 3 by 3 taps at stride 1, on tensor cores.
 *
 * For each tap, dw = the sum over points of y (a column of channels) times x (a row of channels) at
 * the point that lies under the tap. A block of 32 by 8 threads holds 16 m channels of y and
 * LS_TAPS_X of x, 8 of these per warp, for all nine taps in registers, as fragments of 16 by 8
 * (ls_cuda_mma.h). It walks down strips of LS_TAPS_STRIP points. For each row it loads the strip of
 * y, and the strip of x with the neighbouring points, to buffers in shared memory that still
 * contain the last rows of x. So every number is read from memory once, and from shared memory once
 * per tap. The next row is loaded to registers while one is multiplied. */
#ifndef LS_RUNTIME_CUDA_KERNELS_LS_CUDA_TAPS_H
#define LS_RUNTIME_CUDA_KERNELS_LS_CUDA_TAPS_H

enum {
    LS_TAPS_WIDE = LS_TAPS_STRIP + 2,
    LS_TAPS_ROWS = 4,                   /* of x in shared memory: three read, one written */
    LS_TAPS_LINE = LS_TAPS_X + 8,       /* so that the lanes of a warp use 32 different banks */
    LS_TAPS_XS = LS_TAPS_ROWS * LS_TAPS_WIDE * LS_TAPS_LINE     /* numbers in that buffer */
};
#define LS_TAPS_YLINE(m) (LS_TAPS_Y(m) + 8)
#define LS_TAPS_YS(m) (2 * LS_TAPS_STRIP * LS_TAPS_YLINE(m))

typedef struct LsTaps {         /* a strip and its tensors; most fields are constants */
    const real *x, *y;          /* first of the block's channels, at the first point of the image */
    int x_channels, y_channels; /* of the tensors: distances of points */
    int x_have, y_have;         /* remaining channels */
    int x_rows, x_columns, y_columns;
    int pad_rows, pad_columns;  /* zero points of x before the first */
    int m;
} LsTaps;

LS_FN int ls_taps_me(void) { return (int)threadIdx.y * LS_TAPS_ACROSS + (int)threadIdx.x; }

/* Loads four numbers; missing ones are 0. */
LS_FN void ls_taps_get(real *four, const real *x, bool there)
{
    LS_UNROLL for (int l = 0; l < 4; l++) four[l] = 0;
    if (there)
        ls_get4(four, x);
}

/* Stores four numbers, rounded to factors. */
LS_FN void ls_taps_put_factors(real *to, const real *four)
{
    real v[4];
    LS_UNROLL for (int l = 0; l < 4; l++) v[l] = ls_tf32(four[l]);
    ls_put4(to, v);
}

/* Stores two numbers to global memory in one access: compilers split a plain store of two where
 * they do not know the distance of rows. */
LS_FN void ls_taps_store2(real *to, real a, real b)
{
#ifdef __CUDACC__
    asm volatile("st.v2.f32 [%0], {%1, %2};" ::"l"(to), "f"(a), "f"(b) : "memory");
#else
    to[0] = a, to[1] = b;
#endif
}

/* x, y: at channels c0 and m0 of the first point of the image. */
LS_FN LsTaps ls_taps_at(const real *x, const real *y, int64_t x_channels, int64_t y_channels,
                        int64_t c0, int64_t m0, int64_t x_rows, int64_t x_columns,
                        int64_t y_columns, int64_t pad_rows, int64_t pad_columns, int m)
{
    LsTaps p;
    p.x = x, p.y = y;
    p.x_channels = (int)x_channels, p.y_channels = (int)y_channels;
    p.x_have = (int)(x_channels - c0), p.y_have = (int)(y_channels - m0);
    p.x_rows = (int)x_rows, p.x_columns = (int)x_columns, p.y_columns = (int)y_columns;
    p.pad_rows = (int)pad_rows, p.pad_columns = (int)pad_columns;
    p.m = m;
    return p;
}

/* Loads a thread's share: at most two fours of x and one of y. */
LS_FN void ls_taps_fetch(real *fx, real *fy, LsTaps p, int row, int column, bool with_y, int y_row)
{
    const int me = ls_taps_me(), xr = row - p.pad_rows;
    LS_UNROLL for (int q = 0; q < 2; q++) {
        const int f = 256 * q + me, c = f % 16 * 4, at = column + f / 16, xc = at - p.pad_columns;
        const bool there = f < 16 * LS_TAPS_WIDE && c < p.x_have && xr >= 0 && xr < p.x_rows
                           && xc >= 0 && xc < p.x_columns;
        ls_taps_get(fx + 4 * q, p.x + ((int64_t)xr * p.x_columns + xc) * p.x_channels + c, there);
    }
    const int c = me % (4 * p.m) * 4, at = column + me / (4 * p.m);
    const bool there = with_y && me < 4 * p.m * LS_TAPS_STRIP && c < p.y_have && at < p.y_columns;
    ls_taps_get(fy, p.y + ((int64_t)y_row * p.y_columns + at) * p.y_channels + c, there);
}

LS_FN void ls_taps_keep(real *xs, real *ys, const real *fx, const real *fy, int m)
{
    const int me = ls_taps_me();
    LS_UNROLL for (int q = 0; q < 2; q++) {
        const int f = 256 * q + me;
        if (f < 16 * LS_TAPS_WIDE)
            ls_taps_put_factors(xs + f / 16 * LS_TAPS_LINE + f % 16 * 4, fx + 4 * q);
    }
    if (me < 4 * m * LS_TAPS_STRIP)
        ls_taps_put_factors(ys + me / (4 * m) * LS_TAPS_YLINE(m) + me % (4 * m) * 4, fy);
}

/* sum[9][m][4] += y xT of a row of the strip; xs[r]: the row of x under tap r of the first axis. */
LS_FN void ls_taps_multiply(real *sum, const real *const xs[3], const real *ys, int m)
{
    const int g = (int)threadIdx.x / 4, t = (int)threadIdx.x % 4;
    LS_UNROLL for (int k = 0; k < LS_TAPS_STRIP; k += 8) {
        real a[4][4];
        LS_UNROLL for (int e = 0; e < 4 * m; e++) a[e / 4][e % 4] =
            ys[(k + t + e % 4 / 2 * 4) * LS_TAPS_YLINE(m) + e / 4 * 16 + g + e % 2 * 8];
        LS_UNROLL for (int tap = 0; tap < 9; tap++) {
            const real *const at = xs[tap / 3] + (k + t + tap % 3) * LS_TAPS_LINE
                + 8 * (int)threadIdx.y + g;
            const real b[2] = {at[0], at[4 * LS_TAPS_LINE]};
            LS_UNROLL for (int i = 0; i < m; i++) ls_mma(sum + 4 * (tap * m + i), a[i], b);
        }
    }
}

/* Processes rows y_row .. + count of y of the strip that begins at `column`. turn: rows of x that
 * the block loaded before; returned with this strip's added. */
LS_FN int ls_taps_strip(real *sum, LsTaps p, int y_row, int count, int column, real *xs, real *ys,
                        int turn)
{
    real fx[8], fy[4];
    ls_taps_fetch(fx, fy, p, y_row, column, false, 0);
    LS_ROLLED for (int r = 0; r < count + 2; r++, turn++) {
        real *const yt = ys + turn % 2 * LS_TAPS_STRIP * LS_TAPS_YLINE(p.m);
        const real *row[3];
        LS_UNROLL for (int k = 0; k < 3; k++)
            row[k] = xs + (turn + 2 + k) % LS_TAPS_ROWS * LS_TAPS_WIDE * LS_TAPS_LINE;
        ls_taps_keep(xs + turn % LS_TAPS_ROWS * LS_TAPS_WIDE * LS_TAPS_LINE, yt, fx, fy, p.m);
        LS_SYNC;
        if (r + 1 < count + 2)
            ls_taps_fetch(fx, fy, p, y_row + r + 1, column, r + 1 >= 2, y_row + r - 1);
        if (r >= 2)
            ls_taps_multiply(sum, row, yt, p.m);
    }
    return turn;
}

/* Stores the sums to dw, [y_all][9][x_all], at channels m0 and c0. */
LS_FN void ls_taps_store(real *dw, const real *sum, int64_t x_all, int64_t y_all, int64_t c0,
                         int64_t m0, int m)
{
    const int g = (int)threadIdx.x / 4, c = 8 * (int)threadIdx.y + (int)threadIdx.x % 4 * 2;
    LS_UNROLL for (int e = 0; e < 9 * m; e++)
        LS_UNROLL for (int h = 0; h < 2; h++) {
            const int64_t row = m0 + e % m * 16 + 8 * h + g;
            if (row < y_all && c0 + c < x_all)
                ls_taps_store2(dw + (row * 9 + e / m) * x_all + c0 + c, sum[4 * e + 2 * h],
                               sum[4 * e + 2 * h + 1]);
        }
}

#endif
