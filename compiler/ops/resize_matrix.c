/* compiler/ops/resize_matrix.c -- resizes an axis by a constant matrix, or by constant indices (nearest).
 *
 * Resizing is separable and its sizes are known, so each axis is a linear map that is the same for all images;
 * the gradient is the transposed product. */
#include "compiler/ops/resize_matrix.h"

#include "compiler/fold/fold_constants.h"
#include "compiler/ops/index.h"

#include <math.h>

/* Where element i of the result lies in the operand. */
static double source(const LsResizeLine *l, int64_t i)
{
    double at = (double)i, x = (double)l->x, y = l->scale * x;
    switch (l->coord) {
    case LS_LINE_PYTORCH_HALF_PIXEL:
        return l->y == 1 ? 0 : (at + 0.5) / l->scale - 0.5;
    case LS_LINE_ALIGN_CORNERS:
        return l->y == 1 ? 0 : at * (x - 1) / (y - 1);
    case LS_LINE_ASYMMETRIC:
        return at / l->scale;
    case LS_LINE_HALF_PIXEL_SYMMETRIC:      /* the centres of operand and result coincide */
        return x / 2 * (1 - (double)l->y / y) + (at + 0.5) / l->scale - 0.5;
    case LS_LINE_CROP:
        return l->lo * (x - 1)
            + (l->hi - l->lo) * (x - 1) * (l->y == 1 ? 0.5 : at / (y - 1));
    case LS_LINE_TF_HALF_PIXEL:
        return (at + 0.5) / l->scale;
    case LS_LINE_HALF_PIXEL:
        break;
    }
    return (at + 0.5) / l->scale - 0.5;
}

static bool is_outside(const LsResizeLine *l, double at)
{
    return l->coord == LS_LINE_CROP && !(at >= 0 && at <= (double)(l->x - 1));
}

static int64_t clamp(double at, int64_t length)
{
    return (int64_t)fmin(fmax(at, 0), (double)(length - 1));
}

static double rounded(LsRound how, double at)
{
    switch (how) {
    case LS_ROUND_FLOOR: return floor(at);
    case LS_ROUND_CEIL: return ceil(at);
    case LS_ROUND_PREFER_FLOOR: return ceil(at - 0.5);
    case LS_ROUND_PREFER_CEIL: break;
    }
    return floor(at + 0.5);
}

/* Weight of an element at distance t. */
static double weight(const LsResizeLine *l, double t)
{
    double a = l->cubic_a;
    t = fabs(t);
    if (l->mode == LS_LINE_LINEAR)
        return fmax(1 - t, 0);
    if (t <= 1)
        return ((a + 2) * t - (a + 3)) * t * t + 1;
    return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

/* Fills one row of the matrix, of l->x weights whose sum is 1. Neighbours beyond the ends are the ends, or left
 * out. Antialiasing widens the neighbourhood where the axis shrinks. Returns false where no weight remains. */
static bool fill_row(const LsResizeLine *l, double at, double *sum_of, float row[])
{
    double narrow = l->antialias ? fmin(l->scale, 1) : 1;
    double first = floor(-(l->mode == LS_LINE_CUBIC ? 2 : 1) / narrow) + 1, base = ceil(at) - 1, sum = 0;
    memset(sum_of, 0, (size_t)l->x * sizeof *sum_of);
    for (double k = base + first; k < base + 2 - first; k++) {
        if (l->exclude_outside && (k < 0 || k > (double)(l->x - 1)))
            continue;
        double w = weight(l, narrow * (k - at));
        sum_of[clamp(k, l->x)] += w;
        sum += w;
    }
    for (int64_t k = 0; k < l->x; k++)
        row[k] = (float)(sum_of[k] / sum);
    return sum != 0 && isfinite(sum);
}

/* Adds the extrapolated value where the axis is read outside; the weights there are 0. */
static LsValueId add_outside(LsOnnxNode *n, LsValueId v, int axis, const LsResizeLine *l)
{
    LsShape s = {.rank = ls_shape(n->g, v)->rank};
    float *data = ls_arena_alloc(n->g->arena, (size_t)l->y, sizeof *data);
    bool any = false;
    for (int64_t i = 0; i < l->y; i++) {
        bool outside = is_outside(l, source(l, i));
        data[i] = outside ? (float)l->extrapolation : 0;
        any |= outside;
    }
    for (int k = 0; k < s.rank; k++)
        s.dim[k] = k == axis ? l->y : 1;
    return !any || l->extrapolation == 0
               ? v
               : ls_append2(n->cx, n->g, LS_OP_ADD, v, ls_const_add(n->cx, n->g, LS_REAL, &s, data), NULL);
}

static LsValueId by_index(LsOnnxNode *n, LsValueId v, int axis, const LsResizeLine *l)
{
    LsAttr at = {.gather = {.axis = axis, .zero = true}};
    if (!ls_index_affords(n, l->y))
        return (LsValueId){0};
    int64_t *index = ls_arena_alloc(n->g->arena, (size_t)l->y, sizeof *index);
    for (int64_t i = 0; i < l->y; i++) {
        double from = source(l, i);
        index[i] = is_outside(l, from) ? LS_INDEX_OUTSIDE : clamp(rounded(l->nearest, from), l->x);
    }
    return ls_append2(n->cx, n->g, LS_OP_GATHER, v,
                      ls_const_add(n->cx, n->g, LS_I64, &(LsShape){1, {l->y}}, index), &at);
}

static LsValueId matrix(LsOnnxNode *n, const LsResizeLine *l)
{
    if (l->x > INT64_MAX / l->y || !ls_fold_affords(n->g, l->x * l->y)) {
        ls_onnx_error(n, LS_E_SHAPE, NULL, "a matrix of %" PRId64 " times %" PRId64 " weights is too large", l->y,
                      l->x);
        return (LsValueId){0};
    }
    float *data = ls_arena_alloc(n->g->arena, (size_t)(l->x * l->y), sizeof *data);
    double *sum_of = ls_arena_alloc(n->cx->arena, (size_t)l->x, sizeof *sum_of);
    memset(data, 0, (size_t)(l->x * l->y) * sizeof *data);
    for (int64_t i = 0; i < l->y; i++) {
        double at = source(l, i);
        if (!is_outside(l, at) && !fill_row(l, at, sum_of, data + i * l->x)) {
            ls_onnx_error(n, LS_E_ATTR, NULL, "element %" PRId64 " of a resized axis has no neighbours with weight", i);
            return (LsValueId){0};
        }
    }
    return ls_const_add(n->cx, n->g, LS_REAL, &(LsShape){2, {l->y, l->x}}, data);
}

/* The last axis: v times the transposed matrix; another: the matrix times v, whose later axes are one. */
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
