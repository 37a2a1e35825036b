/* tests/compiler/test_attach_updates.c -- update nodes: their formulas over some steps, their place
 * in the graph, accumulation and clipping. */
#include "compiler/updates/decay_groups.h"
#include "tests/support/gradient.h"
#include "tests/support/suite.h"

static LsLossScale scale;       /* of open_model */

/* loss = sum over i of c_i p_i^2 / 2, so the gradient is c p; two parameters of three elements. */
static void open_model(void)
{
    graph_open();
    LsValueId sum = {0};
    for (int k = 0; k < 2; k++) {
        LsValueId p = param(k == 0 ? "p" : "q", SHAPE(3)),
                  sq = ls_append2(&cx, g, LS_OP_MUL, p, p, NULL);
        LsValueId half = ls_append2(&cx, g, LS_OP_MUL, sq, ls_const_real(&cx, g, 0.5 + k), NULL);
        sum = k == 0 ? half : ls_append2(&cx, g, LS_OP_ADD, sum, half, NULL);
    }
    sum = ls_append1(&cx, g, LS_OP_REDUCE_SUM, sum, &(LsAttr){.reduce = {.axes = 1, .keep = true}});
    g->objective.loss = ls_reshape(&cx, g, sum, &(LsShape){0});
    ls_loss_scale(&cx, g, &scale);
    ck_assert(ls_autodiff(&cx, g));
}

static LsValueId find(const char *name)
{
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (strcmp(g->value[i].name, name) == 0)
            return (LsValueId){i};
    return (LsValueId){0};
}

static void steps(Eval *e, int n)
{
    for (int t = 1; t <= n; t++) {
        e->update = t;
        eval_run(e, 1, g->nnode);
    }
}

START_TEST(sgd_with_momentum_follows_the_formula)
{
    open_model();
    LsOptimizerOptions o = {.kind = LS_SGD, .hyper.momentum = 0.9, .hyper.decay = 0.01};
    ck_assert(ls_optimizer(&cx, g, &o));
    Eval e = eval_new(g);
    double p = e.v[find("q").i][1], v = 0;
    steps(&e, 3);
    for (int t = 0; t < 3; t++) {
        v = 0.9 * v + (3 * p + 0.01 * p);       /* dq of 1.5 q^2 */
        p -= 0.1 * v;
    }
    ck_assert_double_eq_tol(e.v[find("q").i][1], p, 1e-12);
    ck_assert_double_eq_tol(e.v[find("q.momentum").i][1], v, 1e-12);
    graph_close();
}
END_TEST

START_TEST(nesterov_looks_ahead)
{
    open_model();
    LsOptimizerOptions o = {.kind = LS_SGD, .hyper.momentum = 0.9, .hyper.nesterov = true};
    ck_assert(ls_optimizer(&cx, g, &o));
    Eval e = eval_new(g);
    double p = e.v[find("p").i][0], v = 0;
    steps(&e, 2);
    for (int t = 0; t < 2; t++) {
        double d = p;
        v = 0.9 * v + d;
        p -= 0.1 * (d + 0.9 * v);
    }
    ck_assert_double_eq_tol(e.v[find("p").i][0], p, 1e-12);
    graph_close();
}
END_TEST

START_TEST(plain_sgd_keeps_no_moment)
{
    open_model();
    ck_assert(ls_optimizer(&cx, g, &(LsOptimizerOptions){.kind = LS_SGD}));
    ck_assert(!ls_is(find("p.momentum")));
    graph_close();
}
END_TEST

START_TEST(adam_and_adamw_follow_the_formulas)
{
    for (int w = 0; w < 2; w++) {
        open_model();
        LsOptimizerOptions o = {.kind = w ? LS_ADAMW : LS_ADAM,
                                .hyper.beta1 = 0.9,
                                .hyper.beta2 = 0.999,
                                .hyper.eps = 1e-5,
                                .hyper.decay = 0.1};
        ck_assert(ls_optimizer(&cx, g, &o));
        Eval e = eval_new(g);
        double p = e.v[find("q").i][2], m = 0, v = 0;
        steps(&e, 3);
        for (int t = 1; t <= 3; t++) {
            double d = 3 * p + (w ? 0 : 0.1 * p);
            p -= w ? 0.1 * 0.1 * p : 0;
            m = 0.9 * m + 0.1 * d;
            v = 0.999 * v + 0.001 * d * d;
            p -= 0.1 * (m / (1 - pow(0.9, t))) / (sqrt(v / (1 - pow(0.999, t))) + 1e-5);
        }
        ck_assert_double_eq_tol(e.v[find("q").i][2], p, 1e-12);
        graph_close();
    }
}
END_TEST

START_TEST(clipping_by_norm_scales_all_gradients_together)
{
    open_model();
    ck_assert(ls_optimizer(&cx, g, &(LsOptimizerOptions){.kind = LS_SGD, .clip_norm = 0.01}));
    Eval e = eval_new(g);
    double norm = 0, old[2][3];
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 3; i++) {
            old[k][i] = e.v[find(k ? "q" : "p").i][i];
            norm += pow((1 + 2 * k) * old[k][i], 2);
        }
    steps(&e, 1);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 3; i++)
            ck_assert_double_eq_tol(
                e.v[find(k ? "q" : "p").i][i],
                old[k][i] * (1 - 0.1 * (1 + 2 * k) * 0.01 / (sqrt(norm) + 1e-6)), 1e-9);
    graph_close();
}
END_TEST

START_TEST(clipping_by_value_bounds_each_element)
{
    open_model();
    ck_assert(ls_optimizer(&cx, g, &(LsOptimizerOptions){.kind = LS_SGD, .clip_value = 0.001}));
    Eval e = eval_new(g);
    double old = e.v[find("p").i][0];
    steps(&e, 1);
    ck_assert_double_eq_tol(fabs(e.v[find("p").i][0] - old), 0.1 * 0.001, 1e-12);
    graph_close();
}
END_TEST

/* Two micro-batches with the same gradient equal one step with it, with or without clipping. */
START_TEST(accumulated_micro_steps_are_one_update)
{
    for (int clip = 0; clip < 2; clip++) {
        open_model();
        LsOptimizerOptions o = {.kind = LS_SGD, .hyper.momentum = 0.9, .accumulate = 2,
                                .clip_norm = clip ? 0.01 : 0};
        ck_assert(ls_optimizer(&cx, g, &o));
        Eval e = eval_new(g);
        double old = e.v[find("p").i][0];
        e.v[find("p.grad").i][0] = 1000;        /* left from an earlier update */
        e.first = true, e.apply = false;
        steps(&e, 1);
        ck_assert_double_eq(e.v[find("p").i][0], old);
        e.first = false, e.apply = true;
        steps(&e, 1);
        double moved = old - e.v[find("p").i][0];
        open_model();
        o.accumulate = 1;
        ck_assert(ls_optimizer(&cx, g, &o));
        e = eval_new(g);
        steps(&e, 1);
        ck_assert_double_eq_tol(moved, old - e.v[find("p").i][0], 1e-12);
    }
}
END_TEST

/* ---- means over several batches ---- */

enum { SAMPLES = 8, FEATURES = 3, CLASSES = 4, IGNORED = 2 };

typedef struct Batches {
    LsAttr loss;
    bool weights;
    LsOptimizerOptions o;
    int64_t label[SAMPLES];
    int64_t valid;              /* of the samples */
} Batches;

/* Cross-entropy, or a squared error, of x w; x and labels are constants for the evaluator to
 * change. */
static Eval open_batches(const Batches *b, int64_t batch, LsValueId *x, LsValueId *t)
{
    static const float weight[CLASSES] = {0.5f, 2, 1, 0};
    const LsAttr plain = {.gemm = {.alpha = 1}};
    graph_open();
    g->batch = batch;
    LsValueId w = param("w", SHAPE(FEATURES, CLASSES));
    *x = ls_value_add(&cx, g, LS_V_INPUT, "x", LS_REAL, &SHAPE(batch, FEATURES), NULL);
    *t = ls_value_add(&cx, g, LS_V_INPUT, "t", LS_I64, &SHAPE(batch), NULL);
    LsValueId y = ls_append2(&cx, g, LS_OP_MATMUL, *x, w, &plain), in[3] = {y, *t};
    if (b->weights)
        in[2] = ls_const_add(&cx, g, LS_REAL, &SHAPE(CLASSES), weight);
    g->output = ls_arena_alloc(cx.arena, 1, sizeof *g->output);
    g->output[g->noutput++] = ls_append(&cx, g, LS_OP_XENT, b->weights ? 3 : 2, in, &b->loss);
    ck_assert(ls_loss(&cx, g, &(LsLossOptions){.kind = LS_LOSS_GRAPH}));
    LsOptimizerOptions o = b->o;
    o.accumulate = (int)(SAMPLES / batch);
    ck_assert(ls_autodiff(&cx, g) && ls_optimizer(&cx, g, &o) && ls_verify(&cx, g));
    return eval_new(g);
}

/* w after two updates, each of all samples in batches of this size. */
static void run_batches(const Batches *b, int64_t batch, double w[FEATURES * CLASSES])
{
    LsValueId x, t;
    Eval e = open_batches(b, batch, &x, &t);
    const int64_t n = SAMPLES / batch;
    for (int64_t k = 0; k < 2 * n; k++) {
        for (int64_t i = 0; i < batch; i++) {
            int64_t sample = k % n * batch + i;
            e.v[t.i][i] = (double)b->label[sample];
            for (int f = 0; f < FEATURES; f++)
                e.v[x.i][i * FEATURES + f] = (double)((sample * 5 + f * 3) % 7) / 3 - 1;
        }
        int64_t left = b->valid - k % n * batch;
        e.valid = left < batch ? left : batch;
        e.share = (double)(e.valid * n) / (double)b->valid;
        e.first = k % n == 0;
        e.apply = k % n == n - 1;
        e.update = 1 + k / n;
        eval_run(&e, 1, g->nnode);
    }
    memcpy(w, e.v[find("w").i], sizeof(double) * FEATURES * CLASSES);
    graph_close();
}

#define MEAN_OF(...) {.loss = {.axis = 1, __VA_ARGS__}}
static const Batches batches[] = {
    {.loss = MEAN_OF(.has_ignore = true, .ignore = IGNORED),
     .o = {.kind = LS_SGD, .hyper.momentum = 0.9},
     .label = {1, 2, 2, 2, 0, 1, 3, 0},
     .valid = 8},
    {.loss = MEAN_OF(.has_ignore = true, .ignore = -100, .smoothing = 0.1),
     .weights = true,
     .o = {.kind = LS_ADAMW,
           .hyper.beta1 = 0.9,
           .hyper.beta2 = 0.99,
           .hyper.eps = 1e-3,
           .hyper.decay = 0.1,
           .clip_norm = 0.1},
     .label = {-100, -100, -100, -100, 0, -100, 3, 1},
     .valid = 8},
    {.loss = MEAN_OF(.smoothing = 0.2),
     .weights = true,
     .o = {.kind = LS_SGD, .clip_value = 0.01},
     .label = {3, 3, 3, 3, 0, 1, 3, 1},
     .valid = 7}, /* the first four have weight 0 */
    {.loss = MEAN_OF(.has_ignore = true, .ignore = IGNORED),
     .o = {.kind = LS_SGD, .clip_norm = 100},
     .label = {1, 2, 0, 2, 0, 2, 3, 0},
     .valid = 5},
    {.loss = MEAN_OF(.smoothing = 0),
     .o = {.kind = LS_ADAM, .hyper.beta1 = 0.9, .hyper.beta2 = 0.99, .hyper.eps = 1e-3},
     .label = {1, 2, 0, 2, 0, 2, 3, 0},
     .valid = 7}, /* weighed by samples */
    {.loss = MEAN_OF(.smoothing = 0),
     .o = {.kind = LS_SGD, .clip_norm = 0.1},
     .label = {1, 2, 0, 2, 0, 2, 3, 0},
     .valid = 7},
    {.loss = MEAN_OF(.reduction = LS_LOSS_SUM, .has_ignore = true, .ignore = IGNORED),
     .o = {.kind = LS_SGD, .hyper.momentum = 0.9},
     .label = {1, 2, 2, 2, 0, 1, 3, 0},
     .valid = 7},
    {.loss = MEAN_OF(.reduction = LS_LOSS_SUM),
     .weights = true,
     .o = {.kind = LS_SGD, .clip_norm = 1},
     .label = {1, 2, 2, 2, 0, 1, 3, 0},
     .valid = 8},
};

START_TEST(an_update_of_several_batches_is_that_of_one)
{
    double want[FEATURES * CLASSES], got[FEATURES * CLASSES];
    run_batches(&batches[_i], SAMPLES, want);
    for (int64_t batch = SAMPLES / 2; batch >= 1; batch /= 2) {
        if (batches[_i].valid <= SAMPLES - batch)
            break;              /* a batch without counted labels */
        run_batches(&batches[_i], batch, got);
        for (int k = 0; k < FEATURES * CLASSES; k++)
            ck_assert_double_eq_tol(got[k], want[k], 1e-12);
    }
}
END_TEST

START_TEST(an_update_without_a_label_has_no_gradient)
{
    Batches b = batches[0];
    double w[FEATURES * CLASSES];
    for (int k = 0; k < SAMPLES; k++)
        b.label[k] = IGNORED;
    b.o.clip_norm = 1;
    for (int64_t batch = SAMPLES; batch >= 1; batch /= 2) {
        LsValueId x, t;
        Eval e = open_batches(&b, batch, &x, &t);
        double first = e.v[find("w").i][0];
        graph_close();
        run_batches(&b, batch, w);
        ck_assert_double_eq(w[0], first);
    }
}
END_TEST

/* The file's sum may be over anything. */
START_TEST(an_unknown_loss_of_the_file_is_warned_of)
{
    for (int mean = 0; mean < 2; mean++) {
        char *text;
        size_t size;
        graph_open();
        cx.log = open_memstream(&text, &size);
        LsValueId w = param("w", SHAPE(3));
        g->output = ls_arena_alloc(cx.arena, 1, sizeof *g->output);
        g->output[g->noutput++] = ls_append1(&cx, g, mean ? LS_OP_REDUCE_MEAN : LS_OP_REDUCE_SUM, w,
                                             &(LsAttr){.reduce = {.axes = 1, .keep = true}});
        ck_assert(ls_loss(&cx, g, &(LsLossOptions){.kind = LS_LOSS_GRAPH}));
        ck_assert(g->objective.of_file);
        ck_assert(ls_autodiff(&cx, g));
        ck_assert(ls_optimizer(&cx, g, &(LsOptimizerOptions){.kind = LS_SGD, .accumulate = 2}));
        fclose(cx.log);
        ck_assert_int_eq(
            strstr(text, "--accumulate=2 an update takes the mean of its batches") != NULL, !mean);
        free(text);
        graph_close();
    }
}
END_TEST

START_TEST(decay_can_leave_vectors_alone)
{
    open_model();
    LsOptimizerOptions o = {.kind = LS_SGD, .hyper.decay = 0.5, .spares_vectors = true};
    ck_assert(ls_optimizer(&cx, g, &o));
    for (uint32_t i = 1; i < g->nnode; i++)
        if (g->node[i].op == LS_OP_SGD)
            ck_assert_double_eq(g->node[i].attr.update.hyper.decay, 0);
    graph_close();
}
END_TEST

/* A vector may have axes of 1, as a bias that is added does. */
START_TEST(decay_knows_vectors_by_what_reads_them)
{
    const LsOptimizerOptions some = {.kind = LS_SGD, .hyper.decay = 0.5, .spares_vectors = true};
    const LsOptimizerOptions all = {.kind = LS_SGD, .hyper.decay = 0.5};
    graph_open();
    const LsValueId x = param("x", SHAPE(4, 3)), row = param("row", SHAPE(1, 3)),
                    table = param("table", SHAPE(4, 3)), w = param("w", SHAPE(3, 1));
    LsValueId y = ls_append2(&cx, g, LS_OP_ADD, x, row, NULL);
    y = ls_append2(&cx, g, LS_OP_MUL, y, table, NULL);
    ls_append2(&cx, g, LS_OP_MATMUL, y, w, &(LsAttr){.gemm.alpha = 1});
    ck_assert(!ls_decays(g, row, &some));
    ck_assert(ls_decays(g, table, &some));
    ck_assert(ls_decays(g, w, &some));          /* a matrix, however narrow */
    ck_assert(ls_decays(g, row, &all));
    graph_close();
}
END_TEST

/* A chain of two layers: the second layer's update runs before the first layer's gradient is
 * made, and behind the node that reads its weight. */
START_TEST(an_update_follows_the_last_reader_of_its_parameter)
{
    graph_open();
    LsAttr plain = {.gemm = {.alpha = 1}};
    LsValueId x = constant(SHAPE(4, 3));
    LsValueId h = ls_append2(&cx, g, LS_OP_MATMUL, x, param("w1", SHAPE(3, 3)), &plain);
    LsValueId y = ls_append2(&cx, g, LS_OP_MATMUL, h, param("w2", SHAPE(3, 2)), &plain);
    g->objective.loss = weighed(y);
    ck_assert(ls_autodiff(&cx, g));
    ck_assert(ls_optimizer(&cx, g, &(LsOptimizerOptions){.kind = LS_SGD}));
    LsValueId w2 = find("w2");
    uint32_t update = 0, reader = 0, first_grad = g->value[g->grad[0].grad.i].def.i;
    for (uint32_t i = 1; i < g->nnode; i++)
        if (ls_in(g, (LsNodeId){i}, 0).i == w2.i || ls_in(g, (LsNodeId){i}, 1).i == w2.i) {
            if (g->node[i].op == LS_OP_SGD)
                update = i;
            else
                reader = i;
        }
    ck_assert_int_gt(update, reader);
    ck_assert_int_gt(update, g->value[g->grad[1].grad.i].def.i);
    ck_assert_int_lt(update, first_grad);
    ck_assert_int_eq(g->node[update].phase, LS_UPDATE);
    ck_assert_str_eq(g->node[update].name, "w2");
    graph_close();
}
END_TEST

/* y = p q: the gradient of p is made first, and that of q reads p. */
START_TEST(the_first_parameter_is_updated_behind_its_last_reader)
{
    graph_open();
    LsValueId p = param("p", SHAPE(3)), q = param("q", SHAPE(3));
    LsValueId y = ls_append2(&cx, g, LS_OP_MUL, p, q, NULL);
    y = ls_append1(&cx, g, LS_OP_REDUCE_SUM, y, &(LsAttr){.reduce = {.axes = 1, .keep = true}});
    g->objective.loss = ls_reshape(&cx, g, y, &(LsShape){0});
    ck_assert(ls_autodiff(&cx, g));
    ck_assert(ls_optimizer(&cx, g, &(LsOptimizerOptions){.kind = LS_SGD}));
    Eval e = eval_new(g);
    double old_p = e.v[find("p").i][0], old_q = e.v[find("q").i][0];
    steps(&e, 1);
    ck_assert_double_eq_tol(e.v[find("p").i][0], old_p - 0.1 * old_q, 1e-12);
    ck_assert_double_eq_tol(e.v[find("q").i][0], old_q - 0.1 * old_p, 1e-12);
    graph_close();
}
END_TEST

static const LsOptimizerOptions scaled[] = {
    {.kind = LS_SGD},
    {.kind = LS_SGD, .hyper.momentum = 0.9, .clip_norm = 0.1},
    {.kind = LS_ADAM,
     .hyper.beta1 = 0.9,
     .hyper.beta2 = 0.999,
     .hyper.eps = 1e-5,
     .clip_value = 0.1},
    {.kind = LS_ADAMW,
     .hyper.beta1 = 0.9,
     .hyper.beta2 = 0.999,
     .hyper.eps = 1e-5,
     .hyper.decay = 0.1,
     .accumulate = 2,
     .clip_norm = 0.1},
};

START_TEST(updates_divide_by_the_loss_scale_and_skip_bad_steps)
{
    LsOptimizerOptions o = scaled[_i];
    double want[2][3], before;
    for (int on = 0; on < 2; on++) {
        scale = (LsLossScale){
            .on = on,
            .start = 1024,
            .rule = {.period = 2, .grow = 2, .shrink = 2, .divides = true, .least = 1}};
        o.scale = scale;
        open_model();
        ck_assert(ls_optimizer(&cx, g, &o));
        ck_assert(ls_verify(&cx, g));
        ck_assert_uint_eq(count_op(LS_OP_LOSS_SCALE), (uint32_t)on);
        ck_assert_uint_eq(count_op(LS_OP_REDUCE_FINITE), 2 * (uint32_t)on);
        Eval e = eval_new(g);
        steps(&e, 2);
        for (int k = 0; k < 6; k++) {
            double v = e.v[find(k < 3 ? "p" : "q").i][k % 3];
            want[k / 3][k % 3] = on == 0 ? v : want[k / 3][k % 3];
            ck_assert_double_eq_tol(v, want[k / 3][k % 3], 1e-12);
        }
        if (on) {
            ck_assert_int_eq(g->node[g->nnode - 1].op, LS_OP_LOSS_SCALE);
            ck_assert_double_eq(e.v[g->scaling.scale.i][0], 2048);
            e.v[find("p").i][1] = INFINITY;     /* and so is its gradient */
            before = e.v[find("q").i][0];
            steps(&e, 1);
            ck_assert_double_eq(e.v[find("q").i][0], before);
            ck_assert_double_eq(e.v[g->scaling.scale.i][0], 1024);
            ck_assert_double_eq(e.v[g->scaling.skips.i][1], 1);
        }
        graph_close();
    }
    scale.on = false;
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("optimizer");
    tcase_add_test(tc, sgd_with_momentum_follows_the_formula);
    tcase_add_test(tc, nesterov_looks_ahead);
    tcase_add_test(tc, plain_sgd_keeps_no_moment);
    tcase_add_test(tc, adam_and_adamw_follow_the_formulas);
    tcase_add_test(tc, clipping_by_norm_scales_all_gradients_together);
    tcase_add_test(tc, clipping_by_value_bounds_each_element);
    tcase_add_test(tc, accumulated_micro_steps_are_one_update);
    tcase_add_loop_test(tc, an_update_of_several_batches_is_that_of_one, 0,
                        sizeof batches / sizeof *batches);
    tcase_add_test(tc, an_update_without_a_label_has_no_gradient);
    tcase_add_test(tc, an_unknown_loss_of_the_file_is_warned_of);
    tcase_add_test(tc, decay_can_leave_vectors_alone);
    tcase_add_test(tc, decay_knows_vectors_by_what_reads_them);
    tcase_add_loop_test(tc, updates_divide_by_the_loss_scale_and_skip_bad_steps, 0,
                        sizeof scaled / sizeof *scaled);
    tcase_add_test(tc, an_update_follows_the_last_reader_of_its_parameter);
    tcase_add_test(tc, the_first_parameter_is_updated_behind_its_last_reader);
    return run_tests("optimizer", tc);
}
