/* codegen/cuda/attention_cores.c -- attention and its gradient with products on tensor cores, which
 * round their factors to TF32 (runtime/cuda_kernels/ls_cuda_mma.h).
 *
 * A warp has 16 rows of q, or of k, in registers, with all that it sums up for them; tiles of the
 * other pass by in shared memory, for all warps of the block. Scores never leave the registers: as
 * a sum they are what the next product's factor is made of. As in FlashAttention-2 (Dao, 2023), but
 * for the gradient's two parts, each of which makes the scores anew, so that each block writes what
 * no other does and nothing depends on which is first.
 *
 * In the text, e counts a thread's elements of scores, h its two rows, r is a row of the tile whose
 * logarithms and dots are there. */
#include "codegen/cuda/attention_text.h"
#include "runtime/cuda_kernels/ls_cuda_sizes.h"

#include <inttypes.h>

static int pieces(int64_t columns) { return (int)ls_ceil_div(columns, 8); }

/* A tile of `pass` rows in shared memory. */
static void tile_array(const LsAttText *t, const char *name, int64_t columns)
{
    ls_att_local(t, "real", name, t->pass * LS_TILE_ROW(pieces(columns)));
}

static void load_tile(const LsAttText *t, const char *tile, const char *from, int64_t row,
                      const char *have, int64_t columns)
{
    ls_emit_line(t->e, "ls_mma_tile(%s, %s, %" PRId64 ", %s, %d, %" PRId64 ", %d);", tile, from,
                 row, have, t->pass, columns, pieces(columns));
}

/* The warp's rows as a factor. */
static void load_rows(const LsAttText *t, const char *to, const char *from, int64_t row,
                      const char *have, int64_t columns, bool scaled)
{
    ls_emit_line(t->e, "real %s[%d];", to, LS_MMA_NUMBERS(pieces(columns)));
    ls_emit_line(t->e, "ls_mma_rows(%s, %s, %" PRId64 ", %s, %" PRId64 ", %d, %s);", to, from, row,
                 have, columns, pieces(columns), scaled ? t->scale : "LS_R(1)");
}

/* The warp's rows as a sum, which begins at 0. */
static void sum_of(const LsAttText *t, const char *name, int64_t columns)
{
    ls_emit_line(t->e, "real %s[%d] = {0};", name, LS_MMA_NUMBERS(pieces(columns)));
}

static void put(const LsAttText *t, const char *to, int64_t row, const char *have, int64_t columns,
                const char *sum)
{
    ls_emit_line(t->e, "ls_mma_put(%s, %" PRId64 ", %s, %" PRId64 ", %s, %d);", to, row, have,
                 columns, sum, pieces(columns));
}

/* name: of the warp's rows and those of a tile, the products. */
static void multiply(const LsAttText *t, const char *name, const char *rows, const char *tile,
                     int64_t depth)
{
    sum_of(t, name, t->pass);
    ls_emit_line(t->e, "ls_mma_by_rows(%s, %s, %s, %d, %d);", name, rows, tile, pieces(depth),
                 pieces(t->pass));
}

/* sum += weights times the tile. */
static void accumulate(const LsAttText *t, const char *sum, const char *weights, const char *tile,
                       int64_t columns)
{
    ls_emit_line(t->e, "ls_mma_by_columns(%s, %s, %s, %d, %d);", sum, weights, tile,
                 pieces(columns), pieces(t->pass));
}

static void each(const LsAttText *t, const char *name, int n)
{
    ls_emit_line(t->e, "LS_UNROLL for (int %s = 0; %s < %d; %s++) {", name, name, n, name);
}

/* Opens a block for tiles with scores that do not count; with a mask, any tile may have some. Rows
 * that are not there have scores like others, as nothing reads what becomes of them: those of q or,
 * for `keys`, of k. */
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

/* The scores s, masked; of the gradient, dp where a score does not move is as if the weight times
 * its distance from dy y were 0. */
static void mask_scores(const LsAttText *t, bool keys)
{
    const bool still = t->grad && ls_is(t->mask);
    if_not_whole(t, keys);
    each(t, "e", LS_MMA_NUMBERS(pieces(t->pass)));
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

/* Scores to weights; what became of the maximum and the lane's share of the sum of each row, and so
 * of y. */
static void weigh(const LsAttText *t)
{
    LsEmit *e = t->e;
    each(t, "h", 2);
    ls_emit_line(e, "real now = top[h], more = 0;");
    each(t, "e", LS_MMA_NUMBERS(pieces(t->pass)));
    ls_emit_line(e, "now = e / 2 %% 2 == h ? ls_max_real(now, s[e]) : now;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "now = ls_mma_max(now);");
    ls_emit_line(e, "const real shift = now == -INFINITY ? 0 : now;");
    ls_emit_line(e, "const real by = ls_mma_exp(top[h] - shift);");
    each(t, "e", LS_MMA_NUMBERS(pieces(t->pass)));
    ls_emit_line(e, "if (e / 2 %% 2 == h) {");
    ls_emit_line(e, "s[e] = ls_mma_exp(s[e] - shift);");
    ls_emit_line(e, "more += s[e];");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    each(t, "e", LS_MMA_NUMBERS(pieces(t->s.width)));
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
    each(t, "e", LS_MMA_NUMBERS(pieces(t->s.width)));
    ls_emit_line(e, "z[e] = e / 2 %% 2 == h ? z[e] * part : z[e];");
    ls_emit_line(e, "}");
    ls_emit_line(e, "if (r < have && ls_mma_column(0) == 0) {");
    ls_emit_line(e,
                 "lse[(sample * %" PRId64 " + head) * %" PRId64
                 " + i0 + r] = sum == 0 ? 0 : top[h] + ls_log(sum);",
                 t->s.heads, t->s.rows);
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

static void attend(const LsAttText *t, const LsGrid *part)
{
    LsEmit *e = t->e;
    const LsAttentionSize *s = &t->s;
    int64_t y_row = ls_att_row(t, LS_ATT_Y);
    ls_emit_part(t->k, part);
    ls_att_operands(t);
    ls_emit_result(t->k, "y", 0);
    ls_emit_result(t->k, "lse", 1);
    tile_array(t, "ks", s->depth);
    tile_array(t, "vs", s->width);
    ls_att_each_query_tile(t, false);
    load_rows(t, "qs", "qh", ls_att_row(t, LS_ATT_Q), "have", s->depth,
              true);
    sum_of(t, "z", s->width);
    ls_emit_line(e, "real top[2] = {-INFINITY, -INFINITY}, sums[2] = {0, 0};");
    ls_att_tile_columns(t);
    load_tile(t, "ks", "kh", ls_att_row(t, LS_ATT_K), "n", s->depth);
    load_tile(t, "vs", "vh", ls_att_row(t, LS_ATT_V), "n", s->width);
    ls_emit_line(e, "LS_SYNC;");
    multiply(t, "s", "qs", "ks", s->depth);
    mask_scores(t, false);
    weigh(t);
    accumulate(t, "z", "s", "vs", s->width);
    ls_emit_line(e, "LS_SYNC;");
    ls_emit_line(e, "}");
    finish(t);
    put(t, "yh", y_row, "have", s->width, "z");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

/* ---- the gradient ---- */
/* Scores s and dy vT (dp) become w = scale p (dy vT - dy y), in s; for `keys` p, and w in dp. There
 * rows are those of k. */
static void back_scores(const LsAttText *t, bool keys)
{
    LsEmit *e = t->e;
    mask_scores(t, keys);
    each(t, "e", LS_MMA_NUMBERS(pieces(t->pass)));
    ls_emit_line(e, "const int64_t r = ls_mma_%s(e);", keys ? "column" : "row");
    ls_emit_line(e, "const real part = ls_mma_exp(s[e] - logs[r]);");
    ls_emit_line(e, "const real w = part * (dp[e] - dots[r]) * %s;", t->scale);
    ls_emit_line(e, keys ? "s[e] = part;" : "s[e] = w;");
    if (keys)
        ls_emit_line(e, "dp[e] = w;");
    ls_emit_line(e, "}");
}

static void back_rows(const LsAttText *t, const LsGrid *part)
{
    LsEmit *e = t->e;
    const LsAttentionSize *s = &t->s;
    int64_t q_row = ls_att_row(t, LS_ATT_Q);
    int64_t y_row = ls_att_row(t, LS_ATT_Y);
    ls_emit_part(t->k, part);
    ls_att_operands(t);
    ls_emit_operand(t->k, "y", 1);
    ls_att_gradient(t, "dq", LS_ATT_Q);
    ls_att_stat_arrays(t, t->tile);
    tile_array(t, "ks", s->depth);
    tile_array(t, "vs", s->width);
    ls_att_each_query_tile(t, true);
    ls_att_load_stats(t, y_row);
    load_rows(t, "qs", "qh", q_row, "have", s->depth, true);
    load_rows(t, "dys", "dyh", y_row, "have", s->width, false);
    sum_of(t, "z", s->depth);
    ls_att_tile_columns(t);
    load_tile(t, "ks", "kh", ls_att_row(t, LS_ATT_K), "n", s->depth);
    load_tile(t, "vs", "vh", ls_att_row(t, LS_ATT_V), "n", s->width);
    ls_emit_line(e, "LS_SYNC;");
    multiply(t, "s", "qs", "ks", s->depth);
    multiply(t, "dp", "dys", "vs", s->width);
    back_scores(t, false);
    accumulate(t, "z", "s", "ks", s->depth);
    ls_emit_line(e, "LS_SYNC;");
    ls_emit_line(e, "}");
    put(t, "dqh", q_row, "have", s->depth, "z");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

/* One tile of rows of q against the block's rows of k. */
static void back_keys_tile(const LsAttText *t)
{
    LsEmit *e = t->e;
    const LsAttentionSize *s = &t->s;
    ls_emit_line(e, "const int64_t have = ls_least(%d, %" PRId64 " - i0);", t->pass, s->rows);
    ls_att_heads(t, "const real", "qh", "q", LS_ATT_Q, "i0");
    ls_att_heads(t, "const real", "dyh", "dy", LS_ATT_Y, "i0");
    load_tile(t, "qs", "qh", ls_att_row(t, LS_ATT_Q), "have", s->depth);
    load_tile(t, "dys", "dyh", ls_att_row(t, LS_ATT_Y), "have",
              s->width);
    ls_emit_line(e, "LS_ROWS(first, 0, 1) {");
    ls_emit_line(e, "LS_LANES(r, 0, %d) {", t->pass);
    ls_emit_line(e, "const int64_t at = (sample * %" PRId64 " + head) * %" PRId64 " + i0 + r;",
                 s->heads, s->rows);
    ls_emit_line(e, "logs[r] = r < have ? lse[at] : 0;");
    ls_emit_line(e, "dots[r] = r < have ? row_dots[at] : 0;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_line(e, "LS_SYNC;");
    multiply(t, "s", "ks", "qs", s->depth);
    multiply(t, "dp", "vs", "dys", s->width);
    back_scores(t, true);
    accumulate(t, "dvs", "s", "dys", s->width);
    accumulate(t, "dks", "dp", "qs", s->depth);
    ls_emit_line(e, "LS_SYNC;");
}

static void back_keys(const LsAttText *t, const LsGrid *part)
{
    LsEmit *e = t->e;
    const LsAttentionSize *s = &t->s;
    int64_t k_row = ls_att_row(t, LS_ATT_K);
    int64_t v_row = ls_att_row(t, LS_ATT_V);
    ls_emit_part(t->k, part);
    ls_att_operands(t);
    ls_att_gradient(t, "dk", LS_ATT_K);
    ls_att_gradient(t, "dv", LS_ATT_V);
    ls_att_stat_arrays(t, t->pass);
    tile_array(t, "qs", s->depth);
    tile_array(t, "dys", s->width);
    ls_att_each_key_tile(t);
    load_rows(t, "ks", "kh", k_row, "n", s->depth, true);
    load_rows(t, "vs", "vh", v_row, "n", s->width, false);
    sum_of(t, "dks", s->depth);
    sum_of(t, "dvs", s->width);
    ls_att_each_tile_of_rows(t);
    back_keys_tile(t);
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    put(t, "dkh", k_row, "n", s->depth, "dks");
    put(t, "dvh", v_row, "n", s->width, "dvs");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

void ls_att_emit_cores(const LsAttText *t)
{
    if (!t->grad) {
        const LsGrid part = ls_att_grid(t, "part", t->s.heads, t->s.rows);
        attend(t, &part);
        ls_emit_launch(t->k, &part, 1);
        return;
    }
    const LsGrid part[] = {ls_att_grid(t, "rows", t->s.heads, t->s.rows),
                           ls_att_grid(t, "keys", t->s.groups, t->s.cols)};
    back_rows(t, &part[0]);
    back_keys(t, &part[1]);
    ls_emit_launch(t->k, part, 2);
}
