/* tests/compiler/test_attach_loss.c -- losses attached to an output: values, gradients, target inputs, masked
 * samples. */
#include "tests/support/gradient.h"
#include "tests/support/suite.h"

static void add_output(LsValueId v)
{
    LsValueId *list = ls_arena_alloc(cx.arena, g->noutput + 1, sizeof *list);
    for (uint32_t i = 0; i < g->noutput; i++)
        list[i] = g->output[i];
    list[g->noutput++] = v;
    g->output = list;
}

/* A model whose only output is a parameter of this shape. */
static LsValueId open_with(LsShape s, int64_t batch)
{
    graph_open();
    g->batch = batch;
    LsValueId y = param("y", s);
    add_output(y);
    return y;
}

/* Turns the target input into a constant, so that the gradient check sees it. */
static void set_label(const void *data)
{
    g->value[g->label.i].data = data;
    g->value[g->label.i].kind = LS_V_CONST;
}

static void set_class_labels(int64_t classes)
{
    LsShape s = *ls_shape(g, g->label);
    set_label(g->value[labels(s, classes).i].data);
}

static void check_ce(LsShape s, const LsLossOptions *o, int64_t classes)
{
    open_with(s, s.dim[0]);
    ck_assert(ls_loss(&cx, g, o));
    set_class_labels(classes);
    check_gradients(g->loss);
    graph_close();
}

START_TEST(cross_entropy_gradients_match_differences)
{
    static const float weight[] = {0.5f, 2, 1, 0.25f};
    LsLossOptions o = {.kind = LS_LOSS_CE};
    check_ce(SHAPE(3, 4), &o, 4);
    check_ce(SHAPE(2, 4, 2, 3), &o, 4);
    check_ce(SHAPE(2, 3, 4), &o, 4);        /* classes on the last axis */
    o.smoothing = 0.1;
    check_ce(SHAPE(3, 4), &o, 4);
    o.class_weight = weight, o.nclass = 4;
    check_ce(SHAPE(3, 4), &o, 4);
    o.has_ignore = true, o.ignore = 2;
    check_ce(SHAPE(2, 4, 3, 2), &o, 4);
    o.axis = 1;
    check_ce(SHAPE(2, 4, 5), &o, 4);
}
END_TEST

START_TEST(cross_entropy_of_equal_scores_is_the_log_of_the_classes)
{
    LsValueId y = open_with(SHAPE(2, 5), 2);
    g->value[y.i].data = NULL;      /* zeros */
    ck_assert(ls_loss(&cx, g, &(LsLossOptions){.kind = LS_LOSS_CE}));
    set_class_labels(5);
    Eval e = eval_new(g);
    eval_run(&e, 1, g->nnode);
    ck_assert_double_eq_tol(e.v[g->loss.i][0], log(5), 1e-12);
    graph_close();
}
END_TEST

START_TEST(class_axis_follows_the_rank)
{
    static const struct { int64_t rank, label[3]; LsShape s; } want[] = {
        {1, {7}, {2, {7, 3}}}, {2, {7, 3}, {3, {7, 3, 5}}}, {3, {7, 5, 6}, {4, {7, 3, 5, 6}}}};
    for (int k = 0; k < 3; k++) {
        open_with(want[k].s, 7);
        ck_assert(ls_loss(&cx, g, &(LsLossOptions){.kind = LS_LOSS_CE, .label = "t"}));
        ck_assert_int_eq(ls_shape(g, g->label)->rank, want[k].rank);
        for (int d = 0; d < want[k].rank; d++)
            ck_assert_int_eq(ls_shape(g, g->label)->dim[d], want[k].label[d]);
        ck_assert_str_eq(g->value[g->label.i].name, "t");
        ck_assert_int_eq(ls_type(g, g->label), LS_I64);
        ck_assert_int_eq(g->input[g->ninput - 1].i, g->label.i);
        graph_close();
    }
}
END_TEST

/* ---- which axis has the classes ---- */

static LsValueId input(LsShape s)
{
    return ls_value_add(&cx, g, LS_V_INPUT, "x", LS_REAL, &s, NULL);
}

static LsValueId product(LsValueId x, LsShape w)
{
    return ls_append2(&cx, g, LS_OP_MATMUL, x, param("w", w), &(LsAttr){.gemm = {.alpha = 1}});
}

/* [7, 5, 4]: features last. */
static LsValueId linear(void) { return product(input(SHAPE(7, 5, 3)), SHAPE(3, 4)); }

static LsValueId convolution(void)
{
    const LsWindowAttr window = {.n = 1, .kernel = {1}, .stride = {1}, .dilation = {1}, .group = 1};
    return ls_append2(&cx, g, LS_OP_CONV, input(SHAPE(7, 3, 5)), param("w", SHAPE(4, 3, 1)),
                      &(LsAttr){.window = window});
}

static LsValueId transposed(LsValueId v, int a, int b, int c)
{
    return ls_append1(&cx, g, LS_OP_TRANSPOSE, v, &(LsAttr){.perm = {{a, b, c}}});
}

static LsValueId relu(LsValueId v) { return ls_append1(&cx, g, LS_OP_RELU, v, NULL); }

static LsValueId biased(LsValueId v, LsShape b)
{
    return ls_append2(&cx, g, LS_OP_ADD, param("b", b), v, NULL);
}

static LsValueId scores(int which)
{
    LsValueId x;
    switch (which) {
    case 0: return linear();
    case 1: return biased(relu(linear()), SHAPE(4));
    case 2: return convolution();
    case 3: return biased(convolution(), SHAPE(4, 1));
    case 4: return transposed(linear(), 0, 2, 1);
    case 5: return relu(transposed(convolution(), 0, 2, 1));
    case 6: return ls_reshape(&cx, g, product(input(SHAPE(35, 3)), SHAPE(3, 4)), &SHAPE(7, 5, 4));
    case 7: return ls_append1(&cx, g, LS_OP_LOG_SOFTMAX, relu(input(SHAPE(7, 4, 5))),
                              &(LsAttr){.axis = {1}});
    case 8: x = input(SHAPE(7, 5, 4)); return product(x, SHAPE(7, 4, 4));
    case 9: return relu(input(SHAPE(7, 5, 4)));
    case 10: x = relu(input(SHAPE(7, 5, 3)));   /* of activations */
        return ls_append2(&cx, g, LS_OP_MATMUL, x, ls_append1(&cx, g, LS_OP_SIGMOID,
                          input(SHAPE(7, 3, 4)), NULL), &(LsAttr){.gemm = {.alpha = 1}});
    case 11: return ls_reshape(&cx, g, linear(), &SHAPE(7, 5, 2, 2));   /* splits the axis */
    default: return product(input(SHAPE(7, 5, 6, 3)), SHAPE(3, 4));
    }
}

/* 70 sums of a value with itself: the search visits both operands once. */
static LsValueId doubled(void)
{
    LsValueId v = input(SHAPE(7, 5, 4));
    for (int k = 0; k < 70; k++)
        v = ls_append2(&cx, g, LS_OP_ADD, v, v, NULL);
    return v;
}

/* Attaches a cross-entropy and returns its axis. *says: whether compile names the axis. */
static int axis_of(LsValueId y, int asked, bool *says)
{
    char *text;
    size_t size;
    cx.log = open_memstream(&text, &size);
    add_output(y);
    ck_assert(ls_loss(&cx, g, &(LsLossOptions){.kind = LS_LOSS_CE, .axis = asked}));
    fclose(cx.log);
    *says = strstr(text, "--class-axis") != NULL;
    free(text);
    return g->node[g->value[g->loss.i].def.i].attr.loss.axis;
}

START_TEST(classes_lie_where_a_weight_makes_them)
{
    static const struct { int axis; bool says; } want[] = {
        {2, false}, {2, false}, {1, true}, {1, true}, {1, true}, {2, false}, {2, false}, {1, true},
        {2, false}, {2, true}, {2, true}, {1, true}, {3, true}};
    for (int k = 0; k < 13; k++)
        for (int asked = 0; asked < 2; asked++) {
            bool says;
            graph_open();
            g->batch = 7;
            int axis = axis_of(scores(k), asked == 1 ? -2 : 0, &says);
            int rank = ls_shape(g, g->output[0])->rank;
            ck_assert_msg(axis == (asked == 1 ? rank - 2 : want[k].axis), "case %d: axis %d", k, axis);
            ck_assert_msg(says == (asked == 0 && want[k].says), "case %d", k);
            graph_close();
        }
    bool says;
    graph_open();
    ck_assert_int_eq(axis_of(doubled(), 0, &says), 2);
    ck_assert(says);
    graph_close();
}
END_TEST

START_TEST(regression_gradients_match_differences)
{
    static const LsLossKind kind[] = {LS_LOSS_MSE, LS_LOSS_L1, LS_LOSS_BCE};
    for (int k = 0; k < 3; k++) {
        open_with(SHAPE(4, 3), 4);
        ck_assert(ls_loss(&cx, g, &(LsLossOptions){.kind = kind[k]}));
        ck_assert_int_eq(ls_type(g, g->label), LS_REAL);
        set_label(numbers(12, 77));
        check_gradients(g->loss);
        graph_close();
    }
}
END_TEST

/* The loss and the gradient of the first output with some samples masked. */
static double masked(const LsLossOptions *o, LsShape s, int64_t valid, double *grad, const float *y)
{
    LsValueId v = open_with(s, s.dim[0]);
    g->value[v.i].data = y;
    ck_assert(ls_loss(&cx, g, o));
    if (o->kind == LS_LOSS_CE)
        set_class_labels(3);
    else
        set_label(numbers(ls_count(&s), 3));
    ck_assert(ls_autodiff(&cx, g));
    Eval e = eval_new(g);
    e.valid = valid;
    eval_run(&e, 1, g->nnode);
    for (int64_t i = 0; i < ls_count(&s); i++)
        grad[i] = e.v[g->grad[0].grad.i][i];
    double loss = e.v[g->loss.i][0];
    graph_close();
    return loss;
}

START_TEST(masked_samples_count_neither_in_the_sum_nor_in_the_mean)
{
    static const float y[12] = {0.1f, -0.3f, 0.7f, 0.2f, 0.5f, -0.9f, 0.4f, 0.6f, -0.2f, 9, 9, 9};
    LsLossOptions o[] = {{.kind = LS_LOSS_CE}, {.kind = LS_LOSS_MSE}};
    for (int k = 0; k < 2; k++) {
        double part[12], whole[9];
        double a = masked(&o[k], SHAPE(4, 3), 3, part, y),
               b = masked(&o[k], SHAPE(3, 3), 3, whole, y);
        ck_assert_double_eq_tol(a, b, 1e-12);
        for (int i = 0; i < 12; i++)
            ck_assert_double_eq_tol(part[i], i < 9 ? whole[i] : 0, 1e-12);
    }
}
END_TEST

START_TEST(negative_log_likelihood_of_log_softmax_is_cross_entropy)
{
    static const LsReduction how[] = {LS_LOSS_MEAN, LS_LOSS_SUM, LS_LOSS_EACH};
    for (int k = 0; k < 3; k++) {
        graph_open();
        g->batch = 2;
        LsValueId x = param("x", SHAPE(2, 4, 3)), t = labels(SHAPE(2, 3), 4),
                  w = constant(SHAPE(4));
        LsAttr at = {.loss = {.axis = 1, .reduction = how[k], .has_ignore = true, .ignore = 1}};
        LsValueId p = ls_append1(&cx, g, LS_OP_LOG_SOFTMAX, x, &(LsAttr){.axis = {1}});
        LsValueId a = ls_append3(&cx, g, LS_OP_NLL, p, t, w, &at);
        LsValueId b = ls_append3(&cx, g, LS_OP_XENT, x, t, w, &at);
        Eval e = eval_new(g);
        eval_run(&e, 1, g->nnode);
        for (int64_t i = 0; i < ls_count(ls_shape(g, a)); i++)
            ck_assert_double_eq_tol(e.v[a.i][i], e.v[b.i][i], 1e-12);
        check_gradients(weighed(ls_append2(&cx, g, LS_OP_ADD, a, b, NULL)));
        graph_close();
    }
}
END_TEST

/* A target that has no axis of samples makes all inputs one sample, so that no data are shuffled along their first
 * axis. */
START_TEST(inputs_and_a_target_without_common_samples_are_one_sample)
{
    open_with(SHAPE(8, 3), 32);
    ck_assert(ls_loss(&cx, g, &(LsLossOptions){.kind = LS_LOSS_CE}));
    ck_assert_int_eq(g->batch, 1);
    graph_close();
    open_with(SHAPE(64, 3), 32);                /* two rows a sample */
    ck_assert(ls_loss(&cx, g, &(LsLossOptions){.kind = LS_LOSS_CE}));
    ck_assert_int_eq(g->batch, 32);
    graph_close();
}
END_TEST

/* By samples, by the labels that count, or added up. */
START_TEST(a_loss_says_how_those_of_several_batches_make_one)
{
    static const struct { LsLossAttr at; bool weights; LsLossOver over; } want[] = {
        {{.axis = 1}, false, LS_OVER_SAMPLES},
        {{.axis = 1, .has_ignore = true}, false, LS_OVER_LABELS},
        {{.axis = 1}, true, LS_OVER_LABELS},
        {{.axis = 1, .reduction = LS_LOSS_SUM, .has_ignore = true}, true, LS_OVER_SUM},
    };
    for (int k = 0; k < 8; k++) {
        bool nll = k % 2 == 1;
        graph_open();
        g->batch = 2;
        LsValueId in[3] = {param("x", SHAPE(2, 4)), labels(SHAPE(2), 4)};
        if (want[k / 2].weights)
            in[2] = constant(SHAPE(4));
        add_output(ls_append(&cx, g, nll ? LS_OP_NLL : LS_OP_XENT, want[k / 2].weights ? 3 : 2, in,
                             &(LsAttr){.loss = want[k / 2].at}));
        ck_assert(ls_loss(&cx, g, &(LsLossOptions){.kind = LS_LOSS_GRAPH}));
        ck_assert_int_eq(g->loss_over, want[k / 2].over);
        ck_assert(!g->loss_of_file);
        LsNodeId n = g->value[g->loss.i].def;
        ck_assert_uint_eq(g->loss_weight.i, want[k / 2].over == LS_OVER_LABELS
                                                ? ls_out(g, n, nll ? 1 : 2).i : 0);
        graph_close();
    }
    open_with(SHAPE(2, 3), 2);
    ck_assert(ls_loss(&cx, g, &(LsLossOptions){.kind = LS_LOSS_MSE}));
    ck_assert(g->loss_over == LS_OVER_SAMPLES && !g->loss_of_file);
    graph_close();
}
END_TEST

START_TEST(of_two_scalars_one_must_be_named_as_the_loss)
{
    char *text;
    size_t size;
    graph_open();
    cx.log = open_memstream(&text, &size);
    add_output(param("y", SHAPE(2, 3)));
    for (int k = 0; k < 2; k++) {
        LsValueId s = ls_append1(&cx, g, k == 0 ? LS_OP_REDUCE_SUM : LS_OP_REDUCE_MEAN, g->output[0],
                                 &(LsAttr){.reduce = {3, true}});
        g->value[s.i].name = k == 0 ? "penalty" : "error";
        add_output(s);
    }
    ck_assert(!ls_loss(&cx, g, &(LsLossOptions){.kind = LS_LOSS_GRAPH}));
    ck_assert_int_eq(cx.last, LS_E_LOSS);
    fflush(cx.log);
    ck_assert_ptr_nonnull(strstr(text, "2 model outputs have one element: 'penalty', 'error'"));
    ck_assert_ptr_nonnull(strstr(text, "--loss-input"));
    ck_assert(ls_loss(&cx, g, &(LsLossOptions){.kind = LS_LOSS_GRAPH, .output = "error"}));
    ck_assert_int_eq(ls_viewed(g, g->loss).i, g->output[2].i);
    fclose(cx.log);
    free(text);
    graph_close();
}
END_TEST

START_TEST(a_graph_loss_is_the_only_output_of_one_element)
{
    graph_open();
    add_output(param("y", SHAPE(2, 3)));
    LsValueId s =
        ls_append1(&cx, g, LS_OP_REDUCE_SUM, g->output[0], &(LsAttr){.reduce = {3, true}});
    add_output(s);
    ck_assert(ls_loss(&cx, g, &(LsLossOptions){.kind = LS_LOSS_GRAPH}));
    ck_assert_int_eq(ls_shape(g, g->loss)->rank, 0);
    ck_assert(!ls_is(g->label));
    graph_close();
}
END_TEST

START_TEST(a_softmax_in_front_of_the_cross_entropy_is_warned_of)
{
    for (int k = 0; k < 2; k++) {
        char *text;
        size_t size;
        graph_open();
        cx.log = open_memstream(&text, &size);
        LsOpCode op = k == 0 ? LS_OP_SOFTMAX : LS_OP_LOG_SOFTMAX;
        LsValueId x = param("x", SHAPE(2, 3));
        add_output(ls_append1(&cx, g, op, x, &(LsAttr){.axis = {1}}));
        ck_assert(ls_loss(&cx, g, &(LsLossOptions){.kind = LS_LOSS_CE}));
        fclose(cx.log);
        ck_assert_int_eq(cx.nwarning, k == 0);
        ck_assert_int_eq(strstr(text, "is a softmax") != NULL, k == 0);
        free(text);
        graph_close();
    }
}
END_TEST

static void check_refused(LsShape y, const LsLossOptions *o, LsErrId id)
{
    open_with(y, y.rank > 0 ? y.dim[0] : 1);
    cx.log = fopen("/dev/null", "w");
    ck_assert(!ls_loss(&cx, g, o));
    ck_assert_int_eq(cx.last, id);
    fclose(cx.log);
    graph_close();
}

START_TEST(losses_that_do_not_fit_are_refused)
{
    static const float weight[2] = {1, 1};
    check_refused(SHAPE(2, 3), &(LsLossOptions){.kind = LS_LOSS_GRAPH}, LS_E_LOSS);
    check_refused(SHAPE(2, 3), &(LsLossOptions){.kind = LS_LOSS_MSE, .output = "z"}, LS_E_LOSS);
    check_refused(SHAPE(6), &(LsLossOptions){.kind = LS_LOSS_CE}, LS_E_LOSS);
    check_refused(SHAPE(2, 3), &(LsLossOptions){.kind = LS_LOSS_CE, .axis = 2}, LS_E_LOSS);
    check_refused(SHAPE(2, 3),
                  &(LsLossOptions){.kind = LS_LOSS_CE, .class_weight = weight, .nclass = 2},
                  LS_E_OPTION);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("loss");
    tcase_add_test(tc, cross_entropy_gradients_match_differences);
    tcase_add_test(tc, cross_entropy_of_equal_scores_is_the_log_of_the_classes);
    tcase_add_test(tc, class_axis_follows_the_rank);
    tcase_add_test(tc, classes_lie_where_a_weight_makes_them);
    tcase_add_test(tc, regression_gradients_match_differences);
    tcase_add_test(tc, masked_samples_count_neither_in_the_sum_nor_in_the_mean);
    tcase_add_test(tc, negative_log_likelihood_of_log_softmax_is_cross_entropy);
    tcase_add_test(tc, inputs_and_a_target_without_common_samples_are_one_sample);
    tcase_add_test(tc, a_loss_says_how_those_of_several_batches_make_one);
    tcase_add_test(tc, of_two_scalars_one_must_be_named_as_the_loss);
    tcase_add_test(tc, a_graph_loss_is_the_only_output_of_one_element);
    tcase_add_test(tc, a_softmax_in_front_of_the_cross_entropy_is_warned_of);
    tcase_add_test(tc, losses_that_do_not_fit_are_refused);
    return run_tests("loss", tc);
}
