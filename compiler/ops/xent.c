/* compiler/ops/xent.c -- softmax cross-entropy and negative log-likelihood over any number of
 * positions (see loss.def), ONNX SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss. */
#include "compiler/ops/row.h"

/* s without the class axis: the shape of the labels. */
static LsShape positions(const LsShape *s, int axis)
{
    LsShape p = {.rank = s->rank - 1};
    for (int k = 0; k < p.rank; k++)
        p.dim[k] = s->dim[k < axis ? k : k + 1];
    return p;
}

/* Checks that labels and class weights fit the logits. */
static bool operands_fit(LsCtx *cx, const LsGraph *g, LsNodeId n)
{
    const LsShape *x = ls_in_shape(g, n, 0), *t = ls_in_shape(g, n, 1);
    int axis = g->node[n.i].attr.loss.axis;
    if (x->rank < 2 || axis < 1 || axis >= x->rank)
        return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL,
                        "the class scores are %s and have no axis %d", ls_shape_text(cx->arena, x),
                        axis);
    LsShape p = positions(x, axis);
    if (!ls_shape_same(&p, t))
        return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL,
                        "the labels are %s, the class scores %s with classes on axis %d",
                        ls_shape_text(cx->arena, t), ls_shape_text(cx->arena, x), axis);
    LsType type = ls_type(g, ls_in(g, n, 1));
    if (type != LS_I64)
        return ls_error(cx, ls_where(g, n), LS_E_TYPE, NULL, "labels must be int64");
    if (!ls_is(ls_in(g, n, 2)))
        return true;
    const LsShape *w = ls_in_shape(g, n, 2);
    if (w->rank == 1 && w->dim[0] == x->dim[axis])
        return true;
    return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL, "class weights are %s, there are %" PRId64
                    " classes", ls_shape_text(cx->arena, w), x->dim[axis]);
}

static void set_loss_shape(LsGraph *g, LsNodeId n)
{
    LsShape each = *ls_in_shape(g, n, 1), scalar = {0};
    bool all = g->node[n.i].attr.loss.reduction == LS_LOSS_EACH;
    ls_set_out(g, n, 0, LS_REAL, all ? &each : &scalar);
}

static bool xent_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    if (!operands_fit(cx, g, n))
        return false;
    LsShape lse = *ls_in_shape(g, n, 0);
    lse.dim[g->node[n.i].attr.loss.axis] = 1;
    set_loss_shape(g, n);
    ls_set_out(g, n, 1, LS_REAL, &lse);
    ls_set_out(g, n, 2, LS_REAL, &(LsShape){0});
    return true;
}

static bool nll_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    if (!operands_fit(cx, g, n))
        return false;
    set_loss_shape(g, n);
    ls_set_out(g, n, 1, LS_REAL, &(LsShape){0});
    return true;
}

static bool nll_grad_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    (void)cx;
    const LsLossAttr *at = &g->node[n.i].attr.loss;
    const LsShape *p = ls_in_shape(g, n, 1);
    LsShape x = {.rank = p->rank + 1};
    for (int k = 0; k < x.rank; k++)
        x.dim[k] = k == at->axis ? at->nclass : p->dim[k < at->axis ? k : k - 1];
    ls_set_out(g, n, 0, LS_REAL, &x);
    return true;
}

static void xent_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                      LsValueId dx[])
{
    LsAttr at = g->node[n.i].attr;
    LsValueId in[] = {dy[0], ls_in(g, n, 0), ls_in(g, n, 1), ls_in(g, n, 2), ls_out(g, n, 1),
                      ls_out(g, n, 2)};
    if (want[0] && ls_is(dy[0]))
        dx[0] = ls_append(cx, g, LS_OP_XENT_GRAD, 6, in, &at);
}

static void nll_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                     LsValueId dx[])
{
    LsAttr at = g->node[n.i].attr;
    at.loss.nclass = ls_in_shape(g, n, 0)->dim[at.loss.axis];
    LsValueId in[] = {dy[0], ls_in(g, n, 1), ls_in(g, n, 2), ls_out(g, n, 1)};
    if (want[0] && ls_is(dy[0]))
        dx[0] = ls_append(cx, g, LS_OP_NLL_GRAD, 4, in, &at);
}

static bool weight_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    (void)cx;
    ls_set_out(g, n, 0, LS_REAL, &(LsShape){0});
    return true;
}

/* Each position that counts has the same share. */
static void sum_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                     LsValueId dx[])
{
    const LsShape each = *ls_in_shape(g, n, 0);
    if (!want[0] || !ls_is(dy[0]))
        return;
    const LsValueId by = ls_append1(cx, g, LS_OP_MEAN_FACTOR, ls_in(g, n, 3), NULL);
    dx[0] = ls_expand(cx, g, ls_append2(cx, g, LS_OP_MUL, dy[0], by, NULL), each);
}

static double weight_flops(const LsGraph *g, LsNodeId n)
{
    return 4.0 * (double)ls_count(ls_in_shape(g, n, 0));
}

static double xent_flops(const LsGraph *g, LsNodeId n)
{
    return 10.0 * (double)ls_count(ls_in_shape(g, n, ls_op[g->node[n.i].op]->nout == 3 ? 0 : 1));
}

static double nll_flops(const LsGraph *g, LsNodeId n)
{
    return 4.0 * (double)ls_count(ls_in_shape(g, n, 1));
}

const LsOp ls_op_xent = {
    .name = "SoftmaxCrossEntropyLoss", .min_in = 2, .max_in = 3, .nout = 3, .infer = xent_infer,
    .grad = xent_grad, .flops = xent_flops, .kernel = LS_K_LOSS, .layout = LS_LAY_SAME,
};
const LsOp ls_op_xent_grad = {
    .name = "xent_grad", .min_in = 6, .max_in = 6, .nout = 1, .infer = ls_infer_like1,
    .flops = xent_flops, .kernel = LS_K_LOSS, .layout = LS_LAY_SAME,
};
const LsOp ls_op_xent_sum = {
    .name = "xent_sum", .min_in = 4, .max_in = 4, .nout = 1, .infer = weight_infer,
    .grad = sum_grad, .flops = weight_flops, .kernel = LS_K_LOSS, .layout = LS_LAY_SAME,
};
const LsOp ls_op_label_weight = {
    .name = "label_weight", .min_in = 1, .max_in = 2, .nout = 1, .infer = weight_infer,
    .flops = weight_flops, .kernel = LS_K_LOSS, .layout = LS_LAY_SAME,
};
/* The results' shapes are set by whoever appends them (codegen/tiling/). */
static double lse_flops(const LsGraph *g, LsNodeId n)
{
    return 8.0 * (double)ls_count(ls_in_shape(g, n, 0));
}

const LsOp ls_op_xent_lse = {
    .name = "xent_lse", .min_in = 1, .max_in = 1, .nout = 1, .flops = lse_flops,
    .kernel = LS_K_LOSS, .layout = LS_LAY_SAME,
};
const LsOp ls_op_xent_part = {
    .name = "xent_part", .min_in = 4, .max_in = 5, .nout = 1, .flops = weight_flops,
    .kernel = LS_K_LOSS, .layout = LS_LAY_SAME,
};
const LsOp ls_op_xent_end = {
    .name = "xent_end", .min_in = 1, .max_in = 1, .nout = 2, .flops = weight_flops,
    .kernel = LS_K_LOSS, .layout = LS_LAY_SAME,
};
const LsOp ls_op_nll = {
    .name = "NegativeLogLikelihoodLoss", .min_in = 2, .max_in = 3, .nout = 2, .infer = nll_infer,
    .grad = nll_grad, .flops = nll_flops, .kernel = LS_K_LOSS, .layout = LS_LAY_SAME,
};
const LsOp ls_op_nll_grad = {
    .name = "nll_grad", .min_in = 4, .max_in = 4, .nout = 1, .infer = nll_grad_infer,
    .flops = nll_flops, .kernel = LS_K_LOSS, .layout = LS_LAY_SAME,
};

/* ---- ONNX ---- */
static bool build(LsOnnxNode *n, LsOpCode op, LsValueId out[])
{
    static const char *const reduction[] = {"mean", "sum", "none"};
    LsCtx *cx = n->cx;
    LsGraph *g = n->g;
    if (!ls_onnx_takes(n, 2, 3) || !ls_onnx_takes_real(n, 0) || !ls_onnx_takes_real(n, 2))
        return false;
    LsAttr at = {.loss = {.axis = 1, .has_ignore = ls_onnx_has(n, "ignore_index"),
                          .ignore = ls_onnx_int(n, "ignore_index", 0)}};
    const char *how = ls_onnx_string(n, "reduction", "mean");
    int which = 0;
    while (which < 3 && strcmp(how, reduction[which]) != 0)
        which++;
    if (which == 3)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "reduction '%s' is not one of mean, sum, none",
                             how);
    at.loss.reduction = (LsReduction)which;
    LsValueId in[3] = {n->in[0], n->in[1], ls_onnx_in(n, 2)};
    if (ls_is(in[2]) && g->value[in[2].i].kind == LS_V_PARAM)
        g->value[in[2].i].kind = LS_V_CONST;        /* class weights are a setting */
    if (ls_type(g, in[1]) == LS_I32)
        in[1] = ls_append1(cx, g, LS_OP_CAST, in[1], &(LsAttr){.cast = LS_I64});
    out[0] = ls_append(cx, g, op, ls_is(in[2]) ? 3 : 2, in, &at);
    if (op == LS_OP_XENT && ls_onnx_gives(n, 1))
        out[1] = ls_append1(cx, g, LS_OP_LOG_SOFTMAX, n->in[0], &(LsAttr){.axis = {1}});
    return ls_is(out[0]);
}

static bool sce_build(LsOnnxNode *n, LsValueId out[]) { return build(n, LS_OP_XENT, out); }
static bool nll_build(LsOnnxNode *n, LsValueId out[]) { return build(n, LS_OP_NLL, out); }

const LsOnnxOp ls_onnx_softmax_cross_entropy_loss = {
    .name = "SoftmaxCrossEntropyLoss", .since = 12, .build = sce_build};
const LsOnnxOp ls_onnx_negative_log_likelihood_loss = {
    .name = "NegativeLogLikelihoodLoss", .since = 12, .build = nll_build};
