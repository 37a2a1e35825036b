/* compiler/ops/reduce.c -- reductions. IR rows keep the reduced axes as 1; the ONNX rows are built
 * from them, from pointwise rows, and from a reshape where axes are dropped. */
#include "compiler/ops/row.h"

#include <math.h>

static bool reduce_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    LsShape shape = *ls_in_shape(g, n, 0);
    LsType type = ls_type(g, ls_in(g, n, 0));
    if (type == LS_BOOL)
        return ls_error(cx, ls_where(g, n), LS_E_TYPE, "insert a Cast", "the operand is bool");
    for (int k = 0; k < shape.rank; k++)
        if (g->node[n.i].attr.reduce.axes >> k & 1)
            shape.dim[k] = 1;
    return ls_infer_out(cx, g, n, type, &shape);
}

/* Number of elements combined into one. */
static int64_t reduced_count(const LsGraph *g, LsNodeId n)
{
    const LsShape *x = ls_in_shape(g, n, 0);
    int64_t count = 1;
    for (int k = 0; k < x->rank; k++)
        count *= g->node[n.i].attr.reduce.axes >> k & 1 ? x->dim[k] : 1;
    return count;
}

static void reduce_sum_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[],
                            const bool want[], LsValueId dx[])
{
    (void)want;
    const LsCounted counted = g->node[n.i].attr.reduce.counted;
    double share = ls_op[g->node[n.i].op]->mean ? 1.0 / (double)reduced_count(g, n) : 1;
    if (counted.each > 0) {
        const LsValueId d = ls_expand(cx, g, dy[0], *ls_in_shape(g, n, 0));
        dx[0] = ls_append1(cx, g, LS_OP_COUNTED_SHARE, d,
                           &(LsAttr){.scalar = {.a = share, .counted = counted}});
        return;
    }
    LsValueId d = ls_scale(cx, g, dy[0], share);
    dx[0] = ls_expand(cx, g, d, *ls_in_shape(g, n, 0));
}

LS_EVAL(reduce_sum, x[0])
LS_EVAL_INT(reduce_sum, (*y = x[0], true))
const LsOp ls_op_reduce_sum = {
    .name = "ReduceSum", .min_in = 1, .max_in = 1, .nout = 1, .infer = reduce_infer,
    .grad = reduce_sum_grad, .kernel = LS_K_REDUCE, .expr = "%0", .combine = LS_SUM,
    .eval = reduce_sum_eval, .eval_int = reduce_sum_eval_int,
};
const LsOp ls_op_reduce_mean = {
    .name = "ReduceMean", .min_in = 1, .max_in = 1, .nout = 1, .infer = reduce_infer,
    .grad = reduce_sum_grad, .kernel = LS_K_REDUCE, .expr = "%0", .combine = LS_SUM, .mean = true,
    .eval = reduce_sum_eval, .eval_int = reduce_sum_eval_int,
};

static void reduce_sum_square_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[],
                                   const bool want[], LsValueId dx[])
{
    (void)want;
    dx[0] = ls_append2(cx, g, LS_OP_MUL, ls_scale(cx, g, dy[0], 2), ls_in(g, n, 0), NULL);
}

LS_EVAL(reduce_sum_square, x[0] * x[0])
LS_EVAL_INT(reduce_sum_square, !__builtin_mul_overflow(x[0], x[0], y))
const LsOp ls_op_reduce_sum_square = {
    .name = "ReduceSumSquare", .min_in = 1, .max_in = 1, .nout = 1, .infer = reduce_infer,
    .grad = reduce_sum_square_grad, .kernel = LS_K_REDUCE, .expr = "%0 * %0", .combine = LS_SUM,
    .eval = reduce_sum_square_eval, .eval_int = reduce_sum_square_eval_int,
};

/* 0 if all elements are finite, else NaN: an infinity minus itself is NaN. */
const LsOp ls_op_reduce_finite = {
    .name = "reduce_finite", .min_in = 1, .max_in = 1, .nout = 1, .infer = reduce_infer,
    .kernel = LS_K_REDUCE, .expr = "%0 - %0", .combine = LS_SUM,
};

/* dy goes to the elements that equal the result, in equal shares. */
static void reduce_extreme_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[],
                                const bool want[], LsValueId dx[])
{
    (void)want;
    LsAttr at = g->node[n.i].attr;
    LsValueId hit = ls_append2(cx, g, LS_OP_EQUAL, ls_in(g, n, 0), ls_out(g, n, 0), NULL);
    LsValueId one = ls_append1(cx, g, LS_OP_CAST, hit, &(LsAttr){.cast = LS_REAL});
    LsValueId ties = ls_append1(cx, g, LS_OP_REDUCE_SUM, one, &at);
    LsValueId share = ls_append2(cx, g, LS_OP_DIV, dy[0], ties, NULL);
    dx[0] = ls_append2(cx, g, LS_OP_MUL, one, share, NULL);
}

const LsOp ls_op_reduce_max = {
    .name = "ReduceMax", .min_in = 1, .max_in = 1, .nout = 1, .infer = reduce_infer,
    .grad = reduce_extreme_grad, .kernel = LS_K_REDUCE, .expr = "%0", .combine = LS_MAX,
    .eval = reduce_sum_eval, .eval_int = reduce_sum_eval_int,
};
const LsOp ls_op_reduce_min = {
    .name = "ReduceMin", .min_in = 1, .max_in = 1, .nout = 1, .infer = reduce_infer,
    .grad = reduce_extreme_grad, .kernel = LS_K_REDUCE, .expr = "%0", .combine = LS_MIN,
    .eval = reduce_sum_eval, .eval_int = reduce_sum_eval_int,
};

/* The product of the other factors: y / x where no factor is 0; if one factor is 0, only it has a
 * gradient, the product of the rest. */
static void reduce_prod_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[],
                             const bool want[], LsValueId dx[])
{
    (void)want;
    LsAttr at = g->node[n.i].attr;
    LsValueId x = ls_in(g, n, 0), zero = ls_const_real(cx, g, 0), one = ls_const_real(cx, g, 1);
    LsValueId is_zero = ls_append2(cx, g, LS_OP_EQUAL, x, zero, NULL);
    LsValueId safe = ls_append3(cx, g, LS_OP_WHERE, is_zero, one, x, NULL);
    LsValueId rest = ls_append1(cx, g, LS_OP_REDUCE_PROD, safe, &at);
    LsValueId zeros = ls_append1(cx, g, LS_OP_CAST, is_zero, &(LsAttr){.cast = LS_REAL});
    zeros = ls_append1(cx, g, LS_OP_REDUCE_SUM, zeros, &at);
    LsValueId flow = ls_append2(cx, g, LS_OP_MUL, dy[0], rest, NULL);
    LsValueId none_zero = ls_append2(cx, g, LS_OP_EQUAL, zeros, zero, NULL);
    LsValueId one_zero = ls_append2(cx, g, LS_OP_EQUAL, zeros, one, NULL);
    LsValueId at_zero = ls_append3(cx, g, LS_OP_WHERE, one_zero, flow, zero, NULL);
    LsValueId elsewhere = ls_append3(cx, g, LS_OP_WHERE, none_zero, flow, zero, NULL);
    LsValueId top = ls_append3(cx, g, LS_OP_WHERE, is_zero, at_zero, elsewhere, NULL);
    dx[0] = ls_append2(cx, g, LS_OP_DIV, top, safe, NULL);
}

const LsOp ls_op_reduce_prod = {
    .name = "ReduceProd", .min_in = 1, .max_in = 1, .nout = 1, .infer = reduce_infer,
    .grad = reduce_prod_grad, .kernel = LS_K_REDUCE, .expr = "%0", .combine = LS_PROD,
    .eval = reduce_sum_eval, .eval_int = reduce_sum_eval_int,
};

/* ---- ONNX rows ---- */
/* The reduced axes of the node; there are none of a scalar, and with noop_with_empty_axes. */
static bool reduce_axes(LsOnnxNode *n, int since_input, LsReduceAttr *at)
{
    int64_t list[LS_MAX_RANK];
    int rank = ls_shape(n->g, n->in[0])->rank;
    int count = n->version < since_input ? ls_onnx_ints(n, "axes", LS_MAX_RANK, list)
                                         : ls_onnx_const_ints(n, 1, LS_MAX_RANK, list);
    if (count == -2)
        return false;
    at->keep = ls_onnx_int(n, "keepdims", 1) != 0;
    at->axes = 0;
    for (int k = 0; k < count; k++) {
        int axis = ls_onnx_axis(n, list[k], rank);
        if (axis < 0)
            return false;
        at->axes |= 1u << axis;
    }
    const bool noop = n->version >= since_input && ls_onnx_int(n, "noop_with_empty_axes", 0) != 0;
    if (count <= 0 && !noop)
        at->axes = (1u << rank) - 1;
    return true;
}

/* v, reduced with the axes kept, in the shape that the node requests. */
static bool reduce_done(LsOnnxNode *n, LsValueId out[], LsValueId v, const LsReduceAttr *at)
{
    out[0] = v;
    if (!ls_is(v) || at->keep)
        return ls_is(v);
    LsShape to = {0};
    for (int k = 0; k < ls_shape(n->g, v)->rank; k++)
        if (!(at->axes >> k & 1))
            to.dim[to.rank++] = ls_shape(n->g, v)->dim[k];
    out[0] = ls_reshape(n->cx, n->g, v, &to);
    return ls_is(out[0]);
}

/* The square root of integers, rounded towards zero: ONNX defines ReduceL2 for them, but not
 * Sqrt. */
static LsValueId root_of_ints(LsOnnxNode *n, LsValueId v)
{
    LsGraph *g = n->g;
    if (!ls_is_const(g, v)) {
        ls_onnx_error(n, LS_E_TYPE, "insert a Cast to float",
                      "the operand is %s, and the sum of its squares is not known at "
                      "compile time, or leaves its type: %s takes float then",
                      ls_type_name(ls_type(g, v)), n->op);
        return (LsValueId){0};
    }
    const LsShape s = *ls_shape(g, v);
    const int64_t count = ls_count(&s);
    int64_t *root = ls_arena_alloc(g->arena, (size_t)count + 1, sizeof *root);
    for (int64_t i = 0; i < count; i++) {
        const int64_t x = ls_const_int_at(g, v, i);
        root[i] = (int64_t)sqrt((double)x);         /* off by one where doubles have gaps */
        while (root[i] > 0 && root[i] > x / root[i])
            root[i]--;
        while (root[i] + 1 <= x / (root[i] + 1))
            root[i]++;
    }
    const LsType type = ls_type(g, v);
    v = ls_const_add(n->cx, g, LS_I64, &s, root);
    return type == LS_I64 ? v : ls_append1(n->cx, g, LS_OP_CAST, v, &(LsAttr){.cast = type});
}

/* before (pointwise, or NOP), the reduction, after (pointwise, or NOP). Without an axis the others
 * remain. */
static bool reduce_chain(LsOnnxNode *n, LsValueId out[], int since_input, LsOpCode before,
                         LsOpCode reduce, LsOpCode after)
{
    LsReduceAttr at = {0};
    if (!ls_onnx_takes(n, 1, n->version < since_input ? 1 : 2) || !reduce_axes(n, since_input, &at))
        return false;
    LsValueId v = n->in[0];
    bool truth =
        ls_type(n->g, v) == LS_BOOL && (reduce == LS_OP_REDUCE_MAX || reduce == LS_OP_REDUCE_MIN);
    if (truth)                          /* any, all */
        v = ls_append1(n->cx, n->g, LS_OP_CAST, v, &(LsAttr){.cast = LS_I32});
    if (before != LS_OP_NOP)
        v = ls_append1(n->cx, n->g, before, v, NULL);
    if (ls_is(v) && at.axes != 0)
        v = ls_append1(n->cx, n->g, reduce, v, &(LsAttr){.reduce = at});
    else if (ls_is(v) && reduce == LS_OP_REDUCE_SUM_SQUARE)
        v = ls_append2(n->cx, n->g, LS_OP_MUL, v, v, NULL);
    if (ls_is(v) && after == LS_OP_SQRT && ls_type(n->g, v) != LS_REAL)
        v = root_of_ints(n, v);
    else if (ls_is(v) && after != LS_OP_NOP)
        v = ls_append1(n->cx, n->g, after, v, NULL);
    return reduce_done(n, out, v, &at) && (!truth || ls_onnx_cast_type(n, out, LS_BOOL));
}

#define REDUCE(row, op_type, since_input, before, reduce, after) \
    static bool row##_build(LsOnnxNode *n, LsValueId out[]) \
    { return reduce_chain(n, out, since_input, before, reduce, after); } \
    const LsOnnxOp ls_onnx_##row = {op_type, 1, row##_build};
REDUCE(reduce_sum, "ReduceSum", 13, LS_OP_NOP, LS_OP_REDUCE_SUM, LS_OP_NOP)
REDUCE(reduce_mean, "ReduceMean", 18, LS_OP_NOP, LS_OP_REDUCE_MEAN, LS_OP_NOP)
REDUCE(reduce_max, "ReduceMax", 18, LS_OP_NOP, LS_OP_REDUCE_MAX, LS_OP_NOP)
REDUCE(reduce_min, "ReduceMin", 18, LS_OP_NOP, LS_OP_REDUCE_MIN, LS_OP_NOP)
REDUCE(reduce_prod, "ReduceProd", 18, LS_OP_NOP, LS_OP_REDUCE_PROD, LS_OP_NOP)
REDUCE(reduce_sum_square, "ReduceSumSquare", 18, LS_OP_NOP, LS_OP_REDUCE_SUM_SQUARE, LS_OP_NOP)
REDUCE(reduce_l1, "ReduceL1", 18, LS_OP_ABS, LS_OP_REDUCE_SUM, LS_OP_NOP)
REDUCE(reduce_l2, "ReduceL2", 18, LS_OP_NOP, LS_OP_REDUCE_SUM_SQUARE, LS_OP_SQRT)
REDUCE(reduce_log_sum, "ReduceLogSum", 18, LS_OP_NOP, LS_OP_REDUCE_SUM, LS_OP_LOG)

/* m + log sum exp(x - m) with the largest element m, which needs no gradient. */
static bool reduce_log_sum_exp_build(LsOnnxNode *n, LsValueId out[])
{
    LsCtx *cx = n->cx;
    LsGraph *g = n->g;
    LsReduceAttr at = {0};
    if (!ls_onnx_takes(n, 1, n->version < 18 ? 1 : 2) || !reduce_axes(n, 18, &at)
        || !ls_onnx_takes_real(n, 0))
        return false;
    LsValueId x = out[0] = n->in[0];
    if (at.axes == 0)
        return true;
    LsValueId m = ls_append1(cx, g, LS_OP_REDUCE_MAX, x, &(LsAttr){.reduce = at});
    if (!ls_is(m))
        return false;
    m = ls_append1(cx, g, LS_OP_DETACH, m, NULL);
    LsValueId v = ls_append1(cx, g, LS_OP_EXP, ls_append2(cx, g, LS_OP_SUB, x, m, NULL), NULL);
    v = ls_append1(cx, g, LS_OP_REDUCE_SUM, v, &(LsAttr){.reduce = at});
    v = ls_append2(cx, g, LS_OP_ADD, ls_append1(cx, g, LS_OP_LOG, v, NULL), m, NULL);
    return reduce_done(n, out, v, &at);
}
const LsOnnxOp ls_onnx_reduce_log_sum_exp = {"ReduceLogSumExp", 1, reduce_log_sum_exp_build};

/* ---- global pooling: the mean over all axes behind the channels ---- */
static bool global_average_pool_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes_image(n))
        return false;
    int rank = ls_shape(n->g, n->in[0])->rank;
    LsAttr at = {.reduce = {.axes = ((1u << rank) - 1) & ~3u, .keep = true}};
    out[0] = ls_append1(n->cx, n->g, LS_OP_REDUCE_MEAN, n->in[0], &at);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_global_average_pool = {"GlobalAveragePool", 1, global_average_pool_build};
