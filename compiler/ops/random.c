/* compiler/ops/random.c -- RandomUniform, RandomNormal, their Like forms, Bernoulli.
 *
 * A draw is a function of (seed of the run, step, stream, element), as dropout's is: a recomputed
 * node draws the same numbers, and none are stored for the backward part. */
#include "compiler/ops/random.h"
#include "compiler/onnx_file/onnx_tensor.h"
#include "compiler/ops/row.h"

/* ---- IR rows: the operand gives the shape alone; b: stream ---- */
const LsOp ls_op_uniform = {        /* in [0, 1) */
    .name = "uniform", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map,
    .grad = ls_grad_zero, .kernel = LS_K_MAP,
    .expr = "ls_uniform(run->seed, run->step, $b, %i)",
};
const LsOp ls_op_normal = {         /* mean 0, deviation 1 */
    .name = "normal", .min_in = 1, .max_in = 1, .nout = 1, .infer = ls_infer_map,
    .grad = ls_grad_zero, .kernel = LS_K_MAP,
    .expr = "ls_normal(run->seed, run->step, $b, %i)",
};
/* NORMAL that is the same for $a updates. Operand 0 has the stream in every row, as no number of
 * the kernel's: matrices of one shape share their kernel. */
const LsOp ls_op_projection = {
    .name = "projection", .min_in = 2, .max_in = 2, .nout = 1, .infer = ls_infer_map,
    .kernel = LS_K_MAP,
    .expr = "ls_normal(run->seed, (run->update - 1) / (int64_t)$a, (int64_t)%0, %i)",
};

/* Streams of nodes without a seed lie below 2^23, those of seeds above: both are exact in a float,
 * as kernels receive them. */
double ls_random_stream_of_node(const LsGraph *g) { return g->nnode & 0x7fffff; }
double ls_random_stream_of_seed(uint32_t seed)
{
    return 0x800000 + (seed * UINT32_C(2654435761) >> 9);
}

static double stream(const LsOnnxNode *n)
{
    if (!ls_onnx_has(n, "seed"))
        return ls_random_stream_of_node(n->g);
    union { float f; uint32_t bits; } seed = {(float)ls_onnx_float(n, "seed", 0)};
    return ls_random_stream_of_seed(seed.bits);
}

/* ---- ONNX rows ---- */
/* Numbers of that distribution; only the shape is that of `like`. */
static LsValueId draw(LsOnnxNode *n, LsOpCode op, const LsShape *shape)
{
    const LsShape to = *shape;
    LsValueId zero = ls_expand(n->cx, n->g, ls_const_real(n->cx, n->g, 0), to);
    if (!ls_is(zero))
        return zero;
    return ls_append1(n->cx, n->g, op, zero, &(LsAttr){.scalar = {.b = stream(n)}});
}

/* v * scale + offset */
static LsValueId placed(LsOnnxNode *n, LsValueId v, double scale, double offset)
{
    if (ls_is(v) && scale != 1)
        v = ls_append2(n->cx, n->g, LS_OP_MUL, v, ls_const_real(n->cx, n->g, scale), NULL);
    if (ls_is(v) && offset != 0)
        v = ls_append2(n->cx, n->g, LS_OP_ADD, v, ls_const_real(n->cx, n->g, offset), NULL);
    return v;
}

/* The attribute dtype, if there, is a float type. */
static bool gives_reals(LsOnnxNode *n)
{
    LsType type = LS_REAL;
    int64_t dtype = ls_onnx_int(n, "dtype", 1);
    if (!ls_onnx_type((int)dtype, &type) || type != LS_REAL)
        return ls_onnx_error(n, LS_E_TYPE, "random numbers are floats", "dtype is %s",
                             ls_onnx_type_name((int)dtype));
    return true;
}

/* The shape that the node asks for: an attribute, or that of its operand. */
static bool asked_shape(LsOnnxNode *n, bool like, LsShape *shape)
{
    if (!ls_onnx_takes(n, like, like) || !gives_reals(n))
        return false;
    if (like) {
        *shape = *ls_shape(n->g, n->in[0]);
        return true;
    }
    shape->rank = ls_onnx_ints(n, "shape", LS_MAX_RANK, shape->dim);
    if (shape->rank < 0)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "shape is missing, or has more than %d axes",
                             LS_MAX_RANK);
    return true;
}

static bool uniform(LsOnnxNode *n, LsValueId out[], bool like)
{
    LsShape shape = {0};
    double low = ls_onnx_float(n, "low", 0), high = ls_onnx_float(n, "high", 1);
    if (!asked_shape(n, like, &shape))
        return false;
    out[0] = placed(n, draw(n, LS_OP_UNIFORM, &shape), high - low, low);
    return ls_is(out[0]);
}

static bool normal(LsOnnxNode *n, LsValueId out[], bool like)
{
    LsShape shape = {0};
    if (!asked_shape(n, like, &shape))
        return false;
    out[0] = placed(n, draw(n, LS_OP_NORMAL, &shape), ls_onnx_float(n, "scale", 1),
                    ls_onnx_float(n, "mean", 0));
    return ls_is(out[0]);
}

#define RANDOM(row, op_type, of, like) \
    static bool row##_build(LsOnnxNode *n, LsValueId out[]) { return of(n, out, like); } \
    const LsOnnxOp ls_onnx_##row = {op_type, 1, row##_build};
RANDOM(random_uniform, "RandomUniform", uniform, false)
RANDOM(random_uniform_like, "RandomUniformLike", uniform, true)
RANDOM(random_normal, "RandomNormal", normal, false)
RANDOM(random_normal_like, "RandomNormalLike", normal, true)

/* One with the probability that the operand gives, else zero; in the operand's type, or in
 * dtype. */
static bool bernoulli_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, 1) || !ls_onnx_takes_real(n, 0))
        return false;
    LsType type = LS_REAL;
    int64_t dtype = ls_onnx_int(n, "dtype", 1);
    if (!ls_onnx_type((int)dtype, &type))
        return ls_onnx_error(n, LS_E_UNSUPPORTED, NULL, "dtype is %s",
                             ls_onnx_type_name((int)dtype));
    const LsShape shape = *ls_shape(n->g, n->in[0]);
    LsValueId u = draw(n, LS_OP_UNIFORM, &shape);
    if (!ls_is(u))
        return false;
    out[0] = ls_append2(n->cx, n->g, LS_OP_LESS, u, n->in[0], NULL);
    if (ls_is(out[0]) && type != LS_BOOL)
        out[0] = ls_append1(n->cx, n->g, LS_OP_CAST, out[0], &(LsAttr){.cast = type});
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_bernoulli = {"Bernoulli", 15, bernoulli_build};
