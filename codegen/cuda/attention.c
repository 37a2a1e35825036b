/* codegen/cuda/attention.c -- ATTENTION for GPUs without tensor cores: y and lse.
 *
 * No two blocks write the same element; y accumulates from tile to tile, each element in one
 * thread. */
#include "codegen/cuda/attention_back.h"
#include "codegen/cuda/attention_cores.h"
#include "codegen/cuda/attention_text.h"

#include <inttypes.h>

/* Turns scores into weights, and updates each row's maximum and sum. */
static void weigh(const LsAttText *t)
{
    LsEmit *e = t->e;
    ls_emit_line(e, "LS_ROWS(g, 0, " LS_N ") {", t->tile / t->group);
    ls_emit_line(e, "for (int64_t z = g * %d; z < (g + 1) * %d; z++) {", t->group, t->group);
    ls_emit_line(e, "real *const row = s + z * " LS_N ";", t->tile);
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

static void finish(const LsAttText *t)
{
    LsEmit *e = t->e;
    ls_emit_line(e, "LS_ROWS(g, 0, " LS_N ") {", t->tile / t->group);
    ls_emit_line(e, "for (int64_t z = g * %d; z < ls_least((g + 1) * %d, have); z++) {", t->group,
                 t->group);
    ls_emit_line(e, "const bool none = sums[z] == 0;");
    ls_emit_line(e, "const real part = none ? 0 : (real)(1 / sums[z]);");
    ls_emit_line(e, "LS_LANES(c, 0, " LS_BOUND64 ") {", t->s.width);
    ls_emit_line(e, "yh[z * " LS_N64 " + c] *= part;", ls_att_row(t, LS_ATT_Y));
    ls_emit_line(e, "}");
    ls_emit_line(e, "LS_LEAD {");
    ls_emit_line(e,
                 "lse[(sample * " LS_N64 " + head) * " LS_N64
                 " + i0 + z] = none ? 0 : top[z] + ls_log((real)sums[z]);",
                 t->s.heads, t->s.rows);
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

static void scores(const LsAttText *t)
{
    LsEmit *e = t->e;
    ls_emit_line(e, "LS_ROWS(g, 0, " LS_N ") {", t->tile / t->group);
    ls_emit_line(e, "LS_LANES(l, 0, " LS_BOUND ") {", t->tile);
    ls_att_multiply(t, "qk", "qs", "kv", "l", t->s.depth);
    ls_emit_line(e, "for (int64_t z = 0; z < %d; z++) {", t->group);
    ls_emit_line(e, "const int64_t i = i0 + g * " LS_N " + z, j = j0 + l;", t->group);
    ls_emit_line(e, "real score = qk[z];");
    ls_att_mask_score(t, false);
    ls_emit_line(e, "s[(g * " LS_N " + z) * " LS_N " + l] = seen ? score : -INFINITY;", t->group,
                 t->tile);
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

static void declare(const LsAttText *t)
{
    const LsAttentionSize *s = &t->s;
    int64_t turned = s->depth * (t->tile + 1), flat = s->width * t->tile;
    ls_emit_result(t->k, "y", 0);
    ls_emit_result(t->k, "lse", 1);
    ls_att_local(t, "real", "qs", t->tile * s->depth);
    ls_att_local(t, "real", "kv", turned > flat ? turned : flat);
    ls_att_local(t, "real", "s", t->tile * t->tile);
    ls_att_local(t, "real", "top", t->tile);
    ls_att_local(t, "real", "by", t->tile);
    ls_att_local(t, "double", "sums", t->tile);
}

static void begin(const LsAttText *t)
{
    LsEmit *e = t->e;
    ls_att_load_rows(t, "qs", "qh", ls_att_row(t, LS_ATT_Q), t->s.depth, "have", true);
    ls_att_clear(t, "yh", ls_att_row(t, LS_ATT_Y), t->s.width, "have");
    ls_emit_line(e, "LS_ROWS(z, 0, " LS_N ") {", t->tile);
    ls_emit_line(e, "LS_LEAD {");
    ls_emit_line(e, "top[z] = -INFINITY;");
    ls_emit_line(e, "sums[z] = 0;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

static void tile(const LsAttText *t)
{
    LsEmit *e = t->e;
    const LsAttentionSize *s = &t->s;
    ls_att_load_turned(t, "kv", "kh", ls_att_row(t, LS_ATT_K), s->depth, "n");
    ls_emit_line(e, "LS_SYNC;");
    scores(t);
    ls_emit_line(e, "LS_ROW_SYNC;");
    weigh(t);
    ls_emit_line(e, "LS_SYNC;");
    ls_att_load_rows(t, "kv", "vh", ls_att_row(t, LS_ATT_V), s->width, "n", false);
    ls_emit_line(e, "LS_SYNC;");
    ls_emit_line(e, "LS_ROWS(g, 0, " LS_N ") {", t->tile / t->group);
    ls_att_accumulate(t, "yh", ls_att_row(t, LS_ATT_Y), s->width, "s",
                      ls_arena_printf(t->k->g->arena, "kv[i * " LS_N64 " + c]", s->width), "have",
                      ls_arena_printf(t->k->g->arena, " * by[g * " LS_N " + z]", t->group));
    ls_emit_line(e, "}");
}

static void attention_emit(const LsKernelText *k)
{
    static const LsAttPass forward = {declare, begin, tile, finish};
    const LsAttText t = ls_att_text(k);
    if (t.grad)
        ls_att_emit_gradient(&t, t.cores ? &ls_att_rows_cores : &ls_att_rows,
                             t.cores ? &ls_att_keys_cores : &ls_att_keys);
    else
        ls_att_emit_forward(&t, t.cores ? &ls_att_forward_cores : &forward);
}

/* The gradient keeps dy y of every row. */
static int64_t attention_workspace(const LsGraph *g, LsNodeId n, const LsTarget *target)
{
    LsAttentionSize s = ls_attention_size(g, n);
    return !ls_attention_is_back(g, n) ? 0 : s.batch * s.heads * s.rows * target->real_bytes;
}

const LsEmitter ls_emitter_attention_cuda = {.emit = attention_emit,
                                             .workspace = attention_workspace};
