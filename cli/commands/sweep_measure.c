/* cli/commands/sweep_measure.c -- see sweep_measure.h.
 *
 * All programs are built first. Then they are timed in rounds over all programs, and the fastest
 * round of each program counts: a temporary load on the machine does no harm. A last run of a
 * few steps measures which bytes of the arena are written; that takes time itself, so it is not
 * timed. */
#include "cli/commands/sweep_measure.h"

#include "cli/commands/compile.h"
#include "cli/commands/run_trainer.h"
#include "cli/report/output.h"
#include "cli/job/told_times.h"
#include "scheduler/algorithms/tasks.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 3, MIN_STEPS = 8, MAX_STEPS = 200, TOUCHING_STEPS = 3 };

typedef struct Program {
    const char *path, *hash, *what;             /* what: for people */
    const LsPlan *plan;
    int64_t budget;                             /* bytes in all; 0: none */
    LsSweepRun *run;
} Program;

typedef struct Measuring {
    LsJob *job;
    LsSweep *sweep;
    const char *dir, *log, *out;
    Program *program; uint32_t n;
} Measuring;

/* Number of steps for about half a second; few while the time of a step is not known. */
static int64_t count_steps(double step_ns)
{
    double steps = step_ns > 0 ? 5e8 / step_ns : MIN_STEPS;
    return steps < MIN_STEPS ? MIN_STEPS : steps > MAX_STEPS ? MAX_STEPS : (int64_t)steps;
}

static void add(Measuring *m, Program p)
{
    p.path = ls_arena_printf(m->job->cx.arena, "%s/%" PRIu32, m->dir, m->n);
    if (m->sweep->predicted_of == NULL) {
        ls_job_tell_people(m->job);
        m->sweep->predicted_of = ls_job_told_of(m->job);
    }
    p.run->predicted_ns =
        (double)ls_options_parts(m->job->options) * ls_job_plan_ns(m->job, p.plan);
    m->program[m->n++] = p;
}

static const Program *find(const Measuring *m, const char *hash)
{
    for (uint32_t k = 0; k < m->n; k++)
        if (strcmp(m->program[k].hash, hash) == 0)
            return &m->program[k];
    return NULL;
}

/* Lists the program without recomputation, and the programs of different plans at the chosen
 * points, from strategy `first` on. */
static void list(Measuring *m, const uint32_t *chosen, uint32_t n, uint32_t first)
{
    LsArena *a = m->job->cx.arena;
    char *hash = ls_arena_alloc(a, 17, 1);
    ls_plan_hash(&m->job->none, hash);
    m->program = ls_arena_alloc(a, 1 + n * (m->sweep->nstrategy - first), sizeof *m->program);
    add(m, (Program){.hash = hash, .what = "nothing recomputed", .plan = &m->job->none,
                     .run = &m->sweep->plain});
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t s = first; s < m->sweep->nstrategy; s++) {
            LsSweepPoint *p = &m->sweep->point[chosen[k]];
            LsSweepCell *c = &p->cell[s];
            if (c->feasible && find(m, c->report->hash) == NULL)
                add(m, (Program){.hash = c->report->hash, .plan = &c->plan, .run = &c->run,
                                 .what = ls_arena_printf(a, "%s within %.1f %%",
                                                         m->sweep->strategy[s],
                                                         ls_sweep_percent(m->sweep, p)),
                                 .budget = ls_process_total(&m->sweep->process, p->budget)});
        }
}

static int build(Measuring *m, const Program *p)
{
    return ls_compile_plan(m->job, p->plan, p->budget, p->path);
}

static int silent(const Measuring *m)
{
    fprintf(stderr, "lowerset: %s: the built program reports no steps\n",
            m->sweep->model);
    return LS_EXIT_TOOL;
}

/* Private programs train on so many samples that (nearly) all of them are drawn: each update takes
 * the same time. */
static LsTrial trial(const Measuring *m, const Program *p)
{
    LsTrial t = {.of = m->sweep->model, .program = p->path, .threads = m->sweep->threads};
    const double expected = m->job->train != NULL ? m->job->train->privacy.expected : 0;
    t.draws = expected > 0;
    if (t.draws)
        t.data = ls_arena_printf(m->job->cx.arena, "synthetic:%.0f", ceil(expected));
    return t;
}

static int time_steps(Measuring *m, const Program *p)
{
    LsArena *a = m->job->cx.arena;
    LsTrial t = trial(m, p);
    t.log = m->log;
    t.steps = count_steps(p->run->measured_ns);
    int code = ls_trial_run(a, &t);
    double ns = code == 0 ? ls_trial_step_ns(a, m->log) : 0, *had = &p->run->measured_ns;
    if (ns > 0 && (*had == 0 || ns < *had))
        *had = ns;
    return code != 0 || ns > 0 ? code : silent(m);
}

static int find_touched(Measuring *m, const Program *p)
{
    LsTrial t = trial(m, p);
    t.out = m->out;
    t.steps = TOUCHING_STEPS;
    t.measure = true;
    int code = ls_trial_run(m->job->cx.arena, &t);
    p->run->touched = code == 0 ? (int64_t)ls_trial_number(m->out, "touched", -1) : -1;
    return code != 0 || p->run->touched >= 0 ? code : silent(m);
}

static int for_all(Measuring *m, const char *doing, int (*what)(Measuring *, const Program *))
{
    int code = 0;
    for (uint32_t k = 0; code == 0 && k < m->n; k++) {
        if (!m->job->options->output.quiet)
            fprintf(stderr, "%s: %s program %" PRIu32 " of %" PRIu32 ": %s\n", m->sweep->model,
                    doing, k + 1, m->n, m->program[k].what);
        code = what(m, &m->program[k]);
    }
    return code;
}

/* Copies results to the cells whose plan was measured in another cell. */
static void copy_runs(const Measuring *m, const uint32_t *chosen, uint32_t n, uint32_t first)
{
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t s = first; s < m->sweep->nstrategy; s++) {
            LsSweepCell *c = &m->sweep->point[chosen[k]].cell[s];
            if (c->feasible)
                c->run = *find(m, c->report->hash)->run;
        }
}

static void remove_files(const Measuring *m)
{
    for (uint32_t k = 0; k < m->n; k++)
        unlink(m->program[k].path);
    unlink(m->log);
    unlink(m->out);
    rmdir(m->dir);
}

int ls_sweep_measure(LsJob *job, LsSweep *sweep, const uint32_t *chosen, uint32_t n,
                     bool every_strategy)
{
    uint32_t first = every_strategy ? 0 : sweep->nstrategy - 1;
    int cores = ls_processors(), meant = job->machine.threads;
    Measuring m = {.job = job, .sweep = sweep, .dir = ls_temporary_folder(job->cx.arena)};
    if (m.dir == NULL)
        return LS_EXIT_TOOL;
    m.log = ls_arena_printf(job->cx.arena, "%s/log", m.dir);
    m.out = ls_arena_printf(job->cx.arena, "%s/out", m.dir);
    sweep->threads = meant > 0 && meant < cores ? meant : cores;
    list(&m, chosen, n, first);
    int code = for_all(&m, "building", build);
    for (int round = 0; code == 0 && round < ROUNDS; round++)
        code = for_all(&m, round == 0 ? "running" : "running again", time_steps);
    code = code != 0 ? code : for_all(&m, "measuring the memory of", find_touched);
    if (code == 0)
        copy_runs(&m, chosen, n, first);
    remove_files(&m);
    return code;
}
