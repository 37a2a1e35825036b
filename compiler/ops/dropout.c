/* compiler/ops/dropout.c -- inverted dropout: zero with probability a, else scaled by 1 / (1 - a).
 *
 * The mask is a function of (seed of the run, step, b, element), where b distinguishes nodes. So
 * the gradient is the same node over dy, a recomputed node draws the same mask, and no mask is
 * stored. */
#include "compiler/ops/random.h"
#include "compiler/ops/row.h"

static void dropout_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                         LsValueId dx[])
{
    (void)want;
    LsAttr at = g->node[n.i].attr;
    dx[0] = ls_append1(cx, g, LS_OP_DROPOUT, dy[0], &at);
}

const LsOp ls_op_dropout = {        /* a: ratio, b: stream of random numbers */
    .name = "Dropout", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map,
    .grad = dropout_grad, .kernel = LS_K_MAP,
    .expr = "ls_uniform(run->seed, run->step, $b, %i) < $a ? 0 : %0 * (1 / (1 - $a))",
};

/* Ratio and mode: attributes in early opsets, operands from opset 12. */
static bool dropout_settings(LsOnnxNode *n, double *ratio, bool *on)
{
    *ratio = 0.5;
    if (n->version < 12) {
        *ratio = ls_onnx_float(n, "ratio", *ratio);
        *on = n->version >= 7 || ls_onnx_int(n, "is_test", 0) == 0;
    } else {
        int64_t mode = 0;
        if (ls_onnx_const_reals(n, 1, 1, ratio) == -2 || ls_onnx_const_ints(n, 2, 1, &mode) == -2)
            return false;
        *on = mode != 0;
    }
    if (!(*ratio >= 0 && *ratio < 1))
        return ls_onnx_error(n, LS_E_ATTR, "0 <= ratio < 1", "ratio is %g", *ratio);
    return true;
}

/* The mask: true where an element of ones survives. */
static bool dropout_mask(LsOnnxNode *n, LsValueId out[], const LsAttr *at)
{
    LsCtx *cx = n->cx;
    LsGraph *g = n->g;
    const LsShape x = *ls_shape(g, n->in[0]);
    LsValueId v = ls_expand(cx, g, ls_const_real(cx, g, 1), x);
    if (ls_is(v) && at != NULL)
        v = ls_append1(cx, g, LS_OP_DROPOUT, v, at);
    if (ls_is(v))
        v = ls_append2(cx, g, LS_OP_GREATER, v, ls_const_real(cx, g, 0), NULL);
    out[1] = v;
    return ls_is(v);
}

/* Equal `seed` attributes give equal draws. */
static double random_stream(const LsOnnxNode *n)
{
    return ls_onnx_has(n, "seed") ? ls_random_stream_of_seed((uint32_t)ls_onnx_int(n, "seed", 0))
                                  : ls_random_stream_of_node(n->g);
}

static bool dropout_build(LsOnnxNode *n, LsValueId out[])
{
    double ratio;
    bool on, masked = n->nout > 1 && n->out_name[1][0] != '\0';
    if (!ls_onnx_takes(n, 1, n->version < 12 ? 1 : 3) || !dropout_settings(n, &ratio, &on))
        return false;
    LsGraph *g = n->g;
    if (g->training && !on && ratio > 0 && n->version >= 12 && g->source.dropout == LS_DROPOUT_FILE)
        ls_warn(n->cx, (LsWhere){g->node[0].onnx, n->name, n->op},
                "export the model in training mode to have dropout, or give --dropout=on",
                "training_mode is false in the file: no elements are dropped");
    if (g->source.dropout != LS_DROPOUT_FILE)
        on = g->source.dropout == LS_DROPOUT_ON;
    out[0] = n->in[0];
    if (!g->training || !on || ratio == 0)
        return !masked || dropout_mask(n, out, NULL);
    LsAttr at = {.scalar = {.a = ratio, .b = random_stream(n)}};
    out[0] = ls_append1(n->cx, g, LS_OP_DROPOUT, n->in[0], &at);
    return ls_is(out[0]) && (!masked || dropout_mask(n, out, &at));
}
const LsOnnxOp ls_onnx_dropout = {"Dropout", 6, dropout_build};
