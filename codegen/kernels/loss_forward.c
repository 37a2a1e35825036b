/* codegen/kernels/loss_forward.c -- the value of cross-entropy and negative log-likelihood: partial
 * sums of every unit, then their sum. */
#include "codegen/kernels/loss_forward.h"

#include "codegen/kernels/widen_rows.h"

#include <inttypes.h>

/* Computes the position's loss from its score, the logarithm z of the exponentials' sum and the
 * smoothing's sum `mix`, and adds the loss and the weight to the sums. */
static void add_position(const LsLossText *l, const char *at)
{
    LsEmit *e = l->e;
    const char *score =
        ls_loss_widened(l, ls_arena_printf(l->n->arena, "x[%s + t * " LS_N64 "]",
                                           ls_loss_offset(l, LS_LOSS_SCORES), l->stride));
    const char *w = l->weight >= 0 ? "weight[t]" : "1";
    ls_emit_line(e, "double loss = counts ? (double)NAN : 0;");
    ls_emit_line(e, "if (in) {");
    if (l->nll)
        ls_emit_line(e, "loss = -(double)(%s * %s);", w, score);
    else if (l->at->smoothing == 0)
        ls_emit_line(e, "loss = (double)(%s * (z - %s));", w, score);
    else
        ls_emit_line(e,
                     "loss = (double)(real)((double)(%s * %s * (z - %s)) + %s * (%s * (double)z - "
                     "mix));",
                     l->plain, w, score, l->smooth, l->weight >= 0 ? "all" : l->classes_text);
    ls_emit_line(e, "}");
    ls_emit_line(e, "sums[%s0] += loss;", at);
    ls_emit_line(e, "sums[%s1] += in ? %s : 0;", at, w);
    if (l->at->reduction == LS_LOSS_EACH)
        ls_emit_line(e, "each[%s] = (real)loss;", ls_loss_offset(l, LS_LOSS_AT_EACH));
}

/* The sums of a unit's rows. */
static void fold_group(const LsLossText *l)
{
    LsEmit *e = l->e;
    ls_emit_line(e, "LS_SYNC;");
    ls_emit_line(e, "LS_ONE {");
    ls_emit_line(e, "double sum = sums[0], count = sums[1];");
    ls_emit_line(e, "LS_FOLD(k, %d) {", ls_loss_grid(l).y);
    ls_emit_line(e, "sum += LS_OF_ROW(sums, k)[0];");
    ls_emit_line(e, "count += LS_OF_ROW(sums, k)[1];");
    ls_emit_line(e, "}");
}

/* Declares `row`, the scores of the position. */
static void stage_row(const LsLossText *l)
{
    const LsRowStage row = {
        "x", ls_arena_printf(l->n->arena, "%s", ls_loss_offset(l, LS_LOSS_SCORES)), l->classes,
        ls_loss_grid(l).y};
    ls_row_stage_in(l->k, "row", 0, &row);
}

/* Declares z, the logarithm of the exponentials' sum. */
static void row_lse(const LsLossText *l)
{
    ls_emit_line(l->e, "const real max = ls_row_max(row, %" PRId64 ", %" PRId64 ");", l->classes,
                 l->lanes);
    ls_emit_line(l->e,
                 "const real z = max + ls_log((real)ls_row_exp(row, max, %" PRId64 ", %" PRId64
                 "));",
                 l->classes, l->lanes);
}

/* Declares `mix`, the smoothing's sum, if there is one. */
static void row_mix(const LsLossText *l)
{
    if (l->at->smoothing != 0 && l->weight >= 0)
        ls_emit_line(l->e, "const double mix = ls_row_dot(weight, row, %" PRId64 ", %" PRId64 ");",
                     l->classes, l->lanes);
    else if (l->at->smoothing != 0)
        ls_emit_line(l->e, "const double mix = ls_row_sum(row, %" PRId64 ", %" PRId64 ");",
                     l->classes, l->lanes);
}

static void forward_group(const LsLossText *l)
{
    LsEmit *e = l->e;
    ls_loss_open_group(l);
    ls_loss_label(l);
    if (!l->nll) {
        stage_row(l);
        row_lse(l);
        row_mix(l);
    }
    ls_emit_line(e, "LS_LEAD {");
    if (!l->nll)
        ls_emit_line(e, "lse[%s] = z;", ls_loss_offset(l, LS_LOSS_LSE));
    add_position(l, "");
    ls_emit_close(e, 2);
    fold_group(l);
}

/* Declares a tile's accumulators for each position, for the loops over classes. */
static void tile_locals(const LsLossText *l, bool mix)
{
    LsEmit *e = l->e;
    ls_emit_line(e, "LS_LOCAL(double, sums, 2 * %d);", LS_LOSS_TILE);
    ls_emit_line(e, "LS_LOCAL(real, max, %d);", LS_LOSS_TILE);
    ls_emit_line(e, "LS_LOCAL(double, total, %d);", LS_LOSS_TILE);
    if (mix)
        ls_emit_line(e, "LS_LOCAL(double, mixed, %d);", LS_LOSS_TILE);
    ls_loss_open_columns(l);
    ls_emit_line(e, "sums[2 * (i - i0)] = sums[2 * (i - i0) + 1] = 0;");
    ls_emit_line(e, "max[i - i0] = -INFINITY;");
    ls_emit_line(e, "total[i - i0] = 0;");
    if (mix)
        ls_emit_line(e, "mixed[i - i0] = 0;");
    ls_emit_line(e, "}");
}

static void forward_tile(const LsLossText *l)
{
    LsEmit *e = l->e;
    bool mix = l->at->smoothing != 0;
    ls_loss_open_tile(l);
    tile_locals(l, mix);
    ls_loss_open_classes(l);
    ls_emit_line(e, "max[i - i0] = ls_max(max[i - i0], v);");
    ls_emit_close(e, 2);
    ls_loss_open_classes(l);
    ls_emit_line(e, "total[i - i0] += ls_exp(v - max[i - i0]);");
    if (mix)
        ls_emit_line(e, "mixed[i - i0] += %sv;", l->weight >= 0 ? "weight[c] * " : "");
    ls_emit_close(e, 2);
    ls_loss_open_columns(l);
    ls_loss_label(l);
    ls_emit_line(e, "const real z = max[i - i0] + ls_log((real)total[i - i0]);");
    ls_emit_line(e, "lse[%s] = z;", ls_loss_offset(l, LS_LOSS_LSE));
    if (mix)
        ls_emit_line(e, "const double mix = mixed[i - i0];");
    add_position(l, "2 * (i - i0) + ");
    ls_emit_line(e, "}");
    ls_emit_line(e, "LS_SYNC;");
    ls_emit_line(e, "LS_ONE {");
    ls_emit_line(e, "double sum = 0, count = 0;");
    ls_emit_line(e, "for (int64_t i = 0; i < i1 - i0; i++) {");
    ls_emit_line(e, "sum += sums[2 * i];");
    ls_emit_line(e, "count += sums[2 * i + 1];");
    ls_emit_line(e, "}");
}

/* wsum: that result of the node. */
static void end_part(const LsLossText *l, const LsGrid *part, int wsum)
{
    LsEmit *e = l->e;
    ls_emit_part(l->k, part);
    if (l->k->g->node[l->k->n.i].op == LS_OP_XENT_END)
        ls_emit_line(e, "LS_IN(double, part, 0);");
    else
        ls_emit_workspace(l->k, "const double", "part");
    if (l->at->reduction != LS_LOSS_EACH)
        ls_emit_result(l->k, "loss", 0);
    ls_emit_result(l->k, "wsum", wsum);
    ls_emit_totals(l->k, 2, l->units);
    ls_emit_line(e, "LS_ONE {");
    ls_emit_line(e, "wsum[0] = (real)total1;");
    if (l->at->reduction == LS_LOSS_EACH)
        ls_emit_line(e, "(void)total0;");
    else
        ls_emit_line(e, "loss[0] = (real)%s;", l->at->reduction == LS_LOSS_MEAN
                     ? "(wsum[0] != 0 ? total0 / (double)wsum[0] : total0)" : "total0");
    ls_emit_close(e, 2);
}

void ls_loss_forward(const LsLossText *l)
{
    const LsKernelText *k = l->k;
    const LsGrid part[2] = {ls_loss_grid(l), {"end", 1, LS_TOTAL_LANES, 1}};
    ls_emit_part(k, &part[0]);
    ls_loss_pointers(l);
    if (!l->nll)
        ls_emit_result(k, "lse", 1);
    if (l->at->reduction == LS_LOSS_EACH)
        ls_emit_result(k, "each", 0);
    ls_emit_workspace(k, "double", "part");
    if (l->runs || l->nll)
        forward_group(l);
    else
        forward_tile(l);
    ls_emit_line(l->e, "part[2 * u] = sum;");
    ls_emit_line(l->e, "part[2 * u + 1] = count;");
    ls_emit_close(l->e, 3);
    end_part(l, &part[1], l->nll ? 1 : 2);
    ls_emit_launch(k, part, 2);
}

void ls_loss_lse(const LsLossText *l)
{
    const LsGrid part = ls_loss_grid(l);
    int axis[LS_NEST_AXES];
    for (int a = 0; a < l->n->naxis; a++)
        axis[a] = a;
    ls_emit_part(l->k, &part);
    ls_emit_operand(l->k, "x", 0);
    ls_emit_result(l->k, "lse", 0);
    ls_emit_line(l->e, "LS_ROWS(p, lo * " LS_N64 ", ls_least(hi * " LS_N64 ", " LS_N64 ")) {",
                 l->group, l->group, l->points);
    ls_nest_decode(l->e, l->n, "p", l->n->naxis, axis);
    stage_row(l);
    row_lse(l);
    ls_emit_line(l->e, "lse[%s] = z;", ls_loss_offset(l, LS_LOSS_LSE));
    ls_emit_close(l->e, 2);
    ls_emit_launch(l->k, &part, 1);
}

/* A unit that the positions before have begun goes on with their sums: on CPUs alone, where one
 * thread adds those of a unit up in their order. */
void ls_loss_part(const LsLossText *l)
{
    enum { STATE = 4 };
    const LsKernelText *k = l->k;
    const LsGrid part = ls_loss_grid(l);
    const int nin = k->g->node[k->n.i].nin;
    ls_emit_part(k, &part);
    ls_loss_pointers(l);
    if (!l->nll)
        ls_emit_operand(k, "lse", 3);
    ls_emit_line(l->e, "double *const part = arg[%d];", nin);
    ls_loss_open_group(l);
    ls_loss_label(l);
    if (l->at->smoothing != 0) {
        stage_row(l);
        row_mix(l);
    }
    if (!l->nll)
        ls_emit_line(l->e, "const real z = lse[%s];", ls_loss_offset(l, LS_LOSS_LSE));
    add_position(l, "");
    ls_emit_line(l->e, "}");
    ls_emit_line(l->e, "part[2 * unit] = sums[0];");
    ls_emit_line(l->e, "part[2 * unit + 1] = sums[1];");
    ls_emit_close(l->e, 2);
    ls_emit_launch_state(k, &part, nin > STATE ? STATE : -1);
}

void ls_loss_end(const LsKernelText *k)
{
    const LsLossText l = {.k = k, .e = k->e, .at = &k->g->node[k->n.i].attr.loss,
                          .units = ls_count(ls_in_shape(k->g, k->n, 0)) / 2};
    const LsGrid part = {"end", 1, LS_TOTAL_LANES, 1};
    end_part(&l, &part, 1);
    ls_emit_launch(k, &part, 1);
}

static void sums_group(const LsLossText *l)
{
    LsEmit *e = l->e;
    const bool each = ls_loss_label_operand(l) > 0;
    ls_loss_open_group(l);
    ls_loss_label(l);
    ls_emit_line(e, "LS_LEAD {");
    ls_emit_line(e, "sums[0] += %s%s%s;", each ? "(double)x[" : "0",
                 each ? ls_loss_offset(l, LS_LOSS_SCORES) : "", each ? "]" : "");
    ls_emit_line(e, "sums[1] += in ? %s : 0;", l->weight >= 0 ? "weight[t]" : "1");
    ls_emit_close(e, 2);
    fold_group(l);
}

void ls_loss_sums(const LsLossText *l)
{
    const LsKernelText *k = l->k;
    LsEmit *e = l->e;
    const bool each = ls_loss_label_operand(l) > 0;
    const LsGrid part[2] = {ls_loss_grid(l), {"end", 1, LS_TOTAL_LANES, 1}};
    ls_emit_part(k, &part[0]);
    ls_loss_pointers(l);
    ls_emit_workspace(k, "double", "part");
    sums_group(l);
    ls_emit_line(e, "part[2 * u] = sum;");
    ls_emit_line(e, "part[2 * u + 1] = count;");
    ls_emit_close(e, 3);
    ls_emit_part(k, &part[1]);
    ls_emit_workspace(k, "const double", "part");
    if (each)
        ls_emit_operand(k, "wsum", 3);
    ls_emit_result(k, each ? "loss" : "wsum", 0);
    ls_emit_totals(k, 2, l->units);
    ls_emit_line(e, "LS_ONE {");
    ls_emit_line(e, "(void)total%d;", each);
    ls_emit_line(e, each ? "loss[0] = (real)(wsum[0] != 0 ? total0 / (double)wsum[0] : total0);"
                         : "wsum[0] = (real)total1;");
    ls_emit_close(e, 2);
    ls_emit_launch(k, part, 2);
}
