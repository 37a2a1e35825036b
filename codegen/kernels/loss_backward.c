/* codegen/kernels/loss_backward.c -- the gradients of cross-entropy and negative log-likelihood. */
#include "codegen/kernels/loss_backward.h"

#include "codegen/kernels/move_axes.h"

#include <inttypes.h>

/* Scores and their gradients that are read and written together: 4, 8; 0: one at a time. */
static int wide_of(const LsLossText *l)
{
    const LsType from = ls_operand_type(l->k, 1), to = ls_result_type(l->k, 0);
    const int wide = ls_wide(l->width, ls_is_16(from) || ls_is_16(to));
    return ls_in_wide(l->k, wide, from) && ls_in_wide(l->k, wide, to) ? wide : 0;
}

/* Prints dx of each class c of the row at `row`, several neighbours at a time if the row's length
 * allows; columns beyond the classes are 0. score: the value reads the score. */
static void put_row(const LsLossText *l, bool score, const char *before, const char *behind)
{
    struct LsArena *a = l->n->arena;
    LsType type = ls_result_type(l->k, 0);
    const int most = wide_of(l);
    int64_t from = 0;
    for (int part = 0; part < 2; part++) {
        const int wide = part == 0 ? most : 0;
        int64_t to = part > 0 ? l->classes : most > 0 ? l->classes / most * most : 0;
        const char *x = ls_get_text(a, wide, "score", "x", "row + c");
        x = !score ? "" : wide > 0 ? x : ls_loss_widened(l, x);
        if (to > from) {
            ls_emit_line(l->e, "%s(c, " LS_BOUND64 ", " LS_BOUND64 ") {", ls_lanes_word(wide),
                         from, to);
            const char *v = ls_arena_printf(a, "%s%s%s", before, x, behind);
            ls_emit_put(l->e, wide, "dx", "row + c",
                        wide > 0 ? ls_rounded(a, type, v) : ls_stored(a, type, v));
            ls_emit_line(l->e, "}");
        }
        from = to;
    }
    if (l->width > l->classes)
        ls_emit_line(l->e, "LS_LANES(c, " LS_BOUND64 ", " LS_BOUND64 ") dx[row + c] = %s;",
                     l->classes, l->width, ls_stored(a, type, "0"));
}

/* Declares dloss of the position times its weight and 1 - smoothing (`pick`), and the smoothing's
 * share of each class (`even`). */
static void factors(const LsLossText *l)
{
    LsEmit *e = l->e;
    const char *w = l->weight >= 0 ? " * weight[t]" : "";
    if (l->at->reduction == LS_LOSS_EACH)
        ls_emit_line(e, "const real scale = dloss[%s];", ls_loss_offset(l, LS_LOSS_AT_EACH));
    if (l->at->smoothing == 0 || l->nll) {
        ls_emit_line(e, "const real pick = in ? scale%s : 0;", w);
        return;
    }
    ls_emit_line(e, "const real pick = in ? scale * %s%s : 0;", l->plain, w);
    ls_emit_line(e, "const real even = in ? scale * %s : 0;", l->smooth);
}

/* The factor of the softmax. */
static const char *factor(const LsLossText *l)
{
    if (l->at->smoothing == 0)
        return "pick";
    return l->weight >= 0 ? "pick + even * (real)all"
                          : ls_arena_printf(l->n->arena, "pick + even * " LS_N64, l->all);
}

static const char *even_part(const LsLossText *l, const char *even)
{
    if (l->at->smoothing == 0)
        return "";
    return ls_arena_printf(l->n->arena, " - %s%s", even, l->weight >= 0 ? " * weight[c]" : "");
}

static void grad_group(const LsLossText *l)
{
    LsEmit *e = l->e;
    if (wide_of(l) > 0 || (l->width % 4 == 0 && l->k->target->kind == LS_TARGET_CPU))
        ls_emit_room(e, wide_of(l), "score");
    ls_loss_open_group(l);
    ls_loss_label(l);
    factors(l);
    ls_emit_line(e, "const int64_t row = %s;", ls_loss_offset(l, LS_LOSS_SCORES));
    ls_emit_line(e, "if (!in) {");
    put_row(l, false, "0", "");
    ls_emit_line(e, "continue;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "const real z = lse[%s], by = %s;", ls_loss_offset(l, LS_LOSS_LSE), factor(l));
    const char *even = even_part(l, "even");
    if (ls_result_type(l->k, 0) != LS_REAL) {    /* rounded once, so the label's share is subtracted
                                                  * before */
        put_row(l, true, "(ls_exp(",
                ls_arena_printf(l->n->arena, " - z) * by%s) - (c == t ? pick : 0)", even));
        ls_emit_close(e, 3);
        return;
    }
    put_row(l, true, "ls_exp(", ls_arena_printf(l->n->arena, " - z) * by%s", even));
    ls_emit_line(e, "LS_ROW_SYNC;");
    ls_emit_line(e, "LS_LEAD {");
    if (l->some)
        ls_emit_line(e, "if (t >= 0 && t < %" PRId64 ")", l->classes);
    ls_emit_line(e, "dx[row + t * " LS_N64 "] -= pick;", l->stride);
    ls_emit_close(e, 4);
}

static void grad_tile(const LsLossText *l)
{
    LsEmit *e = l->e;
    bool smooth = l->at->smoothing != 0;
    const char *at = ls_loss_offset(l, LS_LOSS_SCORES);
    ls_loss_open_tile(l);
    ls_emit_line(e, "LS_LOCAL(real, by, %d);", LS_LOSS_TILE);
    ls_emit_line(e, "LS_LOCAL(real, z, %d);", LS_LOSS_TILE);
    if (smooth)
        ls_emit_line(e, "LS_LOCAL(real, evens, %d);", LS_LOSS_TILE);
    ls_emit_line(e, "LS_LOCAL(uint8_t, live, %d);", LS_LOSS_TILE);
    ls_loss_open_columns(l);
    ls_loss_label(l);
    factors(l);
    ls_emit_line(e, "live[i - i0] = in;");
    ls_emit_line(e, "z[i - i0] = lse[%s];", ls_loss_offset(l, LS_LOSS_LSE));
    ls_emit_line(e, "by[i - i0] = %s;", factor(l));
    if (smooth)
        ls_emit_line(e, "evens[i - i0] = even;");
    ls_emit_line(e, "}");
    ls_loss_open_classes(l);
    ls_emit_line(e, "const real d = ls_exp(v - z[i - i0]) * by[i - i0]%s;",
                 even_part(l, "evens[i - i0]"));
    ls_emit_line(e, "dx[%s + c * " LS_N64 "] = live[i - i0] ? d : 0;", at, l->stride);
    ls_emit_close(e, 2);
    ls_loss_open_columns(l);
    ls_loss_label(l);
    factors(l);
    if (smooth)
        ls_emit_line(e, "(void)even;");
    ls_emit_line(e, "if (in)");
    ls_emit_line(e, "    dx[%s + t * " LS_N64 "] -= pick;", at, l->stride);
    ls_emit_close(e, 3);
}

/* Stores one element per position; a part before it sets all others to 0. */
static void grad_scatter(const LsLossText *l)
{
    ls_loss_open_group(l);
    ls_loss_label(l);
    factors(l);
    ls_emit_line(l->e, "if (in)");
    ls_emit_line(l->e, "    dx[%s + t * " LS_N64 "] = -pick;",
                 ls_loss_offset(l, LS_LOSS_SCORES), l->stride);
    ls_emit_close(l->e, 3);
}

void ls_loss_backward(const LsLossText *l)
{
    const LsKernelText *k = l->k;
    LsGrid part[2];
    int n = 0;
    if (l->nll)
        part[n++] = ls_fill_part(k, 0);
    part[n] = ls_loss_grid(l);
    ls_emit_part(k, &part[n++]);
    ls_loss_pointers(l);
    ls_emit_operand(k, "dloss", 0);
    if (!l->nll)
        ls_emit_operand(k, "lse", 4);
    ls_emit_result(k, "dx", 0);
    if (l->at->reduction == LS_LOSS_MEAN) {
        ls_emit_operand(k, "wsum", l->nll ? 3 : 5);
        ls_emit_line(l->e, "const real scale = wsum[0] != 0 ? dloss[0] / wsum[0] : dloss[0];");
    } else if (l->at->reduction == LS_LOSS_SUM) {
        ls_emit_line(l->e, "const real scale = dloss[0];");
    }
    (l->nll ? grad_scatter : l->runs ? grad_group : grad_tile)(l);
    ls_emit_launch(k, part, n);
}
