/* tests/compiler/test_onnx_rewritten.c -- files that optimizers rewrote: merged parameters, folded
 * copies, and what is said of the rest. */
#include "compiler/onnx_file/onnx_metadata.h"
#include "compiler/onnx_repair/module_scope.h"
#include "tests/support/onnx_small.h"
#include "tests/support/suite.h"

static float *numbers(size_t count, float first, float step)
{
    float *v = ls_arena_alloc(mk.cx.arena, count, sizeof *v);
    for (size_t i = 0; i < count; i++)
        v[i] = first + step * (float)i;
    return v;
}

static void initializer(const char *name, const char *dims, const float *v, size_t count)
{
    MAKE_PUSH(&mk, mk.g->initializer, mk.g->n_initializer,
              make_tensor(&mk, name, MAKE_FLOAT, dims, v, count * sizeof *v));
}

/* A node whose name tells its module. */
static Onnx__NodeProto *node(const char *module, const char *op, const char *in, const char *out)
{
    Onnx__NodeProto *p = make_node(&mk, op, in, out);
    p->name = ls_arena_printf(mk.cx.arena, "/%s/%s", module, op);
    make_output(&mk, out);
    return p;
}

static void by_pytorch(void)
{
    mk.m->producer_name = ls_arena_strdup(mk.cx.arena, "pytorch");
    mk.m->opset_import[0]->version = 17;
}

static void note(const char *name, const char *key, const char *value)
{
    Onnx__ValueInfoProto *v = make_value(&mk, name, MAKE_FLOAT, NULL);
    MAKE_PUSH(&mk, mk.g->value_info, mk.g->n_value_info, v);
    make_meta(&mk, &v->base, 4, key, value);
}

static bool said(const char *text) { return strstr(make_log(&mk), text) != NULL; }

START_TEST(a_parameter_belongs_to_its_module_or_one_inside_or_around_it)
{
    LsArena *a = mk.cx.arena;
    ck_assert_str_eq(ls_scope_module(a, "/blocks.0/norm/LayerNormalization"), "blocks.0.norm");
    ck_assert_ptr_null(ls_scope_module(a, "/MatMul"));
    ck_assert_ptr_null(ls_scope_module(a, "SkipLayerNorm_3"));
    ck_assert(ls_scope_owns("n1", "n1.weight") && ls_scope_owns("n1_1", "n1.weight"));
    ck_assert(ls_scope_owns("attn", "attn.proj.weight") && ls_scope_owns("attn.proj", "attn.bias"));
    ck_assert(!ls_scope_owns("n2", "n1.weight") && !ls_scope_owns("n10", "n1.weight"));
}
END_TEST

START_TEST(names_of_nodes_tell_which_parameters_were_merged)
{
    by_pytorch();
    initializer("n1.weight", "4", numbers(4, 1, 0), 4);
    initializer("n1.bias", "4", numbers(4, 0, 0), 4);
    node("n1", "LayerNormalization", "y n1.weight n1.bias", "a");
    node("n2", "LayerNormalization", "a n1.weight n1.bias", "b");
    node("n1_1", "LayerNormalization", "b n1.weight n1.bias", "c");     /* the module again */
    node("n3/scale", "Mul", "c n1.weight", "d");
    initializer("/m.0/Sqrt_output_0", "", numbers(1, 2, 0), 1); /* a factor that two layers share */
    node("m.0", "Mul", "d /m.0/Sqrt_output_0", "e");
    node("m.1", "Mul", "e /m.0/Sqrt_output_0", "f");
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "n2.weight"), LS_V_PARAM);
    ck_assert_int_eq(kind(g, "n2.bias"), LS_V_PARAM);
    ck_assert_int_eq(kind(g, "n3.scale.weight"), LS_V_PARAM);
    ck_assert_uint_eq(named(g, "n1_1.weight").i, 0);
    ck_assert_int_eq(kind(g, "/m.0/Sqrt_output_0"), LS_V_CONST);
    ck_assert(said("3 parameters had been merged") && said("'n2.weight' with 'n1.weight'"));
}
END_TEST

START_TEST(different_numbers_or_a_request_keep_parameters_tied)
{
    for (int k = 0; k < 2; k++) {
        if (k > 0)
            setup();
        by_pytorch();
        initializer("n1.weight", "4", numbers(4, 1, k == 0 ? 0.5f : 0), 4);
        node("n1", "LayerNormalization", "y n1.weight", "a");
        node("n2", "LayerNormalization", "a n1.weight", "b");
        mk.o.tie_identity = k == 1;
        ck_assert_uint_eq(named(import_well(), "n2.weight").i, 0);
        if (k == 0)
            teardown();
    }
}
END_TEST

/* A table of 9 rows, and its transposition as the head's factor; the tokens are an input. */
static LsGraph *with_head(bool looked_up)
{
    const float *v = numbers(36, 0.1f, 0.3f);
    float *turned = numbers(36, 0, 0);
    for (int i = 0; i < 36; i++)
        turned[i % 4 * 9 + i / 4] = v[i];
    initializer("tok.weight", "9x4", v, 36);
    initializer("/head/Transpose_output_0", "4x9", turned, 36);
    MAKE_PUSH(&mk, mk.g->input, mk.g->n_input,
              make_value(&mk, "t", looked_up ? MAKE_I64 : MAKE_FLOAT, looked_up ? "2" : "2x9"));
    node("tok", looked_up ? "Gather" : "MatMul", looked_up ? "tok.weight t" : "t tok.weight", "e");
    node("head", "MatMul", "e /head/Transpose_output_0", "z");
    return import_well();
}

START_TEST(the_head_of_a_tied_table_is_computed_from_it)
{
    LsGraph *g = with_head(true);
    ck_assert_int_eq(kind(g, "tok.weight"), LS_V_PARAM);
    ck_assert_int_eq(kind(g, "/head/Transpose_output_0"), LS_V_TEMP);
    ck_assert(said("'/head/Transpose_output_0' of 'tok.weight'"));
    teardown();
    setup();                    /* layers may be copies of each other that start alike */
    ck_assert_int_eq(kind(with_head(false), "/head/Transpose_output_0"), LS_V_PARAM);
}
END_TEST

static void repeat(const char *name, const char *dims, const float *v, size_t times, size_t count)
{
    float *all = numbers(times * count, 0, 0);
    for (size_t i = 0; i < times * count; i++)
        all[i] = v[i % count];
    initializer(name, dims, all, times * count);
    note(name, LS_META_FOLDED, ls_arena_printf(mk.cx.arena, "['%s.token', 'val_6']", name));
    make_node(&mk, "Add", ls_arena_printf(mk.cx.arena, "y %s", name),
              ls_arena_printf(mk.cx.arena, "of_%s", name));
    make_output(&mk, ls_arena_printf(mk.cx.arena, "of_%s", name));
}

START_TEST(a_parameter_that_is_repeated_along_the_batch_is_one)
{
    const float token[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    note("w", LS_META_KIND, "PARAMETER");
    make_meta(&mk, &mk.g->base, 16, LS_META_SIGNATURE,
              "p_w: PARAMETER target='w'\np_a: PARAMETER target='expand.token'\n"
              "p_b: PARAMETER target='embedding_1.token'\np_c: PARAMETER target='view.token'\n");
    repeat("expand", "2x4", numbers(4, 0, 0), 2, 4);                    /* zeros: by its name */
    repeat("embedding_1", "3x2x4", token, 6, 4);
    repeat("view", "2x4", numbers(4, 2, 0), 2, 4); /* may be a matrix of equal numbers */
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "expand.token"), LS_V_PARAM);
    ck_assert_int_eq(kind(g, "embedding_1.token"), LS_V_PARAM);
    ck_assert_int_eq(ls_count(ls_shape(g, named(g, "embedding_1.token"))), 4);
    ck_assert_int_eq(kind(g, "view"), LS_V_PARAM);
    ck_assert(said("2 parameters are in the file only as repeated")
              && said("'expand.token' as 'expand'"));
}
END_TEST

START_TEST(constants_under_the_names_of_results_may_be_parameters)
{
    by_pytorch();
    Onnx__NodeProto *c = make_node(&mk, "Constant", "", "/pos/Gather_output_0");
    make_tensor_attr(&mk, c, "value",
                     make_tensor(&mk, "", MAKE_FLOAT, "2x4", numbers(8, 0.5f, 0.25f), 32));
    node("pos", "Add", "y /pos/Gather_output_0", "a");
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "/pos/Gather_output_0"), LS_V_PARAM);
    ck_assert(said("rewritten by an optimizer, which computed '/pos/Gather_output_0'"));
    ck_assert(said("does not tell whether 1 tensor is to be trained: '/pos/Gather_output_0'"));
}
END_TEST

/* Two parts, of which the second differs in its last number. */
START_TEST(a_parameter_that_does_not_repeat_stays_whole)
{
    float *v = numbers(16, 1, 1);
    for (int i = 8; i < 15; i++)
        v[i] = v[i - 8];
    note("w", LS_META_KIND, "PARAMETER");
    make_meta(&mk, &mk.g->base, 16, LS_META_SIGNATURE,
              "p_w: PARAMETER target='w'\np_a: PARAMETER target='expand.token'\n");
    repeat("expand", "2x2x4", v, 1, 16);
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "expand"), LS_V_PARAM);
    ck_assert_uint_eq(named(g, "expand.token").i, 0);
}
END_TEST

/* Keras's Dense layers are products and sums; their biases start as zeros. */
START_TEST(biases_of_products_with_weights_of_their_own_are_separated)
{
    initializer("k1", "4x4", numbers(16, 0.1f, 0.2f), 16);
    initializer("k2", "4x4", numbers(16, 0.3f, 0.1f), 16);
    initializer("bias", "4", numbers(4, 0, 0), 4);
    make_node(&mk, "MatMul", "y k1", "p1");
    make_node(&mk, "Add", "p1 bias", "a");
    make_node(&mk, "MatMul", "a k2", "p2");
    make_node(&mk, "Add", "bias p2", "b");
    make_node(&mk, "MatMul", "b k1", "p3");             /* the first layer again */
    make_node(&mk, "Add", "p3 bias", "c");
    make_output(&mk, "c");
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "bias.2"), LS_V_PARAM);
    ck_assert_uint_eq(named(g, "bias.3").i, 0);
}
END_TEST

static void lstm(const float *bias, const char *producer)
{
    mk.m->producer_name = ls_arena_strdup(mk.cx.arena, producer);
    mk.m->opset_import[0]->version = 14;
    initializer("W", "1x8x4", numbers(32, 0.1f, 0.1f), 32);
    initializer("R", "1x8x2", numbers(16, 0.2f, 0.1f), 16);
    initializer("B", "1x16", bias, 16);
    int64_t shape[3] = {2, 1, 4};
    MAKE_PUSH(&mk, mk.g->initializer, mk.g->n_initializer,
              make_tensor(&mk, "shape", MAKE_I64, "3", shape, sizeof shape));
    make_node(&mk, "Reshape", "y shape", "s");
    make_int(&mk, make_node(&mk, "LSTM", "s W R B", "r"), "hidden_size", 2);
    make_output(&mk, "r");
}

START_TEST(the_zeros_behind_the_only_bias_of_keras_stay_zeros)
{
    static const char *const producer[] = {"tf2onnx", "pytorch", "tf2onnx", "tf2onnx", "tf2onnx"};
    const int CASES = 5;        /* the last two: the first or the last of the zeros is none */
    for (int k = 0; k < CASES; k++) {
        if (k > 0)
            setup();
        float *bias = numbers(16, 1, 1);
        for (int i = 8; i < 16; i++)
            bias[i] = k == 2 || (k == 3 && i == 8) || (k == 4 && i == 15) ? 1 : 0;
        lstm(bias, producer[k]);
        LsGraph *g = import_well();
        const bool halved = k == 0;
        ck_assert_int_eq(kind(g, halved ? "B.input" : "B"), LS_V_PARAM);
        ck_assert_int_eq(ls_count(ls_shape(g, named(g, halved ? "B.input" : "B"))),
                         halved ? 8 : 16);
        ck_assert(said("Keras's only bias ('B')") == halved);
        if (halved)
            ck_assert_int_eq(kind(g, "B.zeros"), LS_V_CONST);
        if (k + 1 < CASES)
            teardown();
    }
}
END_TEST

START_TEST(every_tensor_is_named_on_request)
{
    for (int k = 0; k < 2; k++) {
        if (k > 0)
            setup();
        note("w", LS_META_KIND, "PARAMETER");
        make_meta(&mk, &mk.g->node[0]->base, 9, LS_META_RULE, "RemoveOptionalBiasFromGemm");
        make_meta(
            &mk, &mk.g->base, 16, LS_META_SIGNATURE,
            "p_w: PARAMETER target='w'\np_1: PARAMETER target='b1'\n"
            "p_2: PARAMETER target='b2'\np_3: PARAMETER target='b3'\np_4: PARAMETER target='b4'\n"
            "p_5: PARAMETER target='b5'\n");
        mk.o.verbose = k == 1;
        import_well();
        ck_assert(said(k == 0 ? "('b1', 'b2', 'b3' and 2 more, which -v lists)"
                              : "('b1', 'b2', 'b3', 'b4', 'b5')"));
        if (k == 0)
            teardown();
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("rewritten");
    tcase_add_checked_fixture(tc, setup, teardown);
    const TTest *const test[] = {
        a_parameter_belongs_to_its_module_or_one_inside_or_around_it,
        names_of_nodes_tell_which_parameters_were_merged,
        different_numbers_or_a_request_keep_parameters_tied,
        the_head_of_a_tied_table_is_computed_from_it,
        a_parameter_that_is_repeated_along_the_batch_is_one,
        a_parameter_that_does_not_repeat_stays_whole,
        constants_under_the_names_of_results_may_be_parameters,
        biases_of_products_with_weights_of_their_own_are_separated,
        the_zeros_behind_the_only_bias_of_keras_stay_zeros,
        every_tensor_is_named_on_request,
    };
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("rewritten", tc);
}
