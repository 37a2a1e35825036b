/* compiler/ops/layernorm.c -- layer norm as one kernel (see norm.def), ONNX LayerNormalization. */
#include "compiler/onnx/onnx_found_weights.h"
#include "compiler/ops/normalize.h"

static LsShape trailing(const LsShape *x, int axis)
{
    LsShape s = {.rank = x->rank - axis};
    for (int k = 0; k < s.rank; k++)
        s.dim[k] = x->dim[axis + k];
    return s;
}

static bool layer_norm_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    LsShape x = *ls_in_shape(g, n, 0), stat = x;
    int axis = g->node[n.i].attr.norm.axis;
    LsShape over = trailing(&x, axis);
    for (int k = 1; k < g->node[n.i].nin; k++)
        if (ls_is(ls_in(g, n, k)) && !ls_shape_same(ls_in_shape(g, n, k), &over))
            return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL,
                            "operand %d is %s, the normalised axes are %s",
                            k, ls_shape_text(cx->arena, ls_in_shape(g, n, k)),
                            ls_shape_text(cx->arena, &over));
    for (int k = axis; k < x.rank; k++)
        stat.dim[k] = 1;
    ls_set_out(g, n, 0, LS_REAL, &x);
    ls_set_out(g, n, 1, LS_REAL, &stat);
    ls_set_out(g, n, 2, LS_REAL, &stat);
    return true;
}

/* dx, or its sum with another gradient of x. */
static bool layer_norm_grad_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    if (ls_is(ls_in(g, n, 5)) && !ls_shape_same(ls_in_shape(g, n, 5), ls_in_shape(g, n, 1)))
        return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL, "%s is added to a gradient of %s",
                        ls_shape_text(cx->arena, ls_in_shape(g, n, 5)),
                        ls_shape_text(cx->arena, ls_in_shape(g, n, 1)));
    return ls_infer_like1(cx, g, n);
}

static double layer_norm_flops(const LsGraph *g, LsNodeId n)
{
    return 10.0 * (double)ls_count(ls_in_shape(g, n, 0));
}

/* Sum of dy (x - mean) invstd over the leading axes. */
static LsValueId dscale(LsCtx *cx, LsGraph *g, LsNodeId n, LsValueId dy)
{
    int axis = g->node[n.i].attr.norm.axis;
    LsShape over = trailing(ls_in_shape(g, n, 0), axis);
    LsValueId in[] = {dy, ls_in(g, n, 0), ls_out(g, n, 1), ls_out(g, n, 2)};
    if (axis > 0) {
        LsAttr at = {.reduce = {.axes = (1u << axis) - 1, .keep = true}};
        return ls_reshape(cx, g, ls_append(cx, g, LS_OP_LAYER_NORM_DSCALE, 4, in, &at), &over);
    }
    LsValueId z =
        ls_append2(cx, g, LS_OP_MUL, ls_append2(cx, g, LS_OP_SUB, in[1], in[2], NULL), in[3], NULL);
    return ls_append2(cx, g, LS_OP_MUL, dy, z, NULL);
}

/* x's gradient through the mean and invstd results, which few models read. */
static LsValueId through_stats(LsCtx *cx, LsGraph *g, LsNodeId n, LsValueId dmean,
                               LsValueId dinvstd, LsValueId dx)
{
    LsValueId x = ls_in(g, n, 0), mean = ls_out(g, n, 1), invstd = ls_out(g, n, 2),
              part[2] = {{0}, {0}};
    double inv_n = (double)ls_count(ls_shape(g, mean)) / (double)ls_count(ls_shape(g, x));
    if (ls_is(dmean))
        part[0] = ls_append2(cx, g, LS_OP_MUL, dmean, ls_const_real(cx, g, inv_n), NULL);
    if (ls_is(dinvstd)) {
        LsValueId k = ls_append2(cx, g, LS_OP_MUL, dinvstd, ls_const_real(cx, g, -inv_n), NULL);
        for (int i = 0; i < 3; i++)
            k = ls_append2(cx, g, LS_OP_MUL, k, invstd, NULL);
        part[1] =
            ls_append2(cx, g, LS_OP_MUL, ls_append2(cx, g, LS_OP_SUB, x, mean, NULL), k, NULL);
    }
    for (int i = 0; i < 2; i++)
        if (ls_is(part[i])) {
            LsValueId zero =
                ls_is(dx) ? dx : ls_append2(cx, g, LS_OP_MUL, x, ls_const_real(cx, g, 0), NULL);
            dx = ls_append2(cx, g, LS_OP_ADD, zero, part[i], NULL);
        }
    return dx;
}

static void layer_norm_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[],
                            const bool want[], LsValueId dx[])
{
    LsAttr at = g->node[n.i].attr;
    LsValueId x = ls_in(g, n, 0), scale = ls_in(g, n, 1);
    LsShape over = *ls_shape(g, scale);
    if (ls_is(dy[0])) {
        LsValueId in[] = {dy[0], x, scale, ls_out(g, n, 1), ls_out(g, n, 2)};
        if (want[0])
            dx[0] = ls_append(cx, g, LS_OP_LAYER_NORM_GRAD, 5, in, &at);
        if (want[1])
            dx[1] = dscale(cx, g, n, dy[0]);
        if (g->node[n.i].nin > 2 && want[2])
            dx[2] = ls_reduce_to(cx, g, dy[0], over);
    }
    if (want[0])
        dx[0] = through_stats(cx, g, n, dy[1], dy[2], dx[0]);
}

const LsOp ls_op_layer_norm = {
    .name = "LayerNormalization", .min_in = 2, .max_in = 3, .nout = 3, .infer = layer_norm_infer,
    .grad = layer_norm_grad, .flops = layer_norm_flops, .kernel = LS_K_NORM, .layout = LS_LAY_ROW,
};
const LsOp ls_op_layer_norm_grad = {
    .name = "layer_norm_grad", .min_in = 5, .max_in = 6, .nout = 1, .infer = layer_norm_grad_infer,
    .flops = layer_norm_flops, .kernel = LS_K_NORM, .layout = LS_LAY_ROW,
};

/* ---- ONNX ---- */
/* Operand k expanded to the shape of the normalised axes; none when it has other axes too. */
static LsValueId fit(LsOnnxNode *n, int k, const LsShape *over)
{
    LsShape given = *ls_shape(n->g, n->in[k]), s = *over;
    const LsShape all = s;
    int skip = 0;
    while (skip < given.rank && given.dim[skip] == 1)
        skip++;
    given = trailing(&given, skip);
    if (given.rank > over->rank || !ls_shape_broadcast(&s, &given) || !ls_shape_same(&s, over))
        return (LsValueId){0};
    return ls_expand(n->cx, n->g, ls_reshape(n->cx, n->g, n->in[k], &given), all);
}

static LsValueId filled(LsOnnxNode *n, const LsShape *s, float with)
{
    float *v = ls_arena_alloc(n->cx->arena, (size_t)ls_count(s), sizeof *v);
    for (int64_t i = 0; i < ls_count(s); i++)
        v[i] = with;
    return ls_const_add(n->cx, n->g, LS_REAL, s, v);
}

/* Scale and bias may have other axes than the normalised ones, as they need only broadcast to X:
 * then they are applied outside the kernel. */
static bool scale_outside(LsOnnxNode *n, LsValueId out[])
{
    static const LsOpCode op[] = {LS_OP_NOP, LS_OP_MUL, LS_OP_ADD};
    const LsShape x = *ls_shape(n->g, n->in[0]);
    for (int k = 1; k < n->nin; k++) {
        LsShape s = x;
        if (!ls_is(n->in[k]))
            continue;
        if (!ls_shape_broadcast(&s, ls_shape(n->g, n->in[k])) || !ls_shape_same(&s, &x))
            return ls_onnx_error(n, LS_E_SHAPE, NULL,
                                 "operand %d is %s and does not fit X, which is %s", k,
                                 ls_dims(n->g, n->in[k]), ls_shape_text(n->cx->arena, &x));
        out[0] = ls_append2(n->cx, n->g, op[k], out[0], n->in[k], NULL);
    }
    return ls_is(out[0]);
}

static bool layer_norm_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 2, 3) || !ls_onnx_takes_real(n, 0) || !ls_onnx_takes_real(n, 1)
        || !ls_onnx_takes_real(n, 2))
        return false;
    const LsShape x = *ls_shape(n->g, n->in[0]);
    int axis = ls_onnx_axis(n, ls_onnx_int(n, "axis", -1), x.rank);
    if (axis < 0)
        return false;
    ls_onnx_weight(n, 1);
    ls_onnx_weight(n, 2);
    LsShape over = trailing(&x, axis);
    bool bias = ls_is(ls_onnx_in(n, 2));
    LsValueId in[3] = {n->in[0], fit(n, 1, &over), bias ? fit(n, 2, &over) : (LsValueId){0}};
    bool inside = ls_is(in[1]) && (!bias || ls_is(in[2]));
    if (!inside)
        in[1] = filled(n, &over, 1);
    LsAttr at = {.norm = {axis, ls_onnx_float(n, "epsilon", 1e-5)}};
    out[0] = ls_append(n->cx, n->g, LS_OP_LAYER_NORM, bias && inside ? 3 : 2, in, &at);
    for (int k = 1; k < n->nout && k < 3; k++)
        out[k] = (LsValueId){out[0].i + (uint32_t)k};
    return inside ? ls_is(out[0]) : ls_is(out[0]) && scale_outside(n, out);
}

const LsOnnxOp ls_onnx_layer_norm = {.name = "LayerNormalization",
                                     .since = 1,
                                     .build =
                                         layer_norm_build}; /* from 17; onnxruntime's files: any */
