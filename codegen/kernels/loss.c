/* codegen/kernels/loss.c -- LS_K_LOSS: cross-entropy, negative log-likelihood and their gradients.
 * compiler/ir/loss.def has the formulas.
 *
 * Positions are walked as the scores lie. Where the classes of a position are one run
 * (channels-last, or a matrix) a unit is a group of positions; elsewhere positions lie side by side
 * and a unit is a tile of them. Forward, every unit leaves its sum of losses and of weights in the
 * workspace; a second part adds them in order. A label that is no class and not ignored makes the
 * loss NaN and has gradient 0. */
#include "codegen/kernels/loss.h"

#include <inttypes.h>

static const char *number(const LsLossText *l, double v)
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
static void place(const LsLossText *l, const LsShape *space, LsLayout walk, int tensor, LsValueId v)
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

static void positions(LsLossText *l)
{
    const LsGraph *g = l->k->g;
    LsNodeId n = l->k->n;
    LsValueId scores = scores_of(g, n);
    const LsValue *x = &g->value[scores.i];
    LsShape space = x->shape;
    int64_t own[LS_MAX_RANK];
    ls_strides(&space, x->layout, own);
    l->classes = x->columns > 0 ? x->columns : space.dim[l->at->axis];
    l->width = space.dim[l->at->axis];
    l->stride = own[l->at->axis];
    l->runs = l->stride == 1 || l->classes == 1;
    space.dim[l->at->axis] = 1;
    l->n = ls_nest_new(g, &space, x->layout, LS_LOSS_TENSORS);
    l->n->alone[0] = true;
    bool each = l->at->reduction == LS_LOSS_EACH;
    place(l, &space, x->layout, LS_LOSS_SCORES, scores);
    place(l, &space, x->layout, LS_LOSS_LABELS, ls_in(g, n, l->grad && !l->nll ? 2 : 1));
    if (!l->nll)
        place(l, &space, x->layout, LS_LOSS_LSE, l->grad ? ls_in(g, n, 4) : ls_out(g, n, 1));
    if (each)
        place(l, &space, x->layout, LS_LOSS_AT_EACH, l->grad ? ls_in(g, n, 0) : ls_out(g, n, 0));
    ls_nest_merge(l->n);
    int64_t rows = space.dim[0];
    if (rows % g->batch == 0)
        l->valid = ls_arena_printf(g->arena, "%s / " LS_N64 " < run->valid", l->n->var[0],
                                   rows / g->batch);
}

static LsLossText loss_new(const LsGraph *g, LsNodeId n, const LsKernelText *k)
{
    const LsNode *node = &g->node[n.i];
    LsLossText l = {.k = k, .e = k->e, .at = &node->attr.loss};
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
        l.units = l.points / l.inner * ls_ceil_div(l.inner, LS_LOSS_TILE);
    }
    l.classes_text = ls_arena_printf(g->arena, "%" PRId64, l.classes);
    l.plain = number(&l, 1 - l.at->smoothing);
    l.smooth = number(&l, l.at->smoothing / (double)l.classes);
    return l;
}

const char *ls_loss_offset(const LsLossText *l, int tensor)
{
    return ls_nest_offset(l->n, tensor, 0, l->n->naxis);
}

/* ---- loops over positions ---- */
LsGrid ls_loss_grid(const LsLossText *l)
{
    if (l->runs || l->nll)
        return ls_rows_grid("part", l->points, l->group, l->nll ? 1 : l->classes);
    return (LsGrid){"part", l->units, LS_LOSS_TILE, 1};
}

void ls_loss_open_group(const LsLossText *l)
{
    int axis[LS_NEST_AXES];
    for (int a = 0; a < l->n->naxis; a++)
        axis[a] = a;
    ls_emit_line(l->e, "for (int64_t u = lo; u < hi; u++) {");
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

void ls_loss_label(const LsLossText *l)
{
    const char *ignore =
        l->at->has_ignore ? ls_arena_printf(l->n->arena, "t != %" PRId64, l->at->ignore) : NULL;
    ls_emit_line(l->e, "const int64_t t = label[%s];", ls_loss_offset(l, LS_LOSS_LABELS));
    ls_emit_line(l->e, "const bool counts = %s%s%s;",
                 l->valid != NULL ? l->valid
                 : ignore != NULL ? ""
                                  : "true",
                 l->valid != NULL && ignore != NULL ? " && " : "", ignore != NULL ? ignore : "");
    ls_emit_line(l->e, "const bool in = counts && t >= 0 && t < %" PRId64 ";", l->classes);
}

void ls_loss_pointers(const LsLossText *l)
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

/* ---- the kernel ---- */
static void loss_emit(const LsKernelText *k)
{
    switch (k->g->node[k->n.i].op) {
    case LS_OP_REGRESSION_LOSS: ls_regression_emit(k); return;
    case LS_OP_REGRESSION_GRAD: ls_regression_grad_emit(k); return;
    default: break;
    }
    const LsLossText l = loss_new(k->g, k->n, k);
    if (l.grad)
        ls_loss_backward(&l);
    else
        ls_loss_forward(&l);
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
