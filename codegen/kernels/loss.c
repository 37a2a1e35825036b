/* codegen/kernels/loss.c -- LS_K_LOSS: cross-entropy, negative log-likelihood and their gradients.
 * compiler/ir/loss.def has the formulas.
 *
 * Positions are walked in the order of the scores in memory. If the classes of a position are
 * contiguous (channels-last, or a matrix), a unit is a group of positions; otherwise positions lie
 * side by side and a unit is a tile of them. Forward, every unit leaves its partial sums of losses
 * and weights in the workspace, and a second part adds these in order. A label that is neither a
 * class nor ignored makes the loss NaN and has gradient 0. */
#include "codegen/kernels/loss_backward.h"
#include "codegen/kernels/loss_forward.h"
#include "codegen/kernels/loss_text.h"
#include "codegen/kernels/regression.h"

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

/* Sets the strides, over the scores' axes, of a tensor that may lack the class axis. */
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

static LsValueId lse_of(const LsLossText *l)
{
    const LsGraph *g = l->k->g;
    const LsNodeId n = l->k->n;
    return l->grad                                ? ls_in(g, n, 4)
           : l->state                             ? ls_in(g, n, 3)
           : g->node[n.i].op == LS_OP_XENT_LSE ? ls_out(g, n, 0)
                                                  : ls_out(g, n, 1);
}

/* Of a tile: where its positions are among all, of whose labels it reads its own. */
static void find_place(LsLossText *l, const LsShape *space)
{
    const LsGraph *g = l->k->g;
    const LsTilePlace *of = g->node[l->k->n.i].tile;
    const LsValue *labels = &g->value[ls_in(g, l->k->n, ls_loss_label_operand(l)).i];
    int64_t own[LS_MAX_RANK];
    l->points = ls_nest_count(l->n);
    if (of == NULL || g->node[l->k->n.i].op == LS_OP_XENT_LSE)
        return;
    ls_strides(&labels->shape, labels->layout, own);
    l->before = of->first * (l->points / space->dim[of->axis]);
    l->label_at = of->first * own[of->axis > l->at->axis ? of->axis - 1 : of->axis];
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
    if (l->sums) {
        l->classes = l->width = l->at->nclass;
        l->stride = 1;
        l->runs = true;
    } else {
        l->classes = x->columns > 0 ? x->columns : space.dim[l->at->axis];
        l->width = space.dim[l->at->axis];
        l->stride = own[l->at->axis];
        l->runs = l->stride == 1 || l->classes == 1;
        space.dim[l->at->axis] = 1;
    }
    l->n = ls_nest_new(g, &space, x->layout, LS_LOSS_TENSORS);
    l->n->alone[0] = true;
    bool each = l->at->reduction == LS_LOSS_EACH;
    place(l, &space, x->layout, LS_LOSS_SCORES, scores);
    place(l, &space, x->layout, LS_LOSS_LABELS, ls_in(g, n, ls_loss_label_operand(l)));
    if (!l->nll && !l->sums)
        place(l, &space, x->layout, LS_LOSS_LSE, lse_of(l));
    if (each)
        place(l, &space, x->layout, LS_LOSS_AT_EACH, l->grad ? ls_in(g, n, 0) : ls_out(g, n, 0));
    ls_nest_merge(l->n);
    find_place(l, &space);
    const int64_t rows = l->at->rows > 0 ? l->at->rows : space.dim[0];
    const char *row = l->n->var[0];
    if (l->at->first > 0)
        row = ls_arena_printf(g->arena, "(%s + " LS_N64 ")", row, l->at->first);
    if (rows % g->batch == 0)
        l->valid = ls_arena_printf(g->arena, "%s / " LS_N64 " < run->valid", row, rows / g->batch);
}

static LsLossText loss_new(const LsGraph *g, LsNodeId n, const LsKernelText *k)
{
    const LsNode *node = &g->node[n.i];
    LsLossText l = {.k = k, .e = k->e, .at = &node->attr.loss};
    l.nll = node->op == LS_OP_NLL || node->op == LS_OP_NLL_GRAD;
    l.grad = node->op == LS_OP_XENT_GRAD || node->op == LS_OP_NLL_GRAD;
    l.sums = node->op == LS_OP_XENT_SUM || node->op == LS_OP_LABEL_WEIGHT;
    l.state = node->op == LS_OP_XENT_PART;
    l.nll |= l.state && !ls_is(ls_in(g, n, 3));
    int weight = node->op == LS_OP_LABEL_WEIGHT ? 1 : !l.grad || l.nll ? 2 : 3;
    l.weight = ls_is(ls_in(g, n, weight)) ? weight : -1;
    l.some = l.grad && ls_is(ls_in(g, n, LS_LOSS_CLASS_AT));
    positions(&l);
    l.all = l.some ? l.at->nclass : l.classes;
    l.lanes = ls_lanes(l.classes);
    if (l.runs || l.nll) {
        l.group = ls_row_group(k, l.nll ? 1 : l.classes);
        l.first = l.before / l.group;
        l.units = ls_ceil_div(l.before + l.points, l.group) - l.first;
    } else {
        l.inner = l.n->size[l.n->naxis - 1];
        l.units = l.points / l.inner * ls_ceil_div(l.inner, LS_LOSS_TILE);
    }
    l.classes_text = ls_arena_printf(g->arena, "%" PRId64, l.classes);
    l.plain = number(&l, 1 - l.at->smoothing);
    l.smooth = number(&l, l.at->smoothing / (double)l.all);
    return l;
}

static void loss_emit(const LsKernelText *k)
{
    switch (k->g->node[k->n.i].op) {
    case LS_OP_REGRESSION_LOSS: ls_regression_emit(k); return;
    case LS_OP_REGRESSION_GRAD: ls_regression_grad_emit(k); return;
    case LS_OP_XENT_END:        ls_loss_end(k); return;
    default: break;
    }
    const LsLossText l = loss_new(k->g, k->n, k);
    if (l.sums)
        ls_loss_sums(&l);
    else if (l.state)
        ls_loss_part(&l);
    else if (k->g->node[k->n.i].op == LS_OP_XENT_LSE)
        ls_loss_lse(&l);
    else if (l.grad)
        ls_loss_backward(&l);
    else
        ls_loss_forward(&l);
}

static int64_t loss_workspace(const LsGraph *g, LsNodeId n, const LsTarget *t)
{
    LsKernelText k = {.g = g, .n = n, .target = t};
    switch (g->node[n.i].op) {
    case LS_OP_REGRESSION_LOSS: return ls_regression_units(g, n) * (int64_t)sizeof(double);
    case LS_OP_XENT: case LS_OP_NLL: case LS_OP_XENT_SUM: case LS_OP_LABEL_WEIGHT:
        return loss_new(g, n, &k).units * 2 * (int64_t)sizeof(double);
    default: return 0;
    }
}

bool ls_loss_may_go_on(const LsGraph *g, LsNodeId n, const LsTarget *t, int64_t *elements)
{
    const LsKernelText k = {.g = g, .n = n, .target = t};
    if (t->kind != LS_TARGET_CPU || g->node[n.i].attr.loss.reduction == LS_LOSS_EACH
        || g->node[n.i].attr.loss.rows > 0)
        return false;
    const LsLossText l = loss_new(g, n, &k);
    *elements = 2 * l.units;
    return l.runs;
}

const LsEmitter ls_emitter_loss = {.emit = loss_emit, .workspace = loss_workspace};
