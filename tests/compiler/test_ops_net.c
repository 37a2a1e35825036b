/* tests/compiler/test_ops_net.c -- convolution, matrix product, pooling and softmax rows: shapes,
 * read-sets, and gradients against central differences. */
#include "tests/support/gradient.h"
#include "tests/support/suite.h"

static LsAttr window(int n, int64_t kernel, int64_t stride, int64_t dilation, int64_t lo,
                     int64_t hi)
{
    LsAttr at = {.window = {.n = n, .group = 1}};
    for (int d = 0; d < n; d++) {
        at.window.kernel[d] = kernel;
        at.window.stride[d] = stride;
        at.window.dilation[d] = dilation;
        at.window.pad_lo[d] = lo;
        at.window.pad_hi[d] = hi;
    }
    return at;
}

static void check_conv(LsShape x, LsShape w, LsAttr at, bool bias)
{
    graph_open();
    LsValueId in[] = {param("x", x), param("w", w), param("b", (LsShape){1, {w.dim[0]}})};
    LsValueId y = ls_append(&cx, g, LS_OP_CONV, bias ? 3 : 2, in, &at);
    ck_assert(ls_is(y));
    check_gradients(weighed(y));
    graph_close();
}

START_TEST(convolution_gradients_match_differences)
{
    check_conv(SHAPE(2, 3, 5, 4), SHAPE(2, 3, 3, 3), window(2, 3, 1, 1, 1, 1), true);
    check_conv(SHAPE(1, 2, 7, 6), SHAPE(2, 2, 3, 3), window(2, 3, 2, 1, 0, 1), true);
    check_conv(SHAPE(1, 4, 7, 7), SHAPE(3, 4, 2, 2), window(2, 2, 1, 3, 2, 1), false);
    check_conv(SHAPE(2, 3, 9), SHAPE(2, 3, 4), window(1, 4, 3, 2, 1, 2), true);
    check_conv(SHAPE(1, 2, 3, 4, 3), SHAPE(2, 2, 2, 2, 2), window(3, 2, 1, 1, 1, 0), true);
    LsAttr at = window(2, 3, 2, 1, 1, 1);
    at.window.group = 3;        /* depthwise, with two filters per channel */
    check_conv(SHAPE(1, 3, 5, 5), SHAPE(6, 1, 3, 3), at, true);
    at.window.group = 2;
    check_conv(SHAPE(1, 4, 5, 5), SHAPE(2, 2, 3, 3), at, false);
}
END_TEST

static void check_transposed(LsShape y, LsShape w, LsAttr at, int64_t size)
{
    graph_open();
    for (int d = 0; d < at.window.n; d++)
        at.window.x_dim[d] = size;
    LsShape bias = {1, {w.dim[1] * at.window.group}};
    LsValueId in[] = {param("y", y), param("w", w), param("b", bias)};
    LsValueId x = ls_append(&cx, g, LS_OP_CONV_DX, 3, in, &at);
    ck_assert(ls_is(x));
    ck_assert_int_eq(ls_shape(g, x)->dim[2], size);
    check_gradients(weighed(x));
    graph_close();
}

START_TEST(transposed_convolution_gradients_match_differences)
{
    check_transposed(SHAPE(1, 3, 3, 3), SHAPE(3, 2, 2, 2), window(2, 2, 2, 1, 0, 0), 6);
    check_transposed(SHAPE(2, 2, 3, 3), SHAPE(2, 3, 3, 3), window(2, 3, 2, 1, 1, 1), 6);
    check_transposed(SHAPE(1, 2, 4), SHAPE(2, 1, 3), window(1, 3, 1, 2, 1, 1), 6);
    /* output padding of a stride and more: places at the end that no window reaches */
    check_transposed(SHAPE(1, 2, 3), SHAPE(2, 2, 2), window(1, 2, 1, 3, 0, 0), 8);
    LsAttr at = window(2, 2, 2, 1, 0, 0);
    at.window.group = 2;
    check_transposed(SHAPE(1, 4, 2, 2), SHAPE(4, 3, 2, 2), at, 4);
}
END_TEST

START_TEST(convolution_reads_no_output_and_bias_only_dy)
{
    graph_open();
    LsAttr at = window(2, 3, 1, 1, 1, 1);
    LsValueId in[] = {param("x", SHAPE(1, 2, 4, 4)), param("w", SHAPE(2, 2, 3, 3)),
                      param("b", SHAPE(2))};
    LsValueId y = ls_append(&cx, g, LS_OP_CONV, 3, in, &at);
    g->objective.loss = weighed(y);
    uint32_t nforward = g->nnode;
    ck_assert(ls_autodiff(&cx, g));
    for (uint32_t i = nforward; i < g->nnode; i++)
        for (int k = 0; k < g->node[i].nin; k++)
            ck_assert_int_ne(ls_in(g, (LsNodeId){i}, k).i, y.i);
    graph_close();
}
END_TEST

START_TEST(convolution_names_both_channel_counts_on_mismatch)
{
    graph_open();
    char *text;
    size_t size;
    cx.log = open_memstream(&text, &size);
    LsAttr at = window(2, 3, 1, 1, 0, 0);
    LsValueId y = ls_append2(&cx, g, LS_OP_CONV, param("x", SHAPE(1, 8, 8, 3)),
                             param("w", SHAPE(4, 3, 3, 3)), &at);
    fclose(cx.log);
    ck_assert(!ls_is(y));
    ck_assert_int_eq(cx.last, LS_E_SHAPE);
    ck_assert_ptr_nonnull(strstr(text, "X has 8 channels, W takes 3"));
    free(text);
    graph_close();
}
END_TEST

static void check_matmul(LsShape a, LsShape b, bool ta, bool tb, double alpha)
{
    graph_open();
    LsAttr at = {.gemm = {.trans_a = ta, .trans_b = tb, .alpha = alpha}};
    int64_t columns = tb ? b.dim[b.rank - 2] : b.dim[b.rank - 1];
    LsValueId in[] = {param("a", a), param("b", b), param("c", (LsShape){1, {columns}})};
    LsValueId y = ls_append(&cx, g, LS_OP_MATMUL, 3, in, &at);
    ck_assert(ls_is(y));
    check_gradients(weighed(y));
    graph_close();
}

START_TEST(product_gradients_match_differences)
{
    check_matmul(SHAPE(3, 4), SHAPE(4, 2), false, false, 1);
    check_matmul(SHAPE(4, 3), SHAPE(4, 2), true, false, 0.5);
    check_matmul(SHAPE(3, 4), SHAPE(2, 4), false, true, 2);
    check_matmul(SHAPE(4, 3), SHAPE(2, 4), true, true, -1);
    check_matmul(SHAPE(2, 3, 4), SHAPE(2, 4, 2), false, false, 1);
    check_matmul(SHAPE(2, 1, 4, 3), SHAPE(3, 2, 4), true, true, 1);
    check_matmul(SHAPE(3, 4), SHAPE(2, 4, 2), false, false, 1);
}
END_TEST

static LsAttr pool(LsShape x, LsAttr at, int64_t places)
{
    (void)x;
    for (int d = 0; d < at.window.n; d++)
        at.window.x_dim[d] = places;
    return at;
}

static void check_pool(LsOpCode op, LsShape x, LsAttr at)
{
    graph_open();
    LsValueId y = ls_append1(&cx, g, op, param("x", x), &at);
    check_gradients(weighed(y));
    graph_close();
}

START_TEST(pooling_gradients_match_differences)
{
    LsShape x = SHAPE(2, 2, 5, 5);
    static const LsOpCode op[] = {LS_OP_MAX_POOL, LS_OP_AVERAGE_POOL};
    for (int k = 0; k < 2; k++) {
        check_pool(op[k], x, pool(x, window(2, 2, 2, 1, 0, 0), 2));
        check_pool(op[k], x, pool(x, window(2, 2, 2, 1, 0, 0), 3));     /* as ceil_mode gives */
        check_pool(op[k], x, pool(x, window(2, 3, 1, 1, 1, 1), 5));
        check_pool(op[k], x, pool(x, window(2, 2, 1, 2, 1, 0), 4));
        check_pool(op[k], SHAPE(1, 2, 7), pool(x, window(1, 3, 2, 1, 0, 1), 3));
    }
    LsAttr at = pool(x, window(2, 3, 2, 1, 1, 1), 3);
    at.window.count_pad = true;
    check_pool(LS_OP_AVERAGE_POOL, x, at);
}
END_TEST

START_TEST(max_pool_keeps_one_byte_per_result_for_its_gradient)
{
    graph_open();
    LsAttr at = pool((LsShape){0}, window(2, 2, 2, 1, 0, 0), 4);
    LsValueId y = ls_append1(&cx, g, LS_OP_MAX_POOL, param("x", SHAPE(1, 2, 8, 8)), &at);
    ck_assert_int_eq(ls_value_bytes(g, (LsValueId){y.i + 1}, 4), 32);
    at = pool((LsShape){0}, window(2, 17, 1, 1, 0, 0), 4);
    y = ls_append1(&cx, g, LS_OP_MAX_POOL, param("x2", SHAPE(1, 2, 20, 20)), &at);
    ck_assert_int_eq(ls_value_bytes(g, (LsValueId){y.i + 1}, 4), 4 * 32);
    graph_close();
}
END_TEST

START_TEST(softmax_gradients_match_differences)
{
    static const LsOpCode op[] = {LS_OP_SOFTMAX, LS_OP_LOG_SOFTMAX};
    for (int k = 0; k < 2; k++)
        for (int axis = 0; axis < 3; axis++) {
            graph_open();
            LsValueId y = ls_append1(&cx, g, op[k], param("x", SHAPE(2, 3, 4)),
                                     &(LsAttr){.axis = {axis}});
            check_gradients(weighed(y));
            graph_close();
        }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("ops_net");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, convolution_gradients_match_differences);
    tcase_add_test(tc, transposed_convolution_gradients_match_differences);
    tcase_add_test(tc, convolution_reads_no_output_and_bias_only_dy);
    tcase_add_test(tc, convolution_names_both_channel_counts_on_mismatch);
    tcase_add_test(tc, product_gradients_match_differences);
    tcase_add_test(tc, pooling_gradients_match_differences);
    tcase_add_test(tc, max_pool_keeps_one_byte_per_result_for_its_gradient);
    tcase_add_test(tc, softmax_gradients_match_differences);
    return run_tests("ops_net", tc);
}
