/* compiler/ops/regression.c -- squared, absolute, logistic and other errors against a real target;
 * see loss.def. */
#include "compiler/ops/row.h"

static bool loss_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsShape *y = ls_in_shape(g, n, 0), *t = ls_in_shape(g, n, 1);
    if (!ls_shape_same(y, t))
        return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL, "the output is %s, the target %s",
                        ls_shape_text(cx->arena, y), ls_shape_text(cx->arena, t));
    if (y->rank == 0 && g->node[n.i].attr.loss.regression == LS_REG_KL)
        return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL,
                        "a Kullback-Leibler divergence is a mean over samples; "
                        "the output has no axis of samples");
    ls_set_out(g, n, 0, LS_REAL, &(LsShape){0});
    return true;
}

static void loss_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                      LsValueId dx[])
{
    LsAttr at = g->node[n.i].attr;
    LsValueId in[] = {dy[0], ls_in(g, n, 0), ls_in(g, n, 1)};
    if (want[0])
        dx[0] = ls_append(cx, g, LS_OP_REGRESSION_GRAD, 3, in, &at);
}

static double loss_flops(const LsGraph *g, LsNodeId n)
{
    static const double each[LS_NREG] = {3,
                                         3,
                                         [LS_REG_LOGIT] = 12,
                                         [LS_REG_SMOOTH] = 5,
                                         [LS_REG_HUBER] = 5,
                                         [LS_REG_KL] = 8,
                                         [LS_REG_LINEAR] = 2};
    return each[g->node[n.i].attr.loss.regression] * (double)ls_count(ls_in_shape(g, n, 1));
}

const LsOp ls_op_regression_loss = {
    .name = "regression_loss", .min_in = 2, .max_in = 2, .nout = 1, .infer = loss_infer,
    .grad = loss_grad, .flops = loss_flops, .kernel = LS_K_LOSS, .layout = LS_LAY_SAME,
};
const LsOp ls_op_regression_grad = {
    .name = "regression_grad", .min_in = 3, .max_in = 3, .nout = 1, .infer = ls_infer_like1,
    .flops = loss_flops, .kernel = LS_K_LOSS, .layout = LS_LAY_SAME,
};
