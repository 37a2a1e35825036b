/* tests/compiler/test_roofline.c -- operations and bytes of nodes, and their time on a machine. */
#include "compiler/cost/roofline.h"
#include "tests/support/gradient.h"
#include "tests/support/suite.h"

static LsMachine simple(void)
{
    LsMachine m = {.name = "simple", .lanes = 1, .near = 1, .overlap = 1, .memory = 4,
                   .peak = {[LS_PEAK_F32] = 100}};
    for (int k = 0; k < LS_NCOSTS; k++)
        m.cost[k] = (LsClassCost){.compute = 0.1, .read = 1, .write = 1, .launch = 50};
    return m;
}

static LsNodeId made(LsValueId v) { return g->value[v.i].def; }

static LsWork work(LsValueId v, const LsMachine *m)
{
    return ls_node_work(g, made(v), m, LS_WAY_DIRECT, 4);
}

static double cost(LsValueId v, const LsMachine *m)
{
    LsWork w = work(v, m);
    return ls_work_ns(m, &w, 4);
}

static const LsAttr three = {.window = {.n = 2, .kernel = {3, 3}, .stride = {1, 1},
                                        .dilation = {1, 1}, .pad_lo = {1, 1}, .pad_hi = {1, 1},
                                        .group = 1}};

static LsValueId convolution(int64_t n, int64_t cin, int64_t cout)
{
    return ls_append2(&cx, g, LS_OP_CONV, param("x", SHAPE(n, cin, 8, 8)),
                      param("w", SHAPE(cout, cin, 3, 3)), &three);
}

START_TEST(a_convolution_costs_two_operations_per_weight_and_result)
{
    graph_open();
    LsAttr at = three;
    at.window.group = 2;
    LsValueId y = ls_append2(&cx, g, LS_OP_CONV, param("x", SHAPE(2, 8, 10, 10)),
                             param("w", SHAPE(6, 4, 3, 3)), &at);
    double flops = 2.0 * (2 * 6 * 10 * 10) * (4 * 3 * 3);
    ck_assert_double_eq(ls_node_flops(g, made(y)), flops);
    g->objective.loss = weighed(y);
    ck_assert(ls_autodiff(&cx, g));
    for (uint32_t i = 1; i < g->nnode; i++)     /* all three products do the same multiplications */
        if (ls_op[g->node[i].op]->kernel == LS_K_CONV)
            ck_assert_double_eq(ls_node_flops(g, (LsNodeId){i}), flops);
    graph_close();
}
END_TEST

START_TEST(the_slower_of_compute_and_traffic_counts_where_they_overlap)
{
    graph_open();
    LsMachine m = simple();
    LsValueId x = param("x", SHAPE(1000)), e = ls_append1(&cx, g, LS_OP_EXP, x, NULL);
    ck_assert_double_eq(ls_node_bytes(g, made(e), 4), 8000);
    ck_assert_double_eq(cost(e, &m), 50 + 8000 / 4.0);
    m.overlap = 0;
    ck_assert_double_eq(cost(e, &m), 50 + 8000 / 4.0 + 10 * 1000 / 10.0);
    m.overlap = 1;
    m.peak[LS_PEAK_F32] = 1;
    ck_assert_double_eq(cost(e, &m), 50 + 10 * 1000 / 0.1);
    graph_close();
}
END_TEST

START_TEST(transcendental_functions_make_a_class_of_their_own)
{
    graph_open();
    LsMachine m = simple();
    LsValueId x = param("x", SHAPE(100));
    ck_assert_int_eq(work(ls_append1(&cx, g, LS_OP_RELU, x, NULL), &m).kind, LS_COST_MAP);
    ck_assert_int_eq(work(ls_append1(&cx, g, LS_OP_GELU, x, NULL), &m).kind, LS_COST_MAP_MATH);
    graph_close();
}
END_TEST

START_TEST(a_view_is_free)
{
    graph_open();
    LsMachine m = simple();
    ck_assert_double_eq(cost(ls_reshape(&cx, g, param("x", SHAPE(4, 5)), &SHAPE(20)), &m), 0);
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

/* Rows added to a table move only the bytes of these rows; on a GPU their indices are compared. */
START_TEST(rows_added_to_a_table_cost_what_they_are)
{
    graph_open();
    LsMachine m = simple();
    int64_t *at = ls_arena_alloc(cx.arena, 10, sizeof *at);
    LsValueId index = ls_const_add(&cx, g, LS_I64, &SHAPE(10), at);
    LsValueId dy = param("dy", SHAPE(10, 4)), base = param("base", SHAPE(1000, 4));
    LsAttr gather = {.gather = {.axis = 0, .x = SHAPE(1000, 4)}};
    LsValueId alone = ls_append2(&cx, g, LS_OP_GATHER_GRAD, dy, index, &gather);
    LsValueId sum = ls_append3(&cx, g, LS_OP_GATHER_GRAD, dy, index, base, &gather);
    ck_assert_double_eq(ls_node_bytes(g, made(alone), 4), 16000 + 160 + 80);
    ck_assert_double_eq(ls_node_bytes(g, made(sum), 4), 160 + 160 + 160 + 80);
    ck_assert_double_eq(work(sum, &m).flops, 40);
    m.gpu = true;
    ck_assert_double_eq(work(sum, &m).flops, 40 + 2 * 10 * 10);
    m.peak[LS_PEAK_F64] = 10;           /* the speed of integers stays the same */
    ck_assert_double_eq(ls_node_work(g, made(sum), &m, LS_WAY_DIRECT, 8).flops,
                        40 + 2 * 10 * 10 / 10.0);
    graph_close();
}
END_TEST

START_TEST(a_value_read_twice_moves_once)
{
    graph_open();
    LsValueId x = param("x", SHAPE(100)), y = ls_append2(&cx, g, LS_OP_MUL, x, x, NULL);
    ck_assert_double_eq(ls_node_bytes(g, made(y), 4), 800);
    graph_close();
}
END_TEST

START_TEST(bytes_that_stay_in_the_cache_cost_less)
{
    graph_open();
    LsMachine m = simple();
    m.cache = 1e4;
    m.near = 4;
    m.cost[LS_COST_MAP] = (LsClassCost){.read = 1, .write = 1};
    double small = cost(ls_append1(&cx, g, LS_OP_RELU, param("x", SHAPE(2)), NULL), &m);
    double large = cost(ls_append1(&cx, g, LS_OP_RELU, param("y", SHAPE(1000000)), NULL), &m);
    ck_assert_double_eq_tol(small / 16, 1 / 16.0, 1e-3);        /* ns per byte: 4 x 4 per ns */
    ck_assert_double_eq_tol(large / 8e6, 1 / 4.0, 1e-3);
    graph_close();
}
END_TEST

START_TEST(ages_that_are_known_count_instead_of_sizes)
{
    graph_open();
    LsMachine m = simple();
    m.cache = 1e6;
    m.near = 4;
    m.cost[LS_COST_MAP] = (LsClassCost){.read = 1, .write = 0.5};
    LsWork w = work(ls_append1(&cx, g, LS_OP_RELU, param("x", SHAPE(1000)), NULL), &m);
    /* Half of the bytes read were touched just now, half long ago; the result's place was touched
     * long ago. */
    const LsTouch touch[] = {{2000, 0, false}, {2000, 1e15, false}, {4000, 1e15, true}};
    w.touch = touch;
    w.ntouch = 3;
    ck_assert_double_eq_tol(ls_work_slow(&w, false, m.cache, m.near), (1 + 0.25) / 2, 1e-6);
    ck_assert_double_eq_tol(ls_work_slow(&w, true, m.cache, m.near), 1, 1e-6);
    ck_assert_double_eq_tol(ls_work_ns(&m, &w, 4), 4000 / 4.0 * 0.625 + 4000 / 2.0, 1e-3);
    graph_close();
}
END_TEST

START_TEST(products_are_padded_to_whole_vectors)
{
    graph_open();
    LsMachine m = simple();
    m.lanes = 16;
    LsValueId a = param("a", SHAPE(64, 64)), narrow = param("b", SHAPE(64, 33));
    LsValueId wide = param("c", SHAPE(64, 48));
    double x = work(ls_append2(&cx, g, LS_OP_MATMUL, a, narrow, NULL), &m).flops;
    double y = work(ls_append2(&cx, g, LS_OP_MATMUL, a, wide, NULL), &m).flops;
    ck_assert_double_eq(x, y);
    ck_assert_double_eq(x, 2.0 * 64 * 48 * (64 + 16));
    graph_close();
}
END_TEST

/* Operations of a convolution of 64 channels per product of a place and a weight. */
static double per_weight(int64_t cout, int64_t taps, int64_t stride, LsCostWay way, bool gpu)
{
    LsMachine m = simple();
    m.gpu = gpu;
    LsAttr at = three;
    int64_t side = 16 / stride, pad = taps / 2;
    at.window = (LsWindowAttr){.n = 2, .kernel = {taps, taps}, .stride = {stride, stride},
                               .dilation = {1, 1}, .pad_lo = {pad, pad}, .pad_hi = {pad, pad},
                               .group = 1};
    LsValueId y = ls_append2(&cx, g, LS_OP_CONV, param("x", SHAPE(8, 64, 16, 16)),
                             param("w", SHAPE(cout, 64, taps, taps)), &at);
    return ls_node_work(g, made(y), &m, way, 4).flops
        / (2.0 * 8 * (double)(side * side * cout * 64 * taps * taps));
}

START_TEST(a_convolution_pays_for_the_copies_that_it_makes)
{
    graph_open();
    double plain = per_weight(256, 1, 1, LS_WAY_DIRECT, false);
    ck_assert_double_gt(per_weight(256, 1, 2, LS_WAY_DIRECT, false), plain + 0.03);
    ck_assert_double_gt(per_weight(256, 3, 1, LS_WAY_DIRECT, false), plain + 0.03);
    /* fewer results per copy; fewer places per packed weight; a library with another method */
    ck_assert_double_gt(per_weight(32, 3, 1, LS_WAY_DIRECT, false),
                        per_weight(256, 3, 1, LS_WAY_DIRECT, false) + 0.2);
    ck_assert_double_gt(per_weight(256, 3, 1, LS_WAY_FEW, false),
                        per_weight(256, 3, 1, LS_WAY_DIRECT, false) + 0.03);
    ck_assert_double_lt(per_weight(256, 3, 2, LS_WAY_DIRECT, true), 1.01);
    graph_close();
}
END_TEST

START_TEST(winograd_multiplies_less)
{
    graph_open();
    LsMachine m = simple();
    LsNodeId n = made(convolution(4, 64, 64));
    LsWork direct = ls_node_work(g, n, &m, LS_WAY_DIRECT, 4);
    LsWork tiles = ls_node_work(g, n, &m, LS_WAY_WINOGRAD, 4);
    ck_assert_int_eq(direct.kind, LS_COST_CONV);
    ck_assert_int_eq(tiles.kind, LS_COST_CONV_WINOGRAD);
    ck_assert_double_lt(tiles.flops, direct.flops / 3);
    /* What each tile takes beside counts in told times alone. */
    const LsTouch touch = {.bytes = 1};
    LsWork bare = tiles;
    bare.by_tile = 0;
    ck_assert_double_eq(ls_work_ns(&m, &tiles, 4), ls_work_ns(&m, &bare, 4));
    tiles.touch = bare.touch = &touch;
    tiles.ntouch = bare.ntouch = 1;
    ck_assert_double_gt(ls_work_ns(&m, &tiles, 4), ls_work_ns(&m, &bare, 4));
    m.gpu = true;               /* its library chooses by itself */
    ck_assert_int_eq(ls_node_work(g, n, &m, LS_WAY_WINOGRAD, 4).kind, LS_COST_CONV);
    graph_close();
}
END_TEST

/* Their copies, and the same products of f32, take as long as ever. */
START_TEST(products_of_bfloat16_multiply_at_a_speed_of_their_own)
{
    graph_open();
    LsMachine m = simple();
    LsAttr plain = {.gemm = {.alpha = 1}}, scaled = {.gemm = {.alpha = 0.5f}};
    LsValueId a = param("a", SHAPE(640, 640)), b = param("b", SHAPE(640, 640));
    LsValueId of[] = {ls_append2(&cx, g, LS_OP_MATMUL, a, b, &plain), convolution(4, 64, 64)};
    LsValueId by_half = ls_append2(&cx, g, LS_OP_MATMUL, a, b, &scaled);
    double before[2], copies[2];
    for (int k = 0; k < 2; k++) {
        before[k] = cost(of[k], &m) - 50;
        g->node[made(of[k]).i].rounds = g->node[made(by_half).i].rounds = LS_BF16;
        ck_assert_double_eq(cost(of[k], &m) - 50, before[k]);   /* a speed that is not known */
        copies[k] = work(of[k], &m).flops - work(of[k], &m).dots;
    }
    m.peak[LS_PEAK_BF16] = 200;
    for (int k = 0; k < 2; k++)
        ck_assert_double_eq_tol(cost(of[k], &m) - 50, before[k] / 2 + copies[k] / 2 / 10,
                                1e-6 * before[k]);
    ck_assert_double_eq(cost(by_half, &m) - 50, before[0]);
    g->node[made(of[0]).i].rounds = LS_REAL;
    ck_assert_double_eq(cost(of[0], &m) - 50, before[0]);
    ck_assert(copies[0] == 0 && copies[1] > 0);
    graph_close();
}
END_TEST

START_TEST(convolutions_that_were_measured_in_bf16_say_the_speed_of_its_products)
{
    LsMachine m = simple();
    const double peak = m.peak[LS_PEAK_F32], conv = m.cost[LS_COST_CONV].compute;
    m.cost[LS_COST_CONV + LS_COST_BF16].compute = conv;
    ck_assert_double_eq(ls_machine_dot_rate(&m), 0);            /* not known */
    m.peak[LS_PEAK_BF16] = 3 * peak;
    ck_assert_double_eq(ls_machine_dot_rate(&m), 3);
    m.cost[LS_COST_CONV + LS_COST_BF16].compute = 5 * conv;
    ck_assert_double_eq(ls_machine_dot_rate(&m), 5);
}
END_TEST

START_TEST(thin_batched_and_turned_products_are_classes_of_their_own)
{
    graph_open();
    LsMachine m = simple();
    LsAttr turned = {.gemm = {.trans_a = true, .alpha = 1}};
    LsValueId a = param("a", SHAPE(64, 64)), b = param("b", SHAPE(64, 64));
    LsValueId row = param("r", SHAPE(1, 64)), many = param("m", SHAPE(5, 64, 64));
    ck_assert_int_eq(work(ls_append2(&cx, g, LS_OP_MATMUL, a, b, NULL), &m).kind, LS_COST_MATMUL);
    ck_assert_int_eq(work(ls_append2(&cx, g, LS_OP_MATMUL, row, b, NULL), &m).kind,
                     LS_COST_MATMUL_THIN);
    ck_assert_int_eq(work(ls_append2(&cx, g, LS_OP_MATMUL, row, row, &turned), &m).kind,
                     LS_COST_MATMUL_OUTER);
    ck_assert_int_eq(work(ls_append2(&cx, g, LS_OP_MATMUL, a, b, &turned), &m).kind,
                     LS_COST_MATMUL_TURNED);
    ck_assert_int_eq(work(ls_append2(&cx, g, LS_OP_MATMUL, many, many, NULL), &m).kind,
                     LS_COST_MATMUL_BATCH);
    ck_assert_int_eq(work(ls_append2(&cx, g, LS_OP_MATMUL, many, b, NULL), &m).kind,
                     LS_COST_MATMUL);
    graph_close();
}
END_TEST

START_TEST(more_to_do_never_takes_less_on_any_machine)
{
    LsMachine m;
    char err[256];
    for (size_t k = 0; ls_machine_builtin(k) != NULL; k++) {
        double last[3] = {0};
        ck_assert_msg(ls_machine_parse(&m, ls_machine_builtin(k), "built in", err, sizeof err),
                      "%s", err);
        graph_open();
        for (int64_t n = 1; n < 400; n = n * 3 / 2 + 1) {
            double now[] = {
                cost(convolution(n, 16, 16), &m), cost(convolution(2, n, 16), &m),
                cost(ls_append1(&cx, g, LS_OP_RELU, param("x", SHAPE(n, 1000)), NULL), &m)};
            for (int i = 0; i < 3; i++) {
                ck_assert_double_gt(now[i], last[i]);
                last[i] = now[i];
            }
        }
        graph_close();
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("cost");
    const TTest *const tests[] = {
        a_convolution_costs_two_operations_per_weight_and_result,
        the_slower_of_compute_and_traffic_counts_where_they_overlap,
        transcendental_functions_make_a_class_of_their_own, a_view_is_free,
        rows_added_to_a_table_cost_what_they_are,
        state_is_read_and_written, a_value_read_twice_moves_once,
        bytes_that_stay_in_the_cache_cost_less, ages_that_are_known_count_instead_of_sizes,
        products_are_padded_to_whole_vectors,
        a_convolution_pays_for_the_copies_that_it_makes, winograd_multiplies_less,
        products_of_bfloat16_multiply_at_a_speed_of_their_own,
        convolutions_that_were_measured_in_bf16_say_the_speed_of_its_products,
        thin_batched_and_turned_products_are_classes_of_their_own,
        more_to_do_never_takes_less_on_any_machine};
    add_tests(tc, sizeof tests / sizeof *tests, tests);
    return run_tests("cost", tc);
}
