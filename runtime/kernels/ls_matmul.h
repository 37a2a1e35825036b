/* runtime/kernels/ls_matmul.h -- the product of two matrices: packing and partition of work.
 *
 * B is packed block by block, LS_ACROSS columns and about LS_KC rows. Groups of rows of A stream
 * over the block. The rows are read in place, unless they would collide in the L1 cache or A is
 * transposed. A thread prefetches the next rows of A and the next block of B while it computes.
 *
 * Units are small, so that there are enough for several threads; a thread with several neighbouring
 * units packs for all of them at once. */
#ifndef LS_RUNTIME_KERNELS_LS_MATMUL_H
#define LS_RUNTIME_KERNELS_LS_MATMUL_H

#include "runtime/kernels/ls_depth_blocks.h"
#include "runtime/kernels/ls_outer_product.h"
#include "runtime/kernels/ls_packing.h"
#include "runtime/kernels/ls_squares.h"

/* c[m][n] = alpha * a * b + bias for each of `batch`; `turn_a`: a is [k][m], `turn_b`: b is [n][k]
 * in memory. */
typedef struct LsMatmul {
    int64_t batch, m, n, k;
    bool turn_a, turn_b;
    real alpha;
    int dot16;          /* LS_DOT16: both factors are bfloat16 (ls_dot16.h), and alpha is 1; else
                         * 0 */
    int64_t of, from;   /* of > 0: terms of a sum, of which these k begin at `from`: they add up in
                         * its blocks, at whose ends they begin and end */
} LsMatmul;

/* bias: one per column, or NULL. start: c before this product is added, or NULL; may be c. b is not
 * computed where it is transposed. */
typedef struct LsMatmulArgs {
    LsSource a, b;
    const real *bias, *start;
    real *c;                    /* element [i0][j0] of the result */
    int64_t i0, j0;
    int64_t ldc;                /* row distance of c; 0: n */
    LsStored to;                /* not LS_STORED_REAL: the whole result, in such elements, is
                                 * `rounded` instead of c */
    void *rounded;
} LsMatmulArgs;

/* A consumer of elements at .. end of c, all in one row, called before other elements overwrite
 * them. arg: the kernel's arguments; soon: matrices like c whose same elements the consumer will
 * read, or NULL. block: 0, or it wants whole blocks of so many elements, at most LS_BLOCK_MOST, of
 * which c's rows are multiples, and gets one at a time. */
typedef struct LsTaken {
    void (*take)(LsRun *run, void *const arg[], int64_t at, int64_t end, real *c);
    LsRun *run;
    void *const *arg;
    const real *soon[2];
    int64_t block;
} LsTaken;

enum {
    LS_DEPTH = LS_BLOCK_AVERAGE(sizeof(real)),  /* average limit of k in a block */
    LS_DEPTH_MOST = LS_DEPTH + LS_LINE,
    LS_ROWS_LD = LS_DEPTH_MOST + LS_V,  /* as LS_LDA */
    LS_ACROSS = 8 * LS_VEC_BYTES,       /* columns of a block */
    LS_BLOCK_MOST = 256,
    LS_TAKEN = LS_ACROSS > LS_BLOCK_MOST ? LS_ACROSS : LS_BLOCK_MOST,   /* of a consumer's tile */
    LS_TURNED = 8 * LS_MR,              /* transposed rows turned into tiles at a time: whole cache
                                         * lines */
    LS_TALL = 1024,                     /* most rows that share a packed B */
};

/* The blocks of the sum over k (ls_depth_blocks.h), or of the whole sum of which it is a part:
 * their number, and the first term of each. */
LS_INLINE int64_t ls_matmul_all_depths(const LsMatmul *d)
{
    return ls_depth_blocks(d->of > 0 ? d->of : d->k, sizeof(real), (d->dot16 & LS_AMX) != 0);
}

LS_INLINE int64_t ls_matmul_all_depth(const LsMatmul *d, int64_t block)
{
    return ls_depth_block(d->of > 0 ? d->of : d->k, ls_matmul_all_depths(d), block,
                          ls_dot_begin(d->dot16 & LS_DOTS, LS_LINE));
}

/* The block of the whole sum that begins with the term `at`. */
LS_INLINE int64_t ls_matmul_block_of(const LsMatmul *d, int64_t at)
{
    return d->of == 0 ? 0
                      : ls_depth_block_of(d->of, ls_matmul_all_depths(d), at,
                                          ls_dot_begin(d->dot16 & LS_DOTS, LS_LINE));
}

/* Those of this product. */
LS_INLINE int64_t ls_matmul_depths(const LsMatmul *d)
{
    return d->of == 0 ? ls_matmul_all_depths(d)
                      : ls_matmul_block_of(d, d->from + d->k) - ls_matmul_block_of(d, d->from);
}

LS_INLINE int64_t ls_matmul_depth(const LsMatmul *d, int64_t block)
{
    return ls_matmul_all_depth(d, ls_matmul_block_of(d, d->from) + block) - d->from;
}

/* Rows of units and of transposed tiles are a multiple of it. */
LS_INLINE int64_t ls_matmul_step(const LsMatmul *d)
{
    return d->dot16 & LS_AMX ? LS_AMX_SIDE : LS_MR;
}

/* Units of one matrix: `across` in each of `down` rows of units. */
typedef struct LsUnits { int64_t rows, cols, down, across; } LsUnits;

LS_SHARED_FN LsUnits ls_matmul_grid(const LsMatmul *d)
{
    enum { MANY = 8, SMALL = 1 << 20 };         /* units; multiplications of one unit */
    int64_t rows = LS_MATMUL_ROWS, cols = LS_MATMUL_COLS;
    for (;;) {
        LsUnits u = {.rows = ls_even_block(d->m, rows, ls_matmul_step(d)),
                     .cols = ls_even_block(d->n, cols, LS_NR)};
        u.down = ls_ceil_div(d->m, u.rows);
        u.across = ls_ceil_div(d->n, u.cols);
        bool low = u.rows <= ls_matmul_step(d), narrow = u.cols <= LS_NR;
        if (d->batch * u.down * u.across >= MANY || u.rows * u.cols * d->k <= SMALL
            || (low && narrow))
            return u;
        if (low || (!narrow && u.cols >= u.rows / 2))
            cols = ls_most(u.cols / 2, LS_NR);
        else
            rows = ls_most(u.rows / 2, ls_matmul_step(d));
    }
}

LS_SHARED_FN int64_t ls_matmul_units(const LsMatmul *d)
{
    LsUnits u = ls_matmul_grid(d);
    return u.down * u.across;
}

/* ---- a block of B ---- */

/* Columns j..j+n of B at depths k0..k0+k. */
typedef struct LsBlock { int64_t j, n, k0, k; bool first; } LsBlock;

LS_INLINE int64_t ls_matmul_ldb(const LsMatmul *d) { return d->turn_b ? d->k : d->n; }

LS_INLINE int64_t ls_block_at(const LsMatmul *d, const LsBlock *s)
{
    return d->turn_b ? s->j * d->k + s->k0 : s->k0 * d->n + s->j;
}

/* Distance of its panels in rows. */
LS_INLINE int64_t ls_block_pitch(const LsMatmul *d, const LsBlock *s)
{
    return d->dot16 & LS_AMX ? ls_dot_depth(LS_DOTS, s->k) : s->k;
}

/* The panels of ls_block_pack from computed rows. */
LS_SHARED_FN void ls_block_compute(const LsMatmul *d, const LsBlock *s, LsSource b, real *to)
{
    for (int64_t j = 0; j < s->n; j += LS_NR) {
        int64_t width = ls_panel_width(s->n - j), n = ls_least(width, s->n - j);
        real *t = to + j * s->k;
        ls_source_rows(b, s->k0, 1, s->k, s->j + j, n, t, width);
        for (int64_t i = 0; i < s->k && (n < width || d->alpha != 1); i++, t += width) {
            ls_zero(t + n, width - n);
            for (int64_t q = 0; q < n; q++)
                t[q] *= d->alpha;
        }
    }
}

/* Packs a block as panels of reals: the panel of column j lies at to + j * k. */
LS_SHARED_FN void ls_block_reals(const LsMatmul *d, const LsBlock *s, LsSource b, real *restrict to)
{
    if (!ls_in_place(b) && !d->turn_b) {
        ls_block_compute(d, s, b, to);
        return;
    }
    const int64_t at = ls_block_at(d, s);
    const real *from = ls_reals(b) + at, scale = d->alpha;
    int64_t whole = d->turn_b ? 0 : s->n / LS_NR * LS_NR, ldb = ls_matmul_ldb(d);
    for (int64_t i = 0; i < s->k && whole > 0; i++)
        for (int64_t j = 0; j < whole; j += LS_NR) {
            real *t = to + j * s->k + i * LS_NR;
            const real *row = from + i * ldb + j;
            ls_store(t, ls_load(row) * scale);
            ls_store(t + LS_V, ls_load(row + LS_V) * scale);
        }
    for (int64_t j = whole; j < s->n; j += LS_NR)
        if (d->turn_b)
            ls_pack_turned_of(to + j * s->k, b, at + j * ldb, ldb, s->k, s->n - j, scale);
        else
            ls_pack_rows(to + j * s->k, from + j, ldb, s->k, s->n - j, scale);
}

/* The panels as the micro-kernel takes them, in the same places. */
LS_INLINE void ls_block_pack(const LsMatmul *d, const LsBlock *s, LsSource b, real *to)
{
    const int64_t pitch = ls_block_pitch(d, s);
    if (d->dot16 & LS_AMX && d->turn_b)
        ls_words_turned_panels(b, ls_block_at(d, s), d->k, s->n, s->k, to, pitch);
    else if (d->dot16 & LS_AMX)
        ls_words_panels(b, s->j, s->n, s->k0, s->k, to, pitch);
    if (d->dot16 & LS_AMX)
        return;
    ls_block_reals(d, s, b, to);
    for (int64_t j = 0; j < s->n && (d->dot16 & LS_WORDS) != 0; j += LS_NR)
        ls_words_down(to + j * s->k, to + j * s->k, s->k, ls_panel_width(s->n - j), LS_WORD_FILL);
}

LS_INLINE LsAhead ls_block_ahead(const LsMatmul *d, const LsBlock *s, LsSource b)
{
    if (s->n <= 0 || !ls_in_place(b))
        return (LsAhead){0};
    return (LsAhead){.at = ls_reals(b) + ls_block_at(d, s),
                     .ld = ls_matmul_ldb(d),
                     .rows = d->turn_b ? s->n : s->k,
                     .lines = ls_ceil_div(d->turn_b ? s->k : s->n, LS_LINE)};
}

/* ---- rows of A over a block ---- */

/* Rows i..i+m of A at the block's depths, `ready` for the micro-kernel: in place or copied. */
typedef struct LsRows { int64_t i, m; const real *ready; int64_t ld; bool tiles; } LsRows;

LS_INLINE const real *ls_rows_at(const LsMatmul *d, int64_t k0, int64_t i, const real *a)
{
    return d->turn_a ? a + k0 * d->m + i : a + i * d->k + k0;
}

LS_INLINE LsRows ls_rows_compute(const LsMatmul *d, const LsBlock *s, LsSource a, int64_t i,
                                 int64_t m, real *room)
{
    if (d->dot16 & LS_AMX) {
        if (d->turn_a)
            ls_words_turned(a, i, m, s->k0, s->k, room, LS_ROWS_LD);
        else
            ls_words_rows(a, i, m, s->k0, s->k, room, LS_ROWS_LD);
        return (LsRows){.i = i, .m = m, .ready = room, .ld = LS_ROWS_LD};
    }
    if (d->turn_a) {
        ls_tile_computed(room, a, s->k0, i, s->k, m);
        ls_tile_words(d->dot16, room, s->k, m);
    } else {
        ls_source_rows(a, i, 1, m, s->k0, s->k, room, LS_ROWS_LD);
        if (d->dot16 & LS_WORDS)
            ls_words_along(room, LS_ROWS_LD, m, s->k);
    }
    return (LsRows){.i = i, .m = m, .ready = room, .ld = LS_ROWS_LD, .tiles = d->turn_a};
}

/* Copies pay when several panels read them. For rows that collide they pay even with one panel,
 * unless it is so narrow that the micro-kernel needs few rows. */
LS_INLINE LsRows ls_rows_take(const LsMatmul *d, const LsBlock *s, LsSource a, int64_t i,
                              int64_t m, real *room)
{
    if (!ls_in_place(a))
        return ls_rows_compute(d, s, a, i, m, room);
    int64_t ld = d->turn_a ? d->m : d->k;
    LsRows r = {.i = i, .m = m, .ready = ls_rows_at(d, s->k0, i, a.at), .ld = ld};
    if (d->turn_a ? s->n <= LS_NR : s->n <= LS_V || !ls_crowded(ld))
        return r;
    if (d->turn_a)
        ls_tile_turned(room, r.ready, ld, s->k, m);
    for (int64_t q = 0; q < m && !d->turn_a; q++)
        ls_copy(room + q * LS_ROWS_LD, r.ready + q * ld, s->k);
    r.tiles = d->turn_a;
    r.ready = room;
    r.ld = LS_ROWS_LD;
    return r;
}

LS_INLINE LsAhead ls_rows_ahead(const LsMatmul *d, const LsBlock *s, LsSource a, int64_t i,
                                int64_t m)
{
    if (m <= 0 || !ls_in_place(a))
        return (LsAhead){0};
    return (LsAhead){.at = ls_rows_at(d, s->k0, i, a.at),
                     .ld = d->turn_a ? d->m : d->k,
                     .rows = d->turn_a ? s->k : m,
                     .lines = ls_ceil_div(d->turn_a ? m : s->k, LS_LINE)};
}

/* Multiplies these rows by all panels of a block. */
LS_INLINE void ls_rows_multiply(const LsMatmul *d, const LsBlock *s, const LsMatmulArgs *arg,
                                const LsRows *r, const real *panels, LsAhead *const ahead[2])
{
    const int dots = d->dot16 & LS_DOTS,
              how = d->turn_a && !(dots & LS_AMX) ? LS_TURNED_A | dots : dots;
    const int64_t k = ls_dot_depth(dots, s->k), pitch = ls_block_pitch(d, s);
    const uint64_t mode = ls_dots_begin(dots);
    for (int64_t j = 0; j < s->n; j += LS_NR) {
        int64_t n = ls_least(LS_NR, s->n - j), width = ls_panel_width(s->n - j);
        int64_t ldc = arg->ldc > 0 ? arg->ldc : d->n,
                ldi = !s->first ? ldc : arg->start != NULL ? d->n : 0;
        const real *b = panels + j * pitch;
        real *c = arg->c + (r->i - arg->i0) * ldc + s->j + j - arg->j0;
        const real *init = !s->first             ? c
                           : arg->start != NULL ? arg->start + r->i * d->n + s->j + j
                           : arg->bias != NULL  ? arg->bias + s->j + j
                                                : ls_no_bias;
        if (r->tiles)
            ls_panel_tiles_ahead(dots, r->m, n, k, r->ready, b, width, init, ldi, c, ldc, ahead);
        else
            ls_panel_ahead(how, r->m, n, k, r->ready, r->ld, b, width, init, ldi, c, ldc, ahead);
    }
    ls_dots_end(dots, mode);
}

LS_SHARED_FN void ls_block_multiply(const LsMatmul *d, const LsBlock *s, const LsMatmulArgs *arg,
                                    int64_t i0, int64_t m, const real *panels, LsAhead *b_ahead)
{
    enum {
        TILES = LS_DEPTH_MOST * 8 * LS_TILE_LD,
        TALL = LS_AMX ? LS_AMX_ROWS : LS_L1_ROWS,
        ROWS = TALL * LS_ROWS_LD
    };
    _Alignas(64) real room[TILES > ROWS ? TILES : ROWS];
    int64_t step = d->dot16 & LS_AMX ? LS_AMX_ROWS : d->turn_a ? LS_TURNED : LS_L1_ROWS;
    for (int64_t i = i0; i < i0 + m; i += step) {
        int64_t end = ls_least(i + step, i0 + m), next = ls_least(end + step, i0 + m);
        LsRows r = ls_rows_take(d, s, arg->a, i, end - i, room);
        LsAhead a_ahead = ls_rows_ahead(d, s, arg->a, end, next - end);
        ls_rows_multiply(d, s, arg, &r, panels, (LsAhead *const[2]){&a_ahead, b_ahead});
    }
}

/* ---- units ---- */

/* The block after s in columns j0..j0+n: first deeper, then further right; n = 0: none. */
LS_INLINE LsBlock ls_block_next(const LsMatmul *d, LsBlock s, int64_t *depth, int64_t cols,
                                int64_t end)
{
    if (++*depth >= ls_matmul_depths(d)) {
        *depth = 0;
        s.j += cols;
        s.n = ls_most(ls_least(cols, end - s.j), 0);
    }
    s.k0 = ls_matmul_depth(d, *depth);
    s.k = ls_matmul_depth(d, *depth + 1) - s.k0;
    s.first = *depth == 0;
    return s;
}

/* Rows i..i+m and columns j..j+n of c. */
LS_SHARED_FN void ls_matmul_part(const LsMatmul *d, const LsMatmulArgs *arg, int64_t i, int64_t m,
                                 int64_t j, int64_t n)
{
    _Alignas(64) real panels[LS_DEPTH_MOST * LS_ACROSS];
    int64_t cols = ls_even_block(n, LS_ACROSS, LS_NR), depth = -1;
    LsBlock s = ls_block_next(d, (LsBlock){.j = j, .n = ls_least(cols, n)}, &depth, cols, j + n);
    while (s.n > 0) {
        LsBlock next = ls_block_next(d, s, &depth, cols, j + n);
        LsAhead ahead = ls_block_ahead(d, &next, arg->b);
        ls_block_pack(d, &s, arg->b, panels);
        ls_block_multiply(d, &s, arg, i, m, panels, &ahead);
        s = next;
    }
}

/* Computes a tile of c from packed B; meanwhile prefetches what the consumer will read. */
LS_SHARED_FN void ls_matmul_tile(const LsMatmul *d, const LsBlock *s, const LsMatmulArgs *arg,
                                 int64_t m, const real *panels, const real *const soon[2])
{
    LsAhead ahead[2] = {{0}};
    for (int k = 0; k < 2 && soon[k] != NULL; k++)
        ahead[k] = (LsAhead){.at = soon[k] + arg->i0 * d->n + s->j,
                             .ld = d->n,
                             .rows = m,
                             .lines = ls_ceil_div(s->n, LS_LINE)};
    if (d->turn_a && !(d->dot16 & LS_AMX)) {
        _Alignas(64) real room[LS_DEPTH_MOST * 8 * LS_TILE_LD];
        LsRows r = ls_rows_take(d, s, arg->a, arg->i0, m, room);
        ls_rows_multiply(d, s, arg, &r, panels, (LsAhead *const[2]){&ahead[0], &ahead[1]});
    } else {
        ls_block_multiply(d, s, arg, arg->i0, m, panels, &ahead[0]);
    }
}

/* Computes rows i..i+m and columns j..j+n of c, tile by tile; the consumer takes each tile and none
 * is stored. B is packed once for all rows where k is one block. */
LS_SHARED_FN void ls_matmul_taken_part(const LsMatmul *d, const LsMatmulArgs *arg, int64_t i,
                                       int64_t m, int64_t j, int64_t n, const LsTaken *by)
{
    _Alignas(64) real tile[LS_TURNED * LS_TAKEN], panels[LS_DEPTH_MOST * LS_TAKEN];
    const bool once = ls_matmul_depths(d) == 1;
    LsMatmulArgs mine = *arg;
    mine.c = tile;
    mine.ldc = by->block > 0 ? by->block : ls_even_block(n, LS_ACROSS, LS_NR);
    for (mine.j0 = j; mine.j0 < j + n; mine.j0 += mine.ldc) {
        const LsBlock s = {mine.j0, ls_least(mine.ldc, j + n - mine.j0), 0, d->k, true};
        if (once)
            ls_block_pack(d, &s, arg->b, panels);
        for (mine.i0 = i; mine.i0 < i + m; mine.i0 += LS_TURNED) {
            int64_t rows = ls_least(LS_TURNED, i + m - mine.i0);
            if (once)
                ls_matmul_tile(d, &s, &mine, rows, panels, by->soon);
            else
                ls_matmul_part(d, &mine, mine.i0, rows, s.j, s.n);
            for (int64_t r = 0; r < rows; r++) {
                int64_t at = (mine.i0 + r) * d->n + s.j;
                by->take(by->run, by->arg, at, at + s.n, tile + r * mine.ldc);
            }
        }
    }
}

/* Rows i..i+m and columns j..j+n of c. */
typedef struct LsRectangle { int64_t i, m, j, n; } LsRectangle;

/* The leading units of *lo..hi that can be computed together; *lo advances behind them. */
LS_INLINE LsRectangle ls_units_take(const LsMatmul *d, const LsUnits *u, int64_t *lo, int64_t hi)
{
    int64_t i = *lo / u->across * u->rows, col = *lo % u->across, j = col * u->cols;
    int64_t across = ls_least(u->across - col, hi - *lo), down = 1;
    if (across == u->across)
        down = ls_least((hi - *lo) / across, ls_most(LS_TALL / u->rows, 1));
    *lo += down * across;
    return (LsRectangle){i, ls_least(down * u->rows, d->m - i), j,
                         ls_least(across * u->cols, d->n - j)};
}

/* Rows of a result in 16 bits: computed some at a time, so that B is packed again only for so
 * many. */
LS_SHARED_FN void ls_matmul_rounded_part(const LsMatmul *d, const LsMatmulArgs *arg, int64_t i,
                                         int64_t m, int64_t j, int64_t n)
{
    enum { ROWS = 5 * LS_TURNED };
    _Alignas(64) real tile[ROWS * LS_ACROSS];
    LsMatmulArgs mine = *arg;
    mine.c = tile;
    mine.ldc = ls_even_block(n, LS_ACROSS, LS_NR);
    for (mine.j0 = j; mine.j0 < j + n; mine.j0 += mine.ldc)
        for (mine.i0 = i; mine.i0 < i + m; mine.i0 += ROWS) {
            int64_t rows = ls_least(ROWS, i + m - mine.i0),
                    cols = ls_least(mine.ldc, j + n - mine.j0);
            ls_matmul_part(d, &mine, mine.i0, rows, mine.j0, cols);
            for (int64_t r = 0; r < rows; r++)
                ls_give(arg->to, arg->rounded, (mine.i0 + r) * d->n + mine.j0, tile + r * mine.ldc,
                        cols);
        }
}

/* Units lo..hi of one matrix. */
LS_SHARED_FN void ls_matmul_some(const LsMatmul *d, const LsMatmulArgs *arg, int64_t lo, int64_t hi)
{
    const LsUnits u = ls_matmul_grid(d);
    while (lo < hi) {
        LsRectangle r = ls_units_take(d, &u, &lo, hi);
        if (arg->to == LS_STORED_REAL)
            ls_matmul_part(d, arg, r.i, r.m, r.j, r.n);
        else
            ls_matmul_rounded_part(d, arg, r.i, r.m, r.j, r.n);
    }
}

/* Units of a consumer that wants blocks (0: any elements) have whole ones. */
LS_SHARED_FN LsUnits ls_taken_grid(const LsMatmul *d, int64_t block)
{
    LsUnits u = ls_matmul_grid(d);
    if (block > 0) {
        u.cols = ls_ceil_div(u.cols, block) * block;
        u.across = ls_ceil_div(d->n, u.cols);
    }
    return u;
}

LS_SHARED_FN int64_t ls_taken_units(const LsMatmul *d, int64_t block)
{
    const LsUnits u = ls_taken_grid(d, block);
    return u.down * u.across;
}

/* Units lo..hi of one matrix, whose elements go to a consumer and are not stored. */
LS_SHARED_FN void ls_matmul_taken(const LsMatmul *d, const LsMatmulArgs *arg, int64_t lo,
                                  int64_t hi, const LsTaken *by)
{
    const LsUnits u = ls_taken_grid(d, by->block);
    while (lo < hi) {
        LsRectangle r = ls_units_take(d, &u, &lo, hi);
        ls_matmul_taken_part(d, arg, r.i, r.m, r.j, r.n, by);
    }
}

LS_INLINE void ls_matmul_square(LsRun *run, void *const arg[], int64_t at, int64_t end, real *c)
{
    (void)run;
    ls_squares_add(arg[0], c, end - at);
}

/* The sum of squares of rows i..i+m of c, of which none is stored. */
LS_SHARED_FN real ls_matmul_squares(const LsMatmul *d, const LsMatmulArgs *arg, int64_t i,
                                    int64_t m)
{
    LsSquares s = {{0}, 0, 0};
    void *const to[] = {&s};
    const LsTaken by = {.take = ls_matmul_square, .arg = to};
    ls_matmul_taken_part(d, arg, i, m, 0, d->n, &by);
    return ls_squares_end(&s);
}

#endif
