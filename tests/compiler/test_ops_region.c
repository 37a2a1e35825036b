/* tests/compiler/test_ops_region.c -- MaxPool's indices, MaxUnpool, RoiAlign, MaxRoiPool,
 * DeformConv: values, gradients where indices and boxes are known at run time only, and what is
 * refused. */
#include "tests/support/onnx_node.h"
#include "tests/support/suite.h"

static LsValueId run_ints(const char *name, LsShape s)
{
    return ls_value_add(&cx, g, LS_V_INPUT, name, LS_I64, &s, NULL);
}

static Node *pooling(int64_t kernel, int64_t stride, int64_t pad, int axes)
{
    static int64_t lists[3][6];
    Node *n = ls_arena_alloc(cx.arena, 1, sizeof *n);
    for (int k = 0; k < 6; k++) {
        lists[0][k] = kernel;
        lists[1][k] = stride;
        lists[2][k] = pad;
    }
    node_ints(n, "kernel_shape", (size_t)axes, lists[0]);
    node_ints(n, "strides", (size_t)axes, lists[1]);
    node_ints(n, "pads", 2 * (size_t)axes, lists[2]);
    return n;
}

/* Every index is that of the element that is the maximum. */
START_TEST(max_pool_says_where_its_maxima_are)
{
    static const LsShape shapes[] = {{3, {2, 2, 7}}, {4, {2, 3, 5, 4}}, {5, {1, 2, 3, 4, 5}}};
    for (int k = 0; k < 6; k++) {
        LsShape s = shapes[k / 2];
        Node *n = pooling(k % 2 ? 3 : 2, 2, k % 2, s.rank - 2);
        LsValueId out[2], x = param("x", s);
        node_int(n, "storage_order", 0);
        ck_assert(node_build(n, "MaxPool", 12, 1, &x, 2, out, NULL));
        Eval e = eval_new(g);
        eval_run(&e, 1, g->nnode);
        ck_assert_int_eq(ls_type(g, out[1]), LS_I64);
        for (int64_t i = 0; i < ls_count(ls_shape(g, out[0])); i++)
            ck_assert(e.v[x.i][(int64_t)e.v[out[1].i][i]] == e.v[out[0].i][i]);
        graph_reopen();
    }
}
END_TEST

/* With storage_order 1 the first spatial axis is the fastest; integers of 8 bits are pooled,
 * too. */
START_TEST(max_pool_counts_by_columns_and_takes_integers)
{
    Node *n = pooling(2, 1, 0, 2), *plain = pooling(2, 1, 0, 2);
    float v[] = {1, 2, 3, 9, 5, 6};
    LsValueId out[2], x = ls_value_add(&cx, g, LS_V_PARAM, "x", LS_REAL, &SHAPE(1, 1, 2, 3), v);
    node_int(n, "storage_order", 1);
    ck_assert(node_build(n, "MaxPool", 8, 1, &x, 2, out, NULL));
    EXPECT_RUN(out[1], 1, 5);
    ck_assert(node_build(plain, "MaxPool", 8, 1, &x, 2, out, NULL));
    EXPECT_RUN(out[1], 3, 5);
    LsValueId i = ls_append1(&cx, g, LS_OP_CAST, x, &(LsAttr){.cast = LS_I32}),
              y = node_one(plain, "MaxPool", 12, IN(i));
    ck_assert_int_eq(ls_type(g, y), LS_I32);
    EXPECT_RUN(y, 9, 6);
}
END_TEST

START_TEST(max_unpool_puts_the_maxima_back_with_their_gradients)
{
    for (int k = 0; k < 2; k++) {
        Node *pool = pooling(2, 2, 0, 2), *back = pooling(2, 2, 0, 2);
        LsValueId out[2], x = param("x", SHAPE(2, 2, 4, 6)), none = NONE;
        ck_assert(node_build(pool, "MaxPool", 12, 1, &x, 2, out, NULL));
        LsValueId y = node_one(back, "MaxUnpool", k ? 11 : 9,
                               IN(out[0], out[1], k ? INTS(2, 2, 5, 6) : none));
        expect_shape(y, SHAPE(2, 2, 4 + k, 6));
        Eval e = eval_new(g);
        eval_run(&e, 1, g->nnode);
        for (int64_t i = 0; i < 2 * 2 * 4 * 6 && k == 0; i++)
            ck_assert(e.v[y.i][i] == 0 || e.v[y.i][i] == e.v[x.i][i]);
        check_gradients(weighed(y));
        graph_reopen();
    }
}
END_TEST

START_TEST(max_unpool_names_what_does_not_fit)
{
    Node *n = pooling(2, 2, 0, 1), bare = {0};
    LsValueId x = param("x", SHAPE(1, 2, 2)),
              good = ints_of(SHAPE(1, 2, 2), (int64_t[]){0, 3, 4, 7});
    EXPECT_RUN(
        node_one(n, "MaxUnpool", 9, IN(reals_of(SHAPE(1, 2, 2), (float[]){1, 2, 3, 4}), good)), 1,
        0, 0, 2, 3, 0, 0, 4);
    node_fails(n, "MaxUnpool", 9, IN(x, ints_of(SHAPE(1, 2, 2), (int64_t[]){0, 3, 2, 7})),
               LS_E_SHAPE, "index -2 is outside");
    node_fails(n, "MaxUnpool", 9, IN(x, INTS(0, 1)), LS_E_SHAPE, "the indices are 2");
    node_fails(n, "MaxUnpool", 9, IN(x, good, INTS(1, 2, 3)), LS_E_SHAPE,
               "output_shape says 3 for axis 2");
    node_fails(n, "MaxUnpool", 9, IN(x, good, INTS(1, 2)), LS_E_SHAPE,
               "output_shape has 2 entries");
    node_fails(&bare, "MaxUnpool", 9, IN(x, good), LS_E_ATTR, "kernel_shape is missing");
    node_fails(n, "MaxUnpool", 9, IN(x, x), LS_E_TYPE, "the indices are");
}
END_TEST

static Node *roi(const char *mode, int64_t ratio, float scale)
{
    Node *n = ls_arena_alloc(cx.arena, 1, sizeof *n);
    node_string(n, "mode", mode);
    node_int(n, "sampling_ratio", ratio);
    node_int(n, "output_height", 2);
    node_int(n, "output_width", 3);
    node_float(n, "spatial_scale", scale);
    return n;
}

/* Boxes inside, beyond the image, and turned; numbers of images that are inputs. */
START_TEST(roi_align_has_gradients_by_the_image_alone)
{
    static const float box[] = {1, 1, 9, 7, -3, 2, 6, 14, 8, 8, 3, 3, 30, 30, 40, 40};
    for (int k = 0; k < 4; k++) {
        Node *n = roi(k % 2 ? "max" : "avg", 1 + k / 2, 0.5f);
        float *copy = ls_arena_alloc(cx.arena, 16, sizeof *copy);
        memcpy(copy, box, sizeof box);
        LsValueId rois = ls_value_add(&cx, g, LS_V_PARAM, "rois", LS_REAL, &SHAPE(4, 4), copy);
        LsValueId y = node_one(n, "RoiAlign", k < 2 ? 10 : 16,
                               IN(param("x", SHAPE(2, 1, 4, 3)), rois, run_ints("of", SHAPE(4))));
        expect_shape(y, SHAPE(4, 1, 2, 3));
        check_gradients(weighed(y));
        ck_assert_uint_eq(g->ngrad, 1);
        graph_reopen();
    }
}
END_TEST

/* With sampling_ratio 0 a bin has a sample for each pixel that it is long, which is the same as
 * that many by the attribute. */
START_TEST(roi_align_takes_as_many_samples_as_a_box_is_large)
{
    static const struct { float box[4]; int64_t ratio;
    } same[] = {{{1, 1, 4, 3}, 1},
                {{-3, 2, 9, 10}, 2},
                {{0, 0, 17, 11.5f}, 3},
                {{8, 8, 3, 3}, 1},
                {{-40, -40, 60, 26}, 17}};
    int nalike = 0;
    for (int k = 0; k < 10; k++) {
        const int c = k / 2, version = k % 2 ? 10 : 16;
        Node *fixed = roi("avg", same[c].ratio, 0.5f), *adaptive = roi("avg", 0, 0.5f);
        LsValueId x = param("x", SHAPE(2, 2, 5, 7)), box = reals_of(SHAPE(1, 4), same[c].box);
        float wide = (same[c].box[2] - same[c].box[0]) / 2,
              tall = (same[c].box[3] - same[c].box[1]) / 2;
        bool alike = ceilf(wide / 3) == same[c].ratio && ceilf(tall / 2) == same[c].ratio;
        LsValueId a = node_one(adaptive, "RoiAlign", version, IN(x, box, INTS(1)));
        LsValueId b = node_one(fixed, "RoiAlign", version, IN(x, box, INTS(1)));
        Eval e = eval_new(g);
        eval_run(&e, 1, g->nnode);
        for (int64_t i = 0; alike && i < ls_count(ls_shape(g, a)); i++)
            ck_assert_double_eq_tol(e.v[a.i][i], e.v[b.i][i], 1e-6);
        for (int64_t i = 0; version == 16 && c == 3 && i < ls_count(ls_shape(g, a)); i++)
            ck_assert_double_eq(e.v[a.i][i], 0);        /* a turned box has no sample */
        nalike += alike;
        check_gradients(weighed(a));
        graph_reopen();
    }
    ck_assert_int_eq(nalike, 8);
}
END_TEST

START_TEST(roi_align_reads_the_image_of_each_box)
{
    Node n = {0};
    node_int(&n, "sampling_ratio", 1);
    LsValueId x = reals_of(SHAPE(2, 1, 2, 2), (float[]){1, 2, 3, 4, 10, 20, 30, 40});
    LsValueId rois = reals_of(SHAPE(3, 4), (float[]){0, 0, 2, 2, 1, 1, 2, 2, 0, 0, 1, 2});
    EXPECT_RUN(node_one(&n, "RoiAlign", 22, IN(x, rois, INTS(1, 0, 1))), 25, 4, 20);
    node_fails(&n, "RoiAlign", 22, IN(x, rois, INTS(1, 0, 2)), LS_E_SHAPE, "index 2 is outside");
    node_fails(&n, "RoiAlign", 22, IN(x, rois, INTS(1, 0)), LS_E_SHAPE, "batch_indices 2");
    Node *adaptive = roi("max", 0, 1), *mode = roi("median", 1, 1), high = {0};
    node_fails(adaptive, "RoiAlign", 16, IN(x, rois, INTS(1, 0, 1)), LS_E_UNSUPPORTED,
               "sampling_ratio 0");
    node_fails(mode, "RoiAlign", 16, IN(x, rois, INTS(1, 0, 1)), LS_E_ATTR, "mode is \"median\"");
    node_int(&high, "sampling_ratio", 2);
    node_int(&high, "output_height", INT64_C(1) << 40);
    node_fails(&high, "RoiAlign", 16, IN(x, rois, INTS(1, 0, 1)), LS_E_ATTR,
               "the result is 1099511627776 high");
}
END_TEST

START_TEST(max_roi_pool_takes_the_largest_of_each_part)
{
    Node n = {0}, wide = {0}, none = {0};
    float v[16];
    for (int k = 0; k < 16; k++)
        v[k] = (float)(k * 7 % 16);     /* 0 7 14 5, 12 3 10 1, 8 15 6 13, 4 11 2 9 */
    LsValueId x = reals_of(SHAPE(1, 1, 4, 4), v);
    LsValueId rois =
        reals_of(SHAPE(3, 5), (float[]){0, 0, 0, 3, 3, 0, 1.4f, 0.5f, 3.6f, 2, 0, 9, 9, 9, 9});
    node_ints(&n, "pooled_shape", LIST(2, 2));
    EXPECT_RUN(node_one(&n, "MaxRoiPool", 1, IN(x, rois)), 12, 14, 15, 13, 10, 1, 15, 13, 0, 0, 0,
               0);
    node_ints(&wide, "pooled_shape", LIST(1, 2));
    node_float(&wide, "spatial_scale", 0.5f);
    float *box = ls_arena_alloc(cx.arena, 10, sizeof *box);
    memcpy(box, (float[]){1, 0, 0, 5, 3, 0, 2, 1, 4, 5}, 10 * sizeof *box);
    LsValueId y = node_one(&wide, "MaxRoiPool", 22, IN(param("x", SHAPE(2, 2, 3, 4)),
                           ls_value_add(&cx, g, LS_V_PARAM, "rois", LS_REAL, &SHAPE(2, 5), box)));
    expect_shape(y, SHAPE(2, 2, 1, 2));
    check_gradients(weighed(y));
    ck_assert_uint_eq(g->ngrad, 1);
    node_fails(&none, "MaxRoiPool", 1, IN(x, rois), LS_E_ATTR, "pooled_shape has 0 entries");
    node_fails(&n, "MaxRoiPool", 1, IN(x, constant(SHAPE(3, 4))), LS_E_SHAPE, "rois are 3x4");
}
END_TEST

static Node *deform(int64_t groups, int64_t offset_groups, int64_t stride, int64_t pad,
                    int64_t dilation)
{
    static int64_t lists[3][6];
    Node *n = ls_arena_alloc(cx.arena, 1, sizeof *n);
    for (int k = 0; k < 6; k++) {
        lists[0][k] = stride;
        lists[1][k] = pad;
        lists[2][k] = dilation;
    }
    node_ints(n, "strides", 2, lists[0]);
    node_ints(n, "pads", 4, lists[1]);
    node_ints(n, "dilations", 2, lists[2]);
    node_int(n, "group", groups);
    node_int(n, "offset_group", offset_groups);
    return n;
}

/* Without offsets it is a convolution; gradients by all operands. */
START_TEST(deform_conv_is_a_convolution_at_moved_places)
{
    for (int k = 0; k < 2; k++) {
        Node *both = deform(1 + k, 2 - k, 1 + k, 1, 1 + k);
        LsShape offset = {4, {2, 8 * (2 - k), 4 - 2 * k, 3 - 2 * k}}, mask = offset;
        mask.dim[1] /= 2;
        LsValueId x = param("x", SHAPE(2, 2, 3, 2)), f = param("w", SHAPE(2, 2 / (1 + k), 2, 2));
        LsValueId y =
            node_one(both, "DeformConv", k ? 22 : 19,
                     IN(x, f, param("offset", offset), param("b", SHAPE(2)), param("mask", mask)));
        check_gradients(weighed(y));
        graph_reopen();
    }
    Node *n = deform(2, 1, 1, 1, 1);
    LsValueId x = constant(SHAPE(1, 4, 4, 3)), f = constant(SHAPE(6, 2, 2, 2)),
              b = constant(SHAPE(6));
    LsValueId none = reals_of(SHAPE(1, 8, 5, 4), (float[8 * 5 * 4]){0});
    LsValueId y = node_one(n, "DeformConv", 19, IN(x, f, none, b)),
              conv = node_one(n, "Conv", 11, IN(x, f, b));
    Eval e = eval_new(g);
    eval_run(&e, 1, g->nnode);
    for (int64_t i = 0; i < 6 * 5 * 4; i++)
        ck_assert(fabs(e.v[y.i][i] - e.v[conv.i][i]) < 1e-6);
}
END_TEST

START_TEST(deform_conv_names_what_does_not_fit)
{
    Node *n = deform(1, 1, 1, 0, 1), *groups = deform(1, 3, 1, 0, 1),
         *channels = deform(2, 1, 1, 0, 1);
    LsValueId x = param("x", SHAPE(1, 4, 3, 3)), f = param("w", SHAPE(2, 4, 2, 2)),
              at = param("at", SHAPE(1, 8, 2, 2));
    expect_shape(node_one(n, "DeformConv", 19, IN(x, f, at)), SHAPE(1, 2, 2, 2));
    node_fails(groups, "DeformConv", 19, IN(x, f, at), LS_E_ATTR,
               "offset_group is 3 for 4 channels");
    node_fails(channels, "DeformConv", 19, IN(x, f, at), LS_E_SHAPE,
               "W takes 4 in each of 2 groups");
    node_fails(n, "DeformConv", 19, IN(x, f, param("a", SHAPE(1, 4, 2, 2))), LS_E_SHAPE,
               "offset is 1x4x2x2, not 1x8x2x2");
    node_fails(n, "DeformConv", 19, IN(x, f, at, param("b", SHAPE(3))), LS_E_SHAPE,
               "B is 3 for 2 outputs");
    node_fails(n, "DeformConv", 19, IN(x, f, at, NONE, at), LS_E_SHAPE,
               "mask is 1x8x2x2, not 1x4x2x2");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("ops_region");
    tcase_add_checked_fixture(tc, graph_open, graph_close);
    tcase_add_test(tc, max_pool_says_where_its_maxima_are);
    tcase_add_test(tc, max_pool_counts_by_columns_and_takes_integers);
    tcase_add_test(tc, max_unpool_puts_the_maxima_back_with_their_gradients);
    tcase_add_test(tc, max_unpool_names_what_does_not_fit);
    tcase_add_test(tc, roi_align_has_gradients_by_the_image_alone);
    tcase_add_test(tc, roi_align_takes_as_many_samples_as_a_box_is_large);
    tcase_add_test(tc, roi_align_reads_the_image_of_each_box);
    tcase_add_test(tc, max_roi_pool_takes_the_largest_of_each_part);
    tcase_add_test(tc, deform_conv_is_a_convolution_at_moved_places);
    tcase_add_test(tc, deform_conv_names_what_does_not_fit);
    return run_tests("ops_region", tc);
}
