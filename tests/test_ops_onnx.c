/* tests/test_ops_onnx.c -- ONNX rows of pointwise, reducing and moving operators: every form that
 * an opset gave them, and what they refuse. Operands are constants where the result's numbers are
 * looked at. */
#include "tests/onnx_node.h"
#include "tests/suite.h"

static LsValueId ints_of(LsShape s, const int64_t *v)
{
    int64_t *data = ls_arena_alloc(cx.arena, (size_t)ls_count(&s) + 1, sizeof *data);
    memcpy(data, v, (size_t)ls_count(&s) * sizeof *data);
    return ls_const_add(&cx, g, LS_I64, &s, data);
}

static LsValueId reals_of(LsShape s, const float *v)
{
    float *data = ls_arena_alloc(cx.arena, (size_t)ls_count(&s) + 1, sizeof *data);
    memcpy(data, v, (size_t)ls_count(&s) * sizeof *data);
    return ls_const_add(&cx, g, LS_REAL, &s, data);
}

#define LIST(...) sizeof (int64_t[]){__VA_ARGS__} / 8, (int64_t[]){__VA_ARGS__}
#define INTS(...) ints_of(SHAPE(sizeof (int64_t[]){__VA_ARGS__} / 8), (int64_t[]){__VA_ARGS__})
#define REALS(...) reals_of(SHAPE(sizeof (float[]){__VA_ARGS__} / 4), (float[]){__VA_ARGS__})
#define IN(...) sizeof (LsValueId[]){__VA_ARGS__} / sizeof(LsValueId), (LsValueId[]){__VA_ARGS__}
static const LsValueId NONE;

static LsValueId scalar(double v) { return ls_const_real(&cx, g, v); }

static LsValueId input(LsShape s)
{
    return ls_value_add(&cx, g, LS_V_INPUT, "x", LS_REAL, &s, NULL);
}

static void expect(LsValueId v, int n, const double *want)
{
    ck_assert(ls_is_const(g, v));
    ck_assert_int_eq(ls_count(ls_shape(g, v)), n);
    for (int i = 0; i < n; i++)
        ck_assert_msg(fabs(ls_const_at(g, v, i) - want[i]) <= 1e-6 * (1 + fabs(want[i])),
                      "element %d is %.9g, not %.9g", i, ls_const_at(g, v, i), want[i]);
}
#define EXPECT(v, ...) expect(v, sizeof (double[]){__VA_ARGS__} / 8, (double[]){__VA_ARGS__})

static void expect_shape(LsValueId v, LsShape want)
{
    ck_assert_msg(ls_shape_same(ls_shape(g, v), &want), "%s, not %s",
                  ls_shape_text(cx.arena, ls_shape(g, v)), ls_shape_text(cx.arena, &want));
}

static const LsOp *made_by(LsValueId v) { return ls_op[g->node[g->value[v.i].def.i].op]; }

START_TEST(clip_takes_bounds_from_attributes_then_operands)
{
    LsValueId x = REALS(-2, 0.5, 9);
    Node old = {0}, now = {0};
    node_float(&old, "min", -1);
    node_float(&old, "max", 3);
    EXPECT(node_one(&old, "Clip", 6, IN(x)), -1, 0.5, 3);
    EXPECT(node_one(&now, "Clip", 11, IN(x, scalar(-1), scalar(3))), -1, 0.5, 3);
    EXPECT(node_one(&now, "Clip", 13, IN(x, NONE, scalar(3))), -2, 0.5, 3);
    EXPECT(node_one(&now, "Clip", 13, IN(x, scalar(5), scalar(3))), 3, 3, 3);
    EXPECT(node_one(&now, "Clip", 12, IN(INTS(-2, 9), ints_of((LsShape){0}, (int64_t[]){1}))), 1,
           9);
    LsValueId y = node_one(&now, "Clip", 13, IN(input(SHAPE(3)), scalar(0)));
    ck_assert_str_eq(made_by(y)->name, "Relu");
}
END_TEST

START_TEST(a_bound_that_is_an_initializer_is_no_parameter_and_one_computed_is_refused)
{
    Node n = {0};
    LsValueId lo = ls_value_add(&cx, g, LS_V_PARAM, "lo", LS_REAL, &(LsShape){0}, numbers(1, 3));
    LsValueId x = input(SHAPE(3));
    node_one(&n, "Clip", 13, IN(x, lo));
    ck_assert_int_eq(g->value[lo.i].kind, LS_V_CONST);
    LsValueId sum = ls_append1(&cx, g, LS_OP_REDUCE_SUM, x, &(LsAttr){.reduce = {1, true}});
    node_fails(&n, "Clip", 13, IN(x, sum), LS_E_NOT_CONST, "must be known at compile time");
}
END_TEST

START_TEST(powers_known_at_compile_time_become_products_and_roots)
{
    Node n = {0};
    static const struct { double p; const char *op; } known[] = {
        {2, "Mul"}, {3, "Mul"}, {0.5, "Sqrt"}, {-1, "Reciprocal"}, {2.5, "Pow"}};
    for (int k = 0; k < 5; k++)
        ck_assert_str_eq(
            made_by(node_one(&n, "Pow", 13, IN(input(SHAPE(3)), scalar(known[k].p))))->name,
            known[k].op);
    LsValueId stored = ls_value_add(&cx, g, LS_V_PARAM, "p", LS_REAL, &(LsShape){0}, numbers(1, 3));
    node_one(&n, "Pow", 13, IN(input(SHAPE(3)), stored));
    ck_assert_int_eq(g->value[stored.i].kind, LS_V_CONST);
    EXPECT(node_one(&n, "Pow", 15, IN(REALS(2, 3), INTS(3, 2))), 8, 9);
    EXPECT(node_one(&n, "Pow", 15, IN(INTS(2, 9), REALS(3, 0.5))), 8, 3);
}
END_TEST

START_TEST(casts_drop_what_changes_nothing_and_refuse_other_types)
{
    Node real = {0}, whole = {0}, truth = {0}, text = {0};
    LsValueId x = input(SHAPE(2));
    node_int(&real, "to", 11);
    ck_assert_uint_eq(node_one(&real, "Cast", 13, IN(x)).i, x.i);      /* double is real too */
    node_int(&whole, "to", 7);
    EXPECT(node_one(&whole, "Cast", 9, IN(REALS(2.7f, -2.7f))), 2, -2);
    node_int(&truth, "to", 9);
    EXPECT(node_one(&truth, "Cast", 9, IN(REALS(0, 0.2f, -3))), 0, 1, 1);
    EXPECT(node_one(&truth, "Cast", 9, IN(INTS(0, 256))), 0, 1);
    node_int(&text, "to", 8);
    node_fails(&text, "Cast", 13, IN(x), LS_E_UNSUPPORTED, "casts to string");
}
END_TEST

START_TEST(chains_of_sum_mean_min_and_max_take_any_number_of_operands)
{
    Node n = {0};
    LsValueId a = REALS(1, 8), b = REALS(3, 2), c = REALS(5);
    EXPECT(node_one(&n, "Sum", 8, IN(a, b, c)), 9, 15);
    EXPECT(node_one(&n, "Mean", 13, IN(a, b, c)), 3, 5);
    EXPECT(node_one(&n, "Max", 13, IN(a, b, c)), 5, 8);
    EXPECT(node_one(&n, "Min", 8, IN(a, b, c)), 1, 2);
    EXPECT(node_one(&n, "Sum", 8, IN(a)), 1, 8);
    node_fails(&n, "Sum", 8, 0, NULL, LS_E_PARSE, "has 0 operands, Sum takes at least 1");
}
END_TEST

START_TEST(activations_read_their_attributes)
{
    Node leaky = {0}, none = {0}, hard = {0}, tanh = {0}, bad = {0};
    LsValueId x = REALS(-1, 2);
    EXPECT(node_one(&none, "LeakyRelu", 6, IN(x)), -0.01, 2);
    node_float(&leaky, "alpha", 0.5f);
    EXPECT(node_one(&leaky, "LeakyRelu", 16, IN(x)), -0.5, 2);
    EXPECT(node_one(&leaky, "Elu", 6, IN(x)), 0.5 * (exp(-1) - 1), 2);
    EXPECT(node_one(&none, "Selu", 6, IN(x)), 1.0507010 * 1.6732632 * (exp(-1) - 1), 2 * 1.0507010);
    EXPECT(node_one(&none, "HardSigmoid", 6, IN(x)), 0.3, 0.9);
    node_float(&hard, "alpha", 0.25f);
    node_float(&hard, "beta", 0.25f);
    EXPECT(node_one(&hard, "HardSigmoid", 6, IN(x)), 0, 0.75);
    EXPECT(node_one(&none, "HardSwish", 14, IN(x)), -1.0 / 3, 5.0 / 3);
    EXPECT(node_one(&none, "Gelu", 20, IN(x)), -0.15865525, 1.9544997);
    node_string(&tanh, "approximate", "tanh");
    EXPECT(node_one(&tanh, "Gelu", 20, IN(x)), -0.15880801, 1.9545977);
    node_string(&bad, "approximate", "sigmoid");
    node_fails(&bad, "Gelu", 20, IN(x), LS_E_ATTR, "approximate is \"sigmoid\"");
}
END_TEST

static LsValueId grid(void) { return reals_of(SHAPE(2, 3), (float[]){1, 2, 3, 4, 5, 6}); }

START_TEST(reductions_take_axes_from_attributes_then_operands)
{
    Node attr = {0}, drop = {0}, none = {0}, noop = {0};
    node_ints(&attr, "axes", LIST(-1));
    EXPECT(node_one(&attr, "ReduceSum", 11, IN(grid())), 6, 15);
    EXPECT(node_one(&attr, "ReduceMean", 13, IN(grid())), 2, 5);
    EXPECT(node_one(&none, "ReduceSum", 13, IN(grid(), INTS(0))), 5, 7, 9);
    EXPECT(node_one(&none, "ReduceMean", 18, IN(grid(), INTS(0, 1))), 3.5);
    EXPECT(node_one(&none, "ReduceMax", 18, IN(grid())), 6);
    expect_shape(node_one(&none, "ReduceMax", 18, IN(grid())), SHAPE(1, 1));
    node_int(&drop, "keepdims", 0);
    expect_shape(node_one(&drop, "ReduceMin", 20, IN(grid(), INTS(1))), SHAPE(2));
    expect_shape(node_one(&drop, "ReduceMin", 20, IN(grid())), (LsShape){0});
    node_int(&noop, "noop_with_empty_axes", 1);
    LsValueId x = grid();
    ck_assert_uint_eq(node_one(&noop, "ReduceSum", 13, IN(x)).i, x.i);
    node_fails(&none, "ReduceSum", 13, IN(x, INTS(2)), LS_E_ATTR, "axis 2 is outside");
}
END_TEST

START_TEST(composed_reductions_have_their_values)
{
    Node n = {0};
    LsValueId x = reals_of(SHAPE(1, 2), (float[]){-3, 4}), axis = INTS(1);
    EXPECT(node_one(&n, "ReduceL1", 18, IN(x, axis)), 7);
    EXPECT(node_one(&n, "ReduceL2", 18, IN(x, axis)), 5);
    EXPECT(node_one(&n, "ReduceSumSquare", 18, IN(x, axis)), 25);
    EXPECT(node_one(&n, "ReduceProd", 18, IN(x, axis)), -12);
    EXPECT(node_one(&n, "ReduceLogSum", 18, IN(REALS(1, 2), INTS(0))), log(3));
    EXPECT(node_one(&n, "ReduceLogSumExp", 18, IN(REALS(90, 91), INTS(0))), 91 + log(1 + exp(-1)));
    LsValueId image = reals_of(SHAPE(1, 2, 2), (float[]){1, 2, 3, 5});
    EXPECT(node_one(&n, "GlobalAveragePool", 1, IN(image)), 1.5, 4);
    EXPECT(node_one(&n, "GlobalMaxPool", 1, IN(image)), 2, 5);
    node_fails(&n, "GlobalMaxPool", 1, IN(x), LS_E_SHAPE, "the operand is 1x2");
}
END_TEST

START_TEST(gradient_of_log_sum_exp_matches_differences)
{
    Node n = {0};
    LsValueId y = node_one(&n, "ReduceLogSumExp", 18, IN(param("x", SHAPE(2, 3)), INTS(1)));
    check_gradients(weighed(y));
}
END_TEST

START_TEST(reshape_copies_zeros_and_fills_in_one_rest)
{
    Node n = {0}, zero = {0}, old = {0};
    LsValueId x = input(SHAPE(2, 3, 4));
    expect_shape(node_one(&n, "Reshape", 13, IN(x, INTS(0, -1))), SHAPE(2, 12));
    expect_shape(node_one(&n, "Reshape", 5, IN(x, INTS(4, 0, 2))), SHAPE(4, 3, 2));
    node_ints(&old, "shape", LIST(6, 4));
    expect_shape(node_one(&old, "Reshape", 1, IN(x)), SHAPE(6, 4));
    node_fails(&n, "Reshape", 13, IN(x, INTS(-1, -1)), LS_E_ATTR, "-1 twice");
    node_fails(&n, "Reshape", 13, IN(x, INTS(5, -1)), LS_E_SHAPE,
               "24 elements (2x3x4) do not divide by 5");
    node_fails(&n, "Reshape", 13, IN(x, INTS(5, 5)), LS_E_SHAPE,
               "2x3x4 has 24 elements, 5x5 has 25");
    node_fails(&n, "Reshape", 13, IN(x, INTS(1, 2, 3, 0)), LS_E_SHAPE, "no such axis");
    node_int(&zero, "allowzero", 1);
    node_fails(&zero, "Reshape", 14, IN(x, INTS(0, 24)), LS_E_SHAPE, "of length 0");
    node_fails(&n, "Reshape", 13, IN(x, INTS(INT64_MAX, 4, -1)), LS_E_SHAPE, "more elements than");
}
END_TEST

START_TEST(squeeze_unsqueeze_and_flatten_know_both_forms)
{
    Node n = {0}, attr = {0}, twice = {0}, flat = {0}, all = {0};
    LsValueId x = input(SHAPE(1, 3, 1, 2));
    node_ints(&attr, "axes", LIST(0, -2));
    expect_shape(node_one(&attr, "Squeeze", 11, IN(x)), SHAPE(3, 2));
    expect_shape(node_one(&n, "Squeeze", 13, IN(x, INTS(2))), SHAPE(1, 3, 2));
    expect_shape(node_one(&n, "Squeeze", 13, IN(x)), SHAPE(3, 2));
    node_fails(&n, "Squeeze", 13, IN(x, INTS(1)), LS_E_SHAPE, "has length 3, not 1");
    LsValueId y = input(SHAPE(3, 2));
    expect_shape(node_one(&attr, "Unsqueeze", 11, IN(y)), SHAPE(1, 3, 1, 2));
    expect_shape(node_one(&n, "Unsqueeze", 13, IN(y, INTS(-1))), SHAPE(3, 2, 1));
    node_ints(&twice, "axes", LIST(0, 0));
    node_fails(&twice, "Unsqueeze", 11, IN(y), LS_E_ATTR, "axis 0 twice");
    expect_shape(node_one(&n, "Flatten", 9, IN(x)), SHAPE(1, 6));
    node_int(&flat, "axis", -1);
    expect_shape(node_one(&flat, "Flatten", 11, IN(x)), SHAPE(3, 2));
    node_int(&all, "axis", 4);
    expect_shape(node_one(&all, "Flatten", 11, IN(x)), SHAPE(6, 1));
}
END_TEST

START_TEST(slice_clamps_and_counts_from_the_back)
{
    Node n = {0}, old = {0};
    LsValueId x = REALS(0, 1, 2, 3, 4);
    node_ints(&old, "starts", LIST(1));
    node_ints(&old, "ends", LIST(-1));
    EXPECT(node_one(&old, "Slice", 9, IN(x)), 1, 2, 3);
    EXPECT(node_one(&n, "Slice", 10, IN(x, INTS(-2), INTS(INT64_MAX), INTS(-1))), 3, 4);
    EXPECT(node_one(&n, "Slice", 13, IN(x, INTS(INT64_MAX), INTS(INT64_MIN), INTS(0), INTS(-2))), 4,
           2, 0);
    EXPECT(node_one(&n, "Slice", 13, IN(x, INTS(INT64_MIN), INTS(2), NONE, INTS(INT64_MAX))), 0);
    EXPECT(node_one(&n, "Slice", 13, IN(x, INTS(2), INTS(-100), INTS(0), INTS(INT64_MIN))), 2);
    ck_assert_uint_eq(node_one(&n, "Slice", 13, IN(x, INTS(0), INTS(99), INTS(0))).i, x.i);
    node_fails(&n, "Slice", 13, IN(x, INTS(0), INTS(2), INTS(0), INTS(0)), LS_E_ATTR,
               "step along axis 0 is 0");
    node_fails(&n, "Slice", 13, IN(x, INTS(0, 1), INTS(2)), LS_E_ATTR,
               "ends has 1 entries, starts has 2");
    node_fails(&n, "Slice", 13, IN(input(SHAPE(5)), INTS(3), INTS(3)), LS_E_SHAPE, "of length 0");
}
END_TEST

/* The lengths along axis 0 of what Split makes. */
static void split(Node *n, int version, int nin, const LsValueId *in, int nout, const int64_t *want)
{
    LsValueId out[4];
    ck_assert(node_build(n, "Split", version, nin, in, nout, out, NULL));
    for (int k = 0; k < nout; k++)
        ck_assert_int_eq(ls_shape(g, out[k])->dim[0], want[k]);
}

START_TEST(split_knows_its_three_forms)
{
    Node n = {0}, attr = {0}, count = {0};
    LsValueId x = input(SHAPE(7, 2)), even = input(SHAPE(6));
    node_ints(&attr, "split", LIST(2, 5));
    split(&attr, 11, IN(x), 2, (int64_t[]){2, 5});
    split(&n, 13, IN(x, INTS(1, 2, 4)), 3, (int64_t[]){1, 2, 4});
    split(&n, 13, IN(x, INTS(1, 2, 4)), 2, (int64_t[]){1, 2}); /* the last one is not used */
    split(&n, 13, IN(even), 3, (int64_t[]){2, 2, 2});
    node_int(&count, "num_outputs", 4);
    split(&count, 18, IN(x), 4, (int64_t[]){2, 2, 2, 1});
    node_fails(&n, "Split", 13, IN(x, INTS(3, 3)), LS_E_SHAPE, "do not add up to 7");
    node_fails(&n, "Split", 13, IN(x, INTS(-1, 8)), LS_E_SHAPE, "do not add up to 7");
    node_fails(&n, "Split", 13, IN(x, INTS(100, -100, 7)), LS_E_SHAPE, "do not add up to 7");
    LsValueId out[2];
    char *log;
    ck_assert(!node_build(&n, "Split", 13, IN(x), 2, out, &log));
    ck_assert_ptr_nonnull(strstr(log, "length 7 does not divide into 2 equal parts"));
}
END_TEST

START_TEST(pad_knows_its_forms_and_modes)
{
    Node n = {0}, old = {0}, edge = {0}, wrap = {0};
    LsValueId x = REALS(1, 2, 3), m = input(SHAPE(2, 3));
    node_ints(&old, "pads", LIST(1, 0));
    node_float(&old, "value", 7);
    EXPECT(node_one(&old, "Pad", 2, IN(x)), 7, 1, 2, 3);
    EXPECT(node_one(&n, "Pad", 11, IN(x, INTS(0, 2), scalar(7))), 1, 2, 3, 7, 7);
    EXPECT(node_one(&n, "Pad", 13, IN(x, INTS(-1, 1))), 2, 3, 0);
    expect_shape(node_one(&n, "Pad", 18, IN(m, INTS(1, 4), NONE, INTS(-1))), SHAPE(2, 8));
    ck_assert_uint_eq(node_one(&n, "Pad", 13, IN(m, INTS(0, 0, 0, 0))).i, m.i);
    node_string(&edge, "mode", "edge");
    EXPECT(node_one(&edge, "Pad", 11, IN(x, INTS(1, 1))), 1, 1, 2, 3, 3);
    node_string(&wrap, "mode", "wrap");
    node_fails(&wrap, "Pad", 19, IN(x, INTS(1, 1)), LS_E_UNSUPPORTED, "mode is \"wrap\"");
    node_fails(&n, "Pad", 13, IN(m, INTS(1, 1)), LS_E_ATTR, "pads has 2 entries, 2 axes need 4");
}
END_TEST

START_TEST(gather_by_one_known_index_is_a_slice)
{
    Node n = {0}, axis = {0};
    node_int(&axis, "axis", -1);
    LsValueId x = input(SHAPE(4, 5)), last = ints_of((LsShape){0}, (int64_t[]){-1});
    expect_shape(node_one(&axis, "Gather", 13, IN(x, last)), SHAPE(4));
    expect_shape(node_one(&n, "Gather", 13, IN(x, INTS(2))), SHAPE(1, 5));
    for (uint32_t i = 1; i < g->nnode; i++)
        ck_assert_int_ne(g->node[i].op, LS_OP_GATHER);
    expect_shape(node_one(&n, "Gather", 13, IN(x, INTS(2, 0, 1))), SHAPE(3, 5));
    EXPECT(node_one(&axis, "Gather", 11, IN(grid(), INTS(2, -3))), 3, 1, 6, 4);
    node_fails(&n, "Gather", 13, IN(x, INTS(4, 0)), LS_E_SHAPE,
               "index 4 is outside an axis of length 4");
}
END_TEST

static const LsResizeAttr *resize_of(LsValueId v)
{
    const LsNode *n = &g->node[g->value[v.i].def.i];
    ck_assert_int_eq(n->op, LS_OP_RESIZE);
    return &n->attr.resize;
}

START_TEST(resize_and_upsample_mean_what_their_opset_says)
{
    Node old = {0}, n = {0}, torch = {0}, floats = {0};
    LsValueId x = input(SHAPE(1, 2, 3, 4)), scales = REALS(1, 1, 2, 2);
    node_floats(&floats, "scales", 4, (float[]){1, 1, 2, 1.5f});
    LsValueId y = node_one(&floats, "Upsample", 7, IN(x));
    expect_shape(y, SHAPE(1, 2, 6, 6));
    node_string(&old, "mode", "linear");
    y = node_one(&old, "Upsample", 9, IN(x, scales));
    ck_assert_int_eq(resize_of(y)->coord, LS_COORD_ASYMMETRIC);
    ck_assert_int_eq(resize_of(y)->mode, LS_RESIZE_LINEAR);
    y = node_one(&n, "Resize", 10, IN(x, scales));
    ck_assert_int_eq(resize_of(y)->coord, LS_COORD_ASYMMETRIC);
    ck_assert_int_eq(resize_of(y)->nearest, LS_ROUND_FLOOR);
    y = node_one(&n, "Resize", 11, IN(x, NONE, scales));
    ck_assert_int_eq(resize_of(y)->coord, LS_COORD_HALF_PIXEL);
    ck_assert_int_eq(resize_of(y)->nearest, LS_ROUND_PREFER_FLOOR);
    LsValueId none = reals_of(SHAPE(0), (float[]){0});
    node_string(&torch, "coordinate_transformation_mode", "pytorch_half_pixel");
    node_string(&torch, "nearest_mode", "floor");
    y = node_one(&torch, "Resize", 13, IN(x, none, none, INTS(1, 2, 5, 4)));
    ck_assert_int_eq(resize_of(y)->coord, LS_COORD_PYTORCH_HALF_PIXEL);
    ck_assert_double_eq(resize_of(y)->scale[2], 5.0 / 3);
    expect_shape(y, SHAPE(1, 2, 5, 4));
    ck_assert_uint_eq(node_one(&n, "Resize", 13, IN(x, NONE, REALS(1, 1, 1, 1))).i, x.i);
}
END_TEST

START_TEST(resize_takes_axes_and_policies_and_refuses_the_rest)
{
    Node axes = {0}, keep = {0}, cubic = {0}, n = {0};
    LsValueId x = input(SHAPE(1, 2, 4, 8));
    node_ints(&axes, "axes", LIST(3, 2));
    expect_shape(node_one(&axes, "Resize", 18, IN(x, NONE, NONE, INTS(3, 5))), SHAPE(1, 2, 5, 3));
    node_ints(&keep, "axes", LIST(2, 3));
    node_string(&keep, "keep_aspect_ratio_policy", "not_larger");
    expect_shape(node_one(&keep, "Resize", 18, IN(x, NONE, NONE, INTS(8, 8))), SHAPE(1, 2, 4, 8));
    node_string(&cubic, "mode", "cubic");
    node_fails(&cubic, "Resize", 13, IN(x, NONE, REALS(1, 1, 2, 2)), LS_E_UNSUPPORTED,
               "mode \"cubic\" is not handled");
    node_fails(&n, "Resize", 13, IN(x, NONE, REALS(1, 2, 2, 2)), LS_E_UNSUPPORTED,
               "axis 1 is resized from 2 to 4");
    node_fails(&n, "Resize", 13, IN(x), LS_E_ATTR, "0 scales and 0 sizes for 4 axes");
    node_fails(&n, "Resize", 13, IN(x, NONE, REALS(1, 1, 0, 1)), LS_E_SHAPE, "would become 0 long");
    node_fails(&n, "Resize", 13, IN(x, NONE, REALS(1, 1, NAN, 1)), LS_E_SHAPE,
               "axis 2, of length 4");
}
END_TEST

START_TEST(shapes_sizes_and_ranges_are_constants)
{
    Node n = {0}, part = {0};
    LsValueId x = input(SHAPE(2, 3, 4));
    EXPECT(node_one(&n, "Shape", 13, IN(x)), 2, 3, 4);
    node_int(&part, "start", -2);
    node_int(&part, "end", 99);
    EXPECT(node_one(&part, "Shape", 15, IN(x)), 3, 4);
    EXPECT(node_one(&n, "Size", 13, IN(x)), 24);
    LsValueId a = ints_of((LsShape){0}, (int64_t[]){7}), b = ints_of((LsShape){0}, (int64_t[]){1});
    LsValueId step = ints_of((LsShape){0}, (int64_t[]){-3}),
              zero = ints_of((LsShape){0}, (int64_t[]){0});
    EXPECT(node_one(&n, "Range", 11, IN(a, b, step)), 7, 4);
    EXPECT(node_one(&n, "Range", 11, IN(scalar(0), scalar(1), scalar(0.4))), 0, 0.4, 0.8);
    node_fails(&n, "Range", 11, IN(a, b, zero), LS_E_SHAPE, "from 7 to 1 by 0 is too long");
    node_fails(&n, "Range", 11, IN(b, a, zero), LS_E_SHAPE, "from 1 to 7 by 0 is too long");
    EXPECT(node_one(&n, "ConstantOfShape", 9, IN(INTS(2, 2))), 0, 0, 0, 0);
    node_fails(&n, "ConstantOfShape", 9, IN(INTS(INT64_MAX, 4)), LS_E_SHAPE, "more elements than");
}
END_TEST

START_TEST(expand_and_tile_repeat)
{
    Node n = {0};
    LsValueId x = reals_of(SHAPE(2, 1), (float[]){1, 2});
    EXPECT(node_one(&n, "Expand", 8, IN(x, INTS(1, 1, 2))), 1, 1, 2, 2);
    LsValueId same = node_one(&n, "Expand", 8, IN(x, INTS(1, 1)));
    expect_shape(same, SHAPE(2, 1));        /* the operand wins over 1 */
    node_fails(&n, "Expand", 8, IN(x, INTS(3, 2)), LS_E_SHAPE, "2x1 and the asked shape 3x2");
    EXPECT(node_one(&n, "Tile", 6, IN(x, INTS(1, 2))), 1, 1, 2, 2);
    node_fails(&n, "Tile", 6, IN(x, INTS(2)), LS_E_SHAPE, "repeats has 1 entries");
    node_fails(&n, "Tile", 6, IN(x, INTS(1, -1)), LS_E_SHAPE, "repeats axis 1 -1 times");
}
END_TEST

START_TEST(depth_and_space_change_places_in_both_modes)
{
    Node dcr = {0}, crd = {0}, bad = {0};
    LsValueId x = reals_of(SHAPE(1, 8, 1, 1), (float[]){0, 1, 2, 3, 4, 5, 6, 7});
    node_int(&dcr, "blocksize", 2);
    LsValueId y = node_one(&dcr, "DepthToSpace", 11, IN(x));
    expect_shape(y, SHAPE(1, 2, 2, 2));
    EXPECT(y, 0, 2, 4, 6, 1, 3, 5, 7);
    EXPECT(node_one(&dcr, "SpaceToDepth", 13, IN(y)), 0, 1, 2, 3, 4, 5, 6, 7);
    node_int(&crd, "blocksize", 2);
    node_string(&crd, "mode", "CRD");
    EXPECT(node_one(&crd, "DepthToSpace", 11, IN(x)), 0, 1, 2, 3, 4, 5, 6, 7);
    node_int(&bad, "blocksize", 3);
    node_fails(&bad, "DepthToSpace", 11, IN(x), LS_E_SHAPE,
               "8 channels do not divide by blocksize^2, 9");
}
END_TEST

START_TEST(transpose_checks_its_permutation)
{
    Node n = {0}, perm = {0}, twice = {0}, few = {0};
    LsValueId x = input(SHAPE(2, 3, 4));
    expect_shape(node_one(&n, "Transpose", 13, IN(x)), SHAPE(4, 3, 2));
    node_ints(&perm, "perm", LIST(0, 2, 1));
    expect_shape(node_one(&perm, "Transpose", 13, IN(x)), SHAPE(2, 4, 3));
    node_ints(&twice, "perm", LIST(0, 1, 1));
    node_fails(&twice, "Transpose", 13, IN(x), LS_E_ATTR, "perm names axis 1 twice");
    node_ints(&few, "perm", LIST(1, 0));
    node_fails(&few, "Transpose", 13, IN(x), LS_E_ATTR,
               "perm has 2 entries, the operand 2x3x4 has 3 axes");
}
END_TEST

static LsValueId truth(bool v)
{
    uint8_t *data = ls_arena_alloc(cx.arena, 1, 1);
    *data = v;
    return ls_const_add(&cx, g, LS_BOOL, &(LsShape){0}, data);
}

START_TEST(dropout_works_in_training_only)
{
    Node old = {0}, n = {0}, bad = {0};
    LsValueId x = input(SHAPE(4)), out[2];
    node_float(&old, "ratio", 0.25f);
    LsValueId y = node_one(&old, "Dropout", 10, IN(x));
    ck_assert_str_eq(made_by(y)->name, "Dropout");
    ck_assert_double_eq(g->node[g->value[y.i].def.i].attr.scalar.a, 0.25);
    double stream = g->node[g->value[y.i].def.i].attr.scalar.b;
    y = node_one(&n, "Dropout", 12, IN(x, scalar(0.5), truth(true)));
    ck_assert_double_ne(g->node[g->value[y.i].def.i].attr.scalar.b, stream);
    ck_assert_uint_eq(node_one(&n, "Dropout", 12, IN(x, scalar(0), truth(true))).i, x.i);
    ck_assert_uint_eq(node_one(&n, "Dropout", 13, IN(x, scalar(0.5), truth(false))).i, x.i);
    ck_assert_uint_eq(node_one(&n, "Dropout", 13, IN(x)).i, x.i);
    ck_assert(node_build(&n, "Dropout", 12, IN(x, scalar(0.5), truth(true)), 2, out, NULL));
    ck_assert_int_eq(ls_type(g, out[1]), LS_BOOL);
    node_float(&bad, "ratio", 1);
    node_fails(&bad, "Dropout", 10, IN(x), LS_E_ATTR, "ratio is 1");
    g->training = false;
    ck_assert_uint_eq(node_one(&old, "Dropout", 10, IN(x)).i, x.i);
}
END_TEST

static double stream_of_seed(int64_t seed)
{
    Node n = {0};
    node_int(&n, "seed", seed);
    LsValueId y = node_one(&n, "Dropout", 12, IN(input(SHAPE(4)), scalar(0.5), truth(true)));
    return g->node[g->value[y.i].def.i].attr.scalar.b;
}

START_TEST(dropout_seeds_that_differ_by_one_are_different_streams_even_as_floats)
{
    ck_assert_double_eq(stream_of_seed(3), stream_of_seed(3));
    for (int64_t seed = 0; seed < 100; seed++)
        ck_assert((float)stream_of_seed(seed) != (float)stream_of_seed(seed + 1));
}
END_TEST

START_TEST(concat_joins_and_skips_empty_constants)
{
    Node n = {0};
    node_int(&n, "axis", 0);
    LsValueId empty = ints_of(SHAPE(0), (int64_t[]){0});
    EXPECT(node_one(&n, "Concat", 13, IN(INTS(1, 2), empty, INTS(3))), 1, 2, 3);
    Node none = {0};
    node_fails(&none, "Concat", 13, IN(INTS(1), INTS(2)), LS_E_ATTR, "is outside");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("ops_onnx");
    tcase_add_checked_fixture(tc, graph_open, graph_close);
    tcase_add_test(tc, clip_takes_bounds_from_attributes_then_operands);
    tcase_add_test(tc, a_bound_that_is_an_initializer_is_no_parameter_and_one_computed_is_refused);
    tcase_add_test(tc, powers_known_at_compile_time_become_products_and_roots);
    tcase_add_test(tc, casts_drop_what_changes_nothing_and_refuse_other_types);
    tcase_add_test(tc, chains_of_sum_mean_min_and_max_take_any_number_of_operands);
    tcase_add_test(tc, activations_read_their_attributes);
    tcase_add_test(tc, reductions_take_axes_from_attributes_then_operands);
    tcase_add_test(tc, composed_reductions_have_their_values);
    tcase_add_test(tc, gradient_of_log_sum_exp_matches_differences);
    tcase_add_test(tc, reshape_copies_zeros_and_fills_in_one_rest);
    tcase_add_test(tc, squeeze_unsqueeze_and_flatten_know_both_forms);
    tcase_add_test(tc, slice_clamps_and_counts_from_the_back);
    tcase_add_test(tc, split_knows_its_three_forms);
    tcase_add_test(tc, pad_knows_its_forms_and_modes);
    tcase_add_test(tc, gather_by_one_known_index_is_a_slice);
    tcase_add_test(tc, resize_and_upsample_mean_what_their_opset_says);
    tcase_add_test(tc, resize_takes_axes_and_policies_and_refuses_the_rest);
    tcase_add_test(tc, shapes_sizes_and_ranges_are_constants);
    tcase_add_test(tc, expand_and_tile_repeat);
    tcase_add_test(tc, depth_and_space_change_places_in_both_modes);
    tcase_add_test(tc, transpose_checks_its_permutation);
    tcase_add_test(tc, dropout_works_in_training_only);
    tcase_add_test(tc, dropout_seeds_that_differ_by_one_are_different_streams_even_as_floats);
    tcase_add_test(tc, concat_joins_and_skips_empty_constants);
    return run_tests("ops_onnx", tc);
}
