/* tests/compiler/test_ops_random.c -- operators that draw random numbers, in a program. */
#include "tests/support/onnx_node.h"
#include "tests/support/run_graph.h"
#include "tests/support/suite.h"

#include "compiler/passes/channels_last.h"

enum { ROWS = 64, COLUMNS = 128, COUNT = ROWS * COLUMNS };

static LsValueId filled(const char *name, double of)
{
    float *v = ls_arena_alloc(cx.arena, COUNT, sizeof *v);
    for (int i = 0; i < COUNT; i++)
        v[i] = (float)of;
    return ls_value_add(&cx, g, LS_V_PARAM, name, LS_REAL, &SHAPE(ROWS, COLUMNS), v);
}

static LsValueId normal_of(float mean, float scale, const float *seed)
{
    Node n = {0};
    node_ints(&n, "shape", LIST(ROWS, COLUMNS));
    node_float(&n, "mean", mean);
    node_float(&n, "scale", scale);
    if (seed != NULL)
        node_float(&n, "seed", *seed);
    return node_one(&n, "RandomNormal", 1, 0, NULL);
}

static LsRunGraph *program(void)
{
    ck_assert(ls_dce(&cx, g) && ls_layout(&cx, g, NULL) && ls_fuse(&cx, g) && ls_verify(&cx, g));
    LsRunGraph *r = ls_run_graph_new(&cx, g, 4);
    ck_assert_ptr_nonnull(r);
    return r;
}

static const double *drawn(LsRunGraph *r, LsValueId v)
{
    double *x = ls_arena_alloc(cx.arena, COUNT, sizeof *x);
    ls_run_graph_until(r, v);
    for (int i = 0; i < COUNT; i++)
        x[i] = ls_run_graph_get(r, v, i);
    return x;
}

static double mean_of(const double *x)
{
    double sum = 0;
    for (int i = 0; i < COUNT; i++)
        sum += x[i];
    return sum / COUNT;
}

static double deviation_of(const double *x)
{
    double sum = 0, mean = mean_of(x);
    for (int i = 0; i < COUNT; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    return sqrt(sum / COUNT);
}

static int equal_elements(const double *x, const double *y)
{
    int n = 0;
    for (int i = 0; i < COUNT; i++)
        n += x[i] == y[i];
    return n;
}

static void give(const LsValueId out[], uint32_t n)
{
    g->output = ls_arena_alloc(cx.arena, n, sizeof *g->output);
    memcpy(g->output, out, n * sizeof *out);
    g->noutput = n;
}

START_TEST(draws_are_distributed_as_asked)
{
    Node u = {0}, b = {0}, like = {0};
    node_float(&u, "low", -1);
    node_float(&u, "high", 3);
    LsValueId p = filled("p", .25);
    LsValueId uniform = node_one(&u, "RandomUniformLike", 1, IN(p));
    LsValueId normal = normal_of(5, 2, NULL);
    LsValueId standard = node_one(&like, "RandomNormalLike", 1, IN(p));
    LsValueId coin = node_one(&b, "Bernoulli", 15, IN(p));
    give((LsValueId[]){uniform, normal, standard, coin}, 4);
    LsRunGraph *r = program();
    const double *x[4];
    for (int k = 0; k < 4; k++)
        x[k] = drawn(r, g->output[k]);
    for (int i = 0; i < COUNT; i++)
        ck_assert(x[0][i] >= -1 && x[0][i] < 3 && (x[3][i] == 0 || x[3][i] == 1));
    static const double mean[] = {1, 5, 0, .25}, deviation[] = {1.1547, 2, 1, .4330};
    for (int k = 0; k < 4; k++) {
        ck_assert_msg(fabs(mean_of(x[k]) - mean[k]) < .06 * deviation[k], "%d: mean %g", k,
                      mean_of(x[k]));
        ck_assert_msg(fabs(deviation_of(x[k]) / deviation[k] - 1) < .04, "%d: deviation %g", k,
                      deviation_of(x[k]));
    }
    ls_run_graph_free(r);
}
END_TEST

START_TEST(equal_seeds_draw_alike_and_every_step_draws_anew)
{
    const float seed = 1.5f, other = 2.5f;
    LsValueId a = normal_of(0, 1, &seed), b = normal_of(0, 1, &seed), c = normal_of(0, 1, &other);
    LsValueId d = normal_of(0, 1, NULL), e = normal_of(0, 1, NULL);
    give((LsValueId[]){a, b, c, d, e}, 5);
    LsRunGraph *r = program();
    const double *x[5], *again = drawn(r, g->output[0]);
    for (int k = 0; k < 5; k++)
        x[k] = drawn(r, g->output[k]);
    ck_assert_int_eq(equal_elements(x[0], again), COUNT);
    ck_assert_int_eq(equal_elements(x[0], x[1]), COUNT);
    for (int k = 1; k < 4; k++)
        ck_assert_int_lt(equal_elements(x[k], x[k + 1]), 16);
    r->run.step++;
    ck_assert_int_lt(equal_elements(x[0], drawn(r, g->output[0])), 16);
    r->run.step--;
    r->run.seed++;
    ck_assert_int_lt(equal_elements(x[0], drawn(r, g->output[0])), 16);
    ls_run_graph_free(r);
}
END_TEST

/* d(w z) / dw = z, which the backward part draws again; nothing comes back through a draw. */
START_TEST(the_backward_part_sees_the_numbers_of_the_forward_part)
{
    Node n = {0}, coin = {0};
    LsValueId w = filled("w", 1), p = filled("p", .5);
    LsValueId z = node_one(&n, "RandomNormalLike", 1, IN(w));
    LsValueId both =
        ls_append2(&cx, g, LS_OP_MUL, z, node_one(&coin, "Bernoulli", 15, IN(p)), NULL);
    LsValueId y = ls_append2(&cx, g, LS_OP_MUL, w, both, NULL);
    give(&both, 1);
    g->objective.loss = ls_reduce_to(&cx, g, y, (LsShape){0});
    ck_assert(ls_autodiff(&cx, g));
    LsRunGraph *r = program();
    const double *x = drawn(r, g->output[0]);
    for (uint32_t k = 0; k < g->ngrad; k++) {
        const double *d = drawn(r, g->grad[k].grad);
        bool of_w = strcmp(g->value[g->grad[k].param.i].name, "w") == 0;
        for (int i = 0; i < COUNT; i++)
            ck_assert(d[i] == (of_w ? x[i] : 0));
    }
    ls_run_graph_free(r);
}
END_TEST

START_TEST(what_cannot_be_drawn_is_refused)
{
    Node ints = {0}, none = {0}, coin = {0};
    node_ints(&ints, "shape", LIST(2, 3));
    node_int(&ints, "dtype", 7);
    node_fails(&ints, "RandomUniform", 1, 0, NULL, LS_E_TYPE, "dtype is int64");
    node_fails(&none, "RandomNormal", 1, 0, NULL, LS_E_ATTR, "shape is missing");
    node_fails(&coin, "Bernoulli", 15, IN(INTS(1, 0)), LS_E_TYPE, "int64");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("ops_random");
    tcase_add_checked_fixture(tc, graph_open, graph_close);
    tcase_add_test(tc, draws_are_distributed_as_asked);
    tcase_add_test(tc, equal_seeds_draw_alike_and_every_step_draws_anew);
    tcase_add_test(tc, the_backward_part_sees_the_numbers_of_the_forward_part);
    tcase_add_test(tc, what_cannot_be_drawn_is_refused);
    return run_tests("ops_random", tc);
}
