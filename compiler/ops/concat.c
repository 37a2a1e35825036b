/* compiler/ops/concat.c -- concatenates operands along an axis. */
#include "compiler/ops/row.h"

static bool concat_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    int axis = g->node[n.i].attr.axis.axis;
    LsType type = ls_type(g, ls_in(g, n, 0));
    LsShape y = *ls_in_shape(g, n, 0);
    for (int k = 1; k < g->node[n.i].nin; k++) {
        const LsShape *x = ls_in_shape(g, n, k);
        bool fits = x->rank == y.rank;
        for (int d = 0; fits && d < y.rank; d++)
            fits = d == axis || x->dim[d] == y.dim[d];
        if (!fits)
            return ls_error(cx, ls_where(g, n), LS_E_SHAPE, "other axes must have equal lengths",
                            "operand 0 is %s, operand %d is %s, joined along axis %d",
                            ls_dims(g, ls_in(g, n, 0)), k, ls_shape_text(g->arena, x), axis);
        if (ls_type(g, ls_in(g, n, k)) != type)
            return ls_error(cx, ls_where(g, n), LS_E_TYPE, "insert a Cast",
                            "operand 0 is %s, operand %d is %s", ls_type_name(type), k,
                            ls_type_name(ls_type(g, ls_in(g, n, k))));
        if (__builtin_add_overflow(y.dim[axis], x->dim[axis], &y.dim[axis]))
            return ls_error(cx, ls_where(g, n), LS_E_SHAPE, NULL, "the result is too long");
    }
    return ls_infer_out(cx, g, n, type, &y);
}

static void concat_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                        LsValueId dx[])
{
    int axis = g->node[n.i].attr.axis.axis;
    int64_t at = 0;
    for (int k = 0; k < g->node[n.i].nin; k++) {
        int64_t len = ls_in_shape(g, n, k)->dim[axis];
        if (want[k])
            dx[k] = ls_slice_axis(cx, g, dy[0], axis, at, at + len);
        at += len;
    }
}

const LsOp ls_op_concat = {
    .name = "Concat", .min_in = 1, .max_in = 255, .nout = 1, .infer = concat_infer,
    .grad = concat_grad, .kernel = LS_K_MOVE, .layout = LS_LAY_SAME,
};

static bool place_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    return ls_infer_out(cx, g, n, ls_type(g, ls_in(g, n, 0)), &g->node[n.i].attr.slice.x);
}

const LsOp ls_op_place = {
    .name = "place", .min_in = 1, .max_in = 2, .nout = 1, .infer = place_infer,
    .kernel = LS_K_MOVE, .layout = LS_LAY_SAME,
};

/* Skips empty constants, which exporters write for empty lists. */
static bool concat_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, n->nin > 1 ? n->nin : 1, UINT16_MAX))
        return false;
    LsGraph *g = n->g;
    int rank = ls_shape(g, n->in[0])->rank;
    int axis = ls_onnx_axis(n, ls_onnx_int(n, "axis", n->version < 4 ? 1 : INT64_MIN), rank),
        nin = 0;
    if (axis < 0)
        return false;
    LsValueId *in = ls_arena_alloc(g->arena, (size_t)n->nin, sizeof *in);
    for (int k = 0; k < n->nin; k++)
        if (ls_count(ls_shape(g, n->in[k])) > 0 || (k == n->nin - 1 && nin == 0))
            in[nin++] = n->in[k];
    out[0] = in[0];
    if (nin > 1)
        out[0] = ls_append(n->cx, g, LS_OP_CONCAT, nin, in, &(LsAttr){.axis = {axis}});
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_concat = {"Concat", 4, concat_build};
