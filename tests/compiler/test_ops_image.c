/* tests/compiler/test_ops_image.c -- ONNX rows that sample images at computed places: values of
 * ONNX's reference, gradients, and what is refused. */
#include "tests/support/onnx_node.h"
#include "tests/support/suite.h"

static LsValueId doubling(void)
{
    static const float v[] = {1, 2, 4, 8};
    float *copy = ls_arena_alloc(cx.arena, 4, sizeof *copy);
    memcpy(copy, v, sizeof v);
    return ls_value_add(&cx, g, LS_V_PARAM, "doubling", LS_REAL, &SHAPE(1, 1, 1, 4), copy);
}

static LsValueId to_width(Node *n, int64_t width)
{
    return node_one(n, "Resize", 19, IN(doubling(), NONE, NONE, INTS(1, 1, 1, width)));
}

START_TEST(resize_by_cubic_and_antialias_has_the_reference_s_values)
{
    Node cubic = {0}, inside = {0}, linear = {0}, smooth = {0};
    node_string(&cubic, "mode", "cubic");
    node_float(&cubic, "cubic_coeff_a", -0.5f);
    EXPECT_RUN(to_width(&cubic, 8), 0.9296875f, 1.15625f, 1.65625f, 2.3828125f, 3.3359375f,
               4.953125f, 7.234375f, 8.28125f);
    node_string(&inside, "mode", "cubic");
    node_float(&inside, "cubic_coeff_a", -0.5f);
    node_int(&inside, "exclude_outside", 1);
    LsValueId y = to_width(&inside, 8);
    EXPECT_RUN(ls_slice_axis(&cx, g, y, 3, 3, 5), 2.3828125f, 3.3359375f);
    EXPECT_RUN(ls_slice_axis(&cx, g, y, 3, 0, 2), 31 / 34.0, 157 / 137.0);
    node_string(&linear, "mode", "linear");
    node_int(&linear, "antialias", 1);
    EXPECT_RUN(to_width(&linear, 2), 1.75f, 5.75f);
    node_string(&smooth, "mode", "cubic");
    node_int(&smooth, "antialias", 1);
    EXPECT_RUN(to_width(&smooth, 2), 1.33984375f, 5.94921875f);
}
END_TEST

START_TEST(resize_crops_and_keeps_the_centre)
{
    Node crop = {0}, nearest = {0}, centre = {0}, old = {0};
    LsValueId roi = REALS(0, 0, 0, 0.5f, 1, 1, 1, 1.5f), none = NONE;
    node_string(&crop, "mode", "linear");
    node_string(&crop, "coordinate_transformation_mode", "tf_crop_and_resize");
    node_float(&crop, "extrapolation_value", 10);
    EXPECT_RUN(node_one(&crop, "Resize", 11, IN(doubling(), roi, none, INTS(1, 1, 1, 3))), 3, 8,
               10);
    node_string(&nearest, "coordinate_transformation_mode", "tf_crop_and_resize");
    EXPECT_RUN(node_one(&nearest, "Resize", 13, IN(doubling(), roi, none, INTS(1, 1, 1, 3))), 2, 8,
               0);
    node_fails(&crop, "Resize", 13, IN(doubling(), none, none, INTS(1, 1, 1, 3)), LS_E_ATTR,
               "roi has 0 numbers");
    node_string(&centre, "mode", "linear");
    node_string(&centre, "coordinate_transformation_mode", "half_pixel_symmetric");
    EXPECT_RUN(node_one(&centre, "Resize", 19, IN(doubling(), none, REALS(1, 1, 1, 0.6f))), 5 / 3.0,
               16 / 3.0);
    node_string(&old, "coordinate_transformation_mode", "tf_half_pixel_for_nn");
    node_string(&old, "nearest_mode", "floor");
    EXPECT_RUN(node_one(&old, "Resize", 11, IN(doubling(), none, none, INTS(1, 1, 1, 2))), 2, 8);
}
END_TEST

START_TEST(resize_has_gradients_along_every_axis)
{
    static const char *const mode[] = {"nearest", "linear", "cubic"};
    static const char *const coord[] = {"half_pixel",         "align_corners",
                                        "asymmetric",         "half_pixel_symmetric",
                                        "pytorch_half_pixel", "tf_crop_and_resize"};
    for (int k = 0; k < 36; k++) {
        Node n = {0};
        LsValueId roi = REALS(0, 0, 0.1f, -0.2f, 0, 1, 1, 0.8f, 1.3f, 1);
        node_string(&n, "mode", mode[k % 3]);
        node_string(&n, "coordinate_transformation_mode", coord[k / 3 % 6]);
        node_int(&n, "antialias", k / 18);
        node_int(&n, "exclude_outside", k / 18);
        LsValueId y = node_one(
            &n, "Resize", 18, IN(param("x", SHAPE(1, 2, 3, 4, 2)), roi, NONE, INTS(1, 2, 5, 2, 3)));
        expect_shape(y, SHAPE(1, 2, 5, 2, 3));
        check_gradients(weighed(y));
        graph_reopen();
    }
}
END_TEST

START_TEST(affine_grid_is_the_image_of_the_pixels_centres)
{
    Node n = {0}, corners = {0};
    LsValueId theta = reals_of(SHAPE(1, 2, 3), (float[]){1, 0, 0.5f, 0, 2, 0});
    LsValueId y = node_one(&n, "AffineGrid", 20, IN(theta, INTS(1, 1, 1, 2)));
    expect_shape(y, SHAPE(1, 1, 2, 2));
    EXPECT_RUN(y, 0, 0, 1, 0);
    node_int(&corners, "align_corners", 1);
    y = node_one(&corners, "AffineGrid", 20, IN(theta, INTS(1, 1, 2, 2)));
    EXPECT_RUN(y, -0.5f, -2, 1.5f, -2, -0.5f, 2, 1.5f, 2);
    y = node_one(&n, "AffineGrid", 20, IN(param("theta", SHAPE(2, 3, 4)), INTS(2, 1, 2, 3, 2)));
    expect_shape(y, SHAPE(2, 2, 3, 2, 3));
    check_gradients(weighed(y));
    node_fails(&n, "AffineGrid", 20, IN(theta, INTS(1, 1, 2)), LS_E_SHAPE, "size has 3 entries");
    node_fails(&n, "AffineGrid", 20, IN(theta, INTS(2, 1, 2, 2)), LS_E_SHAPE, "theta is 1x2x3");
    node_fails(&n, "AffineGrid", 20, IN(theta, INTS(1, 1, 0, 2)), LS_E_SHAPE,
               "axis 2 of size is 0");
}
END_TEST

static LsValueId sampled(int version, const char *mode, const char *padding, int corners,
                         LsValueId x, LsValueId grid)
{
    Node n = {0};
    node_string(&n, "mode", mode);
    node_string(&n, "padding_mode", padding);
    node_int(&n, "align_corners", corners);
    return node_one(&n, "GridSample", version, IN(x, grid));
}

/* A grid that reaches beyond the image. */
static LsValueId wide(LsShape s)
{
    float *v = numbers(ls_count(&s), 3);
    for (int64_t i = 0; i < ls_count(&s); i++)
        v[i] *= 1.7f;
    return ls_value_add(&cx, g, LS_V_PARAM, "grid", LS_REAL, &s, v);
}

START_TEST(grid_sample_has_gradients_by_the_image_and_the_grid)
{
    static const char *const mode[] = {"linear", "cubic", "nearest"};
    static const char *const padding[] = {"zeros", "border", "reflection"};
    static const LsShape x[] = {{3, {2, 2, 5}}, {4, {1, 2, 4, 3}}, {5, {1, 1, 3, 2, 4}}};
    static const LsShape grid[] = {{3, {2, 3, 1}}, {4, {1, 3, 2, 2}}, {5, {1, 2, 2, 1, 3}}};
    for (int k = 0; k < 54; k++) {
        int axes = k / 18;
        LsShape y = x[axes];
        memcpy(y.dim + 2, grid[axes].dim + 1, sizeof(int64_t) * (size_t)(axes + 1));
        LsValueId v = sampled(20, mode[k % 3], padding[k / 3 % 3], k / 9 % 2, param("x", x[axes]),
                              wide(grid[axes]));
        expect_shape(v, y);
        check_gradients(weighed(v));
        graph_reopen();
    }
}
END_TEST

/* PyTorch's values at and beyond the ends, in the names of opset 16. */
START_TEST(grid_sample_pads_as_pytorch_does)
{
    LsValueId grid = reals_of(SHAPE(1, 1, 3, 2), (float[]){-1, 0, 0.75f, 0, 1, 0});
    EXPECT_RUN(sampled(16, "bilinear", "zeros", 0, doubling(), grid), 0.5f, 8, 4);
    EXPECT_RUN(sampled(16, "bilinear", "border", 0, doubling(), grid), 1, 8, 8);
    EXPECT_RUN(sampled(16, "bicubic", "zeros", 0, doubling(), grid), 0.40625f, 8, 4.375f);
    EXPECT_RUN(sampled(16, "bicubic", "border", 0, doubling(), grid), 0.90625f, 8, 8.375f);
    EXPECT_RUN(sampled(16, "bicubic", "reflection", 0, doubling(), grid), 0.8125f, 8, 8.75f);
    grid = reals_of(SHAPE(1, 1, 3, 2), (float[]){-2, 0, NAN, 0, 3, 0});
    EXPECT_RUN(sampled(22, "linear", "reflection", 1, doubling(), grid), 2 + 1.0f, NAN, 2 - 1.0f);
}
END_TEST

START_TEST(grid_sample_names_what_does_not_fit)
{
    Node n = {0}, mode = {0}, padding = {0};
    LsValueId x = doubling(), grid = constant(SHAPE(1, 2, 2, 2));
    node_fails(&n, "GridSample", 20, IN(x, constant(SHAPE(1, 2, 2, 3))), LS_E_SHAPE,
               "X is 1x1x1x4, the grid is 1x2x2x3");
    node_fails(&n, "GridSample", 20, IN(x, constant(SHAPE(2, 2, 2, 2))), LS_E_SHAPE,
               "the grid is 2x2x2x2");
    node_fails(&n, "GridSample", 20, IN(x, INTS(1, 2)), LS_E_TYPE, "");
    node_fails(&n, "GridSample", 20,
               IN(constant(SHAPE(1, 1, 2, 2, 2, 2)), constant(SHAPE(1, 1, 1, 1, 1, 4))),
               LS_E_UNSUPPORTED, "4 spatial axes");
    node_string(&mode, "mode", "lanczos");
    node_fails(&mode, "GridSample", 20, IN(x, grid), LS_E_ATTR, "mode is \"lanczos\"");
    node_string(&padding, "padding_mode", "");
    node_fails(&padding, "GridSample", 20, IN(x, grid), LS_E_ATTR, "padding_mode is \"\"");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("ops_image");
    tcase_add_checked_fixture(tc, graph_open, graph_close);
    tcase_add_test(tc, resize_by_cubic_and_antialias_has_the_reference_s_values);
    tcase_add_test(tc, resize_crops_and_keeps_the_centre);
    tcase_add_test(tc, resize_has_gradients_along_every_axis);
    tcase_add_test(tc, affine_grid_is_the_image_of_the_pixels_centres);
    tcase_add_test(tc, grid_sample_has_gradients_by_the_image_and_the_grid);
    tcase_add_test(tc, grid_sample_pads_as_pytorch_does);
    tcase_add_test(tc, grid_sample_names_what_does_not_fit);
    return run_tests("ops_image", tc);
}
