/* compiler/ops/resize_matrix.c -- resizes an axis by a constant matrix, or by constant indices
 * (nearest).
 *
 * Resizing is separable and its sizes are known, so each axis is a linear map that is the same for
 * all images; the gradient is the transposed product. */
#include "compiler/ops/resize_matrix.h"

#include "compiler/fold/fold_constants.h"
#include "compiler/ops/index.h"

/* Adds the extrapolated value where the axis is read outside; the weights there are 0. */
static LsValueId add_outside(LsOnnxNode *n, LsValueId v, int axis, const LsResizeLine *l)
{
    LsShape s = {.rank = ls_shape(n->g, v)->rank};
    float *data = ls_arena_alloc(n->g->arena, (size_t)l->y, sizeof *data);
    bool any = false;
    for (int64_t i = 0; i < l->y; i++) {
        bool outside = ls_line_outside(l, i);
        data[i] = outside ? (float)l->extrapolation : 0;
        any |= outside;
    }
    for (int k = 0; k < s.rank; k++)
        s.dim[k] = k == axis ? l->y : 1;
    return !any || l->extrapolation == 0
               ? v
               : ls_append2(n->cx, n->g, LS_OP_ADD, v, ls_const_add(n->cx, n->g, LS_REAL, &s, data),
                            NULL);
}

static LsValueId by_index(LsOnnxNode *n, LsValueId v, int axis, const LsResizeLine *l)
{
    LsAttr at = {.gather = {.axis = axis, .zero = true}};
    if (!ls_index_affords(n, l->y))
        return (LsValueId){0};
    int64_t *index = ls_arena_alloc(n->g->arena, (size_t)l->y, sizeof *index);
    for (int64_t i = 0; i < l->y; i++) {
        LsLineTap tap;
        index[i] = ls_line_taps(l, i, &tap) > 0 ? tap.at : LS_INDEX_OUTSIDE;
    }
    return ls_append2(n->cx, n->g, LS_OP_GATHER, v,
                      ls_const_add(n->cx, n->g, LS_I64, &(LsShape){1, {l->y}}, index), &at);
}

/* Fills one row of the matrix, of l->x weights. Returns false where no neighbour has a weight. */
static bool fill_row(const LsResizeLine *l, int64_t i, LsLineTap tap[], double sum_of[],
                     float row[])
{
    const int64_t n = ls_line_taps(l, i, tap);
    memset(sum_of, 0, (size_t)l->x * sizeof *sum_of);
    for (int64_t k = 0; k < n; k++)
        sum_of[tap[k].at] += tap[k].by;
    for (int64_t k = 0; k < l->x; k++)
        row[k] = (float)sum_of[k];
    return n > 0 || ls_line_outside(l, i);
}

static LsValueId matrix(LsOnnxNode *n, const LsResizeLine *l)
{
    if (l->x > INT64_MAX / l->y || !ls_fold_affords(n->g, l->x * l->y)) {
        ls_onnx_error(n, LS_E_SHAPE, NULL,
                      "a matrix of %" PRId64 " times %" PRId64 " weights is too large", l->y, l->x);
        return (LsValueId){0};
    }
    float *data = ls_arena_alloc(n->g->arena, (size_t)(l->x * l->y), sizeof *data);
    double *sum_of = ls_arena_alloc(n->cx->arena, (size_t)l->x, sizeof *sum_of);
    LsLineTap *tap = ls_arena_alloc(n->cx->arena, (size_t)ls_line_most_taps(l), sizeof *tap);
    for (int64_t i = 0; i < l->y; i++) {
        if (!fill_row(l, i, tap, sum_of, data + i * l->x)) {
            ls_onnx_error(n, LS_E_ATTR, NULL,
                          "element %" PRId64 " of a resized axis has no neighbours with weight", i);
            return (LsValueId){0};
        }
    }
    return ls_const_add(n->cx, n->g, LS_REAL, &(LsShape){2, {l->y, l->x}}, data);
}

/* The last axis: v times the transposed matrix; another: the matrix times v, whose later axes are
 * one. */
static LsValueId by_matrix(LsOnnxNode *n, LsValueId v, int axis, const LsResizeLine *l)
{
    LsShape s = *ls_shape(n->g, v), flat = {.rank = axis + 2};
    bool is_last = axis == s.rank - 1;
    LsAttr at = {.gemm = {.alpha = 1, .trans_b = is_last}};
    LsValueId m = matrix(n, l);
    if (!ls_is(m) || is_last)
        return ls_is(m) ? ls_append2(n->cx, n->g, LS_OP_MATMUL, v, m, &at) : m;
    for (int k = 0; k <= axis; k++)
        flat.dim[k] = s.dim[k];
    flat.dim[axis + 1] = ls_index_span(&s, axis + 1, s.rank);
    v = ls_append2(n->cx, n->g, LS_OP_MATMUL, m, ls_reshape(n->cx, n->g, v, &flat), &at);
    s.dim[axis] = l->y;
    return ls_is(v) ? ls_reshape(n->cx, n->g, v, &s) : v;
}

LsValueId ls_resize_line(LsOnnxNode *n, LsValueId v, int axis, const LsResizeLine *line)
{
    v = line->mode == LS_LINE_NEAREST ? by_index(n, v, axis, line) : by_matrix(n, v, axis, line);
    return ls_is(v) ? add_outside(n, v, axis, line) : v;
}
