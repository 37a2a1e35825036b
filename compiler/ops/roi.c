/* compiler/ops/roi.c -- RoiAlign (10, 16, 22): the mean, or the maximum, of samples of an image
 * inside of each box.
 *
 * Boxes are places, which get no gradient, as in torchvision. */
#include "compiler/ops/index.h"

typedef struct Roi {
    LsOnnxNode *n;
    LsShape x, y;               /* y: R x C x the result's height and width */
    int64_t ratio;              /* samples along an axis of a bin; 0: one for each pixel that it is
                                 * long */
    double scale, shift;        /* of the boxes' coordinates, to pixels */
    bool at_least_one;          /* boxes are at least one pixel wide */
} Roi;

static LsValueId two(const Roi *r, LsOpCode op, LsValueId a, LsValueId b)
{
    return ls_append2(r->n->cx, r->n->g, op, a, b, NULL);
}

static LsValueId number(const Roi *r, double v) { return ls_const_real(r->n->cx, r->n->g, v); }

static LsValueId where(const Roi *r, LsValueId c, LsValueId a, LsValueId b)
{
    return ls_append3(r->n->cx, r->n->g, LS_OP_WHERE, c, a, b, NULL);
}

/* A number for x, one for y. */
static LsValueId pair(const Roi *r, double x, double y)
{
    float *v = ls_arena_alloc(r->n->g->arena, 2, sizeof *v);
    v[0] = (float)x;
    v[1] = (float)y;
    return ls_const_add(r->n->cx, r->n->g, LS_REAL, &(LsShape){1, {2}}, v);
}

/* Where the samples of a box lie, in bins: [1, height * ratio, width * ratio, 2], x first. */
static LsValueId lattice(const Roi *r)
{
    LsShape s = {4, {1, r->y.dim[2] * r->ratio, r->y.dim[3] * r->ratio, 2}};
    float *v = ls_arena_alloc(r->n->g->arena, (size_t)ls_count(&s), sizeof *v);
    for (int64_t i = 0; i < ls_count(&s) / 2; i++) {
        v[2 * i] = (float)(((double)(i % s.dim[2]) + 0.5) / (double)r->ratio);
        v[2 * i + 1] = (float)(((double)(i / s.dim[2]) + 0.5) / (double)r->ratio);
    }
    return ls_const_add(r->n->cx, r->n->g, LS_REAL, &s, v);
}

/* First corners and sizes of bins in pixels, [R, 2] each. */
static void corners(const Roi *r, LsValueId *first, LsValueId *bin)
{
    LsCtx *cx = r->n->cx;
    LsGraph *g = r->n->g;
    LsValueId box = ls_append1(cx, g, LS_OP_DETACH, r->n->in[1], NULL);
    box = two(r, LS_OP_SUB, two(r, LS_OP_MUL, box, number(r, r->scale)), number(r, r->shift));
    LsValueId from = ls_slice_axis(cx, g, box, 1, 0, 2),
              size = two(r, LS_OP_SUB, ls_slice_axis(cx, g, box, 1, 2, 4), from);
    if (r->at_least_one)
        size = two(r, LS_OP_MAX, size, number(r, 1));
    *first = from;
    *bin = two(r, LS_OP_DIV, size, pair(r, (double)r->y.dim[3], (double)r->y.dim[2]));
}

/* The samples' places in pixels, [R, height * ratio, width * ratio, 2]. */
static LsValueId places(const Roi *r)
{
    LsCtx *cx = r->n->cx;
    LsGraph *g = r->n->g;
    LsShape to = {4, {r->y.dim[0], 1, 1, 2}};
    LsValueId from, bin;
    corners(r, &from, &bin);
    return two(r, LS_OP_ADD, ls_reshape(cx, g, from, &to),
               two(r, LS_OP_MUL, ls_reshape(cx, g, bin, &to), lattice(r)));
}

/* More than a pixel outside of the image, where samples are 0. */
static LsValueId is_outside(const Roi *r, LsValueId at)
{
    return two(r, LS_OP_OR, two(r, LS_OP_LESS, at, number(r, -1)),
               two(r, LS_OP_GREATER, at, pair(r, (double)r->x.dim[3], (double)r->x.dim[2])));
}

static LsValueId inside(const Roi *r, LsValueId at)
{
    LsValueId last = pair(r, (double)(r->x.dim[3] - 1), (double)(r->x.dim[2] - 1));
    return two(r, LS_OP_MIN, two(r, LS_OP_MAX, at, number(r, 0)), last);
}

static LsValueId sampled(const Roi *r, LsValueId at, LsValueId of, LsSampleMode mode)
{
    return ls_append3(r->n->cx, r->n->g, LS_OP_SAMPLE, r->n->in[0], at, of,
                      &(LsAttr){.sample = {.mode = mode, .last_first = true}});
}

/* The weighted neighbours of each place, of which the largest is taken: ONNX's definition of the
 * mode `max`. */
static LsValueId largest_neighbours(const Roi *r, LsValueId at, LsValueId of)
{
    LsCtx *cx = r->n->cx;
    LsGraph *g = r->n->g;
    LsValueId out = is_outside(r, at), in = inside(r, at),
              low = ls_append1(cx, g, LS_OP_FLOOR, in, NULL), best = {0};
    LsValueId high = inside(r, two(r, LS_OP_ADD, low, number(r, 1))),
              part = two(r, LS_OP_SUB, in, low);
    LsValueId rest = two(r, LS_OP_SUB, number(r, 1), part), zero = number(r, 0),
              half = number(r, 0.5);
    LsShape s = *ls_shape(g, at);
    s.dim[3] = 1;
    for (int k = 0; k < 4; k++) {
        LsValueId upper = two(r, LS_OP_GREATER, pair(r, k & 1, k >> 1), half);
        LsValueId v = sampled(r, where(r, upper, high, low), of, LS_SAMPLE_NEAREST);
        LsValueId by = where(r, out, zero, where(r, upper, part, rest));
        by =
            two(r, LS_OP_MUL, ls_slice_axis(cx, g, by, 3, 0, 1), ls_slice_axis(cx, g, by, 3, 1, 2));
        v = two(r, LS_OP_MUL, v,
                ls_reshape(cx, g, by, &(LsShape){4, {s.dim[0], 1, s.dim[1], s.dim[2]}}));
        best = k == 0 ? v : two(r, LS_OP_MAX, best, v);
    }
    return best;
}

/* As many samples as the bin has pixels, which are data: a row of its own. */
static bool build_adaptive(const Roi *r, LsValueId of, LsValueId *out)
{
    LsValueId part[2];
    corners(r, &part[0], &part[1]);
    LsValueId box =
        ls_append2(r->n->cx, r->n->g, LS_OP_CONCAT, part[0], part[1], &(LsAttr){.axis = {1}});
    if (ls_is(box))
        *out = ls_append3(r->n->cx, r->n->g, LS_OP_ROI_MEAN, r->n->in[0], box, of,
                          &(LsAttr){.roi = {.height = r->y.dim[2], .width = r->y.dim[3]}});
    return ls_is(box) && ls_is(*out);
}

static bool build(const Roi *r, bool largest, LsValueId *out)
{
    LsCtx *cx = r->n->cx;
    LsGraph *g = r->n->g;
    LsValueId of = ls_index_ints(r->n, 2), v;
    if (!ls_is(of) || !ls_index_inside(r->n, of, 0, r->x.dim[0]))
        return false;
    if (r->ratio == 0)
        return build_adaptive(r, of, out);
    LsValueId at = places(r);
    if (!ls_is(at))
        return false;
    if (largest)
        v = largest_neighbours(r, at, of);
    else
        v = sampled(r, where(r, is_outside(r, at), number(r, -9), inside(r, at)), of,
                    LS_SAMPLE_LINEAR);
    LsShape bins = {6, {r->y.dim[0], r->y.dim[1], r->y.dim[2], r->ratio, r->y.dim[3], r->ratio}};
    v = ls_is(v) ? ls_reshape(cx, g, v, &bins) : v;
    v = ls_append1(cx, g, largest ? LS_OP_REDUCE_MAX : LS_OP_REDUCE_MEAN, v,
                   &(LsAttr){.reduce = {.axes = 1u << 3 | 1u << 5, .keep = true}});
    *out = ls_is(v) ? ls_reshape(cx, g, v, &r->y) : v;
    return ls_is(*out);
}

static bool shapes_fit(const LsOnnxNode *n)
{
    const LsShape *x = ls_shape(n->g, n->in[0]), *box = ls_shape(n->g, n->in[1]),
                  *of = ls_shape(n->g, n->in[2]);
    return (x->rank == 4 && box->rank == 2 && box->dim[1] == 4 && of->rank == 1
            && of->dim[0] == box->dim[0])
           || ls_onnx_error(n, LS_E_SHAPE, "X is N x C x H x W, rois are R x 4, batch_indices R",
                            "X is %s, rois are %s, batch_indices %s", ls_dims(n->g, n->in[0]),
                            ls_dims(n->g, n->in[1]), ls_dims(n->g, n->in[2]));
}

/* Fills y and the samples of a bin. */
static bool read_counts(Roi *r, bool largest)
{
    LsOnnxNode *n = r->n;
    int64_t height = ls_onnx_int(n, "output_height", 1), width = ls_onnx_int(n, "output_width", 1);
    r->ratio = ls_onnx_int(n, "sampling_ratio", 0);
    r->y = (LsShape){4, {ls_shape(n->g, n->in[1])->dim[0], r->x.dim[1], height, width}};
    if (height < 1 || height > INT32_MAX || width < 1 || width > INT32_MAX)
        return ls_onnx_error(n, LS_E_ATTR, NULL,
                             "the result is %" PRId64 " high and %" PRId64 " wide", height, width);
    if (r->ratio <= 0 && largest)
        return ls_onnx_error(n, LS_E_UNSUPPORTED,
                             "give the number of samples: sampling_ratio 2 is usual",
                             "with mode \"max\" and sampling_ratio 0 the number of samples depends "
                             "on the sizes of the boxes");
    if (r->ratio <= 0) {
        r->ratio = 0;
        return true;
    }
    return (r->ratio <= 1 << 10 && ls_index_affords(n, height * r->ratio)
            && height * r->ratio <= LS_INDEX_OUTSIDE / (width * r->ratio)
            && ls_index_affords(n, 2 * height * width * r->ratio * r->ratio))
        || ls_onnx_error(n, LS_E_ATTR, NULL, "sampling_ratio is %" PRId64, r->ratio);
}

static bool roi_align_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 3, 3) || !ls_onnx_takes_real(n, 0) || !ls_onnx_takes_real(n, 1)
        || !shapes_fit(n))
        return false;
    const char *mode = ls_onnx_string(n, "mode", "avg");
    const char *shift = ls_onnx_string(n, "coordinate_transformation_mode",
                                       n->version < 16 ? "output_half_pixel" : "half_pixel");
    bool largest = strcmp(mode, "max") == 0, half = strcmp(shift, "half_pixel") == 0;
    if (!largest && strcmp(mode, "avg") != 0)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "mode is \"%s\", not avg or max", mode);
    if (!half && strcmp(shift, "output_half_pixel") != 0)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "coordinate_transformation_mode is \"%s\"", shift);
    Roi r = {.n = n, .x = *ls_shape(n->g, n->in[0]), .scale = ls_onnx_float(n, "spatial_scale", 1),
             .shift = half ? 0.5 : 0, .at_least_one = !half};
    return read_counts(&r, largest) && build(&r, largest, out);
}
const LsOnnxOp ls_onnx_roi_align = {"RoiAlign", 10, roi_align_build};
