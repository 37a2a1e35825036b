/* tests/compiler/test_onnx_roles.c -- which tensors of a file are trained, and which changes of an
 * exporter are undone: by name, use, values, and the exporter's notes. */
#include "compiler/onnx/onnx_decisions.h"
#include "compiler/onnx/onnx_import.h"
#include "compiler/onnx_file/onnx_metadata.h"
#include "tests/support/onnx_small.h"
#include "tests/support/suite.h"

static void one(const char *name, const char *dims, float v, size_t count)
{
    float *data = ls_arena_alloc(mk.cx.arena, count, sizeof *data);
    for (size_t i = 0; i < count; i++)
        data[i] = v;
    MAKE_PUSH(&mk, mk.g->initializer, mk.g->n_initializer,
              make_tensor(&mk, name, MAKE_FLOAT, dims, data, count * sizeof *data));
}

static Onnx__NodeProto *then(const char *op, const char *in, const char *out)
{
    Onnx__NodeProto *p = make_node(&mk, op, in, out);
    make_output(&mk, out);
    return p;
}

static const LsDecision *decided(const LsGraph *g, const char *name)
{
    for (uint32_t k = 0; k < g->source.decisions->ntensor; k++)
        if (strcmp(g->source.decisions->tensor[k].name, name) == 0)
            return &g->source.decisions->tensor[k];
    ck_abort_msg("nothing was decided of %s", name);
}

static bool said(const char *text) { return strstr(make_log(&mk), text) != NULL; }

static void note(const char *name, const char *key, const char *value)
{
    Onnx__ValueInfoProto *v = make_value(&mk, name, MAKE_FLOAT, NULL);
    MAKE_PUSH(&mk, mk.g->value_info, mk.g->n_value_info, v);
    make_meta(&mk, &v->base, 4, key, value);
}

START_TEST(numbers_under_made_up_names_are_literals)
{
    one("val_2", "", 1.41f, 1);
    one("onnx::Mul_7", "1", 0.5f, 1);
    one("model/mul/y:0", "", 3, 1);
    one("temperature", "", 2, 1);
    then("Div", "y val_2", "a");
    then("Mul", "a onnx::Mul_7", "b");
    then("Mul", "b model/mul/y:0", "c");
    then("Mul", "c temperature", "d");
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "val_2"), LS_V_CONST);
    ck_assert_int_eq(kind(g, "onnx::Mul_7"), LS_V_CONST);
    ck_assert_int_eq(kind(g, "model/mul/y:0"), LS_V_CONST);
    ck_assert_int_eq(kind(g, "temperature"), LS_V_PARAM);
    ck_assert_int_eq(decided(g, "val_2")->role, LS_ROLE_CONSTANT);
    ck_assert_int_eq(decided(g, "w")->role, LS_ROLE_TRAINED);
}
END_TEST

START_TEST(an_exponent_with_a_name_is_trained_and_a_bound_only_when_told)
{
    one("pool.p", "1", 3, 1);
    one("lo", "", 0.1f, 1);
    then("Clip", "y lo", "a");
    then("Pow", "a pool.p", "b");
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "pool.p"), LS_V_PARAM);
    ck_assert_int_eq(kind(g, "lo"), LS_V_CONST);
    ck_assert(said("'lo' (constant)"));
    mk.o.train = (const char *[]){"l*"};
    mk.o.ntrain = 1;
    ck_assert_int_eq(kind(import_well(), "lo"), LS_V_PARAM);
}
END_TEST

START_TEST(constants_of_a_norm_stay_though_the_only_parameters_are_factors)
{
    const float ones[4] = {1, 1, 1, 1};
    mk.g->n_initializer = mk.g->n_node = mk.g->n_output = 0;
    mk.g->input[0] = make_value(&mk, "x", MAKE_FLOAT, "2x4x3");
    Onnx__NodeProto *c = make_node(&mk, "Constant", "", "one");
    make_tensor_attr(&mk, c, "value", make_tensor(&mk, "", MAKE_FLOAT, "4", ones, sizeof ones));
    make_weight(&mk, "d.weight", "4x1", 4);
    make_node(&mk, "InstanceNormalization", "x one one", "n");
    then("Mul", "n d.weight", "z");
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "one"), LS_V_CONST);
    ck_assert_int_eq(kind(g, "d.weight"), LS_V_PARAM);
}
END_TEST

START_TEST(globs_reach_what_was_folded_from_a_parameter)
{
    make_weight(&mk, "val_5", "4x3", 12);
    note("w", LS_META_KIND, "PARAMETER");
    note("val_5", LS_META_FOLDED, "['head.weight', 'val_1']");
    then("MatMul", "y val_5", "a");
    mk.o.freeze = (const char *[]){"head.*"};
    mk.o.nfreeze = 1;
    ck_assert_int_eq(kind(import_well(), "val_5"), LS_V_STATE);
    ck_assert(!said("matches no parameter"));
}
END_TEST

START_TEST(train_wins_over_freeze_and_says_what_it_does_not_find)
{
    mk.o.freeze = (const char *[]){"*"};
    mk.o.nfreeze = 1;
    ck_assert_int_eq(kind(import_well(), "w"), LS_V_STATE);
    mk.o.train = (const char *[]){"w", "head.*"};
    mk.o.ntrain = 1;
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "w"), LS_V_PARAM);
    ck_assert_str_eq(decided(g, "w")->why, "--train");
    mk.o.ntrain = 2;
    refuse(LS_E_OPTION, LS_EXIT_USAGE, "--train head.* matches no parameter");
}
END_TEST

START_TEST(a_pattern_of_frozen_tensors_without_a_match_is_an_error)
{
    mk.o.freeze = (const char *[]){"head.*"};
    mk.o.nfreeze = 1;
    refuse(LS_E_OPTION, LS_EXIT_USAGE, "--freeze head.* matches no parameter");
}
END_TEST

START_TEST(train_only_freezes_all_others)
{
    one("v", "4", 0.5f, 4);
    one("val_2", "", 1.41f, 1);
    then("Mul", "y v", "a");
    then("Mul", "a val_2", "b");
    mk.o.only = (const char *[]){"v"};
    mk.o.nonly = 1;
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "v"), LS_V_PARAM);
    ck_assert_int_eq(kind(g, "w"), LS_V_STATE);
    ck_assert_int_eq(kind(g, "val_2"), LS_V_CONST);
    ck_assert_str_eq(decided(g, "w")->why, "not named by --train-only");
    mk.o.freeze = (const char *[]){"w"};        /* says the same again */
    mk.o.nfreeze = 1;
    import_well();
    mk.o.freeze = (const char *[]){"*"};
    refuse(LS_E_OPTION, LS_EXIT_USAGE, "'v' is named by --train-only v and by --freeze *");
}
END_TEST

START_TEST(train_only_must_match_what_can_be_trained)
{
    mk.o.only = (const char *[]){"W"};
    mk.o.nonly = 1;
    refuse(LS_E_OPTION, LS_EXIT_USAGE, "--train-only W matches no parameter that can be trained");
}
END_TEST

START_TEST(masks_and_what_is_only_compared_stay)
{
    const float mask[4] = {0, 1, 1, 0};
    MAKE_PUSH(&mk, mk.g->initializer, mk.g->n_initializer,
              make_tensor(&mk, "mask", MAKE_FLOAT, "4", mask, sizeof mask));
    make_weight(&mk, "threshold", "4", 4);
    one("scale", "4", 1, 4);
    then("Mul", "y mask", "a");
    then("Mul", "a scale", "b");
    then("Greater", "y threshold", "c");
    mk.g->output[mk.g->n_output - 1]->type->tensor_type->elem_type =
        ONNX__TENSOR_PROTO__DATA_TYPE__BOOL;
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "mask"), LS_V_CONST);
    ck_assert_int_eq(kind(g, "threshold"), LS_V_CONST);
    ck_assert_int_eq(kind(g, "scale"), LS_V_PARAM);     /* a scale starts with ones */
}
END_TEST

static void two_norms(void)
{
    one("n1.weight", "4", 1, 4);
    one("n1.bias", "4", 0, 4);
    mk.m->opset_import[0]->version = 17;
    then("LayerNormalization", "y n1.weight n1.bias", "a");
    then("LayerNormalization", "a n1.weight n1.bias", "b");
}

START_TEST(norms_that_share_ones_and_zeros_have_parameters_of_their_own)
{
    two_norms();
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "n1.weight.2"), LS_V_PARAM);
    ck_assert_int_eq(kind(g, "n1.bias.2"), LS_V_PARAM);
    ck_assert(said("2 parameters had been merged") && said("--tie trains them as one"));
}
END_TEST

START_TEST(norms_stay_tied_when_asked_or_when_their_values_are_no_coincidence)
{
    two_norms();
    mk.o.tie_identity = true;
    ck_assert_uint_eq(named(import_well(), "n1.weight.2").i, 0);
    mk.o.tie_identity = false;
    mk.cx.parsed = NULL;
    for (int k = 1; k < 3; k++)
        for (int i = 0; i < 4; i++)
            ((float *)mk.g->initializer[k]->raw_data.data)[i] = 0.3f * (float)i;
    ck_assert_uint_eq(named(import_well(), "n1.weight.2").i, 0);
}
END_TEST

START_TEST(who_wrote_the_file_tells_whether_equal_norms_were_merged)
{
    two_norms();
    mk.m->producer_name = ls_arena_strdup(mk.cx.arena, "pytorch");
    ck_assert_uint_eq(named(import_well(), "n1.weight.2").i, 0);
    mk.g->node[0]->name = ls_arena_strdup(mk.cx.arena, "node_linear");
    mk.cx.parsed = NULL;
    ck_assert_int_eq(kind(import_well(), "n1.weight.2"), LS_V_PARAM);
}
END_TEST

START_TEST(a_statistic_that_was_merged_with_a_weight_is_one_of_its_own)
{
    one("bn.weight", "4", 1, 4);
    one("bn.bias", "4", 0, 4);
    then("BatchNormalization", "y bn.weight bn.bias bn.bias bn.weight", "a");
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "bn.weight"), LS_V_PARAM);
    ck_assert_int_eq(kind(g, "bn.bias"), LS_V_PARAM);
    ck_assert_int_eq(kind(g, "bn.running_mean"), LS_V_STATE);
    ck_assert_int_eq(kind(g, "bn.running_var"), LS_V_STATE);
    ck_assert(g->value[named(g, "bn.running_var").i].statistic);
    ck_assert(said("2 running statistics had been merged") && said("inference form"));
}
END_TEST

/* Statistics of two batch norms begin with equal numbers, and are two all the same. */
START_TEST(statistics_of_two_batch_norms_are_two)
{
    static const char *const name[] = {"a.weight", "a.bias", "c.weight", "c.bias", "mean", "var"};
    for (int k = 0; k < 6; k++)
        one(name[k], "4", 0.5f + (float)k / 8, 4);
    then("BatchNormalization", "y a.weight a.bias mean var", "a");
    then("BatchNormalization", "a c.weight c.bias mean var", "c");
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "mean"), LS_V_STATE);
    ck_assert_int_eq(kind(g, "var"), LS_V_STATE);
    ck_assert_int_eq(kind(g, "c.running_mean"), LS_V_STATE);
    ck_assert_int_eq(kind(g, "c.running_var"), LS_V_STATE);
    ck_assert(said("2 running statistics had been merged"));
}
END_TEST

/* ---- notes of torch.export ---- */

static void called(Onnx__NodeProto *p, const char *call)
{
    make_meta(&mk, &p->base, 9, LS_META_CALL, call);
}

START_TEST(notes_tell_parameters_from_buffers_and_constants)
{
    make_weight(&mk, "table", "4", 4);
    make_weight(&mk, "first.gain", "4", 4);
    make_weight(&mk, "val_9", "4", 4);
    note("w", LS_META_KIND, "PARAMETER");
    note("table", LS_META_KIND, "BUFFER");
    note("first.gain", LS_META_KIND, "CONSTANT_TENSOR");
    note("val_9", LS_META_FOLDED, "['val_1', 'val_2']");
    then("Add", "y table", "a");
    then("Mul", "a first.gain", "b");
    then("Mul", "b val_9", "c");
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "w"), LS_V_PARAM);
    ck_assert_int_eq(kind(g, "table"), LS_V_CONST);
    ck_assert_int_eq(kind(g, "first.gain"), LS_V_CONST);
    ck_assert_int_eq(kind(g, "val_9"), LS_V_CONST);
}
END_TEST

START_TEST(calls_tell_which_parameter_was_merged_away)
{
    one("a.weight", "4", 1, 4);
    note("a.weight", LS_META_KIND, "PARAMETER");
    mk.m->opset_import[0]->version = 17;
    called(then("LayerNormalization", "y a.weight", "r"),
           "%r : [] = call_function[t](args = (%y, [4], %p_a_weight, None, 1e-05), kwargs = {})");
    Onnx__NodeProto *b = then("LayerNormalization", "r a.weight", "s");
    called(b,
           "%s : [] = call_function[t](args = (%r, [4], %p_l_b_weight, None, 1e-05), kwargs = {})");
    make_meta(&mk, &b->base, 9, LS_META_SCOPES, "['', 'l.b', 'layer_norm_1']");
    called(then("LayerNormalization", "s a.weight", "u"),
           "%u : [] = call_function[t](args = (%s, [4], None, None, 1e-05), kwargs = {})");
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "l.b.weight"), LS_V_PARAM);
    ck_assert_int_eq(kind(g, "u.weight"), LS_V_CONST);
    ck_assert(said("'l.b.weight' with 'a.weight'") && said("1 norm without parameters"));
}
END_TEST

START_TEST(a_transposed_copy_of_a_parameter_is_computed_from_it)
{
    float turned[12];
    for (int i = 0; i < 12; i++)
        turned[i] = 0.5f * (float)(i % 3 * 4 + i / 3 + 1);
    MAKE_PUSH(&mk, mk.g->initializer, mk.g->n_initializer,
              make_tensor(&mk, "val_5", MAKE_FLOAT, "4x3", turned, sizeof turned));
    note("w", LS_META_KIND, "PARAMETER");
    note("val_5", LS_META_FOLDED, "['w']");
    then("MatMul", "y val_5", "z");
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "val_5"), LS_V_TEMP);
    ck_assert(said("'val_5' of 'w'"));
}
END_TEST

START_TEST(what_folding_left_of_parameters_is_trained_and_said)
{
    make_weight(&mk, "val_5", "4x3", 12);
    make_weight(&mk, "val_6", "3", 3);
    note("w", LS_META_KIND, "PARAMETER");
    note("val_5", LS_META_FOLDED, "['head.weight', 'val_1']");
    note("val_6", LS_META_FOLDED, "['head.weight_g', 'head.weight_v']");
    then("MatMul", "y val_5", "a");
    then("Mul", "a val_6", "b");
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "val_5"), LS_V_PARAM);
    ck_assert_int_eq(kind(g, "val_6"), LS_V_PARAM);
    ck_assert(said("parameters that it does not replace ('val_6'") && said("optimize=False"));
}
END_TEST

START_TEST(parameters_that_an_optimiser_removed_are_named)
{
    note("w", LS_META_KIND, "PARAMETER");
    make_meta(&mk, &mk.g->node[0]->base, 9, LS_META_RULE, "RemoveOptionalBiasFromGemm");
    make_meta(&mk, &mk.g->base, 16, LS_META_SIGNATURE,
              "p_w: PARAMETER target='w'\np_fc_bias: PARAMETER target='fc.bias'\n");
    import_well();
    ck_assert(said("1 parameter of the module is not in the file any more ('fc.bias')"));
}
END_TEST

START_TEST(a_batch_norm_folded_into_a_convolution_is_told)
{
    make_meta(&mk, &mk.g->node[0]->base, 9, LS_META_RULE, "FuseBatchNormIntoConv");
    import_well();
    ck_assert(said("folded 1 batch norm into convolutions") && said("dynamo=True, optimize=False"));
}
END_TEST

START_TEST(batch_norms_that_tensorflow_folded_are_told)
{
    one("net/bn_1/batchnorm/sub:0", "4", 0.5f, 4);
    then("Add", "y net/bn_1/batchnorm/sub:0", "a");
    one("net/conv/convolution/merged_input:0", "4x4", 0.5f, 16);
    then("MatMul", "a net/conv/convolution/merged_input:0", "b");
    import_well();
    ck_assert(said("it computed 'net/bn_1/batchnorm/sub:0', 'net/conv/convolution/merged_input:0'. "
                   "The network"));
}
END_TEST

/* Written out, the norm is there. */
START_TEST(variables_of_tensorflows_batch_norms_are_none_of_these)
{
    one("net/bn_1/batchnorm/ReadVariableOp:0", "4", 0.5f, 4);
    one("net/conv/merged_input:0", "4", 0.5f, 4);
    then("Add", "y net/bn_1/batchnorm/ReadVariableOp:0", "a");
    then("Mul", "a net/conv/merged_input:0", "b");
    import_well();
    ck_assert(!said("folded batch norms into"));
}
END_TEST

START_TEST(an_option_of_batch_norms_without_one_is_refused)
{
    mk.o.bn = LS_BN_TRAIN;
    refuse(LS_E_OPTION, LS_EXIT_USAGE,
           "--bn=train has nothing to act on: the model has no batch norm");
}
END_TEST

START_TEST(a_batch_norm_traced_in_training_mode_trains_whatever_its_form)
{
    static const char *const call[] = {"True", "False"};
    for (int k = 0; k < 2; k++) {
        if (k > 0)
            setup();
        make_weight(&mk, "g", "4", 4);
        make_weight(&mk, "b", "4", 4);
        one("m", "4", 0, 4);
        one("v", "4", 1, 4);
        called(then("BatchNormalization", "y g b m v", "a"),
               ls_arena_printf(mk.cx.arena,
                               "%%a : [] = call_function[aten.batch_norm](args = (%%y, "
                               "%%p_g, %%p_b, %%b_m, %%b_v, %s, 0.1, 1e-05, True), kwargs = {})",
                               call[k]));
        LsGraph *g = import_well();
        ck_assert_int_eq(g->value[named(g, "m").i].once_written, k == 0);
        ck_assert_int_eq(g->source.decisions->bn[0].by, k == 0 ? LS_BN_BY_TRACE : LS_BN_BY_RUNNING);
        if (k == 0)
            teardown();
    }
}
END_TEST

START_TEST(options_of_batch_norms_reach_the_graph)
{
    Onnx__NodeProto *p;
    make_weight(&mk, "g", "4", 4);
    make_weight(&mk, "b", "4", 4);
    one("m", "4", 0, 4);
    one("v", "4", 1, 4);
    mk.m->opset_import[0]->version = 15;
    p = then("BatchNormalization", "y g b m v", "a");
    ck_assert(!import_well()->value[named(import_well(), "m").i].once_written);
    mk.o.bn = LS_BN_TRAIN;
    LsGraph *g = import_well();
    ck_assert(g->value[named(g, "m").i].once_written);
    make_int(&mk, p, "training_mode", 1);
    mk.cx.parsed = NULL;
    mk.o.bn = LS_BN_FROZEN;
    mk.o.bn_var_torch = true;
    g = import_well();
    ck_assert(!g->value[named(g, "m").i].once_written);
    ck_assert(g->source.bn_var_torch);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("roles");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    const TTest *const test[] = {
        numbers_under_made_up_names_are_literals,
        an_exponent_with_a_name_is_trained_and_a_bound_only_when_told,
        constants_of_a_norm_stay_though_the_only_parameters_are_factors,
        globs_reach_what_was_folded_from_a_parameter,
        train_wins_over_freeze_and_says_what_it_does_not_find,
        a_pattern_of_frozen_tensors_without_a_match_is_an_error,
        train_only_freezes_all_others,
        train_only_must_match_what_can_be_trained,
        masks_and_what_is_only_compared_stay,
        norms_that_share_ones_and_zeros_have_parameters_of_their_own,
        norms_stay_tied_when_asked_or_when_their_values_are_no_coincidence,
        who_wrote_the_file_tells_whether_equal_norms_were_merged,
        a_statistic_that_was_merged_with_a_weight_is_one_of_its_own,
        statistics_of_two_batch_norms_are_two,
        notes_tell_parameters_from_buffers_and_constants,
        calls_tell_which_parameter_was_merged_away,
        a_transposed_copy_of_a_parameter_is_computed_from_it,
        what_folding_left_of_parameters_is_trained_and_said,
        parameters_that_an_optimiser_removed_are_named,
        a_batch_norm_folded_into_a_convolution_is_told,
        a_batch_norm_traced_in_training_mode_trains_whatever_its_form,
        options_of_batch_norms_reach_the_graph,
        batch_norms_that_tensorflow_folded_are_told,
        variables_of_tensorflows_batch_norms_are_none_of_these,
        an_option_of_batch_norms_without_one_is_refused,
    };
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("roles", tc);
}
