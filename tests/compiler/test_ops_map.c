/* tests/compiler/test_ops_map.c -- pointwise rows and reductions: gradients against central
 * differences, read-sets, shapes, messages. */
#include "tests/support/gradient.h"
#include "tests/support/suite.h"

/* x in about [-4, 4), so that every piece of a piecewise row is reached. */
static LsValueId wide(LsShape s)
{
    return ls_append2(&cx, g, LS_OP_MUL, param("x", s), ls_const_real(&cx, g, 4), NULL);
}

/* In [0.5, 1.5). */
static LsValueId positive(LsShape s)
{
    LsValueId half = ls_append2(&cx, g, LS_OP_MUL, param("p", s), ls_const_real(&cx, g, 0.5), NULL);
    return ls_append2(&cx, g, LS_OP_ADD, half, ls_const_real(&cx, g, 1), NULL);
}

static void check_unary(LsOpCode op, bool of_positive, double a, double b)
{
    graph_open();
    LsValueId x = of_positive ? positive(SHAPE(3, 2, 5)) : wide(SHAPE(3, 2, 5));
    LsValueId y = ls_append1(&cx, g, op, x, &(LsAttr){.scalar = {.a = a, .b = b}});
    ck_assert(ls_shape_same(ls_shape(g, y), &SHAPE(3, 2, 5)));
    check_gradients(weighed(y));
    graph_close();
}

START_TEST(gradients_of_one_operand_match_differences)
{
    check_unary(LS_OP_NEG, false, 0, 0);
    check_unary(LS_OP_ABS, false, 0, 0);
    check_unary(LS_OP_EXP, false, 0, 0);
    check_unary(LS_OP_LOG, true, 0, 0);
    check_unary(LS_OP_SQRT, true, 0, 0);
    check_unary(LS_OP_RECIPROCAL, true, 0, 0);
}
END_TEST

/* x / 5 lies in the domain of the inverses, 1 + x^2 in that of Acosh. */
static void check_trig(LsOpCode op, double scale)
{
    graph_open();
    LsValueId x =
        ls_append2(&cx, g, LS_OP_MUL, wide(SHAPE(3, 2, 5)), ls_const_real(&cx, g, scale), NULL);
    if (op == LS_OP_ACOSH)
        x = ls_append2(&cx, g, LS_OP_ADD, ls_append2(&cx, g, LS_OP_MUL, x, x, NULL),
                       ls_const_real(&cx, g, 1.5), NULL);
    check_gradients(weighed(ls_append1(&cx, g, op, x, NULL)));
    graph_close();
}

START_TEST(gradients_of_trigonometric_functions_match_differences)
{
    static const LsOpCode op[] = {LS_OP_SIN,  LS_OP_COS,   LS_OP_ATAN,  LS_OP_SINH,
                                  LS_OP_COSH, LS_OP_ASINH, LS_OP_ACOSH, LS_OP_SOFTSIGN};
    static const LsOpCode narrow[] = {LS_OP_TAN, LS_OP_ASIN, LS_OP_ACOS, LS_OP_ATANH};
    for (size_t k = 0; k < sizeof op / sizeof *op; k++)
        check_trig(op[k], 1);
    for (size_t k = 0; k < sizeof narrow / sizeof *narrow; k++)
        check_trig(narrow[k], 0.2);
}
END_TEST

START_TEST(gradients_of_remainders_reach_both_operands)
{
    static const LsOpCode op[] = {LS_OP_FMOD, LS_OP_FLOOR_MOD};
    for (int k = 0; k < 2; k++) {
        graph_open();
        check_gradients(
            weighed(ls_append2(&cx, g, op[k], wide(SHAPE(4, 5)), positive(SHAPE(5)), NULL)));
        graph_close();
    }
}
END_TEST

START_TEST(steps_have_gradient_zero)
{
    static const LsOpCode op[] = {LS_OP_SIGN, LS_OP_FLOOR, LS_OP_CEIL, LS_OP_ROUND};
    for (size_t k = 0; k < sizeof op / sizeof *op; k++) {
        graph_open();
        LsValueId x = wide(SHAPE(3, 5)), y = ls_append1(&cx, g, op[k], x, NULL);
        check_gradients(weighed(ls_append2(&cx, g, LS_OP_ADD, x, y, NULL)));
        graph_close();
    }
}
END_TEST

START_TEST(gradients_of_activations_match_differences)
{
    check_unary(LS_OP_RELU, false, 0, 0);
    check_unary(LS_OP_LEAKY_RELU, false, 0.1, 0);
    check_unary(LS_OP_LEAKY_RELU, false, 0, 0);
    check_unary(LS_OP_LEAKY_RELU, false, -0.5, 0);
    check_unary(LS_OP_CLIP, false, -1.5, 2);
    check_unary(LS_OP_CLIP, false, -INFINITY, 0.5);
    check_unary(LS_OP_HARD_SIGMOID, false, 0.2, 0.5);
    check_unary(LS_OP_HARD_SIGMOID, false, 1.0 / 6, 0.5);
    check_unary(LS_OP_HARD_SWISH, false, 0, 0);
    check_unary(LS_OP_SIGMOID, false, 0, 0);
    check_unary(LS_OP_TANH, false, 0, 0);
    check_unary(LS_OP_SOFTPLUS, false, 0, 0);
    check_unary(LS_OP_ELU, false, 1.5, 0);
    check_unary(LS_OP_ERF, false, 0, 0);
    check_unary(LS_OP_GELU, false, 0, 0);
    check_unary(LS_OP_GELU_TANH, false, 0, 0);
}
END_TEST

static void check_binary(LsOpCode op, LsShape a, LsShape b)
{
    graph_open();
    LsValueId x = positive(a);
    LsValueId y = ls_append2(&cx, g, op, x, positive(b), NULL);
    check_gradients(weighed(y));
    graph_close();
}

START_TEST(gradients_of_two_operands_match_differences_however_they_broadcast)
{
    static const LsOpCode op[] = {LS_OP_ADD, LS_OP_SUB, LS_OP_MUL, LS_OP_DIV, LS_OP_POW, LS_OP_MIN,
                                  LS_OP_MAX};
    for (size_t k = 0; k < sizeof op / sizeof *op; k++) {
        check_binary(op[k], SHAPE(2, 3, 4), SHAPE(2, 3, 4));
        check_binary(op[k], SHAPE(2, 3, 4), SHAPE(4));
        check_binary(op[k], SHAPE(3, 1), SHAPE(2, 1, 4));
        check_binary(op[k], (LsShape){0}, SHAPE(2, 3));
        check_binary(op[k], SHAPE(1, 1, 2), SHAPE(1, 2));
    }
}
END_TEST

START_TEST(a_square_has_one_gradient_of_its_factor)
{
    graph_open();
    LsValueId x = wide(SHAPE(3, 4));
    check_gradients(weighed(ls_append2(&cx, g, LS_OP_MUL, x, x, NULL)));
    graph_close();
}
END_TEST

START_TEST(gradients_of_prelu_reach_operand_and_slope)
{
    graph_open();
    LsValueId x = wide(SHAPE(2, 3, 2, 2));
    check_gradients(
        weighed(ls_append2(&cx, g, LS_OP_PRELU, x, param("slope", SHAPE(3, 1, 1)), NULL)));
    graph_close();
}
END_TEST

START_TEST(gradients_of_where_go_to_the_chosen_side)
{
    graph_open();
    LsValueId x = wide(SHAPE(3, 4)), y = wide(SHAPE(4));
    LsValueId c = ls_append2(&cx, g, LS_OP_GREATER, x, ls_const_real(&cx, g, 0.25), NULL);
    ck_assert_int_eq(ls_type(g, c), LS_BOOL);
    check_gradients(weighed(ls_append3(&cx, g, LS_OP_WHERE, c, x, y, NULL)));
    graph_close();
}
END_TEST

START_TEST(gradient_of_expand_sums_the_copies)
{
    graph_open();
    LsValueId x = wide(SHAPE(3, 1));
    LsAttr at = {.shape = {SHAPE(2, 3, 4)}};
    check_gradients(weighed(ls_append1(&cx, g, LS_OP_EXPAND, x, &at)));
    graph_close();
}
END_TEST

static void check_reduce(LsOpCode op, uint32_t axes)
{
    graph_open();
    LsValueId y = ls_append1(&cx, g, op, wide(SHAPE(2, 3, 4)),
                             &(LsAttr){.reduce = {.axes = axes, .keep = true}});
    for (int k = 0; k < 3; k++)
        ck_assert_int_eq(ls_shape(g, y)->dim[k], axes >> k & 1 ? 1 : 2 + k);
    check_gradients(weighed(y));
    graph_close();
}

START_TEST(gradients_of_reductions_match_differences)
{
    static const LsOpCode op[] = {LS_OP_REDUCE_SUM, LS_OP_REDUCE_MEAN, LS_OP_REDUCE_MAX,
                                  LS_OP_REDUCE_MIN, LS_OP_REDUCE_PROD, LS_OP_REDUCE_SUM_SQUARE};
    for (size_t k = 0; k < sizeof op / sizeof *op; k++)
        for (uint32_t axes = 1; axes < 8; axes++)
            check_reduce(op[k], axes);
}
END_TEST

START_TEST(gradient_of_a_product_is_right_where_factors_are_zero)
{
    for (int zeros = 1; zeros < 3; zeros++) {
        graph_open();
        LsValueId x = param("x", SHAPE(2, 4));
        float *v = (float *)g->value[x.i].data;
        for (int k = 0; k < zeros; k++)
            v[2 * k] = 0;
        LsAttr at = {.reduce = {.axes = 2, .keep = true}};
        check_gradients(weighed(ls_append1(&cx, g, LS_OP_REDUCE_PROD, x, &at)));
        graph_close();
    }
}
END_TEST

/* Gradients of x and y where z = op(x, y) is summed; x and y have equal elements. */
static void tied(LsOpCode op, bool reduce, double want)
{
    graph_open();
    LsValueId x = param("x", SHAPE(4)), y = reduce ? x : param("y", SHAPE(4));
    float *v = (float *)g->value[x.i].data;
    for (int k = 0; k < 4; k++)
        v[k] = 3;
    g->value[y.i].data = v;
    LsValueId z = reduce ? ls_append1(&cx, g, op, x, &(LsAttr){.reduce = {.axes = 1, .keep = true}})
                         : ls_append2(&cx, g, op, x, y, NULL);
    if (!reduce)
        z = ls_append1(&cx, g, LS_OP_REDUCE_SUM, z, &(LsAttr){.reduce = {.axes = 1, .keep = true}});
    g->objective.loss = ls_reshape(&cx, g, z, &(LsShape){0});
    ck_assert(ls_autodiff(&cx, g));
    Eval e = eval_new(g);
    eval_run(&e, 1, g->nnode);
    for (uint32_t i = 0; i < g->ngrad; i++)
        for (int k = 0; k < 4; k++)
            ck_assert_double_eq(e.v[g->grad[i].grad.i][k], want);
    graph_close();
}

START_TEST(ties_share_the_gradient)
{
    tied(LS_OP_MAX, false, 0.5);
    tied(LS_OP_MIN, false, 0.5);
    tied(LS_OP_REDUCE_MAX, true, 0.25);
    tied(LS_OP_REDUCE_MIN, true, 0.25);
}
END_TEST

/* Whether some node of the backward part reads v. */
static bool backward_reads(LsValueId v, uint32_t nforward)
{
    for (uint32_t i = nforward; i < g->nnode; i++)
        for (int k = 0; k < g->node[i].nin; k++)
            if (ls_in(g, (LsNodeId){i}, k).i == v.i)
                return true;
    return false;
}

static void check_reads(LsOpCode op, double a, double b, bool operand, bool result)
{
    graph_open();
    LsValueId x = ls_append1(&cx, g, LS_OP_EXP, param("x", SHAPE(2, 3)), NULL);
    x = ls_append1(&cx, g, LS_OP_NEG, x, NULL);         /* a value that nothing else keeps */
    LsValueId y = ls_append1(&cx, g, op, x, &(LsAttr){.scalar = {.a = a, .b = b}});
    g->objective.loss = weighed(y);
    uint32_t nforward = g->nnode;
    ck_assert(ls_autodiff(&cx, g));
    ck_assert_msg(backward_reads(x, nforward) == operand && backward_reads(y, nforward) == result,
                  "the gradient of %s reads other values", ls_op[op]->name);
    graph_close();
}

START_TEST(gradients_read_no_more_than_they_need)
{
    static const LsOpCode by_result[] = {
        LS_OP_RELU, LS_OP_LEAKY_RELU, LS_OP_CLIP, LS_OP_HARD_SIGMOID, LS_OP_SIGMOID,
        LS_OP_TANH, LS_OP_ELU,        LS_OP_EXP,  LS_OP_SQRT,         LS_OP_RECIPROCAL};
    static const LsOpCode by_operand[] = {LS_OP_HARD_SWISH, LS_OP_SOFTPLUS, LS_OP_ERF, LS_OP_GELU,
        LS_OP_GELU_TANH, LS_OP_ABS, LS_OP_LOG};
    for (size_t k = 0; k < sizeof by_result / sizeof *by_result; k++)
        check_reads(by_result[k], 0.5, 2, false, true);
    for (size_t k = 0; k < sizeof by_operand / sizeof *by_operand; k++)
        check_reads(by_operand[k], 0.5, 2, true, false);
    check_reads(LS_OP_NEG, 0, 0, false, false);
    check_reads(LS_OP_DROPOUT, 0.5, 2, false, false);
    check_reads(LS_OP_LEAKY_RELU, -0.5, 2, true, false);        /* the sign of the result is lost */
}
END_TEST

START_TEST(sums_and_means_read_nothing_in_the_backward_part)
{
    graph_open();
    LsValueId a = ls_append1(&cx, g, LS_OP_NEG, param("a", SHAPE(2, 3)), NULL);
    LsValueId b = ls_append1(&cx, g, LS_OP_NEG, param("b", SHAPE(3)), NULL);
    LsValueId y = ls_append2(&cx, g, LS_OP_ADD, a, b, NULL);
    LsValueId m =
        ls_append1(&cx, g, LS_OP_REDUCE_MEAN, y, &(LsAttr){.reduce = {.axes = 3, .keep = true}});
    g->objective.loss = ls_reshape(&cx, g, m, &(LsShape){0});
    uint32_t nforward = g->nnode;
    ck_assert(ls_autodiff(&cx, g));
    ck_assert(!backward_reads(a, nforward) && !backward_reads(b, nforward)
              && !backward_reads(y, nforward) && !backward_reads(m, nforward));
    graph_close();
}
END_TEST

START_TEST(dropout_gradient_draws_from_the_same_stream)
{
    graph_open();
    LsAttr at = {.scalar = {.a = 0.3, .b = 77}};
    g->objective.loss = weighed(ls_append1(&cx, g, LS_OP_DROPOUT, param("x", SHAPE(2, 3)), &at));
    uint32_t nforward = g->nnode, found = 0;
    ck_assert(ls_autodiff(&cx, g));
    for (uint32_t i = nforward; i < g->nnode; i++)
        if (g->node[i].op == LS_OP_DROPOUT) {
            found++;
            ck_assert_double_eq(g->node[i].attr.scalar.a, 0.3);
            ck_assert_double_eq(g->node[i].attr.scalar.b, 77);
        }
    ck_assert_uint_eq(found, 1);
    graph_close();
}
END_TEST

static LsValueId integers(LsShape s)
{
    return ls_value_add(&cx, g, LS_V_INPUT, "i", LS_I64, &s, NULL);
}

START_TEST(shapes_and_types_that_do_not_fit_are_named)
{
    graph_open();
    LsValueId x = param("x", SHAPE(2, 3)), y = param("y", SHAPE(2, 4)), i = integers(SHAPE(2, 3));
    refused(LS_OP_ADD, 2, (LsValueId[]){x, y}, NULL, LS_E_SHAPE, "2x3 and 2x4 do not broadcast");
    refused(LS_OP_MUL, 2, (LsValueId[]){x, i}, NULL, LS_E_TYPE,
            "operand 0 is float, operand 1 is int64");
    refused(LS_OP_EXP, 1, &i, NULL, LS_E_TYPE, "the operand is int64, Exp takes float");
    refused(LS_OP_WHERE, 3, (LsValueId[]){x, x, x}, NULL, LS_E_TYPE,
            "the condition is float, not bool");
    refused(LS_OP_AND, 2, (LsValueId[]){i, i}, NULL, LS_E_TYPE,
            "operand 0 is int64, And takes bool");
    refused(LS_OP_PRELU, 2, (LsValueId[]){param("z", SHAPE(3)), x}, NULL, LS_E_SHAPE,
            "X is 3, the slope 2x3 does not broadcast to it");
    refused(LS_OP_EXPAND, 1, &x, &(LsAttr){.shape = {SHAPE(3, 2)}}, LS_E_SHAPE,
            "2x3 does not broadcast to 3x2");
    LsValueId tall = integers(SHAPE(INT64_C(1) << 40, 1)), flat = integers(SHAPE(INT64_C(1) << 40));
    refused(LS_OP_ADD, 2, (LsValueId[]){tall, flat}, NULL, LS_E_SHAPE, "more elements than");
    graph_close();
}
END_TEST

START_TEST(integers_stay_integers_and_comparisons_give_bools)
{
    graph_open();
    LsValueId i = integers(SHAPE(4)), x = param("x", SHAPE(4));
    ck_assert_int_eq(ls_type(g, ls_append2(&cx, g, LS_OP_ADD, i, i, NULL)), LS_I64);
    ck_assert_int_eq(ls_type(g, ls_append2(&cx, g, LS_OP_EQUAL, i, i, NULL)), LS_BOOL);
    ck_assert_int_eq(ls_type(g, ls_append2(&cx, g, LS_OP_LESS, x, x, NULL)), LS_BOOL);
    ck_assert_int_eq(ls_type(g, ls_append1(&cx, g, LS_OP_CAST, i, &(LsAttr){.cast = LS_REAL})),
                     LS_REAL);
    ck_assert_int_eq(ls_type(g, ls_append1(&cx, g, LS_OP_CAST, x, &(LsAttr){.cast = LS_I32})),
                     LS_I32);
    graph_close();
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("ops_map");
    tcase_add_test(tc, gradients_of_one_operand_match_differences);
    tcase_add_test(tc, steps_have_gradient_zero);
    tcase_add_test(tc, gradients_of_trigonometric_functions_match_differences);
    tcase_add_test(tc, gradients_of_remainders_reach_both_operands);
    tcase_add_test(tc, gradients_of_activations_match_differences);
    tcase_add_test(tc, gradients_of_two_operands_match_differences_however_they_broadcast);
    tcase_add_test(tc, a_square_has_one_gradient_of_its_factor);
    tcase_add_test(tc, gradients_of_prelu_reach_operand_and_slope);
    tcase_add_test(tc, gradients_of_where_go_to_the_chosen_side);
    tcase_add_test(tc, gradient_of_expand_sums_the_copies);
    tcase_add_test(tc, gradients_of_reductions_match_differences);
    tcase_add_test(tc, gradient_of_a_product_is_right_where_factors_are_zero);
    tcase_add_test(tc, ties_share_the_gradient);
    tcase_add_test(tc, gradients_read_no_more_than_they_need);
    tcase_add_test(tc, sums_and_means_read_nothing_in_the_backward_part);
    tcase_add_test(tc, dropout_gradient_draws_from_the_same_stream);
    tcase_add_test(tc, shapes_and_types_that_do_not_fit_are_named);
    tcase_add_test(tc, integers_stay_integers_and_comparisons_give_bools);
    return run_tests("ops_map", tc);
}
