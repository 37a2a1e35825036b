/* compiler/ops/batchnorm.c -- the statistics of norms, and ONNX BatchNormalization.
 *
 * Batch statistics are REDUCE rows: one pass for the mean, one for the squared deviations, since
 * E[x^2] - mean^2 loses digits in float. They are per channel (1,C,1,1), per sample and channel, or
 * per element of a sample. */
#include "compiler/onnx/onnx_found_weights.h"
#include "compiler/onnx/onnx_roles.h"
#include "compiler/ops/normalize.h"

/* The node that already computes this statistic of x; appends it if there is none. Networks whose
 * layers read the concatenation of all earlier layers (DenseNet) need the statistics of one value
 * many times. */
static LsValueId statistic(LsCtx *cx, LsGraph *g, LsOpCode op, LsValueId x, LsValueId mean,
                           uint32_t axes)
{
    LsAttr over = {.reduce = {.axes = axes, .keep = true}};
    for (uint32_t i = g->value[x.i].def.i + 1; i < g->nnode; i++) {
        LsNodeId n = {i};
        if (g->node[i].op == op && ls_in(g, n, 0).i == x.i && g->node[i].attr.reduce.axes == axes
            && ls_in(g, n, 1).i == mean.i)
            return ls_out(g, n, 0);
    }
    return ls_append(cx, g, op, ls_is(mean) ? 2 : 1, (LsValueId[]){x, mean}, &over);
}

/* The parts of x, if it is a concatenation along the channels, which are not reduced; their number
 * in *n. */
static LsValueId *channel_parts(const LsGraph *g, LsValueId x, uint32_t axes, int *n)
{
    LsNodeId def = g->value[x.i].def;
    const LsNode *node = &g->node[def.i];
    bool parts = def.i != 0 && node->op == LS_OP_CONCAT && node->attr.axis.axis == 1
        && (axes & 2) == 0;
    *n = parts ? node->nin : 0;
    LsValueId *v = ls_arena_alloc(g->arena, (size_t)*n, sizeof *v);
    for (int k = 0; k < *n; k++)
        v[k] = ls_in(g, def, k);
    return v;
}

/* Mean and variance. The statistics of a concatenation are those of its parts, concatenated. */
static LsStats moments(LsCtx *cx, LsGraph *g, LsValueId x, uint32_t axes)
{
    LsStats s = {.mean = {0}};
    LsAttr channels = {.axis = {1}};
    int n;
    LsValueId *part = channel_parts(g, x, axes, &n);
    if (n == 0) {
        s.mean = statistic(cx, g, LS_OP_REDUCE_MEAN, x, (LsValueId){0}, axes);
        s.var = statistic(cx, g, LS_OP_NORM_VAR, x, s.mean, axes);
        return s;
    }
    LsValueId *mean = ls_arena_alloc(cx->arena, (size_t)n, sizeof *mean);
    LsValueId *var = ls_arena_alloc(cx->arena, (size_t)n, sizeof *var);
    for (int k = 0; k < n; k++) {
        LsStats of = moments(cx, g, part[k], axes);
        mean[k] = of.mean;
        var[k] = of.var;
    }
    s.mean = ls_append(cx, g, LS_OP_CONCAT, n, mean, &channels);
    s.var = ls_append(cx, g, LS_OP_CONCAT, n, var, &channels);
    return s;
}

LsStats ls_stats(LsCtx *cx, LsGraph *g, LsValueId x, uint32_t axes, double eps)
{
    LsStats s = moments(cx, g, x, axes);
    s.invstd = ls_append1(cx, g, LS_OP_NORM_INVSTD, s.var, &(LsAttr){.scalar = {.a = eps}});
    return s;
}

/* The means over groups of channels of v, which is N,C,1..: each channel gets its group's. */
static LsValueId group_mean(LsCtx *cx, LsGraph *g, LsValueId v, int64_t groups)
{
    const LsShape s = *ls_shape(g, v), of = {3, {s.dim[0], groups, s.dim[1] / groups}};
    v = ls_append1(cx, g, LS_OP_REDUCE_MEAN, ls_reshape(cx, g, v, &of),
                   &(LsAttr){.reduce = {.axes = 4, .keep = true}});
    return ls_reshape(cx, g, ls_expand(cx, g, v, of), &s);
}

LsStats ls_group_stats(LsCtx *cx, LsGraph *g, LsValueId x, int64_t groups, double eps)
{
    const LsShape s = *ls_shape(g, x);
    const uint32_t axes = ((1u << s.rank) - 1) & ~3u;
    if (groups == s.dim[1])
        return ls_stats(cx, g, x, axes, eps);
    LsStats of = {.mean = group_mean(
        cx, g, statistic(cx, g, LS_OP_REDUCE_MEAN, x, (LsValueId){0}, axes), groups)};
    of.var = group_mean(cx, g, statistic(cx, g, LS_OP_NORM_VAR, x, of.mean, axes), groups);
    of.invstd = ls_append1(cx, g, LS_OP_NORM_INVSTD, of.var, &(LsAttr){.scalar = {.a = eps}});
    return of;
}

LsValueId ls_normalized(LsCtx *cx, LsGraph *g, LsValueId x, const LsStats *s, LsValueId scale,
                        LsValueId bias)
{
    LsValueId a = ls_append2(cx, g, LS_OP_NORM_SCALE, scale, s->invstd, NULL);
    return ls_append(cx, g, LS_OP_NORMALIZE, 4, (LsValueId[]){x, s->mean, a, bias}, NULL);
}

LsValueId ls_per_channel(LsCtx *cx, LsGraph *g, LsValueId v, int rank)
{
    LsShape s = {.rank = rank};
    for (int k = 0; k < rank; k++)
        s.dim[k] = k == 1 ? ls_count(ls_shape(g, v)) : 1;
    return ls_reshape(cx, g, v, &s);
}

bool ls_onnx_per_channel(const LsOnnxNode *n, int k, int64_t channels)
{
    const LsShape *s = ls_shape(n->g, n->in[k]);
    if (s->rank == 1 && s->dim[0] == channels)
        return ls_onnx_takes_real(n, k);
    return ls_onnx_error(n, LS_E_SHAPE, NULL, "operand %d is %s, it needs %" PRId64 " elements",
                         k, ls_shape_text(n->cx->arena, s), channels);
}

/* spatial=0, before opset 9: the statistics are over the samples alone, for each element of a
 * sample. */
static bool by_element(const LsOnnxNode *n)
{
    return n->version < 9 && ls_onnx_int(n, "spatial", 1) == 0;
}

/* One number for each channel, or each element of a sample, in the shape that broadcasts against
 * X. */
static LsValueId spread(const LsOnnxNode *n, LsValueId v)
{
    LsShape s = *ls_shape(n->g, n->in[0]);
    if (!by_element(n))
        return ls_per_channel(n->cx, n->g, v, s.rank);
    s.dim[0] = 1;
    return ls_reshape(n->cx, n->g, v, &s);
}

static bool per_element(const LsOnnxNode *n, int k)
{
    const LsShape *x = ls_shape(n->g, n->in[0]), *s = ls_shape(n->g, n->in[k]);
    bool same = s->rank == x->rank - 1;
    for (int d = 0; same && d < s->rank; d++)
        same = s->dim[d] == x->dim[d + 1];
    if (same)
        return ls_onnx_takes_real(n, k);
    return ls_onnx_error(
        n, LS_E_SHAPE, NULL,
        "operand %d is %s; with spatial=0 it has the shape of a sample of X, which is %s", k,
        ls_dims(n->g, n->in[k]), ls_dims(n->g, n->in[0]));
}

static bool batch_norm_takes(const LsOnnxNode *n)
{
    if (!ls_onnx_takes(n, 5, 5) || !ls_onnx_takes_real(n, 0))
        return false;
    const LsShape *x = ls_shape(n->g, n->in[0]);
    if (x->rank < 2)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "X is %s, it needs N,C axes",
                             ls_shape_text(n->cx->arena, x));
    for (int k = 1; k < 5; k++)
        if (by_element(n) ? !per_element(n, k) : !ls_onnx_per_channel(n, k, x->dim[1]))
            return false;
    return true;
}

/* Nodes of the graph compute a statistic: its gradient flows to their operands. */
static bool computed(const LsOnnxNode *n)
{
    return n->g->value[n->in[3].i].kind == LS_V_TEMP || n->g->value[n->in[4].i].kind == LS_V_TEMP;
}

/* Training form: by an attribute from opset 14; before, by results beyond Y. */
static bool training_form(const LsOnnxNode *n)
{
    return n->version >= 14 ? ls_onnx_int(n, "training_mode", 0) != 0 : n->nout > 1;
}

/* Whether this batch norm uses batch statistics; records the decision and its reason. */
static bool trains(const LsOnnxNode *n)
{
    const LsBnMode bn = n->g->source.bn;
    bool form = training_form(n), traced = !form && ls_onnx_traced_training(n);
    bool batch = bn == LS_BN_TRAIN || (bn == LS_BN_FILE && (form || traced));
    if (!n->g->training)
        return false;
    ls_onnx_note_batch_norm(
        n, bn == LS_BN_TRAIN     ? LS_BN_BY_TRAIN
           : bn == LS_BN_FROZEN  ? LS_BN_BY_FROZEN
           : form                ? LS_BN_BY_FORM
           : traced              ? LS_BN_BY_TRACE
           : computed(n)         ? LS_BN_BY_NODES
                                 : LS_BN_BY_RUNNING);
    return batch;
}

/* run = run * momentum + batch * (1 - momentum), once per step. *out: the result as a value, which
 * few models read. count: elements of a population variance that becomes a sample's; else 0. */
static bool follow(LsOnnxNode *n, LsValueId run, LsValueId batch, int64_t count, LsValueId *out)
{
    const double correct = count > 1 ? (double)count / (double)(count - 1) : 1;
    double momentum = ls_onnx_float(n, "momentum", 0.9);
    LsAttr at = {.update = {.hyper.momentum = momentum,
                            .sum.scale = (1 - momentum) * correct,
                            .each = count > 1 ? count : 0}};
    LsGraph *g = n->g;
    if (out != NULL) {
        LsShape s = *ls_shape(g, run);
        LsValueId old = ls_append2(n->cx, g, LS_OP_MUL, run,
                                   ls_const_real(n->cx, g, at.update.hyper.momentum), NULL);
        LsValueId add = ls_append2(n->cx, g, LS_OP_MUL, ls_reshape(n->cx, g, batch, &s),
                                   ls_const_real(n->cx, g, at.update.sum.scale), NULL);
        *out = ls_append2(n->cx, g, LS_OP_ADD, old, add, NULL);
    }
    if (!ls_is_state(g, run))
        return true;                /* models for planning have them as inputs */
    if (g->value[run.i].once_written)
        return ls_onnx_error(n, LS_E_UNSUPPORTED, "give each its own running mean and variance",
                             "'%s' is the running statistic of another batch norm too",
                             g->value[run.i].name);
    ls_append2(n->cx, g, LS_OP_RUNNING_STAT, run, batch, &at);
    return true;
}

/* Running statistics are state and never trained. */
static void make_state(LsGraph *g, LsValueId v)
{
    if (g->value[v.i].kind == LS_V_PARAM || g->value[v.i].kind == LS_V_CONST)
        g->value[v.i].kind = LS_V_STATE;
    g->value[v.i].statistic = g->value[v.i].kind == LS_V_STATE;
}

/* (x - mean) * scale / sqrt(var + eps) + bias, as separate nodes, so that autodiff goes through
 * mean and var: norms without running statistics are exported so. */
static LsValueId by_computed(LsOnnxNode *n, LsValueId scale, LsValueId bias, double eps)
{
    LsCtx *cx = n->cx;
    LsGraph *g = n->g;
    LsValueId mean = spread(n, n->in[3]), var = spread(n, n->in[4]);
    LsValueId std =
        ls_append1(cx, g, LS_OP_SQRT,
                   ls_append2(cx, g, LS_OP_ADD, var, ls_const_real(cx, g, eps), NULL), NULL);
    LsValueId d = ls_append2(cx, g, LS_OP_SUB, n->in[0], mean, NULL);
    LsValueId z =
        ls_append2(cx, g, LS_OP_MUL, ls_append2(cx, g, LS_OP_DIV, d, std, NULL), scale, NULL);
    return ls_append2(cx, g, LS_OP_ADD, z, bias, NULL);
}

/* With given statistics: running statistics, or results of other nodes. */
static bool by_given(LsOnnxNode *n, LsValueId scale, LsValueId bias, double eps, LsValueId out[])
{
    LsCtx *cx = n->cx;
    LsGraph *g = n->g;
    if (computed(n)) {
        out[0] = by_computed(n, scale, bias, eps);
    } else {
        LsValueId mean = spread(n, n->in[3]), var = spread(n, n->in[4]);
        LsValueId invstd =
            ls_append1(cx, g, LS_OP_NORM_INVSTD, var, &(LsAttr){.scalar = {.a = eps}});
        LsValueId a = ls_append2(cx, g, LS_OP_NORM_SCALE, scale, invstd, NULL);
        out[0] = ls_append(cx, g, LS_OP_AFFINE, 4, (LsValueId[]){n->in[0], mean, a, bias}, NULL);
    }
    for (int k = 1; k < n->nout && k < 5; k++)  /* results of the training form: unchanged
                                                 * statistics */
        out[k] = n->in[k == 1 || k == 3 ? 3 : 4];
    return ls_is(out[0]);
}

static bool batch_norm_build(LsOnnxNode *n, LsValueId out[])
{
    LsCtx *cx = n->cx;
    LsGraph *g = n->g;
    if (!batch_norm_takes(n))
        return false;
    ls_onnx_weight(n, 1);
    ls_onnx_weight(n, 2);
    make_state(g, n->in[3]);
    make_state(g, n->in[4]);
    double eps = ls_onnx_float(n, "epsilon", 1e-5);
    const LsShape xs = *ls_shape(g, n->in[0]);
    LsValueId x = n->in[0], scale = spread(n, n->in[1]), bias = spread(n, n->in[2]);
    if (!trains(n))
        return by_given(n, scale, bias, eps, out);
    const LsShape stored = *ls_shape(g, n->in[3]);
    LsStats s = ls_stats(cx, g, x, by_element(n) ? 1u : ((1u << xs.rank) - 1) & ~2u, eps);
    out[0] = ls_normalized(cx, g, x, &s, scale, bias);
    const int64_t count = g->source.bn_var_torch ? ls_count(&xs) / ls_count(&stored) : 0;
    for (int k = 3; k < n->nout && k < 5; k++)
        out[k] = ls_reshape(cx, g, k == 3 ? s.mean : s.var, &stored);
    if (by_element(n)) {        /* in memory they lie as the running ones only then */
        s.mean = ls_reshape(cx, g, s.mean, &stored);
        s.var = ls_reshape(cx, g, s.var, &stored);
    }
    return ls_is(out[0]) && follow(n, n->in[3], s.mean, 0, ls_onnx_gives(n, 1) ? &out[1] : NULL)
        && follow(n, n->in[4], s.var, count, ls_onnx_gives(n, 2) ? &out[2] : NULL);
}

const LsOnnxOp ls_onnx_batch_norm = {
    .name = "BatchNormalization", .since = 7, .build = batch_norm_build};
