/* codegen/kernels/regression.c -- mean squared, absolute, logistic and other losses of a target,
 * and their gradients.
 *
 * Both operands have the same layout with the samples outermost, so the elements that count are a
 * prefix. Its length is known when the step runs. */
#include "codegen/kernels/regression.h"

#include "codegen/kernels/loss_text.h"

#include <inttypes.h>

enum { BLOCK = 8192, LANES = 256 };     /* elements of a unit; accumulators */

static int64_t count_of(const LsGraph *g, LsNodeId n)
{
    return ls_count(ls_in_shape(g, n, g->node[n.i].op == LS_OP_REGRESSION_GRAD ? 1 : 0));
}

int64_t ls_regression_units(const LsGraph *g, LsNodeId n)
{
    return ls_ceil_div(count_of(g, n), BLOCK);
}

/* Of the gradient of some rows or samples (LsNode.tile): declares `all`, the elements of valid
 * samples, and `count`, those among the node's. */
static void count_some(const LsKernelText *k)
{
    const LsTilePlace *of = k->g->node[k->n.i].tile;
    const LsShape *s = ls_in_shape(k->g, k->n, 1);
    const int64_t some = ls_count(s), row = some / s->dim[of->axis];
    const int64_t each = of->axis > 0 ? row * of->of : some / s->dim[0];
    ls_emit_line(k->e, "const int64_t all = run->valid * " LS_N64 ";", each);
    ls_emit_line(k->e, "const int64_t count = ls_most(ls_least(all - " LS_N64 ", " LS_N64 "), 0);",
                 of->first * row, some);
}

/* Declares `count`, the elements of valid samples. */
static void valid_count(const LsKernelText *k)
{
    const LsShape *s =
        ls_in_shape(k->g, k->n, k->g->node[k->n.i].op == LS_OP_REGRESSION_GRAD ? 1 : 0);
    int64_t n = ls_count(s);
    if (s->rank > 0 && s->dim[0] % k->g->batch == 0)
        ls_emit_line(k->e, "const int64_t count = ls_least(" LS_N64 ", run->valid * " LS_N64 ");",
                     n, n / k->g->batch);
    else
        ls_emit_line(k->e, "const int64_t count = %" PRId64 ";", n);
}

/* A constant of the node's precision. */
static const char *edge_text(const LsKernelText *k, double edge)
{
    return ls_arena_printf(k->g->arena, "LS_R(%.17g)", edge);
}

static const char *term(const LsKernelText *k)
{
    const LsLossAttr *at = &k->g->node[k->n.i].attr.loss;
    const char *edge = edge_text(k, at->edge);
    switch (at->regression) {
    case LS_REG_SQUARE: return "(y[i] - t[i]) * (y[i] - t[i])";
    case LS_REG_ABS:    return "ls_abs(y[i] - t[i])";
    case LS_REG_LOGIT:
        return "ls_max(y[i], LS_R(0)) - y[i] * t[i] + ls_log1p(ls_exp(-ls_abs(y[i])))";
    case LS_REG_SMOOTH:
        return ls_arena_printf(
            k->g->arena,
            "ls_abs(y[i] - t[i]) < %s ? LS_R(0.5) * (y[i] - t[i]) * (y[i] - t[i]) / %s "
            ": ls_abs(y[i] - t[i]) - LS_R(0.5) * %s",
            edge, edge, edge);
    case LS_REG_HUBER:
        return ls_arena_printf(
            k->g->arena,
            "ls_abs(y[i] - t[i]) < %s ? LS_R(0.5) * (y[i] - t[i]) * (y[i] - t[i]) "
            ": %s * (ls_abs(y[i] - t[i]) - LS_R(0.5) * %s)",
            edge, edge, edge);
    case LS_REG_KL:     return "(t[i] == 0 ? LS_R(0) : t[i] * ls_log(t[i])) - t[i] * y[i]";
    default:            return "y[i] - t[i]";
    }
}

/* The divisor of the sum: elements, or rows of dim 0. */
static const char *divisor(const LsKernelText *k)
{
    const LsNode *n = &k->g->node[k->n.i];
    const LsShape *s = ls_in_shape(k->g, k->n, n->op == LS_OP_REGRESSION_GRAD ? 1 : 0);
    if (n->tile != NULL)
        return n->attr.loss.regression != LS_REG_KL ? "(double)all" : "(double)run->valid";
    if (n->attr.loss.regression != LS_REG_KL)
        return "(double)count";
    return ls_arena_printf(k->g->arena, "(double)(count / " LS_N64 ")", ls_count(s) / s->dim[0]);
}

static void end_part(const LsKernelText *k, const LsGrid *end)
{
    ls_emit_part(k, end);
    ls_emit_workspace(k, "const double", "part");
    ls_emit_result(k, "loss", 0);
    valid_count(k);
    ls_emit_totals(k, 1, ls_regression_units(k->g, k->n));
    ls_emit_line(k->e, "LS_ONE {");
    ls_emit_line(k->e, "loss[0] = (real)(count != 0 ? total0 / %s : 0);", divisor(k));
    ls_emit_close(k->e, 2);
}

void ls_regression_emit(const LsKernelText *k)
{
    LsEmit *e = k->e;
    const LsGrid part[2] = {{"part", ls_regression_units(k->g, k->n), LANES, 1},
                            {"end", 1, LS_TOTAL_LANES, 1}};
    ls_emit_part(k, &part[0]);
    ls_emit_operand(k, "y", 0);
    ls_emit_operand(k, "t", 1);
    ls_emit_workspace(k, "double", "part");
    valid_count(k);
    ls_emit_line(e, "for (int64_t u = lo; u < hi; u++) {");
    ls_emit_line(e, "const int64_t end = ls_least((u + 1) * " LS_N ", count);", BLOCK);
    ls_emit_line(e, "LS_LOCAL(real, lane, %d);", LANES);
    ls_emit_line(e, "LS_LANES(l, 0, " LS_BOUND ")", LANES);
    ls_emit_line(e, "    lane[l] = 0;");
    ls_emit_line(e, "for (int64_t b = u * %d; b < end; b += %d) {", BLOCK, LANES);
    ls_emit_line(e, "LS_LANES(l, 0, ls_least(" LS_N ", end - b)) {", LANES);
    ls_emit_line(e, "const int64_t i = b + l;");
    ls_emit_line(e, "lane[l] += %s;", term(k));
    ls_emit_close(e, 2);
    ls_emit_line(e, "const double sum = ls_sum_lanes(lane, %d);", LANES);
    ls_emit_line(e, "LS_ONE {");
    ls_emit_line(e, "part[u] = sum;");
    ls_emit_close(e, 3);
    end_part(k, &part[1]);
    ls_emit_launch(k, part, 2);
}

static const char *slope(const LsKernelText *k)
{
    const LsLossAttr *at = &k->g->node[k->n.i].attr.loss;
    const char *edge = edge_text(k, at->edge);
    switch (at->regression) {
    case LS_REG_SQUARE: return "2 * (y[i] - t[i])";
    case LS_REG_ABS:    return "(real)((y[i] > t[i]) - (y[i] < t[i]))";
    case LS_REG_LOGIT:  return "(ls_sigmoid(y[i]) - t[i])";
    case LS_REG_SMOOTH:
        return ls_arena_printf(k->g->arena, "ls_min(ls_max((y[i] - t[i]) / %s, LS_R(-1)), LS_R(1))",
                               edge);
    case LS_REG_HUBER:
        return ls_arena_printf(k->g->arena, "ls_min(ls_max(y[i] - t[i], -%s), %s)", edge, edge);
    case LS_REG_KL:     return "-t[i]";
    default:            return "LS_R(1)";
    }
}

void ls_regression_grad_emit(const LsKernelText *k)
{
    LsEmit *e = k->e;
    int64_t n = count_of(k->g, k->n);
    const LsGrid part = ls_flat_grid(k, "part", n);
    ls_emit_part(k, &part);
    ls_emit_operand(k, "dloss", 0);
    /* slopes of linear losses read less */
    const LsRegression kind = k->g->node[k->n.i].attr.loss.regression;
    if (kind != LS_REG_KL && kind != LS_REG_LINEAR)
        ls_emit_operand(k, "y", 1);
    if (kind != LS_REG_LINEAR)
        ls_emit_operand(k, "t", 2);
    ls_emit_result(k, "dy", 0);
    if (k->g->node[k->n.i].tile != NULL)
        count_some(k);
    else
        valid_count(k);
    ls_emit_line(e, "const real scale = count != 0 ? (real)(dloss[0] / %s) : 0;", divisor(k));
    ls_emit_line(e, "const int64_t end = ls_least(hi * " LS_N64 ", " LS_N64 ");", ls_unit(k), n);
    ls_emit_line(e, "%s(i, lo * %" PRId64 ", end)", ls_lanes_word(ls_fours(n)), ls_unit(k));
    ls_emit_line(e, "    dy[i] = i < count ? scale * %s : 0;", slope(k));
    ls_emit_line(e, "}");
    ls_emit_launch(k, &part, 1);
}
