/* compiler/ops/affine_grid.c -- AffineGrid (20): places of the pixels under an affine map, as a
 * product of their constant coordinates with the map. */
#include "compiler/fold/fold_constants.h"
#include "compiler/ops/index.h"

/* Pixel i of `length` as a coordinate, the image being -1 .. 1: the centre, or from end to end. */
static double place(int64_t i, int64_t length, bool corners)
{
    if (!corners)
        return (2 * (double)i + 1) / (double)length - 1;
    return length == 1 ? 0 : 2 * (double)i / (double)(length - 1) - 1;
}

/* One row per pixel: its coordinates, the last axis first, and 1. */
static LsValueId pixels(LsOnnxNode *n, const LsShape *size, int64_t count)
{
    int m = size->rank - 2;
    bool corners = ls_onnx_int(n, "align_corners", 0) != 0;
    float *data = ls_arena_alloc(n->g->arena, (size_t)(count * (m + 1)), sizeof *data);
    for (int64_t p = 0; p < count; p++) {
        int64_t rest = p;
        for (int k = 0; k < m; k++) {
            int64_t length = size->dim[size->rank - 1 - k];
            data[p * (m + 1) + k] = (float)place(rest % length, length, corners);
            rest /= length;
        }
        data[p * (m + 1) + m] = 1;
    }
    return ls_const_add(n->cx, n->g, LS_REAL, &(LsShape){2, {count, m + 1}}, data);
}

/* size: N x C x H x W, or with depth before H. *count: its pixels. */
static bool read_size(LsOnnxNode *n, LsShape *size, int64_t *count)
{
    int have = ls_onnx_const_ints(n, 1, LS_MAX_RANK, size->dim);
    if (have == -2)
        return false;
    if (have != 4 && have != 5)
        return ls_onnx_error(n, LS_E_SHAPE, "give N, C, H, W or N, C, D, H, W",
                             "size has %d entries", have < 0 ? 0 : have);
    size->rank = have;
    *count = 1;
    for (int k = 2; k < have; k++) {
        if (size->dim[k] < 1 || size->dim[k] > LS_INDEX_OUTSIDE / *count)
            return ls_onnx_error(n, LS_E_SHAPE, NULL, "axis %d of size is %" PRId64, k,
                                 size->dim[k]);
        *count *= size->dim[k];
    }
    return ls_fold_affords(n->g, *count * (have - 1))
        || ls_onnx_error(n, LS_E_SHAPE, NULL, "a grid of %" PRId64 " pixels is too large", *count);
}

static bool affine_grid_build(LsOnnxNode *n, LsValueId out[])
{
    LsShape size = {0};
    int64_t count = 0;
    if (!ls_onnx_takes(n, 2, 2) || !ls_onnx_takes_real(n, 0) || !read_size(n, &size, &count))
        return false;
    const LsShape *t = ls_shape(n->g, n->in[0]);
    int m = size.rank - 2;
    if (t->rank != 3 || t->dim[0] != size.dim[0] || t->dim[1] != m || t->dim[2] != m + 1)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "theta is %s, not %" PRId64 "x%dx%d",
                             ls_shape_text(n->cx->arena, t), size.dim[0], m, m + 1);
    LsAttr at = {.gemm = {.alpha = 1, .trans_b = true}};
    LsShape y = {.rank = m + 2, .dim = {size.dim[0]}};
    for (int k = 0; k < m; k++)
        y.dim[1 + k] = size.dim[2 + k];
    y.dim[m + 1] = m;
    out[0] = ls_append2(n->cx, n->g, LS_OP_MATMUL, pixels(n, &size, count), n->in[0], &at);
    out[0] = ls_is(out[0]) ? ls_reshape(n->cx, n->g, out[0], &y) : out[0];
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_affine_grid = {"AffineGrid", 20, affine_grid_build};
