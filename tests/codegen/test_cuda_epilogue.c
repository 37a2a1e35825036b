/* tests/codegen/test_cuda_epilogue.c -- work that moves into products on GPUs, and work that must
 * not. */
#include <check.h>

#include "codegen/cuda/epilogue.h"
#include "compiler/fold/append.h"
#include "compiler/passes/fuse.h"
#include "compiler/passes/passes.h"
#include "tests/support/suite.h"

enum { M = 6, K = 10 };

typedef struct Net {
    LsCtx cx;
    LsGraph *g;
    LsValueId output[8];
} Net;

static Net net_new(void)
{
    Net t = {.cx = {.arena = ls_arena_new(), .log = stderr, .model = "test"}};
    t.g = ls_graph_new(&t.cx);
    t.g->batch = 1;
    return t;
}

static LsValueId input(Net *t, LsShape shape)
{
    return ls_value_add(&t->cx, t->g, LS_V_INPUT, "x", LS_REAL, &shape, NULL);
}

static LsValueId matrix(Net *t, int64_t rows, int64_t cols)
{
    return input(t, (LsShape){2, {rows, cols}});
}

static LsValueId product(Net *t, LsValueId a, LsValueId b, bool turn_a)
{
    return ls_append2(&t->cx, t->g, LS_OP_MATMUL, a, b,
                      &(LsAttr){.gemm = {.trans_a = turn_a, .alpha = 1}});
}

static LsValueId with_bias(Net *t, int64_t n)
{
    LsValueId x = matrix(t, M, K), w = matrix(t, K, n), b = input(t, (LsShape){1, {n}});
    return ls_append3(&t->cx, t->g, LS_OP_MATMUL, x, w, b, &(LsAttr){.gemm = {.alpha = 1}});
}

static LsValueId shaped(Net *t, LsValueId x, LsShape s)
{
    return ls_reshape(&t->cx, t->g, x, &s);
}

/* Fuses the graph with these outputs, then moves epilogues into products. */
static void move(Net *t, int n, const LsValueId output[])
{
    for (int k = 0; k < n; k++)
        t->output[k] = output[k];
    t->g->output = t->output;
    t->g->noutput = (uint32_t)n;
    ck_assert(ls_fuse(&t->cx, t->g));
    ls_cuda_epilogues(&t->cx, t->g);
}

/* Product number `which` in the order of the graph. */
static const LsNode *product_at(const Net *t, int which)
{
    for (uint32_t i = 1; i < t->g->nnode; i++)
        if (t->g->node[i].op == LS_OP_MATMUL && which-- == 0)
            return &t->g->node[i];
    ck_abort_msg("there are fewer products");
}

static int fused(const Net *t)
{
    int n = 0;
    for (uint32_t i = 1; i < t->g->nnode; i++)
        n += t->g->node[i].op == LS_OP_FUSED;
    return n;
}

/* The maker of output k, seen through views; its result number to *result. */
static const LsNode *maker(const Net *t, int k, int *result)
{
    const LsGraph *g = t->g;
    LsValueId v = g->output[k];
    while (g->node[g->value[v.i].def.i].op == LS_OP_RESHAPE)
        v = ls_in(g, g->value[v.i].def, 0);
    const LsNode *n = &g->node[g->value[v.i].def.i];
    *result = (int)(v.i - n->out);
    return n;
}

static void net_free(Net *t) { ls_arena_free(t->cx.arena); }

START_TEST(a_relu_that_alone_reads_a_product_moves_into_it_through_a_view)
{
    Net t = net_new();
    LsValueId y = shaped(&t, with_bias(&t, 7), (LsShape){3, {2, 3, 7}});
    LsValueId z = ls_append1(&t.cx, t.g, LS_OP_RELU, y, NULL);
    int result;
    move(&t, 1, &z);
    ck_assert_int_eq(fused(&t), 0);
    ck_assert_int_eq(product_at(&t, 0)->attr.gemm.then, LS_THEN_RELU);
    ck_assert_int_eq(product_at(&t, 0)->nout, 1);
    ck_assert_ptr_eq(maker(&t, 0, &result), product_at(&t, 0));
    ck_assert_int_eq(ls_shape(t.g, t.g->output[0])->rank, 3);
    net_free(&t);
}
END_TEST

START_TEST(a_relu_stays_where_others_see_the_product)
{
    Net t = net_new();
    LsValueId y = with_bias(&t, 8), z = ls_append1(&t.cx, t.g, LS_OP_RELU, y, NULL);
    move(&t, 2, (LsValueId[]){z, y});
    ck_assert_int_eq(product_at(&t, 0)->attr.gemm.then, LS_THEN_NOTHING);
    ck_assert_int_eq(fused(&t), 1);
    net_free(&t);

    t = net_new();
    y = with_bias(&t, 8);
    z = ls_append1(&t.cx, t.g, LS_OP_RELU, y, NULL);
    LsValueId again = product(&t, y, matrix(&t, 8, 3), false);
    move(&t, 2, (LsValueId[]){z, again});
    ck_assert_int_eq(product_at(&t, 0)->attr.gemm.then, LS_THEN_NOTHING);
    net_free(&t);
}
END_TEST

START_TEST(what_is_more_than_an_activation_stays)
{
    Net t = net_new();
    LsValueId y = with_bias(&t, 8), z = ls_append1(&t.cx, t.g, LS_OP_RELU, y, NULL);
    z = ls_append2(&t.cx, t.g, LS_OP_ADD, z, matrix(&t, M, 8), NULL);
    move(&t, 1, &z);
    ck_assert_int_eq(product_at(&t, 0)->attr.gemm.then, LS_THEN_NOTHING);
    ck_assert_int_eq(fused(&t), 1);
    net_free(&t);
}
END_TEST

/* GELU forward and backward: y = x w + b, z = gelu(y); dy = gelu'(y) * (dz w2'). */
static Net gelu_net(int64_t n)
{
    Net t = net_new();
    LsValueId y = with_bias(&t, n), z = ls_append1(&t.cx, t.g, LS_OP_GELU_TANH, y, NULL);
    LsValueId dz = product(&t, matrix(&t, M, 4), matrix(&t, 4, n), false);
    LsValueId dy = ls_append2(&t.cx, t.g, LS_OP_GELU_TANH_GRAD, dz, y, NULL);
    move(&t, 2, (LsValueId[]){z, dy});
    return t;
}

START_TEST(a_gelu_moves_with_the_element_before_it_and_so_does_its_slope)
{
    Net t = gelu_net(16);
    const LsNode *first = product_at(&t, 0), *second = product_at(&t, 1);
    int result;
    ck_assert_int_eq(fused(&t), 0);
    ck_assert_int_eq(first->attr.gemm.then, LS_THEN_GELU);
    ck_assert_int_eq(first->nout, 2);
    ck_assert_ptr_eq(maker(&t, 0, &result), first);
    ck_assert_int_eq(result, 0);
    ck_assert_int_eq(second->attr.gemm.then, LS_THEN_GELU_SLOPE);
    ck_assert_int_eq(second->nin, 4);
    ck_assert_uint_eq(t.g->operand[second->in + 2].i, 0);
    ck_assert_uint_eq(t.g->operand[second->in + 3].i, first->out + 1);      /* the values before */
    net_free(&t);
}
END_TEST

START_TEST(rows_that_the_library_cannot_keep_leave_the_gelu_where_it_is)
{
    Net t = gelu_net(15);
    ck_assert_int_eq(fused(&t), 2);
    ck_assert_int_eq(product_at(&t, 0)->attr.gemm.then, LS_THEN_NOTHING);
    ck_assert_int_eq(product_at(&t, 1)->attr.gemm.then, LS_THEN_NOTHING);
    net_free(&t);
}
END_TEST

static LsValueId row_sums(Net *t, LsValueId x)
{
    return ls_append1(&t->cx, t->g, LS_OP_REDUCE_SUM, x,
                      &(LsAttr){.reduce = {.axes = 1, .keep = true}});
}

START_TEST(the_gradient_of_a_bias_comes_with_the_gradient_of_the_weight)
{
    for (int turned = 0; turned < 2; turned++) {    /* dw = x' dy, or dw' = dy' x */
        Net t = net_new();
        LsValueId x = matrix(&t, M, K), dy = matrix(&t, M, 7);
        LsValueId dw = turned ? product(&t, dy, x, true) : product(&t, x, dy, true);
        LsValueId db = shaped(&t, row_sums(&t, dy), (LsShape){1, {7}});
        int result;
        move(&t, 2, (LsValueId[]){dw, db});
        ck_assert_int_eq(fused(&t), 0);
        ck_assert_int_eq(product_at(&t, 0)->attr.gemm.then, turned ? LS_THEN_SUM_A : LS_THEN_SUM_B);
        ck_assert_ptr_eq(maker(&t, 1, &result), product_at(&t, 0));
        ck_assert_int_eq(result, 1);
        ck_assert_int_eq(ls_count(ls_shape(t.g, ls_out(t.g, (LsNodeId){1}, 1))), 7);
        net_free(&t);
    }
}
END_TEST

START_TEST(sums_over_another_axis_or_before_the_product_stay)
{
    Net t = net_new();
    LsValueId x = matrix(&t, M, K), dy = matrix(&t, M, 7), w = matrix(&t, 7, K);
    LsValueId dx = product(&t, dy, w, false);       /* its sums would go along rows of dy */
    LsValueId db = row_sums(&t, dy), dw = product(&t, x, dy, true);
    move(&t, 3, (LsValueId[]){dx, db, dw});
    ck_assert_int_eq(fused(&t), 1);
    ck_assert_int_eq(product_at(&t, 0)->attr.gemm.then, LS_THEN_NOTHING);
    ck_assert_int_eq(product_at(&t, 1)->attr.gemm.then, LS_THEN_NOTHING);
    net_free(&t);
}
END_TEST

/* x w + b + r, as in a residual block, through a view. */
START_TEST(a_sum_with_what_comes_before_moves_into_the_product)
{
    for (int first = 0; first < 2; first++) {
        Net t = net_new();
        LsValueId r = input(&t, (LsShape){3, {2, 3, 7}});
        LsValueId y = shaped(&t, with_bias(&t, 7), (LsShape){3, {2, 3, 7}});
        LsValueId z = ls_append2(&t.cx, t.g, LS_OP_ADD, first ? r : y, first ? y : r, NULL);
        int result;
        move(&t, 1, &z);
        ck_assert_int_eq(fused(&t), 0);
        ck_assert_int_eq(product_at(&t, 0)->attr.gemm.then, LS_THEN_ADD);
        ck_assert_int_eq(product_at(&t, 0)->nin, 4);
        ck_assert_ptr_eq(maker(&t, 0, &result), product_at(&t, 0));
        net_free(&t);
    }
}
END_TEST

/* The added value is made later or has another shape, or other nodes read the product. */
START_TEST(other_sums_stay)
{
    for (int how = 0; how < 4; how++) {
        Net t = net_new();
        LsValueId y = with_bias(&t, 7), r = matrix(&t, how == 1 ? 1 : M, 7);
        if (how == 0)
            r = ls_append1(&t.cx, t.g, LS_OP_SOFTMAX, r, &(LsAttr){.axis = {1}});
        LsValueId z = ls_append2(&t.cx, t.g, LS_OP_ADD, y, how == 3 ? y : r, NULL);
        move(&t, how == 2 ? 2 : 1, (LsValueId[]){z, y});
        ck_assert_int_eq(product_at(&t, 0)->attr.gemm.then, LS_THEN_NOTHING);
        ck_assert_int_eq(fused(&t), 1);
        net_free(&t);
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("cuda_epilogue");
    tcase_add_test(tc, a_relu_that_alone_reads_a_product_moves_into_it_through_a_view);
    tcase_add_test(tc, a_relu_stays_where_others_see_the_product);
    tcase_add_test(tc, what_is_more_than_an_activation_stays);
    tcase_add_test(tc, a_gelu_moves_with_the_element_before_it_and_so_does_its_slope);
    tcase_add_test(tc, rows_that_the_library_cannot_keep_leave_the_gelu_where_it_is);
    tcase_add_test(tc, the_gradient_of_a_bias_comes_with_the_gradient_of_the_weight);
    tcase_add_test(tc, sums_over_another_axis_or_before_the_product_stay);
    tcase_add_test(tc, a_sum_with_what_comes_before_moves_into_the_product);
    tcase_add_test(tc, other_sums_stay);
    return run_tests("cuda_epilogue", tc);
}
