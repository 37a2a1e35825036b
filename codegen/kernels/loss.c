/* codegen/kernels/loss.c -- LS_K_LOSS: cross-entropy, negative log-likelihood and their gradients.
 * compiler/ops/loss.def has the formulas.
 *
 * Positions are walked as the scores lie. Where the classes of a position are one run
 * (channels-last, or a matrix) a unit is a group of positions; elsewhere positions lie side by side
 * and a unit is a tile of them. Forward, every unit leaves its sum of losses and of weights in the
 * workspace; a second part adds them in order. A label that is no class and not ignored makes the
 * loss NaN and has gradient 0. */
#include "codegen/kernels/loss.h"

#include "codegen/kernels/move.h"

#include <inttypes.h>

enum { TILE = 128 };        /* positions side by side */
enum { SCORES, LABELS, LSE, EACH, TENSORS };    /* tensors of the nest */

typedef struct Loss {
    const LsKernelText *k;
    LsEmit *e;
    const LsLossAttr *at;
    LsNest *n;              /* positions */
    bool nll, grad;
    int weight;             /* operand; -1: all 1 */
    int64_t classes, stride, lanes;
    bool runs;              /* the classes of a position are one run */
    int64_t points, group;  /* positions; positions of a unit */
    int64_t inner;          /* not runs: positions side by side */
    int64_t units;
    const char *valid;      /* condition on the sample, NULL: none */
    const char *classes_text, *plain, *smooth;      /* C; 1 - smoothing; smoothing / C */
} Loss;

static const char *number(const Loss *l, double v)
{
    return ls_literal(l->k->g->arena, LS_REAL, v, 0, l->k->target->real_bytes);
}

static LsValueId scores_of(const LsGraph *g, LsNodeId n)
{
    switch (g->node[n.i].op) {
    case LS_OP_XENT_GRAD: return ls_in(g, n, 1);
    case LS_OP_NLL_GRAD:  return ls_out(g, n, 0);
    default:              return ls_in(g, n, 0);
    }
}

/* Strides over the scores' axes of a tensor that may lack the class axis. */
static void place(const Loss *l, const LsShape *space, LsLayout walk, int tensor, LsValueId v)
{
    const LsValue *x = &l->k->g->value[v.i];
    int64_t own[LS_MAX_RANK], stride[LS_MAX_RANK] = {0};
    if (!ls_is(v) || x->shape.rank == 0)
        return;
    ls_strides(&x->shape, x->layout, own);
    bool lacks = x->shape.rank < space->rank;
    for (int a = 0; a < space->rank; a++)
        if (a != l->at->axis)
            stride[a] = own[lacks && a > l->at->axis ? a - 1 : a];
    ls_nest_tensor(l->n, space, walk, tensor, stride);
}

static void positions(Loss *l)
{
    const LsGraph *g = l->k->g;
    LsNodeId n = l->k->n;
    LsValueId scores = scores_of(g, n);
    const LsValue *x = &g->value[scores.i];
    LsShape space = x->shape;
    int64_t own[LS_MAX_RANK];
    ls_strides(&space, x->layout, own);
    l->classes = space.dim[l->at->axis];
    l->stride = own[l->at->axis];
    l->runs = l->stride == 1 || l->classes == 1;
    space.dim[l->at->axis] = 1;
    l->n = ls_nest_new(g, &space, x->layout, TENSORS);
    l->n->alone[0] = true;
    bool each = l->at->reduction == LS_LOSS_EACH;
    place(l, &space, x->layout, SCORES, scores);
    place(l, &space, x->layout, LABELS, ls_in(g, n, l->nll && l->grad ? 1 : l->grad ? 2 : 1));
    if (!l->nll)
        place(l, &space, x->layout, LSE, l->grad ? ls_in(g, n, 4) : ls_out(g, n, 1));
    if (each)
        place(l, &space, x->layout, EACH, l->grad ? ls_in(g, n, 0) : ls_out(g, n, 0));
    ls_nest_merge(l->n);
    int64_t rows = space.dim[0];
    if (rows % g->batch == 0)
        l->valid = ls_arena_printf(g->arena, "%s / %" PRId64 " < run->valid", l->n->var[0],
                                   rows / g->batch);
}

static Loss loss_new(const LsGraph *g, LsNodeId n, const LsKernelText *k)
{
    const LsNode *node = &g->node[n.i];
    Loss l = {.k = k, .e = k->e, .at = &node->attr.loss};
    l.nll = node->op == LS_OP_NLL || node->op == LS_OP_NLL_GRAD;
    l.grad = node->op == LS_OP_XENT_GRAD || node->op == LS_OP_NLL_GRAD;
    int weight = !l.grad || l.nll ? 2 : 3;
    l.weight = ls_is(ls_in(g, n, weight)) ? weight : -1;
    positions(&l);
    l.lanes = ls_lanes(l.classes);
    l.points = ls_nest_count(l.n);
    if (l.runs || l.nll) {
        l.group = ls_row_group(k, l.nll ? 1 : l.classes);
        l.units = ls_ceil_div(l.points, l.group);
    } else {
        l.inner = l.n->size[l.n->naxis - 1];
        l.units = l.points / l.inner * ls_ceil_div(l.inner, TILE);
    }
    l.classes_text = ls_arena_printf(g->arena, "%" PRId64, l.classes);
    l.plain = number(&l, 1 - l.at->smoothing);
    l.smooth = number(&l, l.at->smoothing / (double)l.classes);
    return l;
}

static const char *offset(const Loss *l, int tensor)
{
    return ls_nest_offset(l->n, tensor, 0, l->n->naxis);
}

/* ---- loops over positions ---- */
/* Positions that the loops over classes go by rows (or, where there are none, one by one), or side
 * by side. */
static LsGrid grid(const Loss *l)
{
    if (l->runs || l->nll)
        return ls_rows_grid("part", l->points, l->group, l->nll ? 1 : l->classes);
    return (LsGrid){"part", l->units, TILE, 1};
}

/* Unit u, then its positions p with their indices. Two braces. */
static void open_group(const Loss *l)
{
    int axis[LS_NEST_AXES];
    for (int a = 0; a < l->n->naxis; a++)
        axis[a] = a;
    ls_emit_line(l->e, "for (int64_t u = lo; u < hi; u++) {");
    if (!l->grad) {
        ls_emit_line(l->e, "LS_LOCAL_ROWS(double, sums, 2, %d);", grid(l).y);
        ls_emit_line(l->e, "LS_LEAD {");
        ls_emit_line(l->e, "sums[0] = sums[1] = 0;");
        ls_emit_line(l->e, "}");
    }
    ls_emit_line(l->e, "LS_ROWS(p, u * %" PRId64 ", ls_least((u + 1) * %" PRId64 ", %" PRId64
                 ")) {", l->group, l->group, l->points);
    ls_nest_decode(l->e, l->n, "p", l->n->naxis, axis);
}

/* Unit u, a tile of positions i0 .. i1. One brace. */
static void open_tile(const Loss *l)
{
    int axis[LS_NEST_AXES], last = l->n->naxis - 1;
    int64_t ntile = ls_ceil_div(l->inner, TILE);
    for (int a = 0; a < last; a++)
        axis[a] = a;
    ls_emit_line(l->e, "for (int64_t u = lo; u < hi; u++) {");
    ls_nest_decode(l->e, l->n, ls_arena_printf(l->n->arena, "u / %" PRId64, ntile), last, axis);
    ls_emit_line(l->e,
                 "const int64_t i0 = u %% %" PRId64 " * %d, i1 = ls_least(i0 + %d, %" PRId64 ");",
                 ntile, TILE, TILE, l->inner);
}

static void open_columns(const Loss *l)
{
    ls_emit_line(l->e, "LS_LANES(i, i0, i1) {");
}

static void open_classes(const Loss *l)
{
    ls_emit_line(l->e, "for (int64_t c = 0; c < %" PRId64 "; c++) {", l->classes);
    open_columns(l);
    ls_emit_line(l->e, "const real v = x[%s + c * %" PRId64 "];", offset(l, SCORES), l->stride);
}

static void run_classes(const Loss *l)
{
    ls_emit_line(l->e, "%s(c, 0, %" PRId64 ") {", ls_lanes_word(l->classes % 4 == 0), l->classes);
}

/* t is the label; the condition that the position counts (`in`: and is a class). */
static void label(const Loss *l)
{
    const char *ignore =
        l->at->has_ignore ? ls_arena_printf(l->n->arena, "t != %" PRId64, l->at->ignore) : NULL;
    ls_emit_line(l->e, "const int64_t t = label[%s];", offset(l, LABELS));
    ls_emit_line(l->e, "const bool counts = %s%s%s;",
                 l->valid != NULL ? l->valid
                 : ignore != NULL ? ""
                                  : "true",
                 l->valid != NULL && ignore != NULL ? " && " : "", ignore != NULL ? ignore : "");
    ls_emit_line(l->e, "const bool in = counts && t >= 0 && t < %" PRId64 ";", l->classes);
}

static void pointers(const Loss *l)
{
    const LsKernelText *k = l->k;
    int scores = l->grad && !l->nll ? 1 : 0;
    if (!(l->grad && l->nll))
        ls_emit_operand(k, "x", scores);
    ls_emit_operand(k, "label", l->grad && !l->nll ? 2 : 1);
    if (l->weight >= 0)
        ls_emit_operand(k, "weight", l->weight);
    if (l->weight >= 0 && l->at->smoothing != 0)
        ls_emit_line(l->e, "const double all = ls_row_sum(weight, %" PRId64 ", %" PRId64 ");",
                     l->classes, l->lanes);
}

/* ---- forward ---- */
/* Loss of the position from its score, the log z of the exponentials' sum and the smoothing's sum
 * `mix`, and what it adds. */
static void add_position(const Loss *l, const char *at)
{
    LsEmit *e = l->e;
    const char *score =
        ls_arena_printf(l->n->arena, "x[%s + t * %" PRId64 "]", offset(l, SCORES), l->stride);
    const char *w = l->weight >= 0 ? "weight[t]" : "1";
    ls_emit_line(e, "double loss = counts ? (double)NAN : 0;");
    ls_emit_line(e, "if (in) {");
    if (l->nll)
        ls_emit_line(e, "loss = -(double)(%s * %s);", w, score);
    else if (l->at->smoothing == 0)
        ls_emit_line(e, "loss = (double)(%s * (z - %s));", w, score);
    else
        ls_emit_line(e, "loss = (double)(%s * %s * (z - %s)) + %s * (%s * (double)z - mix);",
                     l->plain, w, score, l->smooth, l->weight >= 0 ? "all" : l->classes_text);
    ls_emit_line(e, "}");
    ls_emit_line(e, "sums[%s0] += loss;", at);
    ls_emit_line(e, "sums[%s1] += in ? %s : 0;", at, w);
    if (l->at->reduction == LS_LOSS_EACH)
        ls_emit_line(e, "each[%s] = (real)loss;", offset(l, EACH));
}

static void forward_group(const Loss *l)
{
    LsEmit *e = l->e;
    open_group(l);
    label(l);
    if (!l->nll) {
        ls_emit_line(e, "const real *const row = x + %s;", offset(l, SCORES));
        ls_emit_line(e, "const real max = ls_row_max(row, %" PRId64 ", %" PRId64 ");", l->classes,
                     l->lanes);
        ls_emit_line(
            e, "const real z = max + ls_log((real)ls_row_exp(row, max, %" PRId64 ", %" PRId64 "));",
            l->classes, l->lanes);
        if (l->at->smoothing != 0 && l->weight >= 0)
            ls_emit_line(e, "const double mix = ls_row_dot(weight, row, %" PRId64 ", %" PRId64 ");",
                         l->classes, l->lanes);
        else if (l->at->smoothing != 0)
            ls_emit_line(e, "const double mix = ls_row_sum(row, %" PRId64 ", %" PRId64 ");",
                         l->classes, l->lanes);
    }
    ls_emit_line(e, "LS_LEAD {");
    if (!l->nll)
        ls_emit_line(e, "lse[%s] = z;", offset(l, LSE));
    add_position(l, "");
    ls_emit_close(e, 2);
    ls_emit_line(e, "LS_SYNC;");
    ls_emit_line(e, "LS_ONE {");
    ls_emit_line(e, "double sum = sums[0], count = sums[1];");
    ls_emit_line(e, "LS_FOLD(k, %d) {", grid(l).y);
    ls_emit_line(e, "sum += LS_OF_ROW(sums, k)[0];");
    ls_emit_line(e, "count += LS_OF_ROW(sums, k)[1];");
    ls_emit_line(e, "}");
}

static void forward_tile(const Loss *l)
{
    LsEmit *e = l->e;
    bool mix = l->at->smoothing != 0;
    open_tile(l);
    ls_emit_line(e, "LS_LOCAL(double, sums, 2 * %d);", TILE);
    ls_emit_line(e, "LS_LOCAL(real, max, %d);", TILE);
    ls_emit_line(e, "LS_LOCAL(double, total, %d);", TILE);
    if (mix)
        ls_emit_line(e, "LS_LOCAL(double, mixed, %d);", TILE);
    open_columns(l);
    ls_emit_line(e, "sums[2 * (i - i0)] = sums[2 * (i - i0) + 1] = 0;");
    ls_emit_line(e, "max[i - i0] = -INFINITY;");
    ls_emit_line(e, "total[i - i0] = 0;");
    if (mix)
        ls_emit_line(e, "mixed[i - i0] = 0;");
    ls_emit_line(e, "}");
    open_classes(l);
    ls_emit_line(e, "max[i - i0] = ls_max(max[i - i0], v);");
    ls_emit_close(e, 2);
    open_classes(l);
    ls_emit_line(e, "total[i - i0] += ls_exp(v - max[i - i0]);");
    if (mix)
        ls_emit_line(e, "mixed[i - i0] += %sv;", l->weight >= 0 ? "weight[c] * " : "");
    ls_emit_close(e, 2);
    open_columns(l);
    label(l);
    ls_emit_line(e, "const real z = max[i - i0] + ls_log((real)total[i - i0]);");
    ls_emit_line(e, "lse[%s] = z;", offset(l, LSE));
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

void ls_emit_totals(const LsKernelText *k, int n, int64_t units)
{
    LsEmit *e = k->e;
    ls_emit_line(e, "LS_LOCAL(double, sums, %d);", n * LS_TOTAL_LANES);
    ls_emit_line(e, "LS_LANES(l, 0, %d) {", LS_TOTAL_LANES);
    for (int q = 0; q < n; q++)
        ls_emit_line(e, "sums[%d * l + %d] = 0;", n, q);
    ls_emit_line(e, "for (int64_t u = l; u < %" PRId64 "; u += %d) {", units, LS_TOTAL_LANES);
    for (int q = 0; q < n; q++)
        ls_emit_line(e, "sums[%d * l + %d] += part[%d * u + %d];", n, q, n, q);
    ls_emit_close(e, 2);
    ls_emit_line(e, "LS_SYNC;");
    for (int q = 0; q < n; q++)
        ls_emit_line(e, "double total%d = 0;", q);
    ls_emit_line(e, "LS_ONE for (int64_t l = 0; l < %d; l++) {", LS_TOTAL_LANES);
    for (int q = 0; q < n; q++)
        ls_emit_line(e, "total%d += sums[%d * l + %d];", q, n, q);
    ls_emit_line(e, "}");
}

static void end_part(const Loss *l, const LsGrid *part)
{
    LsEmit *e = l->e;
    ls_emit_part(l->k, part);
    ls_emit_workspace(l->k, "const double", "part");
    if (l->at->reduction != LS_LOSS_EACH)
        ls_emit_result(l->k, "loss", 0);
    ls_emit_result(l->k, "wsum", l->nll ? 1 : 2);
    ls_emit_totals(l->k, 2, l->units);
    ls_emit_line(e, "LS_ONE {");
    ls_emit_line(e, "wsum[0] = (real)total1;");
    if (l->at->reduction == LS_LOSS_EACH)
        ls_emit_line(e, "(void)total0;");
    else
        ls_emit_line(e, "loss[0] = (real)%s;", l->at->reduction == LS_LOSS_MEAN
                     ? "(total1 != 0 ? total0 / total1 : total0)" : "total0");
    ls_emit_close(e, 2);
}

static void forward(const Loss *l)
{
    const LsKernelText *k = l->k;
    const LsGrid part[2] = {grid(l), {"end", 1, LS_TOTAL_LANES, 1}};
    ls_emit_part(k, &part[0]);
    pointers(l);
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
    end_part(l, &part[1]);
    ls_emit_launch(k, part, 2);
}

/* ---- gradients ---- */
/* dloss of the position times its weight and 1 - smoothing (`pick`), and the even share of all. */
static void factors(const Loss *l)
{
    LsEmit *e = l->e;
    const char *w = l->weight >= 0 ? " * weight[t]" : "";
    if (l->at->reduction == LS_LOSS_EACH)
        ls_emit_line(e, "const real scale = dloss[%s];", offset(l, EACH));
    if (l->at->smoothing == 0 || l->nll) {
        ls_emit_line(e, "const real pick = in ? scale%s : 0;", w);
        return;
    }
    ls_emit_line(e, "const real pick = in ? scale * %s%s : 0;", l->plain, w);
    ls_emit_line(e, "const real even = in ? scale * %s : 0;", l->smooth);
}

/* What the softmax is multiplied with. */
static const char *factor(const Loss *l)
{
    if (l->at->smoothing == 0)
        return "pick";
    return l->weight >= 0 ? "pick + even * (real)all"
                          : ls_arena_printf(l->n->arena, "pick + even * %" PRId64, l->classes);
}

static const char *even_part(const Loss *l, const char *even)
{
    if (l->at->smoothing == 0)
        return "";
    return ls_arena_printf(l->n->arena, " - %s%s", even, l->weight >= 0 ? " * weight[c]" : "");
}

static void grad_group(const Loss *l)
{
    LsEmit *e = l->e;
    open_group(l);
    label(l);
    factors(l);
    ls_emit_line(e, "const real *const row = x + %s;", offset(l, SCORES));
    ls_emit_line(e, "real *const to = dx + %s;", offset(l, SCORES));
    ls_emit_line(e, "if (!in) {");
    run_classes(l);
    ls_emit_line(e, "to[c] = 0;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "continue;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "const real z = lse[%s], by = %s;", offset(l, LSE), factor(l));
    run_classes(l);
    ls_emit_line(e, "to[c] = ls_exp(row[c] - z) * by%s;", even_part(l, "even"));
    ls_emit_line(e, "}");
    ls_emit_line(e, "LS_ROW_SYNC;");
    ls_emit_line(e, "LS_LEAD {");
    ls_emit_line(e, "to[t * %" PRId64 "] -= pick;", l->stride);
    ls_emit_close(e, 4);
}

static void grad_tile(const Loss *l)
{
    LsEmit *e = l->e;
    bool smooth = l->at->smoothing != 0;
    const char *at = offset(l, SCORES);
    open_tile(l);
    ls_emit_line(e, "LS_LOCAL(real, by, %d);", TILE);
    ls_emit_line(e, "LS_LOCAL(real, z, %d);", TILE);
    if (smooth)
        ls_emit_line(e, "LS_LOCAL(real, evens, %d);", TILE);
    ls_emit_line(e, "LS_LOCAL(uint8_t, live, %d);", TILE);
    open_columns(l);
    label(l);
    factors(l);
    ls_emit_line(e, "live[i - i0] = in;");
    ls_emit_line(e, "z[i - i0] = lse[%s];", offset(l, LSE));
    ls_emit_line(e, "by[i - i0] = %s;", factor(l));
    if (smooth)
        ls_emit_line(e, "evens[i - i0] = even;");
    ls_emit_line(e, "}");
    open_classes(l);
    ls_emit_line(e, "const real d = ls_exp(v - z[i - i0]) * by[i - i0]%s;",
                 even_part(l, "evens[i - i0]"));
    ls_emit_line(e, "dx[%s + c * %" PRId64 "] = live[i - i0] ? d : 0;", at, l->stride);
    ls_emit_close(e, 2);
    open_columns(l);
    label(l);
    factors(l);
    if (smooth)
        ls_emit_line(e, "(void)even;");
    ls_emit_line(e, "if (in)");
    ls_emit_line(e, "    dx[%s + t * %" PRId64 "] -= pick;", at, l->stride);
    ls_emit_close(e, 3);
}

/* Zeros, then one element per position. */
static void grad_scatter(const Loss *l)
{
    open_group(l);
    label(l);
    factors(l);
    ls_emit_line(l->e, "if (in)");
    ls_emit_line(l->e, "    dx[%s + t * %" PRId64 "] = -pick;", offset(l, SCORES), l->stride);
    ls_emit_close(l->e, 3);
}

static void backward(const Loss *l)
{
    const LsKernelText *k = l->k;
    LsGrid part[2];
    int n = 0;
    if (l->nll)
        part[n++] = ls_fill_part(k, 0);
    part[n] = grid(l);
    ls_emit_part(k, &part[n++]);
    pointers(l);
    ls_emit_operand(k, "dloss", 0);
    if (!l->nll)
        ls_emit_operand(k, "lse", 4);
    ls_emit_result(k, "dx", 0);
    if (l->at->reduction == LS_LOSS_MEAN) {
        ls_emit_operand(k, "wsum", l->nll ? 3 : 5);
        ls_emit_line(l->e, "const real scale = wsum[0] != 0 ? dloss[0] / wsum[0] : 0;");
    } else if (l->at->reduction == LS_LOSS_SUM) {
        ls_emit_line(l->e, "const real scale = dloss[0];");
    }
    (l->nll ? grad_scatter : l->runs ? grad_group : grad_tile)(l);
    ls_emit_launch(k, part, n);
}

static void loss_emit(const LsKernelText *k)
{
    switch (k->g->node[k->n.i].op) {
    case LS_OP_REGRESSION_LOSS: ls_regression_emit(k); return;
    case LS_OP_REGRESSION_GRAD: ls_regression_grad_emit(k); return;
    default: break;
    }
    const Loss l = loss_new(k->g, k->n, k);
    if (l.grad)
        backward(&l);
    else
        forward(&l);
}

static int64_t loss_workspace(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    LsKernelText k = {.g = g, .n = n, .target = t};
    switch (g->node[n.i].op) {
    case LS_OP_REGRESSION_LOSS: return ls_regression_units(g, n) * (int64_t)sizeof(double);
    case LS_OP_XENT: case LS_OP_NLL: return loss_new(g, n, &k).units * 2 * (int64_t)sizeof(double);
    default: return 0;
    }
}

const LsEmitter ls_emitter_loss = {.emit = loss_emit, .workspace = loss_workspace};
