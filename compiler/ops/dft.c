/* compiler/ops/dft.c -- DFT (17, 20) and STFT (17): products with constant matrices. Complex
 * numbers are pairs along the last axis. The length is known, and a product has a gradient; it
 * takes n^2 operations, and n^2 constants. */
#include "compiler/fold/fold_constants.h"
#include "compiler/ops/index.h"

#include <math.h>

typedef struct Dft {
    LsOnnxNode *n;
    int64_t length;             /* of the transform */
    int64_t have;               /* elements of the axis; those from `length` on are left out */
    int64_t parts;              /* of an element: 1 real, 2 complex */
    bool inverse, onesided;
} Dft;

static int64_t frequencies(const Dft *r) { return r->onesided ? r->length / 2 + 1 : r->length; }
static bool to_reals(const Dft *r) { return r->inverse && r->onesided; }
static int64_t results(const Dft *r) { return to_reals(r) ? r->length : frequencies(r); }
static int64_t result_parts(const Dft *r) { return to_reals(r) ? 1 : 2; }

/* What part p of element i adds to part q of result k: one of cos, -sin, sin of the angle i k. A
 * real result counts the frequencies that a one-sided spectrum leaves out, too: twice the others
 * but the first, and the middle one. */
static double entry(const Dft *r, int64_t i, int64_t p, int64_t k, int64_t q)
{
    bool twice = to_reals(r) && i != 0 && 2 * i != r->length;
    double angle = 2 * acos(-1) * (double)(i * k % r->length) / (double)r->length;
    double s = r->inverse ? -sin(angle) : sin(angle), v = p == q ? cos(angle) : p == 0 ? -s : s;
    return v * (twice ? 2 : 1) / (r->inverse ? (double)r->length : 1);
}

/* [have * parts, results * parts of a result] */
static LsValueId matrix(const Dft *r)
{
    LsOnnxNode *n = r->n;
    int64_t rows = r->have * r->parts, cols = results(r) * result_parts(r);
    int64_t used = to_reals(r) ? frequencies(r) : r->length;
    if (rows > INT64_MAX / cols || !ls_fold_affords(n->g, rows * cols)) {
        ls_onnx_error(n, LS_E_SHAPE, NULL,
                      "a transform of %" PRId64 " elements needs a matrix that is too large",
                      r->length);
        return (LsValueId){0};
    }
    float *v = ls_arena_alloc(n->g->arena, (size_t)(rows * cols), sizeof *v);
    for (int64_t at = 0; at < rows * cols; at++) {
        int64_t row = at / cols, col = at % cols, i = row / r->parts;
        v[at] = i >= used ? 0
                : (float)entry(r, i, row % r->parts, col / result_parts(r), col % result_parts(r));
    }
    return ls_const_add(n->cx, n->g, LS_REAL, &(LsShape){2, {rows, cols}}, v);
}

/* v [.., have, parts] along its last axis but one. */
static LsValueId transformed(const Dft *r, LsValueId v)
{
    LsCtx *cx = r->n->cx;
    LsGraph *g = r->n->g;
    LsShape s = *ls_shape(g, v);
    int64_t rows = ls_count(&s) / (r->have * r->parts);
    LsValueId m = matrix(r);
    if (!ls_is(m))
        return m;
    v = ls_append2(cx, g, LS_OP_MATMUL,
                   ls_reshape(cx, g, v, &(LsShape){2, {rows, r->have * r->parts}}), m,
                   &(LsAttr){.gemm = {.alpha = 1}});
    s.dim[s.rank - 2] = results(r);
    s.dim[s.rank - 1] = result_parts(r);
    return ls_is(v) ? ls_reshape(cx, g, v, &s) : v;
}

/* v with the axis and the last but one in each other's place. */
static LsValueId swapped(const Dft *r, LsValueId v, int axis)
{
    int perm[LS_MAX_RANK], rank = ls_shape(r->n->g, v)->rank;
    for (int k = 0; k < rank; k++)
        perm[k] = k == axis ? rank - 2 : k == rank - 2 ? axis : k;
    return axis == rank - 2 ? v : ls_transpose(r->n->cx, r->n->g, v, perm);
}

/* Operand k, a number that is at least 1; `otherwise`, if it is left out. */
static bool number(LsOnnxNode *n, int k, const char *name, int64_t otherwise, int64_t *to)
{
    *to = otherwise;
    if (ls_onnx_const_ints(n, k, 1, to) == -2)
        return false;
    return (*to >= 1 && *to <= INT32_MAX)
        || ls_onnx_error(n, LS_E_ATTR, NULL, "%s is %" PRId64, name, *to);
}

static bool takes_signal(LsOnnxNode *n, const LsShape *x, int least)
{
    return (x->rank >= least && x->dim[x->rank - 1] <= 2)
           || ls_onnx_error(n, LS_E_SHAPE,
                            "the last axis has a real part, or a real and an imaginary part",
                            "the signal is %s", ls_dims(n->g, n->in[0]));
}

static bool dft_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, n->version < 20 ? 2 : 3) || !ls_onnx_takes_real(n, 0))
        return false;
    const LsShape x = *ls_shape(n->g, n->in[0]);
    int64_t along = n->version < 20 ? ls_onnx_int(n, "axis", 1) : -2;
    if (!takes_signal(n, &x, 2) || (n->version >= 20 && ls_onnx_const_ints(n, 2, 1, &along) == -2))
        return false;
    int axis = ls_onnx_axis(n, along, x.rank);
    if (axis < 0)
        return false;
    if (axis == x.rank - 1)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "axis %d holds the parts of complex numbers",
                             axis);
    Dft r = {.n = n,
             .have = x.dim[axis],
             .parts = x.dim[x.rank - 1],
             .inverse = ls_onnx_int(n, "inverse", 0) != 0,
             .onesided = ls_onnx_int(n, "onesided", 0) != 0};
    if (!number(n, 1, "dft_length", r.inverse && r.onesided ? 2 * (r.have - 1) : r.have, &r.length))
        return false;
    if (r.onesided && !r.inverse && r.parts == 2)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "onesided needs a real signal, the signal is %s",
                             ls_dims(n->g, n->in[0]));
    LsValueId v = transformed(&r, swapped(&r, n->in[0], axis));
    out[0] = ls_is(v) ? swapped(&r, v, axis) : v;
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_dft = {"DFT", 17, dft_build};

/* ---- STFT: transforms of frames ---- */
/* [B, frames, length, parts] of the signal, times the window. */
static LsValueId frames_of(const Dft *r, int64_t frames, int64_t step)
{
    LsOnnxNode *n = r->n;
    const LsShape x = *ls_shape(n->g, n->in[0]);
    LsValueId window = ls_onnx_in(n, 2);
    if (!ls_index_affords(n, frames) || !ls_index_affords(n, r->length))
        return (LsValueId){0};
    LsValueId at = ls_append2(n->cx, n->g, LS_OP_ADD, ls_index_count(n, frames, step, 0, 2),
                              ls_index_count(n, r->length, 1, 1, 2), NULL);
    LsValueId v = ls_reshape(n->cx, n->g, n->in[0], &(LsShape){3, {x.dim[0], x.dim[1], r->parts}});
    v = ls_append2(n->cx, n->g, LS_OP_GATHER, v, at, &(LsAttr){.gather = {.axis = 1}});
    return ls_is(v) && ls_is(window)
               ? ls_append2(n->cx, n->g, LS_OP_MUL, v,
                            ls_reshape(n->cx, n->g, window, &(LsShape){2, {r->length, 1}}), NULL)
               : v;
}

static bool stft_build(LsOnnxNode *n, LsValueId out[])
{
    int64_t step, whole;
    if (!ls_onnx_takes(n, 2, 4) || !ls_onnx_takes_real(n, 0) || !ls_onnx_takes_real(n, 2))
        return false;
    const LsShape x = *ls_shape(n->g, n->in[0]);
    LsValueId window = ls_onnx_in(n, 2);
    if (x.rank != 2 && (x.rank != 3 || !takes_signal(n, &x, 3)))
        return ls_onnx_error(n, LS_E_SHAPE, "give batch x length x parts of a number",
                             "the signal is %s", ls_dims(n->g, n->in[0]));
    Dft r = {.n = n,
             .parts = x.rank == 3 ? x.dim[2] : 1,
             .onesided = ls_onnx_int(n, "onesided", 1) != 0};
    whole = ls_is(window) ? ls_count(ls_shape(n->g, window)) : x.dim[1];
    if (!number(n, 1, "frame_step", 1, &step) || !number(n, 3, "frame_length", whole, &r.length))
        return false;
    if (r.length > x.dim[1] || (ls_is(window) && whole != r.length))
        return ls_onnx_error(n, LS_E_SHAPE, NULL,
                             "a frame has %" PRId64 " elements, the signal %" PRId64
                             ", the window %" PRId64,
                             r.length, x.dim[1], whole);
    if (r.onesided && r.parts == 2)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "onesided needs a real signal, the signal is %s",
                             ls_dims(n->g, n->in[0]));
    r.have = r.length;
    LsValueId v = frames_of(&r, (x.dim[1] - r.length) / step + 1, step);
    out[0] = ls_is(v) ? transformed(&r, v) : v;
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_stft = {"STFT", 17, stft_build};
