/* runtime/kernels/ls_gemm.h -- matrix product: sources of operands, and a register-blocked
 * micro-kernel.
 *
 * The micro-kernel computes LS_MR x LS_NR results from k columns of A, read in place, and a *panel*
 * of B: LS_NR adjacent columns for each k. Panels are packed beforehand (ls_packing.h). As in Goto
 * & van de Geijn (2008), a panel of about LS_KC rows stays in the L1 cache while the rows of A
 * stream from L2.
 *
 * Every result is a sum over blocks of k of sums over k in ascending order, or in that of
 * ls_dot16.h, with the same blocks in every tile and tail: bits do not depend on the partition of
 * work. */
#ifndef LS_RUNTIME_KERNELS_LS_GEMM_H
#define LS_RUNTIME_KERNELS_LS_GEMM_H

#include "runtime/kernels/ls_depth_blocks.h"
#include "runtime/kernels/ls_dot16.h"
#ifdef LS_UNPACKS               /* some kernel reads codes */
#include "runtime/kernels/ls_unpack_rows.h"
#endif

enum {
    LS_KC = LS_BLOCK_TERMS(sizeof(real)),     /* depth of a block: a panel is then at most 32 KiB */
    LS_L1_ROWS = LS_MR * (LS_MR > 8 ? 2 : 4), /* rows that stay in the L1 cache while panels
                                               * stream */
    LS_LDA = LS_KC + LS_V, /* distance of copied rows: an odd number of vectors, to spread over
                            * cache sets */
    LS_TILE_LD = LS_MR > 8 ? 16 : 8, /* distance in a tile of transposed rows */
    LS_LINE = 64 / sizeof(real),     /* elements of a cache line */
    LS_STRIDE = 4,                   /* columns of A from one prefetch to the next */
};

/* Computes channels c .. c + n of `count` places, `step` apart from `place` on, to rows `ld` apart.
 * run, arg: those of the kernel. */
typedef void LsCompute(const LsRun *run, void *const arg[], int64_t place, int64_t step,
                       int64_t count, int64_t c, int64_t n, real *to, int64_t ld);

/* The source of an operand's elements, a row of channels at each place: memory, or, if `compute` is
 * set, other operands of the kernel. */
typedef struct LsSource {
    const void *at;
    LsCompute *compute;
    const LsRun *run;
    void *const *arg;
    LsStored type;              /* of the elements at `at` ... */
    LsStored round;             /* ... which are rounded to this type as they are read ... */
    int64_t row;                /* ... and their number at a place, unless they are read in place */
    const struct LsPacked *packed;      /* LS_STORED_PACKED: what the codes at `at` are */
} LsSource;

/* The elements are reals that are read as they are, in memory; where they lie. */
LS_INLINE bool ls_is_plain(LsSource s)
{
    return s.type == LS_STORED_REAL && s.round == LS_STORED_REAL;
}
LS_INLINE bool ls_in_place(LsSource s) { return s.compute == NULL && ls_is_plain(s); }
LS_INLINE const real *ls_reals(LsSource s) { return s.at; }

/* Rounds n reals to the type. */
LS_INLINE void ls_round_all(LsStored type, real *to, int64_t n)
{
    for (int64_t i = 0; type == LS_STORED_BF16 && i < n; i++)
        to[i] = ls_round_brain(to[i]);
    for (int64_t i = 0; type == LS_STORED_F16 && i < n; i++)
        to[i] = ls_round_half(to[i]);
}

/* to[i] = element at + i of memory of any type. */
LS_INLINE void ls_take(LsSource s, int64_t at, real *restrict to, int64_t n)
{
    const real *const from = ls_reals(s) + at;
#ifdef LS_UNPACKS
    if (s.type == LS_STORED_PACKED) {
        ls_unpack(s.packed, s.at, at, to, n);
        ls_round_all(s.round, to, n);
        return;
    }
#endif
    if (s.type != LS_STORED_REAL)
        ls_widen(s.type, to, (const ls_bf16 *)s.at + at, n);
    else if (s.round == LS_STORED_BF16)
        LS_INDEPENDENT for (int64_t i = 0; i < n; i++)
            to[i] = ls_round_brain(from[i]);
    else if (s.round == LS_STORED_F16)
        LS_INDEPENDENT for (int64_t i = 0; i < n; i++)
            to[i] = ls_round_half(from[i]);
    else
        memcpy(to, from, (size_t)n * sizeof(real));
}

/* Elements of a source that is not in place, as LsCompute. */
LS_SHARED_FN void ls_source_rows(LsSource s, int64_t place, int64_t step, int64_t count, int64_t c,
                                 int64_t n, real *to, int64_t ld)
{
    if (s.compute != NULL) {
        s.compute(s.run, s.arg, place, step, count, c, n, to, ld);
        return;
    }
    for (int64_t q = 0; q < count; q++, to += ld)
        ls_take(s, (place + q * step) * s.row + c, to, n);
}

/* Element i from the start, and a vector of elements, of memory of any type. */
LS_INLINE real ls_source_at(LsSource s, int64_t i)
{
    real v;
    ls_take(s, i, &v, 1);
    return v;
}
LS_INLINE ls_vec ls_source_load(LsSource s, int64_t i)
{
    real v[LS_V];
    if (ls_is_plain(s))
        return ls_load(ls_reals(s) + i);
    ls_take(s, i, v, LS_V);
    return ls_load(v);
}

/* ---- prefetch ---- */

LS_INLINE void ls_source_prefetch(LsSource s, int64_t at, int64_t n)
{
    const int64_t size = s.type == LS_STORED_REAL ? sizeof(real) : sizeof(ls_bf16);
    if (s.type == LS_STORED_PACKED)
        return;
    const char *from = (const char *)s.at + at * size, *const end = from + n * size;
    for (; from < end; from += LS_LINE * sizeof(real))
        __builtin_prefetch(from);
}

/* `lines` cache lines of each of `rows` rows, to prefetch during other work: a call of the
 * micro-kernel takes a strip of some rows, one line wide, line by line. Prefetching all at once
 * would fill the buffers of the L1 cache and stall. */
typedef struct LsAhead { const real *at; int64_t ld, rows, lines, row, line; } LsAhead;

/* The strips of one call. */
typedef struct LsStrips { const real *at[2]; int64_t ld[2]; } LsStrips;

/* The next strip; when there is none, one line that is already in the cache. */
LS_INLINE void ls_ahead_take(LsAhead *t, int64_t k, const real *else_at, const real **at,
                             int64_t *ld)
{
    bool some = t != NULL && t->row < t->rows;
    *at = some ? t->at + t->row * t->ld + t->line * LS_LINE : else_at;
    *ld = some ? t->ld : 0;
    if (some && ++t->line >= t->lines) {
        t->line = 0;
        t->row += ls_ceil_div(k, LS_STRIDE);
    }
}

/* ---- the micro-kernel ---- */

/* c[rows][nv * LS_V] = init + a * b. a(i, k) is at a[i * lda + k], or, `how` being LS_TURNED_A, at
 * a[k * lda + i]; init has row distance ldi, 0 for a bias shared by all rows. With LS_DOTS in `how`
 * the factors are bfloat16, packed as ls_dot16.h says; k counts packed elements. */
enum { LS_TURNED_A = 1, LS_HOWS = LS_TURNED_A + LS_DOTS + 1 };
#define LS_MICRO_PARAMS int64_t k, const real *restrict a, int64_t lda, const real *restrict b, \
    int64_t ldb, const real *init, int64_t ldi, real *c, int64_t ldc, const LsStrips *next

/* s += column q of A from here times row q of B. Three pointers address the rows of A, five rows
 * each: one pointer for 14 rows, or one for each, needs more address registers than x86 has. */
LS_INLINE void ls_micro_column(const int rows, const int nv, const int how, ls_vec s[LS_MR][2],
                               int64_t q, const real *const p[3], int64_t lda, const real *b)
{
    ls_vec b0 = ls_load(b), b1 = nv == 2 ? ls_load(b + LS_V) : b0;
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) {
        const real *at = how & LS_TURNED_A ? &p[0][q * lda + i] : &p[i / 5][i % 5 * lda + q];
        if (how & LS_WORDS) {
            ls_vec x = ls_splat_word(at);
            s[i][0] = ls_dot(s[i][0], x, b0);
            if (nv == 2)
                s[i][1] = ls_dot(s[i][1], x, b1);
            continue;
        }
        ls_vec x = ls_splat(*at);
        s[i][0] += x * b0;
        if (nv == 2)
            s[i][1] += x * b1;
    }
}

/* A pair of columns, the second first; of a transposed A it is at p[1]. */
LS_INLINE void ls_micro_pair(const int rows, const int nv, const int how, ls_vec s[LS_MR][2],
                             int64_t q, const real *const p[3], int64_t lda, const real *b,
                             int64_t ldb)
{
    const real *const second[3] = {p[1]};
    if (how & LS_TURNED_A)
        ls_micro_column(rows, nv, how, s, 0, second, lda, b + ldb);
    else
        ls_micro_column(rows, nv, how, s, q + 1, p, lda, b + ldb);
    ls_micro_column(rows, nv, how, s, q, p, lda, b);
}

LS_INLINE void ls_micro_body(const int rows, const int nv, const int how, LS_MICRO_PARAMS)
{
    const bool turned = how & LS_TURNED_A, pairs = how & LS_PAIRS;
    const int step = pairs ? 2 : 1;
    ls_vec s[LS_MR][2];
    const real *p[3] = {a, a + (turned ? lda : 5 * lda), a + (turned ? 0 : 10 * lda)};
    const real *line[2] = {next->at[0], next->at[1]};
    real *row = c, *const end = c + rows * ldc;
    /* The compiler must not derive one pointer from another. */
    __asm__("" : "+r"(p[1]), "+r"(p[2]));
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++)
        s[i][0] = s[i][1] = (ls_vec){0};
    for (; k >= LS_STRIDE; k -= LS_STRIDE) {
        if (row < end) {
            __builtin_prefetch(row, 1, 3);
            __builtin_prefetch(row + nv * LS_V - 1, 1, 3);
            row += ldc;
        }
        for (int i = 0; i < 2; i++) {
            __builtin_prefetch(line[i], 0, 2);
            line[i] += next->ld[i];
        }
#pragma GCC unroll 4
        for (int q = 0; q < LS_STRIDE; q += step, b += step * ldb) {
            if (pairs)
                ls_micro_pair(rows, nv, how, s, turned ? 0 : q, p, lda, b, ldb);
            else
                ls_micro_column(rows, nv, how, s, turned ? 0 : q, p, lda, b);
            for (int i = 0; i < step && turned; i++)
                p[i] += step * lda;
        }
        for (int i = 0; i < 3 && !turned; i++)
            p[i] += LS_STRIDE;
    }
    for (int64_t q = k > 1; k > 0 && pairs; k--, q = q == 1 ? 0 : 2)    /* 1, 0, 2 */
        ls_micro_column(rows, nv, how, s, q, p, lda, b + q * ldb);
    for (; k > 0 && !pairs; k--, b += ldb) {
        ls_micro_column(rows, nv, how, s, 0, p, lda, b);
        p[0] += turned ? lda : 1;
        for (int i = 1; i < 3 && !turned; i++)
            p[i]++;
    }
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) {
        ls_store(c + i * ldc, ls_load(init + i * ldi) + s[i][0]);
        if (nv == 2)
            ls_store(c + i * ldc + LS_V, ls_load(init + i * ldi + LS_V) + s[i][1]);
    }
}

/* ---- even and odd terms apart ---- */

/* even, odd += a column of A times a row of B; of words both, else to one of them, which is
 * `even`. */
LS_INLINE void ls_apart_column(const int rows, const int nv, const int how, ls_vec even[][2],
                               ls_vec odd[][2], const real *a, int64_t down, const real *b)
{
#pragma GCC unroll 7
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < nv; j++)
            if (how & LS_WORDS)
                ls_dot_apart(&even[i][j], &odd[i][j], ls_splat_word(a + i * down),
                             ls_load(b + j * LS_V));
            else
                even[i][j] += ls_splat(a[i * down]) * ls_load(b + j * LS_V);
}

/* c = init + a * b for some rows, in the order of tiles (ls_dot16.h): as the micro-kernel. */
LS_INLINE void ls_apart_some(const int rows, const int nv, const int how, int64_t k, const real *a,
                             int64_t lda, const real *b, int64_t ldb, const real *init, int64_t ldi,
                             real *c, int64_t ldc)
{
    const bool turned = how & LS_TURNED_A;
    const int64_t along = turned ? lda : 1, down = turned ? 1 : lda;
    do {
        const int64_t some = ls_least(k, how & LS_WORDS ? LS_APART_DEPTH / 2 : LS_APART_DEPTH);
        ls_vec even[LS_MR / 2][2], odd[LS_MR / 2][2];
        int64_t q = some;
#pragma GCC unroll 7
        for (int i = 0; i < rows; i++)
            even[i][0] = even[i][1] = odd[i][0] = odd[i][1] = (ls_vec){0};
        for (; q >= 2 && !(how & LS_WORDS); q -= 2, a += 2 * along, b += 2 * ldb) {
            ls_apart_column(rows, nv, how, even, odd, a, down, b);
            ls_apart_column(rows, nv, how, odd, even, a + along, down, b + ldb);
        }
        for (; q > 0; q--, a += along, b += ldb)
            ls_apart_column(rows, nv, how, even, odd, a, down, b);
#pragma GCC unroll 7
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < nv; j++)
                ls_store(c + i * ldc + j * LS_V,
                         ls_load(init + i * ldi + j * LS_V) + (even[i][j] + odd[i][j]));
        k -= some;
        init = c;
        ldi = ldc;
    } while (k > 0);
}

/* Half of the micro-kernel's rows at a time: there are twice as many sums. */
LS_INLINE void ls_apart_body(const int rows, const int nv, const int how, LS_MICRO_PARAMS)
{
    enum { SOME = LS_MR / 2 };
    const int64_t down = how & LS_TURNED_A ? 1 : lda;
    (void)next;
#pragma GCC unroll 4
    for (int i = 0; i < rows; i += SOME)
        ls_apart_some(rows - i < SOME ? rows - i : SOME, nv, how, k, a + i * down, lda, b, ldb,
                      init + i * ldi, ldi, c + i * ldc, ldc);
}

#define LS_MICRO(rows, nv, how)                                                                 \
    LS_SHARED_FN void ls_micro_##rows##x##nv##_##how(LS_MICRO_PARAMS)                           \
    {                                                                                           \
        if ((how) & LS_APART)                                                                   \
            ls_apart_body(rows, nv, how, k, a, lda, b, ldb, init, ldi, c, ldc, next);           \
        else                                                                                    \
            ls_micro_body(rows, nv, how, k, a, lda, b, ldb, init, ldi, c, ldc, next);           \
    }
#define LS_MICRO_PAIR(rows, how) {ls_micro_##rows##x1_##how, ls_micro_##rows##x2_##how}
#ifdef LS_DOT16
#define LS_MICROS(rows)                                                                            \
    LS_MICRO(rows, 1, 0)                                                                           \
    LS_MICRO(rows, 2, 0) LS_MICRO(rows, 1, 1) LS_MICRO(rows, 2, 1) LS_MICRO(rows, 1, 2)            \
        LS_MICRO(rows, 2, 2) LS_MICRO(rows, 1, 3) LS_MICRO(rows, 2, 3)
#define LS_MICRO_ROW(rows)                                                                         \
    {                                                                                              \
        LS_MICRO_PAIR(rows, 0), LS_MICRO_PAIR(rows, 1), LS_MICRO_PAIR(rows, 2),                    \
            LS_MICRO_PAIR(rows, 3)                                                                 \
    }
#else
#define LS_MICROS(rows)                                                                            \
    LS_MICRO(rows, 1, 0) LS_MICRO(rows, 2, 0) LS_MICRO(rows, 1, 1) LS_MICRO(rows, 2, 1)
#define LS_MICRO_ROW(rows) {LS_MICRO_PAIR(rows, 0), LS_MICRO_PAIR(rows, 1)}
#endif
#if LS_MR == 14
LS_MICROS(14) LS_MICROS(8)
#else
LS_MICROS(6)
#endif
LS_MICROS(4) LS_MICROS(2) LS_MICROS(1)

typedef void LsMicro(LS_MICRO_PARAMS);
static const struct { int rows; LsMicro *fn[LS_HOWS][2]; } ls_micro[] __attribute__((unused)) = {
#if LS_MR == 14
    {14, LS_MICRO_ROW(14)}, {8, LS_MICRO_ROW(8)},
#else
    {6, LS_MICRO_ROW(6)},
#endif
    {4, LS_MICRO_ROW(4)}, {2, LS_MICRO_ROW(2)}, {1, LS_MICRO_ROW(1)},
};

/* Rows at this distance compete for the same few cache sets of L1: copying them is faster. */
LS_INLINE bool ls_crowded(int64_t ld) { return ld * (int64_t)sizeof(real) % 4096 == 0; }

/* ---- panels ---- */

/* c[m][n] = init + a * panel, n <= LS_NR. Panels are LS_NR wide, or LS_V where n <= LS_V. Outside
 * its n columns c is not written and init not read. `ahead`: two prefetches, each may be NULL. */
LS_SHARED_FN void ls_panel_ahead(int how, int64_t m, int64_t n, int64_t k, const real *a,
                                 int64_t lda, const real *b, int64_t ldb, const real *init,
                                 int64_t ldi, real *c, int64_t ldc, LsAhead *const ahead[2])
{
    int nv = n > LS_V ? 2 : 1;
    const bool turned = how & LS_TURNED_A;
    int kind = LS_MR > 8 && nv == 1 && !turned && ls_crowded(lda);     /* at most 8 rows */
    bool full = n == nv * LS_V;
    if (how & LS_AMX && ls_amx_on()) {
        ls_amx_panel(m, n, &ls_one_tap, k, a, lda, b, ldb, init, ldi, c, ldc);
        return;
    }
    for (int64_t i = 0; i < m; i += ls_micro[kind].rows) {
        while (ls_micro[kind].rows > m - i)
            kind++;
        const real *ai = a + i * (turned ? 1 : lda), *from = init + i * ldi;
        LsMicro *fn = ls_micro[kind].fn[how][nv - 1];
        LsStrips next;
        for (int q = 0; q < 2; q++)
            ls_ahead_take(ahead[q], k, ai, &next.at[q], &next.ld[q]);
        if (full) {
            fn(k, ai, lda, b, ldb, from, ldi, c + i * ldc, ldc, &next);
            continue;
        }
        real t[LS_MR * LS_NR];
        for (int r = 0; r < ls_micro[kind].rows; r++) {
            ls_zero(t + r * LS_NR, LS_NR);
            ls_copy(t + r * LS_NR, from + r * ldi, n);
        }
        fn(k, ai, lda, b, ldb, t, LS_NR, t, LS_NR, &next);
        for (int r = 0; r < ls_micro[kind].rows; r++)
            ls_copy(c + (i + r) * ldc, t + r * LS_NR, n);
    }
}

LS_INLINE void ls_panel(int how, int64_t m, int64_t n, int64_t k, const real *a, int64_t lda,
                        const real *b, int64_t ldb, const real *init, int64_t ldi, real *c,
                        int64_t ldc)
{
    LsAhead *const nothing[2] = {NULL, NULL};
    ls_panel_ahead(how, m, n, k, a, lda, b, ldb, init, ldi, c, ldc, nothing);
}

/* Packs transposed rows a[k][m], m of them, as tiles of LS_MR rows: to[tile][k][LS_TILE_LD]. */
LS_SHARED_FN void ls_tile_turned(real *restrict to, const real *restrict a, int64_t lda, int64_t k,
                                 int64_t m)
{
    int64_t wide = ls_most((m - LS_TILE_LD) / LS_MR + 1, 0) * (m >= LS_TILE_LD);
    for (int64_t q = 0; q < k; q++, a += lda, to += LS_TILE_LD) {
        real *t = to;
        for (int64_t i = 0; i < wide; i++, t += k * LS_TILE_LD)
            ls_copy(t, a + i * LS_MR, LS_TILE_LD);
        for (int64_t i = wide * LS_MR; i < m; i += LS_MR, t += k * LS_TILE_LD)
            ls_copy(t, a + i, ls_least(LS_MR, m - i));
    }
}

/* ls_panel for such tiles; dots: LS_DOTS, or 0. */
LS_INLINE void ls_panel_tiles_ahead(int dots, int64_t m, int64_t n, int64_t k, const real *tiles,
                                    const real *b, int64_t ldb, const real *init, int64_t ldi,
                                    real *c, int64_t ldc, LsAhead *const ahead[2])
{
    for (int64_t i = 0; i < m; i += LS_MR, tiles += k * LS_TILE_LD)
        ls_panel_ahead(LS_TURNED_A | dots, ls_least(LS_MR, m - i), n, k, tiles, LS_TILE_LD, b, ldb,
                       init + i * ldi, ldi, c + i * ldc, ldc, ahead);
}

LS_INLINE void ls_panel_tiles(int dots, int64_t m, int64_t n, int64_t k, const real *tiles,
                              const real *b, int64_t ldb, const real *init, int64_t ldi, real *c,
                              int64_t ldc)
{
    LsAhead *const nothing[2] = {NULL, NULL};
    ls_panel_tiles_ahead(dots, m, n, k, tiles, b, ldb, init, ldi, c, ldc, nothing);
}

/* Initial value of accumulation without a bias. */
static const real ls_no_bias[2 * LS_COLS] __attribute__((unused));

#endif
