/* tests/compiler/test_drop_bias.c -- a network without the biases in front of its batch norms has
 * the loss, gradients and running statistics of the network with them, in doubles; biases that are
 * not inert stay. */
#include "compiler/ops/normalize.h"
#include "compiler/passes/drop_bias.h"
#include "tests/support/gradient.h"
#include "tests/support/suite.h"

typedef enum { CONV, CONV_TRANSPOSE, PRODUCT, KINDS, PRODUCTS = KINDS } Kind;
enum { CHANNELS = 4 };

static LsValueId bias, made, mean_run;  /* of the network that was built last */
static LsStats stats;

static LsValueId layer(Kind kind, LsValueId b)
{
    LsAttr at = {.window = {.n = 2, .kernel = {3, 3}, .stride = {1, 1}, .dilation = {1, 1},
                            .pad_lo = {1, 1}, .pad_hi = {1, 1}, .group = 1, .x_dim = {4, 4}}};
    if (kind == PRODUCT) {
        LsValueId in[] = {param("x", SHAPE(6, 5)), param("w", SHAPE(5, CHANNELS)), b};
        return ls_append(&cx, g, LS_OP_MATMUL, 3, in, &(LsAttr){.gemm = {.alpha = 1}});
    }
    if (kind == PRODUCTS) {
        LsValueId in[] = {param("x", SHAPE(3, CHANNELS, 5)), param("w", SHAPE(5, CHANNELS)), b};
        return ls_append(&cx, g, LS_OP_MATMUL, 3, in, &(LsAttr){.gemm = {.alpha = 1}});
    }
    LsValueId x = param("x", SHAPE(2, 3, 4, 4));
    LsValueId w = param("w", kind == CONV ? SHAPE(CHANNELS, 3, 3, 3) : SHAPE(3, CHANNELS, 3, 3));
    LsValueId in[] = {x, w, b};
    return ls_append(&cx, g, kind == CONV ? LS_OP_CONV : LS_OP_CONV_DX, 3, in, &at);
}

static LsValueId running(const char *name)
{
    const LsShape s = SHAPE(CHANNELS);
    return ls_value_add(&cx, g, LS_V_STATE, name, LS_REAL, &s, numbers(CHANNELS, 7));
}

/* Layer, batch norm, tanh. axes: those of the statistics. */
static LsValueId network_over(Kind kind, uint32_t axes)
{
    const LsAttr moves = {.update = {.hyper.momentum = 0.9, .sum.scale = 0.1}};
    graph_reopen();
    bias = param("bias", SHAPE(CHANNELS));
    made = layer(kind, bias);
    const int rank = ls_shape(g, made)->rank;
    stats = ls_stats(&cx, g, made, axes, 1e-3);
    LsValueId y = ls_normalized(&cx, g, made, &stats,
                                ls_per_channel(&cx, g, param("scale", SHAPE(CHANNELS)), rank),
                                ls_per_channel(&cx, g, param("shift", SHAPE(CHANNELS)), rank));
    mean_run = running("mean");
    if ((axes & 1) != 0) {
        ls_append2(&cx, g, LS_OP_RUNNING_STAT, mean_run, stats.mean, &moves);
        ls_append2(&cx, g, LS_OP_RUNNING_STAT, running("var"), stats.var, &moves);
    }
    return ls_append1(&cx, g, LS_OP_TANH, y, NULL);
}

static LsValueId network(Kind kind) { return network_over(kind, kind == PRODUCT ? 1 : 13); }

static void lose(LsValueId y) { g->objective.loss = weighed(y); }

static bool drop(const LsOptimizerOptions *o)
{
    static const LsOptimizerOptions plain;
    return ls_drop_bias(&cx, g, o != NULL ? o : &plain) && ls_verify(&cx, g);
}

static LsValueId named(const char *name)
{
    const LsValueId v = ls_source_named(g, name);
    ck_assert_msg(ls_is(v), "no value '%s'", name);
    return v;
}

/* Values of one step, by name; gradients after "grad". */
typedef struct Step { double loss, mean[CHANNELS], var[CHANNELS], w[CHANNELS], scale[CHANNELS]; }
    Step;

static void copy(double *to, const Eval *e, LsValueId v)
{
    for (int k = 0; k < CHANNELS; k++)
        to[k] = e->v[v.i][k];
}

static Step step(void)
{
    Step s;
    ck_assert(ls_autodiff(&cx, g));
    Eval e = eval_new(g);
    eval_run(&e, 1, g->nnode);
    s.loss = e.v[g->objective.loss.i][0];
    copy(s.mean, &e, named("mean"));
    copy(s.var, &e, named("var"));
    for (uint32_t k = 0; k < g->ngrad; k++) {
        const char *of = g->value[g->grad[k].param.i].name;
        if (strcmp(of, "w") == 0)
            copy(s.w, &e, g->grad[k].grad);
        if (strcmp(of, "scale") == 0)
            copy(s.scale, &e, g->grad[k].grad);
        if (strcmp(of, "bias") == 0)
            for (int i = 0; i < CHANNELS; i++)
                ck_assert_double_lt(fabs(e.v[g->grad[k].grad.i][i]), 1e-12);
    }
    return s;
}

static void near(const char *what, const double *a, const double *b, int n)
{
    for (int k = 0; k < n; k++)
        ck_assert_msg(fabs(a[k] - b[k]) <= 1e-11 * (1 + fabs(b[k])), "%s[%d] is %.17g, was %.17g",
                      what, k, a[k], b[k]);
}

START_TEST(same_loss_statistics_and_gradients)
{
    graph_open();
    for (Kind kind = CONV; kind < KINDS; kind++) {
        lose(network(kind));
        const Step with = step();
        lose(network(kind));
        ck_assert(drop(NULL));
        ck_assert_uint_eq(g->inert.biases, 1);
        ck_assert_int_eq(g->inert.elements, CHANNELS);
        ck_assert_int_eq(g->value[named("bias").i].kind, LS_V_STATE);
        const Step without = step();
        near("loss", &without.loss, &with.loss, 1);
        near("running mean", without.mean, with.mean, CHANNELS);
        near("running variance", without.var, with.var, CHANNELS);
        near("gradient of w", without.w, with.w, CHANNELS);
        near("gradient of scale", without.scale, with.scale, CHANNELS);
    }
    graph_close();
}
END_TEST

START_TEST(gradients_against_differences)
{
    graph_open();
    for (Kind kind = CONV; kind < KINDS; kind++) {
        lose(network(kind));
        ck_assert(drop(NULL));
        check_gradients(g->objective.loss);
        ck_assert_uint_eq(g->ngrad, 4);         /* x, w, scale, shift */
    }
    graph_close();
}
END_TEST

/* The pass refuses, as no bias can go, and says why. */
static void stays(const LsOptimizerOptions *o, const char *why)
{
    char *log;
    size_t size;
    cx.log = open_memstream(&log, &size);
    const bool ok = drop(o);
    fclose(cx.log);
    cx.log = NULL;
    ck_assert(!ok);
    ck_assert_msg(strstr(log, why) != NULL, "'%s' is not in: %s", why, log);
    ck_assert_int_eq(g->value[bias.i].kind, LS_V_PARAM);
    free(log);
}

START_TEST(what_others_read_stays)
{
    static const char result[] = "others read the result, or its mean";
    graph_open();
    LsValueId y = network(CONV);
    lose(ls_append2(&cx, g, LS_OP_ADD, y, made, NULL));
    stays(NULL, result);
    y = network(CONV);
    lose(ls_append2(&cx, g, LS_OP_ADD, y, stats.mean, NULL));
    stays(NULL, result);
    lose(network(CONV));
    g->output = ls_arena_alloc(cx.arena, 1, sizeof *g->output);
    g->output[g->noutput++] = made;
    stays(NULL, result);
    y = network(CONV);
    lose(ls_append2(&cx, g, LS_OP_ADD, y, ls_per_channel(&cx, g, bias, 4), NULL));
    stays(NULL, "others read the bias");
    graph_close();
}
END_TEST

START_TEST(a_bias_that_decays_stays)
{
    LsOptimizerOptions o = {.hyper.decay = 0.01};
    graph_open();
    lose(network(CONV));
    stays(&o, "it has weight decay");
    o.spares_vectors = true;
    lose(network(CONV));
    ck_assert(drop(&o));
    graph_close();
}
END_TEST

START_TEST(statistics_of_other_axes)
{
    graph_open();
    lose(network_over(CONV, 12));       /* of each sample: an instance norm */
    stays(NULL, "no trained bias stands in front of a batch norm");
    lose(network_over(PRODUCTS, 5));    /* of the rows, not of the columns that have the bias */
    stays(NULL, "no trained bias stands in front of a batch norm");
    lose(network(CONV));
    g->value[bias.i].kind = LS_V_STATE; /* frozen */
    cx.log = fopen("/dev/null", "w");
    ck_assert(!drop(NULL));
    fclose(cx.log);
    cx.log = NULL;
    graph_close();
}
END_TEST

int main(void)
{
    const TTest *const test[] = {
        same_loss_statistics_and_gradients,
        gradients_against_differences,
        what_others_read_stays,
        a_bias_that_decays_stays,
        statistics_of_other_axes,
    };
    TCase *tc = tcase_create("drop_bias");
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("drop_bias", tc);
}
