/* compiler/ops/col2im.c -- Col2Im: blocks [N, C * block, L] are added into images [N, C, ..]. Where
 * each element of a block goes is known, so this is one sum by a constant index, whose gradient
 * gathers. */
#include "compiler/fold/fold_constants.h"
#include "compiler/ops/index.h"

/* steps: positions of blocks */
typedef struct Axis { int64_t image, block, stride, dilation, lo, hi, steps; } Axis;
typedef struct Blocks { int n; Axis axis[LS_MAX_RANK - 2]; int64_t pixels, taps, steps; } Blocks;

/* A list attribute: one entry per spatial axis (pads: two), at least `least`. */
static bool list_of(LsOnnxNode *n, const char *attr, int want, int64_t least, int64_t otherwise,
                    int64_t out[])
{
    int count = ls_onnx_ints(n, attr, 2 * LS_MAX_RANK, out);
    for (int k = 0; k < want && count < 0; k++)
        out[k] = otherwise;
    if (count >= 0 && count != want)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "%s has %d entries, not %d", attr, count, want);
    for (int k = 0; k < want; k++)
        if (out[k] < least || out[k] > INT32_MAX)
            return ls_onnx_error(n, LS_E_ATTR, NULL, "%s has the entry %" PRId64, attr, out[k]);
    return true;
}

static bool axes_of(LsOnnxNode *n, Blocks *b)
{
    int64_t image[LS_MAX_RANK], block[LS_MAX_RANK], stride[2 * LS_MAX_RANK],
        dilation[2 * LS_MAX_RANK], pad[2 * LS_MAX_RANK];
    b->n = ls_onnx_const_ints(n, 1, LS_MAX_RANK - 2, image);
    int nblock = b->n < 0 ? -2 : ls_onnx_const_ints(n, 2, LS_MAX_RANK - 2, block);
    if (b->n == -2 || nblock == -2)
        return false;
    if (b->n < 1 || nblock != b->n)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "image_shape has %d entries, block_shape %d",
                             b->n, nblock);
    if (!list_of(n, "strides", b->n, 1, 1, stride) || !list_of(n, "dilations", b->n, 1, 1, dilation)
        || !list_of(n, "pads", 2 * b->n, 0, 0, pad))
        return false;
    b->pixels = b->taps = b->steps = 1;
    for (int k = 0; k < b->n; k++) {
        Axis *a = &b->axis[k];
        *a = (Axis){image[k], block[k], stride[k], dilation[k], pad[k], pad[b->n + k], 0};
        bool counted =
            a->image >= 1 && a->image <= INT32_MAX && a->block >= 1 && a->block <= INT32_MAX;
        int64_t room = counted ? a->image + a->lo + a->hi - a->dilation * (a->block - 1) - 1 : -1;
        if (room < 0)
            return ls_onnx_error(n, LS_E_SHAPE, NULL,
                                 "a block of %" PRId64 " does not fit an image of %" PRId64
                                 " along axis %d",
                                 a->block, a->image, k + 2);
        a->steps = room / a->stride + 1;
        if (__builtin_mul_overflow(b->pixels, a->image, &b->pixels)
            || __builtin_mul_overflow(b->taps, a->block, &b->taps)
            || __builtin_mul_overflow(b->steps, a->steps, &b->steps))
            return ls_onnx_error(n, LS_E_SHAPE, NULL,
                                 "the image has more elements than can be counted");
    }
    return true;
}

/* The pixel of element `tap` of the block at `step`; outside of the image: one past the last. */
static int64_t pixel_of(const Blocks *b, int64_t tap, int64_t step)
{
    int64_t pixel = 0, stride = 1;
    for (int k = b->n - 1; k >= 0; k--) {
        const Axis *a = &b->axis[k];
        int64_t i = step % a->steps * a->stride + tap % a->block * a->dilation - a->lo;
        if (i < 0 || i >= a->image)
            return b->pixels;
        pixel += i * stride;
        stride *= a->image;
        step /= a->steps;
        tap /= a->block;
    }
    return pixel;
}

static bool col2im_build(LsOnnxNode *n, LsValueId out[])
{
    Blocks b = {0};
    if (!ls_onnx_takes(n, 3, 3) || !ls_onnx_takes_real(n, 0) || !axes_of(n, &b))
        return false;
    LsGraph *g = n->g;
    const LsShape x = *ls_shape(g, n->in[0]);
    if (x.rank != 3 || x.dim[1] % b.taps != 0 || x.dim[2] != b.steps)
        return ls_onnx_error(n, LS_E_SHAPE, NULL,
                             "the operand is %s, not N x C * %" PRId64 " x %" PRId64,
                             ls_dims(g, n->in[0]), b.taps, b.steps);
    int64_t count = b.taps * b.steps, images = x.dim[0] * (x.dim[1] / b.taps);
    if (!ls_fold_affords(g, count))
        return ls_onnx_error(n, LS_E_SHAPE, NULL,
                             "%" PRId64 " places of blocks are too many to be stored", count);
    int64_t *index = ls_arena_alloc(g->arena, (size_t)count, sizeof *index);
    for (int64_t i = 0; i < count; i++)
        index[i] = pixel_of(&b, i / b.steps, i % b.steps);
    LsValueId at = ls_const_add(n->cx, g, LS_I64, &(LsShape){1, {count}}, index);
    LsValueId v = ls_reshape(n->cx, g, n->in[0], &(LsShape){2, {images, count}});
    LsShape to = {2 + b.n, {x.dim[0], x.dim[1] / b.taps}};
    for (int k = 0; k < b.n; k++)
        to.dim[2 + k] = b.axis[k].image;
    if (b.pixels > LS_MOST_ELEMENTS / images)
        return ls_onnx_error(n, LS_E_SHAPE, NULL,
                             "the result would be %s: more elements than any machine holds",
                             ls_shape_text(g->arena, &to));
    v = ls_append2(n->cx, g, LS_OP_GATHER_GRAD, v, at,
                   &(LsAttr){.gather = {.axis = 1, .x = {2, {images, b.pixels}}}});
    out[0] = ls_is(v) ? ls_reshape(n->cx, g, v, &to) : v;
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_col2im = {"Col2Im", 18, col2im_build};
