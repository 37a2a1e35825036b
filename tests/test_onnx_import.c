/* tests/test_onnx_import.c -- what the importer makes of well-formed files. */
#include "tests/onnx_make.h"
#include "tests/suite.h"

#include "compiler/inspect.h"
#include "compiler/names.h"

#include <math.h>

static Make mk;

static void setup(void) { make_small(&mk); }
static void teardown(void) { make_end(&mk); }

static LsGraph *import_well(void)
{
    LsGraph *g = make_import(&mk);
    ck_assert_msg(g != NULL, "%s", make_log(&mk));
    ck_assert_msg(ls_verify(&mk.cx, g), "%s", make_log(&mk));
    return g;
}

/* The value of that name; none, when there is none. */
static LsValueId named(const LsGraph *g, const char *name)
{
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (strcmp(g->value[i].name, name) == 0)
            return (LsValueId){i};
    return (LsValueId){0};
}

static LsValueKind kind(const LsGraph *g, const char *name)
{
    return g->value[named(g, name).i].kind;
}

START_TEST(values_keep_the_names_of_the_file)
{
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "x"), LS_V_INPUT);
    ck_assert_int_eq(kind(g, "w"), LS_V_PARAM);
    ck_assert_int_eq(kind(g, "h"), LS_V_TEMP);
    ck_assert_uint_eq(g->noutput, 1);
    ck_assert_uint_eq(g->output[0].i, named(g, "y").i);
    ck_assert_int_eq(g->batch, 2);
    const LsShape *s = ls_shape(g, g->output[0]);
    ck_assert(s->rank == 2 && s->dim[0] == 2 && s->dim[1] == 4);
}
END_TEST

START_TEST(nodes_remember_their_place_and_name)
{
    mk.g->node[1]->name = "last";
    LsGraph *g = import_well();
    const LsNode *n = &g->node[g->value[g->output[0].i].def.i];
    ck_assert_uint_eq(n->onnx, 1);
    ck_assert_str_eq(n->name, "last");
}
END_TEST

START_TEST(initial_values_are_those_of_the_file)
{
    LsGraph *g = import_well();
    for (int64_t i = 0; i < 12; i++)
        ck_assert_double_eq(ls_const_at(g, named(g, "w"), i), 0.5 * (double)(i + 1));
}
END_TEST

static void set_typed(Onnx__TensorProto *t, int type)
{
    t->has_raw_data = false;
    t->raw_data.len = 0;
    t->data_type = type;
}

START_TEST(doubles_become_floats_and_are_mentioned)
{
    Onnx__TensorProto *t = mk.g->initializer[0];
    set_typed(t, MAKE_DOUBLE);
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
    set_typed(t, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16);
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
    LsGraph *g = import_well();
    ck_assert_double_eq(ls_const_at(g, named(g, "w"), 2), -4);
}
END_TEST

static void write_file(const char *name, const void *bytes, size_t n)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", mk.dir, name);
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    fwrite(bytes, 1, n, f);
    fclose(f);
}

static void external(Onnx__TensorProto *t, const char *location, const char *offset)
{
    const char *pair[][2] = {{"location", location}, {"offset", offset}};
    t->has_raw_data = false;
    t->raw_data.len = 0;
    t->has_data_location = true;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    for (int i = 0; i < 2; i++) {
        Onnx__StringStringEntryProto *e = MAKE_NEW(&mk, Onnx__StringStringEntryProto,
                                                   onnx__string_string_entry_proto__init);
        e->key = (char *)pair[i][0];
        e->value = (char *)pair[i][1];
        MAKE_PUSH(&mk, t->external_data, t->n_external_data, e);
    }
}

START_TEST(external_data_is_read_at_its_offset)
{
    float data[14];
    for (int i = 0; i < 14; i++)
        data[i] = (float)(100 + i);
    write_file("weights.bin", data, sizeof data);
    external(mk.g->initializer[0], "weights.bin", "8");
    LsGraph *g = import_well();
    ck_assert_double_eq(ls_const_at(g, named(g, "w"), 0), 102);
    ck_assert_double_eq(ls_const_at(g, named(g, "w"), 11), 113);
}
END_TEST

START_TEST(a_plan_does_without_the_weights_file)
{
    external(mk.g->initializer[0], "not-shipped.bin", "0");
    mk.o.weightless = true;
    LsGraph *g = import_well();
    ck_assert(g->weightless);
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

START_TEST(the_evaluation_form_repeats_no_warning)
{
    make_weight(&mk, "spare", "4", 4);
    mk.o.training = false;
    import_well();
    ck_assert_int_eq(mk.cx.nwarning, 0);
}
END_TEST

START_TEST(a_symbol_is_bound_wherever_it_stands)
{
    mk.g->input[0] = make_value(&mk, "x", MAKE_FLOAT, "Nx3");
    make_input(&mk, "u", "Nx4");
    make_node(&mk, "Add", "y u", "z");
    make_output(&mk, "z");
    mk.o.dim = &(LsDim){"N", 5};
    mk.o.ndim = 1;
    LsGraph *g = import_well();
    ck_assert_int_eq(g->batch, 5);
    ck_assert_int_eq(ls_shape(g, named(g, "z"))->dim[0], 5);
}
END_TEST

START_TEST(a_batch_binds_the_first_dimension_of_every_input)
{
    mk.g->input[0] = make_value(&mk, "x", MAKE_FLOAT, "?x3");
    make_input(&mk, "u", "Mx4");
    make_node(&mk, "Add", "y u", "z");
    make_output(&mk, "z");
    mk.o.batch = 6;
    LsGraph *g = import_well();
    ck_assert_int_eq(ls_shape(g, named(g, "u"))->dim[0], 6);
}
END_TEST

START_TEST(a_shape_serves_an_input_without_one)
{
    mk.g->input[0] = make_value(&mk, "x", MAKE_FLOAT, NULL);
    mk.o.shape = &(LsShapeBinding){"x", {2, {9, 3}}};
    mk.o.nshape = 1;
    ck_assert_int_eq(import_well()->batch, 9);
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

START_TEST(nodes_out_of_order_are_sorted_with_a_warning)
{
    Onnx__NodeProto *first = mk.g->node[0];
    mk.g->node[0] = mk.g->node[1];
    mk.g->node[1] = first;
    import_well();
    ck_assert_int_eq(mk.cx.nwarning, 1);
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "were sorted"));
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

START_TEST(a_glob_that_freezes_nothing_is_mentioned)
{
    mk.o.freeze = (const char *[]){"layer9.*"};
    mk.o.nfreeze = 1;
    import_well();
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "--freeze layer9.* matches no parameter"));
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

START_TEST(an_output_that_is_an_alias_has_its_own_name)
{
    make_node(&mk, "Identity", "y", "alias");
    make_output(&mk, "alias");
    LsGraph *g = import_well();
    ck_assert_uint_eq(g->noutput, 2);
    ck_assert_uint_eq(g->output[1].i, named(g, "alias").i);
    ck_assert_uint_ne(g->output[1].i, g->output[0].i);
}
END_TEST

START_TEST(a_constant_at_a_weight_position_is_trained)
{
    float data[4] = {1, 2, 3, 4};
    Onnx__NodeProto *p = make_node(&mk, "Constant", "", "v");
    make_tensor_attr(&mk, p, "value", make_tensor(&mk, "", MAKE_FLOAT, "4x1", data, sizeof data));
    make_node(&mk, "MatMul", "y v", "z");
    make_output(&mk, "z");
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "v"), LS_V_PARAM);
    ck_assert_double_eq(ls_const_at(g, named(g, "v"), 2), 3);
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

START_TEST(a_stale_declared_shape_is_only_mentioned)
{
    mk.g->output[0] = make_value(&mk, "y", MAKE_FLOAT, "1x4");
    import_well();
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "output 'y' as 1x4, it is 2x4"));
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

/* Scale(a; alpha) = LeakyRelu(a; alpha = alpha) + LeakyRelu(a) */
static Onnx__FunctionProto *add_function(void)
{
    Onnx__FunctionProto *f = MAKE_NEW(&mk, Onnx__FunctionProto, onnx__function_proto__init);
    f->name = "Scale";
    f->domain = "local";
    make_names(&mk, &f->input, &f->n_input, "a");
    make_names(&mk, &f->output, &f->n_output, "b");
    make_names(&mk, &f->attribute, &f->n_attribute, "alpha");
    Onnx__NodeProto *p = make_body(&mk, "LeakyRelu", "a", "t");
    make_attr(&mk, p, "alpha", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT)->ref_attr_name =
        "alpha";
    MAKE_PUSH(&mk, f->node, f->n_node, p);
    MAKE_PUSH(&mk, f->node, f->n_node, make_body(&mk, "LeakyRelu", "a", "u"));
    MAKE_PUSH(&mk, f->node, f->n_node, make_body(&mk, "Add", "t u", "b"));
    MAKE_PUSH(&mk, mk.m->functions, mk.m->n_functions, f);
    return f;
}

static Onnx__NodeProto *call(const char *in, const char *out, float alpha)
{
    Onnx__NodeProto *p = make_node(&mk, "Scale", in, out);
    p->domain = "local";
    p->name = ls_arena_printf(mk.cx.arena, "call_%s", out);
    if (alpha != 0)
        make_float(&mk, p, "alpha", alpha);
    return p;
}

static double alpha_of(const LsGraph *g, const char *name)
{
    ck_assert_msg(ls_is(named(g, name)), "no value '%s'", name);
    return g->node[g->value[named(g, name).i].def.i].attr.scalar.a;
}

START_TEST(a_local_function_is_inlined_at_every_call)
{
    add_function();
    call("y", "z", 0.5f);
    call("z", "zz", 0.25f);
    make_output(&mk, "zz");
    LsGraph *g = import_well();
    ck_assert_double_eq(alpha_of(g, "call_z/t"), 0.5);
    ck_assert_double_eq(alpha_of(g, "call_zz/t"), 0.25);
    ck_assert_double_eq_tol(alpha_of(g, "call_z/u"), 0.01, 1e-9);
    ck_assert_int_eq(kind(g, "z"), LS_V_TEMP);
}
END_TEST

START_TEST(an_attribute_that_a_call_leaves_out_has_the_operators_default)
{
    add_function();
    call("y", "z", 0);
    make_output(&mk, "z");
    ck_assert_double_eq_tol(alpha_of(import_well(), "call_z/t"), 0.01, 1e-9);
}
END_TEST

START_TEST(functions_call_functions)
{
    add_function();
    Onnx__FunctionProto *f = MAKE_NEW(&mk, Onnx__FunctionProto, onnx__function_proto__init);
    f->name = "Twice";
    f->domain = "local";
    make_names(&mk, &f->input, &f->n_input, "a");
    make_names(&mk, &f->output, &f->n_output, "b");
    Onnx__NodeProto *one = make_body(&mk, "Scale", "a", "t"),
                    *two = make_body(&mk, "Scale", "t", "b");
    one->domain = two->domain = "local";
    make_float(&mk, one, "alpha", 0.5f);
    MAKE_PUSH(&mk, f->node, f->n_node, one);
    MAKE_PUSH(&mk, f->node, f->n_node, two);
    MAKE_PUSH(&mk, mk.m->functions, mk.m->n_functions, f);
    Onnx__NodeProto *p = make_node(&mk, "Twice", "y", "z");
    p->domain = "local";
    make_output(&mk, "z");
    LsGraph *g = import_well();
    ck_assert_uint_eq(g->output[1].i, named(g, "z").i);
    ck_assert_int_eq(ls_shape(g, named(g, "z"))->dim[1], 4);
}
END_TEST

START_TEST(inner_names_that_are_taken_are_avoided)
{
    add_function();
    make_node(&mk, "Relu", "y", "call_z/t");
    call("call_z/t", "z", 0.5f);
    make_output(&mk, "z");
    import_well();
}
END_TEST

START_TEST(a_running_statistic_inside_a_function_is_refused)
{
    float ones[4] = {1, 1, 1, 1};
    Onnx__FunctionProto *f = MAKE_NEW(&mk, Onnx__FunctionProto, onnx__function_proto__init);
    f->name = "Norm";
    f->domain = "local";
    make_names(&mk, &f->input, &f->n_input, "a");
    make_names(&mk, &f->output, &f->n_output, "o");
    Onnx__NodeProto *c = make_body(&mk, "Constant", "", "c");
    make_tensor_attr(&mk, c, "value", make_tensor(&mk, "", MAKE_FLOAT, "4", ones, sizeof ones));
    Onnx__NodeProto *d = make_body(&mk, "Constant", "", "d");
    make_tensor_attr(&mk, d, "value", make_tensor(&mk, "", MAKE_FLOAT, "4", ones, sizeof ones));
    MAKE_PUSH(&mk, f->node, f->n_node, c);
    MAKE_PUSH(&mk, f->node, f->n_node, d);
    MAKE_PUSH(&mk, f->node, f->n_node, make_body(&mk, "BatchNormalization", "a c c c d", "o"));
    MAKE_PUSH(&mk, mk.m->functions, mk.m->n_functions, f);
    make_node(&mk, "Norm", "y", "z")->domain = "local";
    make_output(&mk, "z");
    ck_assert_ptr_null(make_import(&mk));
    ck_assert_int_eq(mk.cx.last, LS_E_UNSUPPORTED);
    ck_assert_msg(strstr(make_log(&mk), "'z/c': error") != NULL, "%s", make_log(&mk));
}
END_TEST

START_TEST(operators_that_onnx_defines_by_a_body_are_inlined)
{
    static const char *const op[] = {"Celu", "Softsign", "ThresholdedRelu", "Shrink"};
    make_float(&mk, make_node(&mk, op[_i], "y", "z"), "alpha", 3);
    make_output(&mk, "z");
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "z"), LS_V_TEMP);
    if (_i == 0)
        ck_assert_double_eq(ls_const_at(g, named(g, "z/alpha"), 0), 3);
    if (_i == 3)
        ck_assert_double_eq(ls_const_at(g, named(g, "z/lambd"), 0), 0.5);
}
END_TEST

START_TEST(a_body_follows_the_opset)
{
    mk.m->opset_import[0]->version = _i == 0 ? 13 : 18;
    mk.g->input[0] = make_value(&mk, "x", MAKE_FLOAT, "2x3x4x5");
    mk.g->n_node = mk.g->n_initializer = 0;
    make_node(&mk, "MeanVarianceNormalization", "x", "y");
    LsGraph *g = import_well();
    const LsShape *mean = ls_shape(g, named(g, "y/mean"));
    ck_assert(mean->rank == 4 && mean->dim[0] == 1 && mean->dim[1] == 3 && mean->dim[2] == 1);
}
END_TEST

static const char *inspect(bool json)
{
    char *text = NULL;
    size_t n = 0;
    unsigned char *bytes;
    FILE *to = open_memstream(&text, &n);
    n = make_pack(&mk, &bytes);
    make_write(&mk, bytes, n);
    ck_assert_msg(ls_inspect(&mk.cx, mk.path, &mk.o, to, json), "%s", make_log(&mk));
    fclose(to);
    const char *copy = ls_arena_strdup(mk.cx.arena, text);
    free(text);
    return copy;
}

START_TEST(inspect_shows_what_is_there)
{
    mk.g->input[0] = make_value(&mk, "x", MAKE_FLOAT, "Nx3");
    const char *text = inspect(false);
    ck_assert_ptr_nonnull(strstr(text, "IR 8, opset 13"));
    ck_assert_ptr_nonnull(strstr(text, "x: float Nx3"));
    ck_assert_ptr_nonnull(strstr(text, "--dim N=SIZE"));
    ck_assert_ptr_nonnull(strstr(text, "MatMul 1, Relu 1"));
    ck_assert_ptr_nonnull(strstr(text, "1 tensors, 12 elements, 48 bytes"));
    ck_assert_ptr_nonnull(strstr(text, "nothing stands in the way"));
}
END_TEST

START_TEST(inspect_counts_blockers)
{
    make_node(&mk, "Frobnicate", "y", "z");
    const char *text = inspect(true);
    ck_assert_ptr_nonnull(strstr(text, "\"not_supported\":\t{\n\t\t\"Frobnicate\":\t1"));
    ck_assert_ptr_nonnull(strstr(text, "\"trainable\":\tfalse"));
}
END_TEST

START_TEST(names_have_dense_ids_in_order_of_arrival)
{
    LsNames t = {.arena = mk.cx.arena};
    for (uint32_t i = 1; i <= 1000; i++)
        ck_assert_uint_eq(ls_names_add(&t, ls_arena_printf(mk.cx.arena, "n%u", i)), i);
    for (uint32_t i = 1; i <= 1000; i++)
        ck_assert_uint_eq(ls_names_find(&t, ls_arena_printf(mk.cx.arena, "n%u", i)), i);
    ck_assert_uint_eq(ls_names_add(&t, "n7"), 7);
    ck_assert_uint_eq(ls_names_find(&t, "absent"), 0);
}
END_TEST

START_TEST(verify_finds_an_operand_made_later)
{
    LsGraph *g = import_well();
    g->operand[g->node[1].in] = g->output[0];
    ck_assert(!ls_verify(&mk.cx, g));
    ck_assert_int_eq(mk.cx.last, LS_E_VERIFY);
}
END_TEST

START_TEST(verify_finds_a_constant_without_data)
{
    LsGraph *g = import_well();
    g->value[named(g, "w").i].kind = LS_V_CONST;
    g->value[named(g, "w").i].data = NULL;
    ck_assert(!ls_verify(&mk.cx, g));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("import");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    const TTest *const test[] = {
        values_keep_the_names_of_the_file,
        nodes_remember_their_place_and_name,
        initial_values_are_those_of_the_file,
        doubles_become_floats_and_are_mentioned,
        half_floats_are_converted,
        bfloats_are_converted_from_raw_data,
        external_data_is_read_at_its_offset,
        a_plan_does_without_the_weights_file,
        a_plan_takes_weights_that_are_graph_inputs_for_parameters,
        a_model_whose_weights_are_inputs_is_explained, the_evaluation_form_repeats_no_warning,
        a_symbol_is_bound_wherever_it_stands,
        a_batch_binds_the_first_dimension_of_every_input,
        a_shape_serves_an_input_without_one,
        initializers_listed_as_inputs_are_not_inputs,
        nodes_out_of_order_are_sorted_with_a_warning,
        frozen_parameters_are_state,
        a_glob_that_freezes_nothing_is_mentioned,
        an_identity_of_an_initializer_is_a_parameter_of_its_own,
        an_identity_stays_tied_when_asked,
        an_output_that_is_an_alias_has_its_own_name,
        a_constant_at_a_weight_position_is_trained,
        a_constant_elsewhere_is_not_trained,
        every_form_of_constant_is_read,
        a_folded_export_is_explained,
        a_stale_declared_shape_is_only_mentioned,
        initializers_nobody_reads_are_left_out,
        a_local_function_is_inlined_at_every_call,
        an_attribute_that_a_call_leaves_out_has_the_operators_default,
        functions_call_functions,
        inner_names_that_are_taken_are_avoided,
        a_running_statistic_inside_a_function_is_refused,
        inspect_shows_what_is_there,
        inspect_counts_blockers,
        names_have_dense_ids_in_order_of_arrival,
        verify_finds_an_operand_made_later,
        verify_finds_a_constant_without_data,
    };
    add_tests(tc, sizeof test / sizeof *test, test);
    tcase_add_loop_test(tc, operators_that_onnx_defines_by_a_body_are_inlined, 0, 4);
    tcase_add_loop_test(tc, a_body_follows_the_opset, 0, 2);
    return run_tests("import", tc);
}
