/* codegen/cuda/attention_back.c -- the gradient of attention on GPUs, in two parts: dq, which also
 * leaves dy y of each row in the workspace; dk and dv. Both recompute the scores, so no two blocks
 * write the same element. */
#include "codegen/cuda/attention_back.h"

#include <inttypes.h>

/* Turns scores and dy vT of a tile into the weights p (for `keys` alone) and w = scale p (dy vT -
 * dy y). A row of threads has some rows of q, its lanes have columns; for `keys`, the reverse. */
static void back_scores(const LsAttText *t, bool keys)
{
    LsEmit *e = t->e;
    ls_emit_line(e, "LS_ROWS(g, 0, " LS_N ") {", t->tile / t->group);
    ls_emit_line(e, "LS_LANES(l, 0, " LS_BOUND ") {", t->tile);
    ls_att_multiply(t, "qk", keys ? "ks" : "qs", keys ? "qt" : "kt", "l", t->s.depth);
    ls_att_multiply(t, "dp", keys ? "vs" : "dys", keys ? "dyt" : "vt", "l", t->s.width);
    ls_emit_line(e, "for (int64_t z = 0; z < %d; z++) {", t->group);
    ls_emit_line(e, "const int64_t r = %s, at = (g * " LS_N " + z) * " LS_N " + l;",
                 keys ? "l" : ls_arena_printf(t->k->g->arena, "g * " LS_N " + z", t->group),
                 t->group,
                 t->tile);
    ls_emit_line(e,
                 keys ? "const int64_t i = i0 + r, j = j0 + g * " LS_N " + z;"
                      : "const int64_t i = i0 + r, j = j0 + l;",
                 t->group);
    ls_emit_line(e, "real score = qk[z];");
    ls_att_mask_score(t, true);
    ls_emit_line(e, "const real part = seen ? ls_exp(score - logs[r]) : 0;");
    if (keys)
        ls_emit_line(e, "p[at] = part;");
    ls_emit_line(e, "w[at] = moves ? part * (dp[z] - dots[r]) * %s : 0;", t->scale);
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

static void declare_rows(const LsAttText *t)
{
    const LsAttentionSize *s = &t->s;
    ls_emit_operand(t->k, "y", 1);
    ls_att_gradient(t, "dq", LS_ATT_Q);
    ls_att_stat_arrays(t, t->tile);
    ls_att_local(t, "real", "w", t->tile * t->tile);
    ls_att_local(t, "real", "qs", t->tile * s->depth);
    ls_att_local(t, "real", "dys", t->tile * s->width);
    ls_att_local(t, "real", "kt", s->depth * (t->tile + 1));
    ls_att_local(t, "real", "vt", s->width * (t->tile + 1));
}

static void begin_rows(const LsAttText *t)
{
    int64_t q_row = ls_att_row(t, LS_ATT_Q), y_row = ls_att_row(t, LS_ATT_Y);
    ls_att_load_rows(t, "qs", "qh", q_row, t->s.depth, "have", true);
    ls_att_load_rows(t, "dys", "dyh", y_row, t->s.width, "have", false);
    ls_att_load_stats(t, y_row);
    ls_att_clear(t, "dqh", q_row, t->s.depth, "have");
}

static void rows_tile(const LsAttText *t)
{
    LsEmit *e = t->e;
    const LsAttentionSize *s = &t->s;
    ls_att_load_turned(t, "kt", "kh", ls_att_row(t, LS_ATT_K), s->depth, "n");
    ls_att_load_turned(t, "vt", "vh", ls_att_row(t, LS_ATT_V), s->width, "n");
    ls_emit_line(e, "LS_SYNC;");
    back_scores(t, false);
    ls_emit_line(e, "LS_ROW_SYNC;");
    ls_emit_line(e, "LS_ROWS(g, 0, " LS_N ") {", t->tile / t->group);
    ls_att_accumulate(t, "dqh", ls_att_row(t, LS_ATT_Q), s->depth, "w",
                      ls_arena_printf(t->k->g->arena, "kt[c * " LS_N " + i]", t->tile + 1),
                      "have", "");
    ls_emit_line(e, "}");
}

static void declare_keys(const LsAttText *t)
{
    const LsAttentionSize *s = &t->s;
    ls_att_stat_arrays(t, t->tile);
    ls_att_local(t, "real", "w", t->tile * t->tile);
    ls_att_local(t, "real", "p", t->tile * t->tile);
    ls_att_local(t, "real", "ks", t->tile * s->depth);
    ls_att_local(t, "real", "vs", t->tile * s->width);
    ls_att_local(t, "real", "qt", s->depth * (t->tile + 1));
    ls_att_local(t, "real", "dyt", s->width * (t->tile + 1));
}

static void begin_keys(const LsAttText *t)
{
    int64_t k_row = ls_att_row(t, LS_ATT_K), v_row = ls_att_row(t, LS_ATT_V);
    ls_att_load_rows(t, "ks", "kh", k_row, t->s.depth, "n", true);
    ls_att_load_rows(t, "vs", "vh", v_row, t->s.width, "n", false);
    ls_att_clear(t, "dkh", k_row, t->s.depth, "n");
    ls_att_clear(t, "dvh", v_row, t->s.width, "n");
}

/* One tile of rows of q against the block's tile of k. */
static void keys_tile(const LsAttText *t)
{
    LsEmit *e = t->e;
    const LsAttentionSize *s = &t->s;
    const char *odd = ls_arena_printf(t->k->g->arena, "[c * " LS_N " + i]", t->tile + 1);
    ls_att_load_turned(t, "qt", "qh", ls_att_row(t, LS_ATT_Q), s->depth, "have");
    ls_att_load_turned(t, "dyt", "dyh", ls_att_row(t, LS_ATT_Y), s->width, "have");
    ls_emit_line(e, "LS_ROWS(r, 0, have) {");
    ls_emit_line(e, "LS_LEAD {");
    ls_att_place_of_row(t);
    ls_emit_line(e, "logs[r] = lse[at];");
    ls_emit_line(e, "dots[r] = row_dots[at];");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_line(e, "LS_SYNC;");
    back_scores(t, true);
    ls_emit_line(e, "LS_ROW_SYNC;");
    ls_emit_line(e, "LS_ROWS(g, 0, " LS_N ") {", t->tile / t->group);
    ls_att_accumulate(t, "dvh", ls_att_row(t, LS_ATT_V), s->width, "p",
                      ls_arena_printf(t->k->g->arena, "dyt%s", odd), "n", "");
    ls_att_accumulate(t, "dkh", ls_att_row(t, LS_ATT_K), s->depth, "w",
                      ls_arena_printf(t->k->g->arena, "qt%s", odd), "n", "");
    ls_emit_line(e, "}");
}

const LsAttPass ls_att_rows = {declare_rows, begin_rows, rows_tile, NULL};
const LsAttPass ls_att_keys = {declare_keys, begin_keys, keys_tile, NULL};
