/* codegen/cuda/attention_cores.c -- attention and its gradient with products on tensor cores, which
 * round their factors to TF32 (runtime/cuda_kernels/ls_cuda_mma.h). Operands of 16 bits are factors
 * as they are, and weights are rounded to their type (ls_cuda_mma16.h).
 *
 * A warp holds 16 rows of q (or of k) and their accumulators in registers. All warps of the block
 * loop over tiles of the other matrix in shared memory. Scores never leave the registers: the
 * accumulator of one product becomes a factor of the next. This is FlashAttention-2 (Dao, 2023),
 * except that the gradient has two parts. Each recomputes the scores, so no two blocks write the
 * same element, and the order of blocks does not matter.
 *
 * In the text, e counts a thread's scores, h its two rows, and r is a row of the tile that logs and
 * dots are kept for. */
#include "codegen/cuda/attention_cores.h"

#include "codegen/cuda/attention_back.h"
#include "runtime/cuda_kernels/ls_cuda_sizes.h"

#include <inttypes.h>

/* Fragments of so many columns: of a sum, and of a factor. */
static int sums(const LsAttText *t, int64_t columns)
{
    return t->half ? 2 * (int)ls_ceil_div(columns, 16) : (int)ls_ceil_div(columns, 8);
}
static int pieces(const LsAttText *t, int64_t columns)
{
    return t->half ? sums(t, columns) / 2 : sums(t, columns);
}

/* The functions' word. */
static const char *word(const LsAttText *t) { return t->half ? "ls_mma16" : "ls_mma"; }

/* Declares a tile of `pass` rows in shared memory. */
static void tile_array(const LsAttText *t, const char *name, int64_t columns)
{
    const int n = pieces(t, columns);
    ls_att_local(t, t->half ? ls_att_type(t) : "real", name,
                 t->pass * (t->half ? LS_TILE16_ROW(n) : LS_TILE_ROW(n)));
}

static void load_tile(const LsAttText *t, const char *tile, const char *from, int64_t row,
                      const char *have, int64_t columns)
{
    ls_emit_line(t->e, "%s_tile(%s, %s, %" PRId64 ", %s, %d, %" PRId64 ", %d);", word(t), tile,
                 from, row, have, t->pass, columns, pieces(t, columns));
}

/* Loads the warp's rows as a factor; one of 16 bits is not scaled, as that would round it. */
static void load_rows(const LsAttText *t, const char *to, const char *from, int64_t row,
                      const char *have, int64_t columns, bool scaled)
{
    const char *by = scaled ? t->scale : "LS_R(1)";
    ls_emit_line(t->e, "%s %s[%d];", t->half ? "uint32_t" : "real", to,
                 LS_MMA_NUMBERS(pieces(t, columns)));
    ls_emit_line(t->e, "%s_rows(%s, %s, %" PRId64 ", %s, %" PRId64 ", %d%s);", word(t), to, from,
                 row, have, columns, pieces(t, columns),
                 t->half ? "" : ls_arena_printf(t->k->g->arena, ", %s", by));
}

/* Declares the warp's rows as an accumulator that starts at 0. */
static void sum_of(const LsAttText *t, const char *name, int64_t columns)
{
    ls_emit_line(t->e, "real %s[%d] = {0};", name, LS_MMA_NUMBERS(sums(t, columns)));
}

static void put(const LsAttText *t, const char *to, int64_t row, const char *have, int64_t columns,
                const char *sum)
{
    ls_emit_line(t->e, "ls_mma_put(%s, %" PRId64 ", %s, %" PRId64 ", %s, %d);", to, row, have,
                 columns, sum, sums(t, columns));
}

/* name = the products of the warp's rows and the tile's rows. */
static void multiply(const LsAttText *t, const char *name, const char *rows, const char *tile,
                     int64_t depth)
{
    sum_of(t, name, t->pass);
    ls_emit_line(t->e, "%s_by_rows(%s, %s, %s, %d, %d);", word(t), name, rows, tile,
                 pieces(t, depth), sums(t, t->pass));
}

/* sum += weights times the tile. */
static void accumulate(const LsAttText *t, const char *sum, const char *weights, const char *tile,
                       int64_t columns)
{
    ls_emit_line(t->e, "%s_by_columns(%s, %s, %s, %d, %d);", word(t), sum, weights, tile,
                 pieces(t, columns), sums(t, t->pass));
}

static void each(const LsAttText *t, const char *name, int n)
{
    ls_emit_line(t->e, "LS_UNROLL for (int %s = 0; %s < %d; %s++) {", name, name, n, name);
}

/* s = the scaled scores of the warp's rows, whose factor was loaded as scaled. */
static void multiply_scores(const LsAttText *t, const char *rows, const char *tile)
{
    multiply(t, "s", rows, tile, t->s.depth);
    if (!t->half)
        return;
    each(t, "e", LS_MMA_NUMBERS(sums(t, t->pass)));
    ls_emit_line(t->e, "s[e] *= %s;", t->scale);
    ls_emit_line(t->e, "}");
}

/* Opens a block for tiles with scores that do not count; with a mask, any tile may have some. Rows
 * beyond the end (of q or, for `keys`, of k) get scores like others: nothing reads their
 * results. */
static void if_not_whole(const LsAttText *t, bool keys)
{
    const int down = keys ? t->tile : t->pass;
    const char *diagonal = ls_arena_printf(t->k->g->arena, " || j0 + %d > i0 + %" PRId64, down - 1,
                                           t->at->past);
    if (ls_is(t->mask))
        ls_emit_line(t->e, "{");
    else
        ls_emit_line(t->e, "if (%s + %d > %" PRId64 "%s) {", keys ? "i0" : "j0", t->pass,
                     keys ? t->s.rows : t->s.cols, t->at->causal ? diagonal : "");
}

/* Masks the scores s. In the gradient, where q and k do not move a score, dp becomes dy y, so that
 * p (dp - dy y) is 0. */
static void mask_scores(const LsAttText *t, bool keys)
{
    const bool still = t->grad && ls_is(t->mask);
    if_not_whole(t, keys);
    each(t, "e", LS_MMA_NUMBERS(sums(t, t->pass)));
    ls_emit_line(t->e, "const int64_t i = i0 + ls_mma_%s(e), j = j0 + ls_mma_%s(e);",
                 keys ? "column" : "row", keys ? "row" : "column");
    ls_emit_line(t->e, "real score = s[e];");
    ls_att_mask_score(t, still);
    ls_emit_line(t->e, "s[e] = seen ? score : -INFINITY;");
    if (still)
        ls_emit_line(t->e, "dp[e] = moves ? dp[e] : dots[i - i0];");
    ls_emit_line(t->e, "}");
    ls_emit_line(t->e, "}");
}

/* Turns scores into weights; updates each row's maximum and the lane's share of its sum, and
 * rescales y. */
static void weigh(const LsAttText *t)
{
    LsEmit *e = t->e;
    each(t, "h", 2);
    ls_emit_line(e, "real now = top[h], more = 0;");
    each(t, "e", LS_MMA_NUMBERS(sums(t, t->pass)));
    ls_emit_line(e, "now = e / 2 %% 2 == h ? ls_max_real(now, s[e]) : now;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "now = ls_mma_max(now);");
    ls_emit_line(e, "const real shift = now == -INFINITY ? 0 : now;");
    ls_emit_line(e, "const real by = ls_mma_exp(top[h] - shift);");
    each(t, "e", LS_MMA_NUMBERS(sums(t, t->pass)));
    ls_emit_line(e, "if (e / 2 %% 2 == h) {");
    ls_emit_line(e, "s[e] = ls_mma_exp(s[e] - shift);");
    ls_emit_line(e, "more += s[e];");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    each(t, "e", LS_MMA_NUMBERS(sums(t, t->s.width)));
    ls_emit_line(e, "z[e] = e / 2 %% 2 == h ? z[e] * by : z[e];");
    ls_emit_line(e, "}");
    ls_emit_line(e, "sums[h] = sums[h] * by + more;");
    ls_emit_line(e, "top[h] = now;");
    ls_emit_line(e, "}");
}

static void finish(const LsAttText *t)
{
    LsEmit *e = t->e;
    each(t, "h", 2);
    ls_emit_line(e, "const int64_t r = ls_mma_row(2 * h);");
    ls_emit_line(e, "const real sum = ls_mma_sum(sums[h]), part = sum == 0 ? 0 : 1 / sum;");
    each(t, "e", LS_MMA_NUMBERS(sums(t, t->s.width)));
    ls_emit_line(e, "z[e] = e / 2 %% 2 == h ? z[e] * part : z[e];");
    ls_emit_line(e, "}");
    ls_emit_line(e, "if (r < have && ls_mma_column(0) == 0) {");
    ls_emit_line(e,
                 "lse[(sample * " LS_N64 " + head) * " LS_N64
                 " + i0 + r] = sum == 0 ? 0 : top[h] + ls_log(sum);",
                 t->s.heads, t->s.rows);
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

static void declare(const LsAttText *t)
{
    ls_emit_result(t->k, "y", 0);
    ls_emit_result(t->k, "lse", 1);
    tile_array(t, "ks", t->s.depth);
    tile_array(t, "vs", t->s.width);
}

static void begin(const LsAttText *t)
{
    load_rows(t, "qs", "qh", ls_att_row(t, LS_ATT_Q), "have", t->s.depth, true);
    sum_of(t, "z", t->s.width);
    ls_emit_line(t->e, "real top[2] = {-INFINITY, -INFINITY}, sums[2] = {0, 0};");
}

/* Loads tiles of k and v, and computes the scores of the warp's rows. */
static void load_keys(const LsAttText *t)
{
    load_tile(t, "ks", "kh", ls_att_row(t, LS_ATT_K), "n", t->s.depth);
    load_tile(t, "vs", "vh", ls_att_row(t, LS_ATT_V), "n", t->s.width);
    ls_emit_line(t->e, "LS_SYNC;");
    multiply_scores(t, "qs", "ks");
}

static void tile(const LsAttText *t)
{
    load_keys(t);
    mask_scores(t, false);
    weigh(t);
    accumulate(t, "z", "s", "vs", t->s.width);
}

static void end(const LsAttText *t)
{
    finish(t);
    put(t, "yh", ls_att_row(t, LS_ATT_Y), "have", t->s.width, "z");
}

const LsAttPass ls_att_forward_cores = {declare, begin, tile, end};

/* ---- the gradient ---- */
/* Turns scores s and dy vT (dp) into w = scale p (dy vT - dy y), in s. For `keys`, whose rows are
 * those of k, p goes to s and w to dp. */
static void back_scores(const LsAttText *t, bool keys)
{
    LsEmit *e = t->e;
    mask_scores(t, keys);
    each(t, "e", LS_MMA_NUMBERS(sums(t, t->pass)));
    ls_emit_line(e, "const int64_t r = ls_mma_%s(e);", keys ? "column" : "row");
    ls_emit_line(e, "const real part = ls_mma_exp(s[e] - logs[r]);");
    ls_emit_line(e, "const real w = part * (dp[e] - dots[r]) * %s;", t->scale);
    ls_emit_line(e, keys ? "s[e] = part;" : "s[e] = w;");
    if (keys)
        ls_emit_line(e, "dp[e] = w;");
    ls_emit_line(e, "}");
}

static void declare_rows(const LsAttText *t)
{
    ls_emit_operand(t->k, "y", 1);
    ls_att_gradient(t, "dq", LS_ATT_Q);
    ls_att_stat_arrays(t, t->tile);
    tile_array(t, "ks", t->s.depth);
    tile_array(t, "vs", t->s.width);
}

static void begin_rows(const LsAttText *t)
{
    int64_t y_row = ls_att_row(t, LS_ATT_Y);
    ls_att_load_stats(t, y_row);
    load_rows(t, "qs", "qh", ls_att_row(t, LS_ATT_Q), "have", t->s.depth, true);
    load_rows(t, "dys", "dyh", y_row, "have", t->s.width, false);
    sum_of(t, "z", t->s.depth);
}

static void rows_tile(const LsAttText *t)
{
    load_keys(t);
    multiply(t, "dp", "dys", "vs", t->s.width);
    back_scores(t, false);
    accumulate(t, "z", "s", "ks", t->s.depth);
}

static void end_rows(const LsAttText *t)
{
    put(t, "dqh", ls_att_row(t, LS_ATT_Q), "have", t->s.depth, "z");
}

static void declare_keys(const LsAttText *t)
{
    ls_att_stat_arrays(t, t->pass);
    tile_array(t, "qs", t->s.depth);
    tile_array(t, "dys", t->s.width);
}

static void begin_keys(const LsAttText *t)
{
    load_rows(t, "ks", "kh", ls_att_row(t, LS_ATT_K), "n", t->s.depth, true);
    load_rows(t, "vs", "vh", ls_att_row(t, LS_ATT_V), "n", t->s.width, false);
    sum_of(t, "dks", t->s.depth);
    sum_of(t, "dvs", t->s.width);
}

/* One tile of rows of q against the block's rows of k. */
static void keys_tile(const LsAttText *t)
{
    LsEmit *e = t->e;
    const LsAttentionSize *s = &t->s;
    load_tile(t, "qs", "qh", ls_att_row(t, LS_ATT_Q), "have", s->depth);
    load_tile(t, "dys", "dyh", ls_att_row(t, LS_ATT_Y), "have", s->width);
    ls_emit_line(e, "LS_ROWS(first, 0, 1) {");
    ls_emit_line(e, "LS_LANES(r, 0, " LS_BOUND ") {", t->pass);
    ls_att_place_of_row(t);
    ls_emit_line(e, "logs[r] = r < have ? lse[at] : 0;");
    ls_emit_line(e, "dots[r] = r < have ? row_dots[at] : 0;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_line(e, "LS_SYNC;");
    multiply_scores(t, "ks", "qs");
    multiply(t, "dp", "vs", "dys", s->width);
    back_scores(t, true);
    accumulate(t, "dvs", "s", "dys", s->width);
    accumulate(t, "dks", "dp", "qs", s->depth);
}

static void end_keys(const LsAttText *t)
{
    put(t, "dkh", ls_att_row(t, LS_ATT_K), "n", t->s.depth, "dks");
    put(t, "dvh", ls_att_row(t, LS_ATT_V), "n", t->s.width, "dvs");
}

const LsAttPass ls_att_rows_cores = {declare_rows, begin_rows, rows_tile, end_rows};
const LsAttPass ls_att_keys_cores = {declare_keys, begin_keys, keys_tile, end_keys};
