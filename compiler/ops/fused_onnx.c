/* compiler/ops/fused_onnx.c -- operators that onnxruntime's optimizers put in the place of several
 * of ai.onnx (domain com.microsoft): GELUs, products, a convolution with its activation, norms of
 * sums. Each is its definition in rows of the IR, which ls_fuse joins again. */
#include "compiler/ops/fused_onnx.h"

#include "compiler/onnx/onnx_found_weights.h"
#include "compiler/ops/index.h"
#include "compiler/ops/rotary.h"

#include <math.h>

bool ls_onnx_takes_reals(LsOnnxNode *n, unsigned operands)
{
    for (int k = 0; k < n->nin && k < 32; k++)
        if ((operands >> k & 1) && ls_is(n->in[k]) && !ls_onnx_takes_real(n, k))
            return false;
    return true;
}

bool ls_onnx_lacks(LsOnnxNode *n, int k, const char *what)
{
    return !ls_is(ls_onnx_in(n, k))
           || ls_onnx_error(n, LS_E_UNSUPPORTED, "optimize the model without this fusion",
                            "operand %d (%s) is not read", k, what);
}

/* ---- GELU ---- */
/* op(x + bias); the bias may be absent. */
static bool gelu_of(LsOnnxNode *n, LsValueId out[], LsOpCode op, int min)
{
    if (!ls_onnx_takes(n, min, 2) || !ls_onnx_takes_reals(n, 3))
        return false;
    LsValueId x = n->in[0];
    if (ls_is(ls_onnx_in(n, 1)))
        x = ls_append2(n->cx, n->g, LS_OP_ADD, x, n->in[1], NULL);
    out[0] = ls_is(x) ? ls_append1(n->cx, n->g, op, x, NULL) : x;
    return ls_is(out[0]);
}
static bool gelu_build(LsOnnxNode *n, LsValueId out[]) { return gelu_of(n, out, LS_OP_GELU, 1); }
static bool bias_gelu_build(LsOnnxNode *n, LsValueId out[])
{
    return gelu_of(n, out, LS_OP_GELU, 2);
}
static bool fast_gelu_build(LsOnnxNode *n, LsValueId out[])
{
    return gelu_of(n, out, LS_OP_GELU_TANH, 1);
}
const LsOnnxOp ls_onnx_ms_gelu = {LS_MICROSOFT "Gelu", 1, gelu_build};
const LsOnnxOp ls_onnx_ms_bias_gelu = {LS_MICROSOFT "BiasGelu", 1, bias_gelu_build};
const LsOnnxOp ls_onnx_ms_fast_gelu = {LS_MICROSOFT "FastGelu", 1, fast_gelu_build};

/* x sigmoid(alpha x) */
static bool quick_gelu_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 1, 1) || !ls_onnx_takes_reals(n, 1))
        return false;
    LsValueId s = ls_scale(n->cx, n->g, n->in[0], ls_onnx_float(n, "alpha", 1.702));
    s = ls_append1(n->cx, n->g, LS_OP_SIGMOID, s, NULL);
    out[0] = ls_append2(n->cx, n->g, LS_OP_MUL, n->in[0], s, NULL);
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_ms_quick_gelu = {LS_MICROSOFT "QuickGelu", 1, quick_gelu_build};

/* ---- products ---- */
/* Axis 0 moved behind the batch axes. */
static LsValueId batch_first(LsOnnxNode *n, LsValueId v)
{
    int perm[LS_MAX_RANK], rank = ls_shape(n->g, v)->rank;
    for (int k = 0; k < rank; k++)
        perm[k] = k < rank - 2 ? k + 1 : k == rank - 2 ? 0 : k;
    return ls_transpose(n->cx, n->g, v, perm);
}

static bool fused_matmul_build(LsOnnxNode *n, LsValueId out[])
{
    LsGraph *g = n->g;
    if (!ls_onnx_takes(n, 2, 2) || !ls_onnx_takes_reals(n, 3))
        return false;
    ls_onnx_weight(n, 1);
    LsValueId a = n->in[0], b = n->in[1];
    const LsShape as = *ls_shape(g, a), bs = *ls_shape(g, b);
    LsGemmAttr at = {.trans_a = ls_onnx_int(n, "transA", 0) != 0 && as.rank > 1,
                     .trans_b = ls_onnx_int(n, "transB", 0) != 0 && bs.rank > 1,
                     .alpha = ls_onnx_float(n, "alpha", 1)};
    bool batch_a = ls_onnx_int(n, "transBatchA", 0) != 0,
         batch_b = ls_onnx_int(n, "transBatchB", 0) != 0;
    if (as.rank < 2 || bs.rank < 2) {
        LsOnnxNode plain = *n;
        if (at.trans_a || at.trans_b)
            return ls_onnx_error(n, LS_E_UNSUPPORTED, NULL,
                                 "A is %s and B is %s: the matrix is not transposed beside a "
                                 "vector",
                                 ls_dims(g, a), ls_dims(g, b));
        if (!ls_onnx_matmul.build(&plain, out))
            return false;
        out[0] = ls_scale(n->cx, g, out[0], at.alpha);
        return ls_is(out[0]);
    }
    a = batch_a && as.rank > 2 ? batch_first(n, a) : a;
    b = batch_b && bs.rank > 2 ? batch_first(n, b) : b;
    LsShape y = *ls_shape(g, a);
    bool flat = y.rank > 2 && bs.rank == 2 && !at.trans_a;
    if (flat)       /* one large product, and one for the gradient of the matrix */
        a = ls_reshape(n->cx, g, a,
                       &(LsShape){2, {ls_count(&y) / y.dim[y.rank - 1], y.dim[y.rank - 1]}});
    out[0] = ls_append2(n->cx, g, LS_OP_MATMUL, a, b, &(LsAttr){.gemm = at});
    if (flat && ls_is(out[0])) {
        y.dim[y.rank - 1] = ls_shape(g, out[0])->dim[1];
        out[0] = ls_reshape(n->cx, g, out[0], &y);
    }
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_ms_fused_matmul = {LS_MICROSOFT "FusedMatMul", 1, fused_matmul_build};

/* ---- an activation after a product or a convolution ---- */
typedef struct Activation {
    const char *name;           /* "" where there is none */
    bool one, two;              /* given numbers */
    double a, b;
} Activation;

/* out[0] through the activation. */
static bool activate(LsOnnxNode *n, LsValueId out[], const Activation *f)
{
    static const struct { const char *name; LsOpCode op; double a, b; } known[] = {
        {"Relu", LS_OP_RELU, 0, 0}, {"Tanh", LS_OP_TANH, 0, 0}, {"Sigmoid", LS_OP_SIGMOID, 0, 0},
        {"LeakyRelu", LS_OP_LEAKY_RELU, 0.01, 0}, {"HardSigmoid", LS_OP_HARD_SIGMOID, 0.2, 0.5},
    };
    if (f->name[0] == '\0')
        return ls_is(out[0]);
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (strcmp(known[k].name, f->name) == 0) {
            LsAttr at = {
                .scalar = {.a = f->one ? f->a : known[k].a, .b = f->two ? f->b : known[k].b}};
            out[0] = ls_append1(n->cx, n->g, known[k].op, out[0], &at);
            return ls_is(out[0]);
        }
    if (strcmp(f->name, "Clip") == 0 && f->one && f->two) {
        out[0] = ls_append2(n->cx, n->g, LS_OP_MAX, out[0], ls_const_real(n->cx, n->g, f->a), NULL);
        out[0] = ls_append2(n->cx, n->g, LS_OP_MIN, out[0], ls_const_real(n->cx, n->g, f->b), NULL);
        return ls_is(out[0]);
    }
    return ls_onnx_error(n, LS_E_UNSUPPORTED, "optimize the model without this fusion",
                         "activation '%s' is not read", f->name);
}

static bool fused_gemm_build(LsOnnxNode *n, LsValueId out[])
{
    Activation f = {ls_onnx_string(n, "activation", ""), ls_onnx_has(n, "activation_alpha"),
                    ls_onnx_has(n, "activation_beta"), ls_onnx_float(n, "activation_alpha", 0),
                    ls_onnx_float(n, "activation_beta", 0)};
    return ls_onnx_gemm.build(n, out) && activate(n, out, &f);
}
const LsOnnxOp ls_onnx_ms_fused_gemm = {LS_MICROSOFT "FusedGemm", 1, fused_gemm_build};

/* activation(Conv(X, W, B) + Z) */
static bool fused_conv_build(LsOnnxNode *n, LsValueId out[])
{
    double p[2] = {0};
    if (!ls_onnx_takes(n, 2, 4) || !ls_onnx_takes_reals(n, 15))
        return false;
    int count = ls_onnx_floats(n, "activation_params", 2, p);
    Activation f = {ls_onnx_string(n, "activation", ""), count > 0, count > 1, p[0], p[1]};
    LsOnnxNode conv = *n;
    conv.nin = n->nin > 3 ? 3 : n->nin;
    if (!ls_onnx_conv.build(&conv, out))
        return false;
    if (ls_is(ls_onnx_in(n, 3)))
        out[0] = ls_append2(n->cx, n->g, LS_OP_ADD, out[0], n->in[3], NULL);
    return ls_is(out[0]) && activate(n, out, &f);
}
const LsOnnxOp ls_onnx_ms_fused_conv = {LS_MICROSOFT "FusedConv", 1, fused_conv_build};

/* ---- norms ---- */
LsValueId ls_layer_norm(LsOnnxNode *n, LsValueId x, LsValueId scale, LsValueId bias, double eps)
{
    LsValueId in[] = {x, scale, bias};
    int axis = ls_shape(n->g, x)->rank - 1;
    return ls_append(n->cx, n->g, LS_OP_LAYER_NORM, ls_is(bias) ? 3 : 2, in,
                     &(LsAttr){.norm = {axis, eps}});
}

/* input + skip + bias; none after an error. */
static LsValueId skip_sum(LsOnnxNode *n, int bias)
{
    LsValueId x = ls_append2(n->cx, n->g, LS_OP_ADD, n->in[0], n->in[1], NULL);
    if (ls_is(x) && ls_is(ls_onnx_in(n, bias)))
        x = ls_append2(n->cx, n->g, LS_OP_ADD, x, n->in[bias], NULL);
    if (ls_is(x) && ls_shape(n->g, x)->rank < 2) {
        ls_onnx_error(n, LS_E_SHAPE, NULL, "the sum is %s: it needs two axes or more",
                      ls_dims(n->g, x));
        return (LsValueId){0};
    }
    return x;
}

static bool skip_layer_norm_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 3, 5) || !ls_onnx_takes_reals(n, 31))
        return false;
    ls_onnx_weight(n, 2);
    ls_onnx_weight(n, 3);
    LsValueId x = skip_sum(n, 4);
    LsValueId y = ls_is(x) ? ls_layer_norm(n, x, n->in[2], ls_onnx_in(n, 3),
                                           ls_onnx_float(n, "epsilon", 1e-12))
                           : x;
    if (!ls_is(y))
        return false;
    for (int k = 0; k < 3; k++)
        out[k] = (LsValueId){y.i + (uint32_t)k};
    out[3] = x;
    return true;
}
const LsOnnxOp ls_onnx_ms_skip_layer_norm = {LS_MICROSOFT "SkipLayerNormalization", 1,
                                             skip_layer_norm_build};

static bool lacks_statistics(LsOnnxNode *n, int first, int last)
{
    for (int k = first; k <= last; k++)
        if (ls_onnx_gives(n, k))
            return ls_onnx_error(n, LS_E_UNSUPPORTED, "leave the result out",
                                 "result %d, a statistic, is not made", k);
    return true;
}

static bool skip_simplified_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 3, 4) || !ls_onnx_takes_reals(n, 15) || !lacks_statistics(n, 1, 2))
        return false;
    ls_onnx_weight(n, 2);
    out[3] = skip_sum(n, 3);
    out[0] = ls_is(out[3]) ? ls_rms_norm(n, out[3], n->in[2], ls_onnx_float(n, "epsilon", 1e-12))
                           : out[3];
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_ms_skip_simplified = {LS_MICROSOFT "SkipSimplifiedLayerNormalization", 1,
                                             skip_simplified_build};

/* onnxruntime puts this one, and LayerNormalization of opsets before 17, into ai.onnx. */
static bool simplified_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 2, 2) || !ls_onnx_takes_reals(n, 3) || !lacks_statistics(n, 1, 1))
        return false;
    ls_onnx_weight(n, 1);
    out[0] = ls_rms_norm(n, n->in[0], n->in[1], ls_onnx_float(n, "epsilon", 1e-5));
    return ls_is(out[0]);
}
const LsOnnxOp ls_onnx_simplified_norm = {"SimplifiedLayerNormalization", 1, simplified_build};

/* ---- EmbedLayerNormalization ---- */
/* Rows of a table, [N,T,C]. */
static LsValueId rows_of(LsOnnxNode *n, int table, int index)
{
    const LsShape *s = ls_shape(n->g, n->in[table]), *by = ls_shape(n->g, n->in[index]);
    if (s->rank != 2 || by->rank != 2) {
        ls_onnx_error(n, LS_E_SHAPE, "a table has two axes, and so have indices",
                      "operand %d is %s, operand %d is %s", table, ls_dims(n->g, n->in[table]),
                      index, ls_dims(n->g, n->in[index]));
        return (LsValueId){0};
    }
    if (!ls_is(ls_index_ints(n, index)) || !ls_index_inside(n, n->in[index], s->dim[0], s->dim[0]))
        return (LsValueId){0};
    return ls_append2(n->cx, n->g, LS_OP_GATHER, n->in[table], n->in[index], NULL);
}

/* The number of ones in each row of the mask; zeros without one. */
static LsValueId mask_index(LsOnnxNode *n, int64_t batch)
{
    LsShape s = {1, {batch}};
    if (!ls_is(ls_onnx_in(n, 7)))
        return ls_const_add(n->cx, n->g, LS_I32, &s,
                            ls_arena_alloc(n->g->arena, (size_t)batch + 1, sizeof(int32_t)));
    LsValueId v = ls_append1(n->cx, n->g, LS_OP_CAST, n->in[7], &(LsAttr){.cast = LS_REAL});
    v = ls_is(v) ? ls_append1(n->cx, n->g, LS_OP_REDUCE_SUM, v,
                              &(LsAttr){.reduce = {.axes = 2, .keep = true}})
                 : v;
    v = ls_is(v) ? ls_reshape(n->cx, n->g, v, &s) : v;
    return ls_is(v) ? ls_append1(n->cx, n->g, LS_OP_CAST, v, &(LsAttr){.cast = LS_I32}) : v;
}

static LsValueId positions(LsOnnxNode *n, int64_t tokens)
{
    if (ls_is(ls_onnx_in(n, 8)))
        return rows_of(n, 3, 8);
    const LsShape s = *ls_shape(n->g, n->in[3]);
    if (s.rank != 2 || s.dim[0] < tokens) {
        ls_onnx_error(n, LS_E_SHAPE, NULL, "position_embedding is %s, there are %" PRId64 " tokens",
                      ls_dims(n->g, n->in[3]), tokens);
        return (LsValueId){0};
    }
    return ls_slice_axis(n->cx, n->g, n->in[3], 0, 0, tokens);
}

static bool embed_build(LsOnnxNode *n, LsValueId out[])
{
    enum { IDS, SEGMENTS, WORDS, POSITIONS, SEGMENT_TABLE, GAMMA, BETA };
    if (!ls_onnx_takes(n, 1, 9) || !ls_onnx_takes_reals(n, 0x7c))
        return false;
    if (n->nin < 7 || !ls_is(n->in[WORDS]) || !ls_is(n->in[POSITIONS]) || !ls_is(n->in[GAMMA])
        || !ls_is(n->in[BETA]) || ls_is(n->in[SEGMENTS]) != ls_is(n->in[SEGMENT_TABLE]))
        return ls_onnx_error(
            n, LS_E_NAME, NULL,
            "a table, gamma, beta, or one of segment_ids and segment_embedding is missing");
    for (int k = WORDS; k <= BETA; k++)
        ls_onnx_weight(n, k);
    LsValueId x = rows_of(n, WORDS, IDS);
    if (!ls_is(x))
        return false;
    LsValueId p = positions(n, ls_shape(n->g, x)->dim[1]);
    x = ls_is(p) ? ls_append2(n->cx, n->g, LS_OP_ADD, x, p, NULL) : p;
    if (ls_is(x) && ls_is(n->in[SEGMENTS])) {
        p = rows_of(n, SEGMENT_TABLE, SEGMENTS);
        x = ls_is(p) ? ls_append2(n->cx, n->g, LS_OP_ADD, x, p, NULL) : p;
    }
    if (!ls_is(x))
        return false;
    out[0] = ls_layer_norm(n, x, n->in[GAMMA], n->in[BETA], ls_onnx_float(n, "epsilon", 1e-12));
    out[1] = ls_onnx_gives(n, 1) ? mask_index(n, ls_shape(n->g, x)->dim[0]) : (LsValueId){0};
    out[2] = x;
    return ls_is(out[0]) && (!ls_onnx_gives(n, 1) || ls_is(out[1]));
}
const LsOnnxOp ls_onnx_ms_embed = {LS_MICROSOFT "EmbedLayerNormalization", 1, embed_build};

/* ---- RotaryEmbedding ---- */
/* Positions of all tokens: as given, or counted from a single number. */
static LsValueId token_positions(LsOnnxNode *n, int64_t tokens)
{
    LsValueId ids = ls_index_ints(n, 1);
    if (!ls_is(ids) || ls_count(ls_shape(n->g, ids)) != 1 || !ls_index_affords(n, tokens))
        return ids;
    ids = ls_reshape(n->cx, n->g, ids, &(LsShape){2, {1, 1}});
    return ls_append2(n->cx, n->g, LS_OP_ADD, ids, ls_index_count(n, tokens, 1, 1, 2), NULL);
}

static bool ms_rotary_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 4, 4) || !ls_onnx_takes_reals(n, 13))
        return false;
    const LsShape s = *ls_shape(n->g, n->in[0]), table = *ls_shape(n->g, n->in[2]);
    int64_t heads = ls_onnx_int(n, "num_heads", 0),
            rotated = ls_onnx_int(n, "rotary_embedding_dim", 0);
    if (ls_onnx_float(n, "scale", 1) != 1 || ls_onnx_int(n, "is_packed_batching", 0) != 0)
        return ls_onnx_error(n, LS_E_UNSUPPORTED, NULL, "a scale and packed batches are not read");
    if (table.rank != 2 || ls_shape(n->g, n->in[3])->rank != 2)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "cos_cache is %s: it has two axes",
                             ls_dims(n->g, n->in[2]));
    if (heads == 0 && s.rank == 3 && table.dim[1] > 0)
        heads = s.dim[2] / (2 * table.dim[1]);
    bool joined = s.rank == 3;
    if (!ls_rotary_fits(n, heads, "the input"))
        return false;
    LsRotary r = {n->in[0], n->in[2], n->in[3], token_positions(n, s.dim[joined ? 1 : 2]), joined,
                  ls_onnx_int(n, "interleaved", 0) != 0, rotated};
    if (!ls_is(r.ids) || !ls_index_inside(n, r.ids, 0, table.dim[0]))
        return false;
    return ls_is(out[0] = ls_rotary_joined(n, &r, heads));
}
const LsOnnxOp ls_onnx_ms_rotary = {LS_MICROSOFT "RotaryEmbedding", 1, ms_rotary_build};
