/* tests/compiler/test_onnx_function.c -- operators defined by other operators: functions of the
 * file, and operators with a body in ONNX. */
#include "tests/support/onnx_small.h"
#include "tests/support/suite.h"

/* Scale(a; alpha) = LeakyRelu(a; alpha = alpha) + LeakyRelu(a) */
static void add_function(void)
{
    Onnx__FunctionProto *f = make_function(&mk, "Scale", "a", "b");
    make_names(&mk, &f->attribute, &f->n_attribute, "alpha");
    Onnx__NodeProto *p = make_body(&mk, "LeakyRelu", "a", "t");
    make_attr(&mk, p, "alpha", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT)->ref_attr_name =
        "alpha";
    MAKE_PUSH(&mk, f->node, f->n_node, p);
    MAKE_PUSH(&mk, f->node, f->n_node, make_body(&mk, "LeakyRelu", "a", "u"));
    MAKE_PUSH(&mk, f->node, f->n_node, make_body(&mk, "Add", "t u", "b"));
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
    Onnx__FunctionProto *f = make_function(&mk, "Twice", "a", "b");
    Onnx__NodeProto *one = make_body(&mk, "Scale", "a", "t"),
                    *two = make_body(&mk, "Scale", "t", "b");
    one->domain = two->domain = "local";
    make_float(&mk, one, "alpha", 0.5f);
    MAKE_PUSH(&mk, f->node, f->n_node, one);
    MAKE_PUSH(&mk, f->node, f->n_node, two);
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
    Onnx__FunctionProto *f = make_function(&mk, "Norm", "a", "o");
    Onnx__NodeProto *c = make_body(&mk, "Constant", "", "c");
    make_tensor_attr(&mk, c, "value", make_tensor(&mk, "", MAKE_FLOAT, "4", ones, sizeof ones));
    Onnx__NodeProto *d = make_body(&mk, "Constant", "", "d");
    make_tensor_attr(&mk, d, "value", make_tensor(&mk, "", MAKE_FLOAT, "4", ones, sizeof ones));
    MAKE_PUSH(&mk, f->node, f->n_node, c);
    MAKE_PUSH(&mk, f->node, f->n_node, d);
    MAKE_PUSH(&mk, f->node, f->n_node, make_body(&mk, "BatchNormalization", "a c c c d", "o"));
    make_node(&mk, "Norm", "y", "z")->domain = "local";
    make_output(&mk, "z");
    ck_assert_ptr_null(make_import(&mk));
    ck_assert_int_eq(mk.cx.last, LS_E_UNSUPPORTED);
    ck_assert_msg(strstr(make_log(&mk), "'z/c': error") != NULL, "%s", make_log(&mk));
}
END_TEST

START_TEST(operators_that_onnx_defines_by_a_body_are_inlined)
{
    static const char *const op[] = {"Celu", "ThresholdedRelu", "Shrink"};
    make_float(&mk, make_node(&mk, op[_i], "y", "z"), "alpha", 3);
    make_output(&mk, "z");
    LsGraph *g = import_well();
    ck_assert_int_eq(kind(g, "z"), LS_V_TEMP);
    if (_i == 0)
        ck_assert_double_eq(ls_const_at(g, named(g, "z/alpha"), 0), 3);
    if (_i == 2)
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

START_TEST(a_function_that_calls_itself_is_refused)
{
    Onnx__FunctionProto *f = make_function(&mk, "Again", "a", "b");
    Onnx__NodeProto *body = make_body(&mk, "Again", "a", "b");
    body->domain = "local";
    MAKE_PUSH(&mk, f->node, f->n_node, body);
    make_node(&mk, "Again", "h", "z")->domain = "local";
    refuse(LS_E_CYCLE, LS_EXIT_MODEL, "(Again): error");
}
END_TEST

START_TEST(functions_that_multiply_without_end_are_refused)
{
    for (int i = 0; i < 14; i++) {      /* 8^14 nodes */
        const char *name = ls_arena_printf(mk.cx.arena, "f%d", i);
        Onnx__FunctionProto *f = make_function(&mk, name, "a", "b");
        for (int k = 0; i < 13 && k < 8; k++) {
            const char *op = ls_arena_printf(mk.cx.arena, "f%d", i + 1);
            Onnx__NodeProto *body = make_body(&mk, op, "a", ls_arena_printf(mk.cx.arena, "t%d", k));
            body->domain = "local";
            MAKE_PUSH(&mk, f->node, f->n_node, body);
        }
    }
    make_node(&mk, "f0", "h", "z")->domain = "local";
    refuse(LS_E_UNSUPPORTED, LS_EXIT_UNSUPPORTED,
           "nodes after its functions and loops are expanded");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("function");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    const TTest *const test[] = {
        a_local_function_is_inlined_at_every_call,
        an_attribute_that_a_call_leaves_out_has_the_operators_default,
        functions_call_functions,
        inner_names_that_are_taken_are_avoided,
        a_running_statistic_inside_a_function_is_refused,
        a_function_that_calls_itself_is_refused,
        functions_that_multiply_without_end_are_refused,
    };
    add_tests(tc, sizeof test / sizeof *test, test);
    tcase_add_loop_test(tc, operators_that_onnx_defines_by_a_body_are_inlined, 0, 3);
    tcase_add_loop_test(tc, a_body_follows_the_opset, 0, 2);
    return run_tests("function", tc);
}
