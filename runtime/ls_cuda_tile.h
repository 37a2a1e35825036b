/* runtime/ls_cuda_tile.h -- the part of ls_cuda.h that is about products of very many rows by a
 * matrix, on tensor cores, with something done to each element before it is stored.
 *
 * Of a block of 32 by 8 threads, which comes to tiles of LS_TILE_ROWS rows and 16 n columns: warps
 * stand four by two, each with 32 rows and 8 n columns of the tile in registers, in pieces of 16 by
 * 8 (ls_cuda_mma.h). Both factors pass by in shared memory, LS_TILE_DEPTH of the sum at a time, in
 * two buffers each; what comes next is on its way from memory, in registers, while a tile is
 * multiplied. In a line of a buffer fours are swapped as the line's number says, so that the lanes of
 * a warp meet 32 banks.
 *
 * A piece's columns are spread over the tile: so a thread has four neighbours of each of its rows,
 * 16 bytes to read and to write. It has 4 rows, h, by n / 2 such fours, p. n is even. */
#ifndef LS_CUDA_TILE_H
#define LS_CUDA_TILE_H

enum { LS_TILE_ROWS = 128, LS_TILE_DEPTH = 16, LS_TILE_THREADS = 256 };
/* Numbers in both buffers of a factor with that many rows. */
#define LS_TILE_BUFFERS(rows) (2 * (rows) * LS_TILE_DEPTH)

LS_FN int ls_tile_me(void) { return (int)threadIdx.y * 32 + (int)threadIdx.x; }

/* Where in a buffer step k of a line is. */
LS_FN int ls_tile_place(int line, int k)
{
    return line * LS_TILE_DEPTH + ((k / 4) ^ (line / 2 & 3)) * 4 + k % 4;
}

/* Which line of the buffer has column c of the tile, and the reverse. */
LS_FN int ls_tile_line(int c) { return c / 16 * 16 + c % 4 / 2 * 8 + c % 16 / 4 * 2 + c % 2; }
LS_FN int ls_tile_column(int line)
{
    return line / 16 * 16 + line % 8 / 2 * 4 + line % 16 / 8 * 2 + line % 2;
}

/* ---- from memory to the buffers ----
 * A thread carries `lines` / 64 fours of each step. What is not there is 0. Steps begin at multiples
 * of 4, rows at multiples of 16 bytes. */
LS_FN void ls_tile_get(real *four, const real *x, bool there)
{
    LS_UNROLL for (int l = 0; l < 4; l++) four[l] = 0;
    if (there)
        ls_get4(four, x);
}

/* Four f of a step, along a row: its line, and where in the step it begins. */
LS_FN int ls_tile_f_line(int f) { return f % 8 + f / 32 * 8; }
LS_FN int ls_tile_f_step(int f) { return f / 8 % 4 * 4; }

/* Rows of `depth` numbers, of which there are `have`; columns: the lines are the tile's columns. */
LS_FN void ls_tile_fetch(real *four, const real *x, int have, int k, int depth, int lines,
                         bool columns)
{
    LS_UNROLL for (int q = 0; q < lines / 64; q++) {
        const int f = q * LS_TILE_THREADS + ls_tile_me(), line = ls_tile_f_line(f);
        const int row = columns ? ls_tile_column(line) : line, at = k + ls_tile_f_step(f);
        ls_tile_get(four + 4 * q, x + row * depth + at, row < have && at < depth);
    }
}

LS_FN void ls_tile_keep(real *buffer, const real *four, int lines)
{
    LS_UNROLL for (int q = 0; q < lines / 64; q++) {
        const int f = q * LS_TILE_THREADS + ls_tile_me();
        real v[4];
        LS_UNROLL for (int l = 0; l < 4; l++) v[l] = ls_tf32(four[4 * q + l]);
        ls_put4(buffer + ls_tile_place(ls_tile_f_line(f), ls_tile_f_step(f)), v);
    }
}

/* The same of the columns of a matrix of `depth` rows, `width` apart, of which there are `have`. */
LS_FN void ls_tile_fetch_turned(real *four, const real *x, int have, int k, int depth, int width,
                                int lines)
{
    LS_UNROLL for (int q = 0; q < lines / 64; q++) {
        const int f = q * LS_TILE_THREADS + ls_tile_me(), c = f / 16 * 4;
        const int at = k + f % 16;
        ls_tile_get(four + 4 * q, x + at * width + c, c < have && at < depth);
    }
}

LS_FN void ls_tile_keep_turned(real *buffer, const real *four, int lines)
{
    LS_UNROLL for (int q = 0; q < lines / 64; q++) {
        const int f = q * LS_TILE_THREADS + ls_tile_me(), c = f / 16 * 4;
        LS_UNROLL for (int l = 0; l < 4; l++)
            buffer[ls_tile_place(ls_tile_line(c + l), f % 16)] = ls_tf32(four[4 * q + l]);
    }
}

/* ---- products ---- */
LS_FN void ls_tile_multiply(real *sum, const real *xs, const real *ws, int n)
{
    const int g = (int)threadIdx.x / 4, t = (int)threadIdx.x % 4;
    const real *const xg = xs + (32 * ((int)threadIdx.y / 2) + g) * LS_TILE_DEPTH;
    const real *const wg = ws + (8 * n * ((int)threadIdx.y % 2) + g) * LS_TILE_DEPTH;
    LS_UNROLL for (int k = 0; k < LS_TILE_DEPTH; k += 8) {
        /* of lines that are multiples of 8 apart, as seen from the first */
        const int at[2] = {ls_tile_place(g, k + t) - g * LS_TILE_DEPTH,
                           ls_tile_place(g, k + 4 + t) - g * LS_TILE_DEPTH};
        real a[2][4];
        LS_UNROLL for (int e = 0; e < 8; e++)
            a[e / 4][e % 4] = xg[(e / 4 * 16 + e % 2 * 8) * LS_TILE_DEPTH + at[e % 4 / 2]];
        LS_UNROLL for (int m = 0; m < n; m++) {
            const real *const wm = wg + 8 * m * LS_TILE_DEPTH;
            const real b[2] = {wm[at[0]], wm[at[1]]};
            ls_mma(sum + 4 * m, a[0], b);
            ls_mma(sum + 4 * (n + m), a[1], b);
        }
    }
}

typedef struct LsTileProduct {  /* x wT; numbers but those of rows and columns are constants */
    const real *x, *w;
    int rows, columns;          /* that are there from here on */
    int depth;                  /* numbers of a row of x, and of w */
    int apart;                  /* w is stored the other way: its rows, so far apart, are of steps */
    int n;
    bool turned;
} LsTileProduct;

LS_FN void ls_tile_next(real *fx, real *fw, LsTileProduct p, int k)
{
    ls_tile_fetch(fx, p.x, p.rows, k, p.depth, LS_TILE_ROWS, false);
    if (p.turned)
        ls_tile_fetch_turned(fw, p.w, p.columns, k, p.depth, p.apart, 16 * p.n);
    else
        ls_tile_fetch(fw, p.w, p.columns, k, p.depth, 16 * p.n, true);
}

/* sum[8 n] += the tile's product. xs, ws: buffers of both. turn: which of the two comes first, 0 or 1;
 * it returns what the block's next product is to be given. */
LS_FN int ls_tile_product(real *sum, LsTileProduct p, real *xs, real *ws, int turn)
{
    real fx[8], fw[8];
    ls_tile_next(fx, fw, p, 0);
    for (int k = LS_TILE_DEPTH; k < p.depth + LS_TILE_DEPTH; k += LS_TILE_DEPTH) {
        real *const xt = xs + turn * LS_TILE_ROWS * LS_TILE_DEPTH;
        real *const wt = ws + turn * 16 * p.n * LS_TILE_DEPTH;
        ls_tile_keep(xt, fx, LS_TILE_ROWS);
        if (p.turned)
            ls_tile_keep_turned(wt, fw, 16 * p.n);
        else
            ls_tile_keep(wt, fw, 16 * p.n);
        LS_SYNC;
        if (k < p.depth)
            ls_tile_next(fx, fw, p, k);
        ls_tile_multiply(sum, xt, wt, p.n);
        turn ^= 1;
    }
    return turn;
}

/* ---- a thread's elements ---- */
LS_FN int ls_tile_row(int h)
{
    return 32 * ((int)threadIdx.y / 2) + 16 * (h / 2) + 8 * (h % 2) + (int)threadIdx.x / 4;
}
LS_FN int ls_tile_first(int p, int n)           /* column of the first of four */
{
    return 8 * n * ((int)threadIdx.y % 2) + 16 * p + (int)threadIdx.x % 4 * 4;
}
LS_FN int ls_tile_at(int p, int h, int64_t l, int n)    /* its place among the sums */
{
    return 4 * (n * (h / 2) + 2 * p + (int)l / 2) + h % 2 * 2 + (int)l % 2;
}

/* ---- what becomes of a tile's columns ----
 * A warp's 32 rows come to one number per column, which it leaves in shared memory, [4][16 n]; behind
 * a barrier a thread per column goes on in double. */
LS_FN real ls_tile_down(real x)                 /* over the lanes that have the same columns */
{
    x += __shfl_xor_sync(0xffffffffu, x, 4);
    x += __shfl_xor_sync(0xffffffffu, x, 8);
    return x + __shfl_xor_sync(0xffffffffu, x, 16);
}

LS_FN void ls_tile_leave(real *to, real x, int p, int l, int n)
{
    if (threadIdx.x < 4)
        to[(int)threadIdx.y / 2 * 16 * n + ls_tile_first(p, n) + l] = x;
}

/* v: by column of the four, summed over the thread's rows. */
LS_FN void ls_tile_sums(real *to, const real *v, int p, int n)
{
    LS_UNROLL for (int l = 0; l < 4; l++) ls_tile_leave(to, ls_tile_down(v[l]), p, l, n);
}

/* How many rows this warp has of a tile with `have`. */
LS_FN int ls_tile_count(int64_t have, int warp)
{
    have -= 32 * warp;
    return have < 0 ? 0 : have < 32 ? (int)have : 32;
}

/* Means, and the sums of squared distances from them. v: by row and column, [4][4], 0 where there is no
 * row. */
LS_FN void ls_tile_moments(real *mean, real *square, const real *v, int64_t have, int p, int n)
{
    const int count = ls_tile_count(have, (int)threadIdx.y / 2);
    const real part = count > 0 ? LS_R(1) / (real)count : 0;
    LS_UNROLL for (int l = 0; l < 4; l++) {
        real sum = 0, apart = 0;
        LS_UNROLL for (int h = 0; h < 4; h++) sum += v[4 * h + l];
        const real m = ls_tile_down(sum) * part;
        LS_UNROLL for (int h = 0; h < 4; h++) {
            const real d = count == 32 || ls_tile_row(h) < have ? v[4 * h + l] - m : 0;
            apart += d * d;
        }
        ls_tile_leave(mean, m, p, l, n);
        ls_tile_leave(square, ls_tile_down(apart), p, l, n);
    }
}

/* This thread's column of the four warps' numbers. */
LS_FN double ls_tile_total(const real *from, int n)
{
    double sum = 0;
    LS_UNROLL for (int w = 0; w < 4; w++) sum += (double)from[w * 16 * n + ls_tile_me()];
    return sum;
}

/* Chan, Golub and LeVeque (1983): moments of two samples together. */
typedef struct LsMoments { double count, mean, square; } LsMoments;
LS_FN LsMoments ls_moments(double count, double mean, double square)
{
    LsMoments m;
    m.count = count, m.mean = mean, m.square = square;
    return m;
}
LS_FN void ls_moments_join(LsMoments *m, LsMoments other)
{
    const double all = m->count + other.count, apart = other.mean - m->mean;
    if (other.count <= 0)
        return;
    m->mean += apart * (other.count / all);
    m->square += other.square + apart * apart * (m->count * other.count / all);
    m->count = all;
}
LS_FN void ls_tile_join(LsMoments *m, const real *mean, const real *square, int64_t have, int n)
{
    LS_UNROLL for (int w = 0; w < 4; w++)
        ls_moments_join(m, ls_moments((double)ls_tile_count(have, w),
                                      (double)mean[w * 16 * n + ls_tile_me()],
                                      (double)square[w * 16 * n + ls_tile_me()]));
}

#endif
