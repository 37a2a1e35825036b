/* tests/compiler/test_onnx_armour.c -- files that contradict themselves, mix float types, or have
 * sizes that no machine can hold end in an error that names node and sizes. */
#include "tests/support/onnx_small.h"
#include "tests/support/suite.h"

/* ---- initializers and the inputs of their names ---- */
static void declare_weight(int type, const char *dims)
{
    Onnx__ValueInfoProto *v = make_value(&mk, "w", type, dims);
    MAKE_PUSH(&mk, mk.g->input, mk.g->n_input, v);
}

START_TEST(an_initializer_may_be_listed_as_an_input)
{
    declare_weight(MAKE_FLOAT, "3x4");
    ck_assert_int_eq(kind(import_well(), "w"), LS_V_PARAM);
}
END_TEST

START_TEST(symbols_and_missing_shapes_agree_with_any_initializer)
{
    declare_weight(MAKE_FLOAT, "Nx4");
    import_well();
    mk.g->input[1] = make_value(&mk, "w", MAKE_FLOAT, NULL);
    import_well();
    mk.g->input[1]->type = NULL;
    refuse(LS_E_NAME, LS_EXIT_MODEL, "graph input 'w' is no tensor");
}
END_TEST

START_TEST(an_initializer_of_another_type_than_its_input_is_refused)
{
    declare_weight(MAKE_DOUBLE, "3x4");
    refuse(LS_E_NAME, LS_EXIT_MODEL,
           "graph input 'w' is double 3x4, the initializer of that name is float 3x4");
}
END_TEST

START_TEST(an_initializer_of_another_shape_than_its_input_is_refused)
{
    declare_weight(MAKE_FLOAT, "3x5");
    refuse(LS_E_NAME, LS_EXIT_MODEL,
           "graph input 'w' is float 3x5, the initializer of that name is float 3x4");
}
END_TEST

START_TEST(an_initializer_of_another_rank_than_its_input_is_refused)
{
    declare_weight(MAKE_FLOAT, "3x4x1");
    refuse(LS_E_NAME, LS_EXIT_MODEL, "graph input 'w' is float 3x4x1");
    mk.g->input[1] = make_value(&mk, "w", MAKE_FLOAT, "3");
    refuse(LS_E_NAME, LS_EXIT_MODEL, "graph input 'w' is float 3, ");
}
END_TEST

/* ---- attributes ---- */
START_TEST(an_attribute_given_twice_alike_is_read)
{
    Onnx__NodeProto *p = make_node(&mk, "Flatten", "h", "z");
    make_int(&mk, p, "axis", 1);
    make_int(&mk, p, "axis", 1);
    import_well();
}
END_TEST

START_TEST(an_attribute_given_twice_differently_is_refused)
{
    Onnx__NodeProto *p = make_node(&mk, "Flatten", "h", "z");
    p->name = "flat";
    make_int(&mk, p, "axis", 1);
    make_int(&mk, p, "more", 7);
    make_int(&mk, p, "axis", 2);
    refuse(LS_E_ATTR, LS_EXIT_MODEL, "node 2 'flat' (Flatten): error LS-E0009: "
                                     "attribute 'axis' is given twice, with different values");
}
END_TEST

START_TEST(attributes_of_calls_and_of_bodies_are_checked_too)
{
    Onnx__FunctionProto *f = make_function(&mk, "Act", "X", "Y");
    Onnx__NodeProto *body = make_body(&mk, "Flatten", "X", "Y");
    make_int(&mk, body, "axis", 1);
    make_int(&mk, body, "axis", 0);
    MAKE_PUSH(&mk, f->node, f->n_node, body);
    Onnx__NodeProto *call = make_node(&mk, "Act", "h", "z");
    call->domain = "local";
    make_int(&mk, call, "level", 1);
    make_int(&mk, call, "level", 2);
    refuse(LS_E_ATTR, LS_EXIT_MODEL, "(Act): error LS-E0009: attribute 'level' is given twice");
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "attribute 'axis' is given twice"));
}
END_TEST

/* ---- float types ---- */
static void make_doubles(const char *name)
{
    static const double v[4] = {1, 2, 3, 4};
    Onnx__TensorProto *t = make_tensor(&mk, name, MAKE_DOUBLE, "4", v, sizeof v);
    MAKE_PUSH(&mk, mk.g->initializer, mk.g->n_initializer, t);
}

START_TEST(float_plus_double_is_refused)
{
    make_doubles("d");
    make_node(&mk, "Add", "h d", "z")->name = "sum";
    refuse(LS_E_TYPE, LS_EXIT_MODEL,
           "node 2 'sum' (Add): error LS-E0006: operand 0 ('h') is float, "
           "operand 1 ('d') is double");
}
END_TEST

START_TEST(a_type_goes_through_nodes_and_bodies)
{
    make_doubles("d");
    make_node(&mk, "Softsign", "d", "e");
    make_node(&mk, "Unsqueeze", "e axes", "f");
    make_node(&mk, "Concat", "h f", "z")->name = "join";
    make_int(&mk, mk.g->node[4], "axis", 0);
    Onnx__TensorProto *t = make_tensor(&mk, "axes", MAKE_I64, "1", (int64_t[]){0}, 8);
    MAKE_PUSH(&mk, mk.g->initializer, mk.g->n_initializer, t);
    refuse(LS_E_TYPE, LS_EXIT_MODEL, "node 4 'join' (Concat): error LS-E0006: operand 0 ('h') is "
                                     "float, operand 1 ('f') is double");
    ck_assert_int_eq(mk.cx.nerror, 1);
}
END_TEST

START_TEST(casts_and_what_is_no_float_settle_the_type)
{
    make_doubles("d");
    make_int(&mk, make_node(&mk, "Cast", "d", "f"), "to", 1);
    make_node(&mk, "CastLike", "d h", "l");
    make_node(&mk, "Shape", "d", "s");
    make_node(&mk, "Shape", "f", "r");
    make_node(&mk, "Equal", "s r", "same");
    make_node(&mk, "Where", "same f l", "v");
    make_node(&mk, "Add", "h v", "z");
    mk.m->opset_import[0]->version = 15;
    import_well();
}
END_TEST

START_TEST(operators_that_take_several_float_types_do)
{
    make_doubles("d");
    make_node(&mk, "Pow", "h d", "p");
    make_node(&mk, "Add", "p h", "z");
    import_well();
}
END_TEST

/* ---- sizes ---- */
static void make_ints(const char *name, const char *dims, const int64_t *v, size_t n)
{
    Onnx__TensorProto *t = make_tensor(&mk, name, MAKE_I64, dims, v, n * sizeof *v);
    MAKE_PUSH(&mk, mk.g->initializer, mk.g->n_initializer, t);
}

START_TEST(an_expansion_that_no_machine_holds_is_refused)
{
    make_ints("to", "3", (int64_t[]){INT64_C(1) << 38, 2, 4}, 3);
    make_node(&mk, "Expand", "h to", "z")->name = "wide";
    refuse(LS_E_SHAPE, LS_EXIT_MODEL, "node 2 'wide' (Expand): error LS-E0007: the result would be "
                                      "274877906944x2x4: more elements than any machine holds");
}
END_TEST

START_TEST(a_padding_that_no_machine_holds_is_refused)
{
    make_ints("pads", "4", (int64_t[]){INT64_C(1) << 38, 0, 0, 0}, 4);
    make_node(&mk, "Pad", "h pads", "z")->name = "tall";
    refuse(LS_E_SHAPE, LS_EXIT_MODEL, "node 2 'tall' (Pad): error LS-E0007: the result would be "
                                      "274877906946x4");
}
END_TEST

START_TEST(a_constant_that_no_machine_holds_is_refused)
{
    make_ints("to", "1", (int64_t[]){INT64_C(1) << 40}, 1);
    make_node(&mk, "ConstantOfShape", "to", "c")->name = "ones";
    make_node(&mk, "ReduceSum", "c", "s");
    make_node(&mk, "Add", "h s", "z");
    refuse(LS_E_SHAPE, LS_EXIT_MODEL,
           "node 2 'ones' (Expand): error LS-E0007: the result would be 1099511627776: more");
}
END_TEST

START_TEST(an_input_that_no_machine_holds_is_refused)
{
    mk.g->input[0] = make_value(&mk, "x", MAKE_FLOAT, "274877906944x3");
    refuse(LS_E_SHAPE, LS_EXIT_MODEL, "input 'x' has too many elements: 274877906944x3");
}
END_TEST

START_TEST(results_that_no_machine_holds_together_are_refused)
{
    make_ints("to", "3", (int64_t[]){INT64_C(1) << 36, 2, 4}, 3);
    make_node(&mk, "Expand", "h to", "z0");
    for (int k = 0; k < 70; k++)
        make_node(&mk, "Relu", ls_arena_printf(mk.cx.arena, "z%d", k),
                  ls_arena_printf(mk.cx.arena, "z%d", k + 1));
    refuse(LS_E_SHAPE, LS_EXIT_MODEL, "the results up to here have 35184372088848 elements: "
                                      "more than any machine holds");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("armour");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    const TTest *const test[] = {
        an_initializer_may_be_listed_as_an_input,
        symbols_and_missing_shapes_agree_with_any_initializer,
        an_initializer_of_another_type_than_its_input_is_refused,
        an_initializer_of_another_shape_than_its_input_is_refused,
        an_initializer_of_another_rank_than_its_input_is_refused,
        an_attribute_given_twice_alike_is_read,
        an_attribute_given_twice_differently_is_refused,
        attributes_of_calls_and_of_bodies_are_checked_too,
        float_plus_double_is_refused,
        a_type_goes_through_nodes_and_bodies,
        casts_and_what_is_no_float_settle_the_type,
        operators_that_take_several_float_types_do,
        an_expansion_that_no_machine_holds_is_refused,
        a_padding_that_no_machine_holds_is_refused,
        a_constant_that_no_machine_holds_is_refused,
        an_input_that_no_machine_holds_is_refused,
        results_that_no_machine_holds_together_are_refused,
    };
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("armour", tc);
}
