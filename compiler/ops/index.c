/* compiler/ops/index.c -- see the header. */
#include "compiler/ops/index.h"

#include "compiler/fold/fold_constants.h"

LsValueId ls_index_const(const LsOnnxNode *n, int64_t v)
{
    return ls_const_int(n->cx, n->g, LS_I64, v);
}

LsValueId ls_index_count(const LsOnnxNode *n, int64_t length, int64_t step, int axis, int rank)
{
    int64_t *v = ls_arena_alloc(n->g->arena, (size_t)length + 1, sizeof *v);
    LsShape s = {.rank = rank};
    for (int k = 0; k < rank; k++)
        s.dim[k] = k == axis ? length : 1;
    for (int64_t i = 0; i < length; i++)
        v[i] = i * step;
    return ls_const_add(n->cx, n->g, LS_I64, &s, v);
}

bool ls_index_affords(const LsOnnxNode *n, int64_t length)
{
    return ls_fold_affords(n->g, length)
           || ls_onnx_error(n, LS_E_SHAPE, NULL, "%" PRId64 " indices are too many to be stored",
                            length);
}

LsValueId ls_index_ints(const LsOnnxNode *n, int k)
{
    LsType type = ls_type(n->g, n->in[k]);
    if (type != LS_I64 && type != LS_I32) {
        ls_onnx_error(n, LS_E_TYPE, NULL, "the indices are %s, not integers", ls_type_name(type));
        return (LsValueId){0};
    }
    if (type == LS_I64)
        return n->in[k];
    return ls_append1(n->cx, n->g, LS_OP_CAST, n->in[k], &(LsAttr){.cast = LS_I64});
}

int64_t ls_index_span(const LsShape *s, int from, int to)
{
    int64_t span = 1;
    for (int k = from; k < to; k++)
        span *= s->dim[k];
    return span;
}

bool ls_index_inside(const LsOnnxNode *n, LsValueId index, int64_t low, int64_t high)
{
    const LsGraph *g = n->g;
    if (!ls_is_const(g, index) || g->value[index.i].data == NULL)
        return true;
    for (int64_t i = 0; i < ls_count(ls_shape(g, index)); i++) {
        int64_t j = ls_const_int_at(g, index, i);
        if (j < -low || j >= high)
            return ls_onnx_error(n, LS_E_SHAPE,
                                 "the table is smaller than the file expects: `lowerset inspect` "
                                 "shows whether --dim or "
                                 "--shape decide its size",
                                 "index %" PRId64 " is outside an axis of length %" PRId64, j,
                                 high);
    }
    return true;
}

/* Known tuples lie inside x. */
static bool tuples_inside(const LsOnnxNode *n, LsValueId tuples, const LsShape *x, int first,
                          int64_t m)
{
    const LsGraph *g = n->g;
    if (!ls_is_const(g, tuples) || g->value[tuples.i].data == NULL)
        return true;
    for (int64_t i = 0; i < ls_count(ls_shape(g, tuples)); i++) {
        int64_t j = ls_const_int_at(g, tuples, i), dim = x->dim[first + i % m];
        if (j < -dim || j >= dim)
            return ls_onnx_error(n, LS_E_SHAPE, NULL,
                                 "index %" PRId64 " is outside axis %d of length %" PRId64, j,
                                 first + (int)(i % m), dim);
    }
    return true;
}

LsValueId ls_index_flat(const LsOnnxNode *n, LsValueId tuples, const LsShape *x, int first,
                        bool wrapped)
{
    LsCtx *cx = n->cx;
    LsGraph *g = n->g;
    LsShape s = *ls_shape(g, tuples);
    int64_t dim[LS_MAX_RANK], stride[LS_MAX_RANK], m = s.dim[s.rank - 1];
    if (!tuples_inside(n, tuples, x, first, m))
        return (LsValueId){0};
    if (m == 1 && !wrapped) {
        s.rank--;
        return ls_reshape(cx, g, tuples, &s);
    }
    for (int k = 0; k < m; k++) {
        dim[k] = x->dim[first + k];
        stride[k] = ls_index_span(x, first + k + 1, first + (int)m);
    }
    LsValueId dims = ls_const_ints(cx, g, (int)m, dim), zero = ls_index_const(n, 0);
    LsValueId below = ls_append2(cx, g, LS_OP_LESS, tuples, zero, NULL);
    LsValueId from_back = ls_append2(cx, g, LS_OP_ADD, tuples, dims, NULL);
    LsValueId v = ls_append3(cx, g, LS_OP_WHERE, below, from_back, tuples, NULL);
    LsValueId inside =
        ls_append2(cx, g, LS_OP_AND, ls_append2(cx, g, LS_OP_GREATER_EQUAL, v, zero, NULL),
                   ls_append2(cx, g, LS_OP_LESS, v, dims, NULL), NULL);
    v = ls_append2(cx, g, LS_OP_MUL, v, ls_const_ints(cx, g, (int)m, stride), NULL);
    v = ls_append3(cx, g, LS_OP_WHERE, inside, v, ls_index_const(n, LS_INDEX_OUTSIDE), NULL);
    if (m > 1)
        v = ls_append1(cx, g, LS_OP_REDUCE_SUM, v,
                       &(LsAttr){.reduce = {.axes = 1u << (s.rank - 1), .keep = true}});
    s.rank--;
    return ls_is(v) ? ls_reshape(cx, g, v, &s) : v;
}

bool ls_index_is_run(const LsGraph *g, LsValueId index, int64_t dim, int64_t *lo)
{
    if (!ls_is_const(g, index) || g->value[index.i].data == NULL || ls_type(g, index) == LS_REAL)
        return false;
    int64_t count = ls_count(ls_shape(g, index));
    for (int64_t i = 0; i < count; i++) {
        int64_t j = ls_const_int_at(g, index, i);
        j += j < 0 ? dim : 0;
        if (i == 0)
            *lo = j;
        else if (j != *lo + i)
            return false;
    }
    return count > 0;
}
