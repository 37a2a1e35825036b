/* cli/job/shared_job.c -- of an ensemble: what is the same for all members runs once. */
#include "cli/job/job_parts.h"

static bool has_hints(const LsOptions *o)
{
    return o->memory.keep.n + o->memory.forget.n > 0 || o->memory.recompute != NULL;
}

bool ls_job_share(LsJob *job)
{
    const LsPlanOptions once = {.strategy = "none", .no_inplace = job->options->memory.no_inplace};
    LsPlanReport report;
    job->whole_problem = job->train_problem;
    if (job->pipeline.ensemble.members < 2 || has_hints(job->options))
        return true;
    LsSharedSteps *s = ls_arena_alloc(job->cx.arena, 1, sizeof *s);
    *s = ls_shared_steps(&job->cx, job->train_problem);
    if (s->once == NULL)
        return true;
    if (!ls_plan(job->cx.arena, &s->once->dag, &once, &job->once_plan, &report))
        return false;
    job->shared = s;
    job->train_problem = s->each;
    job->dag = &s->each->dag;
    return true;
}

void ls_job_unshare(LsJob *job)
{
    job->shared = NULL;
    job->once_plan = (LsPlan){.nstep = 0};
    job->train_problem = job->whole_problem;
    job->dag = &job->whole_problem->dag;
}
