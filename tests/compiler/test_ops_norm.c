/* tests/compiler/test_ops_norm.c -- normalisation rows: gradients against central differences,
 * statistics of data far from zero. */
#include "tests/support/gradient.h"
#include "tests/support/suite.h"

#include "compiler/ops/normalize.h"

static void check_normalized(LsShape x, uint32_t axes, LsShape scale)
{
    graph_open();
    LsValueId v = param("x", x);
    LsStats s = ls_stats(&cx, g, v, axes, 1e-5);
    LsValueId y = ls_normalized(&cx, g, v, &s, param("scale", scale), param("bias", scale));
    check_gradients(weighed(y));
    graph_close();
}

START_TEST(batch_statistics_give_the_joint_gradient)
{
    check_normalized(SHAPE(3, 2, 2, 2), 13, SHAPE(1, 2, 1, 1));
    check_normalized(SHAPE(5, 3), 1, SHAPE(1, 3));
    check_normalized(SHAPE(4, 1, 3), 5, SHAPE(1, 1, 1));
}
END_TEST

START_TEST(statistics_per_sample_give_the_joint_gradient)
{
    check_normalized(SHAPE(2, 3, 2, 2), 12, SHAPE(1, 3, 1, 1));
    check_normalized(SHAPE(2, 2, 6), 4, SHAPE(1, 2, 1));
}
END_TEST

static uint32_t count(LsOpCode op)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        n += g->node[i].op == op && g->node[i].phase == LS_FORWARD;
    return n;
}

/* Like DenseNet: y = norm([a, b]), z = norm([a, b, y]). */
START_TEST(concatenated_channels_share_the_statistics_of_their_parts)
{
    graph_open();
    LsAttr channels = {.axis = {1}};
    LsValueId part[] = {param("a", SHAPE(3, 2, 2)), param("b", SHAPE(3, 1, 2)), {0}}, y;
    for (int k = 0; k < 2; k++) {
        y = ls_append(&cx, g, LS_OP_CONCAT, 2 + k, part, &channels);
        LsStats s = ls_stats(&cx, g, y, 5, 1e-5);
        LsShape c = SHAPE(1, ls_shape(g, y)->dim[1], 1);
        y = part[2] = ls_normalized(&cx, g, y, &s, param("scale", c), param("bias", c));
    }
    ck_assert_int_eq(count(LS_OP_NORM_VAR), 3);     /* of a, b and the first result */
    ck_assert_int_eq(count(LS_OP_REDUCE_MEAN), 3);
    LsValueId all = ls_append(&cx, g, LS_OP_CONCAT, 3, part, &channels);
    LsStats whole = {.mean = ls_append1(&cx, g, LS_OP_REDUCE_MEAN, all,
                                        &(LsAttr){.reduce = {.axes = 5, .keep = true}})};
    LsStats parts = ls_stats(&cx, g, all, 5, 1e-5);
    Eval e = eval_new(g);
    eval_run(&e, 1, g->nnode);
    for (int64_t i = 0; i < ls_count(ls_shape(g, whole.mean)); i++)
        ck_assert_double_eq_tol(e.v[whole.mean.i][i], e.v[parts.mean.i][i], 1e-12);
    check_gradients(weighed(y));
    ck_assert_uint_eq(count_op(LS_OP_NORM_DX), 0);  /* each part gets all shares at once */
    graph_close();
}
END_TEST

/* norms: of the concatenation of all but the last 0, 1, ... parts. */
static uint32_t joint_gradients(int norms, bool scaled)
{
    enum { PARTS = 3 };
    graph_open();
    LsAttr channels = {.axis = {1}};
    LsValueId part[PARTS], y[PARTS];
    for (int k = 0; k < PARTS; k++)
        part[k] = param(ls_arena_printf(cx.arena, "x%d", k), SHAPE(4, k + 1, 2));
    for (int k = 0; k < norms; k++) {
        LsValueId x = ls_append(&cx, g, LS_OP_CONCAT, PARTS - k, part, &channels);
        LsStats s = ls_stats(&cx, g, x, 5, 1e-5);
        LsShape c = SHAPE(1, ls_shape(g, x)->dim[1], 1);
        LsValueId in[] = {x, s.mean, s.invstd, ls_const_real(&cx, g, 0)};
        y[k] = scaled ? ls_normalized(&cx, g, x, &s, param("scale", c), param("bias", c))
                      : ls_append(&cx, g, LS_OP_NORMALIZE, 4, in, NULL);
    }
    check_gradients(weighed(ls_append(&cx, g, LS_OP_CONCAT, norms, y, &channels)));
    uint32_t n = count_op(LS_OP_NORM_DX);
    graph_close();
    return n;
}

/* Of six channels three are in the second concatenation, too. */
START_TEST(what_one_norm_alone_reads_gets_the_joint_gradient)
{
    for (int scaled = 0; scaled < 2; scaled++) {
        ck_assert_uint_eq(joint_gradients(1, scaled), 1);
        ck_assert_uint_eq(joint_gradients(2, scaled), 0);
    }
}
END_TEST

START_TEST(normalisation_without_scale_has_the_joint_gradient)
{
    graph_open();
    LsValueId v = param("x", SHAPE(2, 2, 5));
    LsStats s = ls_stats(&cx, g, v, 4, 1e-5);
    LsValueId in[] = {v, s.mean, s.invstd, ls_const_real(&cx, g, 0)};
    check_gradients(weighed(ls_append(&cx, g, LS_OP_NORMALIZE, 4, in, NULL)));
    graph_close();
}
END_TEST

START_TEST(a_model_may_read_the_variance_itself)
{
    graph_open();
    LsValueId v = param("x", SHAPE(4, 2, 3));
    LsStats s = ls_stats(&cx, g, v, 5, 1e-5);
    LsValueId y =
        ls_normalized(&cx, g, v, &s, param("scale", SHAPE(1, 2, 1)), param("bias", SHAPE(1, 2, 1)));
    LsValueId both = ls_append2(&cx, g, LS_OP_MUL, y, s.var, NULL);
    check_gradients(weighed(ls_append2(&cx, g, LS_OP_ADD, both, s.mean, NULL)));
    graph_close();
}
END_TEST

START_TEST(frozen_statistics_are_not_differentiated)
{
    graph_open();
    LsValueId mean =
        ls_value_add(&cx, g, LS_V_STATE, "mean", LS_REAL, &SHAPE(1, 2, 1), numbers(2, 5));
    LsValueId in[] = {param("x", SHAPE(3, 2, 4)), mean, param("a", SHAPE(1, 2, 1)),
                      param("b", SHAPE(1, 2, 1))};
    check_gradients(weighed(ls_append(&cx, g, LS_OP_AFFINE, 4, in, NULL)));
    ck_assert_int_eq(g->ngrad, 3);
    graph_close();
}
END_TEST

/* A mean that another part of the model makes has a gradient of its own. */
START_TEST(a_given_mean_is_differentiated)
{
    graph_open();
    LsValueId in[] = {param("x", SHAPE(3, 2, 4)), param("mean", SHAPE(1, 2, 1)),
                      param("a", SHAPE(1, 2, 1)), param("b", SHAPE(1, 2, 1))};
    check_gradients(weighed(ls_append(&cx, g, LS_OP_AFFINE, 4, in, NULL)));
    ck_assert_int_eq(g->ngrad, 4);
    graph_close();
}
END_TEST

START_TEST(layer_norm_gradients_match_differences)
{
    for (int axis = 0; axis < 3; axis++)
        for (int bias = 0; bias < 2; bias++) {
            graph_open();
            LsShape x = SHAPE(2, 3, 4), over = {.rank = 3 - axis};
            for (int k = axis; k < 3; k++)
                over.dim[k - axis] = x.dim[k];
            LsValueId in[] = {param("x", x), param("scale", over), param("bias", over)};
            LsAttr at = {.norm = {axis, 1e-5}};
            check_gradients(weighed(ls_append(&cx, g, LS_OP_LAYER_NORM, 2 + bias, in, &at)));
            graph_close();
        }
}
END_TEST

START_TEST(layer_norm_statistics_can_be_read_and_differentiated)
{
    graph_open();
    LsValueId in[] = {param("x", SHAPE(3, 4)), param("scale", SHAPE(4))};
    LsValueId y = ls_append(&cx, g, LS_OP_LAYER_NORM, 2, in, &(LsAttr){.norm = {1, 1e-5}});
    LsValueId mean = {y.i + 1}, invstd = {y.i + 2};
    LsValueId z = ls_append2(&cx, g, LS_OP_MUL, mean, invstd, NULL);
    check_gradients(weighed(ls_append2(&cx, g, LS_OP_ADD, y, z, NULL)));
    graph_close();
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("ops_norm");
    tcase_add_test(tc, batch_statistics_give_the_joint_gradient);
    tcase_add_test(tc, statistics_per_sample_give_the_joint_gradient);
    tcase_add_test(tc, concatenated_channels_share_the_statistics_of_their_parts);
    tcase_add_test(tc, what_one_norm_alone_reads_gets_the_joint_gradient);
    tcase_add_test(tc, normalisation_without_scale_has_the_joint_gradient);
    tcase_add_test(tc, a_model_may_read_the_variance_itself);
    tcase_add_test(tc, frozen_statistics_are_not_differentiated);
    tcase_add_test(tc, a_given_mean_is_differentiated);
    tcase_add_test(tc, layer_norm_gradients_match_differences);
    tcase_add_test(tc, layer_norm_statistics_can_be_read_and_differentiated);
    return run_tests("ops_norm", tc);
}
