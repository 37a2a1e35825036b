/* codegen/cuda/attention.c -- ATTENTION for GPUs, in the words of kernels: y and lse.
 *
 * Each block writes what no other does; y grows from tile to tile, each element by one thread. */
#include "codegen/cuda/attention_back.h"
#include "codegen/cuda/attention_cores.h"
#include "codegen/cuda/attention_text.h"

#include <inttypes.h>

/* Scores to weights, and what became of the maximum and the sum of each row. */
static void weigh(const LsAttText *t)
{
    LsEmit *e = t->e;
    ls_emit_line(e, "LS_ROWS(g, 0, %d) {", t->tile / t->group);
    ls_emit_line(e, "for (int64_t z = g * %d; z < (g + 1) * %d; z++) {", t->group, t->group);
    ls_emit_line(e, "real *const row = s + z * %d;", t->tile);
    ls_emit_line(e, "const real was = top[z], now = ls_max_real(was, ls_row_max(row, %d, %d));",
                 t->tile, t->tile);
    ls_emit_line(e, "const real shift = now == -INFINITY ? 0 : now;");
    ls_emit_line(e, "const double more = ls_row_exp_to(row, row, shift, %d, %d);", t->tile,
                 t->tile);
    ls_emit_line(e, "LS_LEAD {");
    ls_emit_line(e, "by[z] = ls_exp(was - shift);");
    ls_emit_line(e, "top[z] = now;");
    ls_emit_line(e, "sums[z] = sums[z] * by[z] + more;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

static void finish(const LsAttText *t, int64_t y_row)
{
    LsEmit *e = t->e;
    ls_emit_line(e, "LS_ROWS(g, 0, %d) {", t->tile / t->group);
    ls_emit_line(e, "for (int64_t z = g * %d; z < ls_least((g + 1) * %d, have); z++) {", t->group,
                 t->group);
    ls_emit_line(e, "const bool none = sums[z] == 0;");
    ls_emit_line(e, "const real part = none ? 0 : (real)(1 / sums[z]);");
    ls_emit_line(e, "LS_LANES(c, 0, %" PRId64 ") {", t->s.width);
    ls_emit_line(e, "yh[z * %" PRId64 " + c] *= part;", y_row);
    ls_emit_line(e, "}");
    ls_emit_line(e, "LS_LEAD {");
    ls_emit_line(e,
                 "lse[(sample * %" PRId64 " + head) * %" PRId64
                 " + i0 + z] = none ? 0 : top[z] + ls_log((real)sums[z]);",
                 t->s.heads, t->s.rows);
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

static void scores(const LsAttText *t)
{
    LsEmit *e = t->e;
    ls_emit_line(e, "LS_ROWS(g, 0, %d) {", t->tile / t->group);
    ls_emit_line(e, "LS_LANES(l, 0, %d) {", t->tile);
    ls_att_multiply(t, "qk", "qs", "kv", "l", t->s.depth);
    ls_emit_line(e, "for (int64_t z = 0; z < %d; z++) {", t->group);
    ls_emit_line(e, "const int64_t i = i0 + g * %d + z, j = j0 + l;", t->group);
    ls_emit_line(e, "real score = qk[z];");
    ls_att_mask_score(t, false);
    ls_emit_line(e, "s[(g * %d + z) * %d + l] = seen ? score : -INFINITY;", t->group, t->tile);
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

static void attend(const LsAttText *t, const LsGrid *part)
{
    LsEmit *e = t->e;
    const LsAttentionSize *s = &t->s;
    int64_t turned = s->depth * (t->tile + 1), flat = s->width * t->tile;
    int64_t q_row = ls_att_row(t, LS_ATT_Q);
    int64_t k_row = ls_att_row(t, LS_ATT_K);
    int64_t v_row = ls_att_row(t, LS_ATT_V);
    int64_t y_row = ls_att_row(t, LS_ATT_Y);
    ls_emit_part(t->k, part);
    ls_att_operands(t);
    ls_emit_result(t->k, "y", 0);
    ls_emit_result(t->k, "lse", 1);
    ls_att_local(t, "real", "qs", t->tile * s->depth);
    ls_att_local(t, "real", "kv", turned > flat ? turned : flat);
    ls_att_local(t, "real", "s", t->tile * t->tile);
    ls_att_local(t, "real", "top", t->tile);
    ls_att_local(t, "real", "by", t->tile);
    ls_att_local(t, "double", "sums", t->tile);
    ls_att_each_query_tile(t, false);
    ls_att_load_rows(t, "qs", "qh", q_row, s->depth, "have", true);
    ls_att_clear(t, "yh", y_row, s->width, "have");
    ls_emit_line(e, "LS_ROWS(z, 0, %d) {", t->tile);
    ls_emit_line(e, "LS_LEAD {");
    ls_emit_line(e, "top[z] = -INFINITY;");
    ls_emit_line(e, "sums[z] = 0;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_att_tile_columns(t);
    ls_att_load_turned(t, "kv", "kh", k_row, s->depth, "n");
    ls_emit_line(e, "LS_SYNC;");
    scores(t);
    ls_emit_line(e, "LS_ROW_SYNC;");
    weigh(t);
    ls_emit_line(e, "LS_SYNC;");
    ls_att_load_rows(t, "kv", "vh", v_row, s->width, "n", false);
    ls_emit_line(e, "LS_SYNC;");
    ls_emit_line(e, "LS_ROWS(g, 0, %d) {", t->tile / t->group);
    ls_att_accumulate(t, "yh", y_row, s->width, "s",
                      ls_arena_printf(t->k->g->arena, "kv[i * %" PRId64 " + c]", s->width), "have",
                      ls_arena_printf(t->k->g->arena, " * by[g * %d + z]", t->group));
    ls_emit_line(e, "}");
    ls_emit_line(e, "LS_SYNC;");
    ls_emit_line(e, "}");
    finish(t, y_row);
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

static void attention_emit(const LsKernelText *k)
{
    const LsAttText t = ls_att_text(k);
    if (t.cores || t.grad) {
        (t.cores ? ls_att_emit_cores : ls_att_emit_back)(&t);
        return;
    }
    const LsGrid part = ls_att_grid(&t, "part", t.s.heads, t.s.rows);
    attend(&t, &part);
    ls_emit_launch(k, &part, 1);
}

/* Of the gradient: dy y of every row. */
static int64_t attention_workspace(const LsGraph *g, LsNodeId n, const LsTarget *target)
{
    LsAttentionSize s = ls_attention_size(g, n);
    return !ls_attention_is_back(g, n) ? 0 : s.batch * s.heads * s.rows * target->real_bytes;
}

const LsEmitter ls_emitter_attention_cuda = {.emit = attention_emit,
                                             .workspace = attention_workspace};
