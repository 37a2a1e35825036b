/* compiler/ops/groupnorm.c -- ONNX GroupNormalization, InstanceNormalization, and the instance norm
 * of groups of channels between two Reshapes, as exporters write a group norm.
 *
 * A statistic of a group is the mean of those of its channels: so pictures stay in their layout,
 * with their channels innermost, and each channel has a sum of its own. */
#include "compiler/onnx/onnx_found_weights.h"
#include "compiler/ops/normalize.h"

/* One number for each group as one for each channel of s: 1,C,1.. */
static LsValueId per_group(const LsOnnxNode *n, LsValueId v, const LsShape *s)
{
    const int64_t groups = ls_count(ls_shape(n->g, v));
    if (groups == s->dim[1])
        return ls_per_channel(n->cx, n->g, v, s->rank);
    v = ls_reshape(n->cx, n->g, v, &(LsShape){2, {groups, 1}});
    v = ls_expand(n->cx, n->g, v, (LsShape){2, {groups, s->dim[1] / groups}});
    return ls_per_channel(n->cx, n->g, v, s->rank);
}

/* Scale and bias are per channel from opset 21 and per group before, but some exporters wrote the
 * new form early: their length decides. */
static bool group_norm_build(LsOnnxNode *n, LsValueId out[])
{
    LsGraph *g = n->g;
    if (!ls_onnx_takes(n, 3, 3) || !ls_onnx_takes_real(n, 0))
        return false;
    const LsShape x = *ls_shape(g, n->in[0]);
    const int64_t groups = ls_onnx_int(n, "num_groups", 0);
    if (x.rank < 3 || groups < 1 || x.dim[1] % groups != 0)
        return ls_onnx_error(n, LS_E_SHAPE, NULL,
                             "num_groups %" PRId64 " does not divide the channels of X %s",
                             groups, ls_shape_text(n->cx->arena, &x));
    const bool each = ls_count(ls_shape(g, n->in[1])) == x.dim[1];
    const int64_t want = each || n->version >= 21 ? x.dim[1] : groups;
    if (!ls_onnx_per_channel(n, 1, want) || !ls_onnx_per_channel(n, 2, want))
        return false;
    ls_onnx_weight(n, 1);
    ls_onnx_weight(n, 2);
    const LsStats s =
        ls_group_stats(n->cx, g, n->in[0], groups, ls_onnx_float(n, "epsilon", 1e-5));
    out[0] = ls_normalized(n->cx, g, n->in[0], &s, per_group(n, n->in[1], &x),
                           per_group(n, n->in[2], &x));
    return ls_is(out[0]);
}

/* The value N,C,.. whose channels a Reshape made into the groups of X, N,G,L; none: it did not. */
static LsValueId ungrouped(const LsOnnxNode *n)
{
    const LsGraph *g = n->g;
    const LsShape *x = ls_shape(g, n->in[0]);
    const LsNodeId def = g->value[n->in[0].i].def;
    if (def.i == 0 || g->node[def.i].op != LS_OP_RESHAPE || x->rank != 3)
        return (LsValueId){0};
    const LsShape *s = ls_in_shape(g, def, 0);
    const bool grouped = s->rank > 2 && s->dim[0] == x->dim[0] && s->dim[1] > x->dim[1]
                         && s->dim[1] % x->dim[1] == 0;
    return grouped ? ls_in(g, def, 0) : (LsValueId){0};
}

static bool instance_norm_build(LsOnnxNode *n, LsValueId out[])
{
    LsCtx *cx = n->cx;
    LsGraph *g = n->g;
    if (!ls_onnx_takes(n, 3, 3) || !ls_onnx_takes_real(n, 0))
        return false;
    const LsShape x = *ls_shape(g, n->in[0]);
    if (x.rank < 3)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "X is %s, it needs N,C and spatial axes",
                             ls_shape_text(cx->arena, &x));
    if (!ls_onnx_per_channel(n, 1, x.dim[1]) || !ls_onnx_per_channel(n, 2, x.dim[1]))
        return false;
    ls_onnx_weight(n, 1);
    ls_onnx_weight(n, 2);
    const LsValueId of = ungrouped(n), v = ls_is(of) ? of : n->in[0];
    const LsShape shape = *ls_shape(g, v);
    const LsStats s = ls_group_stats(cx, g, v, x.dim[1], ls_onnx_float(n, "epsilon", 1e-5));
    const LsValueId y = ls_normalized(cx, g, v, &s, per_group(n, n->in[1], &shape),
                                      per_group(n, n->in[2], &shape));
    out[0] = ls_reshape(cx, g, y, &x);
    return ls_is(out[0]);
}

const LsOnnxOp ls_onnx_group_norm = {
    .name = "GroupNormalization", .since = 18, .build = group_norm_build};
const LsOnnxOp ls_onnx_instance_norm = {
    .name = "InstanceNormalization", .since = 6, .build = instance_norm_build};
