/* tests/compiler/test_ops_index.c -- ONNX rows of operators with indices: values and gradients,
 * with indices that are known and with some that arrive at run time; forms of old opsets; what is
 * refused. */
#include "tests/support/onnx_node.h"
#include "tests/support/suite.h"

/* Integers that arrive with the batch; the evaluator reads them. */
static LsValueId arriving(LsType type, LsShape s, const int64_t *v)
{
    int64_t *wide = ls_arena_alloc(cx.arena, (size_t)ls_count(&s), sizeof *wide);
    int32_t *narrow = ls_arena_alloc(cx.arena, (size_t)ls_count(&s), sizeof *narrow);
    for (int64_t i = 0; i < ls_count(&s); i++)
        narrow[i] = (int32_t)(wide[i] = v[i]);
    return ls_value_add(&cx, g, LS_V_INPUT, "index", type, &s,
                        type == LS_I64 ? (void *)wide : (void *)narrow);
}

/* form 0: a constant; 1, 2: int64 and int32 at run time. */
static LsValueId index_in(int form, LsShape s, const int64_t *v)
{
    return form == 0 ? ints_of(s, v) : arriving(form == 1 ? LS_I64 : LS_I32, s, v);
}

static LsValueId counting(LsShape s)
{
    float *v = ls_arena_alloc(cx.arena, (size_t)ls_count(&s), sizeof *v);
    for (int64_t i = 0; i < ls_count(&s); i++)
        v[i] = (float)i;
    return ls_value_add(&cx, g, LS_V_PARAM, "counting", LS_REAL, &s, v);
}

START_TEST(gather_nd_takes_tuples_per_batch)
{
    for (int form = 0; form < 3; form++) {
        Node plain = {0}, batch = {0};
        LsValueId x = counting(SHAPE(2, 3, 2));
        LsValueId y = node_one(&plain, "GatherND", 13,
                               IN(x, index_in(form, SHAPE(2, 2), (int64_t[]){1, -1, 0, 2})));
        expect_shape(y, SHAPE(2, 2));
        EXPECT_RUN(y, 10, 11, 4, 5);
        node_int(&batch, "batch_dims", 1);
        LsValueId z = node_one(&batch, "GatherND", 12,
                               IN(x, index_in(form, SHAPE(2, 1), (int64_t[]){2, -3})));
        EXPECT_RUN(z, 4, 5, 6, 7);
        LsValueId all = node_one(&plain, "GatherND", 11,
                                 IN(x, index_in(form, SHAPE(1, 1, 3), (int64_t[]){1, 2, -2})));
        expect_shape(all, SHAPE(1, 1));
        EXPECT_RUN(all, 10);
        check_gradients(weighed(ls_append2(&cx, g, LS_OP_ADD, y, z, NULL)));
        graph_reopen();
    }
}
END_TEST

/* As exporters take all elements of a mask, each by its indices. */
START_TEST(tuples_in_order_are_a_slice)
{
    for (int form = 0; form < 2; form++) {
        Node n = {0};
        const int64_t at[] = {0, 1, 0, 2, 1, form == 0 ? 0 : 1};
        LsValueId y = node_one(&n, "GatherND", 13,
                               IN(counting(SHAPE(2, 3, 2)), index_in(0, SHAPE(3, 2), at)));
        if (form == 0)
            EXPECT_RUN(y, 2, 3, 4, 5, 6, 7);
        else
            EXPECT_RUN(y, 2, 3, 4, 5, 8, 9);
        int gathers = 0;
        for (uint32_t i = 1; i < g->nnode; i++)
            gathers += g->node[i].op == LS_OP_GATHER;
        ck_assert_int_eq(gathers, form);
        graph_reopen();
    }
}
END_TEST

START_TEST(an_index_outside_of_one_axis_is_no_other_element)
{
    Node n = {0};
    LsValueId x = counting(SHAPE(3, 4));
    LsValueId at = arriving(LS_I64, SHAPE(3, 2), (int64_t[]){0, 4, 1, 1, -4, 0});
    EXPECT_RUN(node_one(&n, "GatherND", 13, IN(x, at)), NAN, 5, NAN);
    LsValueId y = node_one(&n, "ScatterND", 13,
                           IN(ls_expand(&cx, g, scalar(0), SHAPE(2, 4)),
                              arriving(LS_I64, SHAPE(2, 2), (int64_t[]){0, 4, 1, 1}), REALS(8, 9)));
    EXPECT_RUN(y, 0, 0, 0, 0, 0, 9, 0, 0);
    node_fails(&n, "GatherND", 13, IN(x, ints_of(SHAPE(1, 2), (int64_t[]){0, 4})), LS_E_SHAPE,
               "index 4 is outside axis 1 of length 4");
}
END_TEST

START_TEST(gather_elements_may_take_fewer_lines)
{
    for (int form = 0; form < 3; form++) {
        Node n = {0};
        node_int(&n, "axis", -1);
        LsValueId x = counting(SHAPE(3, 3));
        LsValueId y =
            node_one(&n, "GatherElements", 13,
                     IN(x, index_in(form, SHAPE(2, 4), (int64_t[]){0, -1, 2, 2, 1, 0, -3, 1})));
        EXPECT_RUN(y, 0, 2, 2, 2, 4, 3, 3, 4);
        check_gradients(weighed(y));
        graph_reopen();
    }
}
END_TEST

/* Every reduction, with several updates for one place. */
START_TEST(scatters_pass_gradients_to_data_and_updates)
{
    static const char *const reduction[] = {"add", "mul", "max", "min", "none"};
    for (int form = 0; form < 3; form++)
        for (int k = 0; k < 5; k++) {
            Node each = {0}, nd = {0};
            bool once = k == 4;     /* the last of several updates has no difference quotient for
                                     * the others */
            node_string(&each, "reduction", reduction[k]);
            node_string(&nd, "reduction", reduction[k]);
            node_int(&each, "axis", 1);
            LsValueId at =
                index_in(form, SHAPE(2, 3), (int64_t[]){0, once ? 1 : 0, -1, 2, 1, once ? 0 : 1});
            LsValueId y = node_one(&each, "ScatterElements", 18, IN(param("x", SHAPE(3, 4)), at,
                                                                    param("u", SHAPE(2, 3))));
            LsValueId rows = index_in(form, SHAPE(3, 1), (int64_t[]){1, once ? 0 : 1, -1});
            LsValueId z = node_one(&nd, "ScatterND", 18, IN(y, rows, param("v", SHAPE(3, 4))));
            expect_shape(z, SHAPE(3, 4));
            check_gradients(weighed(z));
            graph_reopen();
        }
}
END_TEST

START_TEST(scatters_combine_in_the_order_of_the_indices)
{
    Node none = {0}, mul = {0}, old = {0}, odd = {0};
    LsValueId x = REALS(1, 2, 3, 4), at = INTS(1, -3, 3), u = REALS(5, 6, 7);
    EXPECT(node_one(&none, "ScatterElements", 11, IN(x, at, u)), 1, 6, 3, 7);
    EXPECT(node_one(&old, "Scatter", 9, IN(x, at, u)), 1, 6, 3, 7);
    node_string(&mul, "reduction", "mul");
    EXPECT(node_one(&mul, "ScatterElements", 16, IN(x, at, u)), 1, 60, 3, 28);
    EXPECT(node_one(&mul, "ScatterND", 16,
                    IN(INTS(1, 2, 3), ints_of(SHAPE(2, 1), (int64_t[]){2, 2}), INTS(4, 5))),
           1, 2, 60);
    node_string(&odd, "reduction", "mean");
    node_fails(&odd, "ScatterElements", 18, IN(x, at, u), LS_E_ATTR, "reduction is \"mean\"");
    node_fails(&none, "ScatterElements", 18, IN(x, at, REALS(5, 6)), LS_E_SHAPE, "the updates 2");
    node_fails(&none, "ScatterElements", 18, IN(x, INTS(4, 0, 0), u), LS_E_SHAPE,
               "index 4 is outside");
    ck_assert_uint_eq(
        node_one(&none, "ScatterND", 18, IN(x, ints_of(SHAPE(0, 1), (int64_t[]){0}), u)).i, x.i);
    node_fails(&none, "ScatterND", 18, IN(x, at, u), LS_E_SHAPE, "the indices are 3");
    node_fails(&none, "ScatterND", 18,
               IN(x, ints_of(SHAPE(3, 1), (int64_t[]){0, 1, 2}), INTS(1, 2, 3)), LS_E_TYPE,
               "the updates are int64");
}
END_TEST

START_TEST(tensor_scatter_writes_each_sample_from_its_step_on)
{
    for (int form = 0; form < 3; form++) {
        Node line = {0}, ring = {0};
        LsValueId x = counting(SHAPE(2, 3, 1)), u = param("u", SHAPE(2, 2, 1));
        LsValueId at = index_in(form, SHAPE(2), (int64_t[]){1, 0}), end = INTS(2, 1);
        LsValueId y = node_one(&line, "TensorScatter", 24, IN(x, u, at));
        node_string(&ring, "mode", "circular");
        LsValueId z = node_one(&ring, "TensorScatter", 24, IN(x, reals_of(SHAPE(2, 2, 1),
                               (float[]){7, 8, 9, 10}), end));
        EXPECT_RUN(z, 8, 1, 7, 3, 9, 10);
        check_gradients(weighed(y));
        graph_reopen();
    }
}
END_TEST

START_TEST(scans_have_gradients_in_all_forms)
{
    for (int form = 0; form < 4; form++) {
        Node n = {0};
        node_int(&n, "exclusive", form & 1);
        node_int(&n, "reverse", form >> 1);
        LsValueId x = param("x", SHAPE(2, 4, 3));
        LsValueId y = node_one(&n, "CumSum", 14, IN(x, INTS(-2)));
        check_gradients(weighed(node_one(&n, "CumProd", 26, IN(y, INTS(1)))));
        graph_reopen();
    }
    Node n = {0};
    EXPECT(node_one(&n, "CumSum", 11, IN(INTS(1, 2, 3), INTS(0))), 1, 3, 6);
    node_fails(&n, "CumSum", 11,
               IN(param("x", SHAPE(3)), arriving(LS_I64, SHAPE(1), (int64_t[]){0})), LS_E_NOT_CONST,
               "must be known");
    node_fails(&n, "CumSum", 11, IN(param("y", SHAPE(3)), INTS(1)), LS_E_ATTR, "axis");
}
END_TEST

START_TEST(top_k_gives_sorted_values_with_a_gradient)
{
    Node n = {0}, least = {0}, old = {0};
    LsValueId out[2], x = param("x", SHAPE(3, 5)), t = REALS(1, 3, 3, 0);
    ck_assert(node_build(&n, "TopK", 11, 2, (LsValueId[]){t, INTS(3)}, 2, out, NULL));
    EXPECT_RUN(out[0], 3, 3, 1);
    EXPECT_RUN(out[1], 1, 2, 0);
    node_int(&least, "largest", 0);
    node_int(&least, "axis", 0);
    ck_assert(node_build(&least, "TopK", 11, 2, (LsValueId[]){x, INTS(2)}, 2, out, NULL));
    expect_shape(out[1], SHAPE(2, 5));
    LsValueId y = out[0];
    node_int(&old, "k", 2);
    LsValueId z = node_one(&old, "TopK", 1, IN(x));
    expect_shape(z, SHAPE(3, 2));
    LsValueId flat = ls_append2(&cx, g, LS_OP_MATMUL, z, y, &(LsAttr){.gemm = {.alpha = 1}});
    check_gradients(weighed(flat));
    node_fails(&n, "TopK", 11, IN(x, INTS(6)), LS_E_SHAPE, "asks for 6 of 5 elements");
}
END_TEST

START_TEST(arg_max_hardmax_and_one_hot_compare_indices)
{
    Node n = {0}, last = {0}, hot = {0};
    LsValueId x = reals_of(SHAPE(2, 3), (float[]){1, 4, 4, NAN, 2, NAN});
    node_int(&last, "axis", 1);
    EXPECT(node_one(&last, "ArgMax", 13, IN(x)), 1, 0);
    node_int(&last, "select_last_index", 1);
    node_int(&last, "keepdims", 0);
    EXPECT(node_one(&last, "ArgMax", 13, IN(x)), 2, 2);
    EXPECT(node_one(&n, "ArgMin", 1, IN(INTS(5, 2, 2))), 1);
    LsValueId v = ls_value_add(&cx, g, LS_V_INPUT, "v", LS_REAL, &SHAPE(3), (float[]){1, 3, 3});
    EXPECT_RUN(node_one(&n, "Hardmax", 13, IN(v)), 0, 1, 0);
    EXPECT_RUN(node_one(&n, "ArgMax", 13, IN(v)), 1);
    node_int(&hot, "axis", 0);
    LsValueId at = arriving(LS_I64, SHAPE(3), (int64_t[]){1, -1, 2});
    LsValueId y = node_one(&hot, "OneHot", 11, IN(at, INTS(2), param("values", SHAPE(2))));
    expect_shape(y, SHAPE(2, 3));
    LsValueId z = node_one(&n, "OneHot", 9, IN(INTS(1, -1, 2), scalar(2), INTS(0, 3)));
    EXPECT(z, 0, 3, 0, 3, 0, 0);
    check_gradients(weighed(y));
    node_fails(&n, "OneHot", 11, IN(at, INTS(0), REALS(0, 1)), LS_E_SHAPE, "depth is 0");
    node_fails(&n, "OneHot", 11, IN(at, INTS(3), REALS(0, 1, 2)), LS_E_SHAPE, "[off, on]");
    node_fails(&n, "OneHot", 11, IN(at, INTS(2000000000), REALS(0, 1)), LS_E_SHAPE,
               "too many to be stored");
    node_fails(&n, "ArgMax", 13, IN(input(SHAPE(INT64_C(1) << 38))), LS_E_SHAPE,
               "too many to be stored");
}
END_TEST

START_TEST(selections_need_a_known_condition)
{
    Node n = {0}, axis = {0}, eye = {0};
    uint8_t *which = ls_arena_alloc(cx.arena, 3, 1);
    which[1] = which[2] = 1;
    LsValueId c = ls_const_add(&cx, g, LS_BOOL, &SHAPE(3), which), x = param("x", SHAPE(2, 3));
    EXPECT(node_one(&n, "NonZero", 13, IN(ints_of(SHAPE(2, 2), (int64_t[]){0, 3, 4, 0}))), 0, 1, 1,
           0);
    node_int(&axis, "axis", -1);
    LsValueId y = node_one(&axis, "Compress", 11, IN(x, c));
    expect_shape(y, SHAPE(2, 2));
    expect_shape(node_one(&n, "Compress", 9, IN(x, c)), SHAPE(2));
    LsValueId running = ls_value_add(&cx, g, LS_V_INPUT, "mask", LS_BOOL, &SHAPE(3), NULL);
    node_fails(&n, "Compress", 11, IN(x, running), LS_E_NOT_CONST, "depend on operand 1 ('mask')");
    node_fails(&n, "NonZero", 13, IN(running), LS_E_NOT_CONST, "computed at run time");
    node_int(&eye, "k", -1);
    EXPECT(node_one(&eye, "EyeLike", 9, IN(x)), 0, 0, 0, 1, 0, 0);
    check_gradients(weighed(y));
}
END_TEST

START_TEST(reverse_sequence_turns_the_first_steps)
{
    for (int form = 0; form < 3; form++) {
        Node time = {0}, batch = {0};
        LsValueId x = counting(SHAPE(3, 2)), at = index_in(form, SHAPE(2), (int64_t[]){3, 2});
        LsValueId y = node_one(&time, "ReverseSequence", 10, IN(x, at));
        EXPECT_RUN(y, 4, 3, 2, 1, 0, 5);
        node_int(&batch, "time_axis", 1);
        node_int(&batch, "batch_axis", 0);
        LsValueId by = index_in(form, SHAPE(3), (int64_t[]){2, 1, 2});
        EXPECT_RUN(node_one(&batch, "ReverseSequence", 10, IN(x, by)), 1, 0, 2, 3, 5, 4);
        check_gradients(weighed(y));
        graph_reopen();
    }
}
END_TEST

START_TEST(col2im_and_center_crop_pad_have_gradients)
{
    Node n = {0}, crop = {0};
    node_ints(&n, "pads", LIST(1, 0, 1, 1));
    node_ints(&n, "strides", LIST(2, 1));
    LsValueId y =
        node_one(&n, "Col2Im", 18, IN(param("x", SHAPE(2, 8, 6)), INTS(3, 3), INTS(2, 2)));
    expect_shape(y, SHAPE(2, 2, 3, 3));
    node_ints(&crop, "axes", LIST(2, -1));
    LsValueId z = node_one(&crop, "CenterCropPad", 18, IN(y, INTS(2, 6)));
    expect_shape(z, SHAPE(2, 2, 2, 6));
    check_gradients(weighed(z));
    node_fails(&n, "Col2Im", 18, IN(param("y", SHAPE(2, 8, 5)), INTS(3, 3), INTS(2, 2)), LS_E_SHAPE,
               "not N x C * 4 x 6");
    node_fails(&crop, "CenterCropPad", 18, IN(y, INTS(2)), LS_E_SHAPE, "1 entries for 2 axes");
    node_fails(&crop, "CenterCropPad", 18, IN(y, INTS(0, 1)), LS_E_SHAPE, "asks for length 0");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("ops_index");
    tcase_add_checked_fixture(tc, graph_open, graph_close);
    tcase_add_test(tc, gather_nd_takes_tuples_per_batch);
    tcase_add_test(tc, tuples_in_order_are_a_slice);
    tcase_add_test(tc, an_index_outside_of_one_axis_is_no_other_element);
    tcase_add_test(tc, gather_elements_may_take_fewer_lines);
    tcase_add_test(tc, scatters_pass_gradients_to_data_and_updates);
    tcase_add_test(tc, scatters_combine_in_the_order_of_the_indices);
    tcase_add_test(tc, tensor_scatter_writes_each_sample_from_its_step_on);
    tcase_add_test(tc, scans_have_gradients_in_all_forms);
    tcase_add_test(tc, top_k_gives_sorted_values_with_a_gradient);
    tcase_add_test(tc, arg_max_hardmax_and_one_hot_compare_indices);
    tcase_add_test(tc, selections_need_a_known_condition);
    tcase_add_test(tc, reverse_sequence_turns_the_first_steps);
    tcase_add_test(tc, col2im_and_center_crop_pad_have_gradients);
    return run_tests("ops_index", tc);
}
