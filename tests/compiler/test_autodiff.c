/* tests/compiler/test_autodiff.c -- which values get a gradient, how contributions are summed, and
 * the reports. */
#include "tests/support/gradient.h"
#include "tests/support/suite.h"

static uint32_t count_backward(LsOpCode op)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        n += g->node[i].op == op && g->node[i].phase == LS_BACKWARD;
    return n;
}

static void quiet(char **text, size_t *size) { cx.log = open_memstream(text, size); }

START_TEST(contributions_of_several_readers_are_summed)
{
    graph_open();
    LsValueId x = param("x", SHAPE(3, 2)), w = param("w", SHAPE(2));
    LsValueId a = ls_append2(&cx, g, LS_OP_MUL, x, x, NULL);        /* twice the same operand */
    LsValueId b = ls_append2(&cx, g, LS_OP_MUL, a, w, NULL),
              c = ls_append2(&cx, g, LS_OP_ADD, b, x, NULL);
    check_gradients(weighed(c));
    ck_assert_int_eq(g->ngrad, 2);
    graph_close();
}
END_TEST

/* As in a DenseNet: b begins with all operands of a. Their gradient goes to a as one tensor, and
 * from there, with a's own gradient, to x and y. */
START_TEST(concatenations_that_grow_hand_one_gradient_on)
{
    graph_open();
    LsAttr axis = {.axis = {1}};
    LsValueId part[] = {param("x", SHAPE(2, 3)), param("y", SHAPE(2, 1)), param("z", SHAPE(2, 2))};
    LsValueId a = ls_append(&cx, g, LS_OP_CONCAT, 2, part, &axis);
    LsValueId b = ls_append(&cx, g, LS_OP_CONCAT, 3, part, &axis);
    LsValueId last[] = {ls_append2(&cx, g, LS_OP_MUL, a, a, NULL),
                        ls_append2(&cx, g, LS_OP_MUL, b, b, NULL)};
    check_gradients(weighed(ls_append(&cx, g, LS_OP_CONCAT, 2, last, &axis)));
    ck_assert_int_eq(g->ngrad, 3);
    ck_assert_uint_eq(count_backward(LS_OP_SLICE), 4);      /* b passes on two parts, and so does
                                                             * a */
    graph_close();
}
END_TEST

static LsValueId rows_of(LsValueId table, LsShape index, const int64_t *at, int axis)
{
    size_t bytes = (size_t)ls_count(&index) * sizeof *at;
    int64_t *own = memcpy(ls_arena_alloc(cx.arena, 1, bytes), at, bytes);
    return ls_append2(&cx, g, LS_OP_GATHER, table, ls_const_add(&cx, g, LS_I64, &index, own),
                      &(LsAttr){.gather = {.axis = axis}});
}

/* Counts sums of rows, by whether a base is added. */
static uint32_t count_scattered(bool based)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        n += g->node[i].op == LS_OP_GATHER_GRAD && ls_is(ls_in(g, (LsNodeId){i}, 2)) == based;
    return n;
}

/* A table that products also read, before and after the gathers in the file: one chain, no sum of
 * whole tables. */
START_TEST(rows_that_a_table_gave_are_added_to_its_other_gradient)
{
    for (int first = 0; first < 2; first++) {
        graph_open();
        LsAttr turned = {.gemm = {.alpha = 1, .trans_b = true}};
        LsValueId t = param("table", SHAPE(5, 3)), x[3], y = {0};
        if (first)
            y = ls_append2(&cx, g, LS_OP_MATMUL, param("x", SHAPE(2, 3)), t, &turned);
        x[0] = rows_of(t, SHAPE(4), (int64_t[]){1, 4, 1, -5}, 0);
        x[1] = rows_of(t, SHAPE(2), (int64_t[]){2, 2}, 0);
        x[2] = rows_of(t, SHAPE(2, 1), (int64_t[]){0, -1}, 1);
        if (!first)
            y = ls_append2(&cx, g, LS_OP_MATMUL, x[0], t, &turned);
        LsValueId loss = weighed(y);
        for (int k = 0; k < 3; k++)
            loss = ls_append2(&cx, g, LS_OP_ADD, loss,
                              weighed(ls_append1(&cx, g, LS_OP_EXP, x[k], NULL)), NULL);
        check_gradients(loss);
        ck_assert_int_eq(g->ngrad, 1 + first);
        ck_assert(ls_dce(&cx, g));
        ck_assert(ls_verify(&cx, g));
        ck_assert_uint_eq(count_scattered(true), 3);
        ck_assert_uint_eq(count_scattered(false), 0);
        for (uint32_t i = 1; i < g->nnode; i++)
            ck_assert(g->node[i].op != LS_OP_GATHER_GRAD
                      || g->node[g->node[i].fwd.i].op == LS_OP_GATHER);
        for (uint32_t i = 1; i < g->nnode; i++)
            ck_assert(g->node[i].op != LS_OP_ADD
                      || !ls_shape_same(ls_shape(g, ls_out(g, (LsNodeId){i}, 0)), ls_shape(g, t)));
        graph_close();
    }
}
END_TEST

/* There is only a constant to add to, or the table is gathered from once. */
START_TEST(rows_alone_are_added_to_zeros)
{
    graph_open();
    LsValueId t = param("table", SHAPE(5, 3));
    check_gradients(weighed(rows_of(t, SHAPE(3), (int64_t[]){3, 0, 3}, 0)));
    ck_assert_uint_eq(count_scattered(false), 1);
    graph_close();
    for (int first = 0; first < 2; first++) {
        graph_open();
        t = param("table", SHAPE(4));
        LsAttr all = {.reduce = {.axes = 1, .keep = true}};
        LsValueId sum = {0}, rows;
        for (int k = 0; k < 2; k++)
            if (k == first)
                sum = ls_reshape(&cx, g, ls_append1(&cx, g, LS_OP_REDUCE_SUM, t, &all),
                                 &(LsShape){0});
            else
                rows = weighed(rows_of(t, SHAPE(2), (int64_t[]){3, 3}, 0));
        check_gradients(ls_append2(&cx, g, LS_OP_ADD, sum, rows, NULL));
        ck_assert_uint_eq(count_scattered(true), 0);
        graph_close();
    }
}
END_TEST

START_TEST(only_the_way_from_parameters_to_the_loss_is_differentiated)
{
    graph_open();
    LsAttr plain = {.gemm = {.alpha = 1}};
    LsValueId x = ls_value_add(&cx, g, LS_V_INPUT, "x", LS_REAL, &SHAPE(3, 2), NULL);
    LsValueId f = ls_value_add(&cx, g, LS_V_STATE, "frozen", LS_REAL, &SHAPE(2, 2), numbers(4, 1));
    LsValueId h = ls_append2(&cx, g, LS_OP_MATMUL, x, f, &plain);
    LsValueId y = ls_append2(&cx, g, LS_OP_MATMUL, h, param("w", SHAPE(2, 2)), &plain);
    ls_append1(&cx, g, LS_OP_EXP, y, NULL);                         /* does not reach the loss */
    g->objective.loss = weighed(y);
    ck_assert(ls_autodiff(&cx, g));
    ck_assert_int_eq(count_backward(LS_OP_MATMUL), 1); /* dw alone: not dh, not df, not dx */
    ck_assert_int_eq(g->ngrad, 1);
    graph_close();
}
END_TEST

START_TEST(backward_nodes_name_the_node_they_differentiate)
{
    graph_open();
    ls_graph_origin(g, (LsOrigin){LS_FORWARD, {0}, 7, "layer/relu"});
    LsValueId y = ls_append1(&cx, g, LS_OP_RELU, param("x", SHAPE(4)), NULL);
    LsNodeId relu = g->value[y.i].def;
    g->objective.loss = weighed(y);
    uint32_t nforward = g->nnode;
    ck_assert(ls_autodiff(&cx, g));
    const LsNode *last = &g->node[g->nnode - 1];
    ck_assert_int_ge(g->nnode, nforward);
    ck_assert_int_eq(last->op, LS_OP_RELU_GRAD);
    ck_assert_int_eq(last->phase, LS_BACKWARD);
    ck_assert_int_eq(last->fwd.i, relu.i);
    ck_assert_int_eq(last->onnx, 7);
    ck_assert_str_eq(last->name, "layer/relu");
    graph_close();
}
END_TEST

START_TEST(a_parameter_without_influence_is_named_and_left_alone)
{
    char *text;
    size_t size;
    graph_open();
    quiet(&text, &size);
    LsValueId lost = param("lost", SHAPE(2));
    g->objective.loss = weighed(param("used", SHAPE(3)));
    ck_assert(ls_autodiff(&cx, g));
    fclose(cx.log);
    ck_assert_int_eq(g->ngrad, 1);
    ck_assert_int_ne(g->grad[0].param.i, lost.i);
    ck_assert_int_eq(cx.nwarning, 1);
    ck_assert_ptr_nonnull(strstr(text, "'lost'"));
    free(text);
    graph_close();
}
END_TEST

START_TEST(every_operator_without_a_gradient_is_reported_with_its_count)
{
    char *text;
    size_t size;
    graph_open();
    quiet(&text, &size);
    LsAttr all = {.reduce = {.axes = 1, .keep = true}};
    LsValueId x = param("x", SHAPE(4));
    for (int k = 0; k < 2; k++)         /* backward rows have no gradient of their own */
        x = ls_append2(&cx, g, LS_OP_RELU_GRAD, x, x, NULL);
    x = ls_append3(&cx, g, LS_OP_NORM_DOT, x, x, x, &all);
    g->objective.loss = ls_reshape(&cx, g, x, &(LsShape){0});
    ck_assert(!ls_autodiff(&cx, g));
    fclose(cx.log);
    ck_assert_int_eq(cx.nerror, 2);
    ck_assert_int_eq(cx.last, LS_E_NO_GRAD);
    ck_assert_ptr_nonnull(strstr(text, "relu_grad has no gradient; 2 such nodes lie"));
    ck_assert_ptr_nonnull(strstr(text, "norm_dot has no gradient; 1 such node lies"));
    free(text);
    graph_close();
}
END_TEST

START_TEST(nothing_to_train_is_an_error)
{
    char *text;
    size_t size;
    graph_open();
    quiet(&text, &size);
    LsValueId x = ls_value_add(&cx, g, LS_V_INPUT, "x", LS_REAL, &SHAPE(3), NULL);
    g->objective.loss = weighed(x);
    ck_assert(!ls_autodiff(&cx, g));
    fclose(cx.log);
    ck_assert_int_eq(cx.last, LS_E_LOSS);
    free(text);
    graph_close();
}
END_TEST

START_TEST(comparisons_and_integers_pass_no_gradient)
{
    graph_open();
    LsValueId x = param("x", SHAPE(5)), y = param("y", SHAPE(5));
    LsValueId mask = ls_append2(&cx, g, LS_OP_GREATER, x, y, NULL);
    check_gradients(weighed(ls_append3(&cx, g, LS_OP_WHERE, mask, x, y, NULL)));
    graph_close();
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("autodiff");
    tcase_add_test(tc, contributions_of_several_readers_are_summed);
    tcase_add_test(tc, concatenations_that_grow_hand_one_gradient_on);
    tcase_add_test(tc, rows_that_a_table_gave_are_added_to_its_other_gradient);
    tcase_add_test(tc, rows_alone_are_added_to_zeros);
    tcase_add_test(tc, only_the_way_from_parameters_to_the_loss_is_differentiated);
    tcase_add_test(tc, backward_nodes_name_the_node_they_differentiate);
    tcase_add_test(tc, a_parameter_without_influence_is_named_and_left_alone);
    tcase_add_test(tc, every_operator_without_a_gradient_is_reported_with_its_count);
    tcase_add_test(tc, nothing_to_train_is_an_error);
    tcase_add_test(tc, comparisons_and_integers_pass_no_gradient);
    return run_tests("autodiff", tc);
}
