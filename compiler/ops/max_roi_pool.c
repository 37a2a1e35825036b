/* compiler/ops/max_roi_pool.c -- MaxRoiPool: the largest elements of the parts of a box. Boxes are
 * data, so each part looks at every row, and then at every column, and takes those inside: first
 * along the height, then along the width. */
#include "compiler/ops/index.h"

#include <math.h>

typedef struct Pool {
    LsOnnxNode *n;
    LsShape x;
    int64_t boxes, parts[2];    /* parts of a box along height and width */
    LsValueId box;              /* [R,5]: image, x1, y1, x2, y2 */
    double scale;
} Pool;

static LsValueId two(const Pool *r, LsOpCode op, LsValueId a, LsValueId b)
{
    return ls_append2(r->n->cx, r->n->g, op, a, b, NULL);
}

static LsValueId one(const Pool *r, LsOpCode op, LsValueId a)
{
    return ls_append1(r->n->cx, r->n->g, op, a, NULL);
}
static LsValueId number(const Pool *r, double v) { return ls_const_real(r->n->cx, r->n->g, v); }

/* Column k of the boxes, [R,1,1,1,1]. */
static LsValueId column(const Pool *r, int k)
{
    LsValueId v = ls_slice_axis(r->n->cx, r->n->g, r->box, 1, k, k + 1);
    return ls_is(v) ? ls_reshape(r->n->cx, r->n->g, v, &(LsShape){5, {r->boxes, 1, 1, 1, 1}}) : v;
}

/* 0, 1, .. as reals along an axis of five. */
static LsValueId count(const Pool *r, int64_t length, int axis)
{
    LsValueId v = ls_index_count(r->n, length, 1, axis, 5);
    return ls_append1(r->n->cx, r->n->g, LS_OP_CAST, v, &(LsAttr){.cast = LS_REAL});
}

/* A coordinate in whole pixels. */
static LsValueId pixel(const Pool *r, int k)
{
    LsValueId v = two(r, LS_OP_MUL, column(r, k), number(r, r->scale));
    return one(r, LS_OP_FLOOR, two(r, LS_OP_ADD, v, number(r, 0.5)));
}

/* Bools: element of the image along spatial axis d (its axis `along` of five) is in the part (axis
 * `part`). */
static LsValueId is_inside(const Pool *r, int d, int part, int along)
{
    LsValueId start = pixel(r, 2 - d), end = pixel(r, 4 - d), p = count(r, r->parts[d], part);
    LsValueId i = two(r, LS_OP_SUB, count(r, r->x.dim[2 + d], along), start);
    LsValueId size = two(
        r, LS_OP_MAX, two(r, LS_OP_ADD, two(r, LS_OP_SUB, end, start), number(r, 1)), number(r, 1));
    LsValueId bin = two(r, LS_OP_DIV, size, number(r, (double)r->parts[d]));
    LsValueId low = one(r, LS_OP_FLOOR, two(r, LS_OP_MUL, p, bin));
    LsValueId high = one(r, LS_OP_CEIL, two(r, LS_OP_MUL, two(r, LS_OP_ADD, p, number(r, 1)), bin));
    return two(r, LS_OP_AND, two(r, LS_OP_GREATER_EQUAL, i, low), two(r, LS_OP_LESS, i, high));
}

/* The largest element of v inside, over the axis. */
static LsValueId largest(const Pool *r, LsValueId v, LsValueId inside, int axis)
{
    v = ls_append3(r->n->cx, r->n->g, LS_OP_WHERE, inside, v, number(r, -INFINITY), NULL);
    return ls_append1(r->n->cx, r->n->g, LS_OP_REDUCE_MAX, v,
                      &(LsAttr){.reduce = {.axes = 1u << axis, .keep = true}});
}

static bool build(const Pool *r, LsValueId *out)
{
    LsCtx *cx = r->n->cx;
    LsGraph *g = r->n->g;
    const LsShape *x = &r->x, y = {4, {r->boxes, x->dim[1], r->parts[0], r->parts[1]}};
    LsValueId of = ls_append1(cx, g, LS_OP_CAST, ls_slice_axis(cx, g, r->box, 1, 0, 1),
                              &(LsAttr){.cast = LS_I64});
    of = ls_is(of) ? ls_reshape(cx, g, of, &(LsShape){1, {r->boxes}}) : of;
    LsValueId v = ls_append2(cx, g, LS_OP_GATHER, r->n->in[0], of, NULL);
    v = ls_is(v)
            ? ls_reshape(cx, g, v, &(LsShape){5, {r->boxes, x->dim[1], 1, x->dim[2], x->dim[3]}})
            : v;
    v = ls_is(v) ? largest(r, v, is_inside(r, 0, 2, 3), 3) : v;
    v = ls_is(v) ? largest(r, v, is_inside(r, 1, 3, 4), 4) : v;
    LsValueId empty = two(r, LS_OP_EQUAL, v, number(r, -INFINITY));
    v = ls_append3(cx, g, LS_OP_WHERE, empty, number(r, 0), v, NULL);
    *out = ls_is(v) ? ls_reshape(cx, g, v, &y) : v;
    return ls_is(*out);
}

static bool max_roi_pool_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 2, 2) || !ls_onnx_takes_real(n, 0) || !ls_onnx_takes_real(n, 1))
        return false;
    const LsShape *x = ls_shape(n->g, n->in[0]), *box = ls_shape(n->g, n->in[1]);
    if (x->rank != 4 || box->rank != 2 || box->dim[1] != 5)
        return ls_onnx_error(n, LS_E_SHAPE, "X is N x C x H x W, rois are R x 5",
                             "X is %s, rois are %s", ls_dims(n->g, n->in[0]),
                             ls_dims(n->g, n->in[1]));
    Pool r = {.n = n, .x = *x, .boxes = box->dim[0], .scale = ls_onnx_float(n, "spatial_scale", 1)};
    int have = ls_onnx_ints(n, "pooled_shape", 2, r.parts);
    if (have != 2 || r.parts[0] < 1 || r.parts[1] < 1)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "pooled_shape has %d entries of at least 1, not 2",
                             have < 0 || have == 2 ? 0 : have);
    for (int d = 0; d < 2; d++)
        if (!ls_index_affords(n, r.parts[d]) || !ls_index_affords(n, x->dim[2 + d]))
            return false;
    r.box = ls_append1(n->cx, n->g, LS_OP_DETACH, n->in[1], NULL);
    return ls_is(r.box) && build(&r, out);
}
const LsOnnxOp ls_onnx_max_roi_pool = {"MaxRoiPool", 1, max_roi_pool_build};
