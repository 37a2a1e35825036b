/* tests/test_ops_norm.c -- normalisation rows: gradients against central differences, statistics
 * of data far from zero. */
#include "tests/gradient.h"

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
    Suite *s = suite_create("ops_norm");
    TCase *tc = tcase_create("rows");
    tcase_add_test(tc, batch_statistics_give_the_joint_gradient);
    tcase_add_test(tc, statistics_per_sample_give_the_joint_gradient);
    tcase_add_test(tc, normalisation_without_scale_has_the_joint_gradient);
    tcase_add_test(tc, a_model_may_read_the_variance_itself);
    tcase_add_test(tc, frozen_statistics_are_not_differentiated);
    tcase_add_test(tc, layer_norm_gradients_match_differences);
    tcase_add_test(tc, layer_norm_statistics_can_be_read_and_differentiated);
    suite_add_tcase(s, tc);
    SRunner *sr = srunner_create(s);
    srunner_run_all(sr, CK_NORMAL);
    int failed = srunner_ntests_failed(sr);
    srunner_free(sr);
    return failed != 0;
}
