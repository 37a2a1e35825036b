/* tests/compiler/test_onnx_import.c -- import of well-formed files: names, sizes, the order of
 * nodes; and the output of inspect. */
#include "tests/support/onnx_small.h"
#include "tests/support/suite.h"

#include "base/name_ids.h"
#include "compiler/inspect/onnx_inspect.h"

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

START_TEST(a_stale_declared_shape_is_only_mentioned)
{
    mk.g->output[0] = make_value(&mk, "y", MAKE_FLOAT, "1x4");
    import_well();
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "output 'y' as 1x4, it is 2x4"));
}
END_TEST

static bool trainable;          /* output of the last inspect */

static const char *inspect(bool json)
{
    char *text = NULL;
    size_t n = 0;
    unsigned char *bytes;
    FILE *to = open_memstream(&text, &n);
    n = make_pack(&mk, &bytes);
    make_write(&mk, bytes, n);
    bool ok = ls_inspect(&mk.cx, mk.path, &mk.o, to, json, false, &trainable);
    ck_assert_msg(ok, "%s", make_log(&mk));
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
    ck_assert_ptr_nonnull(strstr(text, "nothing prevents training"));
    ck_assert(trainable);
}
END_TEST

START_TEST(inspect_says_what_is_trained_and_why)
{
    make_weight(&mk, "val_3", "", 1);
    make_node(&mk, "Mul", "y val_3", "z");
    make_output(&mk, "z");
    const char *text = inspect(false);
    ck_assert_msg(strstr(text, "trained    w  ") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "constant   val_3") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "a literal: one number under a made-up name") != NULL, "%s", text);
}
END_TEST

START_TEST(inspect_counts_blockers)
{
    make_node(&mk, "Frobnicate", "y", "z");
    const char *text = inspect(true);
    ck_assert_ptr_nonnull(strstr(text, "\"not_supported\":\t{\n\t\t\"Frobnicate\":\t1"));
    ck_assert_ptr_nonnull(strstr(text, "\"trainable\":\tfalse"));
    ck_assert(!trainable);
}
END_TEST

START_TEST(inspect_names_parameters_without_influence)
{
    make_weight(&mk, "aside", "2x3", 6);
    make_node(&mk, "Relu", "aside", "z");
    const char *text = inspect(false);
    ck_assert_msg(strstr(text, "'aside' has no influence on any output") != NULL, "%s", text);
    ck_assert(trainable);
    ck_assert_ptr_null(strstr(text, "'w' has no influence"));
}
END_TEST

START_TEST(inspect_finds_nothing_to_train)
{
    mk.o.freeze = (const char *[]){"*"};
    mk.o.nfreeze = 1;
    const char *text = inspect(false);
    ck_assert_msg(strstr(text, "no trained parameter has influence") != NULL, "%s", text);
    ck_assert(!trainable);
}
END_TEST

START_TEST(inspect_warns_of_what_the_usual_loss_would)
{
    make_node(&mk, "Softmax", "y", "z");
    mk.g->output[0] = make_value(&mk, "z", MAKE_FLOAT, "2x4");
    const char *text = inspect(false);
    ck_assert_msg(strstr(text, "with --loss=ce: node 2 ") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "'z' is a softmax, and the loss applies one more") != NULL, "%s",
                  text);
    ck_assert(trainable);
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

/* Adds the initializer c [2] of this type: raw bytes, or a typed field that holds them, widened. */
static void add_tensor(int type, const void *bytes, size_t size, bool typed)
{
    Onnx__TensorProto *t = make_tensor(&mk, "c", type, "2", bytes, 2 * size);
    MAKE_PUSH(&mk, mk.g->initializer, mk.g->n_initializer, t);
    for (int k = 0; typed && k < 2; k++) {
        int64_t v = 0;
        double d = type == ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE ? ((const double *)bytes)[k] : 0;
        float f = type == ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT ? ((const float *)bytes)[k] : 0;
        memcpy(&v, (const char *)bytes + (size_t)k * size, size);
        const int64_t low = size == 4 ? (int32_t)v : size == 2 ? (int16_t)v : (int8_t)v;
        switch (type) {
        case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
            MAKE_PUSH(&mk, t->float_data, t->n_float_data, f);
            break;
        case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
            MAKE_PUSH(&mk, t->double_data, t->n_double_data, d); break;
        case ONNX__TENSOR_PROTO__DATA_TYPE__INT64:
            MAKE_PUSH(&mk, t->int64_data, t->n_int64_data, v);
            break;
        case ONNX__TENSOR_PROTO__DATA_TYPE__UINT32: case ONNX__TENSOR_PROTO__DATA_TYPE__UINT64:
            MAKE_PUSH(&mk, t->uint64_data, t->n_uint64_data, (uint64_t)v); break;
        case ONNX__TENSOR_PROTO__DATA_TYPE__INT32: case ONNX__TENSOR_PROTO__DATA_TYPE__INT16:
        case ONNX__TENSOR_PROTO__DATA_TYPE__INT8:
            MAKE_PUSH(&mk, t->int32_data, t->n_int32_data, (int32_t)low); break;
        default: MAKE_PUSH(&mk, t->int32_data, t->n_int32_data, (int32_t)v); /* unsigned, or bits */
        }
    }
    if (typed)
        make_typed(t, type);
    make_int(&mk, make_node(&mk, "Cast", "c", "d"), "to", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
    make_output(&mk, "d");
}

START_TEST(tensors_of_every_type_have_their_values_raw_or_typed)
{
#define TENSOR(code, type, a, b)                                                                   \
    {                                                                                              \
        ONNX__TENSOR_PROTO__DATA_TYPE__##code, (type[]){a, b}, sizeof(type),                       \
        {                                                                                          \
            a, b                                                                                   \
        }                                                                                          \
    }
    const struct { int type; const void *bytes; size_t size; double want[2]; } of[] = {
        TENSOR(FLOAT, float, -1.5f, 7), TENSOR(DOUBLE, double, -1.5, 7),
        TENSOR(INT64, int64_t, INT64_C(-5000000000), 7), TENSOR(UINT64, uint64_t, 5000000000u, 7),
        TENSOR(INT32, int32_t, -70000, 7), TENSOR(UINT32, uint32_t, 3000000000u, 7),
        TENSOR(INT16, int16_t, -300, 7), TENSOR(UINT16, uint16_t, 60000, 7),
        TENSOR(INT8, int8_t, -100, 7), TENSOR(UINT8, uint8_t, 200, 7), TENSOR(BOOL, uint8_t, 1, 0),
        {ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16, (uint16_t[]){0xbe00, 0x4700}, 2, {-1.5, 7}},
        {ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16, (uint16_t[]){0xbfc0, 0x40e0}, 2, {-1.5, 7}},
    };
#undef TENSOR
    for (size_t k = 0; k < sizeof of / sizeof *of; k++)
        for (int typed = 0; typed < 2; typed++) {
            teardown();
            setup();
            add_tensor(of[k].type, of[k].bytes, of[k].size, typed);
            LsGraph *g = import_well();
            LsValue v = g->value[named(g, "c").i];
            v.kind = LS_V_CONST;            /* as ls_const_at takes it; reals are parameters */
            g->value[named(g, "c").i] = v;
            for (int i = 0; i < 2; i++)
                ck_assert_msg(ls_const_at(g, named(g, "c"), i) == of[k].want[i],
                              "type %d, typed %d: element %d is %.9g", of[k].type, typed, i,
                              ls_const_at(g, named(g, "c"), i));
        }
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
        the_evaluation_form_repeats_no_warning,
        a_symbol_is_bound_wherever_it_stands,
        a_batch_binds_the_first_dimension_of_every_input,
        a_shape_serves_an_input_without_one,
        nodes_out_of_order_are_sorted_with_a_warning,
        an_output_that_is_an_alias_has_its_own_name,
        a_stale_declared_shape_is_only_mentioned,
        inspect_shows_what_is_there,
        inspect_says_what_is_trained_and_why,
        inspect_counts_blockers,
        inspect_names_parameters_without_influence,
        inspect_finds_nothing_to_train,
        inspect_warns_of_what_the_usual_loss_would,
        names_have_dense_ids_in_order_of_arrival,
        tensors_of_every_type_have_their_values_raw_or_typed,
        verify_finds_an_operand_made_later,
        verify_finds_a_constant_without_data,
    };
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("import", tc);
}
