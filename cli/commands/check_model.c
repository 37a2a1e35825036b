/* cli/commands/check_model.c -- see check_model.h.
 *
 * Up to four programs are built: as the options say, without a budget ("plain") and within one
 * ("within"); and for the CPU, storing all gradients, in doubles ("wide") and in floats ("narrow",
 * often the same as "plain"). The checks run one step at a learning rate of 0, except the check of
 * budgets, which runs a few steps of training. */
#include "cli/commands/check_model.h"

#include "base/heap.h"
#include "cli/commands/compare_dumps.h"
#include "cli/report/check_table.h"
#include "cli/commands/compile.h"
#include "cli/commands/run_trainer.h"
#include "cli/report/output.h"
#include "codegen/fusion/gradient_in_update.h"
#include "codegen/toolchain/cuda_probe.h"
#include "scheduler/algorithms/tasks.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUDGET_STEPS = 3, MOST_FILES = 16 };

/* Relative limits for the loss, the worst tensor and the median tensor. Different rounding flips a
 * ReLU here and there, which changes all gradients before it: deep batch norms over few values
 * amplify that to up to 7e-2, while a wrong kernel gives 1. A GPU may also be five times as far off
 * as the CPU's floats. The limits for doubles apply to external references. */
typedef struct Limits { double loss, worst, median; } Limits;
static const Limits of_floats = {1e-3, 2e-1, 5e-2},
                    of_gpu = {1e-3, 2e-2, 5e-3},
                    of_tf32 = {2e-2, 5e-1, 1e-1}, of_doubles = {1e-6, 1e-4, 1e-5};
/* When a network's floats are further than this from doubles, its gradients in TF32 prove nothing,
 * as TF32 rounds 2^13 times as coarsely. */
#define TOUCHY 1e-5

typedef struct Check {
    const LsOptions *o;
    LsArena *a;
    LsCheckTable table;
    LsOptions asked, cpu;       /* of jobs; cpu: the same options for the CPU, storing gradients */
    const char *dir, *file[MOST_FILES];
    int nfile;
    const char *err;            /* receives a program's messages */
    const char *plain, *wide, *narrow;          /* programs */
    const char *wide_dump, *narrow_dump;        /* dumps of their first step; NULL: not made */
    LsApart floats;             /* distance from doubles; loss < 0: not known */
    bool cuda, device;          /* a GPU is requested; a GPU exists */
    bool doubles, stores;       /* the requested program uses doubles; plain stores all gradients */
    int threads;
} Check;

static void tell(const Check *c, const char *doing)
{
    if (!c->o->output.quiet)
        fprintf(stderr, "%s: %s\n", c->o->model, doing);
}

static void add(Check *c, const char *name, bool passed, double off, double limit, const char *says)
{
    ls_check_add(&c->table, (LsCheckRow){name, passed ? LS_CHECK_PASSED : LS_CHECK_FAILED, off,
                                         limit, says});
}

static void skip(Check *c, const char *name, const char *says)
{
    ls_check_add(&c->table, (LsCheckRow){name, LS_CHECK_SKIPPED, 0, -1, says});
}

/* A file in the temporary folder, removed at the end. */
static const char *file(Check *c, const char *name)
{
    return c->file[c->nfile++] = ls_arena_printf(c->a, "%s/%s", c->dir, name);
}

static int unreadable(const Check *c, const char *why)
{
    fprintf(stderr, "lowerset: %s: %s\n", c->o->model, why);
    return LS_EXIT_MODEL;
}

/* ---- programs ---- */

/* Plans a job. Its diagnostics are printed if `aloud`, or if it fails; but not if `tried` and only
 * the budget is infeasible. */
static int plan(LsJob *job, const LsOptions *o, bool aloud, bool tried)
{
    char *text = NULL;
    size_t n = 0;
    int code = ls_job_start(job, o, false);
    if (code != 0)
        return code;
    job->unproven = !o->memory.prove;
    FILE *log = job->cx.log = ls_text_open(&text, &n);
    code = ls_job_plan(job);
    job->cx.log = NULL;
    ls_text_close(log, &text);
    if (code == 0 ? aloud : code != LS_EXIT_BUDGET || !tried)
        fwrite(text, 1, n, stderr);
    free(text);
    return code;
}

/* Builds the program of the options, without a budget. */
static int build(const LsOptions *o, const char *path)
{
    LsJob job;
    int code = plan(&job, o, false, false);
    code = code != 0 ? code : ls_compile_job(&job, path);
    ls_job_end(&job);
    return code;
}

static void copy_to_stderr(const char *path)
{
    char line[1024];
    FILE *f = fopen(path, "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        fputs(line, stderr);
    if (f != NULL)
        fclose(f);
}

static LsTrial trial(const Check *c, const char *program)
{
    return (LsTrial){.of = c->o->model, .program = program, .data = c->o->check.data, .err = c->err,
                     .steps = 1, .threads = c->threads, .hand_on = true};
}

/* Runs a program and prints its messages when it fails. */
static int run(const Check *c, const LsTrial *t)
{
    int code = ls_trial_run(c->a, t);
    if (code != 0)
        copy_to_stderr(c->err);
    return code;
}

static int dump(Check *c, const char *program, const char **to, const char *name)
{
    LsTrial t = trial(c, program);
    t.dump = *to = file(c, name);
    return run(c, &t);
}

/* ---- the plan, and the bits within its budget ---- */

/* Plans within the requested budget; without one, within half of the arena, else within the least
 * budget. */
static int plan_asked(Check *c, LsJob *job)
{
    bool given = c->o->memory.budget != NULL;
    c->asked = *c->o;
    c->asked.memory.budget = given ? c->o->memory.budget : "50%";
    int code = plan(job, &c->asked, !c->o->output.quiet, !given);
    if (given || code != LS_EXIT_BUDGET)
        return code;
    ls_job_end(job);
    c->asked.memory.budget = "min";
    return plan(job, &c->asked, !c->o->output.quiet, false);
}

static void add_plan(Check *c, const LsJob *job)
{
    c->table.plan = ls_arena_strdup(c->a, job->report.hash);
    add(c, "plan", true, 0, -1,
        ls_arena_printf(c->a,
                        "%" PRIu32 " steps in an arena of %s, overhead %.1f %%%s: replayed by "
                        "the auditor",
                        job->plan.nstep, ls_bytes_text(c->a, job->arena_bytes),
                        100 * ls_plan_overhead(&job->plan),
                        c->o->memory.prove ? ls_job_gap_text(job) : ""));
}

static int compare_bits(Check *c, const char *within, const char *total)
{
    const char *path[] = {c->plain, within}, *npz[2];
    const char *lr = ls_arena_printf(c->a, "%.17g", ls_options_lr(c->o));
    const char *name;
    char why[600];
    uint32_t n;
    tell(c, "training with and without the budget");
    for (int k = 0; k < 2; k++) {
        LsTrial t = trial(c, path[k]);
        t.steps = BUDGET_STEPS;
        t.lr = lr;
        t.dump = npz[k] = file(c, k == 0 ? "plain-steps.npz" : "within-steps.npz");
        int code = run(c, &t);
        if (code != 0)
            return code;
    }
    if (!ls_archive_same(c->a, npz[0], npz[1], &n, &name, why, sizeof why))
        return unreadable(c, why);
    add(c, "budget", name[0] == '\0', 0, -1,
        name[0] == '\0'
            ? ls_arena_printf(c->a,
                              "after %d steps within %s, all %" PRIu32
                              " tensors have the same bits as "
                              "without a budget",
                              BUDGET_STEPS, total, n)
            : ls_arena_printf(c->a,
                              "after %d steps within %s, '%s' has other bits than without a budget",
                              BUDGET_STEPS, total, name));
    return 0;
}

/* Builds both programs and compares them. */
static int run_asked(Check *c, LsJob *job)
{
    char none[17];
    const LsPlan within = job->plan;
    int64_t budget = job->budget;
    const char *path = file(c, "within"), *total =
        ls_bytes_text(c->a, ls_job_fixed_bytes(job) + job->arena_bytes);
    c->stores = ls_applied(job->train) == 0;
    c->plain = file(c, "plain");
    ls_plan_hash(&job->none, none);
    const char *because =
        strcmp(none, job->report.hash) == 0
            ? ls_arena_printf(c->a, "the plan within %s is the same as without a budget", total)
        : c->o->machine.nondeterministic ? "sums may run in any order: --allow-nondeterministic"
                                         : NULL;
    tell(c, "building the program without a budget");
    int code = ls_compile_plan(job, &job->none, 0, c->plain);
    if (because != NULL)
        skip(c, "budget", because);
    if (code != 0 || because != NULL)
        return code;
    tell(c, "building the program within the budget");
    code = ls_compile_plan(job, &within, budget, path);
    return code != 0 ? code : compare_bits(c, path, total);
}

static int check_asked(Check *c)
{
    LsJob job;
    tell(c, "planning");
    int code = plan_asked(c, &job);
    if (code == 0)
        add_plan(c, &job);
    if (code == 0 && c->cuda && !c->device)
        skip(c, "budget", "this machine has no NVIDIA GPU: programs for GPUs were not run");
    else if (code == 0)
        code = run_asked(c, &job);
    ls_job_end(&job);
    return code;
}

/* ---- gradients ---- */

static void set_cpu(Check *c)
{
    c->cpu = *c->o;
    c->cpu.machine.target = "cpu";
    c->cpu.output.dump_pass = c->cpu.machine.costs = NULL;
    c->cpu.memory.budget = c->cpu.memory.recompute = c->cpu.machine.precision =
        c->cpu.machine.bf16_sums = NULL;
    c->cpu.memory.strategy = "none";   /* as in plain; a search could only find another order */
    c->cpu.memory.keep = c->cpu.memory.forget = c->cpu.machine.wide = (LsList){0};
    c->cpu.memory.store_gradients = true;
    c->cpu.loss.head_gradient = "whole";
    c->cpu.machine.no_overlap = c->cpu.memory.prove = false;
    if (c->cuda)
        c->cpu.machine.name = NULL;
}

static int check_gradients(Check *c)
{
    LsOptions wide = c->cpu;
    wide.machine.precision = "f64";
    c->wide = file(c, "wide");
    tell(c, "building the program in doubles");
    int code = build(&wide, c->wide);
    if (code != 0)
        return code;
    tell(c, "comparing its gradients with finite differences of its loss");
    LsTrial t = trial(c, c->wide);
    t.log = file(c, "log");
    t.out = file(c, "out");
    t.gradients = c->o->check.elements > 0
                      ? ls_arena_printf(c->a, "--check-gradients=%" PRId64, c->o->check.elements)
                      : "--check-gradients";
    code = run(c, &t);
    if (code != 0 && code != LS_EXIT_CHECK)
        return code;
    if (code != 0)
        copy_to_stderr(t.out);
    const double stopped = ls_trial_number(t.log, "stopped", 0);
    const char *rest =
        stopped > 0 ? ls_arena_printf(
            c->a, "; %.0f parameters before a stopped gradient were left out", stopped)
                    : "";
    if (ls_trial_number(t.log, "elements", 0) == 0) {
        skip(c, "gradients",
             "a gradient is stopped between every parameter and the loss: its differences say "
             "nothing of gradients");
        return 0;
    }
    add(c, "gradients", code == 0, ls_trial_number(t.log, "worst", INFINITY),
        ls_trial_number(t.log, "limit", 0),
        ls_arena_printf(
            c->a,
            "%.0f elements of %.0f parameters compared with differences of the loss, in doubles; "
            "worst: %s%s",
            ls_trial_number(t.log, "elements", 0), ls_trial_number(t.log, "parameters", 0),
            ls_trial_text(c->a, t.log, "at"), rest));
    return 0;
}

/* ---- floats, GPUs and references ---- */

static bool is_within(const LsApart *d, const Limits *l)
{
    return d->loss <= l->loss && d->worst <= l->worst && d->median <= l->median;
}

static const char *distance_text(Check *c, const LsApart *d, const char *from)
{
    const char *loss = d->loss < 0 ? "" : ls_arena_printf(c->a, "loss %.1e; ", d->loss);
    return ls_arena_printf(c->a, "%s: %sof %" PRIu32 " tensors median %.1e, worst %.1e (%s)", from,
                           loss, d->ntensor, d->median, d->worst, d->name);
}

static int check_floats(Check *c)
{
    char why[600];
    if (c->doubles) {
        skip(c, "floats", "the program uses doubles");
        return 0;
    }
    c->narrow = !c->cuda && c->stores ? c->plain : file(c, "narrow");
    if (c->narrow != c->plain)
        tell(c, "building the program in floats");
    int code = c->narrow != c->plain ? build(&c->cpu, c->narrow) : 0;
    code = code != 0 ? code : dump(c, c->narrow, &c->narrow_dump, "narrow.npz");
    if (code != 0)
        return code;
    if (!ls_archive_apart(c->a, c->narrow_dump, c->wide_dump, false, &c->floats, why, sizeof why))
        return unreadable(c, why);
    add(c, "floats", is_within(&c->floats, &of_floats), c->floats.worst, of_floats.worst,
        distance_text(c, &c->floats, "gradients in floats against gradients in doubles"));
    return 0;
}

/* The limits for GPU programs, given the error of the CPU's floats. */
static Limits gpu_limits(const Check *c)
{
    bool tf32 = c->o->machine.precision != NULL && strcmp(c->o->machine.precision, "tf32") == 0;
    Limits l = tf32 ? of_tf32 : of_gpu;
    if (tf32 && c->floats.median > TOUCHY)
        return (Limits){l.loss, DBL_MAX, DBL_MAX};      /* any finite distance */
    l.loss = fmax(l.loss, 5 * c->floats.loss);
    l.worst = fmax(l.worst, 5 * c->floats.worst);
    l.median = fmax(l.median, 5 * c->floats.median);
    return l;
}

static int check_gpu(Check *c)
{
    char why[600];
    const char *npz;
    LsApart d;
    if (!c->cuda || !c->device) {
        if (c->cuda)
            skip(c, "gpu", "no NVIDIA GPU here");
        return 0;
    }
    int code = dump(c, c->plain, &npz, "gpu.npz");
    if (code != 0)
        return code;
    if (!ls_archive_apart(c->a, npz, c->wide_dump, false, &d, why, sizeof why))
        return unreadable(c, why);
    const Limits l = gpu_limits(c);
    add(c, "gpu", is_within(&d, &l), d.worst, l.worst < DBL_MAX ? l.worst : -1,
        distance_text(c, &d, "gradients on the GPU against the CPU's in doubles"));
    return 0;
}

static int compare_reference(Check *c, const char *name, const char *npz, const Limits *l)
{
    char why[600];
    LsApart d;
    if (!ls_archive_apart(c->a, npz, c->o->check.against, true, &d, why, sizeof why))
        return unreadable(c, why);
    bool none = d.ntensor == 0 && d.loss < 0;
    const char *says = distance_text(c, &d, c->o->check.against);
    if (d.nlacking > 0)
        says =
            ls_arena_printf(c->a, "%s; %" PRIu32 " of its tensors are not computed by this model",
                            says, d.nlacking);
    add(c, name, !none && is_within(&d, l), d.worst, l->worst,
        none ? "the reference has no member loss, out/NAME or grad/PARAM of this model" : says);
    return 0;
}

static int check_reference(Check *c)
{
    if (c->o->check.against == NULL)
        return 0;
    int code = compare_reference(c, "reference", c->wide_dump, &of_doubles);
    return code != 0 || c->narrow_dump == NULL
               ? code : compare_reference(c, "ref floats", c->narrow_dump, &of_floats);
}

/* ---- the whole ---- */

static int check_all(Check *c)
{
    int code = check_asked(c);
    code = code != 0 ? code : check_gradients(c);
    code = code != 0 ? code : dump(c, c->wide, &c->wide_dump, "wide.npz");
    code = code != 0 ? code : check_floats(c);
    code = code != 0 ? code : check_gpu(c);
    return code != 0 ? code : check_reference(c);
}

static void look_for_device(Check *c)
{
    LsCudaFound found;
    ls_cuda_probe(&found, false);
    c->device = found.ndevice > 0;
}

int ls_check_model(const LsOptions *o)
{
    if (o->check.against != NULL && o->check.data == NULL) {
        fprintf(stderr,
                "lowerset: --against needs --data: the data that the reference was made with\n");
        return LS_EXIT_USAGE;
    }
    if (o->check.against != NULL && ls_options_parts(o) > 1) {
        fprintf(stderr, "lowerset: --against: programs of --microbatches show the gradients of a "
                        "batch's last part; leave one of "
                        "them out\n");
        return LS_EXIT_USAGE;
    }
    LsArena *a = ls_arena_new();
    Check c = {.o = o, .a = a, .table = {.arena = a, .model = o->model}, .floats = {.loss = -1},
               .cuda = o->machine.target != NULL && strcmp(o->machine.target, "cuda") == 0,
               .doubles = o->machine.precision != NULL && strcmp(o->machine.precision, "f64") == 0,
               .threads = ls_processors(), .dir = ls_temporary_folder(a)};
    int code = c.dir != NULL ? 0 : LS_EXIT_TOOL;
    set_cpu(&c);
    if (code == 0)
        c.err = file(&c, "err");
    if (c.cuda)
        look_for_device(&c);
    code = code != 0 ? code : check_all(&c);
    for (int k = 0; k < c.nfile; k++)
        unlink(c.file[k]);
    if (c.dir != NULL)
        rmdir(c.dir);
    if (code == 0) {
        (o->reports.json ? ls_check_print_json : ls_check_print)(&c.table);
        code = ls_check_failed(&c.table) > 0 ? LS_EXIT_CHECK : 0;
    }
    ls_arena_free(a);
    return code;
}
