/* compiler/ops/gather.c -- gathers slices by index, as embeddings do. Known consecutive indices
 * become a slice. */
#include "compiler/ops/index.h"
#include "compiler/ops/row.h"

static bool gather_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    const LsShape *x = ls_in_shape(g, n, 0), *index = ls_in_shape(g, n, 1);
    int axis = g->node[n.i].attr.gather.axis;
    LsType type = ls_type(g, ls_in(g, n, 1));
    if (type != LS_I64 && type != LS_I32)
        return ls_error(cx, ls_where(g, n), LS_E_TYPE, NULL, "the indices are %s, not integers",
                        ls_type_name(type));
    LsShape y = {.rank = x->rank - 1 + index->rank};
    if (y.rank > LS_MAX_RANK)
        return ls_error(cx, ls_where(g, n), LS_E_UNSUPPORTED, NULL,
                        "the result would have %d axes, %d are supported", y.rank, LS_MAX_RANK);
    for (int k = 0, d = 0; k < x->rank; k++)
        if (k != axis)
            y.dim[d++] = x->dim[k];
        else
            for (int i = 0; i < index->rank; i++)
                y.dim[d++] = index->dim[i];
    return ls_infer_out(cx, g, n, ls_type(g, ls_in(g, n, 0)), &y);
}

static void gather_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                        LsValueId dx[])
{
    LsAttr at = g->node[n.i].attr;
    at.gather.x = *ls_in_shape(g, n, 0);
    if (want[0])
        dx[0] = ls_append2(cx, g, LS_OP_GATHER_GRAD, dy[0], ls_in(g, n, 1), &at);
}

const LsOp ls_op_gather = {
    .name = "Gather", .min_in = 2, .max_in = 2, .nout = 1, .infer = gather_infer,
    .grad = gather_grad, .kernel = LS_K_GATHER, .layout = LS_LAY_ROW,
};

static bool gather_grad_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    return ls_infer_out(cx, g, n, LS_REAL, &g->node[n.i].attr.gather.x);
}

/* Col2Im is such a sum in the forward part; what falls outside of its image has no influence. */
static void gather_grad_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[],
                             const bool want[], LsValueId dx[])
{
    if (want[0])
        dx[0] =
            ls_append2(cx, g, LS_OP_GATHER, dy[0], ls_in(g, n, 1),
                       &(LsAttr){.gather = {.axis = g->node[n.i].attr.gather.axis, .zero = true}});
    if (want[2])
        dx[2] = dy[0];
}

static double gather_grad_flops(const LsGraph *g, LsNodeId n)
{
    return (double)ls_count(ls_in_shape(g, n, 0));
}

const LsOp ls_op_gather_grad = {
    /* dy, indices, base */
    .name = "gather_grad",
    .min_in = 2,
    .max_in = 3,
    .nout = 1,
    .infer = gather_grad_infer,
    .grad = gather_grad_grad,
    .flops = gather_grad_flops,
    .kernel = LS_K_GATHER,
    .layout = LS_LAY_ROW,
};

/* X at consecutive indices from lo on: the axes of the indices replace the axis. */
static LsValueId cut(LsOnnxNode *n, LsValueId x, LsValueId index, int axis, int64_t lo)
{
    LsGraph *g = n->g;
    const LsShape shape = *ls_shape(g, x), by = *ls_shape(g, index);
    LsShape to = {.rank = shape.rank - 1 + by.rank};
    for (int k = 0; k < to.rank; k++)
        to.dim[k] = k < axis             ? shape.dim[k]
                    : k < axis + by.rank ? by.dim[k - axis]
                                         : shape.dim[k + 1 - by.rank];
    LsValueId v = ls_slice_axis(n->cx, g, x, axis, lo, lo + ls_count(&by));
    return ls_is(v) ? ls_reshape(n->cx, g, v, &to) : v;
}

/* Y, gathered along axis 0, where elements of row `row` get no gradient. */
static LsValueId without_row(LsOnnxNode *n, LsValueId y, LsValueId index, int64_t row)
{
    LsGraph *g = n->g;
    LsShape to = *ls_shape(g, index);
    LsValueId is = ls_append2(n->cx, g, LS_OP_EQUAL, index, ls_const_ints(n->cx, g, 1, &row), NULL);
    while (to.rank < ls_shape(g, y)->rank)
        to.dim[to.rank++] = 1;
    is = ls_is(is) ? ls_reshape(n->cx, g, is, &to) : is;
    return ls_is(is) ? ls_append3(n->cx, g, LS_OP_WHERE, is,
                                  ls_append1(n->cx, g, LS_OP_DETACH, y, NULL), y, NULL)
                     : is;
}

static bool gather_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 2, 2))
        return false;
    LsGraph *g = n->g;
    LsValueId x = n->in[0], index = n->in[1];
    int axis = ls_onnx_axis(n, ls_onnx_int(n, "axis", 0), ls_shape(g, x)->rank);
    if (axis < 0
        || !ls_index_inside(n, index, ls_shape(g, x)->dim[axis], ls_shape(g, x)->dim[axis]))
        return false;
    int64_t lo = 0;
    bool run = ls_index_is_run(g, index, ls_shape(g, x)->dim[axis], &lo)
        && ls_shape(g, x)->rank - 1 + ls_shape(g, index)->rank <= LS_MAX_RANK;
    out[0] =
        run ? cut(n, x, index, axis, lo)
            : ls_append2(n->cx, g, LS_OP_GATHER, x, index, &(LsAttr){.gather = {.axis = axis}});
    int64_t row = axis == 0 ? ls_onnx_padding_row(n) : -1;
    if (ls_is(out[0]) && row >= 0 && ls_type(g, x) == LS_REAL)
        out[0] = without_row(n, out[0], index, row);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_gather = {"Gather", 1, gather_build};
