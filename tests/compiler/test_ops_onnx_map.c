/* tests/compiler/test_ops_onnx_map.c -- ONNX rows of trigonometry, tests of numbers, bits,
 * remainders, gated activations, norms, determinants and audio constants: values, gradients, and
 * what they refuse. */
#include "tests/support/onnx_node.h"
#include "tests/support/suite.h"

#define INF INFINITY

static LsValueId i32(int n, const int32_t *v)
{
    int32_t *data = ls_arena_alloc(cx.arena, (size_t)n, sizeof *data);
    memcpy(data, v, (size_t)n * sizeof *data);
    return ls_const_add(&cx, g, LS_I32, &SHAPE(n), data);
}

START_TEST(trigonometric_functions_have_their_values)
{
    static const struct { const char *op; double (*f)(double); float x;
    } row[] = {{"Sin", sin, 2},     {"Cos", cos, 2},       {"Tan", tan, 2},
               {"Asin", asin, .5f}, {"Acos", acos, .5f},   {"Atan", atan, -3},
               {"Sinh", sinh, 2},   {"Cosh", cosh, 2},     {"Asinh", asinh, -3},
               {"Acosh", acosh, 3}, {"Atanh", atanh, -.5f}};
    Node n = {0};
    for (size_t k = 0; k < sizeof row / sizeof *row; k++)
        EXPECT(node_one(&n, row[k].op, 9, IN(REALS(row[k].x))), row[k].f(row[k].x));
}
END_TEST

START_TEST(nan_and_infinities_are_told_apart)
{
    Node n = {0}, low = {0}, high = {0}, none = {0};
    LsValueId x = REALS(NAN, 1, INF, -INF);
    node_int(&low, "detect_positive", 0);
    node_int(&high, "detect_negative", 0);
    node_int(&none, "detect_positive", 0);
    node_int(&none, "detect_negative", 0);
    EXPECT(node_one(&n, "IsNaN", 9, IN(x)), 1, 0, 0, 0);
    EXPECT(node_one(&n, "IsInf", 10, IN(x)), 0, 0, 1, 1);
    EXPECT(node_one(&low, "IsInf", 20, IN(x)), 0, 0, 0, 1);
    EXPECT(node_one(&high, "IsInf", 10, IN(x)), 0, 0, 1, 0);
    EXPECT(node_one(&none, "IsInf", 10, IN(x)), 0, 0, 0, 0);
    node_fails(&n, "IsNaN", 13, IN(INTS(1)), LS_E_TYPE, "operand 0 is int64, IsNaN takes float");
    node_fails(&n, "IsInf", 13, IN(INTS(1)), LS_E_TYPE, "IsInf takes float");
}
END_TEST

START_TEST(bits_are_combined_and_shifted)
{
    Node n = {0}, left = {0}, right = {0};
    LsValueId a = INTS(12, 10), b = INTS(10, -1), s = INTS(1, 64);
    node_string(&left, "direction", "LEFT");
    node_string(&right, "direction", "RIGHT");
    EXPECT(node_one(&n, "BitwiseAnd", 18, IN(a, b)), 8, 10);
    EXPECT(node_one(&n, "BitwiseOr", 18, IN(a, b)), 14, -1);
    EXPECT(node_one(&n, "BitwiseXor", 18, IN(a, b)), 6, -11);
    EXPECT(node_one(&n, "BitwiseNot", 18, IN(a)), -13, -11);
    EXPECT(node_one(&left, "BitShift", 11, IN(a, s)), 24, 0);
    EXPECT(node_one(&right, "BitShift", 11, IN(a, s)), 6, 0);
    EXPECT(node_one(&right, "BitShift", 28, IN(INTS(-8, -8, 8), INTS(1, 64, -1))), -4, -1, 0);
    node_fails(&n, "BitShift", 11, IN(a, s), LS_E_ATTR, "direction is \"\"");
    node_fails(&n, "BitwiseAnd", 18, IN(REALS(1), REALS(2)), LS_E_TYPE, "the operand is float");
    node_fails(&n, "BitwiseOr", 18, IN(a, i32(2, (int32_t[]){1, 2})), LS_E_TYPE,
               "operand 1 is int32");
}
END_TEST

START_TEST(remainders_have_the_sign_of_divisor_or_dividend)
{
    Node floor = {0}, trunc = {0};
    LsValueId a = REALS(-4.5f, 7.25f, -6), b = REALS(2, -3, 3);
    node_int(&trunc, "fmod", 1);
    EXPECT(node_one(&trunc, "Mod", 13, IN(a, b)), -0.5, 1.25, 0);
    EXPECT(node_one(&floor, "Mod", 28, IN(a, b)), 1.5, -1.75, 0);
    EXPECT(node_one(&floor, "Mod", 10, IN(INTS(-4, 7), INTS(3, -3))), 2, -2);
    EXPECT(node_one(&trunc, "Mod", 10, IN(INTS(-4, 7), INTS(3, -3))), -1, 1);
    LsValueId y = node_one(&trunc, "Mod", 13, IN(param("a", SHAPE(2, 5)), constant(SHAPE(5))));
    check_gradients(weighed(y));
}
END_TEST

START_TEST(gated_activations_have_their_values_and_gradients)
{
    Node n = {0}, half = {0};
    node_float(&half, "alpha", 0.5f);
    double s = 1 / (1 + exp(-1.0)), t = 2 / (1 + exp(-2.0));
    EXPECT(node_one(&half, "Swish", 24, IN(REALS(2))), 2 * s);
    EXPECT(node_one(&n, "Swish", 24, IN(REALS(2))), t);
    EXPECT(node_one(&n, "SwiGLU", 28, IN(REALS(2), REALS(3))), 3 * t);
    EXPECT(node_one(&n, "Mish", 18, IN(REALS(-1, 40))), -tanh(log1p(exp(-1.0))), 40);
    node_fails(&n, "SwiGLU", 28, IN(REALS(2), REALS(1, 2)), LS_E_SHAPE, "A is 1, B is 2");
    LsValueId x = param("x", SHAPE(3, 4)),
              y = node_one(&half, "SwiGLU", 28, IN(x, param("b", SHAPE(3, 4))));
    y = ls_append2(&cx, g, LS_OP_ADD, y, node_one(&n, "Mish", 22, IN(x)), NULL);
    check_gradients(weighed(y));
}
END_TEST

START_TEST(an_elu_of_negative_alpha_falls_on_both_sides)
{
    Node n = {0};
    node_float(&n, "alpha", -2);
    EXPECT(node_one(&n, "Elu", 6, IN(REALS(-1, 3))), -2 * (exp(-1) - 1), 3);
    check_gradients(weighed(node_one(&n, "Elu", 6, IN(param("x", SHAPE(3, 5))))));
}
END_TEST

START_TEST(the_slope_of_softsign_does_not_cancel_for_large_operands)
{
    Node n = {0};
    LsValueId x = ls_value_add(&cx, g, LS_V_PARAM, "x", LS_REAL, &SHAPE(1), (float[]){1e8f});
    g->objective.loss = ls_reshape(&cx, g, node_one(&n, "Softsign", 1, IN(x)), &(LsShape){0});
    ck_assert(ls_autodiff(&cx, g));
    Eval e = eval_new(g);
    eval_run(&e, 1, g->nnode);
    ck_assert_double_eq_tol(e.v[g->grad[0].grad.i][0], 1e-16, 1e-22);
}
END_TEST

START_TEST(rms_normalization_scales_to_a_mean_square_of_one)
{
    Node n = {0}, first = {0}, bad = {0};
    LsValueId x = reals_of(SHAPE(1, 2), (float[]){3, 4});
    node_float(&n, "epsilon", 0);
    double rms = sqrt(12.5);
    EXPECT(node_one(&n, "RMSNormalization", 23, IN(x, REALS(1, 2))), 3 / rms, 8 / rms);
    node_int(&first, "axis", 0);
    LsValueId y = node_one(&first, "RMSNormalization", 23,
                           IN(param("x", SHAPE(2, 3)), param("s", SHAPE(2, 3))));
    check_gradients(weighed(y));
    node_int(&bad, "axis", 2);
    node_fails(&bad, "RMSNormalization", 23, IN(x, REALS(1)), LS_E_ATTR, "axis 2 is outside");
    node_fails(&n, "RMSNormalization", 23, IN(x, REALS(1, 2, 3)), LS_E_SHAPE, "does not fit X");
}
END_TEST

static double *run(LsValueId v)
{
    Eval e = eval_new(g);
    eval_run(&e, 1, g->nnode);
    return e.v[v.i];
}

START_TEST(a_normalized_zero_vector_is_zero_with_gradient_zero)
{
    for (int p = 1; p <= 2; p++) {
        Node n = {0};
        node_int(&n, "p", p);
        node_int(&n, "axis", 1);
        EXPECT(
            node_one(&n, "LpNormalization", 22, IN(reals_of(SHAPE(2, 2), (float[]){3, -4, 0, 0}))),
            p == 1 ? 3.0 / 7 : 0.6, p == 1 ? -4.0 / 7 : -0.8, 0, 0);
    }
    Node n = {0}, third = {0};
    LsValueId x =
        ls_value_add(&cx, g, LS_V_PARAM, "x", LS_REAL, &SHAPE(2, 2), (float[]){3, -4, 0, 0});
    g->objective.loss = weighed(node_one(&n, "LpNormalization", 1, IN(x)));
    ck_assert(ls_autodiff(&cx, g));
    double *d = run(g->grad[0].grad);
    ck_assert(isfinite(d[0]) && d[0] != 0 && d[2] == 0 && d[3] == 0);
    node_int(&third, "p", 3);
    node_fails(&third, "LpNormalization", 22, IN(x), LS_E_ATTR, "p is 3, it is 1 or 2");
}
END_TEST

START_TEST(lp_pools_take_norms_of_windows_and_count_padding_as_zero)
{
    LsValueId x = reals_of(SHAPE(1, 1, 3), (float[]){3, -4, 0});
    for (int p = 1; p <= 3; p++) {
        Node n = {0}, all = {0};
        node_int(&n, "p", p);
        node_int(&all, "p", p);
        node_ints(&n, "kernel_shape", LIST(2));
        node_ints(&n, "pads", LIST(1, 0));
        node_int(&n, "ceil_mode", 1);
        node_ints(&n, "strides", LIST(3));
        double *y = run(node_one(&n, "LpPool", 22, IN(x)));     /* windows (0, 3) and (0, beyond) */
        ck_assert_double_eq_tol(y[0], 3, 1e-6);
        ck_assert_double_eq_tol(y[1], 0, 1e-6);
        double norm = pow(pow(3, p) + pow(4, p), 1.0 / p);
        EXPECT(node_one(&all, "GlobalLpPool", 2, IN(x)), norm);
    }
    Node n = {0}, bad = {0};
    node_ints(&n, "kernel_shape", LIST(2));
    check_gradients(weighed(node_one(&n, "LpPool", 11, IN(param("x", SHAPE(1, 2, 5))))));
    node_int(&bad, "p", 0);
    node_fails(&bad, "GlobalLpPool", 2, IN(x), LS_E_ATTR, "p is 0");
    node_fails(&bad, "LpPool", 2, IN(REALS(1)), LS_E_SHAPE, "takes N x C x spatial axes");
}
END_TEST

START_TEST(a_window_of_zeros_has_gradient_zero)
{
    Node n = {0};
    node_ints(&n, "kernel_shape", LIST(2));
    LsValueId x = ls_value_add(&cx, g, LS_V_PARAM, "x", LS_REAL, &SHAPE(1, 1, 2), (float[]){0, 0});
    g->objective.loss = weighed(node_one(&n, "LpPool", 18, IN(x)));
    ck_assert(ls_autodiff(&cx, g));
    ck_assert_double_eq(run(g->grad[0].grad)[0], 0);
}
END_TEST

START_TEST(determinants_of_small_matrices_are_expanded)
{
    Node n = {0};
    static const float one[] = {5}, two[] = {1, 2, 3, 4}, three[] = {0, 2, 1, 3, 0, 4, 1, 5, 0},
                       four[] = {0, 1, 0, 0, 0, 0, 0, 2, 3, 0, 0, 0, 0, 0, 4, 0};
    EXPECT(node_one(&n, "Det", 11, IN(reals_of(SHAPE(1, 1), one))), 5);
    EXPECT(node_one(&n, "Det", 11, IN(reals_of(SHAPE(2, 2), two))), -2);
    EXPECT(node_one(&n, "Det", 22, IN(reals_of(SHAPE(3, 3), three))), 23);
    EXPECT(node_one(&n, "Det", 22, IN(reals_of(SHAPE(4, 4), four))), -24);
    expect_shape(node_one(&n, "Det", 11, IN(input(SHAPE(2, 5, 3, 3)))), SHAPE(2, 5));
    check_gradients(weighed(node_one(&n, "Det", 11, IN(param("x", SHAPE(2, 5, 5))))));
    node_fails(&n, "Det", 11, IN(input(SHAPE(2, 3))), LS_E_SHAPE, "it needs square matrices");
    node_fails(&n, "Det", 11, IN(input(SHAPE(7, 7))), LS_E_UNSUPPORTED, "at most 6 are supported");
}
END_TEST

START_TEST(a_singular_matrix_has_the_gradient_of_its_cofactors)
{
    Node n = {0};
    LsValueId x =
        ls_value_add(&cx, g, LS_V_PARAM, "x", LS_REAL, &SHAPE(2, 2), (float[]){1, 2, 2, 4});
    g->objective.loss = node_one(&n, "Det", 11, IN(x));
    ck_assert(ls_autodiff(&cx, g));
    double *d = run(g->grad[0].grad);
    ck_assert(d[0] == 4 && d[1] == -2 && d[2] == -2 && d[3] == 1);
}
END_TEST

START_TEST(windows_and_mel_weights_are_constants)
{
    Node n = {0}, symmetric = {0};
    LsValueId four = ints_of((LsShape){0}, (int64_t[]){4}),
              three = ints_of((LsShape){0}, (int64_t[]){3});
    node_int(&symmetric, "periodic", 0);
    EXPECT(node_one(&n, "HannWindow", 17, IN(four)), 0, 0.5, 1, 0.5);
    EXPECT(node_one(&symmetric, "HannWindow", 17, IN(three)), 0, 1, 0);
    EXPECT(node_one(&n, "HammingWindow", 17, IN(four)), 4.0 / 46, 25.0 / 46, 1, 25.0 / 46);
    EXPECT(node_one(&n, "BlackmanWindow", 17, IN(four)), 0, 0.34, 1, 0.34);
    LsValueId rate = ints_of((LsShape){0}, (int64_t[]){8192}),
              bins = ints_of((LsShape){0}, (int64_t[]){16});
    LsValueId mel =
        node_one(&n, "MelWeightMatrix", 17, IN(four, bins, rate, scalar(0), scalar(4096)));
    expect_shape(mel, SHAPE(9, 4));
    ck_assert(ls_const_at(g, mel, 0) == 1 && ls_const_at(g, mel, 5) == 1
              && ls_const_at(g, mel, 19) == 0.5);
    node_fails(&n, "HannWindow", 17, IN(INTS(-1)), LS_E_SHAPE, "operand 0 is no number of 0 to");
    node_fails(&n, "MelWeightMatrix", 17, IN(four, bins, rate, scalar(0), scalar(5000)), LS_E_ATTR,
               "edges 0 and 5000");
}
END_TEST

START_TEST(eye_like_has_ones_on_a_diagonal)
{
    Node n = {0}, below = {0}, whole = {0};
    node_int(&below, "k", -1);
    node_int(&whole, "dtype", 7);
    EXPECT(node_one(&n, "EyeLike", 9, IN(input(SHAPE(2, 3)))), 1, 0, 0, 0, 1, 0);
    EXPECT(node_one(&below, "EyeLike", 22, IN(input(SHAPE(2, 2)))), 0, 0, 1, 0);
    ck_assert_int_eq(ls_type(g, node_one(&whole, "EyeLike", 9, IN(input(SHAPE(2, 2))))), LS_I64);
    node_fails(&n, "EyeLike", 9, IN(input(SHAPE(2))), LS_E_SHAPE, "it needs a matrix");
}
END_TEST

START_TEST(extremes_of_bools_are_any_and_all)
{
    Node n = {0};
    uint8_t *bits = memcpy(ls_arena_alloc(cx.arena, 4, 1), (uint8_t[]){1, 0, 1, 1}, 4);
    LsValueId x = ls_const_add(&cx, g, LS_BOOL, &SHAPE(2, 2), bits), axis = INTS(1);
    EXPECT(node_one(&n, "ReduceMax", 20, IN(x, axis)), 1, 1);
    LsValueId all = node_one(&n, "ReduceMin", 20, IN(x, axis));
    EXPECT(all, 0, 1);
    ck_assert_int_eq(ls_type(g, all), LS_BOOL);
}
END_TEST

START_TEST(optional_values_that_are_there_pass)
{
    Node n = {0};
    LsValueId x = input(SHAPE(3));
    ck_assert_uint_eq(node_one(&n, "Optional", 15, IN(x)).i, x.i);
    ck_assert_uint_eq(node_one(&n, "OptionalGetElement", 18, IN(x)).i, x.i);
    EXPECT(node_one(&n, "OptionalHasElement", 18, IN(x)), 1);
    EXPECT(node_one(&n, "OptionalHasElement", 18, 0, NULL), 0);
    node_fails(&n, "Optional", 15, 0, NULL, LS_E_UNSUPPORTED, "without an element");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("ops_onnx_map");
    tcase_add_checked_fixture(tc, graph_open, graph_close);
    tcase_add_test(tc, trigonometric_functions_have_their_values);
    tcase_add_test(tc, nan_and_infinities_are_told_apart);
    tcase_add_test(tc, bits_are_combined_and_shifted);
    tcase_add_test(tc, remainders_have_the_sign_of_divisor_or_dividend);
    tcase_add_test(tc, gated_activations_have_their_values_and_gradients);
    tcase_add_test(tc, an_elu_of_negative_alpha_falls_on_both_sides);
    tcase_add_test(tc, the_slope_of_softsign_does_not_cancel_for_large_operands);
    tcase_add_test(tc, rms_normalization_scales_to_a_mean_square_of_one);
    tcase_add_test(tc, a_normalized_zero_vector_is_zero_with_gradient_zero);
    tcase_add_test(tc, lp_pools_take_norms_of_windows_and_count_padding_as_zero);
    tcase_add_test(tc, a_window_of_zeros_has_gradient_zero);
    tcase_add_test(tc, determinants_of_small_matrices_are_expanded);
    tcase_add_test(tc, a_singular_matrix_has_the_gradient_of_its_cofactors);
    tcase_add_test(tc, windows_and_mel_weights_are_constants);
    tcase_add_test(tc, eye_like_has_ones_on_a_diagonal);
    tcase_add_test(tc, extremes_of_bools_are_any_and_all);
    tcase_add_test(tc, optional_values_that_are_there_pass);
    return run_tests("ops_onnx_map", tc);
}
