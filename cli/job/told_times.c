/* cli/job/told_times.c -- see told_times.h. */
#include "cli/job/told_times.h"

#include "cli/job/machine_choice.h"
#include "cli/job/machine_probe.h"
#include "scheduler/algorithms/tasks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *name_of(LsJob *job, const LsMachine *m, const char *more)
{
    return ls_arena_printf(job->cx.arena, "%s, %d thread%s%s", m->name, m->threads,
                           m->threads == 1 ? "" : "s", more);
}

static bool is_probed(void)
{
    const char *said = getenv("LOWERSET_PROBE");
    return said == NULL || (strcmp(said, "off") != 0 && strcmp(said, "0") != 0);
}

/* Times are told of a processor's machine whose threads are known; measured costs and GPUs are what
 * they are. */
static bool can_scale(const LsJob *job)
{
    return !job->graph_file && job->options->machine.costs == NULL && !job->machine.gpu &&
           job->machine.threads > 0;
}

void ls_job_set_threads(LsJob *job)
{
    if (!can_scale(job) || job->options->machine.threads == 0)
        return;
    LsMachine *m = ls_arena_alloc(job->cx.arena, 1, sizeof *m);
    *m = ls_machine_with_threads(&job->machine, (int)job->options->machine.threads);
    job->told = m;
    job->told_of = name_of(job, m, "");
}

/* This computer may be faster or slower than the machine: what its probe reads beside what it read
 * there. The pass over memory stays in some computers' cache and not in others', so it counts for
 * no more than a factor of two. */
static bool scale(LsMachine *m)
{
    LsProbed is;
    static const double most = 20, most_memory = 2;
    if (m->probe_product <= 0 || m->probe_pass <= 0 || !ls_machine_probe(m->threads, &is))
        return false;
    const double peak = fmin(fmax(is.flops / m->probe_product, 1 / most), most);
    const double memory = fmin(fmax(is.memory / m->probe_pass, 1 / most_memory), most_memory);
    for (int k = 0; k < LS_NPEAKS; k++)
        m->peak[k] *= peak;
    m->memory *= memory;
    for (int k = 0; k < LS_NCOSTS; k++)
        m->cost[k].launch /= peak;
    return true;
}

static bool is_for_here(const LsOptions *o)
{
    return o->machine.march == NULL || strcmp(o->machine.march, "native") == 0;
}

/* The machine that times are told of: f32 and bf16 have the same one, whichever gave the plan its
 * costs. */
static LsMachine told_machine(const LsJob *job)
{
    LsMachine m;
    const bool tiles = is_for_here(job->options) && ls_machine_has_tiles();
    if (job->options->machine.name != NULL || !job->built_in ||
        !ls_machine_find(&m, tiles ? "cpu-amx" : "cpu"))
        m = job->machine;
    return m;
}

void ls_job_tell_people(LsJob *job)
{
    const LsOptions *o = job->options;
    if (!can_scale(job) || o->machine.name != NULL)
        return;
    LsMachine *m = ls_arena_alloc(job->cx.arena, 1, sizeof *m);
    const LsMachine of = told_machine(job);
    *m = ls_machine_with_threads(&of, o->machine.threads > 0 ? (int)o->machine.threads
                                                             : ls_processors());
    const bool probed = job->built_in && is_for_here(o) && is_probed() && scale(m);
    job->told = m;
    job->told_of = name_of(job, m, probed ? ", probed" : "");
}

LsPredicted ls_job_predict(LsJob *job)
{
    const LsMachine of = told_machine(job), *told = job->told;
    LsPredicted p = {.machine =
                         can_scale(job) ? ls_arena_strdup(job->cx.arena, of.name) : job->of.machine,
                     .n = can_scale(job) ? LS_PREDICTED : 1};
    if (job->staged != NULL)
        return (LsPredicted){.n = 0};   /* threads are dealt out among stages */
    for (int k = 0; k < p.n; k++) {
        const LsMachine m = ls_machine_with_threads(&of, 1 << k);
        job->told = can_scale(job) ? &m : NULL;
        p.ns[k] = ls_job_step_ns(job);
    }
    job->told = told;
    return p;
}

const char *ls_job_told_of(const LsJob *job)
{
    return job->told_of != NULL ? job->told_of : ls_job_costs_of(job);
}

const char *ls_job_costs_of(const LsJob *job)
{
    const LsCostsOf *of = &job->of;
    return of->threads > 0 ? ls_arena_printf(job->cx.arena, "%s, %d thread%s", of->machine,
                                             of->threads, of->threads == 1 ? "" : "s")
                           : of->machine;
}
