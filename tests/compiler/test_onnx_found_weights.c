/* tests/compiler/test_onnx_found_weights.c -- initializers and constants of a file: their data in
 * every form, and which of them are trained. */
#include "tests/support/onnx_small.h"
#include "tests/support/suite.h"

#include <math.h>

START_TEST(initial_values_are_those_of_the_file)
{
    LsGraph *g = import_well();
    for (int64_t i = 0; i < 12; i++)
        ck_assert_double_eq(ls_const_at(g, named(g, "w"), i), 0.5 * (double)(i + 1));
}
END_TEST

/* The input has the weight's type: floats of two types do not meet in a product. */
static void input_like(const Onnx__TensorProto *t)
{
    mk.g->input[0]->type->tensor_type->elem_type = t->data_type;
}

START_TEST(doubles_become_floats_and_are_mentioned)
{
    Onnx__TensorProto *t = mk.g->initializer[0];
    make_typed(t, MAKE_DOUBLE);
    input_like(t);
    for (int i = 0; i < 12; i++)
        MAKE_PUSH(&mk, t->double_data, t->n_double_data, 0.25 * i);
    LsGraph *g = import_well();
    ck_assert_double_eq(ls_const_at(g, named(g, "w"), 11), 2.75);
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "'w' is double"));
}
END_TEST

START_TEST(half_floats_are_converted)
{
    static const struct { uint16_t half; double value;
    } pair[] = {
        {0x3c00, 1},        {0xc000, -2},         {0x0001, 0x1p-24},  {0x0400, 0x1p-14},
        {0x7bff, 65504},    {0x3555, 0x1.554p-2}, {0x8000, 0},        {0x03ff, 0x1.ff8p-15},
        {0x7c00, INFINITY}, {0xfc00, -INFINITY},  {0x4248, 3.140625}, {0x2e66, 0x1.998p-4},
    };
    Onnx__TensorProto *t = mk.g->initializer[0];
    make_typed(t, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16);
    input_like(t);
    for (int i = 0; i < 12; i++)
        MAKE_PUSH(&mk, t->int32_data, t->n_int32_data, pair[i].half);
    LsGraph *g = import_well();
    for (int i = 0; i < 12; i++)
        ck_assert_double_eq(ls_const_at(g, named(g, "w"), i), pair[i].value);
}
END_TEST

START_TEST(bfloats_are_converted_from_raw_data)
{
    uint16_t raw[12];
    for (int i = 0; i < 12; i++) {
        float f = (float)(i - 6);
        uint32_t bits;
        memcpy(&bits, &f, 4);
        raw[i] = (uint16_t)(bits >> 16);
    }
    mk.g->initializer[0] =
        make_tensor(&mk, "w", ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16, "3x4", raw, sizeof raw);
    input_like(mk.g->initializer[0]);
    LsGraph *g = import_well();
    ck_assert_double_eq(ls_const_at(g, named(g, "w"), 2), -4);
}
END_TEST

START_TEST(external_data_is_read_at_its_offset)
{
    float data[14];
    for (int i = 0; i < 14; i++)
        data[i] = (float)(100 + i);
    make_file(&mk, "weights.bin", data, sizeof data);
    make_external(&mk, mk.g->initializer[0], "weights.bin", "8");
    LsGraph *g = import_well();
    ck_assert_double_eq(ls_const_at(g, named(g, "w"), 0), 102);
    ck_assert_double_eq(ls_const_at(g, named(g, "w"), 11), 113);
}
END_TEST

START_TEST(a_plan_does_without_the_weights_file)
{
    make_external(&mk, mk.g->initializer[0], "not-shipped.bin", "0");
    mk.o.weightless = true;
    LsGraph *g = import_well();
    ck_assert(g->source.weightless);
    ck_assert_ptr_null(g->value[named(g, "w").i].data);
    ck_assert_int_eq(kind(g, "w"), LS_V_PARAM);
}
END_TEST

START_TEST(a_plan_takes_weights_that_are_graph_inputs_for_parameters)
{
    make_input(&mk, "gamma", "4");
    make_input(&mk, "beta", "4");
    make_node(&mk, "LayerNormalization", "y gamma beta", "z");
    make_output(&mk, "z");
    mk.m->opset_import[0]->version = 17;
    mk.o.weightless = true;
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "gamma"), LS_V_PARAM);
    ck_assert_uint_eq(g->ninput, 1);
}
END_TEST

START_TEST(a_model_whose_weights_are_inputs_is_explained)
{
    mk.g->n_initializer = 0;
    mk.g->input[0] = make_value(&mk, "x", MAKE_FLOAT, "1x2x4x4");
    make_input(&mk, "k", "3x2x1x1");
    mk.g->n_node = 0;
    make_node(&mk, "Conv", "x k", "y");
    ck_assert_uint_eq(import_well()->ninput, 2);
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "its weights are graph inputs"));
}
END_TEST

START_TEST(initializers_listed_as_inputs_are_not_inputs)
{
    make_input(&mk, "w", "3x4");
    LsGraph *g = import_well();
    ck_assert_uint_eq(g->ninput, 1);
    ck_assert_int_eq(kind(g, "w"), LS_V_PARAM);
}
END_TEST

START_TEST(frozen_parameters_are_state)
{
    make_weight(&mk, "head.bias", "4", 4);
    make_node(&mk, "Add", "y head.bias", "z");
    make_output(&mk, "z");
    mk.o.freeze = (const char *[]){"head.*"};
    mk.o.nfreeze = 1;
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "head.bias"), LS_V_STATE);
    ck_assert_int_eq(kind(g, "w"), LS_V_PARAM);
}
END_TEST

static void alias_weight(void)
{
    make_weight(&mk, "b1", "4", 4);
    make_node(&mk, "Identity", "b1", "b2");
    make_node(&mk, "Add", "y b1", "z1");
    make_node(&mk, "Mul", "z1 b2", "z2");
    make_output(&mk, "z2");
}

START_TEST(an_identity_of_an_initializer_is_a_parameter_of_its_own)
{
    alias_weight();
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "b2"), LS_V_PARAM);
    ck_assert_uint_ne(named(g, "b1").i, named(g, "b2").i);
    ck_assert_double_eq(ls_const_at(g, named(g, "b2"), 3), 2);
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "'b2' of 'b1'"));
}
END_TEST

START_TEST(an_identity_stays_tied_when_asked)
{
    alias_weight();
    mk.o.tie_identity = true;
    LsGraph *g = import_well();
    ck_assert_uint_eq(named(g, "b2").i, 0);
    ck_assert_int_eq(mk.cx.nwarning, 0);
}
END_TEST

START_TEST(a_constant_where_a_weight_stands_is_trained_if_the_file_has_no_other_weight)
{
    float data[4] = {1, 2, 3, 4};
    mk.g->n_initializer = mk.g->n_node = 0;
    make_node(&mk, "Relu", "x", "y");
    mk.g->input[0] = make_value(&mk, "x", MAKE_FLOAT, "2x4");
    Onnx__NodeProto *p = make_node(&mk, "Constant", "", "v");
    make_tensor_attr(&mk, p, "value", make_tensor(&mk, "", MAKE_FLOAT, "4x1", data, sizeof data));
    make_node(&mk, "MatMul", "y v", "z");
    make_output(&mk, "z");
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "v"), LS_V_PARAM);
    ck_assert_double_eq(ls_const_at(g, named(g, "v"), 2), 3);
}
END_TEST

START_TEST(a_constant_beside_weights_stays_one)
{
    float data[4] = {1, 2, 3, 4};
    Onnx__NodeProto *p = make_node(&mk, "Constant", "", "v");
    make_tensor_attr(&mk, p, "value", make_tensor(&mk, "", MAKE_FLOAT, "4x1", data, sizeof data));
    make_node(&mk, "MatMul", "y v", "z");
    make_output(&mk, "z");
    ck_assert_int_eq(kind(import_well(), "v"), LS_V_CONST);
}
END_TEST

START_TEST(a_constant_elsewhere_is_not_trained)
{
    float data[4] = {1, 2, 3, 4};
    Onnx__NodeProto *p = make_node(&mk, "Constant", "", "v");
    make_tensor_attr(&mk, p, "value", make_tensor(&mk, "", MAKE_FLOAT, "4", data, sizeof data));
    make_node(&mk, "Add", "y v", "z");
    make_output(&mk, "z");
    ck_assert_int_eq(kind(import_well(), "v"), LS_V_CONST);
}
END_TEST

START_TEST(every_form_of_constant_is_read)
{
    Onnx__NodeProto *a = make_node(&mk, "Constant", "", "a"),
                    *b = make_node(&mk, "Constant", "", "b");
    make_float(&mk, a, "value_float", 2.5f);
    Onnx__AttributeProto *list = make_attr(&mk, b, "value_floats",
                                           ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS);
    for (int i = 0; i < 4; i++)
        MAKE_PUSH(&mk, list->floats, list->n_floats, (float)i);
    Onnx__NodeProto *c = make_node(&mk, "Constant", "", "c");
    Onnx__AttributeProto *ints = make_attr(&mk, c, "value_ints",
                                           ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    MAKE_PUSH(&mk, ints->ints, ints->n_ints, INT64_C(8));
    make_node(&mk, "Mul", "y a", "z1");
    make_node(&mk, "Add", "z1 b", "z2");
    make_node(&mk, "Reshape", "z2 c", "z3");
    make_output(&mk, "z3");
    LsGraph *g = import_well();
    ck_assert_double_eq(ls_const_at(g, named(g, "a"), 0), 2.5);
    ck_assert_double_eq(ls_const_at(g, named(g, "b"), 3), 3);
    ck_assert_int_eq(ls_shape(g, named(g, "z3"))->dim[0], 8);
}
END_TEST

START_TEST(a_folded_export_is_explained)
{
    mk.g->input[0] = make_value(&mk, "x", MAKE_FLOAT, "1x2x4x4");
    mk.g->n_initializer = mk.g->n_node = 0;
    make_weight(&mk, "onnx::Conv_27", "3x2x1x1", 6);
    make_weight(&mk, "onnx::Conv_28", "3", 3);
    make_node(&mk, "Conv", "x onnx::Conv_27 onnx::Conv_28", "y");
    import_well();
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "'onnx::Conv_27'"));
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "TrainingMode.TRAINING"));
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "do_constant_folding=False"));
}
END_TEST

START_TEST(initializers_nobody_reads_are_left_out)
{
    make_weight(&mk, "spare", "4", 4);
    LsGraph *g = import_well();
    ck_assert_uint_eq(named(g, "spare").i, 0);
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "read by no node ('spare')"));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("weight");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    const TTest *const test[] = {
        initial_values_are_those_of_the_file,
        doubles_become_floats_and_are_mentioned,
        half_floats_are_converted,
        bfloats_are_converted_from_raw_data,
        external_data_is_read_at_its_offset,
        a_plan_does_without_the_weights_file,
        a_plan_takes_weights_that_are_graph_inputs_for_parameters,
        a_model_whose_weights_are_inputs_is_explained,
        initializers_listed_as_inputs_are_not_inputs,
        frozen_parameters_are_state,
        an_identity_of_an_initializer_is_a_parameter_of_its_own,
        an_identity_stays_tied_when_asked,
        a_constant_where_a_weight_stands_is_trained_if_the_file_has_no_other_weight,
        a_constant_beside_weights_stays_one,
        a_constant_elsewhere_is_not_trained,
        every_form_of_constant_is_read,
        a_folded_export_is_explained,
        initializers_nobody_reads_are_left_out,
    };
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("weight", tc);
}
