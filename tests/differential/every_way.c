/* tests/differential/every_way.c -- every way to a value against its plain form, over random
 * graphs.
 *
 *   every_way [--seed N] [--graphs N] [--kind plain|samples|private] [--type f64|f32|bf16]
 * [--cc-flags FLAGS] [-v]
 *
 * Without options: the 30 graphs of the test, 300 for whole sets; kinds and types in turn.
 *
 * A graph is lowered with all alternatives, and one plan runs every node, each of its alternatives,
 * each a second time, and in the place of each operand that allows it (every_plan.h): a kernel must
 * give the same bits each time, and two ways to a value the same numbers, up to rounding. Graphs
 * are
 *   plain    of any operators (random_net.h), with an optimizer; outputs, gradients and state must
 * be those of the graph without alternatives, to the bit; samples  networks (sample_net.h) with the
 * gradients of samples and norms by each way (--sample-norms); private  the same with clipped sums
 * (--dp), of all ways. Which ways a pass prefers depends on prices, so prices are random. What is
 * right comes from plain gradients alone: that of sample k is the gradient of the first k + 1
 * samples less that of the first k. */
#include "codegen/program/lowering.h"
#include "compiler/cost/roofline.h"
#include "compiler/ir/graph_text.h"
#include "compiler/ir/optimizer.h"
#include "compiler/passes/channels_last.h"
#include "compiler/passes/passes.h"
#include "compiler/per_sample/per_sample.h"
#include "compiler/patterns/patterns.h"
#include "scheduler/plan/planner.h"
#include "tests/differential/every_plan.h"
#include "tests/differential/results.h"
#include "tests/differential/sample_net.h"
#include "tests/support/less.h"
#include "tests/support/run_many.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum { PLAIN, SAMPLES, PRIVATE, KINDS } Kind;
static const char *const kind_name[] = {"plain", "samples", "private"};
/* ways: tolerance between ways to a value. truth: of gradients against those of plain graphs, 0:
 * not compared, as plain graphs of other numbers of samples round other numbers. */
static const struct {
    const char *name;
    int bytes;
    LsType compute;
    double ways, truth;
} format[] = {{"f64", 8, LS_REAL, 1e-12, 1e-11},
              {"f32", 4, LS_REAL, 3e-5, 3e-4},
              {"bf16", 4, LS_BF16, 1e-1, 0}};
enum { FORMATS = sizeof format / sizeof *format, AT_ONCE = 10, MOST_SAMPLES = 4, FORMS = 6 };

/* A version of a graph: what its gradients are. */
typedef enum { F_MEAN, F_TERMS, F_EVERY, F_PAIRS, F_TILES, F_CLIPPED } FormKind;
typedef struct Form {
    bool there;
    Net *net;
    LsProblem *problem;
    LsPlan none;
    EveryPlan every;
    int first;                  /* among the programs: with the plan `none`, then `every` */
} Form;

typedef struct Case {
    uint64_t seed;
    Kind kind;
    int format;
    double clip;
    Form form[FORMS];
    bool empty, wrong;
} Case;

static struct {
    int graphs, empty, wrong, ways, again, inplace;
    double worst[FORMATS], truth[FORMATS];
} count;
static bool verbose;

static void wrong(Case *c, const char *what, const char *more)
{
    printf("--seed %llu --kind %s --type %s: %s%s\n", (unsigned long long)c->seed,
           kind_name[c->kind], format[c->format].name, what, more);
    count.wrong += !c->wrong;
    c->wrong = true;
    fflush(stdout);
}

/* ---- compiling ---- */

typedef struct Prices { LsMachine cpu; uint64_t seed; } Prices;

/* Up to 64 times more or less than a machine takes. */
static double price(const void *of, const LsGraph *g, LsNodeId n)
{
    const Prices *p = of;
    Dice d = {p->seed * 31 + g->node[n.i].op * 2654435761u + 1};
    for (int k = 0; k < 6; k++)
        roll(&d, 2);
    return ls_node_cost(g, n, &p->cpu) * ldexp(1, (int)roll(&d, 13) - 6);
}

static LsSampleGrads grads_of(const Case *c, FormKind f, Prices *p)
{
    static const LsSampleNorms norms[] = {[F_TERMS] = LS_NORMS_TERMS,
                                          [F_PAIRS] = LS_NORMS_PAIRS,
                                          [F_TILES] = LS_NORMS_TILES,
                                          [F_EVERY] = LS_NORMS_CHEAPEST,
                                          [F_CLIPPED] = LS_NORMS_CHEAPEST};
    ls_machine_find(&p->cpu, "cpu");
    p->seed = c->seed;
    if (c->kind == PLAIN)
        return (LsSampleGrads){.price = {price, p}};
    LsSampleGrads o = {.mode = f == F_MEAN    ? LS_GRADS_MEAN
                               : f == F_TERMS ? LS_GRADS_PER_SAMPLE
                                              : LS_GRADS_NORMS,
                       .norms = norms[f],
                       .price = {price, p}};
    if (f == F_EVERY && c->seed % 3 == 0)
        o.mode = LS_GRADS_PER_SAMPLE;
    if (f == F_CLIPPED)
        o.privacy = (LsPrivacy){
            .on = true, .clip = c->clip, .delta = 1e-5, .expected = 3, .sums = LS_SUMS_AUTO};
    return o;
}

/* The order of compiler/pipeline.c, after the loss. */
static bool pass_all(Case *c, FormKind f, Net *net)
{
    Prices prices;
    const LsSampleGrads grads = grads_of(c, f, &prices);
    const LsOptimizerOptions o = {.kind = LS_SGD, .hyper.momentum = c->seed % 2 ? 0.9 : 0};
    const LsPrecision as = {.compute = format[c->format].compute};
    LsCtx *cx = &net->cx;
    LsGraph *g = net->a;
    return ls_patterns(cx, g) && ls_heads(cx, g) && ls_autodiff_samples(cx, g, &grads)
           && ls_optimizer(cx, g, &o) && ls_dce(cx, g) && ls_layout(cx, g, NULL)
           && ls_residual(cx, g) && ls_precision(cx, g, &as) && ls_fuse(cx, g) && ls_split(cx, g)
           && ls_verify(cx, g);
}

static Net *new_net(const Case *c)
{
    return c->kind == PLAIN ? net_new(c->seed, 3 + (int)((c->seed * 2654435761u >> 8) % 22), true)
                            : sample_net_new(c->seed);
}

static bool prepare_form(Case *c, FormKind f, LsRunMany *m, const LsTarget *target)
{
    Form *form = &c->form[f];
    const bool every = f == F_EVERY || f == F_CLIPPED;
    form->net = new_net(c);
    form->there = true;
    Net *net = form->net;
    if (!ls_is(net->a->objective.loss) || !pass_all(c, f, net)) {
        c->empty = true;
        return false;
    }
    LsLowering l = {.target = target,
                    .name = "random",
                    .no_alternatives = !every,
                    .store_gradients = !every || c->seed % 2,
                    .train = net->a,
                    .eval = ls_graph_new(&net->cx)};
    if (!ls_lower(&net->cx, &l))
        return wrong(c, "lowering refuses", ""), false;
    form->problem = l.train_problem;
    if (verbose)
        ls_graph_print(form->problem->g, stdout);
    if (!ls_plan_none(net->cx.arena, &form->problem->dag, &form->none))
        return wrong(c, "no plan", ""), false;
    form->every = every_plan(net->cx.arena, form->problem);
    if (form->every.stuck)
        return wrong(c, "nodes wait for each other", ""), false;
    form->first = ls_run_many_add(m, (LsProblem *[]){form->problem, form->problem},
                                  (LsPlan[]){form->none, form->every.plan});
    return form->first >= 0 || (wrong(c, "the program cannot be printed", ""), false);
}

static void prepare(Case *c, LsRunMany *m, const LsTarget *target)
{
    static const FormKind of[KINDS][FORMS] = {{F_MEAN, F_EVERY},
                                              {F_MEAN, F_TERMS, F_EVERY, F_PAIRS, F_TILES},
                                              {F_MEAN, F_TERMS, F_CLIPPED}};
    static const int n[KINDS] = {2, 5, 3};
    static const double clip[] = {1e-3, 0.1, 1, 100};
    c->clip = clip[c->seed % 4];
    for (int k = 0; k < n[c->kind]; k++)
        if (!prepare_form(c, of[c->kind][k], m, target))
            return;
}

/* ---- comparing ---- */

static double largest(const double *v, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fabs(v[i]) > most ? fabs(v[i]) : most;
    return most;
}

/* Whether n numbers are near those that are wanted, over the largest of `scale` or them. */
static void near(Case *c, const char *what, const char *name, const double *got, const double *want,
                 int64_t n, double scale, double tolerance, double *worst)
{
    scale = fmax(scale, largest(want, n));
    for (int64_t i = 0; i < n && !c->wrong; i++) {
        const double far = got[i] == want[i] ? 0 : fabs(got[i] - want[i]) / scale;
        *worst = far > *worst ? far : *worst;
        if (!(far <= tolerance)) {
            char text[300];
            snprintf(text, sizeof text, " %s[%lld] is %.17g, should be %.17g (largest %g)", name,
                     (long long)i, got[i], want[i], scale);
            wrong(c, what, text);
        }
    }
}

static void run_form(const Case *c, FormKind f, LsRunMany *m, int valid, Results *to)
{
    LsRunGraph *r = ls_run_many_open(m, c->form[f].first);
    r->run.valid = valid > 0 ? valid : r->g->batch;
    results_run(r, c->form[f].net, 1, 1, to);
    ls_run_graph_free(r);
}

static const double *value_of(const Results *r, const char *prefix, const char *name, int64_t *n)
{
    char key[200];
    snprintf(key, sizeof key, "%s%s", prefix, name);
    const int at = results_find(r, key);
    *n = at >= 0 ? ls_count(&r->shape[at]) : 0;
    return at >= 0 ? r->value[at] : NULL;
}

/* Runs everything, and compares it. Its results are those of the plan without recomputation, up to
 * the tolerance. */
static void check_every(Case *c, FormKind f, LsRunMany *m)
{
    Form *form = &c->form[f];
    char why[300];
    Results every = {0}, none = {0};
    LsRunGraph *r = ls_run_many_open(m, form->first + 1);
    results_run(r, form->net, 1, 1, &every);
    const double before = count.worst[c->format];
    if (!every_plan_agrees(r, &form->every, format[c->format].ways,
                           1e-3 * fmin(1, c->kind == PRIVATE ? c->clip : 1),
                           &count.worst[c->format], why, sizeof why))
        wrong(c, "", why);
    if (verbose && count.worst[c->format] > before)
        printf("--seed %llu --kind %s --type %s: ways differ by %g\n", (unsigned long long)c->seed,
               kind_name[c->kind], format[c->format].name, count.worst[c->format]);
    count.ways += form->every.ways;
    count.again += form->every.again;
    count.inplace += form->every.inplace;
    run_form(c, f, m, 0, &none);
    double worst = 0;
    for (uint32_t k = 0; k < none.n && !c->wrong; k++) {
        int64_t n;
        const double *v = value_of(&every, "", none.name[k], &n);
        if (v != NULL && !isnan(largest(v, n)))
            near(c, "in the plan of everything", none.name[k], v, none.value[k], n,
                 f == F_CLIPPED ? 1e-2 * fmin(1, c->clip) : 0,
                 f == F_CLIPPED ? 10 * format[c->format].ways : 0, &worst);
    }
    ls_run_graph_free(r);
    results_free(&every);
    results_free(&none);
}

/* The gradients of samples, norms and clipped sums of one parameter. mean[k]: of the first k
 * samples. */
static void check_parameter(Case *c, const char *name, const Results mean[], const Results of[])
{
    const double tolerance = format[c->format].truth;
    double *worst = &count.truth[c->format];
    const int64_t batch = c->form[F_MEAN].net->a->batch;
    int64_t n, count_all, unused;
    const double *each = value_of(&of[F_TERMS], "psgrad/", name, &count_all),
                 *norm = value_of(&of[F_TERMS], "psnorm/", name, &unused);
    const double *all = value_of(&of[F_TERMS], "", "psnorm", &unused),
                 *sum = value_of(&of[F_CLIPPED], "grad/", name, &n);
    if (each == NULL || norm == NULL || all == NULL)
        return wrong(c, "there is no gradient of samples: ", name);
    n = count_all / batch;
    double *want = calloc((size_t)n + 1, sizeof *want),
           scale = fmax(1e-2, largest(each, count_all)), squares[MOST_SAMPLES] = {0};
    for (int64_t s = 0; s < batch; s++) {
        const double *now = value_of(&mean[s + 1], "grad/", name, &unused);
        const double *before = s > 0 ? value_of(&mean[s], "grad/", name, &unused) : NULL;
        for (int64_t i = 0; i < n; i++) {
            want[i] = now == NULL
                          ? NAN
                          : (double)(s + 1) * now[i] - (before != NULL ? (double)s * before[i] : 0);
            squares[s] += each[s * n + i] * each[s * n + i];
        }
        near(c, "the gradient of a sample:", name, each + s * n, want, n, scale, tolerance, worst);
        squares[s] = sqrt(squares[s]);
    }
    near(c, "norms:", name, norm, squares, batch, 0, tolerance, worst);
    for (int f = F_EVERY; f <= F_TILES && !c->wrong; f++) {
        const double *other = c->form[f].there ? value_of(&of[f], "psnorm/", name, &unused) : NULL;
        if (other != NULL)      /* squares that cancel are as exact as the largest of them */
            near(c, "norms by another way:", name, other, norm, batch, 0, tolerance, worst);
    }
    for (int64_t i = 0; i < n && sum != NULL; i++) {
        want[i] = 0;
        for (int64_t s = 0; s < batch; s++)
            want[i] += fmin(1, c->clip / all[s]) * each[s * n + i] / 3;
    }
    if (sum != NULL)
        near(c, "the clipped sum:", name, sum, want, n, 1e-2 * fmin(1, c->clip), tolerance, worst);
    free(want);
}

static void check_truth(Case *c, LsRunMany *m)
{
    const int64_t batch = c->form[F_MEAN].net->a->batch;
    Results mean[MOST_SAMPLES + 1] = {0}, of[FORMS] = {0};
    for (int k = 1; k <= batch; k++)
        run_form(c, F_MEAN, m, k, &mean[k]);
    for (int f = F_TERMS; f < FORMS; f++)
        if (c->form[f].there)
            run_form(c, (FormKind)f, m, 0, &of[f]);
    for (uint32_t k = 0; k < mean[1].n && !c->wrong; k++)
        if (strncmp(mean[1].name[k], "grad/", 5) == 0)
            check_parameter(c, mean[1].name[k] + 5, mean, of);
    for (int k = 1; k <= batch; k++)
        results_free(&mean[k]);
    for (int f = 0; f < FORMS; f++)
        results_free(&of[f]);
}

/* The graph without alternatives has the same bits. */
static void check_plain(Case *c, LsRunMany *m)
{
    Results plain = {0}, every = {0};
    double worst = 0;
    run_form(c, F_MEAN, m, 0, &plain);
    run_form(c, F_EVERY, m, 0, &every);
    for (uint32_t k = 0; k < plain.n && !c->wrong; k++) {
        int64_t n;
        const double *v = value_of(&every, "", plain.name[k], &n);
        if (v != NULL && !isnan(largest(v, n)))
            near(c, "without alternatives", plain.name[k], plain.value[k], v, n, 0, 0, &worst);
    }
    results_free(&plain);
    results_free(&every);
}

static void check_case(Case *c, LsRunMany *m)
{
    for (int f = 0; f < FORMS && !c->wrong; f++)
        if (c->form[f].there)
            check_every(c, (FormKind)f, m);
    if (c->kind == PLAIN && !c->wrong)
        check_plain(c, m);
    if (c->kind != PLAIN && format[c->format].truth > 0 && !c->wrong)
        check_truth(c, m);
}

/* ---- many graphs ---- */

static void run_batch(Case *c, int n, const char *flags)
{
    const int bytes = format[c[0].format].bytes;
    LsCtx cx = {.arena = ls_arena_new()};
    LsTarget target = ls_target_cpu(bytes);
    LsRunMany *m = ls_run_many_new(&cx, bytes);
    for (int k = 0; k < n; k++)
        prepare(&c[k], m, &target);
    const bool built = ls_run_many_build(m, flags);
    if (!built)
        printf("the programs from seed %llu on do not compile\n", (unsigned long long)c[0].seed);
    count.wrong += !built;
    for (int k = 0; k < n; k++) {
        if (built && !c[k].empty && !c[k].wrong)
            check_case(&c[k], m);
        count.graphs++;
        count.empty += c[k].empty;
        for (int f = 0; f < FORMS; f++)
            if (c[k].form[f].net != NULL)
                net_free(c[k].form[f].net);
    }
    ls_run_many_free(m);
    ls_arena_free(cx.arena);
}

static int named(const char *const *name, int n, const char *text)
{
    for (int k = 0; k < n; k++)
        if (strcmp(name[k], text) == 0)
            return k;
    fprintf(stderr, "every_way: what is '%s'?\n", text);
    exit(2);
}

int main(int argc, char **argv)
{
    static const char *const type[] = {"f64", "f32", "bf16"};
    static const int in_turn[] = {0, 1, 2, 0, 1, 0};        /* types, by batches */
    int64_t seed = 1, graphs = tests_do_less() ? 10 : tests_part(300, 30);
    int kind = -1, of = -1;
    const char *flags = "-O0";
    for (int k = 1; k < argc; k++) {
        const bool more = k + 1 < argc;
        if (strcmp(argv[k], "-v") == 0)
            verbose = true;
        else if (more && strcmp(argv[k], "--seed") == 0)
            seed = atoll(argv[++k]);
        else if (more && strcmp(argv[k], "--graphs") == 0)
            graphs = atoll(argv[++k]);
        else if (more && strcmp(argv[k], "--kind") == 0)
            kind = named(kind_name, KINDS, argv[++k]);
        else if (more && strcmp(argv[k], "--type") == 0)
            of = named(type, FORMATS, argv[++k]);
        else if (more && strcmp(argv[k], "--cc-flags") == 0)
            flags = argv[++k];
        else
            return fprintf(stderr, "every_way: what is '%s'?\n", argv[k]), 2;
    }
    for (int64_t k = 0; k < graphs; k += AT_ONCE) {
        Case c[AT_ONCE] = {{0}};
        const int n = graphs - k < AT_ONCE ? (int)(graphs - k) : AT_ONCE;
        for (int i = 0; i < n; i++)
            c[i] = (Case){.seed = (uint64_t)(seed + k + i),
                          .kind = kind >= 0 ? (Kind)kind : (Kind)((seed + k + i + 1) % KINDS),
                          .format = of >= 0 ? of : in_turn[k / AT_ONCE % 6]};
        run_batch(c, n, flags);
    }
    printf("%d graphs from seed %lld, %d left out; %d other ways, %d second runs, %d runs in "
           "place; %d wrong\n",
           count.graphs, (long long)seed, count.empty, count.ways, count.again, count.inplace,
           count.wrong);
    for (int k = 0; k < FORMATS; k++)
        printf("%s: ways differ by %g, gradients from the truth by %g\n", format[k].name,
               count.worst[k], count.truth[k]);
    return count.wrong > 0;
}
