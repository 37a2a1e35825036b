/* runtime/cuda_kernels/ls_cuda_tile.h -- the part of ls_cuda.h for products of very many rows by a matrix, on tensor
 * cores, with an epilogue on each element before it is stored.
 *
 * A block of 32 by 8 threads processes tiles of LS_TILE_ROWS rows and 16 n columns. Warps are arranged four by two;
 * each holds 32 rows and 8 n columns of the tile in registers, as fragments of 16 by 8 (ls_cuda_mma.h). Both factors
 * stream through shared memory, LS_TILE_DEPTH of the sum at a time, in two buffers each; the next numbers are loaded to
 * registers while a tile is multiplied. Within a line of a buffer, fours are permuted by the line's number, so that the
 * lanes of a warp use 32 different banks.
 *
 * A fragment's columns are spread over the tile, so that a thread has four neighbours of each of its rows, 16 bytes to
 * read and to write. It has 4 rows, h, by n / 2 such fours, p. n is even. */
#ifndef LS_RUNTIME_CUDA_KERNELS_LS_CUDA_TILE_H
#define LS_RUNTIME_CUDA_KERNELS_LS_CUDA_TILE_H

LS_FN int ls_tile_me(void) { return (int)threadIdx.y * LS_TILE_X + (int)threadIdx.x; }

LS_FN void ls_tile_get2(real to[2], const real *from)
{
#ifdef __CUDACC__
    const float2 v = *(const float2 *)from;
    to[0] = v.x, to[1] = v.y;
#else
    to[0] = from[0], to[1] = from[1];
#endif
}

/* Stores four numbers, rounded to factors. */
LS_FN void ls_tile_put_factors(real *to, const real *four)
{
    real v[4];
    LS_UNROLL for (int l = 0; l < 4; l++) v[l] = ls_tf32(four[l]);
    ls_put4(to, v);
}

LS_FN void ls_tile_put2(real *to, real a, real b)
{
#ifdef __CUDACC__
    *(float2 *)to = make_float2(a, b);
#else
    to[0] = a, to[1] = b;
#endif
}

/* The same to global memory, in one access: compilers split the function above in two where they do not know the
 * distance of rows. */
LS_FN void ls_tile_store2(real *to, real a, real b)
{
#ifdef __CUDACC__
    asm volatile("st.v2.f32 [%0], {%1, %2};" ::"l"(to), "f"(a), "f"(b) : "memory");
#else
    to[0] = a, to[1] = b;
#endif
}

/* Place in a buffer of four q of a line, for rows and for columns, without bank conflicts between lanes that write or
 * read together. For columns the steps lie in order; for rows the even steps of each eight precede the odd ones. */
LS_FN int ls_tile_row_place(int line, int q)
{
    return line * LS_TILE_DEPTH + (q ^ (line / 2 & 3)) * 4;
}
LS_FN int ls_tile_column_place(int line, int q)
{
    return line * LS_TILE_DEPTH + (q ^ (line / 2 % 2 * 2 + line / 4 % 2)) * 4;
}

/* The line of the buffer for column c of the tile, and the reverse. */
LS_FN int ls_tile_line(int c) { return c / 16 * 16 + c % 4 / 2 * 8 + c % 16 / 4 * 2 + c % 2; }
LS_FN int ls_tile_column(int line)
{
    return line / 16 * 16 + line % 8 / 2 * 4 + line % 16 / 8 * 2 + line % 2;
}

/* ---- from memory to the buffers ----
 * A thread loads `lines` / 64 fours of each step. Missing numbers are 0. Steps begin at multiples of 4, rows at
 * multiples of 16 bytes. */
LS_FN void ls_tile_get(real *four, const real *x, bool there)
{
    LS_UNROLL for (int l = 0; l < 4; l++) four[l] = 0;
    if (there)
        ls_get4(four, x);
}

/* The line of four f of a step; the four is number f / 8 % 4 of that line. */
LS_FN int ls_tile_f_line(int f) { return f % 8 + f / 32 * 8; }

/* Loads rows of `depth` numbers, of which there are `have`; columns: the lines are the tile's
 * columns. */
LS_FN void ls_tile_fetch(real *four, const real *x, int have, int k, int depth, int lines,
                         bool columns)
{
    LS_UNROLL for (int q = 0; q < lines / 64; q++) {
        const int f = q * LS_TILE_THREADS + ls_tile_me(), line = ls_tile_f_line(f);
        const int row = columns ? ls_tile_column(line) : line, at = k + f / 8 % 4 * 4;
        ls_tile_get(four + 4 * q, x + row * depth + at, row < have && at < depth);
    }
}

LS_FN void ls_tile_keep_rows(real *buffer, const real *four)
{
    LS_UNROLL for (int q = 0; q < LS_TILE_ROWS / 64; q++) {
        const int f = q * LS_TILE_THREADS + ls_tile_me();
        const int line = ls_tile_f_line(f), eight = f / 16 % 2 * 2, half = f / 8 % 2 * 2;
        real v[4];
        LS_UNROLL for (int l = 0; l < 4; l++) v[l] = ls_tf32(four[4 * q + l]);
        ls_tile_put2(buffer + ls_tile_row_place(line, eight) + half, v[0], v[2]);
        ls_tile_put2(buffer + ls_tile_row_place(line, eight + 1) + half, v[1], v[3]);
    }
}

LS_FN void ls_tile_keep_columns(real *buffer, const real *four, int lines)
{
    LS_UNROLL for (int q = 0; q < lines / 64; q++) {
        const int f = q * LS_TILE_THREADS + ls_tile_me();
        ls_tile_put_factors(buffer + ls_tile_column_place(ls_tile_f_line(f), f / 8 % 4), four + 4 * q);
    }
}

/* The same for the columns of a matrix of `depth` rows, `width` apart, of which there are
 * `have`. */
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
            buffer[ls_tile_column_place(ls_tile_line(c + l), f / 4 % 4) + f % 4] =
                ls_tf32(four[4 * q + l]);
    }
}

/* ---- products ---- */
/* Steps 2 t and 2 t + 1 serve as t and t + 4 of both factors, as the order of summands is free. */
LS_FN void ls_tile_multiply(real *sum, const real *xs, const real *ws, int n)
{
    const int g = (int)threadIdx.x / 4, t = (int)threadIdx.x % 4;
    const real *const xg = xs + (32 * ((int)threadIdx.y / 2) + g) * LS_TILE_DEPTH;
    const real *const wg = ws + (8 * n * ((int)threadIdx.y % 2) + g) * LS_TILE_DEPTH;
    LS_UNROLL for (int q = 0; q < LS_TILE_DEPTH / 4; q += 2) {
        /* lines 8 apart have a four in the same place */
        const int even = ls_tile_row_place(g, q) - g * LS_TILE_DEPTH + t;
        const int odd = ls_tile_row_place(g, q + 1) - g * LS_TILE_DEPTH + t;
        const int two = ls_tile_column_place(g, q + t / 2) - g * LS_TILE_DEPTH + t % 2 * 2;
        real a[2][4];
        LS_UNROLL for (int r = 0; r < 4; r++) {
            a[r / 2][r % 2] = xg[8 * r * LS_TILE_DEPTH + even];
            a[r / 2][r % 2 + 2] = xg[8 * r * LS_TILE_DEPTH + odd];
        }
        LS_UNROLL for (int m = 0; m < n; m++) {
            real b[2];
            ls_tile_get2(b, wg + 8 * m * LS_TILE_DEPTH + two);
            ls_mma(sum + 4 * m, a[0], b);
            ls_mma(sum + 4 * (n + m), a[1], b);
        }
    }
}

typedef struct LsTileProduct {  /* x wT; all numbers except rows and columns are constants */
    const real *x, *w;
    int rows, columns;          /* remaining rows and columns */
    int depth;                  /* numbers of a row of x, and of w */
    int apart;                  /* w is stored transposed: its rows, this far apart, are steps */
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

/* sum[8 n] += the tile's product. xs, ws: buffers of both. turn: the buffer that comes first, 0 or 1; returns the value
 * for the block's next product. */
LS_FN int ls_tile_product(real *sum, LsTileProduct p, real *xs, real *ws, int turn)
{
    real fx[8], fw[8];
    ls_tile_next(fx, fw, p, 0);
    for (int k = LS_TILE_DEPTH; k < p.depth + LS_TILE_DEPTH; k += LS_TILE_DEPTH) {
        real *const xt = xs + turn * LS_TILE_ROWS * LS_TILE_DEPTH;
        real *const wt = ws + turn * 16 * p.n * LS_TILE_DEPTH;
        ls_tile_keep_rows(xt, fx);
        if (p.turned)
            ls_tile_keep_turned(wt, fw, 16 * p.n);
        else
            ls_tile_keep_columns(wt, fw, 16 * p.n);
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

/* ---- reductions of a tile's columns ----
 * A warp reduces its 32 rows to one number per column in shared memory, [4][16 n]; after a barrier,
 * one thread per column goes on in double. */
/* v: by column of the four, summed over the thread's rows. Lanes that are 16, then 8 apart share the columns. */
LS_FN void ls_tile_sums(real *to, const real *v, int p, int n)
{
    const int two = (int)threadIdx.x / 16, one = (int)threadIdx.x / 8 % 2;
    real a = two ? v[2] : v[0], b = two ? v[3] : v[1];
    a += __shfl_xor_sync(0xffffffffu, two ? v[0] : v[2], 16);
    b += __shfl_xor_sync(0xffffffffu, two ? v[1] : v[3], 16);
    real sum = one ? b : a;
    sum += __shfl_xor_sync(0xffffffffu, one ? a : b, 8);
    sum += __shfl_xor_sync(0xffffffffu, sum, 4);
    if (threadIdx.x / 4 % 2 == 0)
        to[(int)threadIdx.y / 2 * LS_TILE_COLUMNS(n) + ls_tile_first(p, n) + 2 * two + one] = sum;
}

/* The first row of the product, as the centre of moments: it is nearer to the mean than 0 is. */
LS_FN void ls_tile_near(real *near, const real *sum, int n)
{
    LS_UNROLL for (int p = 0; p < n / 2; p++)
        LS_UNROLL for (int l = 0; l < 4; l++)
            if (ls_tile_row(0) == 0)
                near[ls_tile_first(p, n) + l] = sum[ls_tile_at(p, 0, l, n)];
}

/* The sum of the four warps' numbers in this thread's column. */
LS_FN double ls_tile_total(const real *from, int n)
{
    double sum = 0;
    LS_UNROLL for (int w = 0; w < LS_TILE_DOWN; w++)
        sum += (double)from[w * LS_TILE_COLUMNS(n) + ls_tile_me()];
    return sum;
}

/* Chan, Golub and LeVeque (1983): moments of two samples combined. */
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
/* Moments of `count` numbers, from the sums of their differences from `near` and of these
 * squared. */
LS_FN LsMoments ls_moments_about(double near, double count, double sum, double square)
{
    return ls_moments(count, near + sum / count, square - sum * sum / count);
}

#endif
