/* runtime/kernels/ls_attention.h -- attention on the CPU: softmax(scale q kT + mask) v, and its
 * gradient.
 *
 * Scores exist only as tiles of some rows of q by a block of columns of k. The first pass keeps a
 * running maximum and sum of each row (Milakov & Gimelshein 2018; Dao et al. 2022) and stores the
 * logarithm of the sum of exponentials, from which the gradient recomputes each tile.
 *
 * Work is partitioned by shape only, blocks and tiles are taken in order, and units write to
 * disjoint places: bits do not depend on threads. */
#ifndef LS_RUNTIME_KERNELS_LS_ATTENTION_H
#define LS_RUNTIME_KERNELS_LS_ATTENTION_H

#include "runtime/kernels/ls_packing.h"

enum {
    LS_ATT_ROWS = LS_MR > 8 ? 2 * LS_MR : 4 * LS_MR,    /* of a tile; of the gradient's tile */
    LS_ATT_BACK = 2 * LS_ATT_ROWS,
    LS_ATT_UNIT = 18 * LS_ATT_ROWS,                     /* most rows of a unit */
    LS_ATT_LANES = 32,                                  /* most sums of a row side by side */
};

_Static_assert((int)LS_NR <= (int)LS_ATT_LANES, "a panel's columns have sums of their own");

/* Columns of a block, in whole panels: fewer for deep heads, so that a block stays in the L2 cache.
 * `deep`: elements of the longest head of q, k, v. */
#define LS_ATT_COLS(deep) ((deep) <= 64 ? 224 : (deep) <= 160 ? 96 : 32)
/* Row distance of scores: an odd number of vectors. */
#define LS_ATT_LD(deep) (LS_ATT_COLS(deep) + LS_V)
#define LS_ATT_PACKED(n) (((n) + LS_V - 1) / LS_V * LS_V)
/* Elements of a thread's workspace. */
#define LS_ATT_ROOM(depth, width, deep)                                                            \
    (LS_ATT_COLS(deep) * ((depth) + LS_ATT_PACKED(width)) + LS_ATT_ROWS * LS_ATT_LD(deep))
#define LS_ATT_BACK_ROOM(depth, width, deep)                                                       \
    (LS_ATT_COLS(deep) * ((depth) + LS_ATT_PACKED(depth) + (width))                                \
     + LS_ATT_BACK * (LS_ATT_PACKED(depth) + LS_ATT_PACKED(width) + 2 * LS_ATT_LD(deep)))

/* Distances of samples, heads, rows. */
typedef struct LsHeads { int64_t sample, head, row; } LsHeads;

typedef struct LsAttention {
    int64_t batch, heads, groups;       /* heads / groups neighbouring heads share a k and v */
    int64_t rows, cols, depth, width;   /* of q; of k and v; elements of q and k; of v and y */
    int64_t block;                      /* columns of a block, LS_ATT_COLS */
    real scale;
    bool causal;                        /* row i attends to columns 0 .. i + past */
    int64_t past;
    LsHeads q, k, v, y, mask;
    int64_t mask_col;                   /* 0: one value for all columns */
    bool keep;                          /* mask of bools: the value that leaves a score unchanged */
    real fill;                          /* and the score otherwise */
} LsAttention;

/* At most one mask. spans, [batch][rows][2], where rows and columns are the same tokens: row i
 * attends to columns spans[i][0] .. spans[i][1] - 1 alone, which both grow with i; NULL: there are
 * none. The gradients dq, dk, dv lie as q, k, v do. */
typedef struct LsAttentionArgs {
    const real *q, *k, *v, *add;
    const uint8_t *bools;
    const int32_t *spans;
    real *y, *lse;
    const real *dy;
    real *dq, *dk, *dv;
} LsAttentionArgs;

LS_INLINE int64_t ls_heads_at(const LsHeads *t, int64_t sample, int64_t head)
{
    return sample * t->sample + head * t->head;
}

/* ---- shared by the two passes ---- */

/* Rows i .. i + m of one head of q by columns j .. j + n of its k. No row attends to those before
 * `from`, a multiple of `step`, or from `wide` on; `whole`: that number, rounded up to a multiple.
 * wide 0: no row attends to any. step: whole panels, LS_NR, or LS_ATT_LANES (ls_attention16.h). */
typedef struct LsScores {
    const LsAttention *d;
    const LsAttentionArgs *a;
    int64_t sample, head;
    int64_t i, m, j, n, from, wide, whole;
    int64_t ld;                         /* distance of rows of scores */
} LsScores;

/* Rows up to i may attend to columns below the result; those from i on to none below ls_begun. */
LS_INLINE int64_t ls_seen(const LsAttention *d, const LsAttentionArgs *a, int64_t sample, int64_t i)
{
    const int64_t end = a->spans ? a->spans[(sample * d->rows + i) * 2 + 1] : d->cols;
    return d->causal ? ls_least(i + d->past + 1, end) : end;
}
LS_INLINE int64_t ls_begun(const LsAttention *d, const LsAttentionArgs *a, int64_t sample,
                           int64_t i)
{
    return a->spans ? a->spans[(sample * d->rows + i) * 2] : 0;
}

LS_INLINE void ls_scores_bound(LsScores *t, const int step)
{
    const int64_t last = ls_seen(t->d, t->a, t->sample, t->i + t->m - 1) - t->j;
    t->from = ls_most(ls_begun(t->d, t->a, t->sample, t->i) - t->j, 0) / step * step;
    t->wide = ls_least(last, t->n);
    t->wide = t->from < t->wide ? t->wide : 0;
    t->whole = ls_ceil_div(t->wide, step) * step;
}

/* Panels of the columns of a matrix of n rows `ld` apart: to[c][k] for k < depth, c < n. */
LS_SHARED_FN void ls_pack_columns(real *to, const real *from, int64_t ld, int64_t depth, int64_t n,
                                  real scale)
{
    for (int64_t c = 0; c < n; c += LS_NR)
        ls_pack_turned(to + c * depth, from + c * ld, ld, depth, n - c, scale);
}

/* Packs n rows of `width` columns into panels. */
LS_SHARED_FN void ls_pack_block(real *to, const real *from, int64_t ld, int64_t n, int64_t width,
                                real scale)
{
    for (int64_t c = 0; c < width; c += LS_NR)
        ls_pack_rows(to + c * n, from + c, ld, n, width - c, scale);
}

/* to[m][..] = from[m][depth] times the tile's packed columns. The remainder of the last panel
 * becomes 0. */
LS_INLINE void ls_scores_multiply(const LsScores *t, real *to, const real *from, int64_t ldf,
                                  int64_t depth, const real *panels)
{
    for (int64_t c = t->from; c < t->wide; c += LS_NR) {
        int64_t width = ls_panel_width(t->n - c);
        ls_panel(0, t->m, width, depth, from, ldf, panels + c * depth, width, ls_no_bias, 0,
                 to + c, t->ld);
        for (int64_t r = 0; width < LS_NR && r < t->m; r++)
            ls_zero(to + r * t->ld + c + width, LS_NR - width);
    }
}

/* to[m][width] (+)= from[m][k] times packed rows, of which the first `skip` are left out. */
LS_INLINE void ls_rows_times(bool turned, int64_t m, int64_t width, int64_t k, const real *from,
                             int64_t ldf, const real *panels, int64_t rows, int64_t skip, bool add,
                             real *to, int64_t ldt)
{
    for (int64_t c = 0; c < width; c += LS_NR)
        ls_panel(turned ? LS_TURNED_A : 0, m, ls_least(LS_NR, width - c), k, from, ldf,
                 panels + c * rows + skip * ls_panel_width(width - c), ls_panel_width(width - c),
                 add ? to + c : ls_no_bias, add ? ldt : 0, to + c, ldt);
}

/* ---- rows of scores: whole panels, or whole LS_ATT_LANES ----
 * As ls_row_max and the like, with short rows in mind: lanes are joined as a tree of reals. */
#define LS_ATT_JOIN(name, join)                                                                    \
    LS_INLINE real name(const int lanes, real *lane)                                               \
    {                                                                                              \
        _Pragma("GCC unroll 8") for (int half = lanes / 2; half > 0; half /= 2)                    \
            for (int l = 0; l < half; l++)                                                         \
                lane[l] = join(lane[l], lane[l + half]);                                           \
        return lane[0];                                                                            \
    }
#define LS_ATT_ADD(a, b) ((a) + (b))
#define LS_ATT_MAX(a, b) ((a) > (b) ? (a) : (b))
LS_ATT_JOIN(ls_lanes_add, LS_ATT_ADD)
LS_ATT_JOIN(ls_lanes_max, LS_ATT_MAX)

/* ls_exp of numbers that are not above 88, with the same bits. By whole vectors: compilers take
 * halves of AVX-512's. */
LS_INLINE ls_vec ls_vec_exp(ls_vec x)
{
#ifdef LS_F64
    for (int l = 0; l < LS_V; l++)
        x[l] = ls_exp(x[l]);
    return x;
#else
    const ls_vec a = ls_vec_max(ls_splat(-87.5f), x);
    const ls_vec z = a * 1.44269504f + 12582912.f, n = z - 12582912.f;
    const ls_vec r = n * 2.12194440e-4f + (n * -0.693359375f + a);
    ls_vec p = 0.000197902482f * r + 0.00139447593f;
    p = p * r + 0.00833349768f;
    p = p * r + 0.0416662954f;
    p = p * r + 0.166666657f;
    p = p * r + 0.5f;
    p = p * r * r + r + 1.f;
    p *= (ls_vec)(((ls_vec_32)z << 23) + (126u << 23));
    return p + p;
#endif
}

LS_INLINE real ls_scores_max(const int lanes, const real *s, int64_t n)
{
    ls_vec lane[LS_ATT_LANES / LS_V];
    real each[LS_ATT_LANES];
    for (int l = 0; l < lanes / LS_V; l++)
        lane[l] = ls_splat(-INFINITY);
    for (int64_t c = 0; c < n; c += lanes)
        for (int l = 0; l < lanes / LS_V; l++)
            lane[l] = ls_vec_max(ls_load(s + c + l * LS_V), lane[l]);
    for (int l = 0; l < lanes / LS_V; l++)
        ls_store(each + l * LS_V, lane[l]);
    return ls_lanes_max(lanes, each);
}

/* s = exp(s - shift), and the sum of the results. */
LS_INLINE real ls_scores_exp(const int lanes, real *s, real shift, int64_t n)
{
    ls_vec lane[LS_ATT_LANES / LS_V];
    real each[LS_ATT_LANES];
    for (int l = 0; l < lanes / LS_V; l++)
        lane[l] = ls_splat(0);
    for (int64_t c = 0; c < n; c += lanes)
        for (int l = 0; l < lanes / LS_V; l++) {
            const ls_vec e = ls_vec_exp(ls_load(s + c + l * LS_V) - shift);
            ls_store(s + c + l * LS_V, e);
            lane[l] += e;
        }
    for (int l = 0; l < lanes / LS_V; l++)
        ls_store(each + l * LS_V, lane[l]);
    return ls_lanes_add(lanes, each);
}

LS_INLINE real ls_heads_dot(const int lanes, const real *a, const real *b, int64_t n)
{
    real lane[LS_ATT_LANES], rest = 0;
    int64_t c = 0;
    for (int l = 0; l < lanes; l++)
        lane[l] = 0;
    for (; c + lanes <= n; c += lanes)
        for (int l = 0; l < lanes; l++)
            lane[l] += a[c + l] * b[c + l];
    for (; c < n; c++)
        rest += a[c] * b[c];
    return ls_lanes_add(lanes, lane) + rest;
}

/* Applies the mask to the visible scores of row r, from t->from on; the others become minus
 * infinity up to the end of a whole step. Returns that end, at least t->from. */
LS_INLINE int64_t ls_row_masked(const LsScores *t, const int step, int64_t r, real *s)
{
    const LsAttention *d = t->d;
    const LsAttentionArgs *a = t->a;
    int64_t at = ls_heads_at(&d->mask, t->sample, t->head) + (t->i + r) * d->mask.row
                 + t->j * d->mask_col;
    int64_t n = ls_least(ls_seen(d, a, t->sample, t->i + r) - t->j, t->wide);
    n = ls_most(n, t->from);
    if (a->add != NULL && d->mask_col == 1)
        for (int64_t c = t->from; c < n; c++)
            s[c] += a->add[at + c];
    else if (a->add != NULL)
        for (int64_t c = t->from; c < n; c++)
            s[c] += a->add[at];
    if (a->bools != NULL)
        for (int64_t c = t->from; c < n; c++)
            s[c] = (a->bools[at + c * d->mask_col] != 0) == d->keep ? s[c] : d->fill;
    int64_t whole = ls_ceil_div(n, step) * step;
    for (int64_t c = n; c < whole; c++)
        s[c] = -INFINITY;
    const int64_t begun = ls_least(ls_begun(d, a, t->sample, t->i + r) - t->j, n);
    for (int64_t c = t->from; c < begun; c++)
        s[c] = -INFINITY;
    return whole;
}

/* ---- forward ---- */

/* For each row of a unit: the greatest score so far, and the sum of exponentials relative to it. */
typedef struct LsRunning { real max[LS_ATT_UNIT]; double sum[LS_ATT_UNIT]; } LsRunning;

/* Turns one row of scores from t->from on, of which some of the first n are visible, into weights;
 * rescales y to the new maximum. */
LS_INLINE void ls_row_weigh(const LsScores *t, const int lanes, real *s, int64_t n, bool first,
                            real *max, double *sum, real *y)
{
    real most = ls_scores_max(lanes, s, n), top = LS_ATT_MAX(most, *max);
    real shift = top == -INFINITY ? 0 : top, more = ls_scores_exp(lanes, s, shift, n);
    ls_zero(s + n, t->whole - t->from - n);
    if (!first && top != *max) {
        real by = ls_exp(*max - shift);
        *sum *= by;
        for (int64_t c = 0; c < t->d->width; c++)
            y[c] *= by;
    }
    *sum = first ? more : *sum + more;
    *max = top;
}

LS_SHARED_FN void ls_tile_attend(LsScores *t, const real *kt, const real *v, real *s, real *max,
                                 double *sum)
{
    const LsAttention *d = t->d;
    const real *q = t->a->q + ls_heads_at(&d->q, t->sample, t->head) + t->i * d->q.row;
    real *y = t->a->y + ls_heads_at(&d->y, t->sample, t->head) + t->i * d->y.row;
    const bool first = t->j <= ls_begun(d, t->a, t->sample, t->i);
    ls_scores_multiply(t, s, q, d->q.row, d->depth, kt);
    for (int64_t r = 0; r < t->m; r++) {
        int64_t n = ls_row_masked(t, LS_NR, r, s + r * t->ld) - t->from;
        ls_row_weigh(t, LS_NR, s + r * t->ld + t->from, n, first, max + r, sum + r,
                     y + r * d->y.row);
    }
    ls_rows_times(false, t->m, d->width, t->wide - t->from, s + t->from, t->ld, v, t->n, t->from,
                  !first, y, d->y.row);
}

/* Rows i0 .. i0 + m of one head. */
LS_SHARED_FN void ls_attend(const LsAttention *d, const LsAttentionArgs *a, int64_t sample,
                            int64_t head, int64_t i0, int64_t m, real *room)
{
    LsRunning run;
    for (int64_t r = 0; r < m; r++)
        run.max[r] = -INFINITY;
    int64_t group = head / (d->heads / d->groups), ldv = LS_ATT_PACKED(d->width);
    const real *k = a->k + ls_heads_at(&d->k, sample, group);
    const real *v = a->v + ls_heads_at(&d->v, sample, group);
    real *kt = room, *vp = kt + d->block * d->depth, *s = vp + d->block * ldv;
    LsScores t = {.d = d, .a = a, .sample = sample, .head = head, .ld = d->block + LS_V};
    const int64_t seen = ls_seen(d, a, sample, i0 + m - 1);
    for (t.j = ls_begun(d, a, sample, i0) / d->block * d->block; t.j < seen; t.j += d->block) {
        t.n = ls_least(d->block, seen - t.j);
        ls_pack_columns(kt, k + t.j * d->k.row, d->k.row, d->depth, t.n, d->scale);
        ls_pack_block(vp, v + t.j * d->v.row, d->v.row, t.n, d->width, 1);
        for (int64_t r = 0; r < m; r += LS_ATT_ROWS) {
            t.i = i0 + r;
            t.m = ls_least(LS_ATT_ROWS, m - r);
            ls_scores_bound(&t, LS_NR);
            if (t.wide > 0)
                ls_tile_attend(&t, kt, vp, s, run.max + r, run.sum + r);
        }
    }
    real *lse = a->lse + (sample * d->heads + head) * d->rows + i0;
    real *y = a->y + ls_heads_at(&d->y, sample, head) + i0 * d->y.row;
    for (int64_t r = 0; r < m; r++, y += d->y.row) {
        bool none = run.sum[r] == 0;
        real by = none ? 0 : (real)(1 / run.sum[r]);
        for (int64_t c = 0; c < d->width; c++)
            y[c] *= by;
        lse[r] = none ? 0 : run.max[r] + ls_log((real)run.sum[r]);
    }
}

/* Rows of a unit of whole tiles: many rows share a packed k and v, but there are enough units for
 * several threads. */
LS_INLINE int64_t ls_attention_rows(const LsAttention *d, int64_t most, int64_t tile)
{
    enum { MANY = 16 };
    int64_t rows = ls_even_block(d->rows, most, tile);
    while (rows > 2 * tile && d->batch * d->heads * ls_ceil_div(d->rows, rows) < MANY)
        rows = ls_even_block(d->rows, rows / 2, tile);
    return rows;
}

LS_INLINE int64_t ls_attention_unit(const LsAttention *d)
{
    return ls_attention_rows(d, LS_ATT_UNIT, LS_ATT_ROWS);
}

LS_INLINE int64_t ls_attention_units(const LsAttention *d)
{
    return d->batch * d->heads * ls_ceil_div(d->rows, ls_attention_unit(d));
}

LS_SHARED_FN void ls_attention_some(const LsAttention *d, const LsAttentionArgs *a, int64_t lo,
                                    int64_t hi, real *room)
{
    int64_t rows = ls_attention_unit(d), down = ls_ceil_div(d->rows, rows);
    for (int64_t u = lo; u < hi; u++) {
        int64_t i = u % down * rows, head = u / down;
        ls_attend(d, a, head / d->heads, head % d->heads, i, ls_least(rows, d->rows - i), room);
    }
}

/* ---- gradient ----
 * With p the weights and w = p (dy vT - dot(dy, y)) row by row: dq = scale w k, dk = scale wT q,
 * dv = pT dy. */

/* A thread's packed blocks and tiles. */
typedef struct LsBackRoom { real *kt, *k, *vt, *q, *dy, *p, *w; } LsBackRoom;

LS_INLINE LsBackRoom ls_back_room(const LsAttention *d, real *room)
{
    int64_t depth = LS_ATT_PACKED(d->depth), width = LS_ATT_PACKED(d->width);
    LsBackRoom b = {.kt = room};
    b.k = b.kt + d->block * d->depth;
    b.vt = b.k + d->block * depth;
    b.q = b.vt + d->block * d->width;
    b.dy = b.q + LS_ATT_BACK * depth;
    b.p = b.dy + LS_ATT_BACK * width;
    b.w = b.p + LS_ATT_BACK * (d->block + LS_V);
    return b;
}

/* p: scores to weights; w: dy vT to the w defined above. */
LS_INLINE void ls_row_back(const LsScores *t, const int step, int64_t r, real *p, real *w,
                           real lse, real dot)
{
    int64_t n = ls_row_masked(t, step, r, p);
    for (int64_t c = t->from; c < n; c += LS_V) {
        const ls_vec e = ls_vec_exp(ls_load(p + c) - lse);
        ls_store(p + c, e);
        ls_store(w + c, e * (ls_load(w + c) - dot));
    }
    ls_zero(p + n, t->whole - n);
    ls_zero(w + n, t->whole - n);
    if (t->a->bools == NULL)
        return;
    const LsAttention *d = t->d;
    const uint8_t *bools = t->a->bools + ls_heads_at(&d->mask, t->sample, t->head)
                           + (t->i + r) * d->mask.row + t->j * d->mask_col;
    for (int64_t c = t->from; c < t->wide; c++)         /* filled scores have no gradient */
        w[c] = (bools[c * d->mask_col] != 0) == d->keep ? w[c] : 0;
}

LS_SHARED_FN void ls_tile_back(LsScores *t, const LsBackRoom *b, real *dk, real *dv)
{
    const LsAttention *d = t->d;
    const LsAttentionArgs *a = t->a;
    int64_t at = ls_heads_at(&d->q, t->sample, t->head) + t->i * d->q.row;
    int64_t at_y = ls_heads_at(&d->y, t->sample, t->head) + t->i * d->y.row;
    const real *lse = a->lse + (t->sample * d->heads + t->head) * d->rows + t->i;
    ls_scores_multiply(t, b->p, a->q + at, d->q.row, d->depth, b->kt);
    ls_scores_multiply(t, b->w, a->dy + at_y, d->y.row, d->width, b->vt);
    for (int64_t r = 0; r < t->m; r++) {
        const real *dy = a->dy + at_y + r * d->y.row, *y = a->y + at_y + r * d->y.row;
        real dot = ls_heads_dot(LS_NR, dy, y, d->width);
        ls_row_back(t, LS_NR, r, b->p + r * t->ld, b->w + r * t->ld, lse[r], dot);
    }
    ls_pack_block(b->q, a->q + at, d->q.row, t->m, d->depth, d->scale);
    ls_pack_block(b->dy, a->dy + at_y, d->y.row, t->m, d->width, 1);
    const int64_t from = t->from, cols = t->wide - from;
    ls_rows_times(false, t->m, d->depth, cols, b->w + from, t->ld, b->k, t->n, from, true,
                  a->dq + at, d->q.row);
    ls_rows_times(true, cols, d->depth, t->m, b->w + from, t->ld, b->q, t->m, 0, true,
                  dk + from * d->k.row, d->k.row);
    ls_rows_times(true, cols, d->width, t->m, b->p + from, t->ld, b->dy, t->m, 0, true,
                  dv + from * d->v.row, d->v.row);
}

LS_INLINE void ls_zero_rows(real *to, int64_t ld, int64_t rows, int64_t n)
{
    for (int64_t r = 0; r < rows; r++)
        ls_zero(to + r * ld, n);
}

/* One k and v, and the heads that share it. */
LS_SHARED_FN void ls_attend_back(const LsAttention *d, const LsAttentionArgs *a, int64_t sample,
                                 int64_t group, real *room)
{
    const LsBackRoom b = ls_back_room(d, room);
    int64_t heads = d->heads / d->groups, at_k = ls_heads_at(&d->k, sample, group);
    int64_t at_v = ls_heads_at(&d->v, sample, group);
    LsScores t = {.d = d, .a = a, .sample = sample, .ld = d->block + LS_V};
    for (int64_t h = group * heads; h < (group + 1) * heads; h++)
        ls_zero_rows(a->dq + ls_heads_at(&d->q, sample, h), d->q.row, d->rows, d->depth);
    ls_zero_rows(a->dk + at_k, d->k.row, d->cols, d->depth);
    ls_zero_rows(a->dv + at_v, d->v.row, d->cols, d->width);
    for (t.j = 0; t.j < d->cols; t.j += d->block) {
        t.n = ls_least(d->block, d->cols - t.j);
        const real *k = a->k + at_k + t.j * d->k.row, *v = a->v + at_v + t.j * d->v.row;
        ls_pack_columns(b.kt, k, d->k.row, d->depth, t.n, d->scale);
        ls_pack_columns(b.vt, v, d->v.row, d->width, t.n, 1);
        ls_pack_block(b.k, k, d->k.row, t.n, d->depth, d->scale);
        for (t.head = group * heads; t.head < (group + 1) * heads; t.head++)
            for (t.i = 0; t.i < d->rows; t.i += LS_ATT_BACK) {
                t.m = ls_least(LS_ATT_BACK, d->rows - t.i);
                ls_scores_bound(&t, LS_NR);
                if (t.wide > 0)
                    ls_tile_back(&t, &b, a->dk + at_k + t.j * d->k.row,
                                 a->dv + at_v + t.j * d->v.row);
            }
    }
}

LS_INLINE int64_t ls_attention_back_units(const LsAttention *d) { return d->batch * d->groups; }

LS_SHARED_FN void ls_attention_back_some(const LsAttention *d, const LsAttentionArgs *a, int64_t lo,
                                         int64_t hi, real *room)
{
    for (int64_t u = lo; u < hi; u++)
        ls_attend_back(d, a, u / d->groups, u % d->groups, room);
}

/* ---- tensors in 16 bits ---- A unit is one head: its rows are widened into `heads`, which has
 * room for them (LS_ATT_HEADS), and its results are rounded out of there. */
#define LS_ATT_HEADS(rows, cols, depth, width) (((rows) + (cols)) * ((depth) + (width)))

/* Tensors of which some are stored in 16 bits. The gradient: one head for each k and v. */
typedef struct LsAttentionNarrow {
    LsSource q, k, v, dy, y;
    LsStored to;                        /* of the results */
    void *out, *dq, *dk, *dv;
} LsAttentionNarrow;

/* The rows of one head, side by side; and back. */
LS_INLINE void ls_heads_take(LsSource from, const LsHeads *at, int64_t sample, int64_t head,
                             int64_t rows, int64_t n, real *to)
{
    for (int64_t r = 0; r < rows; r++)
        ls_take(from, ls_heads_at(at, sample, head) + r * at->row, to + r * n, n);
}
LS_INLINE void ls_heads_give(LsStored type, void *to, const LsHeads *at, int64_t sample,
                             int64_t head, int64_t rows, int64_t n, const real *from)
{
    for (int64_t r = 0; r < rows; r++)
        ls_give(type, to, ls_heads_at(at, sample, head) + r * at->row, from + r * n, n);
}

/* The same attention over rows that lie side by side. */
LS_INLINE LsAttention ls_heads_dense(const LsAttention *d)
{
    LsAttention own = *d;
    own.q = own.k = (LsHeads){0, 0, d->depth};
    own.v = own.y = (LsHeads){0, 0, d->width};
    return own;
}

LS_SHARED_FN void ls_attention_narrow_some(const LsAttention *d, const LsAttentionArgs *a,
                                           const LsAttentionNarrow *t, int64_t lo, int64_t hi,
                                           real *room, real *heads)
{
    const LsAttention own = ls_heads_dense(d);
    real *const q = heads, *const k = q + d->rows * d->depth, *const v = k + d->cols * d->depth;
    real *const y = v + d->cols * d->width;
    LsAttentionArgs mine = *a;
    int64_t unit = ls_attention_unit(d);
    mine.q = q, mine.k = k, mine.v = v, mine.y = y;
    for (int64_t u = lo; u < hi; u++) {
        int64_t sample = u / d->heads, head = u % d->heads, group = head / (d->heads / d->groups);
        ls_heads_take(t->q, &d->q, sample, head, d->rows, d->depth, q);
        ls_heads_take(t->k, &d->k, sample, group, d->cols, d->depth, k);
        ls_heads_take(t->v, &d->v, sample, group, d->cols, d->width, v);
        for (int64_t i = 0; i < d->rows; i += unit)
            ls_attend(&own, &mine, sample, head, i, ls_least(unit, d->rows - i), room);
        ls_heads_give(t->to, t->out, &d->y, sample, head, d->rows, d->width, y);
    }
}

LS_INLINE int64_t ls_attention_narrow_units(const LsAttention *d) { return d->batch * d->heads; }

LS_SHARED_FN void ls_attention_back_narrow_some(const LsAttention *d, const LsAttentionArgs *a,
                                                const LsAttentionNarrow *t, int64_t lo, int64_t hi,
                                                real *room, real *heads)
{
    const LsAttention own = ls_heads_dense(d);
    const int64_t rows = d->rows, cols = d->cols;
    real *const q = heads, *const k = q + rows * d->depth, *const v = k + cols * d->depth;
    real *const y = v + cols * d->width, *const dq = y + rows * d->width,
                *const dk = dq + rows * d->depth;
    real *const dv = dk + cols * d->depth, *const dy = dv + cols * d->width;
    LsAttentionArgs mine = *a;
    mine.q = q, mine.k = k, mine.v = v, mine.y = y, mine.dq = dq, mine.dk = dk, mine.dv = dv,
    mine.dy = dy;
    for (int64_t u = lo; u < hi; u++) {
        int64_t sample = u / d->heads, head = u % d->heads;
        ls_heads_take(t->q, &d->q, sample, head, rows, d->depth, q);
        ls_heads_take(t->k, &d->k, sample, head, cols, d->depth, k);
        ls_heads_take(t->v, &d->v, sample, head, cols, d->width, v);
        ls_heads_take(t->y, &d->y, sample, head, rows, d->width, y);
        ls_heads_take(t->dy, &d->y, sample, head, rows, d->width, dy);
        ls_attend_back(&own, &mine, sample, head, room);
        ls_heads_give(t->to, t->dq, &d->q, sample, head, rows, d->depth, dq);
        ls_heads_give(t->to, t->dk, &d->k, sample, head, cols, d->depth, dk);
        ls_heads_give(t->to, t->dv, &d->v, sample, head, cols, d->width, dv);
    }
}

LS_INLINE int64_t ls_attention_back_narrow_units(const LsAttention *d)
{
    return d->batch * d->heads;
}

#endif
