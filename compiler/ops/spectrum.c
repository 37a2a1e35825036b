/* compiler/ops/spectrum.c -- constants of audio models, computed at compile time: BlackmanWindow,
 * HannWindow, HammingWindow, MelWeightMatrix. */
#include "compiler/fold/fold_constants.h"
#include "compiler/ops/row.h"

#include <math.h>

static const double pi = 3.14159265358979323846;

/* Operand k, one integer of 0 .. most; -1 after a diagnostic. */
static int64_t read_count(LsOnnxNode *n, int k, int64_t most)
{
    int64_t v = -1;
    int got = ls_onnx_const_ints(n, k, 1, &v);
    if (got == 1 && v >= 0 && v <= most)
        return v;
    if (got != -2)
        ls_onnx_error(n, LS_E_SHAPE, NULL, "operand %d is no number of 0 to %" PRId64, k, most);
    return -1;
}

static bool result(LsOnnxNode *n, LsValueId out[], const LsShape *shape, const float *data)
{
    out[0] = ls_const_add(n->cx, n->g, LS_REAL, shape, data);
    return ls_is(out[0]) && ls_onnx_cast_to(n, out, ls_onnx_int(n, "output_datatype", 1));
}

/* ---- windows: c[0] - c[1] cos t + c[2] cos 2 t, t = 2 pi i / N ---- */
enum { MOST_WINDOW = 1 << 26 };

static bool cosines(LsOnnxNode *n, LsValueId out[], const double c[3])
{
    if (!ls_onnx_takes(n, 1, 1))
        return false;
    int64_t size = read_count(n, 0, MOST_WINDOW);
    if (size < 0)
        return false;
    if (!ls_fold_affords(n->g, size))
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "a window of %" PRId64 " elements is too large",
                             size);
    int64_t period = ls_onnx_int(n, "periodic", 1) != 0 ? size : size - 1;
    float *data = ls_arena_alloc(n->cx->arena, (size_t)size + 1, sizeof *data);
    for (int64_t i = 0; i < size; i++) {
        /* one element: the peak */
        double t = period > 0 ? 2 * pi * (double)i / (double)period : pi;
        data[i] = (float)(c[0] - c[1] * cos(t) + c[2] * cos(2 * t));
    }
    return result(n, out, &(LsShape){1, {size}}, data);
}

#define WINDOW(row, op_type, ...) \
    static bool row##_build(LsOnnxNode *n, LsValueId out[]) \
    { return cosines(n, out, (const double[]){__VA_ARGS__}); } \
    const LsOnnxOp ls_onnx_##row = {op_type, 17, row##_build};
WINDOW(blackman_window, "BlackmanWindow", 0.42, 0.5, 0.08)
WINDOW(hann_window, "HannWindow", 0.5, 0.5, 0)
WINDOW(hamming_window, "HammingWindow", 25.0 / 46, 21.0 / 46, 0)

/* ---- MelWeightMatrix: a triangle of frequency bins for each mel bin ---- */
static double mel_of(double hertz) { return 2595 * log1p(hertz / 700) / log(10); }
static double hertz_of(double mel) { return 700 * expm1(mel / 2595 * log(10)); }

/* The column of a mel bin whose triangle rises from bin `low` to `top` and falls to `high`. */
static void triangle(float *w, int64_t columns, int64_t low, int64_t top, int64_t high)
{
    if (low == top)
        w[top * columns] = 1;
    for (int64_t j = low; low < top && j <= top; j++)
        w[j * columns] = (float)((double)(j - low) / (double)(top - low));
    for (int64_t j = top; j < high; j++)
        w[j * columns] = (float)((double)(high - j) / (double)(high - top));
}

static bool mel_build(LsOnnxNode *n, LsValueId out[])
{
    enum { MOST = 1 << 20 };
    double edge[2];
    if (!ls_onnx_takes(n, 5, 5))
        return false;
    int64_t mels = read_count(n, 0, MOST), length = read_count(n, 1, MOST),
            rate = read_count(n, 2, INT32_MAX);
    if (mels < 0 || length < 0 || rate < 0)
        return false;
    for (int k = 0; k < 2; k++)
        if (ls_onnx_const_reals(n, 3 + k, 1, &edge[k]) != 1)
            return ls_onnx_error(n, LS_E_NOT_CONST, NULL,
                                 "operand %d is no number known at compile time", 3 + k);
    int64_t bins = length / 2 + 1;
    if (rate < 1 || !(edge[0] >= 0 && edge[0] <= edge[1] && edge[1] <= (double)rate / 2))
        return ls_onnx_error(n, LS_E_ATTR, "0 <= lower edge <= upper edge <= sample rate / 2",
                             "edges %g and %g at a sample rate of %" PRId64, edge[0], edge[1],
                             rate);
    if (!ls_fold_affords(n->g, bins * mels))
        return ls_onnx_error(n, LS_E_SHAPE, NULL,
                             "a matrix of %" PRId64 "x%" PRId64 " is too large", bins, mels);
    float *data = ls_arena_alloc(n->cx->arena, (size_t)(bins * mels) + 1, sizeof *data);
    int64_t *at = ls_arena_alloc(n->cx->arena, (size_t)mels + 2, sizeof *at);
    double low = mel_of(edge[0]), step = (mel_of(edge[1]) - low) / (double)(mels + 2);
    for (int64_t i = 0; i < mels + 2; i++) {
        double bin = floor((double)(length + 1) * hertz_of(low + (double)i * step) / (double)rate);
        at[i] = bin < 0 ? 0 : bin >= (double)bins ? bins - 1 : (int64_t)bin;
    }
    for (int64_t i = 0; i < mels; i++)
        triangle(data + i, mels, at[i], at[i + 1], at[i + 2]);
    return result(n, out, &(LsShape){2, {bins, mels}}, data);
}
const LsOnnxOp ls_onnx_mel_weight_matrix = {"MelWeightMatrix", 17, mel_build};
