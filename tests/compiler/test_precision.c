/* tests/compiler/test_precision.c -- mixed precision: the table is complete, and values get the
 * types that it says. */
#include "compiler/cost/roofline.h"
#include "compiler/ir/precision.h"
#include "compiler/passes/passes.h"
#include "tests/support/gradient.h"
#include "tests/support/suite.h"

START_TEST(every_operator_is_in_the_table)
{
    for (LsOpCode op = 1; op < LS_NOPS; op++) {
        /* made by later passes */
        const bool later = op == LS_OP_FUSED || op == LS_OP_SUM_END || op == LS_OP_PLACE
                           || op == LS_OP_CONV_DW_END;
        ck_assert_msg((ls_precision_row[op].rule == LS_PR_NONE) == later, "%s", ls_op[op]->name);
    }
}
END_TEST

static LsValueId product(LsValueId a, LsValueId b)
{
    return ls_append2(&cx, g, LS_OP_MATMUL, a, b, &(LsAttr){.gemm = {.alpha = 1}});
}

static LsType type_of(const char *name)
{
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (strcmp(g->value[i].name, name) == 0)
            return g->value[i].type;
    ck_abort_msg("no value %s", name);
}

static LsValueId named(LsValueId v, const char *name)
{
    g->value[v.i].name = name;
    return v;
}

/* x w1 + b, softmax, exp, times w2, summed up. */
static void build(void)
{
    graph_open();
    LsValueId x = ls_value_add(&cx, g, LS_V_INPUT, "x", LS_REAL, &SHAPE(4, 8), NULL);
    LsValueId y = named(product(x, param("w1", SHAPE(8, 8))), "first");
    y = named(ls_append2(&cx, g, LS_OP_ADD, y, param("b", SHAPE(8)), NULL), "sum");
    y = named(ls_append1(&cx, g, LS_OP_SOFTMAX, y, &(LsAttr){.axis = {1}}), "softmax");
    LsValueId wide = named(ls_append1(&cx, g, LS_OP_EXP, y, NULL), "exp");
    y = named(ls_append2(&cx, g, LS_OP_MUL, wide, y, NULL), "mixed");
    y = named(product(y, param("w2", SHAPE(8, 2))), "second");
    LsValueId loss =
        ls_append1(&cx, g, LS_OP_REDUCE_SUM, y, &(LsAttr){.reduce = {.axes = 3, .keep = true}});
    g->objective.loss = named(ls_reshape(&cx, g, loss, &(LsShape){0}), "loss");
    ck_assert(ls_autodiff(&cx, g));
}

START_TEST(values_get_the_types_of_the_table)
{
    build();
    ck_assert(ls_precision(&cx, g, &(LsPrecision){.compute = LS_F16}));
    ck_assert(ls_verify(&cx, g));
    ck_assert_int_eq(type_of("w1"), LS_REAL); /* rounded by the products, without a copy */
    for (uint32_t i = 1; i < g->nnode; i++)
        ck_assert(g->node[i].op == LS_OP_MATMUL ? g->node[i].rounds == LS_F16
                  : g->node[i].rounds == LS_REAL && g->node[i].op != LS_OP_CAST);
    ck_assert_int_eq(type_of("first"), LS_F16);
    ck_assert_int_eq(type_of("sum"), LS_F16);           /* a bias does not widen it */
    ck_assert_int_eq(type_of("softmax"), LS_F16);
    ck_assert_int_eq(type_of("exp"), LS_REAL);
    ck_assert_int_eq(type_of("mixed"), LS_REAL);        /* the widest of its operands */
    ck_assert_int_eq(type_of("second"), LS_F16);
    ck_assert_int_eq(type_of("loss"), LS_REAL);
    for (uint32_t k = 0; k < g->ngrad; k++)
        ck_assert_int_eq(ls_type(g, g->grad[k].grad), LS_REAL);
}
END_TEST

/* A class of its own for each type: of a product that rounds, of what stores 16 bits and of what
 * only reads them. */
START_TEST(kernels_of_16_bits_have_their_own_cost_class)
{
    static const LsType types[] = {LS_REAL, LS_BF16, LS_F16};
    LsMachine m;
    LsCostClass base[3] = {LS_COST_MATMUL_OUTER, LS_COST_SOFTMAX, LS_COST_MAP_MATH};
    ck_assert(ls_machine_find(&m, "cpu"));
    for (int t = 0; t < 3; t++) {
        build();
        ck_assert(ls_precision(&cx, g, &(LsPrecision){.compute = types[t]}));
        for (uint32_t i = 1, seen = 0; i < g->nnode && seen != 7; i++) {
            const LsOpCode op = g->node[i].op;
            const int k = op == LS_OP_MATMUL    ? 0
                          : op == LS_OP_SOFTMAX ? 1
                          : op == LS_OP_EXP     ? 2
                                                : -1;
            if (k < 0 || g->node[i].phase != LS_FORWARD)
                continue;
            seen |= 1u << k;
            LsWork w = ls_node_work(g, (LsNodeId){i}, &m, LS_WAY_DIRECT, 4);
            ck_assert_str_eq(ls_cost_class[w.kind].name,
                             ls_cost_class[base[k] + t * LS_COST_BF16].name);
            double ns = ls_work_ns(&m, &w, 4);
            m.cost[w.kind].launch += 5;
            ck_assert_double_eq_tol(ls_work_ns(&m, &w, 4), ns + 5, 1e-9);
        }
        graph_close();
    }
}
END_TEST

START_TEST(named_values_stay_wide)
{
    const char *glob = "fir*";
    build();
    ck_assert(ls_precision(&cx, g, &(LsPrecision){.compute = LS_BF16, .wide = &glob, .nwide = 1}));
    ck_assert_int_eq(type_of("first"), LS_REAL);
    ck_assert_int_eq(type_of("sum"), LS_REAL);
    ck_assert_int_eq(type_of("second"), LS_BF16);
    for (uint32_t i = 1; i < g->nnode; i++)             /* the operands of that product are not
                                                         * rounded */
        if (strcmp(g->value[ls_out(g, (LsNodeId){i}, 0).i].name, "first") == 0)
            ck_assert(g->node[i].rounds == LS_REAL);
}
END_TEST

/* Its gradient looks for the updates among the results: rounded, none would be found, and the
 * gradient be 0 / 0. */
START_TEST(the_gradient_of_a_scatter_of_weights_is_not_rounded)
{
    graph_open();
    LsValueId in[] = {param("w", SHAPE(2, 3)), labels(SHAPE(2), 5), param("base", SHAPE(5, 3))};
    LsValueId y =
        ls_append(&cx, g, LS_OP_SCATTER, 3, in,
                  &(LsAttr){.gather = {.axis = 0, .x = SHAPE(5, 3), .how = LS_SCATTER_MAX}});
    g->objective.loss = weighed(y);
    ck_assert(ls_autodiff(&cx, g));
    ck_assert(ls_precision(&cx, g, &(LsPrecision){.compute = LS_BF16}));
    uint32_t gathers = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        if (g->node[i].op == LS_OP_GATHER) {
            ck_assert_int_eq(ls_type(g, ls_out(g, (LsNodeId){i}, 0)), LS_REAL);
            gathers++;
        }
    ck_assert_uint_ge(gathers, 2);
}
END_TEST

/* Nor is the result, if one of what it is compared with is not. */
START_TEST(the_largest_of_weights_and_activations_is_not_rounded)
{
    const LsScatterHow how[] = {LS_SCATTER_MAX, LS_SCATTER_MIN, LS_SCATTER_ADD, LS_SCATTER_MAX};
    for (int k = 0; k < 4; k++) {
        graph_open();
        LsValueId x = ls_value_add(&cx, g, LS_V_INPUT, "x", LS_REAL, &SHAPE(5, 8), NULL);
        LsValueId of = k < 3
                           ? param("w", SHAPE(2, 3)) /* or an input, which is not rounded either */
                           : ls_value_add(&cx, g, LS_V_INPUT, "u", LS_REAL, &SHAPE(2, 3), NULL);
        LsValueId in[] = {of, labels(SHAPE(2), 5), product(x, param("v", SHAPE(8, 3)))};
        LsValueId y = ls_append(&cx, g, LS_OP_SCATTER, 3, in,
                                &(LsAttr){.gather = {.axis = 0, .x = SHAPE(5, 3), .how = how[k]}});
        g->objective.loss = weighed(named(y, "largest"));
        ck_assert(ls_autodiff(&cx, g));
        ck_assert(ls_precision(&cx, g, &(LsPrecision){.compute = LS_F16}));
        ck_assert_int_eq(type_of("largest"), how[k] == LS_SCATTER_ADD ? LS_F16 : LS_REAL);
        graph_close();
    }
}
END_TEST

/* Trainers read the loss as f32. */
START_TEST(a_loss_of_activations_is_not_rounded)
{
    for (int view = 0; view < 2; view++) {
        graph_open();
        LsValueId x = ls_value_add(&cx, g, LS_V_INPUT, "x", LS_REAL, &SHAPE(1, 8), NULL);
        LsValueId y = named(product(x, param("w", SHAPE(8, 1))), "product");
        y = view ? ls_reshape(&cx, g, y, &(LsShape){0})
                 : ls_append2(&cx, g, LS_OP_ADD, ls_reshape(&cx, g, y, &(LsShape){0}),
                              param("b", (LsShape){0}), NULL);
        g->objective.loss = named(y, "loss");
        ck_assert(ls_autodiff(&cx, g));
        ck_assert(ls_precision(&cx, g, &(LsPrecision){.compute = LS_BF16}));
        ck_assert(ls_verify(&cx, g));
        ck_assert_int_eq(type_of("loss"), LS_REAL);
        ck_assert_int_eq(ls_type(g, g->objective.loss), LS_REAL);
        graph_close();
    }
}
END_TEST

static uint32_t count_of(LsOpCode op)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        n += g->node[i].op == op;
    return n;
}

/* Libraries multiply: both factors are in memory in 16 bits, the weights' copies once for all
 * readers. */
START_TEST(a_gpus_products_read_copies_of_weights)
{
    build();
    ck_assert(ls_precision(&cx, g, &(LsPrecision){.compute = LS_F16, .gpu = true}));
    ck_assert(ls_verify(&cx, g));
    for (uint32_t i = 1; i < g->nnode; i++)
        for (int k = 0; k < 2 && g->node[i].op == LS_OP_MATMUL; k++)
            ck_assert_int_eq(ls_type(g, ls_in(g, (LsNodeId){i}, k)), LS_F16);
    ck_assert_int_eq(type_of("w1"), LS_REAL);
    ck_assert_int_eq(type_of("w2.f16"), LS_F16);        /* read forward and backward */
    ck_assert_int_eq(type_of("first"), LS_F16);
    for (uint32_t k = 0; k < g->ngrad; k++)
        ck_assert_int_eq(ls_type(g, g->grad[k].grad), LS_REAL);
    ck_assert_uint_eq(count_of(LS_OP_MATMUL), 5);
}
END_TEST

/* x * w + bias by channels, and the gradients of w and bias. */
START_TEST(a_gpus_convolutions_leave_biases_to_a_kernel_and_gradients_to_copies)
{
    graph_open();
    LsValueId x = ls_value_add(&cx, g, LS_V_INPUT, "x", LS_REAL, &SHAPE(1, 3, 5, 5), NULL);
    LsValueId in[] = {x, param("w", SHAPE(4, 3, 3, 3)), param("bias", SHAPE(4))};
    LsAttr at = {
        .window = {.n = 2, .kernel = {3, 3}, .stride = {1, 1}, .dilation = {1, 1}, .group = 1}};
    g->objective.loss = weighed(named(ls_append(&cx, g, LS_OP_CONV, 3, in, &at), "y"));
    ck_assert(ls_autodiff(&cx, g));
    ck_assert(ls_precision(&cx, g, &(LsPrecision){.compute = LS_BF16, .gpu = true}));
    ck_assert(ls_verify(&cx, g));
    ck_assert_int_eq(type_of("y.product"), LS_BF16);
    ck_assert_int_eq(type_of("y"), LS_BF16);
    for (uint32_t i = 1; i < g->nnode; i++) {
        const LsNodeId n = {i};
        if (g->node[i].op == LS_OP_CONV)
            ck_assert(!ls_is(ls_in(g, n, 2)));
        if (g->node[i].op == LS_OP_CONV_DW)
            ck_assert_int_eq(ls_type(g, ls_out(g, n, 0)), LS_BF16);
    }
    ck_assert_uint_eq(count_of(LS_OP_CONV_DW), 1);
    for (uint32_t k = 0; k < g->ngrad; k++)
        ck_assert_int_eq(ls_type(g, g->grad[k].grad), LS_REAL);
}
END_TEST

START_TEST(without_16_bits_nothing_changes)
{
    build();
    uint32_t nodes = g->nnode;
    ck_assert(ls_precision(&cx, g, &(LsPrecision){.compute = LS_REAL}));
    ck_assert_uint_eq(g->nnode, nodes);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("precision");
    tcase_add_test(t, every_operator_is_in_the_table);
    tcase_add_test(t, values_get_the_types_of_the_table);
    tcase_add_test(t, kernels_of_16_bits_have_their_own_cost_class);
    tcase_add_test(t, named_values_stay_wide);
    tcase_add_test(t, the_gradient_of_a_scatter_of_weights_is_not_rounded);
    tcase_add_test(t, the_largest_of_weights_and_activations_is_not_rounded);
    tcase_add_test(t, a_loss_of_activations_is_not_rounded);
    tcase_add_test(t, a_gpus_products_read_copies_of_weights);
    tcase_add_test(t, a_gpus_convolutions_leave_biases_to_a_kernel_and_gradients_to_copies);
    tcase_add_test(t, without_16_bits_nothing_changes);
    return run_tests("precision", t);
}
