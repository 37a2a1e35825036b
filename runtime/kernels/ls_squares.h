/* runtime/kernels/ls_squares.h -- sums of squares of a matrix that comes row by row.
 *
 * Squares of a few rows add up in `real`, by lanes, then in double, so that the sum is as exact as
 * its terms. */
#ifndef LS_RUNTIME_KERNELS_LS_SQUARES_H
#define LS_RUNTIME_KERNELS_LS_SQUARES_H

#include "runtime/kernels/ls_kernel.h"

enum { LS_SQUARE_LANES = 64, LS_SQUARE_ROWS = 8 };

typedef struct LsSquares {
    real lane[LS_SQUARE_LANES];
    int rows;                   /* in the lanes */
    double sum;                 /* of the rows before */
} LsSquares;

LS_INLINE void ls_squares_flush(LsSquares *s)
{
    s->sum += ls_sum_lanes(s->lane, LS_SQUARE_LANES);
    for (int64_t l = 0; l < LS_SQUARE_LANES; l++)
        s->lane[l] = 0;
    s->rows = 0;
}

LS_INLINE void ls_squares_add(LsSquares *s, const real *x, int64_t n)
{
    const int64_t whole = n / LS_SQUARE_LANES * LS_SQUARE_LANES;
    for (int64_t at = 0; at < whole; at += LS_SQUARE_LANES)
        LS_INDEPENDENT for (int64_t l = 0; l < LS_SQUARE_LANES; l++)
            s->lane[l] += x[at + l] * x[at + l];
    LS_INDEPENDENT for (int64_t l = 0; l < n - whole; l++)
        s->lane[l] += x[whole + l] * x[whole + l];
    if (++s->rows == LS_SQUARE_ROWS)
        ls_squares_flush(s);
}

LS_INLINE real ls_squares_end(LsSquares *s)
{
    ls_squares_flush(s);
    return (real)s->sum;
}

/* The same of m rows, ld apart. */
LS_SHARED_FN real ls_squares_of(const real *x, int64_t ld, int64_t m, int64_t n)
{
    LsSquares s = {{0}, 0, 0};
    for (int64_t i = 0; i < m; i++)
        ls_squares_add(&s, x + i * ld, n);
    return ls_squares_end(&s);
}

/* to[i] = sum of part[i * parts ..], in their order. */
LS_SHARED_FN void ls_squares_join(real *to, const real *part, int64_t n, int64_t parts)
{
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t k = 0; k < parts; k++)
            sum += (double)part[i * parts + k];
        to[i] = (real)sum;
    }
}

#endif
