/* tests/compiler/test_ops_onnx_move.c -- ONNX rows of operators that move numbers: the forms of
 * every opset, and refusals. Operands are constants where the test checks the result's numbers. */
#include "tests/support/onnx_node.h"
#include "tests/support/suite.h"

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
    Node n = {0}, old = {0}, join = {0};
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
    LsValueId y = input(SHAPE(5)), nothing = node_one(&n, "Slice", 13, IN(y, INTS(3), INTS(3)));
    node_int(&join, "axis", 0);
    ck_assert_uint_eq(node_one(&join, "Concat", 13, IN(y, nothing)).i, y.i);
    node_fails(&n, "Add", 13, IN(input(SHAPE(1)), nothing), LS_E_SHAPE, "of length 0");
    LsValueId some = input(SHAPE(5)), none = node_one(&n, "Slice", 13, IN(some, INTS(3), INTS(3)));
    expect_shape(none, SHAPE(0));
    expect_shape(node_one(&n, "Slice", 13, IN(some, INTS(1), INTS(3), INTS(0), INTS(-2))),
                 SHAPE(0));
    expect_shape(node_one(&n, "Slice", 13, IN(some, INTS(3), INTS(0), INTS(0), INTS(-2))),
                 SHAPE(2));
    Node along = {0};
    node_int(&along, "axis", 0);
    ck_assert_uint_eq(node_one(&along, "Concat", 13, IN(none, some)).i,
                      some.i); /* torch.roll by 0 */
}
END_TEST

/* The lengths of Split's results along axis 0. */
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
    node_fails(&wrap, "Pad", 18, IN(x, INTS(1, 1)), LS_E_ATTR, "mode is \"wrap\"");
    node_fails(&wrap, "Pad", 19, IN(x, INTS(-4, -4)), LS_E_SHAPE, "is padded by -4 and -4");
    EXPECT_RUN(node_one(&wrap, "Pad", 19, IN(reals_of(SHAPE(3), (float[]){1, 2, 3}), INTS(2, 4))),
               2, 3, 1, 2, 3, 1, 2, 3, 1);
    EXPECT_RUN(node_one(&wrap, "Pad", 19, IN(reals_of(SHAPE(3), (float[]){1, 2, 3}), INTS(-1, 2))),
               2, 3, 1, 2);
    node_fails(&n, "Pad", 13, IN(m, INTS(1, 1)), LS_E_ATTR, "pads has 2 entries, 2 axes need 4");
}
END_TEST

static uint32_t count_made(LsOpCode op)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        n += g->node[i].op == op;
    return n;
}

/* Positions, windows, the last elements: consecutive indices with any start. */
START_TEST(gather_by_a_run_of_known_indices_is_a_slice)
{
    Node n = {0}, axis = {0};
    node_int(&axis, "axis", 1);
    LsValueId grid = reals_of(SHAPE(3, 2), (float[]){1, 2, 3, 4, 5, 6}), x = input(SHAPE(3, 4, 5));
    ck_assert_uint_eq(node_one(&n, "Gather", 13, IN(x, INTS(0, 1, 2))).i, x.i);     /* no node */
    ck_assert_uint_eq(node_one(&n, "Gather", 13, IN(x, INTS(-3, 1, -1))).i, x.i);
    ck_assert_uint_eq(g->nnode, 1);
    LsValueId square = ints_of(SHAPE(2, 2), (int64_t[]){0, 1, 2, 3});
    expect_shape(node_one(&axis, "Gather", 13, IN(x, square)), SHAPE(3, 2, 2, 5));  /* a view */
    ck_assert_uint_eq(g->nnode, 2);
    ck_assert_uint_eq(count_made(LS_OP_RESHAPE), 1);
    LsValueId y = node_one(&axis, "Gather", 13, IN(x, INTS(1, 2)));
    expect_shape(y, SHAPE(3, 2, 5));
    ck_assert_int_eq(made_by(y)->op, LS_OP_SLICE);
    ck_assert_int_eq(made_by(y)->attr.slice.start[1], 1);
    ck_assert_int_eq(made_by(y)->attr.slice.start[0], 0);
    expect_shape(node_one(&axis, "Gather", 13, IN(x, INTS(-2, -1))), SHAPE(3, 2, 5));
    ck_assert_uint_eq(count_made(LS_OP_GATHER), 0);
    for (int k = 0; k < 4; k++) {                   /* no runs */
        static const int64_t at[][2] = {{-1, 0}, {1, 1}, {2, 1}, {0, 2}};
        expect_shape(node_one(&axis, "Gather", 13, IN(x, ints_of(SHAPE(2), at[k]))),
                     SHAPE(3, 2, 5));
    }
    ck_assert_uint_eq(count_made(LS_OP_GATHER), 4);
    EXPECT(node_one(&n, "Gather", 13, IN(grid, ints_of(SHAPE(2, 1), (int64_t[]){1, -1}))), 3, 4, 5,
           6);
}
END_TEST

/* No sum over places: the gradient of a window gets zeros around it, and the gradient of all rows
 * stays as it is. */
START_TEST(the_gradient_of_a_run_is_a_pad_or_a_view)
{
    for (int whole = 0; whole < 2; whole++) {
        Node n = {0};
        LsValueId p = param("p", SHAPE(4, 2)), index = whole
            ? ints_of(SHAPE(2, 2), (int64_t[]){0, 1, 2, 3}) : INTS(-3, -2);
        LsValueId y = node_one(&n, "Gather", 13, IN(p, index));
        check_gradients(weighed(ls_append1(&cx, g, LS_OP_EXP, y, NULL)));
        ck_assert_int_eq(g->ngrad, 1);
        ck_assert_uint_eq(count_made(LS_OP_PAD), !whole);
        ck_assert_uint_eq(count_made(LS_OP_GATHER_GRAD), 0);
        g = ls_graph_new(&cx);
        g->batch = 1;
    }
}
END_TEST

START_TEST(gather_by_one_known_index_is_a_slice)
{
    Node n = {0}, axis = {0};
    node_int(&axis, "axis", -1);
    LsValueId grid = reals_of(SHAPE(2, 3), (float[]){1, 2, 3, 4, 5, 6});
    LsValueId x = input(SHAPE(4, 5)), last = ints_of((LsShape){0}, (int64_t[]){-1});
    expect_shape(node_one(&axis, "Gather", 13, IN(x, last)), SHAPE(4));
    expect_shape(node_one(&n, "Gather", 13, IN(x, INTS(2))), SHAPE(1, 5));
    for (uint32_t i = 1; i < g->nnode; i++)
        ck_assert_int_ne(g->node[i].op, LS_OP_GATHER);
    expect_shape(node_one(&n, "Gather", 13, IN(x, INTS(2, 0, 1))), SHAPE(3, 5));
    EXPECT(node_one(&axis, "Gather", 11, IN(grid, INTS(2, -3))), 3, 1, 6, 4);
    node_fails(&n, "Gather", 13, IN(x, INTS(4, 0)), LS_E_SHAPE,
               "index 4 is outside an axis of length 4");
}
END_TEST

static const LsResizeAttr *resize_of(LsValueId v)
{
    const LsNode *n = made_by(v);
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
    node_fails(&cubic, "Resize", 10, IN(x, REALS(1, 1, 2, 2)), LS_E_UNSUPPORTED,
               "mode \"cubic\" is not supported");
    node_fails(&n, "Resize", 13, IN(x, NONE, REALS(1, 2, 2, 2)), LS_E_UNSUPPORTED,
               "axis 1 is resized from 2 to 4");
    node_fails(&n, "Resize", 13, IN(x), LS_E_ATTR, "0 scales and 0 sizes for 4 axes");
    node_fails(&n, "Resize", 13, IN(x, NONE, REALS(1, 1, 0, 1)), LS_E_SHAPE, "would become 0 long");
    node_fails(&n, "Resize", 13, IN(x, NONE, REALS(1, 1, NAN, 1)), LS_E_SHAPE,
               "axis 2, of length 4");
}
END_TEST

START_TEST(expand_and_tile_repeat)
{
    Node n = {0};
    LsValueId x = reals_of(SHAPE(2, 1), (float[]){1, 2});
    EXPECT(node_one(&n, "Expand", 8, IN(x, INTS(1, 1, 2))), 1, 1, 2, 2);
    LsValueId same = node_one(&n, "Expand", 8, IN(x, INTS(1, 1)));
    expect_shape(same, SHAPE(2, 1));        /* the operand's length wins over 1 */
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
    TCase *tc = tcase_create("ops_onnx_move");
    tcase_add_checked_fixture(tc, graph_open, graph_close);
    tcase_add_test(tc, reshape_copies_zeros_and_fills_in_one_rest);
    tcase_add_test(tc, squeeze_unsqueeze_and_flatten_know_both_forms);
    tcase_add_test(tc, slice_clamps_and_counts_from_the_back);
    tcase_add_test(tc, split_knows_its_three_forms);
    tcase_add_test(tc, pad_knows_its_forms_and_modes);
    tcase_add_test(tc, gather_by_a_run_of_known_indices_is_a_slice);
    tcase_add_test(tc, the_gradient_of_a_run_is_a_pad_or_a_view);
    tcase_add_test(tc, gather_by_one_known_index_is_a_slice);
    tcase_add_test(tc, resize_and_upsample_mean_what_their_opset_says);
    tcase_add_test(tc, resize_takes_axes_and_policies_and_refuses_the_rest);
    tcase_add_test(tc, expand_and_tile_repeat);
    tcase_add_test(tc, depth_and_space_change_places_in_both_modes);
    tcase_add_test(tc, transpose_checks_its_permutation);
    tcase_add_test(tc, concat_joins_and_skips_empty_constants);
    return run_tests("ops_onnx_move", tc);
}
