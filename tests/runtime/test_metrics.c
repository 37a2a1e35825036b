/* tests/runtime/test_metrics.c -- the metrics of evaluations against their definitions, computed
 * here from lists of labels and scores: for classes on any axis, bits, values, ignored labels,
 * short batches, ensembles and gaps between rows. */
#include "tests/support/suite.h"
#include "runtime/base/tensor_copy.h"
#include "runtime/metrics/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 4, SAMPLES = 10, MOST = 4096, MEMBERS = 3, IGNORED = 255 };

typedef struct Case {
    const char *name;
    int rank; int64_t dim[4];   /* of the scores of a batch */
    int axis;                   /* of classes; 0: of bits or values */
    bool last, bits, gap;       /* channels last; a gap between rows */
    int members;
    double ignored;             /* share of labels */
} Case;

static const Case one[] = {
    {"rows", 2, {BATCH, 7}, 1, false, false, false, 0, 0},
    {"two classes", 2, {BATCH, 2}, 1, false, false, false, 0, 0},
    {"gaps", 2, {BATCH, 7}, 1, false, false, true, 0, 0},
    {"planes", 4, {BATCH, 6, 3, 5}, 1, false, false, false, 0, 0.2},
    {"channels last", 4, {BATCH, 6, 3, 5}, 1, true, false, false, 0, 0.2},
    {"tokens", 3, {BATCH, 5, 9}, 2, false, false, false, 0, 0.2},
    {"members", 4, {BATCH, 3, 2, 2}, 1, true, false, false, MEMBERS, 0.1},
    {"bits", 2, {BATCH, 5}, 0, false, true, false, 0, 0},
    {"planes of bits", 4, {BATCH, 2, 3, 3}, 0, true, true, false, 0, 0},
    {"one bit", 1, {BATCH}, 0, false, true, false, 0, 0},
    {"bits of members", 2, {BATCH, 3}, 0, false, true, false, MEMBERS, 0},
    {"values", 2, {BATCH, 3}, 0, false, false, false, 0, 0},
    {"planes of values", 4, {BATCH, 2, 3, 2}, 0, true, false, false, 0, 0},
    {"values of members", 2, {BATCH, 3}, 0, false, false, false, MEMBERS, 0},
};
enum { NCASES = sizeof one / sizeof *one };

/* What there is to count: positions with the probability (or value) of each column. */
typedef struct Truth {
    int64_t n, columns;
    double p[MOST][16];
    int64_t label[MOST];        /* of classes */
    double is[MOST][16];         /* of bits and values */
} Truth;

static char arena[1 << 16], input[1 << 16];
static LsWatch watch[2];
static LsInput target;
static Truth truth;
static LsError e;

static double drawn(void) { return (double)rand() / RAND_MAX; }

static LsProgram program(const Case *c)
{
    LsProgram p = {.real_bytes = 4, .division.samples = BATCH, .input = &target, .ninput = 1};
    watch[0] = (LsWatch){.t = {.name = "y", .channels_last = c->last, .rank = c->rank,
                               .at = {LS_AT_ARENA, 0}, .members = c->members},
                         .key = c->axis > 0 ? "logits" : "out/y", .step = 3};
    memcpy(watch[0].t.dim, c->dim, sizeof c->dim);
    watch[0].row = c->gap ? c->dim[c->rank - 1] + 3 : 0;
    target = (LsInput){.t = {.name = "label", .rank = c->rank, .channels_last = c->last,
                             .at = {LS_AT_INPUT, 0}},
                       .is_label = true};
    memcpy(target.t.dim, c->dim, sizeof c->dim);
    if (c->axis > 0) {
        target.t.type = LS_DT_I64;
        target.t.channels_last = false;
        target.t.rank--;
        memmove(target.t.dim + c->axis, target.t.dim + c->axis + 1,
                (size_t)(c->rank - c->axis - 1) * sizeof *target.t.dim);
        p.target.classes = c->dim[c->axis];
        p.target.class_axis = c->axis;
        p.target.has_ignore = c->ignored > 0;
        p.target.ignore = IGNORED;
    } else {
        p.target.compared = 1;
        p.target.bits = c->bits;
    }
    p.phase.eval.watch = watch;
    p.phase.eval.nwatch = 1;
    p.phase.eval.nstep = 5;
    p.ensemble.members = c->members;
    return p;
}

/* Where element `i` of the row-major order lies. */
static int64_t place(const Case *c, int64_t i)
{
    int64_t at[4], n = 0;
    for (int d = c->rank; d-- > 0; i /= c->dim[d])
        at[d] = i % c->dim[d];
    if (c->gap)
        return at[0] * (c->dim[1] + 3) + at[1];
    for (int d = 0; d < c->rank; d++)
        if (!(c->last && d == 1))
            n = n * c->dim[d] + at[d];
    return c->last ? n * c->dim[1] + at[1] : n;
}

static int64_t count(const Case *c)
{
    int64_t n = 1;
    for (int d = 0; d < c->rank; d++)
        n *= c->dim[d];
    return n;
}

/* Row-major values and labels of a batch, for each member; `valid` samples go to `truth`. */
static void make_batch(const Case *c, double *score, int64_t valid)
{
    const int64_t n = count(c), each = n / BATCH;
    const int members = c->members > 0 ? c->members : 1;
    for (int64_t i = 0; i < members * n; i++)
        score[i] = (float)(floor(40 * drawn()) / 8 - 2.5);      /* there are ties */
    if (c->axis == 0) {
        const int64_t plane = c->rank > 2 ? n / BATCH / c->dim[1] : 1;
        truth.columns = c->bits ? (c->rank > 1 ? c->dim[1] : 1) : each;
        for (int64_t i = 0; i < n; i++) {
            const double is = c->bits ? drawn() < 0.4 : floor(9 * drawn()) / 3;
            double p = 0;
            ((float *)(void *)input)[place(c, i)] = (float)is;
            for (int m = 0; m < members; m++)
                p += (c->bits ? 1 / (1 + exp(-score[m * n + i])) : score[m * n + i]) / members;
            if (i / each >= valid)
                continue;
            const int64_t column = c->bits ? i / plane % truth.columns : i % each,
                          row = truth.n
                                + (c->bits ? i / plane / truth.columns * plane + i % plane
                                           : i / each);
            truth.p[row][column] = p;
            truth.is[row][column] = (float)is;
        }
        truth.n += c->bits ? valid * plane : valid;
        return;
    }
    const int64_t classes = c->dim[c->axis];
    int64_t behind = 1;
    for (int d = c->axis + 1; d < c->rank; d++)
        behind *= c->dim[d];
    truth.columns = classes;
    for (int64_t i = 0; i < n / classes; i++) {
        /* the last class has no label, and the first ones more than others */
        const double some = drawn() * drawn() * (double)(classes - (classes > 2));
        const int64_t label = drawn() < c->ignored ? IGNORED : (int64_t)some;
        const int64_t first = i / behind * behind * classes + i % behind;
        ((int64_t *)(void *)input)[i] = label;
        if (i / (n / classes / BATCH) >= valid || label == IGNORED)
            continue;
        memset(truth.p[truth.n], 0, sizeof truth.p[0]);
        for (int m = 0; m < members; m++) {
            double sum = 0;
            for (int64_t k = 0; k < classes; k++)
                sum += exp(score[m * n + first + k * behind]);
            for (int64_t k = 0; k < classes; k++)
                truth.p[truth.n][k] += exp(score[m * n + first + k * behind]) / sum / members;
        }
        truth.label[truth.n++] = label;
    }
}

/* ---- definitions ---- */

static int64_t predicted(int64_t i)
{
    int64_t best = 0;
    for (int64_t k = 1; k < truth.columns; k++)
        best = truth.p[i][k] > truth.p[i][best] + 1e-12 ? k : best;
    return best;
}

static bool said(const Case *c, int64_t i, int64_t k)
{
    return c->axis > 0 ? predicted(i) == k : truth.p[i][k] > 0.5 + 1e-12;
}

static bool is(const Case *c, int64_t i, int64_t k)
{
    return c->axis > 0 ? truth.label[i] == k : truth.is[i][k] > 0.5;
}

/* |both|, |labels|, |predictions| of a column. */
static void sets(const Case *c, int64_t k, double n[3])
{
    memset(n, 0, 3 * sizeof *n);
    for (int64_t i = 0; i < truth.n; i++) {
        n[0] += said(c, i, k) && is(c, i, k);
        n[1] += is(c, i, k);
        n[2] += said(c, i, k);
    }
}

static double ratio(double a, double b) { return b > 0 ? a / b : 0; }

static double of_sets(const char *what, const double n[3])
{
    const double precision = ratio(n[0], n[2]), recall = ratio(n[0], n[1]);
    return strcmp(what, "precision") == 0 ? precision
           : strcmp(what, "recall") == 0  ? recall
           : strcmp(what, "iou") == 0     ? ratio(n[0], n[1] + n[2] - n[0])
                                          : ratio(2 * precision * recall, precision + recall);
}

static double macro(const Case *c, const char *what, bool by_labels)
{
    double sum = 0, of = 0, n[3];
    for (int64_t k = 0; k < truth.columns; k++) {
        sets(c, k, n);
        if (n[1] + n[2] == 0)
            continue;
        sum += of_sets(what, n) * (by_labels ? n[1] : 1);
        of += by_labels ? n[1] : 1;
    }
    return sum / of;
}

/* The share of pairs of a yes and a no that the score puts in order. */
static double area(const Case *c, int64_t k)
{
    double good = 0, pairs = 0;
    for (int64_t i = 0; i < truth.n; i++)
        for (int64_t j = 0; j < truth.n; j++)
            if (is(c, i, k) && !is(c, j, k)) {
                const double by = truth.p[i][k] - truth.p[j][k];
                good += fabs(by) < 1e-12 ? 0.5 : by > 0;
                pairs++;
            }
    return pairs > 0 ? good / pairs : NAN;
}

static double auroc(const Case *c)
{
    double sum = 0, n = 0;
    if (c->axis > 0 && truth.columns == 2)
        return area(c, 1);
    for (int64_t k = 0; k < truth.columns; k++) {
        const double one = area(c, k);
        sum += isnan(one) ? 0 : one;
        n += !isnan(one);
    }
    return sum / n;
}

static double of_classes(const Case *c, const char *name)
{
    double sum = 0, n[3];
    if (strcmp(name, "top5") == 0) {
        for (int64_t i = 0; i < truth.n; i++) {
            int above = 0;
            for (int64_t k = 0; k < truth.columns; k++) {
                const double by = truth.p[i][k] - truth.p[i][truth.label[i]];
                above += by > 1e-12 || (fabs(by) <= 1e-12 && k < truth.label[i]);
            }
            sum += above < 5;
        }
        return sum / (double)truth.n;
    }
    if (strcmp(name, "perplexity") == 0) {
        for (int64_t i = 0; i < truth.n; i++)
            sum -= log(truth.p[i][truth.label[i]]);
        return exp(sum / (double)truth.n);
    }
    if (strcmp(name, "auroc") == 0)
        return auroc(c);
    if (strcmp(name, "f1_weighted") == 0)
        return macro(c, "f1", true);
    if (strcmp(name, "f1_micro") == 0) {
        double all[3] = {0};
        for (int64_t k = 0; k < truth.columns; k++) {
            sets(c, k, n);
            for (int j = 0; j < 3; j++)
                all[j] += n[j];
        }
        return of_sets("f1", all);
    }
    const char *macro_of = strstr(name, "_macro");
    if (macro_of != NULL || strcmp(name, "iou") == 0 || strcmp(name, "dice") == 0) {
        char what[32];
        snprintf(what, sizeof what, "%.*s", macro_of ? (int)(macro_of - name) : 31, name);
        return macro(c, what, false);
    }
    sets(c, truth.columns == 2 ? 1 : 0, n);         /* of class 1, or the only bit */
    return of_sets(name, n);
}

static double of_values(const char *name)
{
    const double n = (double)(truth.n * truth.columns);
    double sum = 0;
    for (int64_t k = 0; k < truth.columns; k++) {
        double mean = 0, total = 0, errors = 0;
        for (int64_t i = 0; i < truth.n; i++)
            mean += truth.is[i][k] / (double)truth.n;
        for (int64_t i = 0; i < truth.n; i++) {
            const double by = truth.p[i][k] - truth.is[i][k];
            total += pow(truth.is[i][k] - mean, 2);
            errors += by * by;
            sum += strcmp(name, "mae") == 0 ? fabs(by) / n : strcmp(name, "mse") == 0 ? by * by / n
                                                                                    : 0;
        }
        if (strcmp(name, "r2") == 0)
            sum += (1 - errors / total) / (double)truth.columns;
    }
    return sum;
}

/* ---- the test ---- */

static const Case *now;
static int results;

static void check_result(void *to, const char *name, double value, bool higher)
{
    (void)to;
    const double want = now->axis > 0 || now->bits ? of_classes(now, name + 4)
                                                   : of_values(name + 4);
    ck_assert_msg(fabs(value - want) <= 1e-9 * (1 + fabs(want)), "%s: %s is %.12g, not %.12g",
                  now->name, name, value, want);
    ck_assert(higher != (strcmp(name + 4, "perplexity") == 0 || strcmp(name + 4, "mae") == 0
                         || strcmp(name + 4, "mse") == 0));
    results++;
}

static void check_confusion(const LsMetrics *m)
{
    int64_t sum = 0;
    for (int64_t k = 0; k < truth.columns * truth.columns; k++) {
        int64_t n = 0;
        for (int64_t i = 0; i < truth.n; i++)
            n += truth.label[i] == k / truth.columns && predicted(i) == k % truth.columns;
        ck_assert_int_eq(m->confusion[k], n);
        sum += n;
    }
    ck_assert_int_eq(sum, truth.n);
}

/* Feeds the batches of an evaluation, the last of them short. */
static void feed(const Case *c, LsMetrics *m, LsEngine *g)
{
    static double score[MEMBERS * 1024];
    const int64_t n = count(c);
    const LsHook hook = ls_metrics_hook(m);
    truth.n = 0;
    ls_metrics_begin(m);
    for (int64_t at = 0; at < SAMPLES; at += BATCH) {
        g->run.valid = SAMPLES - at < BATCH ? SAMPLES - at : BATCH;
        make_batch(c, score, g->run.valid);
        for (g->member = 0; g->member < (c->members > 0 ? c->members : 1); g->member++) {
            for (int64_t i = 0; i < n; i++)
                ((float *)(void *)arena)[place(c, i)] = (float)score[g->member * n + i];
            for (uint32_t step = 0; step < 5; step++) {
                hook.before(hook.self, step);
                hook.after(hook.self, step);
            }
        }
    }
    ck_assert_int_le(truth.n, MOST);
}

START_TEST(metrics_are_what_their_definitions_say)
{
    const Case *c = now = &one[_i];
    LsProgram p = program(c);
    int64_t offset[2] = {0};
    const LsMemory memory = {.p = &p, .arena = arena};
    const LsLoader loader = {.p = &p, .offset = offset};
    LsEngine g = {.p = &p, .m = &memory, .loader = &loader, .input = input};
    const LsDataset data = {.p = &p, .samples = SAMPLES};
    LsMetrics m;
    srand(7);
    ck_assert_msg(ls_metrics_open(&m, &g, "all", false, true, &data, &e), "%s", e.text);
    for (int again = 0; again < 2; again++) {       /* the second evaluation begins anew */
        results = 0;
        feed(c, &m, &g);
        ls_metrics_each(&m, NAN, NULL, check_result);
        ck_assert_int_ge(results, c->axis > 0 ? 8 : c->bits ? 6 : 3);
        if (c->axis > 0)
            check_confusion(&m);
    }
    ls_metrics_close(&m);
}
END_TEST

START_TEST(what_cannot_be_measured_is_refused)
{
    LsProgram p = program(&one[0]);
    const LsMemory memory = {.p = &p, .arena = arena};
    LsEngine g = {.p = &p, .m = &memory};
    LsDataset data = {.p = &p, .samples = (int64_t)1 << 40};
    LsMetrics m;
    ck_assert(!ls_metrics_open(&m, &g, "auroc", false, true, &data, &e));
    ck_assert_msg(strstr(e.text, "auroc is exact") != NULL, "%s", e.text);
    ls_metrics_close(&m);
    e = (LsError){0};
    ck_assert(ls_metrics_open(&m, &g, "all", false, true, &data, &e));
    ck_assert(!(m.chosen & LS_METRIC_AUROC) && (m.chosen & LS_METRIC_F1));
    ls_metrics_close(&m);
    ck_assert(!ls_metrics_open(&m, &g, "f1,f2", false, true, &data, &e));
    ck_assert_msg(strstr(e.text, "'f2' must be") != NULL, "%s", e.text);
    ls_metrics_close(&m);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("metrics");
    tcase_add_loop_test(t, metrics_are_what_their_definitions_say, 0, NCASES);
    tcase_add_test(t, what_cannot_be_measured_is_refused);
    return run_tests("metrics", t);
}
