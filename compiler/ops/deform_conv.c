/* compiler/ops/deform_conv.c -- DeformConv (19, 22): X is read at every place of the kernel, moved
 * by its offset, and the samples are multiplied with the weights as one matrix product. */
#include "compiler/fold/fold_constants.h"
#include "compiler/ops/index.h"
#include "compiler/ops/window.h"

typedef struct Deform {
    LsOnnxNode *n;
    LsWindowAttr w;             /* x_dim: the result's sizes */
    int64_t images, channels, outputs, groups, offset_groups;
    int64_t taps, points;       /* elements of the kernel; places of the result */
} Deform;

static bool divides(const LsOnnxNode *n, const char *what, int64_t parts, int64_t whole,
                    const char *of)
{
    return (parts >= 1 && whole % parts == 0)
           || ls_onnx_error(n, LS_E_ATTR, NULL, "%s is %" PRId64 " for %" PRId64 " %s", what, parts,
                            whole, of);
}

static bool read_sizes(LsOnnxNode *n, Deform *r)
{
    const LsShape *x = ls_shape(n->g, n->in[0]), *f = ls_shape(n->g, n->in[1]);
    if (x->rank != f->rank || x->rank < 3)
        return ls_onnx_error(n, LS_E_SHAPE, NULL,
                             "X is %s and W is %s; both need N,C and spatial axes",
                             ls_dims(n->g, n->in[0]), ls_dims(n->g, n->in[1]));
    *r = (Deform){.n = n,
                  .images = x->dim[0],
                  .channels = x->dim[1],
                  .outputs = f->dim[0],
                  .taps = 1,
                  .points = 1};
    if (!ls_window_read(n, x->rank - 2, f->dim + 2, &r->w))
        return false;
    r->groups = ls_onnx_int(n, "group", 1);
    r->offset_groups = ls_onnx_int(n, "offset_group", 1);
    if (!divides(n, "group", r->groups, r->channels, "channels")
        || !divides(n, "group", r->groups, r->outputs, "outputs")
        || !divides(n, "offset_group", r->offset_groups, r->channels, "channels"))
        return false;
    if (f->dim[1] * r->groups != r->channels)
        return ls_onnx_error(n, LS_E_SHAPE, NULL,
                             "X has %" PRId64 " channels, W takes %" PRId64 " in each of %" PRId64
                             " groups",
                             r->channels, f->dim[1], r->groups);
    for (int d = 0; d < r->w.n; d++) {
        if (!ls_window_place(n, &r->w, d, x->dim[2 + d], false))
            return false;
        r->taps *= r->w.kernel[d];
        r->points *= r->w.x_dim[d];
    }
    return true;
}

/* Operand k is N x (per * offset groups) x the result's sizes. */
static bool operand_fits(const Deform *r, int k, const char *name, int64_t per)
{
    const LsShape *s = ls_shape(r->n->g, r->n->in[k]);
    LsShape want = {.rank = 2 + r->w.n, .dim = {r->images, per * r->offset_groups}};
    memcpy(want.dim + 2, r->w.x_dim, sizeof(int64_t) * (size_t)r->w.n);
    return ls_shape_same(s, &want)
           || ls_onnx_error(r->n, LS_E_SHAPE, NULL, "%s is %s, not %s", name,
                            ls_dims(r->n->g, r->n->in[k]), ls_shape_text(r->n->cx->arena, &want));
}

/* For elements 0 .. of a box of these sizes: coordinate d of each, times step[d], less
 * before[d]. */
static LsValueId coordinates(const Deform *r, const int64_t size[], const int64_t step[],
                             const int64_t before[], LsShape s)
{
    float *v = ls_arena_alloc(r->n->g->arena, (size_t)ls_count(&s), sizeof *v);
    for (int64_t i = 0; i < ls_count(&s) / r->w.n; i++) {
        int64_t rest = i;
        for (int d = r->w.n - 1; d >= 0; d--) {
            v[i * r->w.n + d] = (float)(rest % size[d] * step[d] - before[d]);
            rest /= size[d];
        }
    }
    return ls_const_add(r->n->cx, r->n->g, LS_REAL, &s, v);
}

/* [N * offset groups, taps, points, axes] */
static LsValueId places(const Deform *r)
{
    static const int64_t zero[LS_MAX_SPATIAL];
    LsOnnxNode *n = r->n;
    int64_t rows = r->images * r->offset_groups;
    int axes = r->w.n;
    if (!ls_fold_affords(n->g, (r->taps + r->points) * axes)) {
        ls_onnx_error(n, LS_E_SHAPE, NULL, "%" PRId64 " places of the result are too many",
                      r->points);
        return (LsValueId){0};
    }
    LsValueId v =
        ls_reshape(n->cx, n->g, n->in[2], &(LsShape){4, {rows, r->taps, axes, r->points}});
    v = ls_transpose(n->cx, n->g, v, (const int[]){0, 1, 3, 2});
    LsValueId tap =
        coordinates(r, r->w.kernel, r->w.dilation, zero, (LsShape){4, {1, r->taps, 1, axes}});
    LsValueId point =
        coordinates(r, r->w.x_dim, r->w.stride, r->w.pad_lo, (LsShape){4, {1, 1, r->points, axes}});
    v = ls_append2(n->cx, n->g, LS_OP_ADD, v, tap, NULL);
    return ls_append2(n->cx, n->g, LS_OP_ADD, v, point, NULL);
}

/* What the kernel sees, times the mask: [N, groups, channels of a group * taps, points] */
static LsValueId samples(const Deform *r, LsValueId at)
{
    LsCtx *cx = r->n->cx;
    LsGraph *g = r->n->g;
    const LsShape *x = ls_shape(g, r->n->in[0]);
    int64_t rows = r->images * r->offset_groups;
    LsShape split = *x;
    split.dim[0] = rows;
    split.dim[1] = r->channels / r->offset_groups;
    LsValueId mask = ls_onnx_in(r->n, 4);
    LsValueId v = ls_append2(cx, g, LS_OP_SAMPLE, ls_reshape(cx, g, r->n->in[0], &split), at,
                             &(LsAttr){.sample = {.mode = LS_SAMPLE_LINEAR}});
    if (ls_is(v) && ls_is(mask))
        v = ls_append2(cx, g, LS_OP_MUL, v,
                       ls_reshape(cx, g, mask, &(LsShape){4, {rows, 1, r->taps, r->points}}), NULL);
    LsShape to = {4, {r->images, r->groups, r->channels / r->groups * r->taps, r->points}};
    return ls_is(v) ? ls_reshape(cx, g, v, &to) : v;
}

static LsValueId product(const Deform *r, LsValueId v)
{
    LsCtx *cx = r->n->cx;
    LsGraph *g = r->n->g;
    LsShape w = {4, {1, r->groups, r->outputs / r->groups, r->channels / r->groups * r->taps}};
    LsShape y = {.rank = 2 + r->w.n, .dim = {r->images, r->outputs}},
            bias = {.rank = 1 + r->w.n, .dim = {r->outputs}};
    for (int d = 0; d < r->w.n; d++) {
        y.dim[2 + d] = r->w.x_dim[d];
        bias.dim[1 + d] = 1;
    }
    v = ls_append2(cx, g, LS_OP_MATMUL, ls_reshape(cx, g, r->n->in[1], &w), v,
                   &(LsAttr){.gemm = {.alpha = 1}});
    v = ls_is(v) ? ls_reshape(cx, g, v, &y) : v;
    LsValueId b = ls_onnx_in(r->n, 3);
    return ls_is(v) && ls_is(b) ? ls_append2(cx, g, LS_OP_ADD, v, ls_reshape(cx, g, b, &bias), NULL)
                                : v;
}

static bool deform_conv_build(LsOnnxNode *n, LsValueId out[])
{
    Deform r;
    if (!ls_onnx_takes(n, 3, 5))
        return false;
    for (int k = 0; k < 5; k++)
        if (!ls_onnx_takes_real(n, k))
            return false;
    if (!read_sizes(n, &r) || !operand_fits(&r, 2, "offset", r.taps * r.w.n))
        return false;
    LsValueId bias = ls_onnx_in(n, 3);
    if (ls_is(bias)
        && (ls_shape(n->g, bias)->rank != 1 || ls_shape(n->g, bias)->dim[0] != r.outputs))
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "B is %s for %" PRId64 " outputs",
                             ls_dims(n->g, bias), r.outputs);
    if (ls_is(ls_onnx_in(n, 4)) && !operand_fits(&r, 4, "mask", r.taps))
        return false;
    LsValueId at = places(&r), v = ls_is(at) ? samples(&r, at) : at;
    out[0] = ls_is(v) ? product(&r, v) : v;
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_deform_conv = {"DeformConv", 19, deform_conv_build};
