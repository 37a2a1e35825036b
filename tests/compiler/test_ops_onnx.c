/* tests/compiler/test_ops_onnx.c -- ONNX rows of pointwise and reducing operators, of dropout and
 * of operators on shapes: the forms of every opset, and refusals. Operands are constants where the
 * test checks the result's numbers. */
#include "tests/support/onnx_node.h"
#include "tests/support/suite.h"

START_TEST(clip_takes_bounds_from_attributes_then_operands)
{
    LsValueId x = REALS(-2, 0.5, 9);
    Node old = {0}, now = {0};
    node_float(&old, "min", -1);
    node_float(&old, "max", 3);
    EXPECT(node_one(&old, "Clip", 6, IN(x)), -1, 0.5, 3);
    EXPECT(node_one(&now, "Clip", 11, IN(x, scalar(-1), scalar(3))), -1, 0.5, 3);
    EXPECT(node_one(&now, "Clip", 13, IN(x, NONE, scalar(3))), -2, 0.5, 3);
    EXPECT(node_one(&now, "Clip", 13, IN(x, scalar(5), scalar(3))), 3, 3, 3);
    EXPECT(node_one(&now, "Clip", 12, IN(INTS(-2, 9), ints_of((LsShape){0}, (int64_t[]){1}))), 1,
           9);
    LsValueId y = node_one(&now, "Clip", 13, IN(input(SHAPE(3)), scalar(0)));
    ck_assert_str_eq(ls_op[made_by(y)->op]->name, "Relu");
}
END_TEST

START_TEST(a_bound_that_is_trained_or_computed_is_chosen_by_comparison)
{
    Node n = {0};
    LsValueId lo = ls_value_add(&cx, g, LS_V_PARAM, "lo", LS_REAL, &(LsShape){0}, numbers(1, 3));
    LsValueId x = input(SHAPE(3));
    LsValueId y = node_one(&n, "Clip", 13, IN(x, lo));
    ck_assert_int_eq(g->value[lo.i].kind, LS_V_PARAM);
    ck_assert_str_eq(ls_op[made_by(y)->op]->name, "Where");
    LsValueId sum =
        ls_append1(&cx, g, LS_OP_REDUCE_SUM, x, &(LsAttr){.reduce = {.axes = 1, .keep = true}});
    ck_assert_str_eq(ls_op[made_by(node_one(&n, "Clip", 13, IN(x, NONE, sum)))->op]->name, "Where");
    node_fails(&n, "Clip", 13, IN(x, x), LS_E_SHAPE, "a bound is one number");
}
END_TEST

START_TEST(powers_known_at_compile_time_become_products_and_roots)
{
    Node n = {0};
    static const struct { double p; const char *op; } known[] = {
        {2, "Mul"}, {3, "Mul"}, {0.5, "Sqrt"}, {-1, "Reciprocal"}, {2.5, "Pow"}};
    for (int k = 0; k < 5; k++) {
        LsValueId y = node_one(&n, "Pow", 13, IN(input(SHAPE(3)), scalar(known[k].p)));
        ck_assert_str_eq(ls_op[made_by(y)->op]->name, known[k].op);
    }
    LsValueId stored = ls_value_add(&cx, g, LS_V_PARAM, "p", LS_REAL, &(LsShape){0}, numbers(1, 3));
    node_one(&n, "Pow", 13, IN(input(SHAPE(3)), stored));
    ck_assert_int_eq(g->value[stored.i].kind, LS_V_PARAM);
    EXPECT(node_one(&n, "Pow", 15, IN(REALS(2, 3), INTS(3, 2))), 8, 9);
    EXPECT(node_one(&n, "Pow", 15, IN(INTS(2, 9), REALS(3, 0.5))), 8, 3);
}
END_TEST

START_TEST(casts_drop_what_changes_nothing_and_refuse_other_types)
{
    Node real = {0}, whole = {0}, truth = {0}, text = {0};
    LsValueId x = input(SHAPE(2));
    node_int(&real, "to", 11);
    ck_assert_uint_eq(node_one(&real, "Cast", 13, IN(x)).i, x.i);      /* double is real too */
    node_int(&whole, "to", 7);
    EXPECT(node_one(&whole, "Cast", 9, IN(REALS(2.7f, -2.7f))), 2, -2);
    node_int(&truth, "to", 9);
    EXPECT(node_one(&truth, "Cast", 9, IN(REALS(0, 0.2f, -3))), 0, 1, 1);
    EXPECT(node_one(&truth, "Cast", 9, IN(INTS(0, 256))), 0, 1);
    node_int(&text, "to", 8);
    node_fails(&text, "Cast", 13, IN(x), LS_E_UNSUPPORTED, "casts to string");
}
END_TEST

START_TEST(chains_of_sum_mean_min_and_max_take_any_number_of_operands)
{
    Node n = {0};
    LsValueId a = REALS(1, 8), b = REALS(3, 2), c = REALS(5);
    EXPECT(node_one(&n, "Sum", 8, IN(a, b, c)), 9, 15);
    EXPECT(node_one(&n, "Mean", 13, IN(a, b, c)), 3, 5);
    EXPECT(node_one(&n, "Max", 13, IN(a, b, c)), 5, 8);
    EXPECT(node_one(&n, "Min", 8, IN(a, b, c)), 1, 2);
    EXPECT(node_one(&n, "Sum", 8, IN(a)), 1, 8);
    node_fails(&n, "Sum", 8, 0, NULL, LS_E_PARSE, "has 0 operands, Sum takes at least 1");
}
END_TEST

START_TEST(activations_read_their_attributes)
{
    Node leaky = {0}, none = {0}, hard = {0}, tanh = {0}, bad = {0};
    LsValueId x = REALS(-1, 2);
    EXPECT(node_one(&none, "LeakyRelu", 6, IN(x)), -0.01, 2);
    node_float(&leaky, "alpha", 0.5f);
    EXPECT(node_one(&leaky, "LeakyRelu", 16, IN(x)), -0.5, 2);
    EXPECT(node_one(&leaky, "Elu", 6, IN(x)), 0.5 * (exp(-1) - 1), 2);
    EXPECT(node_one(&none, "Selu", 6, IN(x)), 1.0507010 * 1.6732632 * (exp(-1) - 1), 2 * 1.0507010);
    EXPECT(node_one(&none, "HardSigmoid", 6, IN(x)), 0.3, 0.9);
    node_float(&hard, "alpha", 0.25f);
    node_float(&hard, "beta", 0.25f);
    EXPECT(node_one(&hard, "HardSigmoid", 6, IN(x)), 0, 0.75);
    EXPECT(node_one(&none, "HardSwish", 14, IN(x)), -1.0 / 3, 5.0 / 3);
    EXPECT(node_one(&none, "Gelu", 20, IN(x)), -0.15865525, 1.9544997);
    node_string(&tanh, "approximate", "tanh");
    EXPECT(node_one(&tanh, "Gelu", 20, IN(x)), -0.15880801, 1.9545977);
    node_string(&bad, "approximate", "sigmoid");
    node_fails(&bad, "Gelu", 20, IN(x), LS_E_ATTR, "approximate is \"sigmoid\"");
}
END_TEST

static LsValueId grid(void) { return reals_of(SHAPE(2, 3), (float[]){1, 2, 3, 4, 5, 6}); }

START_TEST(reductions_take_axes_from_attributes_then_operands)
{
    Node attr = {0}, drop = {0}, none = {0}, noop = {0};
    node_ints(&attr, "axes", LIST(-1));
    EXPECT(node_one(&attr, "ReduceSum", 11, IN(grid())), 6, 15);
    EXPECT(node_one(&attr, "ReduceMean", 13, IN(grid())), 2, 5);
    EXPECT(node_one(&none, "ReduceSum", 13, IN(grid(), INTS(0))), 5, 7, 9);
    EXPECT(node_one(&none, "ReduceMean", 18, IN(grid(), INTS(0, 1))), 3.5);
    EXPECT(node_one(&none, "ReduceMax", 18, IN(grid())), 6);
    expect_shape(node_one(&none, "ReduceMax", 18, IN(grid())), SHAPE(1, 1));
    node_int(&drop, "keepdims", 0);
    expect_shape(node_one(&drop, "ReduceMin", 20, IN(grid(), INTS(1))), SHAPE(2));
    expect_shape(node_one(&drop, "ReduceMin", 20, IN(grid())), (LsShape){0});
    node_int(&noop, "noop_with_empty_axes", 1);
    LsValueId x = grid();
    ck_assert_uint_eq(node_one(&noop, "ReduceSum", 13, IN(x)).i, x.i);
    ck_assert_uint_eq(node_one(&noop, "ReduceLogSumExp", 18, IN(x)).i, x.i);
    node_fails(&none, "ReduceSum", 13, IN(x, INTS(2)), LS_E_ATTR, "axis 2 is outside");
}
END_TEST

START_TEST(composed_reductions_have_their_values)
{
    Node n = {0};
    LsValueId x = reals_of(SHAPE(1, 2), (float[]){-3, 4}), axis = INTS(1);
    EXPECT(node_one(&n, "ReduceL1", 18, IN(x, axis)), 7);
    EXPECT(node_one(&n, "ReduceL2", 18, IN(x, axis)), 5);
    EXPECT(node_one(&n, "ReduceSumSquare", 18, IN(x, axis)), 25);
    EXPECT(node_one(&n, "ReduceProd", 18, IN(x, axis)), -12);
    EXPECT(node_one(&n, "ReduceLogSum", 18, IN(REALS(1, 2), INTS(0))), log(3));
    EXPECT(node_one(&n, "ReduceLogSumExp", 18, IN(REALS(90, 91), INTS(0))), 91 + log(1 + exp(-1)));
    LsValueId image = reals_of(SHAPE(1, 2, 2), (float[]){1, 2, 3, 5});
    EXPECT(node_one(&n, "GlobalAveragePool", 1, IN(image)), 1.5, 4);
    LsValueId most = node_one(&n, "GlobalMaxPool", 1, IN(input(SHAPE(1, 2, 3, 2))));
    expect_shape(most, SHAPE(1, 2, 1, 1));
    ck_assert_str_eq(ls_op[made_by(most)->op]->name, "MaxPool");
    node_fails(&n, "GlobalMaxPool", 1, IN(x), LS_E_SHAPE, "the operand is 1x2");
}
END_TEST

/* Roots are rounded towards zero; 9007199254740993 is no double. */
START_TEST(reductions_of_constant_integers_are_integers)
{
    Node n = {0};
    LsValueId x = ints_of(SHAPE(1, 2), (int64_t[]){-3, 5}), axis = INTS(1);
    LsValueId large = ints_of(SHAPE(1, 2), (int64_t[]){-67108864, 67108865});
    EXPECT(node_one(&n, "ReduceL1", 18, IN(x, axis)), 8);
    EXPECT(node_one(&n, "ReduceL2", 18, IN(x, axis)), 5);
    EXPECT(node_one(&n, "ReduceSumSquare", 18, IN(x, axis)), 34);
    EXPECT(node_one(&n, "ReduceL2", 18, IN(large, axis)), 94906266);
    EXPECT(node_one(&n, "ReduceL2", 18, IN(INTS(3037000499), INTS(0))), 3037000499);
    ck_assert_int_eq(ls_type(g, node_one(&n, "ReduceL2", 18, IN(x, axis))), LS_I64);
    node_fails(&n, "ReduceLogSum", 18, IN(x, axis), LS_E_TYPE, "takes float");
    node_fails(&n, "ReduceLogSumExp", 18, IN(x, axis), LS_E_TYPE, "takes float");
    LsValueId batch = ls_value_add(&cx, g, LS_V_INPUT, "i", LS_I64, &SHAPE(2), NULL);
    node_fails(&n, "ReduceL2", 18, IN(batch, INTS(0)), LS_E_TYPE, "not known at compile time");
}
END_TEST

/* noop_with_empty_axes: the steps beside the sum remain. */
START_TEST(reductions_over_no_axis_still_square_and_take_roots)
{
    Node n = {0};
    node_int(&n, "noop_with_empty_axes", 1);
    LsValueId x = REALS(-3, 4);
    EXPECT(node_one(&n, "ReduceSumSquare", 18, IN(x)), 9, 16);
    EXPECT(node_one(&n, "ReduceL1", 18, IN(x)), 3, 4);
    EXPECT(node_one(&n, "ReduceL2", 18, IN(x)), 3, 4);
    EXPECT(node_one(&n, "ReduceLogSum", 18, IN(REALS(1, 2))), 0, log(2));
}
END_TEST

START_TEST(gradient_of_log_sum_exp_matches_differences)
{
    Node n = {0};
    LsValueId y = node_one(&n, "ReduceLogSumExp", 18, IN(param("x", SHAPE(2, 3)), INTS(1)));
    check_gradients(weighed(y));
}
END_TEST

START_TEST(shapes_sizes_and_ranges_are_constants)
{
    Node n = {0}, part = {0};
    LsValueId x = input(SHAPE(2, 3, 4));
    EXPECT(node_one(&n, "Shape", 13, IN(x)), 2, 3, 4);
    node_int(&part, "start", -2);
    node_int(&part, "end", 99);
    EXPECT(node_one(&part, "Shape", 15, IN(x)), 3, 4);
    EXPECT(node_one(&n, "Size", 13, IN(x)), 24);
    LsValueId a = ints_of((LsShape){0}, (int64_t[]){7}), b = ints_of((LsShape){0}, (int64_t[]){1});
    LsValueId step = ints_of((LsShape){0}, (int64_t[]){-3}),
              zero = ints_of((LsShape){0}, (int64_t[]){0});
    EXPECT(node_one(&n, "Range", 11, IN(a, b, step)), 7, 4);
    EXPECT(node_one(&n, "Range", 11, IN(scalar(0), scalar(1), scalar(0.4))), 0, 0.4, 0.8);
    node_fails(&n, "Range", 11, IN(a, b, zero), LS_E_SHAPE, "from 7 to 1 by 0 is too long");
    node_fails(&n, "Range", 11, IN(b, a, zero), LS_E_SHAPE, "from 1 to 7 by 0 is too long");
    EXPECT(node_one(&n, "ConstantOfShape", 9, IN(INTS(2, 2))), 0, 0, 0, 0);
    node_fails(&n, "ConstantOfShape", 9, IN(INTS(INT64_MAX, 4)), LS_E_SHAPE, "more elements than");
}
END_TEST

static LsValueId truth(bool v)
{
    uint8_t *data = ls_arena_alloc(cx.arena, 1, 1);
    *data = v;
    return ls_const_add(&cx, g, LS_BOOL, &(LsShape){0}, data);
}

START_TEST(dropout_works_in_training_only)
{
    Node old = {0}, n = {0}, bad = {0};
    LsValueId x = input(SHAPE(4)), out[2];
    node_float(&old, "ratio", 0.25f);
    LsValueId y = node_one(&old, "Dropout", 10, IN(x));
    ck_assert_str_eq(ls_op[made_by(y)->op]->name, "Dropout");
    ck_assert_double_eq(made_by(y)->attr.scalar.a, 0.25);
    double stream = made_by(y)->attr.scalar.b;
    y = node_one(&n, "Dropout", 12, IN(x, scalar(0.5), truth(true)));
    ck_assert_double_ne(made_by(y)->attr.scalar.b, stream);
    ck_assert_uint_eq(node_one(&n, "Dropout", 12, IN(x, scalar(0), truth(true))).i, x.i);
    ck_assert_uint_eq(node_one(&n, "Dropout", 13, IN(x, scalar(0.5), truth(false))).i, x.i);
    ck_assert_uint_eq(node_one(&n, "Dropout", 13, IN(x)).i, x.i);
    ck_assert(node_build(&n, "Dropout", 12, IN(x, scalar(0.5), truth(true)), 2, out, NULL));
    ck_assert_int_eq(ls_type(g, out[1]), LS_BOOL);
    node_float(&bad, "ratio", 1);
    node_fails(&bad, "Dropout", 10, IN(x), LS_E_ATTR, "ratio is 1");
    g->training = false;
    ck_assert_uint_eq(node_one(&old, "Dropout", 10, IN(x)).i, x.i);
}
END_TEST

static double stream_of_seed(int64_t seed)
{
    Node n = {0};
    node_int(&n, "seed", seed);
    LsValueId y = node_one(&n, "Dropout", 12, IN(input(SHAPE(4)), scalar(0.5), truth(true)));
    return made_by(y)->attr.scalar.b;
}

START_TEST(dropout_seeds_that_differ_by_one_are_different_streams_even_as_floats)
{
    ck_assert_double_eq(stream_of_seed(3), stream_of_seed(3));
    for (int64_t seed = 0; seed < 100; seed++)
        ck_assert((float)stream_of_seed(seed) != (float)stream_of_seed(seed + 1));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("ops_onnx");
    tcase_add_checked_fixture(tc, graph_open, graph_close);
    tcase_add_test(tc, clip_takes_bounds_from_attributes_then_operands);
    tcase_add_test(tc, a_bound_that_is_trained_or_computed_is_chosen_by_comparison);
    tcase_add_test(tc, powers_known_at_compile_time_become_products_and_roots);
    tcase_add_test(tc, casts_drop_what_changes_nothing_and_refuse_other_types);
    tcase_add_test(tc, chains_of_sum_mean_min_and_max_take_any_number_of_operands);
    tcase_add_test(tc, activations_read_their_attributes);
    tcase_add_test(tc, reductions_take_axes_from_attributes_then_operands);
    tcase_add_test(tc, composed_reductions_have_their_values);
    tcase_add_test(tc, reductions_of_constant_integers_are_integers);
    tcase_add_test(tc, reductions_over_no_axis_still_square_and_take_roots);
    tcase_add_test(tc, gradient_of_log_sum_exp_matches_differences);
    tcase_add_test(tc, shapes_sizes_and_ranges_are_constants);
    tcase_add_test(tc, dropout_works_in_training_only);
    tcase_add_test(tc, dropout_seeds_that_differ_by_one_are_different_streams_even_as_floats);
    return run_tests("ops_onnx", tc);
}
