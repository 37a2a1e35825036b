/* tests/compiler/test_ops_signal.c -- LinearAttention, CausalConvWithState, DFT, STFT: values by
 * their definitions, gradients over their attributes, and what is refused. */
#include "tests/support/onnx_node.h"
#include "tests/support/suite.h"

/* ---- LinearAttention ---- */
static Node *linear(const char *rule, int64_t queries, int64_t heads)
{
    Node *n = ls_arena_alloc(cx.arena, 1, sizeof *n);
    node_string(n, "update_rule", rule);
    node_int(n, "q_num_heads", queries);
    node_int(n, "kv_num_heads", heads);
    return n;
}

START_TEST(linear_attention_has_gradients_by_every_rule)
{
    static const char *const rule[] = {"linear", "gated", "delta", "gated_delta"};
    for (int k = 0; k < 8; k++) {
        int64_t heads = k / 4 + 1;
        bool gated = k % 2 == 1, delta = k / 2 % 2 == 1, past = k / 4 == 0;
        LsValueId none = NONE, out[2],
                  in[6] = {param("q", SHAPE(2, 3, 2 * 2)),
                           param("k", SHAPE(2, 3, heads * 2)),
                           param("v", SHAPE(2, 3, heads)),
                           past ? param("s", SHAPE(2, heads, 2, 1)) : none,
                           gated ? param("g", SHAPE(2, 3, k == 1 ? 2 * heads : heads)) : none,
                           delta ? param("b", SHAPE(2, 3, k == 3 ? 1 : heads)) : none};
        ck_assert(node_build(linear(rule[k % 4], 2, heads), "LinearAttention", 27,
                             delta   ? 6
                             : gated ? 5
                                     : 4,
                             in, 2, out, NULL));
        expect_shape(out[0], SHAPE(2, 3, 2));
        expect_shape(out[1], SHAPE(2, heads, 2, 1));
        check_gradients(ls_append2(&cx, g, LS_OP_ADD, weighed(out[0]), weighed(out[1]), NULL));
        graph_reopen();
    }
}
END_TEST

/* Two steps with numbers of one element: S1 = 2 * 3, S2 = S1 e^0 + b k (v - S1 k). */
START_TEST(linear_attention_steps_through_its_recurrence)
{
    LsValueId q = reals_of(SHAPE(1, 2, 1), (float[]){1, 10}),
              k = reals_of(SHAPE(1, 2, 1), (float[]){2, 0.5f});
    LsValueId v = reals_of(SHAPE(1, 2, 1), (float[]){3, 4}),
              zero = reals_of(SHAPE(1, 2, 1), (float[]){0, 0});
    LsValueId half = reals_of(SHAPE(1, 2, 1), (float[]){1, 0.5f}), none = NONE, out[2];
    EXPECT_RUN(node_one(linear("linear", 1, 1), "LinearAttention", 27, IN(q, k, v)), 6, 80);
    EXPECT_RUN(
        node_one(linear("gated_delta", 1, 1), "LinearAttention", 27, IN(q, k, v, none, zero, half)),
        6, 62.5);
    Node *n = linear("delta", 1, 1);
    node_float(n, "scale", 2);
    ck_assert(node_build(n, "LinearAttention", 27, IN(q, k, v, none, none, half), 2, out, NULL));
    EXPECT_RUN(out[0], 12, 125);
    EXPECT_RUN(out[1], 6.25);
    node_fails(linear("linear", 1, 1), "LinearAttention", 27, IN(q, k, v, none, zero), LS_E_NAME,
               "does not fit the operands");
    node_fails(linear("delta", 1, 1), "LinearAttention", 27, IN(q, k, v), LS_E_NAME,
               "does not fit the operands");
    node_fails(linear("cubic", 1, 1), "LinearAttention", 27, IN(q, k, v), LS_E_ATTR,
               "update_rule is \"cubic\"");
    node_fails(linear("linear", 1, 2), "LinearAttention", 27, IN(q, k, v), LS_E_ATTR,
               "kv_num_heads 2");
    node_fails(linear("linear", 1, 1), "LinearAttention", 27, IN(q, constant(SHAPE(1, 3, 1)), v),
               LS_E_SHAPE, "key is 1x3x1");
    node_fails(linear("linear", 1, 1), "LinearAttention", 27, IN(q, k, v, half), LS_E_SHAPE,
               "past_state is 1x2x1");
    LsValueId lengthy = param("l", SHAPE(1, 5000, 1));
    node_fails(linear("linear", 1, 1), "LinearAttention", 27, IN(lengthy, lengthy, lengthy),
               LS_E_UNSUPPORTED, "5000 steps");
}
END_TEST

/* ---- CausalConvWithState ---- */
START_TEST(causal_conv_sees_the_past_and_hands_it_on)
{
    Node plain = {0}, swish = {0}, wrong = {0};
    LsValueId x = reals_of(SHAPE(1, 1, 3), (float[]){1, 2, 3}),
              w = reals_of(SHAPE(1, 1, 3), (float[]){100, 10, 1}), out[2];
    LsValueId past = reals_of(SHAPE(1, 1, 2), (float[]){7, 8}), bias = REALS(0.5f);
    ck_assert(node_build(&plain, "CausalConvWithState", 27, IN(x, w), 2, out, NULL));
    EXPECT_RUN(out[0], 1, 12, 123);
    EXPECT_RUN(out[1], 2, 3);
    ck_assert(node_build(&plain, "CausalConvWithState", 27, IN(x, w, bias, past), 2, out, NULL));
    EXPECT_RUN(out[0], 781.5, 812.5, 123.5);
    node_string(&swish, "activation", "silu");
    ck_assert(node_build(&swish, "CausalConvWithState", 27,
                         IN(param("x", SHAPE(2, 3, 1)), param("w", SHAPE(3, 1, 3)),
                            param("b", SHAPE(3)), param("s", SHAPE(2, 3, 2))),
                         2, out, NULL));
    check_gradients(ls_append2(&cx, g, LS_OP_ADD, weighed(out[0]), weighed(out[1]), NULL));
    node_string(&wrong, "activation", "relu");
    node_fails(&wrong, "CausalConvWithState", 27, IN(x, w), LS_E_ATTR, "activation is \"relu\"");
    node_fails(&plain, "CausalConvWithState", 27, IN(x, bias), LS_E_SHAPE,
               "input is 1x1x3, weight is 1");
    node_fails(&plain, "CausalConvWithState", 27, IN(x, w, bias, x), LS_E_SHAPE,
               "past_state is 1x1x3, not 1x1x2");
    node_fails(&plain, "CausalConvWithState", 27, IN(x, w, past), LS_E_SHAPE, "bias is 1x1x2");
}
END_TEST

/* ---- DFT, STFT ---- */
static Node *spectrum(int64_t inverse, int64_t onesided)
{
    Node *n = ls_arena_alloc(cx.arena, 1, sizeof *n);
    node_int(n, "inverse", inverse);
    node_int(n, "onesided", onesided);
    return n;
}

START_TEST(dft_is_the_sum_of_the_definition_and_its_inverse)
{
    LsValueId x = reals_of(SHAPE(1, 4, 1), (float[]){1, 2, 4, 8}), none = NONE;
    LsValueId all = node_one(spectrum(0, 0), "DFT", 20, IN(x));
    EXPECT_RUN(all, 15, 0, -3, 6, -5, 0, -3, -6);
    EXPECT_RUN(node_one(spectrum(1, 0), "DFT", 17, IN(all)), 1, 0, 2, 0, 4, 0, 8, 0);
    LsValueId side = node_one(spectrum(0, 1), "DFT", 17, IN(x));
    EXPECT_RUN(side, 15, 0, -3, 6, -5, 0);
    EXPECT_RUN(node_one(spectrum(1, 1), "DFT", 20, IN(side)), 1, 2, 4, 8);
    EXPECT_RUN(node_one(spectrum(0, 0), "DFT", 20, IN(x, INTS(2))), 3, 0, -1, 0);
    EXPECT_RUN(node_one(spectrum(0, 1), "DFT", 20, IN(x, INTS(6), INTS(1))), 15, 0, -8, -5.1961524,
               6, 1.7320508, -5, 0);
    node_fails(spectrum(0, 0), "DFT", 20, IN(x, none, INTS(2)), LS_E_ATTR,
               "axis 2 holds the parts");
    node_fails(spectrum(0, 1), "DFT", 20, IN(all), LS_E_ATTR, "onesided needs a real signal");
    node_fails(spectrum(0, 0), "DFT", 20, IN(constant(SHAPE(1, 4, 3))), LS_E_SHAPE,
               "the signal is 1x4x3");
    node_fails(spectrum(0, 0), "DFT", 20, IN(x, INTS(0)), LS_E_ATTR, "dft_length is 0");
    node_fails(spectrum(0, 0), "DFT", 20, IN(x, INTS(1 << 30)), LS_E_SHAPE, "too large");
}
END_TEST

START_TEST(dft_has_gradients_along_every_axis_in_every_form)
{
    for (int k = 0; k < 12; k++) {
        bool inverse = k & 1, onesided = k & 2;
        LsShape s = {4, {2, 3, 4, inverse || !onesided ? 2 : 1}};
        LsValueId none = NONE;
        LsValueId y = node_one(spectrum(inverse, onesided), "DFT", 20,
                               IN(param("x", s), k % 3 == 0 ? INTS(5) : none, INTS(k / 4)));
        check_gradients(weighed(y));
        graph_reopen();
    }
}
END_TEST

START_TEST(stft_transforms_frames_under_a_window)
{
    Node n = {0}, whole = {0};
    node_int(&whole, "onesided", 0);
    LsValueId x = reals_of(SHAPE(1, 5, 1), (float[]){1, 2, 3, 4, 5}), none = NONE;
    EXPECT_RUN(node_one(&n, "STFT", 17, IN(x, INTS(3), none, INTS(2))), 3, 0, -1, 0, 9, 0, -1, 0);
    EXPECT_RUN(node_one(&whole, "STFT", 17, IN(x, INTS(2), REALS(1, 0.5f))), 2, 0, 0, 0, 5, 0, 1,
               0);
    LsValueId y =
        node_one(&n, "STFT", 17, IN(param("x", SHAPE(2, 7, 1)), INTS(2), param("w", SHAPE(4))));
    expect_shape(y, SHAPE(2, 2, 3, 2));
    check_gradients(weighed(y));
    node_fails(&n, "STFT", 17, IN(x, INTS(1), none, INTS(6)), LS_E_SHAPE,
               "a frame has 6 elements, the signal 5");
    node_fails(&n, "STFT", 17, IN(x, INTS(0), none, INTS(2)), LS_E_ATTR, "frame_step is 0");
    node_fails(&n, "STFT", 17, IN(constant(SHAPE(1, 5, 2)), INTS(1), none, INTS(2)), LS_E_ATTR,
               "onesided needs");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("ops_signal");
    tcase_add_checked_fixture(tc, graph_open, graph_close);
    tcase_add_test(tc, linear_attention_has_gradients_by_every_rule);
    tcase_add_test(tc, linear_attention_steps_through_its_recurrence);
    tcase_add_test(tc, causal_conv_sees_the_past_and_hands_it_on);
    tcase_add_test(tc, dft_is_the_sum_of_the_definition_and_its_inverse);
    tcase_add_test(tc, dft_has_gradients_along_every_axis_in_every_form);
    tcase_add_test(tc, stft_transforms_frames_under_a_window);
    return run_tests("ops_signal", tc);
}
