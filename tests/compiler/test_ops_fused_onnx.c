/* tests/compiler/test_ops_fused_onnx.c -- operators that onnxruntime's optimizers write
 * (com.microsoft) beside the nodes of ai.onnx that they stand for: the same numbers; gradients
 * against differences; refusals. */
#include "tests/support/fused_node.h"
#include "tests/support/suite.h"

enum { N = 2, T = 3, C = 4, H = 2, S = 5 };

/* ---- GELUs ---- */
START_TEST(gelus_are_those_of_their_sum)
{
    LsValueId x = param("x", SHAPE(T, C)), b = param("b", SHAPE(C)), sum = PLAIN("Add", 14, x, b);
    Node tanh_form = {0};
    node_string(&tanh_form, "approximate", "tanh");
    LsValueId gelu = PLAIN("Gelu", 20, sum);
    expect_fused(PLAIN(MS("BiasGelu"), 1, x, b), gelu);
    expect_equal(PLAIN(MS("Gelu"), 1, sum), gelu);
    LsValueId fast = node_one(&tanh_form, "Gelu", 20, IN(sum));
    expect_equal(PLAIN(MS("FastGelu"), 1, x, b), fast);
    expect_equal(PLAIN(MS("FastGelu"), 1, sum), fast);
}
END_TEST

START_TEST(quick_gelu_is_x_times_a_sigmoid)
{
    Node n = {0};
    node_float(&n, "alpha", 1.5F);
    LsValueId x = param("x", SHAPE(T, C));
    LsValueId s = PLAIN("Sigmoid", 13, PLAIN("Mul", 14, x, scalar(1.5)));
    expect_fused(node_one(&n, MS("QuickGelu"), 1, IN(x)), PLAIN("Mul", 14, x, s));
    s = PLAIN("Sigmoid", 13, PLAIN("Mul", 14, x, scalar(1.702)));
    expect_equal(PLAIN(MS("QuickGelu"), 1, x), PLAIN("Mul", 14, x, s));
}
END_TEST

/* ---- products ---- */
START_TEST(fused_matmul_turns_and_scales_its_factors)
{
    Node n = {0}, both = {0};
    node_float(&n, "alpha", 0.5F);
    LsValueId a = param("a", SHAPE(N, T, C)), b = param("b", SHAPE(C, S)), half = scalar(0.5);
    expect_fused(node_one(&n, MS("FusedMatMul"), 1, IN(a, b)),
                 PLAIN("Mul", 14, PLAIN("MatMul", 13, a, b), half));
    LsValueId c = param("c", SHAPE(N, C, T)), d = param("d", SHAPE(N, S, C));
    node_int(&both, "transA", 1);
    node_int(&both, "transB", 1);
    LsValueId product = PLAIN("MatMul", 13, turned(c, LIST(0, 2, 1)), turned(d, LIST(0, 2, 1)));
    expect_fused(node_one(&both, MS("FusedMatMul"), 1, IN(c, d)), product);
}
END_TEST

START_TEST(fused_matmul_moves_batch_axes)
{
    Node n = {0};
    node_int(&n, "transBatchA", 1);
    node_int(&n, "transBatchB", 1);
    LsValueId a = param("a", SHAPE(T, N, C)), b = param("b", SHAPE(C, N, S));
    LsValueId product = PLAIN("MatMul", 13, turned(a, LIST(1, 0, 2)), turned(b, LIST(1, 0, 2)));
    expect_fused(node_one(&n, MS("FusedMatMul"), 1, IN(a, b)), product);
}
END_TEST

START_TEST(fused_matmul_takes_vectors_as_they_are)
{
    Node n = {0}, turn = {0};
    LsValueId a = param("a", SHAPE(T, C)), v = param("v", SHAPE(C));
    node_float(&n, "alpha", 2);
    expect_fused(node_one(&n, MS("FusedMatMul"), 1, IN(a, v)),
                 PLAIN("Mul", 14, PLAIN("MatMul", 13, a, v), scalar(2)));
    node_int(&turn, "transA", 1);
    node_fails(&turn, MS("FusedMatMul"), 1, IN(a, v), LS_E_UNSUPPORTED,
               "not transposed beside a vector");
}
END_TEST

static const struct { const char *name; double a, b; const char *op; } activation[] = {
    {"", 0, 0, NULL}, {"Relu", 0, 0, "Relu"}, {"Tanh", 0, 0, "Tanh"}, {"Sigmoid", 0, 0, "Sigmoid"},
    {"LeakyRelu", 0.3, 0, "LeakyRelu"}, {"HardSigmoid", 0.3, 0.4, "HardSigmoid"}};

/* The activation by its own node. */
static LsValueId activated(int k, LsValueId v)
{
    Node n = {0};
    if (activation[k].op == NULL)
        return v;
    if (activation[k].a != 0)
        node_float(&n, "alpha", (float)activation[k].a);
    if (activation[k].b != 0)
        node_float(&n, "beta", (float)activation[k].b);
    return node_one(&n, activation[k].op, 14, IN(v));
}

START_TEST(fused_gemm_has_its_activation)
{
    Node n = {0};
    node_string(&n, "activation", activation[_i].name);
    if (activation[_i].a != 0)
        node_float(&n, "activation_alpha", (float)activation[_i].a);
    if (activation[_i].b != 0)
        node_float(&n, "activation_beta", (float)activation[_i].b);
    LsValueId a = param("a", SHAPE(T, C)), b = param("b", SHAPE(C, S)), c = param("c", SHAPE(S));
    expect_fused(node_one(&n, MS("FusedGemm"), 1, IN(a, b, c)),
                 activated(_i, PLAIN("Gemm", 13, a, b, c)));
}
END_TEST

START_TEST(fused_conv_adds_and_activates)
{
    Node n = {0};
    const float p[] = {(float)activation[_i].a, (float)activation[_i].b};
    node_string(&n, "activation", activation[_i].name);
    if (activation[_i].a != 0)
        node_floats(&n, "activation_params", activation[_i].b != 0 ? 2 : 1, p);
    LsValueId x = param("x", SHAPE(1, 2, 4, 4)), w = param("w", SHAPE(3, 2, 3, 3)),
              b = param("b", SHAPE(3));
    LsValueId z = param("z", SHAPE(1, 3, 2, 2)), conv = PLAIN("Conv", 11, x, w, b);
    expect_fused(node_one(&n, MS("FusedConv"), 1, IN(x, w, b, z)),
                 activated(_i, PLAIN("Add", 14, conv, z)));
    expect_equal(node_one(&n, MS("FusedConv"), 1, IN(x, w, b)), activated(_i, conv));
}
END_TEST

START_TEST(other_activations_are_clip_or_refused)
{
    Node clip = {0}, one = {0}, other = {0};
    LsValueId x = param("x", SHAPE(1, 2, 4, 4)), w = param("w", SHAPE(3, 2, 3, 3)),
              conv = PLAIN("Conv", 11, x, w);
    node_string(&clip, "activation", "Clip");
    node_floats(&clip, "activation_params", 2, (float[]){-0.1F, 0.2F});
    LsValueId want = PLAIN("Clip", 13, conv, scalar(-0.1F), scalar(0.2F));
    expect_equal(node_one(&clip, MS("FusedConv"), 1, IN(x, w)), want);
    node_string(&one, "activation", "Clip");
    node_floats(&one, "activation_params", 1, (float[]){-0.1F});
    node_fails(&one, MS("FusedConv"), 1, IN(x, w), LS_E_UNSUPPORTED,
               "activation 'Clip' is not read");
    node_string(&other, "activation", "Mish");
    node_fails(&other, MS("FusedConv"), 1, IN(x, w), LS_E_UNSUPPORTED,
               "activation 'Mish' is not read");
}
END_TEST

/* ---- norms ---- */
START_TEST(skip_layer_norm_is_the_norm_of_a_sum)
{
    Node n = {0}, norm = {0};
    LsValueId x = param("x", SHAPE(N, T, C)), skip = param("s", SHAPE(N, T, C)),
              scale = param("g", SHAPE(C));
    LsValueId beta = param("b", SHAPE(C)), bias = param("c", SHAPE(C)), out[4];
    LsValueId sum = PLAIN("Add", 14, PLAIN("Add", 14, x, skip), bias);
    node_float(&n, "epsilon", 1e-3F);
    node_float(&norm, "epsilon", 1e-3F);
    ck_assert(node_build(&n, MS("SkipLayerNormalization"), 1, IN(x, skip, scale, beta, bias), 4,
                         out, NULL));
    expect_equal(out[3], sum);
    expect_fused(out[0], node_one(&norm, "LayerNormalization", 17, IN(sum, scale, beta)));
    LsValueId v = param("v", SHAPE(C));
    node_fails(&n, MS("SkipLayerNormalization"), 1, IN(v, v, scale), LS_E_SHAPE,
               "two axes or more");
}
END_TEST

START_TEST(simplified_norms_divide_by_the_root_of_mean_squares)
{
    Node n = {0}, norm = {0};
    LsValueId x = param("x", SHAPE(T, C)), skip = param("s", SHAPE(T, C)),
              scale = param("g", SHAPE(C)), out[4];
    char *log;
    node_float(&n, "epsilon", 1e-3F);
    node_float(&norm, "epsilon", 1e-3F);
    LsValueId sum = PLAIN("Add", 14, x, skip),
              want = node_one(&norm, "RMSNormalization", 23, IN(sum, scale));
    expect_fused(node_one(&n, "SimplifiedLayerNormalization", 1, IN(sum, scale)), want);
    ck_assert(node_build(&n, MS("SkipSimplifiedLayerNormalization"), 1, IN(x, skip, scale), 1, out,
                         NULL));
    expect_equal(out[0], want);
    ck_assert(!node_build(&n, "SimplifiedLayerNormalization", 1, IN(sum, scale), 2, out, &log));
    ck_assert_msg(strstr(log, "result 1, a statistic, is not made") != NULL, "%s", log);
    ck_assert(!node_build(&n, MS("SkipSimplifiedLayerNormalization"), 1, IN(x, skip, scale), 3, out,
                          &log));
    ck_assert_msg(strstr(log, "result 1, a statistic, is not made") != NULL, "%s", log);
}
END_TEST

/* ---- EmbedLayerNormalization ---- */
typedef struct Tables { LsValueId ids, segments, words, places, kinds, scale, beta; } Tables;

static Tables tables(void)
{
    return (Tables){ints_of(SHAPE(N, T), (int64_t[]){0, 3, 1, 2, 2, 4}),
                    ints_of(SHAPE(N, T), (int64_t[]){0, 0, 1, 1, 0, 1}),
                    param("words", SHAPE(S, C)),
                    param("places", SHAPE(6, C)),
                    param("kinds", SHAPE(2, C)),
                    param("scale", SHAPE(C)),
                    param("beta", SHAPE(C))};
}

START_TEST(embeddings_are_added_and_normed)
{
    Tables t = tables();
    LsValueId out[3], mask = int_input("m", SHAPE(N, T), (int32_t[]){1, 1, 0, 1, 1, 1});
    LsValueId first = ls_slice_axis(&cx, g, t.places, 0, 0, T);
    LsValueId sum = PLAIN("Add", 14, PLAIN("Gather", 13, t.words, t.ids), first);
    sum = PLAIN("Add", 14, sum, PLAIN("Gather", 13, t.kinds, t.segments));
    Node n = {0}, norm = {0};
    node_float(&n, "epsilon", 1e-3F);
    node_float(&norm, "epsilon", 1e-3F);
    ck_assert(node_build(&n, MS("EmbedLayerNormalization"), 1,
                         IN(t.ids, t.segments, t.words, t.places, t.kinds, t.scale, t.beta, mask),
                         3, out, NULL));
    expect_equal(out[2], sum);
    EXPECT_RUN(out[1], 2, 3);
    expect_fused(out[0], node_one(&norm, "LayerNormalization", 17, IN(sum, t.scale, t.beta)));
}
END_TEST

START_TEST(embeddings_take_positions_and_may_lack_segments)
{
    Tables t = tables();
    LsValueId out[3], at = ints_of(SHAPE(N, T), (int64_t[]){5, 4, 3, 0, 1, 2});
    LsValueId sum =
        PLAIN("Add", 14, PLAIN("Gather", 13, t.words, t.ids), PLAIN("Gather", 13, t.places, at));
    ck_assert(node_build(&(Node){0}, MS("EmbedLayerNormalization"), 1,
                         IN(t.ids, NONE, t.words, t.places, NONE, t.scale, t.beta, NONE, at), 3,
                         out, NULL));
    expect_equal(out[2], sum);
    EXPECT(out[1], 0, 0);
}
END_TEST

START_TEST(embeddings_that_do_not_fit_are_refused)
{
    Tables t = tables();
    Node n = {0};
    LsValueId few = param("few", SHAPE(2, C)), flat = param("flat", SHAPE(C));
    LsValueId far = ints_of(SHAPE(N, T), (int64_t[]){0, 1, 2, 3, 4, 5});
    const char *op = MS("EmbedLayerNormalization");
    node_fails(&n, op, 1, IN(t.ids, t.segments, t.words, t.places, NONE, t.scale, t.beta),
               LS_E_NAME, "segment_embedding is missing");
    node_fails(&n, op, 1, IN(t.ids, NONE, t.words, few, NONE, t.scale, t.beta), LS_E_SHAPE,
               "there are 3 tokens");
    node_fails(&n, op, 1, IN(t.ids, NONE, flat, t.places, NONE, t.scale, t.beta), LS_E_SHAPE,
               "operand 2 is 4");
    node_fails(&n, op, 1, IN(far, NONE, t.words, t.places, NONE, t.scale, t.beta), LS_E_SHAPE,
               "index 5 is outside");
}
END_TEST

/* ---- RotaryEmbedding ---- */
START_TEST(rotary_embedding_reads_its_operands_in_their_own_order)
{
    Node n = {0}, own = {0}, scaled = {0};
    LsValueId x = param("x", SHAPE(N, T, H * 4)), cos = param("c", SHAPE(S, 2)),
              sin = param("s", SHAPE(S, 2));
    LsValueId ids = ints_of(SHAPE(N, T), (int64_t[]){1, 2, 3, 0, 1, 2}), start = INTS(2);
    node_int(&n, "num_heads", H);
    LsValueId want = node_one(&n, "RotaryEmbedding", 23, IN(x, cos, sin, ids));
    expect_fused(PLAIN(MS("RotaryEmbedding"), 1, x, ids, cos, sin), want);
    LsValueId counted = ints_of(SHAPE(N, T), (int64_t[]){2, 3, 4, 2, 3, 4});
    want = node_one(&n, "RotaryEmbedding", 23, IN(x, cos, sin, counted));
    expect_equal(node_one(&own, MS("RotaryEmbedding"), 1, IN(x, start, cos, sin)), want);
    node_float(&scaled, "scale", 2);
    node_fails(&scaled, MS("RotaryEmbedding"), 1, IN(x, ids, cos, sin), LS_E_UNSUPPORTED,
               "a scale and packed batches");
    node_fails(&own, MS("RotaryEmbedding"), 1, IN(x, ids, param("w", SHAPE(2)), sin), LS_E_SHAPE,
               "it has two axes");
}
END_TEST

/* ---- Attention ---- */
typedef struct Projected { LsValueId x, w, b, q, k, v; } Projected;

/* q, k and v by products of their own; v is narrower if `narrow`. */
static Projected projected(bool narrow)
{
    int64_t vs = narrow ? 2 : 4;
    Projected p = {.x = param("x", SHAPE(N, T, C)),
                   .w = param("w", SHAPE(C, 8 + vs)),
                   .b = param("b", SHAPE(8 + vs))};
    LsValueId y = PLAIN("Add", 14, PLAIN("MatMul", 13, p.x, p.w), p.b);
    p.q = ls_slice_axis(&cx, g, y, 2, 0, 4);
    p.k = ls_slice_axis(&cx, g, y, 2, 4, 8);
    p.v = ls_slice_axis(&cx, g, y, 2, 8, 8 + vs);
    return p;
}

/* Attention of ai.onnx; mask: bools, reals, or none. */
static LsValueId attended(LsValueId q, LsValueId k, LsValueId v, LsValueId mask, bool causal)
{
    Node n = {0};
    node_int(&n, "q_num_heads", H);
    node_int(&n, "kv_num_heads", H);
    node_int(&n, "is_causal", causal);
    return node_one(&n, "Attention", 23, IN(q, k, v, mask));
}

#define HEADS(n) Node n = {0}; node_int(&n, "num_heads", H)

START_TEST(attention_projects_and_attends)
{
    static const int64_t narrow[] = {4, 4, 2};
    Projected p = projected(_i == 1);
    HEADS(n);
    node_int(&n, "unidirectional", _i == 2);
    if (_i == 1)
        node_ints(&n, "qkv_hidden_sizes", 3, narrow);
    expect_fused(node_one(&n, MS("Attention"), 1, IN(p.x, p.w, p.b)),
                 attended(p.q, p.k, p.v, NONE, _i == 2));
}
END_TEST

/* Every form of the mask of integers, and the columns that it shows of each sample and row. */
static const struct {
    int rank;
    int64_t dim[3];
    int32_t v[N * T * T];
    bool sees[N][T][T];
} masks[] = {
    {1, {N}, {2, 3}, {{{1, 1, 0}, {1, 1, 0}, {1, 1, 0}}, {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}}},
    {1,
     {2 * N},
     {3, 2, 1, 0},
     {{{0, 1, 1}, {0, 1, 1}, {0, 1, 1}}, {{1, 1, 0}, {1, 1, 0}, {1, 1, 0}}}},
    {2,
     {N, T},
     {1, 0, 1, 0, 1, 1},
     {{{1, 0, 1}, {1, 0, 1}, {1, 0, 1}}, {{0, 1, 1}, {0, 1, 1}, {0, 1, 1}}}},
    {3,
     {N, T, T},
     {1, 0, 0, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 0},
     {{{1, 0, 0}, {1, 1, 0}, {1, 1, 1}}, {{0, 1, 1}, {1, 0, 1}, {1, 1, 0}}}}};

START_TEST(masks_of_integers_hide_columns)
{
    Projected p = projected(false);
    LsShape s = {masks[_i].rank, {masks[_i].dim[0], masks[_i].dim[1], masks[_i].dim[2]}};
    LsValueId mask = int_input("m", s, masks[_i].v);
    LsValueId sees = ls_const_add(&cx, g, LS_BOOL, &SHAPE(N, 1, T, T), masks[_i].sees);
    HEADS(n);
    expect_fused(node_one(&n, MS("Attention"), 1, IN(p.x, p.w, p.b, mask)),
                 attended(p.q, p.k, p.v, sees, false));
}
END_TEST

START_TEST(hidden_columns_get_the_filter_value_and_a_bias_is_added)
{
    Projected p = projected(false);
    LsValueId mask = int_input("m", SHAPE(N, T), (int32_t[]){1, 0, 1, 0, 1, 1}),
              bias = param("a", SHAPE(1, H, T, T));
    LsValueId hidden = reals_of(SHAPE(N, 1, 1, T), (float[]){0, -1, 0, -1, 0, 0});
    HEADS(n);
    node_float(&n, "mask_filter_value", -1);
    LsValueId want = attended(p.q, p.k, p.v, PLAIN("Add", 14, bias, hidden), false);
    expect_fused(node_one(&n, MS("Attention"), 1, IN(p.x, p.w, p.b, mask, NONE, bias)), want);
}
END_TEST

/* [N,T,H*D] as [N,H,T,D]. */
static LsValueId by_heads(LsValueId v, int64_t tokens)
{
    return turned(reshaped(v, SHAPE(N, tokens, H, 2)), LIST(0, 2, 1, 3));
}

/* Past and own tokens behind each other, [N,H,P+T,D]. */
static LsValueId joined(LsValueId past, LsValueId own)
{
    Node n = {0};
    node_int(&n, "axis", 2);
    return node_one(&n, "Concat", 13, IN(past, own));
}

/* Attention of [N,H,T,D], as [N,T,H*D]. */
static LsValueId of_four_axes(LsValueId q, LsValueId k, LsValueId v)
{
    LsValueId y = PLAIN("Attention", 23, q, k, v);
    return reshaped(turned(y, LIST(0, 2, 1, 3)), SHAPE(N, T, H * 2));
}

START_TEST(attention_reads_and_gives_its_cache)
{
    Projected p = projected(false);
    LsValueId past = param("p", SHAPE(2, N, H, 2, 2)), out[2];
    LsValueId pk = reshaped(ls_slice_axis(&cx, g, past, 0, 0, 1), SHAPE(N, H, 2, 2));
    LsValueId pv = reshaped(ls_slice_axis(&cx, g, past, 0, 1, 2), SHAPE(N, H, 2, 2));
    LsValueId k = joined(pk, by_heads(p.k, T)), v = joined(pv, by_heads(p.v, T));
    HEADS(n);
    Node concat = {0};
    ck_assert(node_build(&n, MS("Attention"), 1, IN(p.x, p.w, p.b, NONE, past), 2, out, NULL));
    node_int(&concat, "axis", 0);
    expect_equal(out[1], node_one(&concat, "Concat", 13,
                                  IN(reshaped(k, SHAPE(1, N, H, T + 2, 2)),
                                     reshaped(v, SHAPE(1, N, H, T + 2, 2)))));
    expect_fused(out[0], of_four_axes(by_heads(p.q, T), k, v));
}
END_TEST

START_TEST(attention_refuses_what_does_not_fit)
{
    Projected p = projected(false);
    HEADS(n);
    HEADS(rotary);
    HEADS(sizes);
    Node odd = {0};
    const char *op = MS("Attention");
    LsValueId m = int_input("m", SHAPE(N, 7), (int32_t[N * 7]){1}), flat = param("f", SHAPE(C));
    node_fails(&n, op, 1, IN(p.x, p.w, p.b, m), LS_E_SHAPE, "the mask is 2x7");
    node_fails(&n, op, 1, IN(p.x, flat), LS_E_SHAPE, "two axes are needed");
    node_fails(&n, op, 1, IN(flat, p.w), LS_E_SHAPE, "the input is 4");
    node_fails(&n, op, 1, IN(p.x, p.w, p.b, NONE, NONE, flat), LS_E_SHAPE, "attention_bias is 4");
    node_fails(&n, op, 1, IN(p.x, p.w, p.b, NONE, p.x), LS_E_SHAPE, "past is 2x3x4");
    node_fails(&n, op, 1, IN(p.x, p.w, p.b, NONE, NONE, NONE, INTS(1)), LS_E_UNSUPPORTED,
               "past_sequence_length");
    node_int(&rotary, "do_rotary", 1);
    node_fails(&rotary, op, 1, IN(p.x, p.w, p.b), LS_E_UNSUPPORTED, "do_rotary");
    node_ints(&sizes, "qkv_hidden_sizes", LIST(4, 4, 5));
    node_fails(&sizes, op, 1, IN(p.x, p.w, p.b), LS_E_SHAPE, "do not share");
    node_int(&odd, "num_heads", 3);
    node_fails(&odd, op, 1, IN(p.x, p.w, p.b), LS_E_SHAPE, "does not divide into 3 heads");
}
END_TEST

/* ---- MultiHeadAttention ---- */
START_TEST(multi_head_attention_adds_the_bias_of_each_part)
{
    LsValueId q = param("q", SHAPE(N, T, C)), k = param("k", SHAPE(N, S, C)),
              v = param("v", SHAPE(N, S, C));
    LsValueId b = param("b", SHAPE(3 * C));
    LsValueId part[3] = {q, k, v};
    HEADS(n);
    for (int i = 0; i < 3; i++)
        part[i] = PLAIN("Add", 14, part[i], ls_slice_axis(&cx, g, b, 0, i * C, (i + 1) * C));
    LsValueId want = attended(part[0], part[1], part[2], NONE, false);
    expect_fused(node_one(&n, MS("MultiHeadAttention"), 1, IN(q, k, v, b)), want);
}
END_TEST

START_TEST(multi_head_attention_reads_keys_of_four_axes_and_caches)
{
    LsValueId q = param("q", SHAPE(N, T, C)), k = param("k", SHAPE(N, H, S, 2)),
              v = param("v", SHAPE(N, H, S, 2)), out[3];
    LsValueId own = param("o", SHAPE(N, T, C)), pk = param("pk", SHAPE(N, H, 1, 2)),
              pv = param("pv", SHAPE(N, H, 1, 2));
    HEADS(n);
    expect_fused(node_one(&n, MS("MultiHeadAttention"), 1, IN(q, k, v)),
                 of_four_axes(by_heads(q, T), k, v));
    LsValueId ks = joined(pk, by_heads(own, T)), vs = joined(pv, by_heads(q, T));
    ck_assert(node_build(&n, MS("MultiHeadAttention"), 1, IN(q, own, q, NONE, NONE, NONE, pk, pv),
                         3, out, NULL));
    expect_equal(out[1], ks);
    expect_equal(out[2], vs);
    expect_equal(out[0], of_four_axes(by_heads(q, T), ks, vs));
}
END_TEST

/* x [N,T,H*2], y and z beside each other for each head. */
static LsValueId beside(int n, const LsValueId v[])
{
    LsValueId part[3];
    for (int i = 0; i < n; i++)
        part[i] = reshaped(v[i], SHAPE(N, ls_shape(g, v[i])->dim[1], H, 1, 2));
    Node concat = {0};
    node_int(&concat, "axis", 3);
    return node_one(&concat, "Concat", 13, n, part);
}

START_TEST(multi_head_attention_unpacks_operands_of_five_axes)
{
    LsValueId q = param("q", SHAPE(N, T, C)), k = param("k", SHAPE(N, S, C)),
              v = param("v", SHAPE(N, S, C)), own = param("o", SHAPE(N, T, C));
    LsValueId b = param("b", SHAPE(3 * C));
    HEADS(n);
    LsValueId all = beside(3, (LsValueId[]){q, own, q}), two = beside(2, (LsValueId[]){k, v});
    const char *op = MS("MultiHeadAttention");
    expect_fused(node_one(&n, op, 1, IN(all, NONE, NONE, b)),
                 node_one(&n, op, 1, IN(q, own, q, b)));
    expect_fused(node_one(&n, op, 1, IN(q, two)), node_one(&n, op, 1, IN(q, k, v)));
    node_fails(&n, op, 1, IN(q, two, v), LS_E_UNSUPPORTED, "operand 1 is 2x5x2x2x2");
    node_fails(&n, op, 1, IN(two), LS_E_UNSUPPORTED, "operand 1 is missing");
}
END_TEST

START_TEST(empty_caches_change_nothing)
{
    Projected p = projected(false);
    LsValueId one = reals_of(SHAPE(N, H, 0, 2), (float[]){0}), out[3];
    LsValueId both = reals_of(SHAPE(2, N, H, 0, 2), (float[]){0});
    HEADS(n);
    node_int(&n, "unidirectional", 1);
    LsValueId want = attended(p.q, p.k, p.v, NONE, true);
    expect_equal(node_one(&n, MS("Attention"), 1, IN(p.x, p.w, p.b, NONE, both)), want);
    ck_assert(node_build(&n, MS("MultiHeadAttention"), 1,
                         IN(p.q, p.k, p.v, NONE, NONE, NONE, one, one), 3, out, NULL));
    expect_equal(out[0], want);
    expect_equal(out[1], by_heads(p.k, T));
    Node plain = {0};
    node_int(&plain, "q_num_heads", H);
    node_int(&plain, "kv_num_heads", H);
    node_int(&plain, "is_causal", 1);
    ck_assert(node_build(&plain, "Attention", 23, IN(p.q, p.k, p.v, NONE, one, one), 3, out, NULL));
    expect_equal(out[0], want);
    expect_equal(out[2], by_heads(p.v, T));
    for (uint32_t i = 1; i < g->nnode; i++)
        for (int k = 0; k < g->node[i].nin && g->node[i].op == LS_OP_CONCAT; k++)
            ck_assert(ls_count(ls_in_shape(g, (LsNodeId){i}, k)) > 0);
}
END_TEST

START_TEST(multi_head_attention_refuses_what_does_not_fit)
{
    LsValueId q = param("q", SHAPE(N, T, C)), flat = param("f", SHAPE(C)),
              pk = param("pk", SHAPE(N, H, 1, 2)), out[4];
    HEADS(n);
    const char *op = MS("MultiHeadAttention");
    char *log;
    node_fails(&n, op, 1, IN(flat, q, q), LS_E_UNSUPPORTED, "operand 0 is 4");
    node_fails(&n, op, 1, IN(q, q, q, flat), LS_E_SHAPE, "does not fit q, k and v");
    node_fails(&n, op, 1, IN(q, q, q, NONE, NONE, NONE, pk), LS_E_NAME,
               "only one of past_key and past_value");
    node_fails(&n, op, 1, IN(q, q, q, NONE, NONE, NONE, flat, flat), LS_E_SHAPE, "operand 6 is 4");
    ck_assert(!node_build(&n, op, 1, IN(q, q, q), 4, out, &log));
    ck_assert_msg(strstr(log, "the result qk") != NULL, "%s", log);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("all");
    const int activations = sizeof activation / sizeof *activation;
    tcase_add_checked_fixture(tc, graph_open, graph_close);
    tcase_add_test(tc, gelus_are_those_of_their_sum);
    tcase_add_test(tc, quick_gelu_is_x_times_a_sigmoid);
    tcase_add_test(tc, fused_matmul_turns_and_scales_its_factors);
    tcase_add_test(tc, fused_matmul_moves_batch_axes);
    tcase_add_test(tc, fused_matmul_takes_vectors_as_they_are);
    tcase_add_loop_test(tc, fused_gemm_has_its_activation, 0, activations);
    tcase_add_loop_test(tc, fused_conv_adds_and_activates, 0, activations);
    tcase_add_test(tc, other_activations_are_clip_or_refused);
    tcase_add_test(tc, skip_layer_norm_is_the_norm_of_a_sum);
    tcase_add_test(tc, simplified_norms_divide_by_the_root_of_mean_squares);
    tcase_add_test(tc, embeddings_are_added_and_normed);
    tcase_add_test(tc, embeddings_take_positions_and_may_lack_segments);
    tcase_add_test(tc, embeddings_that_do_not_fit_are_refused);
    tcase_add_test(tc, rotary_embedding_reads_its_operands_in_their_own_order);
    tcase_add_loop_test(tc, attention_projects_and_attends, 0, 3);
    tcase_add_loop_test(tc, masks_of_integers_hide_columns, 0, sizeof masks / sizeof *masks);
    tcase_add_test(tc, hidden_columns_get_the_filter_value_and_a_bias_is_added);
    tcase_add_test(tc, attention_reads_and_gives_its_cache);
    tcase_add_test(tc, attention_refuses_what_does_not_fit);
    tcase_add_test(tc, multi_head_attention_adds_the_bias_of_each_part);
    tcase_add_test(tc, multi_head_attention_reads_keys_of_four_axes_and_caches);
    tcase_add_test(tc, multi_head_attention_unpacks_operands_of_five_axes);
    tcase_add_test(tc, empty_caches_change_nothing);
    tcase_add_test(tc, multi_head_attention_refuses_what_does_not_fit);
    return run_tests("ops_fused_onnx", tc);
}
