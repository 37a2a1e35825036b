/* tests/codegen/test_kernels_loss.c -- losses and their gradients against the formulas of
 * ops/loss.def. */
#include "tests/support/eval.h"
#include "tests/support/kernel_rig.h"
#include "tests/support/suite.h"

static const int real_bytes[] = {4, 8};
static const LsValueId none = {0};

typedef struct Case {
    LsShape x;
    int axis;
    LsLayout layout;
    bool weight;
    double smoothing;
    LsReduction reduction;
    bool ignore;
    int64_t batch, valid;
} Case;

static const Case cases[] = {
    {{2, {7, 10}}, 1, LS_ROW, false, 0, LS_LOSS_MEAN, false, 7, 7},
    {{2, {7, 10}}, 1, LS_ROW, true, 0.1, LS_LOSS_MEAN, true, 7, 5},
    {{2, {900, 33}}, 1, LS_ROW, false, 0.1, LS_LOSS_SUM, true, 9, 4},
    {{2, {12, 1500}}, 1, LS_ROW, true, 0, LS_LOSS_EACH, true, 4, 3},
    {{4, {2, 5, 9, 31}}, 1, LS_ROW, true, 0.2, LS_LOSS_MEAN, true, 2, 1},
    {{4, {2, 5, 9, 31}}, 1, LS_LAST, true, 0.2, LS_LOSS_MEAN, true, 2, 2},
    {{4, {2, 5, 9, 31}}, 1, LS_ROW, false, 0, LS_LOSS_EACH, true, 2, 1},
    {{4, {2, 3, 4, 6}}, 1, LS_LAST, false, 0.1, LS_LOSS_EACH, false, 2, 2},
    {{3, {3, 4, 11}}, 2, LS_ROW, true, 0, LS_LOSS_SUM, true, 3, 2},
    {{3, {3, 4, 11}}, 2, LS_LAST, false, 0.1, LS_LOSS_MEAN, false, 5, 2},
    {{4, {1, 2, 3, 5}}, 1, LS_LAST, false, 0, LS_LOSS_MEAN, false, 1, 1},
};
enum { NCASE = sizeof cases / sizeof *cases, IGNORE = 1 };

typedef struct Place {
    const Case *c;
    int64_t classes, behind, points;
    LsShape label;
} Place;

static Place place_of(const Case *c)
{
    Place p = {.c = c, .classes = c->x.dim[c->axis], .behind = 1, .label = {.rank = c->x.rank - 1}};
    for (int a = 0; a < p.label.rank; a++)
        p.label.dim[a] = c->x.dim[a < c->axis ? a : a + 1];
    for (int a = c->axis + 1; a < c->x.rank; a++)
        p.behind *= c->x.dim[a];
    p.points = ls_count(&p.label);
    return p;
}

/* Flat index of the score of class k at position q. */
static int64_t score_at(const Place *p, int64_t q, int64_t k)
{
    return (q / p->behind * p->classes + k) * p->behind + q % p->behind;
}

static bool counts(const Place *p, int64_t q, int64_t label)
{
    int64_t first = q / (p->points / p->label.dim[0]), rows = p->label.dim[0];
    return (rows % p->c->batch != 0 || first / (rows / p->c->batch) < p->c->valid)
        && !(p->c->ignore && label == IGNORE);
}

typedef struct Point { bool counts; double lse, w, all, loss; int64_t label; } Point;

static Point see(const Rig *r, const Place *p, LsValueId x, LsValueId t, LsValueId weight,
                 int64_t q, bool nll)
{
    Point v = {.label = (int64_t)rig_get(r, t, q), .w = 1};
    double max = -INFINITY, mix = 0;
    for (int64_t k = 0; k < p->classes; k++)
        max = fmax(max, rig_get(r, x, score_at(p, q, k)));
    for (int64_t k = 0; k < p->classes; k++)
        v.lse += exp(rig_get(r, x, score_at(p, q, k)) - max);
    v.lse = nll ? 0 : max + log(v.lse);
    for (int64_t k = 0; k < p->classes; k++) {
        double w = p->c->weight ? rig_get(r, weight, k) : 1;
        v.all += w;
        mix += w * (v.lse - rig_get(r, x, score_at(p, q, k)));
    }
    v.counts = counts(p, q, v.label);
    if (!v.counts)
        return v;
    double s = nll ? 0 : p->c->smoothing;
    v.w = p->c->weight ? rig_get(r, weight, v.label) : 1;
    v.loss = (1 - s) * v.w * (v.lse - rig_get(r, x, score_at(p, q, v.label))) +
             s / (double)p->classes * mix;
    return v;
}

/* Runs forward and backward, compares every result. */
static void check_loss(const Case *c, int bytes, bool nll)
{
    Rig r;
    rig_open(&r, bytes);
    Place p = place_of(c);
    r.g->batch = c->batch;
    r.run.valid = c->valid;
    LsShape lse_shape = c->x, scalar = {0};
    lse_shape.dim[c->axis] = 1;
    LsAttr at = {.loss = {.axis = c->axis,
                          .nclass = p.classes,
                          .ignore = IGNORE,
                          .has_ignore = c->ignore,
                          .smoothing = nll ? 0 : c->smoothing,
                          .reduction = c->reduction}};
    LsLayout label_layout = p.label.rank >= 3 && c->reduction == LS_LOSS_EACH ? c->layout : LS_ROW;
    LsShape loss_shape = c->reduction == LS_LOSS_EACH ? p.label : scalar;
    LsValueId x = rig_operand(&r, LS_REAL, c->layout, c->x),
              t = rig_operand(&r, LS_I64, LS_ROW, p.label);
    LsValueId weight = c->weight ? rig_operand(&r, LS_REAL, LS_ROW, SHAPE(p.classes)) : none;
    LsValueId dloss = rig_operand(&r, LS_REAL, label_layout, loss_shape);
    for (int64_t q = 0; q < p.points; q++)
        rig_set(&r, t, q, floor((rig_random(&r) + 1) / 2 * (double)p.classes));
    for (int64_t k = 0; c->weight && k < p.classes; k++)
        rig_set(&r, weight, k, 1.5 + rig_get(&r, weight, k));
    LsNodeId f = rig_node(&r, nll ? LS_OP_NLL : LS_OP_XENT, c->weight ? 3 : 2,
                          (LsValueId[]){x, t, weight}, nll ? 2 : 3, &at);
    LsValueId loss = rig_result(&r, f, 0, LS_REAL, label_layout, loss_shape);
    LsValueId lse = nll ? none : rig_result(&r, f, 1, LS_REAL, c->layout, lse_shape);
    LsValueId wsum = rig_result(&r, f, nll ? 1 : 2, LS_REAL, LS_ROW, scalar);
    LsNodeId b =
        nll ? rig_node(&r, LS_OP_NLL_GRAD, VALUES(dloss, t, weight, wsum), 1, &at)
            : rig_node(&r, LS_OP_XENT_GRAD, VALUES(dloss, x, t, weight, lse, wsum), 1, &at);
    LsValueId dx = rig_result(&r, b, 0, LS_REAL, c->layout, c->x);
    rig_run(&r);
    double sum = 0, total = 0;
    for (int64_t q = 0; q < p.points; q++) {
        Point v = see(&r, &p, x, t, weight, q, nll);
        sum += v.loss;
        total += v.counts ? v.w : 0;
        if (!nll)
            rig_close_to(&r, lse, q, v.lse, 1e-6);
        if (c->reduction == LS_LOSS_EACH)
            rig_close_to(&r, loss, q, v.loss, 2e-6);
    }
    rig_close_to(&r, wsum, 0, total, 1e-6);
    if (c->reduction != LS_LOSS_EACH)
        rig_close_to(&r, loss, 0, c->reduction == LS_LOSS_MEAN ? sum / total : sum, 2e-6);
    for (int64_t q = 0; q < p.points; q++) {
        Point v = see(&r, &p, x, t, weight, q, nll);
        double k = rig_get(&r, dloss, c->reduction == LS_LOSS_EACH ? q : 0);
        k /= c->reduction == LS_LOSS_MEAN ? total : 1;
        for (int64_t j = 0; j < p.classes; j++) {
            double s = at.loss.smoothing, soft = exp(rig_get(&r, x, score_at(&p, q, j)) - v.lse);
            double want = k * ((1 - s) * v.w * (soft - (j == v.label))
                               + s / (double)p.classes
                                     * (soft * v.all - (c->weight ? rig_get(&r, weight, j) : 1)));
            if (nll)
                want = j == v.label ? -k * v.w : 0;
            rig_close_to(&r, dx, score_at(&p, q, j), v.counts ? want : 0, 2e-6);
        }
    }
    rig_close(&r);
}

START_TEST(test_cross_entropy_and_its_gradient)
{
    check_loss(&cases[_i], 4, false);
    if (_i % 3 == 1 || tests_do_all())      /* with weights, smoothing, labels left out; in either
                                             * layout */
        check_loss(&cases[_i], 8, false);
}
END_TEST

START_TEST(test_likelihood_and_its_gradient)
{
    check_loss(&cases[_i], _i % 2 ? 4 : 8, true);
}
END_TEST

START_TEST(test_a_label_that_is_no_class_makes_the_loss_nan)
{
    for (int layout = LS_ROW; layout <= LS_LAST; layout++) {
        Rig r;
        rig_open(&r, real_bytes[_i]);
        LsShape s = SHAPE(1, 4, 3, 3), lse_shape = SHAPE(1, 1, 3, 3), scalar = {0};
        LsAttr at = {.loss = {.axis = 1}};
        LsValueId x = rig_operand(&r, LS_REAL, layout, s),
                  t = rig_operand(&r, LS_I64, LS_ROW, SHAPE(1, 3, 3));
        LsValueId dloss = rig_operand(&r, LS_REAL, LS_ROW, scalar);
        for (int q = 0; q < 9; q++)
            rig_set(&r, t, q, q == 3 ? 1e15 : q == 5 ? -7 : 0);
        LsNodeId f = rig_node(&r, LS_OP_XENT, VALUES(x, t), 3, &at);
        LsValueId loss = rig_result(&r, f, 0, LS_REAL, LS_ROW, scalar);
        LsValueId lse = rig_result(&r, f, 1, LS_REAL, layout, lse_shape);
        LsValueId wsum = rig_result(&r, f, 2, LS_REAL, LS_ROW, scalar);
        LsNodeId b = rig_node(&r, LS_OP_XENT_GRAD, VALUES(dloss, x, t, none, lse, wsum), 1, &at);
        LsValueId dx = rig_result(&r, b, 0, LS_REAL, layout, s);
        rig_run(&r);
        ck_assert(isnan(rig_get(&r, loss, 0)));
        for (int k = 0; k < 4; k++)
            ck_assert(rig_get(&r, dx, k * 9 + 3) == 0 && rig_get(&r, dx, k * 9 + 5) == 0);
        rig_close(&r);
    }
}
END_TEST

/* Means by torch.nn.functional.cross_entropy (2.15) and their gradients: smoothing, labels that are
 * ignored, of a class or not, and weights, together; class 2 has weight 0. Scores [3, 4, 2]. */
static const struct {
    int64_t label[6];
    bool weight;
    int64_t ignore;
    double smoothing, loss, dx[24];
} torch[] = {
    {{0, -100, 2, 3, 1, 1}, true, -100, 0.1, 2.213622545583,
     {-0.06788360067, 0, 0.01694298693, 0, 0.05237274214, 0, -0.001432128388, 0,
      -9.916158288e-06, 0.1344443474, -0.004275197157, 0.001745574209, 0.009029783127,
      0.02132857578, -0.004744669812, -0.1575184974, 0.01875138568, 0.2101098455, -0.2789944563,
      -0.305515071, 0.08731570301, 0.03314132544, 0.1729273676, 0.06226390001}},
    {{0, 1, 2, 3, 1, 1}, true, 1, 0.1, 1.870102128755,
     {-0.2230461165, 0, 0.05566981419, 0, 0.172081867, 0, -0.004705564703, 0, -3.258166295e-05,
      0.441745713, -0.01404707637, 0.005735458114, 0.02966928742, 0.07007960613, -0.01558962938,
      -0.5175607772, 0, 0, 0, 0, 0, 0, 0, 0}},
    {{0, 1, 2, 3, 1, 1}, false, 3, 0.25, 1.892733131599,
     {-0.1359549715, 0.0002071120963, 0.04172424821, -0.1365428381, 0.09826533969,
      0.04052339721, -0.00403461636, 0.09581232883, 0.01404502846, 0, 0.04172424821, 0,
      -0.05173466031, 0, -0.00403461636, 0, 0.0002071120963, 0.1164115894, -0.1365428381,
      -0.1526477659, 0.04052339721, 0.00762542535, 0.09581232883, 0.02861075116}},
    {{0, 1, 2, 3, 1, 1}, true, -100, 0, 2.216259940386,
     {-0.05595321663, 0.01639627367, 0.01749169297, -0.224571404, 0.03573075474, 0.06841728672,
      0.002730768916, 0.1397578437, 0, 0.1039609592, 0, 0.007945350101, -0, 0.01623018173, 0,
      -0.128136491, 0.01639627367, 0.1663375347, -0.224571404, -0.245351956, 0.06841728672,
      0.02596829077, 0.1397578437, 0.05304613053}},
};

/* Of the four precisions and layouts, each case has two. */
START_TEST(test_cross_entropy_is_that_of_pytorch)
{
    static const double weight[] = {0.5, 2, 0, 1.25};
    for (int k = 0; k < 4; k++) {
        if (!tests_do_all() && (_i % 2 + _i / 2 + k) % 2 != 0)
            continue;
        Rig r;
        rig_open(&r, real_bytes[_i % 2]);
        const LsLayout layout = _i / 2 ? LS_LAST : LS_ROW;
        const double tolerance = r.real_bytes == 4 ? 1e-6 : 0.1;        /* of the digits above */
        LsShape s = SHAPE(3, 4, 2), scalar = {0};
        LsAttr at = {.loss = {.axis = 1, .smoothing = torch[k].smoothing, .has_ignore = true,
                              .ignore = torch[k].ignore}};
        r.g->batch = r.run.valid = 3;
        LsValueId x = rig_operand(&r, LS_REAL, layout, s),
                  t = rig_operand(&r, LS_I64, LS_ROW, SHAPE(3, 2)),
                  w = torch[k].weight ? rig_operand(&r, LS_REAL, LS_ROW, SHAPE(4)) : none,
                  dloss = rig_operand(&r, LS_REAL, LS_ROW, scalar);
        for (int i = 0; i < 24; i++)
            rig_set(&r, x, i, (i * 37 + 11) % 23 / 7. - 1.5);
        for (int i = 0; i < 6; i++)
            rig_set(&r, t, i, (double)torch[k].label[i]);
        for (int i = 0; torch[k].weight && i < 4; i++)
            rig_set(&r, w, i, weight[i]);
        rig_set(&r, dloss, 0, 1);
        LsNodeId f =
            rig_node(&r, LS_OP_XENT, torch[k].weight ? 3 : 2, (LsValueId[]){x, t, w}, 3, &at);
        LsValueId loss = rig_result(&r, f, 0, LS_REAL, LS_ROW, scalar),
                  lse = rig_result(&r, f, 1, LS_REAL, layout, SHAPE(3, 1, 2)),
                  wsum = rig_result(&r, f, 2, LS_REAL, LS_ROW, scalar);
        LsNodeId b = rig_node(&r, LS_OP_XENT_GRAD, VALUES(dloss, x, t, w, lse, wsum), 1, &at);
        LsValueId dx = rig_result(&r, b, 0, LS_REAL, layout, s);
        rig_run(&r);
        rig_close_to(&r, loss, 0, torch[k].loss, tolerance);
        for (int i = 0; i < 24; i++)
            rig_close_to(&r, dx, i, torch[k].dx[i], tolerance);
        rig_close(&r);
    }
}
END_TEST

/* A class that is masked out, and one that is sure, and wrong: [1, 2, -inf] and [1000, -1000,
 * 0]. */
START_TEST(test_cross_entropy_of_extreme_scores)
{
    /* more classes of -inf */
    for (int64_t rest = 0; rest < 40; rest += tests_do_all() ? 13 : 26) {
        Rig r;
        rig_open(&r, real_bytes[_i]);
        LsShape s = SHAPE(2, 3 + rest), scalar = {0};
        LsAttr at = {.loss = {.axis = 1}};
        LsValueId x = rig_operand(&r, LS_REAL, LS_ROW, s),
                  t = rig_operand(&r, LS_I64, LS_ROW, SHAPE(2)),
                  dloss = rig_operand(&r, LS_REAL, LS_ROW, scalar);
        const double scores[2][3] = {{1, 2, -INFINITY}, {1000, -1000, 0}};
        for (int64_t i = 0; i < 2 * (3 + rest); i++)
            rig_set(&r, x, i,
                    i % (3 + rest) < 3 ? scores[i / (3 + rest)][i % (3 + rest)] : -INFINITY);
        rig_set(&r, t, 0, 0);
        rig_set(&r, t, 1, 1);
        rig_set(&r, dloss, 0, 2);
        LsNodeId f = rig_node(&r, LS_OP_XENT, VALUES(x, t), 3, &at);
        LsValueId loss = rig_result(&r, f, 0, LS_REAL, LS_ROW, scalar),
                  lse = rig_result(&r, f, 1, LS_REAL, LS_ROW, SHAPE(2, 1)),
                  wsum = rig_result(&r, f, 2, LS_REAL, LS_ROW, scalar);
        LsNodeId b = rig_node(&r, LS_OP_XENT_GRAD, VALUES(dloss, x, t, none, lse, wsum), 1, &at);
        LsValueId dx = rig_result(&r, b, 0, LS_REAL, LS_ROW, s);
        rig_run(&r);
        double p = 1 / (1 + exp(1)), want[2][3] = {{p - 1, 1 - p, 0}, {1, -1, 0}};
        rig_close_to(&r, loss, 0, (1 + log1p(exp(-1)) + 2000) / 2, 1e-6);
        for (int64_t i = 0; i < 2 * (3 + rest); i++)
            rig_close_to(&r, dx, i, i % (3 + rest) < 3 ? want[i / (3 + rest)][i % (3 + rest)] : 0,
                         1e-6);
        rig_close(&r);
    }
}
END_TEST

/* Of class 0, whose weight is 0, or ignored: a sum instead of a mean, and its gradient. */
START_TEST(test_a_mean_over_no_weight_is_a_sum)
{
    for (int smooth = 0; smooth < 2; smooth++) {
        Rig r;
        rig_open(&r, real_bytes[_i]);
        const double x[2][3] = {{0.5, -1, 2}, {1, 0, -0.25}}, w[3] = {0, 2, 0.5};
        LsShape scalar = {0};
        LsAttr at = {
            .loss = {.axis = 1, .smoothing = 0.3 * smooth, .has_ignore = true, .ignore = -1}};
        LsValueId scores = rig_operand(&r, LS_REAL, LS_ROW, SHAPE(2, 3)),
                  t = rig_operand(&r, LS_I64, LS_ROW, SHAPE(2)),
                  weight = rig_operand(&r, LS_REAL, LS_ROW, SHAPE(3)),
                  dloss = rig_operand(&r, LS_REAL, LS_ROW, scalar);
        for (int k = 0; k < 3; k++) {
            rig_set(&r, scores, k, x[0][k]);
            rig_set(&r, scores, 3 + k, x[1][k]);
            rig_set(&r, weight, k, w[k]);
        }
        rig_set(&r, t, 0, 0);
        rig_set(&r, t, 1, -1);
        rig_set(&r, dloss, 0, 2);
        LsNodeId f = rig_node(&r, LS_OP_XENT, VALUES(scores, t, weight), 3, &at);
        LsValueId loss = rig_result(&r, f, 0, LS_REAL, LS_ROW, scalar),
                  lse = rig_result(&r, f, 1, LS_REAL, LS_ROW, SHAPE(2, 1)),
                  wsum = rig_result(&r, f, 2, LS_REAL, LS_ROW, scalar);
        LsNodeId b =
            rig_node(&r, LS_OP_XENT_GRAD, VALUES(dloss, scores, t, weight, lse, wsum), 1, &at);
        LsValueId dx = rig_result(&r, b, 0, LS_REAL, LS_ROW, SHAPE(2, 3));
        rig_run(&r);
        double z = log(exp(x[0][0]) + exp(x[0][1]) + exp(x[0][2])), want = 0;
        for (int k = 0; k < 3; k++)
            want += 0.1 * smooth * w[k] * (z - x[0][k]);
        rig_close_to(&r, wsum, 0, 0, 1e-9);
        rig_close_to(&r, loss, 0, want, 1e-6);
        for (int k = 0; k < 3; k++) {
            rig_close_to(&r, dx, k, 2 * 0.1 * smooth * (exp(x[0][k] - z) * 2.5 - w[k]), 1e-6);
            rig_close_to(&r, dx, 3 + k, 0, 1e-9);
        }
        rig_close(&r);
    }
}
END_TEST

/* Slopes and sums as PyTorch has them: 0 where output and target are equal, and no overflow far
 * out. Of a divergence, targets below 0 make NaN, as PyTorch has it. */
START_TEST(test_regression_slopes_at_the_borders)
{
    enum { N = 11 };
    static const double y[] = {1, -3, 0, 88, -88, 1000, -1000, 1000, -1000, 0.5, -0.25},
                        u[] = {1, -3, 0, 1, 0, 1, 0, 0, 1, 0, 0.25};
    static const struct { LsRegression kind; double edge, sum, slope[N];
    } want[] = {
        {LS_REG_SQUARE,
         0,
         87 * 87 + 88 * 88 + 999. * 999 + 2 * 1000000. + 1001. * 1001 + 0.5,
         {0, 0, 0, 174, -176, 1998, -2000, 2000, -2002, 1, -1}},
        {LS_REG_ABS,
         0,
         87 + 88 + 999 + 1000 + 1000 + 1001 + 1,
         {0, 0, 0, 1, -1, 1, -1, 1, -1, 1, -1}},
        /* log(1 + e) - 1, log(1 + e^-3) - 9, log 2 */
        {LS_REG_LOGIT,
         0,
         0.3132616875182228 - 8.951412648427418 + 0.6931471805599453 + 2000 + 1.6125164040589501,
         {-0.2689414213699951, 3.04742587317756678, 0.5, 0, 0, 0, 0, 1, -1, 0.6224593312018546,
          0.18782349911420193}},
        {LS_REG_SMOOTH, 0.5, 4174, {0, 0, 0, 1, -1, 1, -1, 1, -1, 1, -1}},
        {LS_REG_SMOOTH, 2, 4169.125, {0, 0, 0, 1, -1, 1, -1, 1, -1, 0.25, -0.25}},
        {LS_REG_HUBER, 0.5, 2087, {0, 0, 0, 0.5, -0.5, 0.5, -0.5, 0.5, -0.5, 0.5, -0.5}},
        {LS_REG_HUBER, 2, 8338.25, {0, 0, 0, 2, -2, 2, -2, 2, -2, 0.5, -0.5}},
        {LS_REG_LINEAR,
         0,
         2 + 87 - 88 + 999 - 1000 + 1000 - 1001 + 0.5 - 0.5 - 2,
         {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
        {LS_REG_KL, 0, NAN, {-1, 3, 0, -1, 0, -1, 0, 0, -1, 0, -0.25}},
    };
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        Rig r;
        rig_open(&r, real_bytes[_i]);
        r.g->batch = r.run.valid = N;
        LsShape scalar = {0};
        LsAttr at = {.loss = {.regression = want[k].kind, .edge = want[k].edge}};
        LsValueId out = rig_operand(&r, LS_REAL, LS_ROW, SHAPE(N)),
                  t = rig_operand(&r, LS_REAL, LS_ROW, SHAPE(N)),
                  dloss = rig_operand(&r, LS_REAL, LS_ROW, scalar);
        for (int i = 0; i < N; i++) {
            rig_set(&r, out, i, y[i]);
            rig_set(&r, t, i, u[i]);
        }
        rig_set(&r, dloss, 0, N);
        LsNodeId f = rig_node(&r, LS_OP_REGRESSION_LOSS, VALUES(out, t), 1, &at);
        LsValueId l = rig_result(&r, f, 0, LS_REAL, LS_ROW, scalar);
        LsNodeId b = rig_node(&r, LS_OP_REGRESSION_GRAD, VALUES(dloss, out, t), 1, &at);
        LsValueId dy = rig_result(&r, b, 0, LS_REAL, LS_ROW, SHAPE(N));
        rig_run(&r);
        if (isnan(want[k].sum))
            ck_assert(isnan(rig_get(&r, l, 0)));
        else
            rig_close_to(&r, l, 0, want[k].sum / N, 1e-6);
        for (int i = 0; i < N; i++)
            rig_close_to(&r, dy, i, want[k].slope[i], 1e-6);
        rig_close(&r);
    }
}
END_TEST

START_TEST(test_regression_losses_count_valid_samples)
{
    for (int which = LS_REG_SQUARE; which < LS_NREG; which++) {
        Rig r;
        rig_open(&r, real_bytes[_i]);
        r.g->batch = 6;
        r.run.valid = 4;
        LsShape s = SHAPE(6, 3, 5, 177), scalar = {0};
        LsAttr at = {.loss = {.regression = (LsRegression)which, .edge = 0.7}};
        LsValueId y = rig_operand(&r, LS_REAL, LS_LAST, s),
                  t = rig_operand(&r, LS_REAL, LS_LAST, s);
        LsValueId dloss = rig_operand(&r, LS_REAL, LS_ROW, scalar);
        for (int64_t i = 0; i < ls_count(&s); i++) {
            rig_set(&r, y, i, rig_get(&r, y, i) * (i % 7 ? 3 : 60));
            if (which == LS_REG_KL)
                rig_set(&r, t, i, i % 5 ? fabs(rig_get(&r, t, i)) : 0);
        }
        LsNodeId f = rig_node(&r, LS_OP_REGRESSION_LOSS, VALUES(y, t), 1, &at);
        LsValueId loss = rig_result(&r, f, 0, LS_REAL, LS_ROW, scalar);
        LsNodeId b = rig_node(&r, LS_OP_REGRESSION_GRAD, VALUES(dloss, y, t), 1, &at);
        LsValueId dy = rig_result(&r, b, 0, LS_REAL, LS_LAST, s);
        rig_run(&r);
        double sum = 0, n = (double)ls_count(&s) / 6 * 4, by = which == LS_REG_KL ? 4 : n,
               k = rig_get(&r, dloss, 0) / by;
        for (int64_t i = 0; i < ls_count(&s); i++) {
            double term, slope;
            regression_term(&at.loss, rig_get(&r, y, i), rig_get(&r, t, i), &term, &slope);
            bool valid = i < (int64_t)n;
            sum += valid ? term : 0;
            rig_close_to(&r, dy, i, valid ? k * slope : 0, 1e-8);
        }
        rig_close_to(&r, loss, 0, sum / by, 1e-6);
        rig_close(&r);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("kernels_loss");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_cross_entropy_and_its_gradient, 0, NCASE);
    tcase_add_loop_test(t, test_likelihood_and_its_gradient, 0, NCASE);
    tcase_add_loop_test(t, test_a_label_that_is_no_class_makes_the_loss_nan, 0, 2);
    tcase_add_loop_test(t, test_cross_entropy_is_that_of_pytorch, 0, 4);
    tcase_add_loop_test(t, test_cross_entropy_of_extreme_scores, 0, 2);
    tcase_add_loop_test(t, test_a_mean_over_no_weight_is_a_sum, 0, 2);
    tcase_add_loop_test(t, test_regression_slopes_at_the_borders, 0, 2);
    tcase_add_loop_test(t, test_regression_losses_count_valid_samples, 0, 2);
    return run_tests("kernels_loss", t);
}
