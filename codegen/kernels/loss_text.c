/* codegen/kernels/loss_text.c -- the loops over a loss's positions, and the sum of units' partial
 * sums. */
#include "codegen/kernels/loss_text.h"

#include <inttypes.h>

const char *ls_loss_offset(const LsLossText *l, int tensor)
{
    return ls_nest_offset(l->n, tensor, 0, l->n->naxis);
}

int ls_loss_label_operand(const LsLossText *l)
{
    if (l->k->g->node[l->k->n.i].op == LS_OP_LABEL_WEIGHT)
        return 0;
    return l->grad && !l->nll ? 2 : 1;
}

const char *ls_loss_widened(const LsLossText *l, const char *element)
{
    int scores = l->grad && !l->nll ? 1 : 0;
    return ls_widened(l->n->arena, ls_operand_type(l->k, scores), element);
}

/* ---- loops over positions ---- */
LsGrid ls_loss_grid(const LsLossText *l)
{
    if (!l->runs && !l->nll)
        return (LsGrid){"part", l->units, LS_LOSS_TILE, 1};
    LsGrid part = ls_rows_grid("part", l->points, l->group, l->nll ? 1 : l->classes);
    if (l->state)
        part.units = l->units;
    return part;
}

/* The positions of a unit, of which some may be in front of these or behind them. */
static void open_some(const LsLossText *l)
{
    ls_emit_line(l->e, "const int64_t unit = u + " LS_N64 ", begin = unit * " LS_N64 " - " LS_N64
                 ";", l->first, l->group, l->before);
    ls_emit_line(l->e, "double sums[2] = {0};");
    ls_emit_line(l->e, "if (begin < 0)");
    ls_emit_line(l->e, "    sums[0] = part[2 * unit], sums[1] = part[2 * unit + 1];");
    ls_emit_line(l->e, "LS_ROWS(p, ls_most(begin, 0), ls_least(begin + " LS_N64 ", " LS_N64 ")) {",
                 l->group, l->points);
}

void ls_loss_open_group(const LsLossText *l)
{
    int axis[LS_NEST_AXES];
    for (int a = 0; a < l->n->naxis; a++)
        axis[a] = a;
    ls_emit_line(l->e, "for (int64_t u = lo; u < hi; u++) {");
    if (l->state) {
        open_some(l);
        ls_nest_decode(l->e, l->n, "p", l->n->naxis, axis);
        return;
    }
    if (!l->grad) {
        ls_emit_line(l->e, "LS_LOCAL_ROWS(double, sums, 2, %d);", ls_loss_grid(l).y);
        ls_emit_line(l->e, "LS_LEAD {");
        ls_emit_line(l->e, "sums[0] = sums[1] = 0;");
        ls_emit_line(l->e, "}");
    }
    ls_emit_line(l->e, "LS_ROWS(p, u * " LS_N64 ", ls_least((u + 1) * " LS_N64 ", " LS_N64 ")) {",
                 l->group, l->group, l->points);
    ls_nest_decode(l->e, l->n, "p", l->n->naxis, axis);
}

void ls_loss_open_tile(const LsLossText *l)
{
    int axis[LS_NEST_AXES], last = l->n->naxis - 1;
    int64_t ntile = ls_ceil_div(l->inner, LS_LOSS_TILE);
    for (int a = 0; a < last; a++)
        axis[a] = a;
    ls_emit_line(l->e, "for (int64_t u = lo; u < hi; u++) {");
    ls_nest_decode(l->e, l->n, ls_arena_printf(l->n->arena, "u / " LS_N64, ntile), last, axis);
    ls_emit_line(l->e,
                 "const int64_t i0 = u %% " LS_N64 " * " LS_N ", i1 = ls_least(i0 + " LS_N ", "
                 LS_N64 ");",
                 ntile, LS_LOSS_TILE, LS_LOSS_TILE, l->inner);
}

void ls_loss_open_columns(const LsLossText *l)
{
    ls_emit_line(l->e, "LS_LANES(i, i0, i1) {");
}

void ls_loss_open_classes(const LsLossText *l)
{
    ls_emit_line(l->e, "for (int64_t c = 0; c < %" PRId64 "; c++) {", l->classes);
    ls_loss_open_columns(l);
    ls_emit_line(l->e, "const real v = x[%s + c * " LS_N64 "];", ls_loss_offset(l, LS_LOSS_SCORES),
                 l->stride);
}

const char *ls_loss_counted(const LsLossText *l, int64_t label)
{
    return ls_arena_printf(l->n->arena, "%" PRId64 "%s", label, l->some ? " - class_at[0]" : "");
}

void ls_loss_label(const LsLossText *l)
{
    const char *ignore = l->at->has_ignore
                             ? ls_arena_printf(l->n->arena, "t != %s",
                                               ls_loss_counted(l, l->at->ignore))
                             : NULL;
    ls_emit_line(l->e, "const int64_t t = label[%s + " LS_N64 "]%s;",
                 ls_loss_offset(l, LS_LOSS_LABELS), l->label_at,
                 l->some ? " - class_at[0]" : "");
    ls_emit_line(l->e, "const bool counts = %s%s%s;",
                 l->valid != NULL ? l->valid
                 : ignore != NULL ? ""
                                  : "true",
                 l->valid != NULL && ignore != NULL ? " && " : "", ignore != NULL ? ignore : "");
    ls_emit_line(l->e, "const bool in = counts && t >= %s && t < %s;", ls_loss_counted(l, 0),
                 ls_loss_counted(l, l->all));
}

void ls_loss_pointers(const LsLossText *l)
{
    const LsKernelText *k = l->k;
    int scores = l->grad && !l->nll ? 1 : 0;
    if (!(l->grad && l->nll) && ls_loss_label_operand(l) > 0)
        ls_emit_operand(k, "x", scores);
    ls_emit_operand(k, "label", ls_loss_label_operand(l));
    if (l->weight >= 0)
        ls_emit_operand(k, "weight", l->weight);
    if (l->some)
        ls_emit_operand(k, "class_at", LS_LOSS_CLASS_AT);
    if (l->weight >= 0 && l->at->smoothing != 0)
        ls_emit_line(l->e, "const double all = ls_row_sum(weight, %" PRId64 ", %" PRId64 ");",
                     l->classes, l->lanes);
}

void ls_emit_totals(const LsKernelText *k, int n, int64_t units)
{
    LsEmit *e = k->e;
    ls_emit_line(e, "LS_LOCAL(double, sums, %d);", n * LS_TOTAL_LANES);
    ls_emit_line(e, "LS_LANES(l, 0, " LS_BOUND ") {", LS_TOTAL_LANES);
    for (int q = 0; q < n; q++)
        ls_emit_line(e, "sums[%d * l + " LS_N "] = 0;", n, q);
    ls_emit_line(e, "for (int64_t u = l; u < %" PRId64 "; u += %d) {", units, LS_TOTAL_LANES);
    for (int q = 0; q < n; q++)
        ls_emit_line(e, "sums[%d * l + " LS_N "] += part[%d * u + " LS_N "];", n, q, n, q);
    ls_emit_close(e, 2);
    ls_emit_line(e, "LS_SYNC;");
    for (int q = 0; q < n; q++)
        ls_emit_line(e, "double total%d = 0;", q);
    ls_emit_line(e, "LS_ONE for (int64_t l = 0; l < %d; l++) {", LS_TOTAL_LANES);
    for (int q = 0; q < n; q++)
        ls_emit_line(e, "total%d += sums[%d * l + " LS_N "];", q, n, q);
    ls_emit_line(e, "}");
}
