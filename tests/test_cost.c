/* tests/test_cost.c -- the roofline model. */
#include "compiler/cost.h"
#include "tests/gradient.h"
#include "tests/suite.h"

static const LsMachine machine = {.product_per_ns = 100, .flops_per_ns = 10, .bytes_per_ns = 4,
                                  .launch_ns = 50};

static LsNodeId made(LsValueId v) { return g->value[v.i].def; }

START_TEST(a_convolution_costs_two_operations_per_weight_and_result)
{
    graph_open();
    LsAttr at = {.window = {.n = 2, .kernel = {3, 3}, .stride = {1, 1}, .dilation = {1, 1},
                            .pad_lo = {1, 1}, .pad_hi = {1, 1}, .group = 2}};
    LsValueId y = ls_append2(&cx, g, LS_OP_CONV, param("x", SHAPE(2, 8, 10, 10)),
                             param("w", SHAPE(6, 4, 3, 3)), &at);
    double flops = 2.0 * (2 * 6 * 10 * 10) * (4 * 3 * 3);
    ck_assert_double_eq(ls_node_flops(g, made(y)), flops);
    g->loss = weighed(y);
    ck_assert(ls_autodiff(&cx, g));
    for (uint32_t i = 1; i < g->nnode; i++)     /* all three products do the same multiplications */
        if (ls_op[g->node[i].op]->kernel == LS_K_CONV)
            ck_assert_double_eq(ls_node_flops(g, (LsNodeId){i}), flops);
    graph_close();
}
END_TEST

START_TEST(the_slower_of_compute_and_traffic_counts)
{
    graph_open();
    LsValueId x = param("x", SHAPE(1000)), e = ls_append1(&cx, g, LS_OP_EXP, x, NULL);
    LsValueId r = ls_append1(&cx, g, LS_OP_RELU, x, NULL);
    ck_assert_double_eq(ls_node_bytes(g, made(r), 4), 8000);
    ck_assert_double_eq(ls_node_cost(g, made(r), &machine), 50 + 8000 / 4.0);
    LsMachine slow = machine;
    slow.flops_per_ns = 0.1;
    ck_assert_double_eq(ls_node_cost(g, made(e), &slow), 50 + 10 * 1000 / 0.1);
    graph_close();
}
END_TEST

START_TEST(a_view_is_free)
{
    graph_open();
    LsValueId y = ls_reshape(&cx, g, param("x", SHAPE(4, 5)), &SHAPE(20));
    ck_assert_double_eq(ls_node_cost(g, made(y), &machine), 0);
    graph_close();
}
END_TEST

START_TEST(state_is_read_and_written)
{
    graph_open();
    LsValueId p = param("p", SHAPE(100)), d = ls_append1(&cx, g, LS_OP_NEG, p, NULL);
    ls_append2(&cx, g, LS_OP_SGD, p, d, NULL);
    ck_assert_double_eq(ls_node_bytes(g, (LsNodeId){g->nnode - 1}, 4), 400 * 3);
    graph_close();
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("cost");
    tcase_add_test(tc, a_convolution_costs_two_operations_per_weight_and_result);
    tcase_add_test(tc, the_slower_of_compute_and_traffic_counts);
    tcase_add_test(tc, a_view_is_free);
    tcase_add_test(tc, state_is_read_and_written);
    return run_tests("cost", tc);
}
