/* compiler/ops/resize.c -- Resize (10, 11, 13, 18, 19) and Upsample (7, 9): nearest and linear by a
 * kernel of their own, other forms by constant matrices. */
#include "compiler/ops/resize_matrix.h"

#include <math.h>

static bool resize_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    return ls_infer_out(cx, g, n, ls_type(g, ls_in(g, n, 0)), &g->node[n.i].attr.resize.y);
}

static void resize_grad(LsCtx *cx, LsGraph *g, LsNodeId n, const LsValueId dy[], const bool want[],
                        LsValueId dx[])
{
    (void)want;
    LsAttr at = g->node[n.i].attr;
    dx[0] = ls_append1(cx, g, LS_OP_RESIZE_GRAD, dy[0], &at);
}

const LsOp ls_op_resize = {
    .name = "Resize", .min_in = 1, .max_in = 1, .nout = 1, .infer = resize_infer,
    .grad = resize_grad, .kernel = LS_K_RESIZE, .layout = LS_LAY_SAME,
};

static bool resize_grad_infer(LsCtx *cx, LsGraph *g, LsNodeId n)
{
    return ls_infer_out(cx, g, n, LS_REAL, &g->node[n.i].attr.resize.x);
}

const LsOp ls_op_resize_grad = {
    .name = "resize_grad", .min_in = 1, .max_in = 1, .nout = 1, .infer = resize_grad_infer,
    .kernel = LS_K_RESIZE, .layout = LS_LAY_SAME,
};

/* ---- ONNX: the file's attributes and operands, by opset ---- */
typedef struct Sizes {          /* per axis of the operand */
    bool by_size;               /* the size is given and the scale follows; else the reverse */
    double scale[LS_MAX_RANK];
    int64_t size[LS_MAX_RANK];
    double lo[LS_MAX_RANK], hi[LS_MAX_RANK];    /* part of the axis, of the length 1, that is
                                                 * read */
} Sizes;

/* Index of the attribute among the `name`s; -1 after an error. */
static int choice(LsOnnxNode *n, const char *attr, const char *otherwise, const char *const name[])
{
    const char *said = ls_onnx_string(n, attr, otherwise);
    for (int k = 0; name[k] != NULL; k++)
        if (strcmp(said, name[k]) == 0)
            return k;
    ls_onnx_error(n, LS_E_UNSUPPORTED, NULL, "%s \"%s\" is not supported", attr, said);
    return -1;
}

/* What is the same for all axes. *by_kernel: LS_OP_RESIZE does it. */
static bool read_mode(LsOnnxNode *n, LsResizeLine *line, bool *by_kernel)
{
    static const char *const mode[] = {"nearest", "linear", "cubic", NULL};
    static const char *const old_mode[] = {"nearest", "linear", NULL};
    static const char *const upsample_mode[] = {"nearest", "linear", "bilinear", NULL};
    static const char *const coord[] = {
        "half_pixel",           "pytorch_half_pixel", "align_corners",        "asymmetric",
        "half_pixel_symmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn", NULL};
    static const char *const nearest[] = {"floor", "ceil", "round_prefer_floor",
                                          "round_prefer_ceil", NULL};
    int m = choice(n, "mode", "nearest",
                   n->version < 10 ? upsample_mode : n->version < 11 ? old_mode : mode), c, r;
    *by_kernel = true;
    line->mode = n->version < 10 && m > 0 ? LS_LINE_LINEAR : (LsLineMode)m;
    line->coord = LS_LINE_ASYMMETRIC;
    line->nearest = LS_ROUND_FLOOR;
    if (m < 0 || n->version < 11)       /* earlier opsets have no other choice */
        return m >= 0;
    if ((c = choice(n, "coordinate_transformation_mode", "half_pixel", coord)) < 0
        || (r = choice(n, "nearest_mode", "round_prefer_floor", nearest)) < 0)
        return false;
    line->coord = (LsLineCoord)c;
    line->nearest = (LsRound)r;
    line->antialias = line->mode != LS_LINE_NEAREST && ls_onnx_int(n, "antialias", 0) != 0;
    line->exclude_outside =
        ls_onnx_int(n, "exclude_outside", 0) != 0 && line->mode == LS_LINE_CUBIC;
    line->cubic_a = ls_onnx_float(n, "cubic_coeff_a", -0.75);
    line->extrapolation = ls_onnx_float(n, "extrapolation_value", 0);
    *by_kernel = m < 2 && c <= LS_LINE_ASYMMETRIC && !line->antialias;
    return true;
}

/* The axes of scales and sizes, in their order; their number, negative: an error. */
static int read_axes(LsOnnxNode *n, int rank, int axis[])
{
    int64_t list[LS_MAX_RANK];
    int count = n->version >= 18 ? ls_onnx_ints(n, "axes", LS_MAX_RANK, list) : -1;
    for (int k = 0; k < (count < 0 ? rank : count); k++)
        if ((axis[k] = count < 0 ? k : ls_onnx_axis(n, list[k], rank)) < 0)
            return -1;
    return count < 0 ? rank : count;
}

/* keep_aspect_ratio_policy: one scale for all the axes named, the least or the greatest of the
 * requested scales. */
static bool keep_aspect(LsOnnxNode *n, const LsShape *x, int naxes, const int axis[], Sizes *s)
{
    static const char *const policy[] = {"stretch", "not_larger", "not_smaller", NULL};
    int p = choice(n, "keep_aspect_ratio_policy", "stretch", policy);
    if (p <= 0 || naxes == 0)
        return p == 0;
    double scale = p == 1 ? INFINITY : 0;
    for (int k = 0; k < naxes; k++) {
        double asked = (double)s->size[axis[k]] / (double)x->dim[axis[k]];
        scale = p == 1 ? fmin(scale, asked) : fmax(scale, asked);
    }
    for (int k = 0; k < naxes; k++)
        s->size[axis[k]] = (int64_t)floor(scale * (double)x->dim[axis[k]] + 0.5);
    return true;
}

/* tf_crop_and_resize: operand 1 has the starts and then the ends of the axes named. */
static bool read_roi(LsOnnxNode *n, const LsShape *x, bool crop, Sizes *s)
{
    int axis[LS_MAX_RANK], naxes = read_axes(n, x->rank, axis);
    double roi[2 * LS_MAX_RANK];
    for (int k = 0; k < x->rank; k++) {
        s->lo[k] = 0;
        s->hi[k] = 1;
    }
    if (!crop || naxes < 0)
        return naxes >= 0;
    int have = ls_onnx_const_reals(n, 1, 2 * LS_MAX_RANK, roi);
    if (have == -2)
        return false;
    if (have != 2 * naxes)
        return ls_onnx_error(n, LS_E_ATTR, "give a start and an end per axis",
                             "roi has %d numbers for %d axes", have < 0 ? 0 : have, naxes);
    for (int k = 0; k < naxes; k++) {
        s->lo[axis[k]] = roi[k];
        s->hi[axis[k]] = roi[naxes + k];
        if (!isfinite(roi[k]) || !isfinite(roi[naxes + k]))
            return ls_onnx_error(n, LS_E_ATTR, NULL, "roi of axis %d is not finite", axis[k]);
    }
    return true;
}

/* Scales are an attribute (Upsample 7), operand 1 (Upsample 9, Resize 10) or 2; sizes are
 * operand 3. */
static bool read_sizes(LsOnnxNode *n, const LsShape *x, Sizes *s)
{
    int axis[LS_MAX_RANK], naxes = read_axes(n, x->rank, axis);
    double scale[LS_MAX_RANK];
    int64_t size[LS_MAX_RANK];
    int nsize = n->version >= 11 ? ls_onnx_const_ints(n, 3, LS_MAX_RANK, size) : -1;
    int nscale = n->version < 9
                     ? ls_onnx_floats(n, "scales", LS_MAX_RANK, scale)
                     : ls_onnx_const_reals(n, n->version < 11 ? 1 : 2, LS_MAX_RANK, scale);
    if (naxes < 0 || nsize == -2 || nscale == -2)
        return false;
    s->by_size = nsize > 0;
    int have = s->by_size ? nsize : nscale;
    if (have != naxes || (nsize > 0 && nscale > 0))
        return ls_onnx_error(n, LS_E_ATTR, "give either scales or sizes, one number per axis",
                             "%d scales and %d sizes for %d axes", nscale < 0 ? 0 : nscale,
                             nsize < 0 ? 0 : nsize, naxes);
    for (int k = 0; k < x->rank; k++) {
        s->scale[k] = 1;
        s->size[k] = x->dim[k];
    }
    for (int k = 0; k < naxes; k++) {
        s->scale[axis[k]] = s->by_size ? 1 : scale[k];
        s->size[axis[k]] = s->by_size ? size[k] : x->dim[axis[k]];
    }
    return !s->by_size || keep_aspect(n, x, naxes, axis, s);
}

static bool stays(const LsResizeAttr *at, const Sizes *s, int k)
{
    return at->y.dim[k] == at->x.dim[k] && at->scale[k] == 1 && s->lo[k] == 0 && s->hi[k] == 1;
}

/* Fills scale and y; *same: no axis changes. */
static bool resolve(LsOnnxNode *n, LsResizeAttr *at, const Sizes *s, bool *same)
{
    *same = true;
    at->y.rank = at->x.rank;
    for (int k = 0; k < at->x.rank; k++) {
        double x = (double)at->x.dim[k];
        double length = s->by_size ? (double)s->size[k] : floor(x * s->scale[k]);
        if (!(length >= 1 && length < 0x1p31))
            return ls_onnx_error(n, LS_E_SHAPE, NULL, "axis %d, of length %g, would become %g long",
                                 k, x, length);
        at->y.dim[k] = (int64_t)length;
        at->scale[k] = s->by_size ? length / x : s->scale[k];
        *same &= stays(at, s, k);
        if (k < 2 && !stays(at, s, k))
            return ls_onnx_error(n, LS_E_UNSUPPORTED, "axes from 2 on can be resized",
                                 "axis %d is resized from %" PRId64 " to %" PRId64, k, at->x.dim[k],
                                 at->y.dim[k]);
    }
    return true;
}

/* Axis by axis from the last one, where rows are contiguous. */
static LsValueId by_lines(LsOnnxNode *n, const LsResizeAttr *at, const Sizes *s, LsResizeLine line)
{
    LsValueId v = n->in[0];
    for (int k = at->x.rank - 1; k >= 0 && ls_is(v); k--) {
        if (stays(at, s, k))
            continue;
        line.scale = at->scale[k];
        line.x = at->x.dim[k];
        line.y = at->y.dim[k];
        line.lo = s->lo[k];
        line.hi = s->hi[k];
        v = ls_resize_line(n, v, k, &line);
    }
    return v;
}

static bool resize_build(LsOnnxNode *n, LsValueId out[])
{
    LsAttr at = {0};
    Sizes s = {0};
    LsResizeLine line = {0};
    bool same, by_kernel;
    if (!ls_onnx_takes(n, 1, n->version < 9 ? 1 : n->version < 11 ? 2 : 4))
        return false;
    at.resize.x = *ls_shape(n->g, n->in[0]);
    if (ls_type(n->g, n->in[0]) != LS_REAL)
        return ls_onnx_error(n, LS_E_TYPE, "insert a Cast to float", "the operand is %s",
                             ls_type_name(ls_type(n->g, n->in[0])));
    if (!read_mode(n, &line, &by_kernel) || !read_sizes(n, &at.resize.x, &s)
        || !read_roi(n, &at.resize.x, line.coord == LS_LINE_CROP, &s)
        || !resolve(n, &at.resize, &s, &same))
        return false;
    if (by_kernel) {
        at.resize.mode = line.mode == LS_LINE_NEAREST ? LS_RESIZE_NEAREST : LS_RESIZE_LINEAR;
        at.resize.coord = (LsResizeCoord)line.coord;
        at.resize.nearest = line.nearest;
    }
    out[0] = same        ? n->in[0]
             : by_kernel ? ls_append1(n->cx, n->g, LS_OP_RESIZE, n->in[0], &at)
                         : by_lines(n, &at.resize, &s, line);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_resize = {"Resize", 10, resize_build};
const LsOnnxOp ls_onnx_upsample = {"Upsample", 7, resize_build};
