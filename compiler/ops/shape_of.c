/* compiler/ops/shape_of.c -- Shape, Size, Range, ConstantOfShape: constant, as shapes are
 * static. */
#include "compiler/fold/fold_constants.h"
#include "compiler/ops/row.h"

#include <math.h>

/* A bound of Shape's range: negative counts from the back, then clamped. */
static int bound(int64_t v, int rank)
{
    v += v < 0 ? rank : 0;
    return v < 0 ? 0 : v > rank ? rank : (int)v;
}

static bool shape_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, 1))
        return false;
    const LsShape x = *ls_shape(n->g, n->in[0]);
    int start = bound(ls_onnx_int(n, "start", 0), x.rank);
    int end = bound(ls_onnx_int(n, "end", x.rank), x.rank);
    out[0] = ls_const_ints(n->cx, n->g, end > start ? end - start : 0, x.dim + start);
    return true;
}
const LsOnnxOp ls_onnx_shape = {"Shape", 1, shape_build};

static bool size_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, 1))
        return false;
    int64_t *count = ls_arena_alloc(n->g->arena, 1, sizeof *count);
    *count = ls_count(ls_shape(n->g, n->in[0]));
    out[0] = ls_const_add(n->cx, n->g, LS_I64, &(LsShape){0}, count);
    return true;
}
const LsOnnxOp ls_onnx_size = {"Size", 1, size_build};

/* ---- Range: start, limit, delta ---- */
static LsValueId range_reals(LsOnnxNode *n, const double v[3], int64_t count)
{
    float *data = ls_arena_alloc(n->g->arena, (size_t)count, sizeof *data);
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)(v[0] + (double)i * v[2]);
    return ls_const_add(n->cx, n->g, LS_REAL, &(LsShape){1, {count}}, data);
}

static LsValueId range_ints(LsOnnxNode *n, LsType type, const int64_t v[3], int64_t count)
{
    size_t bytes = (size_t)ls_type_bytes(type, 4);
    char *data = ls_arena_alloc(n->g->arena, (size_t)count, bytes);
    for (int64_t i = 0; i < count; i++) {
        int64_t whole = (int64_t)((uint64_t)v[0] + (uint64_t)i * (uint64_t)v[2]);
        int32_t narrow = (int32_t)whole;
        memcpy(data + (size_t)i * bytes, type == LS_I64 ? (void *)&whole : (void *)&narrow, bytes);
    }
    return ls_const_add(n->cx, n->g, type, &(LsShape){1, {count}}, data);
}

static bool range_build(LsOnnxNode *n, LsValueId out[])
{
    double real[3];
    int64_t whole[3];
    if (!ls_onnx_takes(n, 3, 3))
        return false;
    LsType type = ls_type(n->g, n->in[0]);
    for (int k = 0; k < 3; k++) {
        if (ls_type(n->g, n->in[k]) != type || type == LS_BOOL)
            return ls_onnx_error(n, LS_E_TYPE, NULL, "start is %s, operand %d is %s",
                                 ls_type_name(type), k, ls_type_name(ls_type(n->g, n->in[k])));
        int got = ls_onnx_const_reals(n, k, 1, &real[k]);
        if (got < 0)
            return false;
        if (got != 1)
            return ls_onnx_error(n, LS_E_SHAPE, NULL, "operand %d is empty, not one number", k);
        whole[k] = ls_const_int_at(n->g, n->in[k], 0);
    }
    double count = ceil((real[1] - real[0]) / real[2]);
    bool counted = real[2] != 0 && !isnan(count) && count < 0x1p32;
    int64_t length = counted && count > 0 ? (int64_t)count : 0;
    if (!counted || !ls_fold_affords(n->g, length))
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "from %g to %g by %g is too long", real[0],
                             real[1], real[2]);
    out[0] = type == LS_REAL ? range_reals(n, real, length) : range_ints(n, type, whole, length);
    return true;
}
const LsOnnxOp ls_onnx_range = {"Range", 11, range_build};

/* ---- EyeLike: ones on a diagonal ---- */
static bool eye_like_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, 1))
        return false;
    const LsShape x = *ls_shape(n->g, n->in[0]);
    int64_t k = ls_onnx_int(n, "k", 0);
    if (x.rank != 2)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "X is %s, it needs a matrix",
                             ls_dims(n->g, n->in[0]));
    if (!ls_fold_affords(n->g, ls_count(&x)))
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "a constant of %s is too large",
                             ls_dims(n->g, n->in[0]));
    float *data = ls_arena_alloc(n->g->arena, (size_t)ls_count(&x) + 1, sizeof *data);
    for (int64_t i = 0; i < x.dim[0]; i++)
        for (int64_t j = 0; j < x.dim[1]; j++)
            data[i * x.dim[1] + j] = j - i == k;
    out[0] = ls_const_add(n->cx, n->g, LS_REAL, &x, data);
    if (!ls_is(out[0]))
        return false;
    return ls_onnx_has(n, "dtype") ? ls_onnx_cast_to(n, out, ls_onnx_int(n, "dtype", 1))
                                   : ls_onnx_cast_type(n, out, ls_type(n->g, n->in[0]));
}
const LsOnnxOp ls_onnx_eye_like = {"EyeLike", 9, eye_like_build};

/* ---- ConstantOfShape: one value, repeated; expanded at run time if too large for a weight ---- */
static LsValueId repeated(LsOnnxNode *n, LsValueId v, const LsShape *to)
{
    LsGraph *g = n->g;
    LsType type = ls_type(g, v);
    size_t count = (size_t)ls_count(to), bytes = (size_t)ls_type_bytes(type, 4);
    char *data = ls_arena_alloc(g->arena, count, bytes);
    for (size_t i = 0; i < count; i++)
        memcpy(data + i * bytes, g->value[v.i].data, bytes);
    return ls_const_add(n->cx, g, type, to, data);
}

static bool constant_of_shape_build(LsOnnxNode *n, LsValueId out[])
{
    LsShape to = {0};
    if (!ls_onnx_takes(n, 1, 1) || (to.rank = ls_onnx_const_ints(n, 0, LS_MAX_RANK, to.dim)) < 0)
        return false;
    LsValueId v =
        ls_onnx_has(n, "value") ? ls_onnx_tensor(n, "value") : ls_const_real(n->cx, n->g, 0);
    if (!ls_is(v))
        return false;
    if (ls_count(ls_shape(n->g, v)) != 1)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "value has shape %s, not one element",
                             ls_dims(n->g, v));
    v = ls_reshape(n->cx, n->g, v, &(LsShape){0});
    out[0] = ls_is(v) ? ls_expand(n->cx, n->g, v, to) : v;     /* checks the shape */
    if (ls_is(out[0]) && ls_fold_affords(n->g, ls_count(&to)))
        out[0] = repeated(n, v, &to);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_constant_of_shape = {"ConstantOfShape", 9, constant_of_shape_build};
