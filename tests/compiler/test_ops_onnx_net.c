/* tests/compiler/test_ops_onnx_net.c -- ONNX rows of convolution, product, pooling, softmax,
 * normalisation and losses: the forms of every opset, and refusals. */
#include "tests/support/onnx_node.h"
#include "tests/support/suite.h"

static double *run(LsValueId v)
{
    Eval e = eval_new(g);
    eval_run(&e, 1, g->nnode);
    return e.v[v.i];
}

static void expect_equal(LsValueId a, LsValueId b)
{
    double *x = run(a), *y = run(b);
    ck_assert(ls_shape_same(ls_shape(g, a), ls_shape(g, b)));
    for (int64_t i = 0; i < ls_count(ls_shape(g, a)); i++)
        ck_assert_double_eq_tol(x[i], y[i], 1e-6);
}

/* ---- convolution ---- */
START_TEST(conv_pads_by_auto_pad_on_the_side_it_names)
{
    static const struct { const char *mode; int64_t lo, hi, places; } want[] = {
        {"SAME_UPPER", 0, 1, 4}, {"SAME_LOWER", 1, 0, 4}, {"VALID", 0, 0, 3}, {"NOTSET", 0, 0, 3}};
    for (int k = 0; k < 4; k++) {
        Node n = {0};
        node_string(&n, "auto_pad", want[k].mode);
        node_ints(&n, "strides", LIST(2));
        LsValueId y =
            node_one(&n, "Conv", 11, IN(param("x", SHAPE(1, 2, 8)), param("w", SHAPE(3, 2, 3))));
        expect_shape(y, SHAPE(1, 3, want[k].places));
        ck_assert_int_eq(made_by(y)->attr.window.pad_lo[0], want[k].lo);
        ck_assert_int_eq(made_by(y)->attr.window.pad_hi[0], want[k].hi);
    }
}
END_TEST

START_TEST(zeros_in_place_of_a_bias_are_no_bias)
{
    LsValueId x = param("x", SHAPE(1, 2, 8)), w = param("w", SHAPE(3, 2, 3));
    const float zero[6] = {0}, one[6] = {0, 0, 0, 0, 0, 1};
    Node n = {0};
    LsValueId y = node_one(&n, "Conv", 11, IN(x, w, reals_of(SHAPE(3, 2), zero)));
    ck_assert_int_eq(made_by(y)->nin, 2);
    node_fails(&n, "Conv", 11, IN(x, w, reals_of(SHAPE(3, 2), one)), LS_E_SHAPE, "the bias is 3x2");
    node_fails(&n, "Conv", 11, IN(x, w, reals_of(SHAPE(2), zero)), LS_E_SHAPE, "the bias is 2");
}
END_TEST

START_TEST(conv_transpose_gets_its_size_from_padding_or_from_output_shape)
{
    LsValueId x = param("x", SHAPE(1, 2, 3, 3)), w = param("w", SHAPE(2, 4, 3, 3));
    Node a = {0}, b = {0}, c = {0};
    node_ints(&a, "strides", LIST(2, 2));
    node_ints(&a, "pads", LIST(1, 1, 1, 1));
    node_ints(&a, "output_padding", LIST(1, 0));
    expect_shape(node_one(&a, "ConvTranspose", 11, IN(x, w)), SHAPE(1, 4, 6, 5));
    node_ints(&b, "strides", LIST(3, 2));
    node_ints(&b, "output_shape", LIST(10, 8));
    expect_shape(node_one(&b, "ConvTranspose", 11, IN(x, w)), SHAPE(1, 4, 10, 8));
    node_ints(&c, "strides", LIST(2, 2));
    node_string(&c, "auto_pad", "SAME_LOWER");
    LsValueId y = node_one(&c, "ConvTranspose", 11, IN(x, w));
    expect_shape(y, SHAPE(1, 4, 6, 6));
    ck_assert_int_eq(made_by(y)->attr.window.pad_lo[0], 1);
    ck_assert_int_eq(made_by(y)->attr.window.pad_hi[0], 0);
}
END_TEST

START_TEST(convolutions_that_do_not_fit_are_refused)
{
    LsValueId x = param("x", SHAPE(1, 4, 5, 5)), w = param("w", SHAPE(6, 2, 3, 3));
    Node plain = {0}, size = {0}, pads = {0}, group = {0}, mode = {0}, stride = {0};
    node_fails(&plain, "Conv", 11, IN(x, w), LS_E_SHAPE, "X has 4 channels, W takes 2");
    node_ints(&size, "kernel_shape", LIST(3, 2));
    node_int(&size, "group", 2);
    node_fails(&size, "Conv", 11, IN(x, w), LS_E_SHAPE, "kernel_shape[1] is 2, the weight has 3");
    node_ints(&pads, "pads", LIST(1, 1));
    node_fails(&pads, "Conv", 11, IN(x, w), LS_E_ATTR, "pads has 2 elements, the data needs 4");
    node_int(&group, "group", 0);
    node_fails(&group, "Conv", 11, IN(x, w), LS_E_ATTR, "group is 0");
    node_string(&mode, "auto_pad", "SAME");
    node_fails(&mode, "Conv", 11, IN(x, w), LS_E_ATTR, "auto_pad 'SAME'");
    node_ints(&stride, "strides", LIST(0, 1));
    node_fails(&stride, "Conv", 11, IN(x, w), LS_E_ATTR, "strides[0] is 0");
    node_fails(&plain, "Conv", 11, IN(x, param("big", SHAPE(6, 4, 7, 3))), LS_E_SHAPE, "W spans 7");
    node_fails(&plain, "Conv", 11, IN(x, param("flat", SHAPE(6, 4))), LS_E_SHAPE,
               "X is 1x4x5x5 and W is 6x4");
}
END_TEST

/* ---- products ---- */
START_TEST(matmul_follows_numpy_with_vectors_and_stacks)
{
    Node n = {0};
    LsValueId v = param("v", SHAPE(3)), m = param("m", SHAPE(3, 4)), s = param("s", SHAPE(2, 5, 3));
    expect_shape(node_one(&n, "MatMul", 13, IN(v, v)), (LsShape){0});
    expect_shape(node_one(&n, "MatMul", 13, IN(v, m)), SHAPE(4));
    expect_shape(node_one(&n, "MatMul", 13, IN(s, v)), SHAPE(2, 5));
    expect_shape(node_one(&n, "MatMul", 13, IN(s, m)), SHAPE(2, 5, 4));
    expect_shape(node_one(&n, "MatMul", 13, IN(v, param("t", SHAPE(2, 3, 4)))), SHAPE(2, 4));
    node_fails(&n, "MatMul", 13, IN(m, m), LS_E_SHAPE, "inner sizes 4 and 3 differ");
}
END_TEST

START_TEST(a_stack_times_a_matrix_is_one_product)
{
    Node n = {0};
    LsValueId y =
        node_one(&n, "MatMul", 13, IN(param("x", SHAPE(2, 5, 3)), param("w", SHAPE(3, 4))));
    check_gradients(weighed(y));
    for (uint32_t i = 1; i < g->nnode; i++)
        if (g->node[i].op == LS_OP_MATMUL)
            ck_assert_int_eq(ls_shape(g, ls_out(g, (LsNodeId){i}, 0))->rank, 2);
}
END_TEST

START_TEST(gemm_takes_a_row_as_bias_and_adds_anything_else)
{
    static const struct { LsShape c; float beta; bool bias;
    } form[] = {{{1, {4}}, 1, true},     {{2, {1, 4}}, 1, true},  {{1, {4}}, 0.5, false},
                {{2, {3, 1}}, 1, false}, {{2, {3, 4}}, 1, false}, {{0, {0}}, 1, false},
                {{1, {1}}, 1, false}};
    for (size_t k = 0; k < sizeof form / sizeof *form; k++) {
        Node n = {0};
        node_int(&n, "transB", 1);
        node_float(&n, "alpha", 2);
        node_float(&n, "beta", form[k].beta);
        LsValueId a = param("a", SHAPE(3, 2)), b = param("b", SHAPE(4, 2)),
                  c = param("c", form[k].c);
        LsValueId y = node_one(&n, "Gemm", 13, IN(a, b, c));
        ck_assert_int_eq(made_by(y)->op == LS_OP_MATMUL, form[k].bias);
        double *ra = run(a), *rb = run(b), *rc = run(c);
        int64_t at[LS_MAX_RANK] = {1, 2};
        double want = 2 * (ra[2] * rb[4] + ra[3] * rb[5])
                    + form[k].beta * rc[eval_place(&form[k].c, at, 2)];
        ck_assert_double_eq_tol(run(y)[1 * 4 + 2], want, 1e-6);
    }
}
END_TEST

/* ---- pooling ---- */
START_TEST(ceil_mode_adds_a_place_that_begins_inside)
{
    static const struct { int64_t size, kernel, stride, pad, floor, ceil;
    } form[] = {{5, 2, 2, 0, 2, 3},
                {6, 3, 2, 0, 2, 3},
                {7, 3, 2, 0, 3, 3},
                {6, 1, 2, 0, 3, 3},
                {4, 2, 3, 1, 2, 2}};
    for (size_t k = 0; k < sizeof form / sizeof *form; k++)
        for (int ceil = 0; ceil < 2; ceil++) {
            Node n = {0};
            node_ints(&n, "kernel_shape", LIST(form[k].kernel));
            node_ints(&n, "strides", LIST(form[k].stride));
            node_ints(&n, "pads", LIST(form[k].pad, form[k].pad));
            node_int(&n, "ceil_mode", ceil);
            LsValueId y = node_one(&n, "MaxPool", 12, IN(param("x", SHAPE(1, 1, form[k].size))));
            expect_shape(y, SHAPE(1, 1, ceil ? form[k].ceil : form[k].floor));
        }
}
END_TEST

static LsValueId padded(LsValueId x, double value)
{
    LsAttr at = {
        .pad = {.mode = LS_PAD_CONSTANT, .lo = {0, 0, 1}, .hi = {0, 0, 2}, .value = value}};
    return ls_append1(&cx, g, LS_OP_PAD, x, &at);
}

START_TEST(a_pad_of_zeros_joins_the_average_pool_behind_it)
{
    Node n = {0}, own = {0};
    LsValueId x = param("x", SHAPE(1, 2, 6));
    node_ints(&n, "kernel_shape", LIST(3));
    LsValueId y = node_one(&n, "AveragePool", 11, IN(padded(x, 0)));
    ck_assert_int_eq(ls_in(g, g->value[y.i].def, 0).i, x.i);
    double *got = run(y), *rx = run(x);
    ck_assert_double_eq_tol(got[0], (rx[0] + rx[1]) / 3, 1e-12);
    ck_assert_double_eq_tol(got[6], rx[5] / 3, 1e-12);
    y = node_one(&n, "AveragePool", 11, IN(padded(x, 1)));
    ck_assert_int_ne(ls_in(g, g->value[y.i].def, 0).i, x.i);
    node_ints(&own, "kernel_shape", LIST(3)); /* its own padding does not count: not the same */
    node_ints(&own, "pads", LIST(1, 1));
    y = node_one(&own, "AveragePool", 11, IN(padded(x, 0)));
    ck_assert_int_ne(ls_in(g, g->value[y.i].def, 0).i, x.i);
}
END_TEST

/* Pads of samples and channels are not padding of a window, and neither are crops. */
START_TEST(a_pad_of_other_axes_or_a_crop_stays_in_front_of_the_pool)
{
    static const struct { int64_t lo[3], hi[3]; } pad[] = {
        {{1, 0, 1}, {0, 0, 2}}, {{0, 0, 1}, {1, 0, 2}}, {{0, 1, 1}, {0, 0, 2}},
        {{0, 0, 1}, {0, 1, 2}}, {{0, 0, -1}, {0, 0, 2}}, {{0, 0, 1}, {0, 0, -1}}};
    for (size_t k = 0; k < sizeof pad / sizeof *pad; k++) {
        Node n = {0};
        LsAttr at = {.pad = {.mode = LS_PAD_CONSTANT}};
        memcpy(at.pad.lo, pad[k].lo, sizeof pad[k].lo);
        memcpy(at.pad.hi, pad[k].hi, sizeof pad[k].hi);
        LsValueId x = ls_append1(&cx, g, LS_OP_PAD, param("x", SHAPE(1, 2, 6)), &at);
        LsShape s = *ls_shape(g, x);
        node_ints(&n, "kernel_shape", LIST(3));
        LsValueId y = node_one(&n, "AveragePool", 11, IN(x));
        ck_assert_uint_eq(ls_in(g, g->value[y.i].def, 0).i, x.i);
        expect_shape(y, SHAPE(s.dim[0], s.dim[1], s.dim[2] - 2));
        double *got = run(y), *padded = run(x);
        for (int64_t row = 0; row < s.dim[0] * s.dim[1]; row++) {
            double *v = padded + row * s.dim[2];
            ck_assert_double_eq_tol(got[row * (s.dim[2] - 2)], (v[0] + v[1] + v[2]) / 3, 1e-12);
        }
    }
}
END_TEST

START_TEST(pools_that_see_padding_alone_are_refused)
{
    Node n = {0}, none = {0};
    LsValueId x = param("x", SHAPE(1, 1, 4));
    node_ints(&n, "kernel_shape", LIST(2));
    node_ints(&n, "pads", LIST(2, 0));
    node_fails(&n, "MaxPool", 12, IN(x), LS_E_ATTR, "lies in the padding alone");
    node_fails(&none, "MaxPool", 12, IN(x), LS_E_ATTR, "kernel_shape is missing");
}
END_TEST

/* ---- softmax ---- */
START_TEST(softmax_flattens_before_opset_13)
{
    Node n = {0}, neg = {0};
    LsValueId x = param("x", SHAPE(2, 3, 4)), flat = ls_reshape(&cx, g, x, &SHAPE(2, 12));
    LsValueId want = ls_append1(&cx, g, LS_OP_SOFTMAX, flat, &(LsAttr){.axis = {1}});
    expect_equal(node_one(&n, "Softmax", 11, IN(x)), ls_reshape(&cx, g, want, &SHAPE(2, 3, 4)));
    LsValueId last = node_one(&n, "Softmax", 13, IN(x));
    ck_assert_int_eq(made_by(last)->attr.axis.axis, 2);
    node_int(&neg, "axis", -2);
    ck_assert_int_eq(made_by(node_one(&neg, "LogSoftmax", 13, IN(x)))->attr.axis.axis, 1);
}
END_TEST

/* ---- normalisation ---- */
static LsValueId state(const char *name, float first)
{
    float *v = ls_arena_alloc(cx.arena, 2, sizeof *v);
    v[0] = first, v[1] = 2 * first;
    return ls_value_add(&cx, g, LS_V_PARAM, name, LS_REAL, &SHAPE(2), v);
}

typedef struct Norm { LsValueId x, mean, var, out[5]; } Norm;

static Norm batch_norm(int version, int training_mode, int nout)
{
    Node n = {0};
    Norm b = {param("x", SHAPE(3, 2, 4)), state("mean", 0.5f), state("var", 2), {{0}}};
    if (training_mode >= 0)
        node_int(&n, "training_mode", training_mode);
    node_float(&n, "momentum", 0.75f);
    LsValueId in[] = {b.x, param("s", SHAPE(2)), param("b", SHAPE(2)), b.mean, b.var};
    ck_assert(node_build(&n, "BatchNormalization", version, 5, in, nout, b.out, NULL));
    ck_assert_int_eq(g->value[b.mean.i].kind, LS_V_STATE);
    ck_assert_int_eq(g->value[b.var.i].kind, LS_V_STATE);
    return b;
}

START_TEST(batch_norm_trains_when_its_opset_says_so)
{
    static const struct { int version, mode, nout; LsBnMode bn; bool trains;
    } form[] = {{9, -1, 5, LS_BN_FILE, true},   {9, -1, 1, LS_BN_FILE, false},
                {14, 1, 3, LS_BN_FILE, true},   {14, 0, 1, LS_BN_FILE, false},
                {15, -1, 1, LS_BN_FILE, false}, {15, 0, 1, LS_BN_TRAIN, true},
                {15, 1, 3, LS_BN_FROZEN, false}};
    for (size_t k = 0; k < sizeof form / sizeof *form; k++)
        for (int training = 0; training < 2; training++) {
            graph_close();
            graph_open();
            g->training = training;
            g->source.bn = form[k].bn;
            Norm b = batch_norm(form[k].version, form[k].mode, form[k].nout);
            bool trains = form[k].trains && training;
            ck_assert_int_eq(made_by(b.out[0])->op, trains ? LS_OP_NORMALIZE : LS_OP_AFFINE);
            ck_assert_int_eq(count_op(LS_OP_RUNNING_STAT), trains ? 2 : 0);
        }
}
END_TEST

/* Per channel: mean and variance of 12 numbers; the variance divides by 12 - less. */
static void moments(const double *x, double mean[2], double var[2], int less)
{
    for (int c = 0; c < 2; c++) {
        mean[c] = var[c] = 0;
        for (int i = 0; i < 12; i++)
            mean[c] += x[i / 4 * 8 + c * 4 + i % 4] / 12;
        for (int i = 0; i < 12; i++)
            var[c] += pow(x[i / 4 * 8 + c * 4 + i % 4] - mean[c], 2) / (12 - less);
    }
}

START_TEST(running_statistics_follow_the_batch_once)
{
    for (int torch = 0; torch < 2; torch++) {
        graph_close();
        graph_open();
        g->source.bn_var_torch = torch;
        Norm b = batch_norm(14, 1, 3);
        Eval e = eval_new(g);
        double mean[2], var[2];
        moments(e.v[b.x.i], mean, var, torch);
        eval_run(&e, 1, g->nnode);
        for (int c = 0; c < 2; c++) {
            ck_assert_double_eq_tol(e.v[b.mean.i][c], 0.75 * 0.5 * (c + 1) + 0.25 * mean[c], 1e-6);
            ck_assert_double_eq_tol(e.v[b.var.i][c], 0.75 * 2 * (c + 1) + 0.25 * var[c], 1e-6);
            ck_assert_double_eq_tol(e.v[b.out[1].i][c], e.v[b.mean.i][c], 1e-6);
            ck_assert_double_eq_tol(e.v[b.out[2].i][c], e.v[b.var.i][c], 1e-6);
        }
    }
}
END_TEST

/* Before opset 9: statistics over the samples alone, and parameters of a sample's shape. */
START_TEST(batch_norm_with_spatial_0_has_statistics_of_each_element)
{
    enum { N = 3, EACH = 6 };
    for (int trains = 0; trains < 2; trains++) {
        graph_close();
        graph_open();
        Node n = {0};
        float start[EACH];
        for (int i = 0; i < EACH; i++)
            start[i] = 0.5f + 0.25f * (float)i;
        LsShape s = SHAPE(2, 3);
        LsValueId x = param("x", SHAPE(N, 2, 3)), scale = param("s", s), bias = param("b", s),
                  out[3];
        LsValueId mean = ls_value_add(&cx, g, LS_V_PARAM, "mean", LS_REAL, &s, start);
        LsValueId var = ls_value_add(&cx, g, LS_V_PARAM, "var", LS_REAL, &s, start);
        node_int(&n, "spatial", 0);
        node_float(&n, "momentum", 0.75f);
        ck_assert(node_build(&n, "BatchNormalization", 7, 5,
                             (LsValueId[]){x, scale, bias, mean, var}, trains ? 3 : 1, out, NULL));
        Eval e = eval_new(g);
        double old[EACH];
        memcpy(old, e.v[mean.i], sizeof old);
        eval_run(&e, 1, g->nnode);
        for (int i = 0; i < EACH; i++) {
            double m = old[i], v = old[i];
            if (trains) {
                m = (e.v[x.i][i] + e.v[x.i][i + EACH] + e.v[x.i][i + 2 * EACH]) / N;
                v = 0;
                for (int k = 0; k < N; k++)
                    v += pow(e.v[x.i][i + k * EACH] - m, 2) / N;
                ck_assert_double_eq_tol(e.v[mean.i][i], 0.75 * old[i] + 0.25 * m, 1e-6);
                ck_assert_double_eq_tol(e.v[var.i][i], 0.75 * old[i] + 0.25 * v, 1e-6);
            }
            for (int k = 0; k < N; k++)
                ck_assert_double_eq_tol(e.v[out[0].i][i + k * EACH],
                                        (e.v[x.i][i + k * EACH] - m) / sqrt(v + 1e-5)
                                                * e.v[scale.i][i]
                                            + e.v[bias.i][i],
                                        1e-5);
        }
        if (trains)
            check_gradients(weighed(out[0]));
    }
    Node n = {0};
    node_int(&n, "spatial", 0);
    LsValueId c = param("c", SHAPE(2));
    node_fails(&n, "BatchNormalization", 7, 5,
               (LsValueId[]){param("y", SHAPE(3, 2, 3)), c, c, c, c}, LS_E_SHAPE,
               "with spatial=0 it has the shape of a sample");
}
END_TEST

START_TEST(two_batch_norms_cannot_share_running_statistics)
{
    Node n = {0};
    LsValueId mean = state("mean", 1), var = state("var", 1);
    node_int(&n, "training_mode", 1);
    LsValueId in[] = {param("x", SHAPE(3, 2)), param("s", SHAPE(2)), param("b", SHAPE(2)), mean,
                      var};
    node_one(&n, "BatchNormalization", 15, 5, in);
    node_fails(&n, "BatchNormalization", 15, 5, in, LS_E_UNSUPPORTED,
               "'mean' is the running statistic");
}
END_TEST

START_TEST(group_norm_scales_groups_before_opset_21_and_channels_from_then_on)
{
    static const int version[] = {18, 21};
    for (int k = 0; k < 2; k++) {
        graph_close();
        graph_open();
        Node n = {0};
        node_int(&n, "num_groups", 2);
        LsShape v = SHAPE(k == 0 ? 2 : 4);
        LsValueId x = param("x", SHAPE(2, 4, 3)), s = param("s", v), b = param("b", v);
        LsValueId y = node_one(&n, "GroupNormalization", version[k], IN(x, s, b));
        expect_shape(y, SHAPE(2, 4, 3));
        double *rx = run(x), *ry = run(y), *rs = run(s), *rb = run(b), mean = 0, var = 0;
        for (int i = 6; i < 12; i++)        /* second group of the first sample: channels 2 and 3 */
            mean += rx[i] / 6;
        for (int i = 6; i < 12; i++)
            var += pow(rx[i] - mean, 2) / 6;
        int which = k == 0 ? 1 : 3;         /* its last element is of channel 3 */
        ck_assert_double_eq_tol(ry[11], (rx[11] - mean) / sqrt(var + 1e-5) * rs[which] + rb[which],
                                1e-6);
        check_gradients(weighed(y));
        ck_assert_int_eq(g->ngrad, 3);
    }
}
END_TEST

START_TEST(layer_norm_takes_any_scale_that_broadcasts)
{
    static const LsShape form[] = {{1, {4}}, {2, {3, 1}}, {3, {1, 3, 4}}, {0, {0}}, {3, {2, 1, 4}}};
    Node n = {0};
    node_int(&n, "axis", 1);
    for (size_t k = 0; k < sizeof form / sizeof *form; k++) {
        graph_close();
        graph_open();
        LsValueId x = param("x", SHAPE(2, 3, 4)), s = param("s", form[k]), b = param("b", form[k]);
        LsValueId y = node_one(&n, "LayerNormalization", 17, IN(x, s, b));
        ck_assert_int_eq(made_by(y)->op == LS_OP_LAYER_NORM, k < 4);
        check_gradients(weighed(y));
        ck_assert_int_eq(g->ngrad, 3);
    }
    node_fails(&n, "LayerNormalization", 17, IN(param("z", SHAPE(2, 3, 4)), param("t", SHAPE(5))),
               LS_E_SHAPE, "operand 1 is 5 and does not fit X, which is 2x3x4");
}
END_TEST

START_TEST(instance_norm_is_differentiated_per_sample)
{
    Node n = {0};
    LsValueId x = param("x", SHAPE(2, 2, 5)), s = param("s", SHAPE(2)), b = param("b", SHAPE(2));
    check_gradients(weighed(node_one(&n, "InstanceNormalization", 6, IN(x, s, b))));
}
END_TEST

START_TEST(lrn_is_differentiated_across_channels)
{
    Node n = {0};
    node_int(&n, "size", 3);
    node_float(&n, "alpha", 0.5f);
    check_gradients(weighed(node_one(&n, "LRN", 13, IN(param("x", SHAPE(2, 5, 2))))));
}
END_TEST

/* ---- losses ---- */
START_TEST(class_weights_are_settings_and_labels_may_be_int32)
{
    Node n = {0};
    node_string(&n, "reduction", "sum");
    LsValueId w = param("w", SHAPE(4));
    LsValueId t = ls_value_add(&cx, g, LS_V_INPUT, "t", LS_I32, &SHAPE(3), NULL);
    LsValueId out[2], in[] = {param("x", SHAPE(3, 4)), t, w};
    ck_assert(node_build(&n, "SoftmaxCrossEntropyLoss", 13, 3, in, 2, out, NULL));
    ck_assert_int_eq(g->value[w.i].kind, LS_V_CONST);
    expect_shape(out[0], (LsShape){0});
    ck_assert_int_eq(made_by(out[1])->op, LS_OP_LOG_SOFTMAX);
    Node bad = {0};
    node_string(&bad, "reduction", "max");
    node_fails(&bad, "NegativeLogLikelihoodLoss", 13, 2, in, LS_E_ATTR, "reduction 'max'");
    node_fails(&n, "NegativeLogLikelihoodLoss", 13, IN(in[0], param("f", SHAPE(3))), LS_E_TYPE,
               "labels must be int64");
}
END_TEST

START_TEST(operands_that_are_left_out_or_of_another_type_are_refused)
{
    Node n = {0};
    LsValueId i = ls_value_add(&cx, g, LS_V_INPUT, "i", LS_I64, &SHAPE(2, 3, 3), NULL);
    node_fails(&n, "Conv", 11, IN(i, param("w", SHAPE(2, 3, 3))), LS_E_TYPE, "operand 0 is int64");
    node_fails(&n, "Conv", 11, IN(param("x", SHAPE(2, 3, 3)), NONE), LS_E_PARSE,
               "operand 1 is left out");
    node_fails(&n, "Softmax", 13, IN(i), LS_E_TYPE, "Softmax takes float");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("ops_onnx_net");
    tcase_add_checked_fixture(tc, graph_open, graph_close);
    tcase_add_test(tc, conv_pads_by_auto_pad_on_the_side_it_names);
    tcase_add_test(tc, zeros_in_place_of_a_bias_are_no_bias);
    tcase_add_test(tc, conv_transpose_gets_its_size_from_padding_or_from_output_shape);
    tcase_add_test(tc, convolutions_that_do_not_fit_are_refused);
    tcase_add_test(tc, matmul_follows_numpy_with_vectors_and_stacks);
    tcase_add_test(tc, a_stack_times_a_matrix_is_one_product);
    tcase_add_test(tc, gemm_takes_a_row_as_bias_and_adds_anything_else);
    tcase_add_test(tc, ceil_mode_adds_a_place_that_begins_inside);
    tcase_add_test(tc, a_pad_of_zeros_joins_the_average_pool_behind_it);
    tcase_add_test(tc, a_pad_of_other_axes_or_a_crop_stays_in_front_of_the_pool);
    tcase_add_test(tc, pools_that_see_padding_alone_are_refused);
    tcase_add_test(tc, softmax_flattens_before_opset_13);
    tcase_add_test(tc, batch_norm_trains_when_its_opset_says_so);
    tcase_add_test(tc, running_statistics_follow_the_batch_once);
    tcase_add_test(tc, batch_norm_with_spatial_0_has_statistics_of_each_element);
    tcase_add_test(tc, two_batch_norms_cannot_share_running_statistics);
    tcase_add_test(tc, group_norm_scales_groups_before_opset_21_and_channels_from_then_on);
    tcase_add_test(tc, layer_norm_takes_any_scale_that_broadcasts);
    tcase_add_test(tc, instance_norm_is_differentiated_per_sample);
    tcase_add_test(tc, lrn_is_differentiated_across_channels);
    tcase_add_test(tc, class_weights_are_settings_and_labels_may_be_int32);
    tcase_add_test(tc, operands_that_are_left_out_or_of_another_type_are_refused);
    return run_tests("ops_onnx_net", tc);
}
