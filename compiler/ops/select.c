/* compiler/ops/select.c -- NonZero and Compress, whose results have as many elements as a condition
 * has trues: the condition must be known. */
#include "compiler/ops/index.h"

static bool is_known(LsOnnxNode *n, int k)
{
    const LsGraph *g = n->g;
    if (ls_is_const(g, n->in[k]) && g->value[n->in[k].i].data != NULL)
        return true;
    return ls_onnx_error(
        n, LS_E_NOT_CONST,
        "select without changing the shape: Where with the condition, or weights of 0 and 1",
        "the size of the result would depend on operand %d ('%s'), which is computed at run time; "
        "all shapes are fixed at compile time",
        k, g->value[n->in[k].i].name);
}

/* The flat indices at which v is not 0, at most `most`; their number. */
static int64_t find_true(const LsOnnxNode *n, LsValueId v, int64_t at[])
{
    int64_t count = 0;
    for (int64_t i = 0; i < ls_count(ls_shape(n->g, v)); i++)
        if (ls_const_at(n->g, v, i) != 0)
            at[count++] = i;
    return count;
}

/* The indices along each axis, one row per axis. */
static bool non_zero_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, 1) || !is_known(n, 0))
        return false;
    LsGraph *g = n->g;
    const LsShape s = *ls_shape(g, n->in[0]);
    int64_t *at = ls_arena_alloc(g->arena, (size_t)ls_count(&s) + 1, sizeof *at);
    int64_t count = find_true(n, n->in[0], at);
    int rank = s.rank > 0 ? s.rank : 1;
    int64_t *index = ls_arena_alloc(g->arena, (size_t)(rank * count) + 1, sizeof *index);
    for (int64_t i = 0; i < count; i++)
        for (int k = rank - 1; k >= 0; k--) {
            int64_t dim = s.rank > 0 ? s.dim[k] : 1;
            index[k * count + i] = at[i] % dim;
            at[i] /= dim;
        }
    out[0] = ls_const_add(n->cx, g, LS_I64, &(LsShape){2, {rank, count}}, index);
    return true;
}
const LsOnnxOp ls_onnx_non_zero = {"NonZero", 9, non_zero_build};

/* The elements along an axis, or of all axes as one, at which the condition is true. */
static bool compress_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 2, 2) || !is_known(n, 1))
        return false;
    LsGraph *g = n->g;
    LsValueId x = n->in[0];
    int axis = 0;
    if (!ls_onnx_has(n, "axis"))
        x = ls_reshape(n->cx, g, x, &(LsShape){1, {ls_count(ls_shape(g, x))}});
    else if ((axis = ls_onnx_axis(n, ls_onnx_int(n, "axis", 0), ls_shape(g, x)->rank)) < 0)
        return false;
    int64_t length = ls_count(ls_shape(g, n->in[1])), dim = ls_shape(g, x)->dim[axis];
    if (ls_shape(g, n->in[1])->rank != 1 || length > dim)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "the condition is %s, for %" PRId64 " elements",
                             ls_dims(g, n->in[1]), dim);
    int64_t *at = ls_arena_alloc(g->arena, (size_t)length + 1, sizeof *at);
    int64_t count = find_true(n, n->in[1], at);
    LsValueId index = ls_const_add(n->cx, g, LS_I64, &(LsShape){1, {count}}, at);
    out[0] = ls_append2(n->cx, g, LS_OP_GATHER, x, index, &(LsAttr){.gather = {.axis = axis}});
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_compress = {"Compress", 9, compress_build};
