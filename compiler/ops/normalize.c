/* compiler/ops/normalize.c -- the pointwise and reduction rows of normalisations; see norm.def.
 *
 * NORMALIZE has the joint gradient by x of its statistics (Ioffe & Szegedy 2015): mean and invstd
 * depend on x, but NORM_DX includes their share, so NORM_INVSTD and the invstd of NORM_SCALE pass
 * no gradient on.
 *
 * The exceptions: statistics of the parts of a concatenation that several normalisations share, as
 * in a DenseNet, and those of groups of channels, which are means of several statistics. There each
 * normalisation passes on its gradients of mean and invstd. These are numbers per channel and are
 * summed over all normalisations, so that the pass over x that turns them into a gradient runs once
 * for each part. */
#include "compiler/ops/row.h"

/* The operands broadcast against each other, the reduced axes become 1. */
static bool reduce_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    if (!ls_infer_map(cx, g, n))
        return false;
    LsShape s = *ls_shape(g, ls_out(g, n, 0));
    for (int k = 0; k < s.rank; k++)
        if (g->node[n.i].attr.reduce.axes >> k & 1)
            s.dim[k] = 1;
    return ls_infer_out(cx, g, n, LS_REAL, &s);
}

/* Some concatenation other than `but` reads v. */
static bool is_concatenated(const LsGraph *g, LsValueId v, LsNodeId but)
{
    for (uint32_t i = g->value[v.i].def.i + 1; i < g->nnode; i++)
        for (int k = 0; k < g->node[i].nin && g->node[i].op == LS_OP_CONCAT && i != but.i; k++)
            if (ls_in(g, (LsNodeId){i}, k).i == v.i)
                return true;
    return false;
}

/* The statistic is a concatenation of those of parts, and at least half of its channels belong to
 * parts that other concatenations share; or it is one of groups (ls_group_stats). */
static bool is_shared(const LsGraph *g, LsValueId stat)
{
    LsNodeId def = g->value[stat.i].def;
    int64_t shared = 0;
    if (def.i != 0 && g->node[def.i].op == LS_OP_RESHAPE)
        return true;
    for (int k = 0; k < g->node[def.i].nin && g->node[def.i].op == LS_OP_CONCAT; k++)
        if (is_concatenated(g, ls_in(g, def, k), def))
            shared += ls_count(ls_in_shape(g, def, k));
    return 2 * shared >= ls_count(ls_shape(g, stat));
}

static bool invstd_is_shared(const LsGraph *g, LsValueId invstd)
{
    LsNodeId def = g->value[invstd.i].def;
    return g->node[def.i].op == LS_OP_NORM_INVSTD && is_shared(g, ls_in(g, def, 0));
}

static void invstd_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[],
                        const bool want[], LsValueId dx[])
{
    LsValueId y = ls_out(g, n, 0);
    if (!want[0] || !invstd_is_shared(g, y))
        return;
    LsValueId t = ls_append2(cx, g, LS_OP_MUL, dy[0], y, NULL);
    dx[0] = ls_append2(cx, g, LS_OP_NORM_COEF, y, t, &(LsAttr){.scalar = {.a = -0.5}});
}

/* a = scale * invstd; NORM_DX includes the gradient of invstd where it is not shared. */
static void scale_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                       LsValueId dx[])
{
    LsValueId of[] = {ls_in(g, n, 0), ls_in(g, n, 1)};
    for (int k = 0; k < 2; k++) {
        if (!want[k] || (k == 1 && !invstd_is_shared(g, of[1])))
            continue;
        LsShape s = *ls_shape(g, of[k]);
        dx[k] = ls_append2(cx, g, LS_OP_MUL, dy[0], of[1 - k], NULL);
        dx[k] = ls_reduce_to(cx, g, dx[k], s);
    }
}

/* Axes of length 1 in the statistic. */
static uint32_t reduced_axes(const LsGraph *g, LsValueId stat)
{
    uint32_t axes = 0;
    for (int k = 0; k < ls_shape(g, stat)->rank; k++)
        if (ls_shape(g, stat)->dim[k] == 1)
            axes |= 1u << k;
    return axes;
}

/* Needed only where a model reads the variance itself or normalisations share it: otherwise NORM_DX
 * includes its share. The gradient of the mean is zero, as the sum of x - mean is, over all
 * channels of a group. */
static void var_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                     LsValueId dx[])
{
    LsValueId x = ls_in(g, n, 0), mean = ls_in(g, n, 1);
    double inv_n = (double)ls_count(ls_shape(g, mean)) / (double)ls_count(ls_shape(g, x));
    if (!want[0])
        return;
    const LsAttr counted = {
        .scalar = {.a = 2 * inv_n, .counted = g->node[n.i].attr.reduce.counted}};
    const bool all = counted.scalar.counted.each == 0;
    const LsValueId share = all ? ls_scale(cx, g, dy[0], 2 * inv_n)
                                : ls_append1(cx, g, LS_OP_COUNTED_SHARE, dy[0], &counted);
    LsValueId in[] = {x, mean, share, ls_const_real(cx, g, 0)};
    dx[0] = ls_append(cx, g, LS_OP_AFFINE, 4, in, all ? NULL : &counted);
}

static void normalize_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[],
                           const bool want[], LsValueId dx[])
{
    LsValueId x = ls_in(g, n, 0), mean = ls_in(g, n, 1), a = ls_in(g, n, 2), bias = ls_in(g, n, 3);
    LsNodeId made = g->value[a.i].def;      /* a comes from NORM_SCALE, or is invstd itself */
    LsValueId invstd = g->node[made.i].op == LS_OP_NORM_SCALE ? ls_in(g, made, 1) : a;
    LsAttr over = {.reduce = {.axes = reduced_axes(g, mean), .keep = true}};
    double inv_n = (double)ls_count(ls_shape(g, mean)) / (double)ls_count(ls_shape(g, x));
    LsAttr share = {.scalar = {.a = inv_n, .counted = g->node[n.i].attr.scalar.counted}};
    LsShape bias_shape = *ls_shape(g, bias);
    LsValueId sum = ls_append1(cx, g, LS_OP_REDUCE_SUM, dy[0], &over);
    LsValueId dot = ls_append3(cx, g, LS_OP_NORM_DOT, dy[0], x, mean, &over);
    bool is_apart = is_shared(g, mean);
    if (want[0] && is_apart) {
        dx[0] = ls_append2(cx, g, LS_OP_MUL, dy[0], a, NULL);
    } else if (want[0]) {
        LsValueId coef = ls_append2(cx, g, LS_OP_NORM_COEF, invstd, dot, &share);
        LsValueId in[] = {dy[0], x, mean, a, sum, coef};
        dx[0] = ls_append(cx, g, LS_OP_NORM_DX, 6, in, &share);
    }
    if (want[1] && is_apart)
        dx[1] = ls_append1(cx, g, LS_OP_NEG, ls_append2(cx, g, LS_OP_MUL, sum, a, NULL), NULL);
    if (want[2] && (is_apart || a.i != invstd.i))
        dx[2] = dot;
    if (want[3])
        dx[3] = ls_reduce_to(cx, g, sum, bias_shape);
}

/* Statistics are constants here: y = (x - mean) a + bias. */
static void affine_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                        LsValueId dx[])
{
    LsValueId x = ls_in(g, n, 0), mean = ls_in(g, n, 1), a = ls_in(g, n, 2);
    LsShape bias = *ls_in_shape(g, n, 3);
    uint32_t axes = reduced_axes(g, a);
    if (want[0])
        dx[0] = ls_append2(cx, g, LS_OP_MUL, dy[0], a, NULL);
    if (want[2])
        dx[2] = ls_append3(cx, g, LS_OP_NORM_DOT, dy[0], x, mean,
                           &(LsAttr){.reduce = {.axes = axes, .keep = true}});
    if (want[3])
        dx[3] = ls_reduce_to(cx, g, dy[0], bias);
    if (want[1]) {
        LsShape shape = *ls_shape(g, mean);
        LsValueId d = ls_append2(cx, g, LS_OP_MUL, dy[0], a, NULL);
        dx[1] = ls_append1(cx, g, LS_OP_NEG, ls_reduce_to(cx, g, d, shape), NULL);
    }
}

const LsOp ls_op_norm_var = {
    .name = "norm_var", .min_in = 2, .max_in = 2, .nout = 1, .infer = reduce_infer,
    .grad = var_grad, .kernel = LS_K_REDUCE, .expr = "(%0 - %1) * (%0 - %1)", .combine = LS_SUM,
    .mean = true,
};
const LsOp ls_op_norm_invstd = {
    .name = "norm_invstd", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map,
    .grad = invstd_grad, .kernel = LS_K_MAP, .expr = "LS_R(1) / ls_sqrt(%0 + $a)",
};
const LsOp ls_op_norm_scale = {
    .name = "norm_scale", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .grad = scale_grad, .kernel = LS_K_MAP, .expr = "%0 * %1",
};
const LsOp ls_op_normalize = {
    .name = "normalize", .min_in = 4, .max_in = 4, .nout = 1, .infer = ls_infer_map,
    .grad = normalize_grad, .kernel = LS_K_MAP, .expr = "ls_fma(%0 - %1, %2, %3)",
};
const LsOp ls_op_affine = {
    .name = "affine", .min_in = 4, .max_in = 4, .nout = 1, .infer = ls_infer_map,
    .grad = affine_grad, .kernel = LS_K_MAP, .expr = "ls_fma(%0 - %1, %2, %3)",
};
const LsOp ls_op_norm_dot = {
    .name = "norm_dot", .min_in = 3, .max_in = 3, .nout = 1, .infer = reduce_infer,
    .kernel = LS_K_REDUCE, .expr = "%0 * (%1 - %2)", .combine = LS_SUM,
};
const LsOp ls_op_norm_coef = {
    .name = "norm_coef", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP, .expr = "%0 * %0 * %1 * $a",
};
const LsOp ls_op_norm_dx = {
    .name = "norm_dx", .min_in = 6, .max_in = 6, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP, .expr = "%3 * (%0 - %4 * $a - (%1 - %2) * %5)",
};
/* A part of the gradient of a mean over the samples that count. */
const LsOp ls_op_counted_share = {
    .name = "counted_share", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP, .expr = "%0 * $a",
};
const LsOp ls_op_layer_norm_dscale = {
    .name = "layer_norm_dscale", .min_in = 4, .max_in = 4, .nout = 1, .infer = reduce_infer,
    .kernel = LS_K_REDUCE, .expr = "%0 * (%1 - %2) * %3", .combine = LS_SUM,
};
