/* tests/compiler/test_patterns.c -- operators written as several nodes become one node with the
 * same result. */
#include "compiler/patterns/patterns.h"
#include "tests/support/gradient.h"
#include "tests/support/suite.h"

static LsValueId op2(LsOpCode op, LsValueId a, LsValueId b)
{
    return ls_append2(&cx, g, op, a, b, NULL);
}
static LsValueId op1(LsOpCode op, LsValueId a) { return ls_append1(&cx, g, op, a, NULL); }
static LsValueId num(double v) { return ls_const_real(&cx, g, v); }

static double *value_of_output(int k)
{
    Eval e = eval_new(g);
    eval_run(&e, 1, g->nnode);
    return e.v[g->output[k].i];
}

static void set_output(LsValueId y)
{
    LsValueId *list = ls_arena_alloc(cx.arena, g->noutput + 1, sizeof *list);
    for (uint32_t i = 0; i < g->noutput; i++)
        list[i] = g->output[i];
    list[g->noutput++] = y;
    g->output = list;
}

/* y is the only output; afterwards the graph has `left` nodes, one of them `op`, and the same
 * result. */
static void check_becomes(LsValueId y, LsOpCode op, uint32_t left, double tolerance)
{
    set_output(y);
    int64_t n = ls_count(ls_shape(g, y));
    const char *name = g->value[y.i].name;
    double *before = value_of_output(0);
    ck_assert(ls_patterns(&cx, g));
    ck_assert_int_eq(count_op(op), 1);
    uint32_t nodes = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        nodes += g->node[i].op != LS_OP_NOP;
    ck_assert_int_eq(nodes, left);
    ck_assert_str_eq(g->value[g->output[0].i].name, name);
    double *after = value_of_output(0);
    for (int64_t i = 0; i < n; i++)
        ck_assert_double_eq_tol(before[i], after[i], tolerance);
    graph_close();
}

static LsValueId open_x(LsShape s)
{
    graph_open();
    return param("x", s);
}

START_TEST(gelu_by_erf_is_found_in_every_order)
{
    for (int form = 0; form < 4; form++) {
        LsValueId x = open_x(SHAPE(3, 4)), y;
        LsValueId t =
            form & 1 ? op2(LS_OP_MUL, x, num(0.7071067)) : op2(LS_OP_DIV, x, num(1.4142135));
        LsValueId a = op2(LS_OP_ADD, op1(LS_OP_ERF, t), num(1));
        if (form == 0)
            y = op2(LS_OP_MUL, op2(LS_OP_MUL, x, a), num(0.5));
        else if (form == 1)
            y = op2(LS_OP_MUL, op2(LS_OP_MUL, num(0.5), x), a);
        else if (form == 2)
            y = op2(LS_OP_MUL, x, op2(LS_OP_MUL, a, num(0.5)));
        else
            y = op2(LS_OP_DIV, op2(LS_OP_MUL, a, x), num(2));
        check_becomes(y, LS_OP_GELU, 1, 1e-6);
    }
}
END_TEST

START_TEST(gelu_by_tanh_is_found)
{
    for (int form = 0; form < 2; form++) {
        LsValueId x = open_x(SHAPE(5)), inner;
        if (form == 0) {
            LsValueId cube = op2(LS_OP_POW, x, num(3));
            LsValueId s = op2(LS_OP_ADD, x, op2(LS_OP_MUL, cube, num(0.044715)));
            inner = op2(LS_OP_MUL, s, num(0.7978845608));
        } else {
            LsValueId sq = op2(LS_OP_MUL, op2(LS_OP_MUL, x, x), num(0.044715));
            LsValueId s = op2(LS_OP_ADD, num(1), sq);
            inner = op2(LS_OP_MUL, op2(LS_OP_MUL, x, num(0.7978845608)), s);
        }
        LsValueId a = op2(LS_OP_ADD, op1(LS_OP_TANH, inner), num(1));
        check_becomes(op2(LS_OP_MUL, op2(LS_OP_MUL, x, num(0.5)), a), LS_OP_GELU_TANH, 1, 1e-6);
    }
}
END_TEST

START_TEST(hard_swish_is_found_with_hard_sigmoid_and_with_clip)
{
    LsValueId x = open_x(SHAPE(6));
    LsValueId s =
        ls_append1(&cx, g, LS_OP_HARD_SIGMOID, x, &(LsAttr){.scalar = {.a = 1.0 / 6, .b = 0.5}});
    check_becomes(op2(LS_OP_MUL, x, s), LS_OP_HARD_SWISH, 1, 1e-6);
    x = open_x(SHAPE(6));
    LsAttr six = {.scalar = {.a = 0, .b = 6}};
    s = ls_append1(&cx, g, LS_OP_CLIP, op2(LS_OP_ADD, x, num(3)), &six);
    check_becomes(op2(LS_OP_DIV, op2(LS_OP_MUL, x, s), num(6)), LS_OP_HARD_SWISH, 1, 1e-6);
}
END_TEST

static LsValueId layer_norm(LsValueId x, bool twice)
{
    LsAttr last = {.reduce = {.axes = 4, .keep = true}};
    LsValueId mean = ls_append1(&cx, g, LS_OP_REDUCE_MEAN, x, &last), d = op2(LS_OP_SUB, x, mean);
    LsValueId d2 = twice ? op2(LS_OP_SUB, x, mean) : d;
    LsValueId var = ls_append1(&cx, g, LS_OP_REDUCE_MEAN, op2(LS_OP_MUL, d2, d2), &last);
    LsValueId z = op2(LS_OP_DIV, d, op1(LS_OP_SQRT, op2(LS_OP_ADD, var, num(1e-5))));
    return op2(LS_OP_ADD, op2(LS_OP_MUL, z, param("scale", SHAPE(4))), param("bias", SHAPE(4)));
}

START_TEST(nine_nodes_become_a_layer_norm)
{
    for (int twice = 0; twice < 2; twice++)
        check_becomes(layer_norm(open_x(SHAPE(2, 3, 4)), twice), LS_OP_LAYER_NORM, 1, 1e-6);
}
END_TEST

START_TEST(a_value_in_between_with_another_reader_prevents_the_match)
{
    LsValueId x = open_x(SHAPE(4));
    LsValueId e = op1(LS_OP_ERF, op2(LS_OP_MUL, x, num(0.70710678)));
    set_output(op2(LS_OP_MUL, op2(LS_OP_MUL, x, op2(LS_OP_ADD, e, num(1))), num(0.5)));
    set_output(e);
    ck_assert(ls_patterns(&cx, g));
    ck_assert_int_eq(count_op(LS_OP_GELU), 0);
    ck_assert_int_eq(count_op(LS_OP_ERF), 1);
    graph_close();
}
END_TEST

START_TEST(a_linear_layer_becomes_one_product)
{
    LsValueId x = open_x(SHAPE(6, 4)), w = param("w", SHAPE(5, 4)), b = param("b", SHAPE(5));
    LsAttr swap = {.perm = {{1, 0}}}, plain = {.gemm = {.alpha = 1}};
    LsValueId wt = ls_append1(&cx, g, LS_OP_TRANSPOSE, w, &swap);
    LsValueId y = ls_append2(&cx, g, LS_OP_MATMUL, x, wt, &plain);
    y = op2(LS_OP_ADD, b, ls_reshape(&cx, g, y, &SHAPE(2, 3, 5)));
    set_output(y);
    ck_assert(ls_patterns(&cx, g));
    ck_assert_int_eq(count_op(LS_OP_TRANSPOSE), 0);
    ck_assert_int_eq(count_op(LS_OP_ADD), 0);
    ck_assert_int_eq(count_op(LS_OP_MATMUL), 1);
    ck_assert_int_eq(ls_shape(g, g->output[0])->rank, 3);
    LsValueId out = g->output[0];
    check_gradients(weighed(out));
    ck_assert_int_eq(count_op(LS_OP_MATMUL), 3);
    graph_close();
}
END_TEST

/* The product with the values is a part of the attention by then, which takes no vector; with and
 * without an axis of heads. */
START_TEST(a_vector_added_to_attention_stays_an_addition)
{
    const LsShape shape[] = {SHAPE(1, 2, 3, 4), SHAPE(2, 3, 4)};
    const LsAttr plain = {.gemm = {.alpha = 1}}, turned = {.gemm = {.alpha = 1, .trans_b = true}};
    for (int k = 0; k < 2; k++) {
        LsValueId q = open_x(shape[k]);
        LsValueId s = ls_append2(&cx, g, LS_OP_MATMUL, q, param("k", shape[k]), &turned);
        s = ls_append1(&cx, g, LS_OP_SOFTMAX, s, &(LsAttr){.axis = {shape[k].rank - 1}});
        LsValueId y = ls_append2(&cx, g, LS_OP_MATMUL, s, param("v", shape[k]), &plain);
        check_becomes(op2(LS_OP_ADD, y, param("b", SHAPE(4))), LS_OP_ATTENTION, k == 0 ? 2 : 6,
                      1e-12);
        ck_assert_int_eq(cx.nerror, 0);
    }
}
END_TEST

/* softmax(q kT), whose NaN become 0 or another number. */
static LsValueId guarded(const LsShape *s, double zero, LsValueId *softmax)
{
    const LsAttr turned = {.gemm = {.alpha = 1, .trans_b = true}};
    const LsValueId q = open_x(*s);
    LsValueId w = ls_append2(&cx, g, LS_OP_MATMUL, q, param("k", *s), &turned);
    *softmax = w = ls_append1(&cx, g, LS_OP_SOFTMAX, w, &(LsAttr){.axis = {s->rank - 1}});
    const LsValueId nan = op1(LS_OP_NOT, op2(LS_OP_EQUAL, w, w));
    return ls_append3(&cx, g, LS_OP_WHERE, nan, num(zero), w, NULL);
}

START_TEST(attention_may_guard_against_rows_that_see_nothing)
{
    const LsShape s = SHAPE(1, 2, 3, 4);
    const LsAttr plain = {.gemm = {.alpha = 1}};
    for (int k = 0; k < 3; k++) {
        LsValueId softmax, w = guarded(&s, k == 1 ? 0.5 : 0, &softmax);
        set_output(ls_append2(&cx, g, LS_OP_MATMUL, w, param("v", s), &plain));
        if (k == 2)
            set_output(softmax);
        ck_assert(ls_patterns(&cx, g));
        ck_assert_int_eq(count_op(LS_OP_ATTENTION), k == 0);
        ck_assert_int_eq(count_op(LS_OP_SOFTMAX), k != 0);
        graph_close();
    }
}
END_TEST

START_TEST(a_bias_per_channel_joins_its_convolution)
{
    LsValueId x = open_x(SHAPE(1, 2, 4, 4)), w = param("w", SHAPE(3, 2, 1, 1)),
              b = param("b", SHAPE(3, 1, 1));
    LsAttr at = {
        .window = {.n = 2, .kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}, .group = 1}};
    LsValueId y = ls_append2(&cx, g, LS_OP_CONV, x, w, &at);
    check_becomes(op2(LS_OP_ADD, y, b), LS_OP_CONV, 2, 1e-12);
    x = open_x(SHAPE(1, 2, 3, 3));          /* a vector along the last axis is not a bias */
    y = ls_append2(&cx, g, LS_OP_CONV, x, param("w", SHAPE(3, 2, 1, 1)), &at);
    check_becomes(op2(LS_OP_ADD, y, param("b", SHAPE(3))), LS_OP_ADD, 2, 1e-12);
}
END_TEST

START_TEST(log_of_softmax_is_one_node)
{
    LsValueId x = open_x(SHAPE(2, 3));
    LsValueId p = ls_append1(&cx, g, LS_OP_SOFTMAX, x, &(LsAttr){.axis = {1}});
    check_becomes(op1(LS_OP_LOG, p), LS_OP_LOG_SOFTMAX, 1, 1e-12);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("patterns");
    tcase_add_test(tc, gelu_by_erf_is_found_in_every_order);
    tcase_add_test(tc, gelu_by_tanh_is_found);
    tcase_add_test(tc, hard_swish_is_found_with_hard_sigmoid_and_with_clip);
    tcase_add_test(tc, nine_nodes_become_a_layer_norm);
    tcase_add_test(tc, a_value_in_between_with_another_reader_prevents_the_match);
    tcase_add_test(tc, a_linear_layer_becomes_one_product);
    tcase_add_test(tc, a_vector_added_to_attention_stays_an_addition);
    tcase_add_test(tc, attention_may_guard_against_rows_that_see_nothing);
    tcase_add_test(tc, a_bias_per_channel_joins_its_convolution);
    tcase_add_test(tc, log_of_softmax_is_one_node);
    return run_tests("patterns", tc);
}
