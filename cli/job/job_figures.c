/* cli/job/job_figures.c -- what is known of a job that is loaded or planned: its bytes, its times,
 * its limits. job_start.c, job_load.c and job_plan.c make it so. */
#include "cli/job/job_parts.h"

#include "cli/job/memory_here.h"
#include "codegen/planning/step_replay.h"
#include "runtime/ls_program.h"
#include "scheduler/plan/plan_audit.h"
#include "scheduler/report/html.h"

#include <string.h>

const char *ls_bytes_text(LsArena *a, int64_t bytes)
{
    char text[24];
    return ls_arena_strdup(a, ls_page_bytes(text, bytes));
}

int ls_job_failed(const LsJob *job)
{
    fprintf(job->cx.log != NULL ? job->cx.log : stderr, "%s: %d error%s\n", job->cx.model,
            job->cx.nerror, job->cx.nerror == 1 ? "" : "s");
    return job->cx.exit_code != 0 ? job->cx.exit_code : LS_EXIT_MODEL;
}

double ls_job_plan_ns(const LsJob *job, const LsPlan *plan)
{
    const double runs =
        job->pipeline.ensemble.members > 0 ? (double)job->pipeline.ensemble.members : 1;
    const LsMachine *told = job->told != NULL ? job->told : &job->machine;
    if (job->graph_file)
        return plan->cost;
    if (job->machine.gpu || job->options->machine.costs != NULL)
        return job->once_plan.cost + plan->cost + job->machine.step;
    return runs * ls_replay_ns(job->cx.arena, job->train_problem, plan, told)
           + (job->shared != NULL
                  ? ls_replay_ns(job->cx.arena, job->shared->once, &job->once_plan, told)
                        - told->step
                  : 0);
}

void ls_job_set_arena(LsJob *job)
{
    const int64_t of[] = {job->plan.arena, job->eval_plan.arena, job->last_plan.arena,
                          job->update_plan.arena, job->once_plan.arena};
    job->arena_bytes = 0;
    for (int k = 0; k < 5; k++)
        job->arena_bytes = of[k] > job->arena_bytes ? of[k] : job->arena_bytes;
    job->arena_bytes *= ls_job_process(job).arenas;
}

const char *ls_job_gap_text(const LsJob *job)
{
    return ls_arena_printf(job->cx.arena, " (at most %.2f %% more than necessary)",
                           100 * ls_plan_gap(&job->plan, &job->report));
}

int64_t ls_job_micro_steps(const LsJob *job)
{
    return ls_options_parts(job->options) *
           (job->options->parts.accumulate > 1 ? job->options->parts.accumulate : 1);
}

static bool is_over_ranks(const LsJob *job)
{
    return job->train != NULL && job->train->rank.updates != NULL;
}

int ls_job_ranks(const LsJob *job) { return is_over_ranks(job) ? job->train->rank.count : 1; }

int64_t ls_job_own_steps(const LsJob *job)
{
    return ls_job_micro_steps(job) / (is_over_ranks(job) ? job->train->rank.choice[0] : 1);
}

double ls_job_update_ns(const LsJob *job)
{
    /* updates wait for it */
    const double memory = job->told != NULL ? job->machine.memory / job->told->memory : 1;
    return job->update_problem != NULL
               ? memory * job->update_plan.cost
                     / (job->train->rank.sliced ? job->train->rank.count : 1)
               : 0;
}

double ls_job_step_ns(const LsJob *job)
{
    const LsPlan *last = job->last_plan.nstep > 0 ? &job->last_plan : &job->plan;
    const int64_t parts = ls_options_parts(job->options) / ls_job_ranks(job);
    return (parts > 1 ? (double)(parts - 1) * ls_job_plan_ns(job, &job->plan) : 0)
           + ls_job_plan_ns(job, last) + ls_job_update_ns(job);
}

bool ls_job_of_store_all(const LsOptions *o)
{
    return o->memory.budget_of != NULL && strcmp(o->memory.budget_of, "store-all") == 0;
}

LsProcessBytes ls_job_process(const LsJob *job)
{
    const int64_t lanes = job->pipeline.ensemble.members > 0 ? job->pipeline.ensemble.lanes : 1;
    if (job->graph_file)
        return (LsProcessBytes){.arenas = 1};
    return (LsProcessBytes){job->state_bytes + (job->shared != NULL ? job->shared->bytes : 0),
                            job->input_bytes, job->exchange_bytes, lanes};
}

int64_t ls_job_fixed_bytes(const LsJob *job)
{
    const LsProcessBytes process = ls_job_process(job);
    return ls_process_fixed(&process);
}

int64_t ls_job_arena_budget(const LsJob *job, const LsBudget *b)
{
    const LsProcessBytes process = ls_job_process(job);
    const LsBudget arena = ls_budget_of_arena(b, &process);
    return ls_budget_arena_bytes(&arena, job->whole);
}

bool ls_job_audited(LsJob *job, const LsDag *dag, const LsPlan *plan)
{
    char why[512];
    return ls_audit(dag, plan, why, sizeof why)
        || ls_error(&job->cx, LS_NOWHERE, LS_E_VERIFY, NULL, "the plan is wrong: %s", why);
}

/* A GPU program must fit the device, whose size is not known here. */
bool ls_job_fits_machine(LsJob *job, int64_t bytes)
{
    LsArena *a = job->cx.arena;
    int64_t here = ls_memory_here();
    if (bytes > LS_MOST_BYTES)
        return ls_error(&job->cx, LS_NOWHERE, LS_E_BUDGET,
                        "check the sizes that --batch, --dim and "
                        "--shape give",
                        "training takes %s, but no machine addresses more than %s",
                        ls_bytes_text(a, bytes), ls_bytes_text(a, LS_MOST_BYTES));
    if (here > 0 && bytes > here && job->target.kind == LS_TARGET_CPU && !job->graph_file)
        ls_warn(&job->cx, LS_NOWHERE, "use a smaller --batch or --budget, or a larger machine",
                "the program takes %s, but this machine has %s", ls_bytes_text(a, bytes),
                ls_bytes_text(a, here));
    return true;
}
