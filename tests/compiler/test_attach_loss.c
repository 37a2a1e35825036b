/* tests/compiler/test_attach_loss.c -- losses attached to an output: values, gradients, target
 * inputs, masked samples. */
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
    g->value[g->objective.label.i].data = data;
    g->value[g->objective.label.i].kind = LS_V_CONST;
}

static void set_class_labels(int64_t classes)
{
    LsShape s = *ls_shape(g, g->objective.label);
    const LsValueId v = labels(s, classes);
    set_label(g->value[v.i].data);
}

static void check_ce(LsShape s, const LsLossOptions *o, int64_t classes)
{
    open_with(s, s.dim[0]);
    ck_assert(ls_loss(&cx, g, o));
    set_class_labels(classes);
    check_gradients(g->objective.loss);
    graph_close();
}

START_TEST(cross_entropy_gradients_match_differences)
{
    static const float weight[] = {0.5f, 2, 1, 0.25f};
    LsLossOptions o = {.kind = LS_LOSS_CE};
    check_ce(SHAPE(3, 4), &o, 4);
    check_ce(SHAPE(2, 4, 2, 3), &o, 4);
    o.axis = 2;
    check_ce(SHAPE(2, 3, 4), &o, 4);
    o.axis = 0;
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
    ck_assert_double_eq_tol(e.v[g->objective.loss.i][0], log(5), 1e-12);
    graph_close();
}
END_TEST

START_TEST(class_axis_follows_the_rank)
{
    static const struct { int64_t rank, label[3]; LsShape s; } want[] = {
        {1, {7}, {2, {7, 3}}}, {2, {7, 3}, {3, {7, 3, 5}}}, {3, {7, 5, 6}, {4, {7, 3, 5, 6}}}};
    for (int k = 0; k < 3; k++) {
        open_with(want[k].s, 7);
        const int axis = want[k].s.rank == 3 ? -1 : 0;      /* not clear without a weight */
        ck_assert(
            ls_loss(&cx, g, &(LsLossOptions){.kind = LS_LOSS_CE, .label = "t", .axis = axis}));
        ck_assert_int_eq(ls_shape(g, g->objective.label)->rank, want[k].rank);
        for (int d = 0; d < want[k].rank; d++)
            ck_assert_int_eq(ls_shape(g, g->objective.label)->dim[d], want[k].label[d]);
        ck_assert_str_eq(g->value[g->objective.label.i].name, "t");
        ck_assert_int_eq(ls_type(g, g->objective.label), LS_I64);
        ck_assert_int_eq(g->input[g->ninput - 1].i, g->objective.label.i);
        graph_close();
    }
}
END_TEST

/* ---- which axis has the classes ---- */

/* Scores [4, 3, 5] have labels [4, 5] or [4, 3]; axes of one length cannot be told apart. */
START_TEST(the_shape_of_the_labels_shows_the_class_axis)
{
    static const struct { LsShape s, label; int asked, axis; LsErrId wrong;
    } want[] = {{{3, {4, 3, 5}}, {2, {4, 5}}, 0, 1, LS_E_NONE},
                {{3, {4, 3, 5}}, {2, {4, 3}}, 0, 2, LS_E_NONE},
                {{3, {4, 3, 5}}, {2, {4, 3}}, -1, 2, LS_E_NONE},
                {{3, {4, 3, 5}}, {2, {4, 3}}, 1, 0, LS_E_OPTION},
                {{3, {4, 3, 5}}, {2, {3, 5}}, 0, 0, LS_E_LOSS},
                {{3, {4, 5, 5}}, {2, {4, 5}}, 0, 0, LS_E_LOSS},
                {{4, {4, 3, 5, 6}}, {3, {4, 3, 5}}, 0, 3, LS_E_NONE},
                {{3, {4, 5, 5}}, {2, {4, 5}}, 2, 2, LS_E_NONE}};
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        open_with(want[k].s, 4);
        cx.log = fopen("/dev/null", "w");
        const LsLossOptions o = {
            .kind = LS_LOSS_CE, .axis = want[k].asked, .label_shape = want[k].label};
        ck_assert_msg(ls_loss(&cx, g, &o) == (want[k].wrong == LS_E_NONE), "case %zu", k);
        fclose(cx.log);
        cx.log = NULL;
        if (want[k].wrong != LS_E_NONE)
            ck_assert_int_eq(cx.last, want[k].wrong);
        else
            ck_assert_int_eq(g->node[g->value[g->objective.loss.i].def.i].attr.loss.axis,
                             want[k].axis);
        graph_close();
    }
}
END_TEST

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

/* Attaches a cross-entropy and returns its axis; 0: refused, with both readings. *says: whether
 * compile names the axis. */
static int axis_of(LsValueId y, int asked, bool *says)
{
    char *text;
    size_t size;
    cx.log = open_memstream(&text, &size);
    add_output(y);
    bool ok = ls_loss(&cx, g, &(LsLossOptions){.kind = LS_LOSS_CE, .axis = asked});
    fclose(cx.log);
    *says = strstr(text, "--class-axis") != NULL;
    ck_assert(ok
              || strstr(text, "5 classes on axis 1 (labels 7x4), or 4 on axis 2 (labels 7x5)")
                     != NULL);
    free(text);
    if (!ok)
        return 0;
    return g->node[g->value[g->objective.loss.i].def.i].attr.loss.axis;
}

START_TEST(classes_lie_where_a_weight_makes_them)
{
    static const struct { int axis; bool says; } want[] = {
        {2, false}, {2, false}, {1, true}, {1, true}, {1, true}, {2, false}, {2, false}, {1, true},
        {2, false}, {0, true}, {0, true}, {1, true}, {3, true}};
    for (int k = 0; k < 13; k++)
        for (int asked = 0; asked < 2; asked++) {
            bool says;
            graph_open();
            g->batch = 7;
            int axis = axis_of(scores(k), asked == 1 ? -2 : 0, &says);
            int rank = ls_shape(g, g->output[0])->rank;
            ck_assert_msg(axis == (asked == 1 ? rank - 2 : want[k].axis), "case %d: axis %d", k,
                          axis);
            ck_assert_msg(says == (asked == 0 && want[k].says), "case %d", k);
            graph_close();
        }
    bool says;
    graph_open();
    ck_assert_int_eq(axis_of(doubled(), 0, &says), 0);
    ck_assert(says);
    graph_close();
}
END_TEST

START_TEST(regression_gradients_match_differences)
{
    static const LsLossPart part[] = {
        {LS_LOSS_MSE, {NULL}, 1, 1},       {LS_LOSS_L1, {NULL}, 1, 1},
        {LS_LOSS_BCE, {NULL}, 1, 1},       {LS_LOSS_SMOOTH_L1, {NULL}, 2, 0.7},
        {LS_LOSS_SMOOTH_L1, {NULL}, 1, 0}, {LS_LOSS_HUBER, {NULL}, -0.5, 0.6},
        {LS_LOSS_COSINE, {NULL}, 1, 1},    {LS_LOSS_KL, {NULL}, 1, 1},
        {LS_LOSS_SOFT_CE, {NULL}, 1, 1}};
    for (size_t k = 0; k < sizeof part / sizeof *part; k++) {
        LsLossPart p = part[k];
        open_with(SHAPE(4, 3), 4);
        ck_assert(ls_loss(&cx, g, &(LsLossOptions){.part = &p, .npart = 1, .axis = 1}));
        ck_assert_int_eq(ls_type(g, g->objective.label), LS_REAL);
        float *t = numbers(12, 77);
        for (int i = 0; i < 12 && p.kind == LS_LOSS_KL; i++)
            t[i] = i == 5 ? 0 : fabsf(t[i]);
        set_label(t);
        check_gradients(g->objective.loss);
        graph_close();
    }
}
END_TEST

/* ---- beside PyTorch 2.15 in doubles ---- */

typedef struct Torch {
    LsLossPart part;
    int ny;
    const float *y[3], *target;
    double loss;
    const double *grad[3];
    double smoothing;
    const float *weight;        /* of 3 classes */
} Torch;

static const float embedding[3][12] = {
    {0.5f, -1.25f, 2, 1.5f, 0.25f, -0.75f, 0, 0, 0, -2, 1, 0.5f},
    {1, 0, -0.5f, 1.5f, 0.5f, -1, 0, 0, 0, 2, -1, -0.5f},
    {0.25f, -1, 2, 3, 0.5f, 1, 0.5f, 0, 0, -2, 1, 0.75f}};
static const float direction[12] = {1, 0, -0.5f, 3, 0.5f, -1.5f, 1, 2, 3, 2, -1, -0.5f};
static const float log_part[12] = {-0.5f,   -1.25f, -2, -1.5f, -0.25f, -0.75f,
                                   -0.125f, -3,     -1, -2,    -1,     -0.5f};
static const float part_of[12] = {0.5f,   0.25f, 0.25f,  1, 0,     0,
                                  0.125f, 0.5f,  0.375f, 0, 0.75f, 0.25f};

static const Torch torch[] = {
    /* CosineEmbeddingLoss()(y, t, ones) */
    {{LS_LOSS_COSINE, {"y0"}, 1, 1},
     1,
     {embedding[0]},
     direction,
     1.0463738895760009,
     {(const double[]){-0.09673693094347127, 0.009972879478706736, 0.03041728241006351, 0, 0, 0,
                       -66815.31061159412, -133630.62122318824, -200445.93183478236, 0, 0, 0}},
     0,
     NULL},
    /* TripletMarginLoss(margin)(a, p, n) */
    {{LS_LOSS_TRIPLET, {"y0", "y1", "y2"}, 1, 1},
     3,
     {embedding[0], embedding[1], embedding[2]},
     NULL,
     2.329620063805372,
     {(const double[]){-0.22079985557736737, 0.06671972317993412, 0.22011208704406665, 0, 0, 0,
                       0.39433756729640645, 0.14433706729640647, 0.14433706729640647,
                       -0.21821884607683045, 0.10910800486412799, 0.3045545297073015},
      (const double[]){0.04402245317607064, 0.11005626500780026, -0.22011279415084783, 0, 0, 0,
                       -0.14433756729740646, -0.14433756729740646, -0.14433756729740646,
                       0.21821784607283046, -0.10910900486812798, -0.05455452971130156},
      (const double[]){0.17677740240129672, -0.17677598818773438, 7.071067811780622e-07, 0, 0, 0,
                       -0.249999999999, 5.000009999999999e-07, 5.000009999999999e-07,
                       1.0000039999999999e-06, 1.0000039999999999e-06, -0.24999999999599995}},
     0,
     NULL},
    {{LS_LOSS_TRIPLET, {"y0", "y1", "y2"}, 1, 0.25},
     3,
     {embedding[0], embedding[1], embedding[2]},
     NULL,
     1.82961938079317,
     {(const double[]){-0.22079985557736737, 0.06671972317993412, 0.22011208704406665, 0, 0, 0, 0,
                       0, 0, -0.21821884607683045, 0.10910800486412799, 0.3045545297073015}},
     0,
     NULL},
    /* KLDivLoss(reduction="batchmean")(y, t) */
    {{LS_LOSS_KL, {"y0"}, 1, 1},
     1,
     {log_part},
     part_of,
     0.687938582917981,
     {(const double[]){-0.125, -0.0625, -0.0625, -0.25, 0, 0, -0.03125, -0.125, -0.09375, 0,
                       -0.1875, -0.0625}},
     0,
     NULL},
    /* CrossEntropyLoss()(y, t), with probabilities */
    {{LS_LOSS_SOFT_CE, {"y0"}, 1, 1},
     1,
     {embedding[0]},
     part_of,
     0.9635009458799126,
     {(const double[]){-0.08079495447313892, -0.05481831491839089, 0.13561326939152982,
                       -0.07038991471223377, 0.05145915099941289, 0.01893076371282088,
                       0.05208333333333333, -0.04166666666666667, -0.010416666666666671,
                       0.007514721892393506, -0.03656277596284355, 0.029048054070450052}},
     0,
     NULL},
    /* CrossEntropyLoss(weight=[1, 2, 0.5], label_smoothing=0.125)(y, t) */
    {{LS_LOSS_SOFT_CE, {"y0"}, 1, 1},
     1,
     {embedding[0]},
     part_of,
     1.3915099259323043,
     {(const double[]){-0.06983075583682889, -0.12152642884005638, 0.19135718467688526,
                       -0.04581470460207198, 0.031697883311900654, 0.014116821290171312,
                       0.0700954861111111, -0.13172743055555558, 0.06163194444444443,
                       0.0013642254667210689, -0.11233278940008284, 0.1109685639333618}},
     0.125,
     (const float[]){1, 2, 0.5f}},
};

/* Opens a graph with outputs y0, y1... of 4x3, and attaches the loss. */
static void open_torch(const Torch *t)
{
    LsLossPart p = t->part;
    graph_open();
    g->batch = 4;
    for (int k = 0; k < t->ny; k++) {
        LsValueId y = param(ls_arena_printf(cx.arena, "y%d", k), SHAPE(4, 3));
        g->value[y.i].data = t->y[k];
        add_output(y);
    }
    ck_assert(ls_loss(&cx, g, &(LsLossOptions){.part = &p,
                                               .npart = 1,
                                               .axis = 1,
                                               .smoothing = t->smoothing,
                                               .class_weight = t->weight,
                                               .nclass = t->weight != NULL ? 3 : 0}));
    ck_assert_int_eq(ls_is(g->objective.label), t->target != NULL);
    ck_assert(g->objective.over == LS_OVER_SAMPLES && !g->objective.of_file);
    if (t->target != NULL)
        set_label(t->target);
}

START_TEST(losses_and_slopes_are_those_of_pytorch)
{
    const Torch *t = &torch[_i];
    open_torch(t);
    ck_assert(ls_autodiff(&cx, g));
    Eval e = eval_new(g);
    eval_run(&e, 1, g->nnode);
    ck_assert_double_eq_tol(e.v[g->objective.loss.i][0], t->loss, 1e-7);
    for (int k = 0; k < t->ny && t->grad[k] != NULL; k++)
        for (int i = 0; i < 12; i++)
            ck_assert_double_eq_tol(e.v[g->grad[k].grad.i][i], t->grad[k][i],
                                    1e-6 * fmax(1, fabs(t->grad[k][i])));
    graph_close();
}
END_TEST

START_TEST(triplet_gradients_match_differences)
{
    open_torch(&torch[2]);
    for (int k = 0; k < 3; k++)                 /* away from distances of 0 */
        g->value[g->output[k].i].data = numbers(12, (uint64_t)k + 5);
    check_gradients(g->objective.loss);
    graph_close();
}
END_TEST

/* At the edge the slope is 0, as torch.clamp_min's is. */
START_TEST(a_triplet_at_its_margin_has_no_slope)
{
    static const float a[12], p[12] = {1, 1, 1}, n[12] = {1, 1, 1};     /* two equal distances */
    const Torch t = {.part = {LS_LOSS_TRIPLET, {"y0", "y1", "y2"}, 1, 0},
                     .ny = 3,
                     .y = {a, p, n}};
    open_torch(&t);
    ck_assert(ls_autodiff(&cx, g));
    Eval e = eval_new(g);
    eval_run(&e, 1, g->nnode);
    ck_assert_double_eq_tol(e.v[g->objective.loss.i][0], 0, 1e-12);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 12; i++)
            ck_assert_double_eq(e.v[g->grad[k].grad.i][i], 0);
    graph_close();
}
END_TEST

/* NLLLoss(weight=[1, 2, 0.5], ignore_index=1)(y, [0, 2, 1, 2]) */
START_TEST(the_likelihood_is_that_of_pytorch)
{
    static const float weight[3] = {1, 2, 0.5f};
    static const int64_t label[4] = {0, 2, 1, 2};
    LsValueId y = open_with(SHAPE(4, 3), 4);
    g->value[y.i].data = log_part;
    ck_assert(ls_loss(&cx, g, &(LsLossOptions){.kind = LS_LOSS_NLL, .has_ignore = true, .ignore = 1,
                                               .class_weight = weight, .nclass = 3}));
    ck_assert_int_eq(g->objective.over, LS_OVER_LABELS);
    set_label(label);
    ck_assert(ls_autodiff(&cx, g));
    Eval e = eval_new(g);
    eval_run(&e, 1, g->nnode);
    ck_assert_double_eq_tol(e.v[g->objective.loss.i][0], 0.5625, 1e-12);
    for (int i = 0; i < 12; i++)
        ck_assert_double_eq_tol(e.v[g->grad[0].grad.i][i],
                                i == 0              ? -0.5
                                : i == 5 || i == 11 ? -0.25
                                                    : 0,
                                1e-12);
    graph_close();
}
END_TEST

/* ---- several losses ---- */

static void open_two(void)
{
    graph_open();
    g->batch = 4;
    add_output(param("logits", SHAPE(4, 3)));
    add_output(param("box", SHAPE(4, 2)));
}

START_TEST(the_loss_is_the_weighted_sum_of_its_terms)
{
    LsLossPart part[] = {{LS_LOSS_MSE, {"box"}, 0.5, 1},
                         {LS_LOSS_CE, {"logits"}, 1, 1},
                         {LS_LOSS_L1, {"box"}, 3, 1}};
    double loss[4], grad[4] = {0};
    for (uint32_t k = 0; k < 4; k++) {
        open_two();
        ck_assert(ls_loss(
            &cx, g, &(LsLossOptions){.part = k < 3 ? &part[k] : part, .npart = k < 3 ? 1 : 3}));
        if (k == 3) {
            ck_assert_uint_eq(g->objective.nlabel, 2);
            ck_assert_str_eq(g->value[g->input[0].i].name, "label.box");
            ck_assert_str_eq(g->value[g->objective.label.i].name, "label.logits");
            ck_assert(g->objective.over == LS_OVER_SAMPLES && !g->objective.of_file);
        }
        for (uint32_t i = 0; i < g->ninput; i++) {
            LsShape s = *ls_shape(g, g->input[i]);
            const LsValueId classes =
                ls_type(g, g->input[i]) == LS_I64 ? labels(s, 3) : (LsValueId){0};
            const void *data = ls_is(classes) ? g->value[classes.i].data : numbers(8, 9);
            g->value[g->input[i].i].data = data;
            g->value[g->input[i].i].kind = LS_V_CONST;
        }
        if (k == 3)
            check_gradients(g->objective.loss);
        else
            ck_assert(ls_autodiff(&cx, g));
        Eval e = eval_new(g);
        eval_run(&e, 1, g->nnode);
        loss[k] = e.v[g->objective.loss.i][0];
        for (uint32_t i = 0; i < g->ngrad; i++)
            if (strcmp(g->value[g->grad[i].param.i].name, "box") == 0)
                grad[k] = e.v[g->grad[i].grad.i][3];
        graph_close();
    }
    ck_assert_double_eq_tol(loss[3], loss[0] + loss[1] + loss[2], 1e-12);
    ck_assert_double_eq_tol(grad[3], grad[0] + grad[2], 1e-12);
}
END_TEST

/* A single target keeps its plain name, though two losses read it. */
START_TEST(losses_of_one_output_share_its_target)
{
    LsLossPart part[] = {
        {LS_LOSS_MSE, {"box"}, 1, 1}, {LS_LOSS_L1, {"box"}, 1, 1}, {LS_LOSS_CE, {"box"}, 1, 1}};
    open_two();
    ck_assert(ls_loss(&cx, g, &(LsLossOptions){.part = part, .npart = 2}));
    ck_assert_uint_eq(g->ninput, 1);
    ck_assert_str_eq(g->value[g->objective.label.i].name, "label");
    graph_close();
    open_two();
    cx.log = fopen("/dev/null", "w");
    ck_assert(!ls_loss(&cx, g, &(LsLossOptions){.part = part, .npart = 3}));
    ck_assert_int_eq(cx.last, LS_E_LOSS);
    fclose(cx.log);
    graph_close();
}
END_TEST

/* A mean over labels that count weighs batches by them, which no other mean shares. */
START_TEST(terms_of_different_means_are_not_accumulated)
{
    LsLossPart part[] = {
        {LS_LOSS_CE, {"logits"}, 2, 1}, {LS_LOSS_MSE, {"box"}, 1, 1}, {LS_LOSS_CE, {"box"}, 1, 1}};
    for (uint32_t k = 0; k < 6; k++) {
        const LsOptimizerOptions sgd = {.kind = LS_SGD, .accumulate = k % 2 == 1 ? 2 : 1};
        char *text;
        size_t size;
        open_two();
        cx.log = open_memstream(&text, &size);
        LsLossOptions o = {.part = part, .npart = 1, .has_ignore = true};
        if (k >= 4)
            part[1] = part[2];
        o.npart = k / 2 == 0 ? 1 : 2;
        ck_assert(ls_loss(&cx, g, &o));
        ck_assert_int_eq(g->objective.over, k / 2 == 0 ? LS_OVER_LABELS : LS_OVER_MIXED);
        ck_assert_int_eq(ls_is(g->objective.weight), k / 2 == 0);
        ck_assert(ls_autodiff(&cx, g));
        const bool bad = k / 2 > 0 && k % 2 == 1;
        ck_assert_int_eq(ls_optimizer(&cx, g, &sgd), !bad);
        fclose(cx.log);
        ck_assert_int_eq(strstr(text, "weighs each batch by its samples") != NULL, k / 2 > 0);
        ck_assert_int_eq(strstr(text, "no weight of a batch is right") != NULL, bad);
        free(text);
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
    else {
        float *t = numbers(ls_count(&s), 3);
        for (int64_t i = 0; i < ls_count(&s); i++)
            t[i] = fabsf(t[i]);
        set_label(t);
    }
    ck_assert(ls_autodiff(&cx, g));
    Eval e = eval_new(g);
    e.valid = valid;
    eval_run(&e, 1, g->nnode);
    for (int64_t i = 0; i < ls_count(&s); i++)
        grad[i] = e.v[g->grad[0].grad.i][i];
    double loss = e.v[g->objective.loss.i][0];
    graph_close();
    return loss;
}

START_TEST(masked_samples_count_neither_in_the_sum_nor_in_the_mean)
{
    static const float y[12] = {0.1f, -0.3f, 0.7f, 0.2f, 0.5f, -0.9f, 0.4f, 0.6f, -0.2f, 9, 9, 9};
    LsLossPart two[] = {{LS_LOSS_CE, {NULL}, 1, 1}, {LS_LOSS_CE, {NULL}, 0.5, 1}};
    LsLossOptions o[] = {{.kind = LS_LOSS_CE},
                         {.kind = LS_LOSS_MSE},
                         {.kind = LS_LOSS_SMOOTH_L1},
                         {.kind = LS_LOSS_HUBER},
                         {.kind = LS_LOSS_COSINE},
                         {.kind = LS_LOSS_KL},
                         {.kind = LS_LOSS_CE, .part = two, .npart = 2}};
    for (size_t k = 0; k < sizeof o / sizeof *o; k++) {
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

/* A target that has no axis of samples makes all inputs one sample, so that no data are shuffled
 * along their first axis. */
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
        ck_assert_int_eq(g->objective.over, want[k / 2].over);
        ck_assert(!g->objective.of_file);
        LsNodeId n = g->value[g->objective.loss.i].def;
        ck_assert_uint_eq(g->objective.weight.i, want[k / 2].over == LS_OVER_LABELS
                                                ? ls_out(g, n, nll ? 1 : 2).i : 0);
        graph_close();
    }
    open_with(SHAPE(2, 3), 2);
    ck_assert(ls_loss(&cx, g, &(LsLossOptions){.kind = LS_LOSS_MSE}));
    ck_assert(g->objective.over == LS_OVER_SAMPLES && !g->objective.of_file);
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
        LsValueId s = ls_append1(&cx, g, k == 0 ? LS_OP_REDUCE_SUM : LS_OP_REDUCE_MEAN,
                                 g->output[0], &(LsAttr){.reduce = {.axes = 3, .keep = true}});
        g->value[s.i].name = k == 0 ? "penalty" : "error";
        add_output(s);
    }
    ck_assert(!ls_loss(&cx, g, &(LsLossOptions){.kind = LS_LOSS_GRAPH}));
    ck_assert_int_eq(cx.last, LS_E_LOSS);
    fflush(cx.log);
    ck_assert_ptr_nonnull(strstr(text, "2 model outputs have one element: 'penalty', 'error'"));
    ck_assert_ptr_nonnull(strstr(text, "--loss-input"));
    ck_assert(ls_loss(&cx, g, &(LsLossOptions){.kind = LS_LOSS_GRAPH, .output = "error"}));
    ck_assert_int_eq(ls_viewed(g, g->objective.loss).i, g->output[2].i);
    fclose(cx.log);
    free(text);
    graph_close();
}
END_TEST

START_TEST(a_graph_loss_is_the_only_output_of_one_element)
{
    graph_open();
    add_output(param("y", SHAPE(2, 3)));
    LsValueId s = ls_append1(&cx, g, LS_OP_REDUCE_SUM, g->output[0],
                             &(LsAttr){.reduce = {.axes = 3, .keep = true}});
    add_output(s);
    ck_assert(ls_loss(&cx, g, &(LsLossOptions){.kind = LS_LOSS_GRAPH}));
    ck_assert_int_eq(ls_shape(g, g->objective.loss)->rank, 0);
    ck_assert(!ls_is(g->objective.label));
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
    check_refused(SHAPE(6), &(LsLossOptions){.kind = LS_LOSS_COSINE}, LS_E_LOSS);
    check_refused(SHAPE(2, 3, 4), &(LsLossOptions){.kind = LS_LOSS_COSINE}, LS_E_LOSS);
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
    tcase_add_test(tc, the_shape_of_the_labels_shows_the_class_axis);
    tcase_add_test(tc, classes_lie_where_a_weight_makes_them);
    tcase_add_test(tc, regression_gradients_match_differences);
    tcase_add_loop_test(tc, losses_and_slopes_are_those_of_pytorch, 0,
                        sizeof torch / sizeof *torch);
    tcase_add_test(tc, triplet_gradients_match_differences);
    tcase_add_test(tc, a_triplet_at_its_margin_has_no_slope);
    tcase_add_test(tc, the_likelihood_is_that_of_pytorch);
    tcase_add_test(tc, the_loss_is_the_weighted_sum_of_its_terms);
    tcase_add_test(tc, losses_of_one_output_share_its_target);
    tcase_add_test(tc, terms_of_different_means_are_not_accumulated);
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
