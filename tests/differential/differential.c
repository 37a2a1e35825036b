/* tests/differential/differential.c -- compiles random graphs and compares every number with the
 * interpreter's.
 *
 *   differential [--seed N] [--graphs N] [--seconds N] [--ops N] [--type TYPE] [--cc-flags FLAGS]
 * [-v]
 *
 * Without options: the 30 graphs of the test, 300 for whole sets. --ops: operators of each graph (a
 * failing seed with fewer operators gives a beginning of its graph); --type: f64, f32, bf16, f16;
 * -v prints the graphs.
 *
 * Each graph (random_net.h) becomes two versions: lowered with all kernels' alternatives, and
 * without them. Of each version two plans run two steps of an optimizer, any of them, by random
 * strategies within random budgets. All four must pass the audit and give the same bits; the first
 * step's outputs, loss, gradients and updated state must be those of the interpreter, up to the
 * rounding errors that random noise shows to be possible; and the interpreter's gradients must be
 * those of differences.
 * The evaluation form beside the training graph must have the interpreter's outputs and loss, too.
 * */
#include "codegen/program/lowering.h"
#include "compiler/passes/channels_last.h"
#include "compiler/passes/passes.h"
#include "compiler/patterns/patterns.h"
#include "compiler/ir/graph_text.h"
#include "compiler/ir/optimizer.h"
#include "scheduler/plan/plan_audit.h"
#include "scheduler/plan/planner.h"
#include "tests/differential/expected.h"
#include "tests/differential/interpreter.h"
#include "tests/differential/results.h"
#include "tests/support/less.h"
#include "tests/support/run_many.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { VERSIONS = 2, PLANS = 2, RUNS = VERSIONS * PLANS, STEPS = 2 };
/* How numbers are computed; how large a rounding error is, and which numbers may as well be 0. */
static const struct {
    const char *name;
    int bytes;                  /* of a real that is not rounded to 16 bits */
    LsType compute;
    double eps, least;
} format[] = {{"f64", 8, LS_REAL, 1.2e-16, 1e-200},
              {"f32", 4, LS_REAL, 6e-8, 1e-25},
              {"bf16", 4, LS_BF16, 4e-3, 1e-20},
              {"f16", 4, LS_F16, 5e-4, 1e-4}};
enum { F64, F32, BF16, F16, FORMATS };
enum { AT_ONCE = 15 }; /* graphs in one call of the C compiler */

typedef struct Case {
    uint64_t seed;
    int nops, format;
    Net *net[VERSIONS + 1]; /* the last one: the evaluation form */
    LsProblem *problem[VERSIONS + 1];
    LsPlan plan[VERSIONS][PLANS];
    int first[VERSIONS + 1]; /* among the programs */
    const char *why;         /* this graph is left out */
    bool wrong;
} Case;

static struct {
    int graphs, empty, wrong, checked, skipped, loose, values;
} count;
static bool verbose;

static void wrong(Case *c, const char *what, const char *more)
{
    if (!c->wrong)
        printf("--seed %llu --ops %d --type %s: ", (unsigned long long)c->seed, c->nops,
               format[c->format].name);
    printf("%s%s%s\n", c->wrong ? "  " : "", what, more);
    count.wrong += !c->wrong;
    c->wrong = true;
    fflush(stdout);
}

/* ---- compiling ---- */
/* A setting's value: its default, but for those that change what runs, and for roots of small
 * numbers. */
static double some_setting(Dice *d, const LsSetting *s)
{
    static const struct {
        const char *hyper;
        double value[2];
    } some[] = {{"eps", {1e-3, 1e-3}},   {"beta2", {0.99, 0.99}}, {"momentum", {0, 0.9}},
                {"decay", {0, 0.01}},    {"lr_decay", {0, 0.1}},  {"initial", {0, 0.1}},
                {"rate_part", {0.1, 1}}, {"trust", {0.1, 0.1}}};
    const bool second = roll(d, 2) != 0;
    for (size_t k = 0; k < sizeof some / sizeof *some; k++)
        if (strcmp(s->hyper, some[k].hyper) == 0)
            return some[k].value[second];
    return s->kind == LS_SET_FLAG ? second : atof(s->usual);
}

static LsOptimizerOptions some_optimizer(Dice *d)
{
    LsOptimizerOptions o = {.kind = (LsOptimizerKind)roll(d, LS_OPT_NONE)};
    const LsSetting *of = ls_optimizer_row[o.kind].setting;
    for (int k = 0; k < LS_SETTINGS && of[k].name != NULL; k++)
        if (of[k].hyper != NULL)
            *(double *)(uintptr_t)ls_hyper_find(&o.hyper, of[k].hyper, strlen(of[k].hyper)) =
                some_setting(d, &of[k]);
    o.hyper.nesterov = o.hyper.momentum > 0 ? o.hyper.nesterov : 0;
    o.hyper.bf16 = 0;           /* the interpreter's moments are not rounded at random */
    o.hyper.ema = roll(d, 4) == 0 && o.kind < LS_FREE_SGD ? 0.9 : 0;
    o.clip_norm = roll(d, 4) == 0 ? 0.5 : 0;
    o.clip_value = roll(d, 6) == 0 ? 0.1 : 0;
    return o;
}

/* The interpreter's twin gets its gradients and updates, and nothing else. */
static bool differentiate_reference(Case *c, const LsOptimizerOptions *o)
{
    Net *net = c->net[0];
    const bool ok = ls_autodiff(&net->cx, net->b) && ls_optimizer(&net->cx, net->b, o) &&
                    ls_verify(&net->cx, net->b);
    net->ref = interpreter_new(net->b); /* nodes and values have other numbers now */
    return ok;
}

/* The order of compiler/pipeline.c. */
static bool pass_all(Case *c, Net *net, const LsOptimizerOptions *o, const LsGraph *like)
{
    static const struct {
        const char *name;
        bool (*run)(LsCtx *, LsGraph *);
    } pass[] = {{"patterns", ls_patterns}, {"heads", ls_heads}, {"autodiff", ls_autodiff},
                {"optimizer", NULL},       {"dce", ls_dce},     {"layout", NULL},
                {"residual", ls_residual}, {"precision", NULL}, {"fuse", ls_fuse},
                {"split", ls_split}};
    const LsPrecision as = {.compute = format[c->format].compute};
    for (size_t k = 0; k < sizeof pass / sizeof *pass; k++) {
        const bool of_training = k == 2 || k == 3 || k == 6;
        if (of_training && !net->a->training)
            continue;
        const bool ok = pass[k].run != NULL ? pass[k].run(&net->cx, net->a)
                        : k == 5            ? ls_layout(&net->cx, net->a, like)
                        : k == 7            ? ls_precision(&net->cx, net->a, &as)
                                            : ls_optimizer(&net->cx, net->a, o);
        if (!ok || !ls_verify(&net->cx, net->a)) {
            wrong(c, "refused by the pass ", pass[k].name);
            return false;
        }
    }
    return true;
}

/* Version 1 brings the evaluation form with it. */
static void lower(Case *c, int version, const LsTarget *target)
{
    Net *net = c->net[version];
    LsGraph *eval = version == 1 ? c->net[VERSIONS]->a : ls_graph_new(&net->cx);
    LsLowering l = {.target = target,
                    .name = "random",
                    .no_alternatives = version == 0,
                    .store_gradients = version == 0,
                    .train = net->a,
                    .eval = eval};
    if (!ls_lower(&net->cx, &l))
        wrong(c, "lowering refuses", "");
    c->problem[version] = l.train_problem;
    if (version == 1)
        c->problem[VERSIONS] = l.eval_problem;
}

/* ---- plans ---- */
static void plan_one(Case *c, int version, int k, Dice *d)
{
    static const char *const strategy[] = {"auto", "chen",     "exact",     "approx",
                                           "chen", "exact-tc", "approx-mc", "approx-tc"};
    LsProblem *p = c->problem[version];
    LsArena *arena = c->net[version]->cx.arena;
    LsPlan *out = &c->plan[version][k];
    LsPlanReport r;
    char why[300];
    LsPlanOptions o = {.strategy =
                           strategy[roll(d, p->dag.nnode > 60 ? 7 : 8) + (p->dag.nnode > 60)],
                       .effort = 1 + roll(d, 3),
                       .unproven = true,
                       .seconds = 100,
                       .budget.least = roll(d, 4) == 0,
                       .no_inplace = roll(d, 6) == 0,
                       .max_lower_sets = 200};
    o.budget.percent = 20 + roll(d, 80);
    if (version == 0 && k == 0) {
        if (!ls_plan_none(arena, &p->dag, out))
            wrong(c, "no plan without recomputation", "");
    } else if (!ls_plan(arena, &p->dag, &o, out, &r)) {
        o.budget.percent = 0;
        o.budget.bytes = r.least;
        if (r.error == NULL)
            wrong(c, "no plan, without a reason", "");
        if (!ls_plan(arena, &p->dag, &o, out, &r) && !ls_plan_none(arena, &p->dag, out))
            wrong(c, "no plan within the least budget", "");
    }
    if (!c->wrong && !ls_audit(&p->dag, out, why, sizeof why))
        wrong(c, "the audit of a plan: ", why);
}

/* The evaluation form, with the training plan that `lowerset compile` would put beside it. */
static void add_evaluation(Case *c, LsRunMany *m)
{
    LsProblem *const both[2] = {c->problem[1], c->problem[VERSIONS]};
    LsPlan plan[2] = {c->plan[1][0]};
    if (!ls_plan_none(c->net[VERSIONS]->cx.arena, &both[1]->dag, &plan[1]) ||
        (c->first[VERSIONS] = ls_run_many_add(m, both, plan)) < 0)
        wrong(c, "the evaluation form cannot be printed", "");
}

static void prepare(Case *c, LsRunMany *m, const LsTarget *target)
{
    for (int v = 0; v <= VERSIONS; v++)
        c->net[v] = net_new(c->seed, c->nops, v < VERSIONS);
    Dice d = c->net[0]->dice;
    const LsOptimizerOptions o = some_optimizer(&d);
    if (!ls_is(c->net[0]->b->objective.loss)) {
        c->why = "no loss";
        return;
    }
    if (!differentiate_reference(c, &o) || c->net[0]->b->ngrad == 0) {
        c->why = c->net[0]->cx.last == LS_E_NO_GRAD ? "no gradient" : "no parameter";
        return;
    }
    for (int v = 0; v < VERSIONS && !c->wrong; v++) {
        if (!pass_all(c, c->net[v], &o, NULL) ||
            (v == 1 && !pass_all(c, c->net[VERSIONS], &o, c->net[v]->a)))
            return;
        lower(c, v, target);
        for (int k = 0; k < PLANS && !c->wrong; k++)
            plan_one(c, v, k, &d);
        if (!c->wrong && (c->first[v] = ls_run_many_add(
                              m, (LsProblem *[]){c->problem[v], c->problem[v]}, c->plan[v])) < 0)
            wrong(c, "the program cannot be printed", "");
    }
    if (!c->wrong)
        add_evaluation(c, m);
}

/* ---- comparing ---- */
static void same_bits(Case *c, const Results *a, const Results *b, int run, int step)
{
    for (uint32_t k = 0; k < b->n && !c->wrong; k++) {
        const int at = results_find(a, b->name[k]);
        const int64_t n = ls_count(&b->shape[k]);
        for (int64_t i = 0; at >= 0 && i < n && !c->wrong; i++)
            if (a->value[at][i] != b->value[k][i] &&
                !(isnan(a->value[at][i]) && isnan(b->value[k][i]))) {
                char text[200];
                snprintf(text, sizeof text,
                         "%s[%lld] is %.9g in plan %d (%s), %.9g in plan 0, step %d", b->name[k],
                         (long long)i, b->value[k][i], run,
                         c->plan[run / PLANS][run % PLANS].strategy, a->value[at][i], step);
                wrong(c, "other bits: ", text);
            }
    }
}

typedef struct Precision {
    Noise noise;
    double eps;
} Precision;

/* 0: near; 1: within the noise, which is large; 2: wrong. */
static int judge(const Precision *p, double got, double want, double off, double scale)
{
    const double close = 64 * p->eps * fabs(want) + 200 * p->eps * scale + p->noise.least;
    if (isnan(got) && !isnan(want))
        return 2;
    if (isnan(want) || isnan(off) || isinf(off))
        return 1;
    if (fabs(got - want) <= close)
        return 0;
    if (!(fabs(got - want) <= close + 300 * off))
        return 2;
    return off > 0.01 * fabs(want) + 0.01 * scale;
}

static double largest(const double *v, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fabs(v[i]) > most ? fabs(v[i]) : most;
    return most;
}

static void compare_value(Case *c, const Precision *p, Expected *want, uint32_t k,
                          const double *got)
{
    const int64_t n = ls_count(&want->shape[k]);
    const double scale = largest(want->value[k], n);
    bool widened = false;
    for (int64_t i = 0; i < n; i++) {
        int is = judge(p, got[i], want->value[k][i], want->off[k][i], scale);
        if (is == 2 && !widened) {
            Noise more = p->noise;
            more.relative *= 8;
            more.fixed *= 8;
            expected_widen(c->net[0], want, &more, 40);
            widened = true;
            is = judge(p, got[i], want->value[k][i], want->off[k][i], scale);
        }
        count.values++;
        count.loose += is == 1;
        if (is == 2) {
            char text[200];
            snprintf(text, sizeof text,
                     "[%lld] of %s is %.9g, should be %.9g +- %.2g (largest %.3g)", (long long)i,
                     ls_shape_text(c->net[0]->cx.arena, &want->shape[k]), got[i], want->value[k][i],
                     want->off[k][i], scale);
            wrong(c, want->name[k], text);
            for (int64_t j = 0; verbose && j < n; j++)
                printf("  [%lld] %.9g, should be %.9g\n", (long long)j, got[j], want->value[k][j]);
            return;
        }
    }
}

/* Of the evaluation form: outputs and loss alone. */
static void compare_evaluation(Case *c, LsRunMany *m, const Precision *p, Expected *want)
{
    Results got = {0};
    LsRunGraph *r = ls_run_many_open(m, c->first[VERSIONS] + 1);
    results_run(r, c->net[VERSIONS], 2, 1, &got);
    ls_run_graph_free(r);
    for (uint32_t k = 0; k < want->n && !c->wrong; k++) {
        const int at = results_find(&got, want->name[k]);
        const bool forward =
            strncmp(want->name[k], "out/", 4) == 0 || strcmp(want->name[k], "loss") == 0;
        if (forward && at >= 0)
            compare_value(c, p, want, k, got.value[at]);
        else if (forward)
            wrong(c, "the evaluation form lacks ", want->name[k]);
        if (c->wrong)
            printf("  in the evaluation form\n");
    }
    results_free(&got);
}

static void compare_reference(Case *c, LsRunMany *m, const Results *got)
{
    const double eps = format[c->format].eps;
    const double least = format[c->format].least;
    const Precision p = {.noise = {2 * eps, least, fmax(1.2e-7, 2 * eps), fmax(1e-25, least)},
                         .eps = format[c->format].compute == LS_REAL ? eps : eps / 32};
    Expected want = expected_keep(c->net[0], &p.noise, 6);
    for (uint32_t k = 0; k < want.n && (!c->wrong || verbose); k++) {
        const int at = results_find(got, want.name[k]);
        if (at >= 0)
            compare_value(c, &p, &want, k, got->value[at]);
        else
            wrong(c, "the program lacks ", want.name[k]);
    }
    if (!c->wrong)
        compare_evaluation(c, m, &p, &want);
}

static void check_case(Case *c, LsRunMany *m)
{
    Results got[RUNS][STEPS] = {0};
    for (int run = 0; run < RUNS; run++) {
        LsRunGraph *r = ls_run_many_open(m, c->first[run / PLANS] + run % PLANS);
        results_run(r, c->net[run / PLANS], run == 3 ? 3 : 1, STEPS, got[run]);
        ls_run_graph_free(r);
        for (int s = 0; s < STEPS && run > 0; s++)
            same_bits(c, &got[0][s], &got[run][s], run, s);
    }
    compare_reference(c, m, &got[0][0]);
    if (!c->net[0]->stops &&
        expected_check_gradients(c->net[0], &count.checked, &count.skipped) > 0)
        wrong(c, "gradients", "");
    for (int run = 0; run < RUNS; run++)
        for (int s = 0; s < STEPS; s++)
            results_free(&got[run][s]);
}

/* ---- many graphs ---- */
static void run_batch(uint64_t seed, int n, int nops, int of, const char *flags)
{
    LsCtx cx = {.arena = ls_arena_new()};
    LsTarget target = ls_target_cpu(format[of].bytes);
    LsRunMany *m = ls_run_many_new(&cx, format[of].bytes);
    Case *c = calloc((size_t)n, sizeof *c);
    for (int k = 0; k < n; k++) {
        c[k] = (Case){.seed = seed + (uint64_t)k, .nops = nops, .format = of};
        if (nops == 0)
            c[k].nops = 3 + (int)((c[k].seed * 2654435761u >> 8) % 22);
        prepare(&c[k], m, &target);
        if (verbose && c[k].net[0] != NULL)
            ls_graph_print(c[k].net[0]->b, stdout),
                ls_graph_print(c[k].problem[1] ? c[k].problem[1]->g : c[k].net[1]->a, stdout);
    }
    const bool built = ls_run_many_build(m, flags);
    if (!built)
        printf("the programs of seeds %llu to %llu do not compile\n", (unsigned long long)seed,
               (unsigned long long)seed + (unsigned)n - 1);
    count.wrong += !built;
    for (int k = 0; k < n; k++) {
        if (built && c[k].why == NULL && !c[k].wrong)
            check_case(&c[k], m);
        count.graphs++;
        count.empty += c[k].why != NULL;
        if (verbose && c[k].why != NULL)
            printf("seed %llu: %s\n", (unsigned long long)c[k].seed, c[k].why);
        for (int v = 0; v <= VERSIONS; v++)
            net_free(c[k].net[v]);
    }
    ls_run_many_free(m);
    ls_arena_free(cx.arena);
    free(c);
}

typedef struct Settings {
    int64_t seed, graphs, seconds, ops;
    const char *type;
    const char *flags;
} Settings;

static bool read_options(Settings *o, int argc, char **argv)
{
    const struct {
        const char *name;
        int64_t *to;
    } number[] = {{"--seed", &o->seed},
                  {"--graphs", &o->graphs},
                  {"--seconds", &o->seconds},
                  {"--ops", &o->ops}};
    for (int k = 1; k < argc; k++) {
        bool known = strcmp(argv[k], "-v") == 0;
        verbose |= known;
        const char **text = strcmp(argv[k], "--cc-flags") == 0 ? &o->flags
                            : strcmp(argv[k], "--type") == 0   ? &o->type
                                                               : NULL;
        if (text != NULL && k + 1 < argc) {
            *text = argv[++k];
            continue;
        }
        for (size_t i = 0; i < sizeof number / sizeof *number && !known && k + 1 < argc; i++)
            if (strcmp(argv[k], number[i].name) == 0) {
                *number[i].to = atoll(argv[++k]);
                known = true;
            }
        if (!known)
            return fprintf(stderr, "differential: what is '%s'?\n", argv[k]), false;
    }
    return true;
}

/* Batch k: floats and doubles in turn, and each with all flags. */
static void run_one(const Settings *o, int64_t k, int n)
{
    static const char *const usual[] = {
        "-O0", "-O0 -march=native", "-O0", "-O0 -mavx2 -mfma",
        "-O0", "-O0 -march=native", "-O0", "-O3 -march=native -fno-math-errno -fno-trapping-math"};
    static const int in_turn[] = {F64, F32, F64, F32, BF16, F32, F64, F16};
    int of = in_turn[k % 8];
    for (int f = 0; f < FORMATS && o->type != NULL; f++)
        of = strcmp(format[f].name, o->type) == 0 ? f : of;
    run_batch((uint64_t)(o->seed + k * AT_ONCE), n, (int)o->ops, of,
              o->flags != NULL ? o->flags : usual[k / 2 % 8]);
}

int main(int argc, char **argv)
{
    Settings o = {.seed = 1, .graphs = tests_part(300, 30)};
    if (!read_options(&o, argc, argv))
        return 2;
    const time_t start = time(NULL);
    for (int64_t k = 0; o.seconds > 0 ? time(NULL) - start < o.seconds : k * AT_ONCE < o.graphs;
         k++) {
        const int64_t left = o.graphs - k * AT_ONCE;
        run_one(&o, k, o.seconds > 0 || left > AT_ONCE ? AT_ONCE : (int)left);
    }
    printf("%d graphs from seed %lld, %d without a gradient; %d values, %d of them loosely; %d "
           "gradients by differences, %d "
           "not smooth; %d wrong\n",
           count.graphs, (long long)o.seed, count.empty, count.values, count.loose, count.checked,
           count.skipped, count.wrong);
    return count.wrong > 0;
}
