/* runtime/kernels/ls_attention16.h -- attention whose products have factors of bfloat16 and sums of
 * f32 (ls_dot16.h). q, k, v, dy and y are rounded, or stored so; so are the weights before they
 * multiply v or dy, and the scores' gradients before they multiply q or k. Scores, their maxima and
 * sums are f32; `scale` multiplies sums.
 *
 * Tiles, blocks and the sums of a row have the same sizes on every processor, because sums of
 * products depend on where they begin. Otherwise as ls_attention.h. */
#ifndef LS_RUNTIME_KERNELS_LS_ATTENTION16_H
#define LS_RUNTIME_KERNELS_LS_ATTENTION16_H

#include "runtime/kernels/ls_attention.h"
#include "runtime/kernels/ls_dot_pack.h"

enum {
    LS_ATT16_ROWS = 32,                 /* of a tile; of the gradient's tile */
    LS_ATT16_BACK = 64,
};

/* Columns of a block: factors are half as long as those of LS_ATT_COLS. */
#define LS_ATT16_COLS(deep) ((deep) <= 128 ? 224 : (deep) <= 320 ? 96 : 32)
/* Distance of packed rows of n elements; elements of n packed columns of k rows. */
#define LS_ATT16_LD(n) (((n) + 15) / 16 * 16 + 16)
#define LS_ATT16_PANELS(n, k)                                                                      \
    (LS_ATT_PACKED(n) * ((k) < (int)LS_DOT16_PITCH ? (int64_t)LS_DOT16_PITCH : (int64_t)(k)))
/* Rows of a unit at most: whole tiles, fewer for wide heads. */
#define LS_ATT16_UNIT(width) ((width) <= 128 ? 12 * LS_ATT16_ROWS : LS_ATT16_ROWS)
/* Elements of a packed transposed tile of the gradient. */
#define LS_ATT16_TURNED(deep)                                                                      \
    ((LS_ATT16_COLS(deep) + LS_MR - 1) / LS_MR * LS_TILE_LD * LS_ATT16_BACK)

_Static_assert(LS_ATT16_UNIT(1) <= (int)LS_ATT_UNIT, "LsRunning has room for a unit");
_Static_assert((int)LS_ATT_LANES % (int)LS_APART_DEPTH == 0, "steps of columns are whole tiles");
_Static_assert(LS_ATT16_COLS(1) <= (int)LS_DW_ROWS, "a block's columns are rows of a transposed A");

/* Elements of a tile of scores and of its packed rows; of a thread's workspace; of the sums of one
 * head, where results are rounded. */
#define LS_ATT16_SCORES(rows, deep) ((rows) * (LS_ATT16_COLS(deep) + LS_V))
#define LS_ATT16_ROWS_OF(rows, deep) ((rows) * LS_ATT16_LD(LS_ATT16_COLS(deep)))
#define LS_ATT16_ROOM(depth, width, deep)                                                          \
    (LS_ATT16_PANELS(LS_ATT16_COLS(deep), depth) + LS_ATT16_PANELS(width, LS_ATT16_COLS(deep))     \
     + LS_ATT16_ROWS * LS_ATT16_LD(depth) + LS_ATT16_ROWS_OF(LS_ATT16_ROWS, deep)                  \
     + LS_ATT16_SCORES(LS_ATT16_ROWS, deep) + LS_ATT16_UNIT(width) * (width))
#define LS_ATT16_BACK_ROOM(depth, width, deep)                                                     \
    (LS_ATT16_PANELS(LS_ATT16_COLS(deep), depth) + LS_ATT16_PANELS(LS_ATT16_COLS(deep), width)     \
     + LS_ATT16_PANELS(depth, LS_ATT16_COLS(deep)) + LS_ATT16_PANELS(depth, LS_ATT16_BACK)         \
     + LS_ATT16_PANELS(width, LS_ATT16_BACK)                                                       \
     + LS_ATT16_BACK * (LS_ATT16_LD(depth) + LS_ATT16_LD(width))                                   \
     + LS_ATT16_ROWS_OF(LS_ATT16_BACK, deep) + 2 * LS_ATT16_SCORES(LS_ATT16_BACK, deep)            \
     + 2 * LS_ATT_PACKED(width) + LS_ATT16_TURNED(deep))
#define LS_ATT16_SUMS(rows, cols, depth, width) ((rows) * (depth) + (cols) * ((depth) + (width)))

/* ---- shared by the two passes ---- */

/* One head's rows. */
LS_INLINE LsSource ls_head_source(LsSource s, const LsHeads *at, int64_t sample, int64_t head)
{
    const int64_t size = s.type == LS_STORED_REAL ? sizeof(real) : sizeof(ls_bf16);
    s.at = (const char *)s.at + ls_heads_at(at, sample, head) * size;
    s.row = at->row;
    return s;
}

/* Rows of scores, or what was made of them, from `from` on, as factors. */
LS_INLINE LsSource ls_scores_source(const LsScores *t, const real *s)
{
    return (LsSource){.at = s + t->from, .round = LS_STORED_BF16, .row = t->ld};
}

/* Columns of the tile that are factors: whole tiles, as far as there are columns. What lies behind
 * them does not matter. */
LS_INLINE int64_t ls_scores_terms(const LsScores *t) { return ls_least(t->whole, t->n) - t->from; }

/* s[m][..] = packed rows of `depth` elements times the block's columns. */
LS_INLINE void ls_scores_multiply16(const LsScores *t, real *s, const real *rows, int64_t ld,
                                    int64_t depth, const real *panels)
{
    const LsDotRows a = {false, t->m, depth, rows, ld};
    ls_dot_multiply(a, ls_scores_terms(t), panels + t->from * ls_panel_pitch(LS_DOTS, depth), depth,
                    0, ls_no_bias, 0, s + t->from, t->ld);
}

LS_INLINE void ls_row_times(real *s, real by, int64_t n)
{
    int64_t c = 0;
    for (; c + LS_V <= n; c += LS_V)
        ls_store(s + c, ls_load(s + c) * by);
    for (; c < n; c++)
        s[c] *= by;
}

/* ---- forward ---- */

/* A thread's packed block, its tile, and the sums of a unit's rows. */
typedef struct LsRoom16 { real *kt, *v, *q, *s, *p, *y; } LsRoom16;

LS_INLINE LsRoom16 ls_room16(const LsAttention *d, real *room)
{
    LsRoom16 b = {.kt = room};
    b.v = b.kt + LS_ATT16_PANELS(d->block, d->depth);
    b.q = b.v + LS_ATT16_PANELS(d->width, d->block);
    b.p = b.q + LS_ATT16_ROWS * LS_ATT16_LD(d->depth);
    b.s = b.p + LS_ATT16_ROWS * LS_ATT16_LD(d->block);
    b.y = b.s + LS_ATT16_ROWS * (d->block + LS_V);
    return b;
}

LS_SHARED_FN void ls_tile_attend16(const LsScores *t, const LsRoom16 *b, LsSource q, real *max,
                                   double *sum, real *y)
{
    const LsAttention *d = t->d;
    const int64_t ldq = LS_ATT16_LD(d->depth), ldp = LS_ATT16_LD(d->block);
    const bool first = t->j <= ls_begun(d, t->a, t->sample, t->i);
    ls_dot_rows(q, t->i, t->m, d->depth, b->q, ldq);
    uint64_t mode = ls_dots_begin(LS_DOTS);
    ls_scores_multiply16(t, b->s, b->q, ldq, d->depth, b->kt);
    ls_dots_end(LS_DOTS, mode);
    for (int64_t r = 0; r < t->m; r++) {
        real *const s = b->s + r * t->ld;
        ls_row_times(s + t->from, d->scale, t->whole - t->from);
        const int64_t n = ls_row_masked(t, LS_ATT_LANES, r, s) - t->from;
        ls_row_weigh(t, LS_ATT_LANES, s + t->from, n, first, max + r, sum + r, y + r * d->width);
    }
    const LsDotRows p = {false, t->m, ls_scores_terms(t), b->p, ldp};
    ls_dot_rows(ls_scores_source(t, b->s), 0, p.m, p.k, b->p, ldp);
    mode = ls_dots_begin(LS_DOTS);
    ls_dot_multiply(p, d->width, b->v, t->n, t->from, first ? ls_no_bias : y, first ? 0 : d->width,
                    y, d->width);
    ls_dots_end(LS_DOTS, mode);
}

/* Stores rows i .. i + m of a head, whose sums are y, and the logarithms of their sums. */
LS_INLINE void ls_rows_end16(const LsScores *t, const LsAttentionNarrow *x, int64_t i, int64_t m,
                             const LsRunning *run, real *y)
{
    const LsAttention *d = t->d;
    real *const lse = t->a->lse + (t->sample * d->heads + t->head) * d->rows + i;
    const int64_t at = ls_heads_at(&d->y, t->sample, t->head);
    for (int64_t r = 0; r < m; r++, y += d->width) {
        const bool none = run->sum[r] == 0;
        if (none)
            ls_zero(y, d->width);
        else
            ls_row_times(y, (real)(1 / run->sum[r]), d->width);
        ls_give(x->to, x->out, at + (i + r) * d->y.row, y, d->width);
        lse[r] = none ? 0 : run->max[r] + ls_log((real)run->sum[r]);
    }
}

/* Rows i0 .. i0 + m of one head. */
LS_SHARED_FN void ls_attend16(const LsAttention *d, const LsAttentionArgs *a,
                              const LsAttentionNarrow *x, int64_t sample, int64_t head, int64_t i0,
                              int64_t m, real *room)
{
    LsRunning run;
    const LsRoom16 b = ls_room16(d, room);
    const int64_t group = head / (d->heads / d->groups), seen = ls_seen(d, a, sample, i0 + m - 1);
    const LsSource q = ls_head_source(x->q, &d->q, sample, head),
                   k = ls_head_source(x->k, &d->k, sample, group),
                   v = ls_head_source(x->v, &d->v, sample, group);
    LsScores t = {.d = d, .a = a, .sample = sample, .head = head, .ld = d->block + LS_V};
    for (int64_t r = 0; r < m; r++) {
        run.max[r] = -INFINITY;
        run.sum[r] = 0;
    }
    for (t.j = ls_begun(d, a, sample, i0) / d->block * d->block; t.j < seen; t.j += d->block) {
        t.n = ls_least(d->block, seen - t.j);
        ls_dot_turned_panels(k, t.j, t.n, d->depth, b.kt);
        ls_dot_panels(v, t.j, t.n, d->width, b.v);
        for (int64_t r = 0; r < m; r += LS_ATT16_ROWS) {
            t.i = i0 + r;
            t.m = ls_least(LS_ATT16_ROWS, m - r);
            ls_scores_bound(&t, LS_ATT_LANES);
            if (t.wide > 0)
                ls_tile_attend16(&t, &b, q, run.max + r, run.sum + r, b.y + r * d->width);
        }
    }
    ls_rows_end16(&t, x, i0, m, &run, b.y);
}

LS_INLINE int64_t ls_attention16_unit(const LsAttention *d)
{
    return ls_attention_rows(d, LS_ATT16_UNIT(d->width), LS_ATT16_ROWS);
}

LS_INLINE int64_t ls_attention16_units(const LsAttention *d)
{
    return d->batch * d->heads * ls_ceil_div(d->rows, ls_attention16_unit(d));
}

LS_SHARED_FN void ls_attention16_some(const LsAttention *d, const LsAttentionArgs *a,
                                      const LsAttentionNarrow *x, int64_t lo, int64_t hi,
                                      real *room)
{
    const int64_t rows = ls_attention16_unit(d), down = ls_ceil_div(d->rows, rows);
    for (int64_t u = lo; u < hi; u++) {
        const int64_t i = u % down * rows, head = u / down;
        ls_attend16(d, a, x, head / d->heads, head % d->heads, i, ls_least(rows, d->rows - i),
                    room);
    }
}

/* ---- gradient: as that of ls_attention.h, with `scale` at the end of dq and dk ---- */

/* A thread's packed blocks and tiles; row: two rows of y. */
typedef struct LsBackRoom16 { real *kt, *vt, *k, *qp, *dyp, *q, *dy, *rows, *p, *w, *turned, *row;
} LsBackRoom16;

LS_INLINE LsBackRoom16 ls_back_room16(const LsAttention *d, real *room)
{
    const int64_t scores = LS_ATT16_BACK * (d->block + LS_V);
    LsBackRoom16 b = {.kt = room};
    b.vt = b.kt + LS_ATT16_PANELS(d->block, d->depth);
    b.k = b.vt + LS_ATT16_PANELS(d->block, d->width);
    b.qp = b.k + LS_ATT16_PANELS(d->depth, d->block);
    b.dyp = b.qp + LS_ATT16_PANELS(d->depth, LS_ATT16_BACK);
    b.q = b.dyp + LS_ATT16_PANELS(d->width, LS_ATT16_BACK);
    b.dy = b.q + LS_ATT16_BACK * LS_ATT16_LD(d->depth);
    b.rows = b.dy + LS_ATT16_BACK * LS_ATT16_LD(d->width);
    b.p = b.rows + LS_ATT16_BACK * LS_ATT16_LD(d->block);
    b.w = b.p + scores;
    b.row = b.w + scores;
    b.turned = b.row + 2 * LS_ATT_PACKED(d->width);
    return b;
}

/* The head's rows, and the sums of its results: f32 in place, or to be rounded. */
typedef struct LsBackHead {
    LsSource q, k, v, dy, y;
    real *dq, *dk, *dv;
    int64_t ldq, ldk, ldv;
} LsBackHead;

/* The weights and the gradients of scores of a tile. */
LS_INLINE void ls_tile_back_scores16(const LsScores *t, const LsBackHead *h, const LsBackRoom16 *b)
{
    const LsAttention *d = t->d;
    const real *lse = t->a->lse + (t->sample * d->heads + t->head) * d->rows + t->i;
    real *const dy = b->row, *const y = dy + LS_ATT_PACKED(d->width);
    ls_dot_rows(h->q, t->i, t->m, d->depth, b->q, LS_ATT16_LD(d->depth));
    ls_dot_rows(h->dy, t->i, t->m, d->width, b->dy, LS_ATT16_LD(d->width));
    const uint64_t mode = ls_dots_begin(LS_DOTS);
    ls_scores_multiply16(t, b->p, b->q, LS_ATT16_LD(d->depth), d->depth, b->kt);
    ls_scores_multiply16(t, b->w, b->dy, LS_ATT16_LD(d->width), d->width, b->vt);
    ls_dots_end(LS_DOTS, mode);
    for (int64_t r = 0; r < t->m; r++) {
        real *const p = b->p + r * t->ld;
        ls_take(h->dy, (t->i + r) * h->dy.row, dy, d->width);
        ls_take(h->y, (t->i + r) * h->y.row, y, d->width);
        ls_row_times(p + t->from, d->scale, t->whole - t->from);
        ls_row_back(t, LS_ATT_LANES, r, p, b->w + r * t->ld, lse[r],
                    ls_heads_dot(LS_ATT_LANES, dy, y, d->width));
    }
}

/* to[cols][n] += the transposed tile times rows of a packed q or dy. */
LS_INLINE void ls_tile_turned16(const LsScores *t, LsSource s, const LsBackRoom16 *b,
                                const real *panels, int64_t n, real *to, int64_t ldt)
{
    const int64_t ld = LS_ATT16_LD(LS_ATT16_BACK / 2);
    const LsDotRows a = {true, t->wide - t->from, t->m, b->turned, ld};
    ls_dot_turned_rows(s, b->rows, LS_ATT16_LD(t->d->block), a.m, a.k, b->turned, ld);
    to += (t->j + t->from) * ldt;
    const uint64_t mode = ls_dots_begin(LS_DOTS);
    ls_dot_multiply(a, n, panels, t->m, 0, to, ldt, to, ldt);
    ls_dots_end(LS_DOTS, mode);
}

LS_SHARED_FN void ls_tile_back16(const LsScores *t, const LsBackHead *h, const LsBackRoom16 *b)
{
    const LsAttention *d = t->d;
    const int64_t ld = LS_ATT16_LD(d->block);
    const LsSource p = ls_scores_source(t, b->p), w = ls_scores_source(t, b->w);
    const LsDotRows rows = {false, t->m, ls_scores_terms(t), b->rows, ld};
    real *const dq = h->dq + t->i * h->ldq;
    ls_tile_back_scores16(t, h, b);
    ls_dot_panels(h->q, t->i, t->m, d->depth, b->qp);
    ls_dot_panels(h->dy, t->i, t->m, d->width, b->dyp);
    ls_dot_rows(w, 0, t->m, rows.k, b->rows, ld);
    const uint64_t mode = ls_dots_begin(LS_DOTS);
    ls_dot_multiply(rows, d->depth, b->k, t->n, t->from, dq, h->ldq, dq, h->ldq);
    ls_dots_end(LS_DOTS, mode);
    ls_tile_turned16(t, w, b, b->qp, d->depth, h->dk, h->ldk);
    if (LS_AMX)
        ls_dot_rows(p, 0, t->m, rows.k, b->rows, ld);
    ls_tile_turned16(t, p, b, b->dyp, d->width, h->dv, h->ldv);
}

/* All rows of one head. */
LS_SHARED_FN void ls_head_back16(LsScores *t, const LsBackHead *h, const LsBackRoom16 *b)
{
    const LsAttention *d = t->d;
    ls_zero_rows(h->dq, h->ldq, d->rows, d->depth);
    for (t->j = 0; t->j < d->cols; t->j += d->block) {
        t->n = ls_least(d->block, d->cols - t->j);
        ls_dot_turned_panels(h->k, t->j, t->n, d->depth, b->kt);
        ls_dot_turned_panels(h->v, t->j, t->n, d->width, b->vt);
        ls_dot_panels(h->k, t->j, t->n, d->depth, b->k);
        for (t->i = 0; t->i < d->rows; t->i += LS_ATT16_BACK) {
            t->m = ls_least(LS_ATT16_BACK, d->rows - t->i);
            ls_scores_bound(t, LS_ATT_LANES);
            if (t->wide > 0)
                ls_tile_back16(t, h, b);
        }
    }
}

/* Sums of `rows` rows, n long, that become results: scaled, and rounded where they do not lie in
 * place. */
LS_INLINE void ls_sums_give(const LsAttentionNarrow *x, void *to, int64_t at, int64_t row,
                            int64_t rows, int64_t n, real scale, real *sums, int64_t ld)
{
    for (int64_t r = 0; r < rows; r++, sums += ld, at += row) {
        if (scale != 1)
            ls_row_times(sums, scale, n);
        if (x->to != LS_STORED_REAL)
            ls_give(x->to, to, at, sums, n);
    }
}

/* Where the sums of a result lie: in place from element `at` on, or at *sums, which goes on behind
 * `room` of them. */
LS_INLINE real *ls_sums_at(const LsAttentionNarrow *x, void *to, int64_t at, int64_t room,
                           real **sums)
{
    real *const here = *sums;
    if (x->to == LS_STORED_REAL)
        return (real *)to + at;
    *sums += room;
    return here;
}

/* One k and v, and the heads that share it, one by one. */
LS_SHARED_FN void ls_attend_back16(const LsAttention *d, const LsAttentionArgs *a,
                                   const LsAttentionNarrow *x, int64_t sample, int64_t group,
                                   real *room, real *sums)
{
    const LsBackRoom16 b = ls_back_room16(d, room);
    const bool in_place = x->to == LS_STORED_REAL;
    const int64_t heads = d->heads / d->groups, at_k = ls_heads_at(&d->k, sample, group),
                  at_v = ls_heads_at(&d->v, sample, group);
    LsScores t = {.d = d, .a = a, .sample = sample, .ld = d->block + LS_V};
    LsBackHead h = {.k = ls_head_source(x->k, &d->k, sample, group),
                    .v = ls_head_source(x->v, &d->v, sample, group),
                    .ldq = in_place ? d->q.row : d->depth,
                    .ldk = in_place ? d->k.row : d->depth,
                    .ldv = in_place ? d->v.row : d->width};
    h.dk = ls_sums_at(x, x->dk, at_k, d->cols * d->depth, &sums);
    h.dv = ls_sums_at(x, x->dv, at_v, d->cols * d->width, &sums);
    ls_zero_rows(h.dk, h.ldk, d->cols, d->depth);
    ls_zero_rows(h.dv, h.ldv, d->cols, d->width);
    for (t.head = group * heads; t.head < (group + 1) * heads; t.head++) {
        const int64_t at = ls_heads_at(&d->q, sample, t.head);
        real *room_q = sums;
        h.q = ls_head_source(x->q, &d->q, sample, t.head);
        h.dy = ls_head_source(x->dy, &d->y, sample, t.head);
        h.y = ls_head_source(x->y, &d->y, sample, t.head);
        h.dq = ls_sums_at(x, x->dq, at, 0, &room_q);
        ls_head_back16(&t, &h, &b);
        ls_sums_give(x, x->dq, at, d->q.row, d->rows, d->depth, d->scale, h.dq, h.ldq);
    }
    ls_sums_give(x, x->dk, at_k, d->k.row, d->cols, d->depth, d->scale, h.dk, h.ldk);
    ls_sums_give(x, x->dv, at_v, d->v.row, d->cols, d->width, 1, h.dv, h.ldv);
}

LS_INLINE int64_t ls_attention16_back_units(const LsAttention *d) { return d->batch * d->groups; }

LS_SHARED_FN void ls_attention16_back_some(const LsAttention *d, const LsAttentionArgs *a,
                                           const LsAttentionNarrow *x, int64_t lo, int64_t hi,
                                           real *room, real *sums)
{
    for (int64_t u = lo; u < hi; u++)
        ls_attend_back16(d, a, x, u / d->groups, u % d->groups, room, sums);
}

#endif
