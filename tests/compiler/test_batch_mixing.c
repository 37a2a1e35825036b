/* tests/compiler/test_batch_mixing.c -- which nodes make the samples of a batch depend on each
 * other, and which statistics are of the samples that count alone. */
#include "compiler/ops/normalize.h"
#include "compiler/per_sample/batch_mixing.h"
#include "tests/support/gradient.h"
#include "tests/support/suite.h"

enum { B = 6, T = 4, C = 8 };

static char *log_text;
static size_t log_size;

static LsValueId input(const char *name, LsShape s)
{
    LsValueId *list = ls_arena_alloc(cx.arena, g->ninput + 1, sizeof *list);
    for (uint32_t i = 0; i < g->ninput; i++)
        list[i] = g->input[i];
    const LsValueId v = ls_value_add(&cx, g, LS_V_INPUT, name, LS_REAL, &s, NULL);
    list[g->ninput++] = v;
    g->input = list;
    return v;
}

static void start(void)
{
    graph_open();
    cx.log = open_memstream(&log_text, &log_size);
    g->batch = B;
}

static void end(void)
{
    fclose(cx.log);
    free(log_text);
    graph_close();
}

/* Attaches a loss to y and looks for what mixes samples. */
static bool look(LsValueId y, LsLossKind kind, LsMixingOptions how)
{
    g->output = ls_arena_alloc(cx.arena, 1, sizeof *g->output);
    g->output[0] = y;
    g->noutput = 1;
    ck_assert(ls_is(y));
    ck_assert(ls_loss(&cx, g, &(LsLossOptions){.kind = kind}));
    const bool ok = ls_batch_mixing(&cx, g, &how);
    fflush(cx.log);
    return ok;
}

/* ---- networks ---- */

static LsValueId reduce(LsValueId v, LsOpCode op, uint32_t axes)
{
    return ls_append1(&cx, g, op, v, &(LsAttr){.reduce = {.axes = axes, .keep = true}});
}

static LsValueId product(LsValueId a, LsValueId b, bool trans_a, bool trans_b)
{
    return ls_append2(&cx, g, LS_OP_MATMUL, a, b,
                      &(LsAttr){.gemm = {.trans_a = trans_a, .trans_b = trans_b, .alpha = 1}});
}

static LsValueId both(LsOpCode op, LsValueId a, LsValueId b)
{
    return ls_append2(&cx, g, op, a, b, NULL);
}
static LsValueId softmax(LsValueId v, int axis)
{
    return ls_append1(&cx, g, LS_OP_SOFTMAX, v, &(LsAttr){.axis = {axis}});
}
static LsValueId linear(LsValueId v) { return product(v, param("w", SHAPE(C, C)), false, false); }

static LsValueId centred(LsValueId x)
{
    return both(LS_OP_SUB, x, reduce(x, LS_OP_REDUCE_MEAN, 1));
}
static LsValueId by_largest(LsValueId x)
{
    return both(LS_OP_DIV, x, reduce(x, LS_OP_REDUCE_MAX, 1));
}
static LsValueId by_sum(LsValueId x) { return both(LS_OP_MUL, x, reduce(x, LS_OP_REDUCE_SUM, 3)); }
static LsValueId covariance(LsValueId x)
{
    return product(x, product(x, x, true, false), false, false);
}
static LsValueId pairs(LsValueId x) { return product(linear(x), x, false, true); }
static LsValueId negatives(LsValueId x) { return softmax(product(linear(x), x, false, true), 1); }

static LsValueId written_norm(LsValueId x)
{
    const LsValueId d = centred(x), var = reduce(both(LS_OP_MUL, d, d), LS_OP_REDUCE_MEAN, 1);
    return both(LS_OP_DIV, d, ls_append1(&cx, g, LS_OP_SQRT, var, NULL));
}

static LsValueId reversed(LsValueId x)
{
    const LsAttr back = {.slice = {.start = {B - 1}, .stop = {-1, C}, .step = {-1, 1}}};
    return both(LS_OP_ADD, x, ls_append1(&cx, g, LS_OP_SLICE, x, &back));
}

static LsValueId rolled(LsValueId x)
{
    LsValueId part[] = {ls_slice_axis(&cx, g, x, 0, 1, B), ls_slice_axis(&cx, g, x, 0, 0, 1)};
    return both(LS_OP_SUB, x, ls_append(&cx, g, LS_OP_CONCAT, 2, part, &(LsAttr){.axis = {0}}));
}

/* As many samples as a batch has, of two batches. */
static LsValueId shifted(LsValueId x)
{
    LsValueId part[] = {x, linear(x)};
    const LsValueId all = ls_append(&cx, g, LS_OP_CONCAT, 2, part, &(LsAttr){.axis = {0}});
    return ls_slice_axis(&cx, g, all, 0, 1, B + 1);
}

static LsValueId permuted(LsValueId x)
{
    static const int64_t order[B] = {3, 1, 5, 0, 2, 4};
    int64_t *data = ls_arena_alloc(cx.arena, B, sizeof *data);
    memcpy(data, order, sizeof order);
    return ls_append2(&cx, g, LS_OP_GATHER, x, ls_const_add(&cx, g, LS_I64, &SHAPE(B), data),
                      &(LsAttr){.gather = {.axis = 0}});
}

static LsValueId sorted(LsValueId x)
{
    const LsValueId at = ls_append1(&cx, g, LS_OP_TOP_K, x, &(LsAttr){.top = {.axis = 0, .k = B}});
    return ls_append2(&cx, g, LS_OP_GATHER_EACH, x, at, &(LsAttr){.gather = {.axis = 0}});
}

static LsValueId folded(LsValueId x)
{
    const LsValueId two = softmax(ls_reshape(&cx, g, x, &SHAPE(B / 2, 2 * C)), 1);
    return ls_reshape(&cx, g, two, &SHAPE(B, C));
}

/* Samples lie along axis 1 of what the norm is taken of. */
static LsValueId turned_norm(LsValueId x)
{
    const LsValueId v =
        ls_transpose(&cx, g, ls_reshape(&cx, g, x, &SHAPE(B, 2, C / 2)), (int[]){1, 0, 2});
    const LsStats s = ls_stats(&cx, g, v, 3, 1e-5);
    const LsValueId y =
        ls_normalized(&cx, g, v, &s, ls_const_real(&cx, g, 1), ls_const_real(&cx, g, 0));
    return ls_reshape(&cx, g, ls_transpose(&cx, g, y, (int[]){1, 0, 2}), &SHAPE(B, C));
}

static const struct {
    const char *name;
    LsValueId (*of)(LsValueId x);
    const char *says;
} mixing[] = {
    {"centred", centred, "reads a statistic of all samples"},
    {"by_largest", by_largest, "reads a statistic of all samples"},
    {"by_sum", by_sum, "reads a statistic of all samples"},
    {"covariance", covariance, "reads a statistic of all samples"},
    {"written_norm", written_norm, "reads a statistic of all samples"},
    {"turned_norm", turned_norm, "reads a statistic of all samples"},
    {"pairs", pairs, "compares samples with each other"},
    {"negatives", negatives, "compares samples with each other"},
    {"reversed", reversed, "is not known to keep each sample in its place"},
    {"rolled", rolled, "is not known to keep each sample in its place"},
    {"shifted", shifted, "is not known to keep each sample in its place"},
    {"permuted", permuted, "is not known to keep each sample in its place"},
    {"sorted", sorted, "is not known to keep each sample in its place"},
    {"folded", folded, "is not known to keep each sample in its place"},
};
enum { NMIXING = sizeof mixing / sizeof *mixing };

START_TEST(what_mixes_is_named)
{
    start();
    ck_assert(look(mixing[_i].of(input("x", SHAPE(B, C))), LS_LOSS_MSE, (LsMixingOptions){0}));
    ck_assert_msg(g->mixing.by != NULL && strstr(g->mixing.by, mixing[_i].says) != NULL, "%s: %s",
                  mixing[_i].name, g->mixing.by != NULL ? g->mixing.by : "nothing");
    ck_assert_uint_eq(log_size, 0);
    end();
}
END_TEST

START_TEST(parts_of_what_mixes_are_refused)
{
    start();
    ck_assert(
        !look(mixing[_i].of(input("x", SHAPE(B, C))), LS_LOSS_MSE, (LsMixingOptions){.parts = 2}));
    ck_assert_int_eq(cx.last, LS_E_OPTION);
    ck_assert_msg(strstr(log_text, mixing[_i].says) != NULL
                      && strstr(log_text, "--mixed-parts=own") != NULL,
                  "%s", log_text);
    end();
    start();
    ck_assert(look(mixing[_i].of(input("x", SHAPE(B, C))), LS_LOSS_MSE,
                   (LsMixingOptions){.parts = 2, .own = true}));
    ck_assert_msg(strstr(log_text, mixing[_i].says) != NULL
                      && strstr(log_text, "sees only its own samples") != NULL,
                  "%s", log_text);
    end();
    start();
    ck_assert(look(mixing[_i].of(input("x", SHAPE(B, C))), LS_LOSS_MSE,
                   (LsMixingOptions){.accumulate = 3}));
    ck_assert_msg(strstr(log_text, mixing[_i].says) != NULL
                      && strstr(log_text, "--accumulate") != NULL,
                  "%s", log_text);
    end();
}
END_TEST

/* ---- what does not ---- */

static LsValueId attention(LsValueId x)
{
    const LsValueId v = ls_reshape(&cx, g, x, &SHAPE(B, T, C / T));
    return ls_reshape(&cx, g, product(softmax(product(v, v, false, true), 2), v, false, false),
                      &SHAPE(B, C));
}

static LsValueId of_rows(LsValueId x)
{
    return both(LS_OP_SUB, x, reduce(x, LS_OP_REDUCE_MEAN, 2));
}

static LsValueId rows_in_reverse(LsValueId x)
{
    const LsAttr back = {.slice = {.start = {0, C - 1}, .stop = {B, -1}, .step = {1, -1}}};
    return ls_append1(&cx, g, LS_OP_SLICE, x, &back);
}

static LsValueId two_views(LsValueId x)         /* a batch behind another, as of two images each */
{
    LsValueId part[] = {x, linear(x)};
    const LsValueId all =
        softmax(ls_append(&cx, g, LS_OP_CONCAT, 2, part, &(LsAttr){.axis = {0}}), 1);
    return both(LS_OP_ADD, ls_slice_axis(&cx, g, all, 0, 0, B),
                ls_slice_axis(&cx, g, all, 0, B, 2 * B));
}

START_TEST(samples_that_are_apart_stay_so)
{
    static LsValueId (*const apart[])(LsValueId) = {linear, attention, of_rows, rows_in_reverse,
                                                    two_views};
    start();
    ck_assert(look(apart[_i](input("x", SHAPE(B, C))), LS_LOSS_MSE, (LsMixingOptions){.parts = 2}));
    ck_assert_msg(g->mixing.by == NULL, "%d: %s", _i, g->mixing.by);
    ck_assert_uint_eq(log_size, 0);
    end();
}
END_TEST

/* ---- statistics of the samples that count ---- */

static uint32_t counted(LsOpCode op, LsCounted *of)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode; i++) {
        const LsAttr *at = &g->node[i].attr;
        const LsCounted c = op == LS_OP_NORMALIZE ? at->scalar.counted : at->reduce.counted;
        if (g->node[i].op != op || c.each == 0)
            continue;
        *of = c;
        n++;
    }
    return n;
}

START_TEST(batch_norms_count)
{
    static const LsOpCode op[] = {LS_OP_REDUCE_MEAN, LS_OP_NORM_VAR, LS_OP_NORMALIZE};
    LsCounted of = {0};
    start();
    const LsValueId x = input("x", SHAPE(B, C, T));
    const LsStats s = ls_stats(&cx, g, x, 5, 1e-5);
    const LsValueId scale = ls_per_channel(&cx, g, param("scale", SHAPE(C)), 3),
                    bias = ls_const_real(&cx, g, 0);
    ck_assert(look(ls_normalized(&cx, g, x, &s, scale, bias), LS_LOSS_MSE,
                   (LsMixingOptions){.parts = 2}));
    ck_assert_msg(g->mixing.by == NULL, "%s", g->mixing.by);
    ck_assert(g->mixing.norm != NULL);
    ck_assert_int_eq(g->mixing.each, T);
    ck_assert_msg(strstr(log_text, "batch norms, such as") != NULL, "%s", log_text);
    for (int k = 0; k < 3; k++) {
        ck_assert_uint_eq(counted(op[k], &of), 1);
        ck_assert_int_eq(of.each, T);
        ck_assert_int_eq(of.rank, 3);
    }
    end();
}
END_TEST

static LsValueId norm_of(LsValueId x, uint32_t axes)
{
    const LsStats s = ls_stats(&cx, g, x, axes, 1e-5);
    return ls_normalized(&cx, g, x, &s, ls_const_real(&cx, g, 1), ls_const_real(&cx, g, 0));
}

/* One value for each channel is too little for any of them. */
START_TEST(the_norm_with_the_fewest_values_counts)
{
    for (int first = 0; first < 2; first++) {
        start();
        LsValueId y = input("x", SHAPE(B, C));
        if (first)
            y = norm_of(y, 1);
        y = norm_of(ls_reshape(&cx, g, y, &SHAPE(B, C / T, T)), 5);
        y = ls_reshape(&cx, g, y, &SHAPE(B, C));
        if (!first)
            y = norm_of(y, 1);
        ck_assert(look(y, LS_LOSS_MSE, (LsMixingOptions){0}));
        ck_assert_int_eq(g->mixing.each, 1);
        end();
    }
}
END_TEST

START_TEST(norms_of_each_sample_do_not)
{
    LsCounted of;
    start();
    const LsValueId x = input("x", SHAPE(B, C, T));
    const LsStats s = ls_stats(&cx, g, x, 4, 1e-5);
    ck_assert(look(ls_normalized(&cx, g, x, &s, ls_const_real(&cx, g, 1), ls_const_real(&cx, g, 0)),
                   LS_LOSS_MSE, (LsMixingOptions){.parts = 2}));
    ck_assert(g->mixing.by == NULL && g->mixing.norm == NULL);
    ck_assert_uint_eq(counted(LS_OP_NORM_VAR, &of) + counted(LS_OP_NORMALIZE, &of), 0);
    end();
}
END_TEST

START_TEST(a_loss_of_the_file_counts_if_it_is_a_mean)
{
    LsCounted of;
    for (int k = 0; k < 4; k++) {
        start();
        const LsValueId x = linear(input("x", SHAPE(B, C)));
        const LsValueId y =
            k == 0 || k == 1 ? reduce(x, LS_OP_REDUCE_MEAN, 3)
            : k == 2         ? reduce(x, LS_OP_REDUCE_SUM, 3)
                     : ls_append1(&cx, g, LS_OP_SQRT, reduce(x, LS_OP_REDUCE_MEAN, 3), NULL);
        ck_assert(look(y, LS_LOSS_GRAPH, (LsMixingOptions){.whole_loss = k == 1}));
        ck_assert_int_eq(g->mixing.loss, k != 0);
        ck_assert_uint_eq(counted(LS_OP_REDUCE_MEAN, &of), k == 0);
        end();
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("batch_mixing");
    tcase_add_loop_test(tc, what_mixes_is_named, 0, NMIXING);
    tcase_add_loop_test(tc, parts_of_what_mixes_are_refused, 0, NMIXING);
    tcase_add_loop_test(tc, samples_that_are_apart_stay_so, 0, 5);
    const TTest *const test[] = {batch_norms_count, the_norm_with_the_fewest_values_counts,
                                 norms_of_each_sample_do_not,
                                 a_loss_of_the_file_counts_if_it_is_a_mean};
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("batch_mixing", tc);
}
