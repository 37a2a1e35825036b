/* cli/report/policy_table.c -- see the header. Only the policies of a micro-batch are planned:
 * except-last runs the plans of all and of none. */
#include "cli/report/policy_table.h"

#include "base/json_print.h"
#include "cli/job/told_times.h"

#include <inttypes.h>
#include <string.h>

/* The policies in the order of the table. What the job has beside them is a row of its own. */
static const LsRecompute shown[] = {LS_RECOMPUTE_NONE, LS_RECOMPUTE_EXCEPT_LAST, LS_RECOMPUTE_ALL,
                                    LS_RECOMPUTE_AUTO, LS_RECOMPUTE_CHEAP, LS_RECOMPUTE_CONV_SAVED};
enum { ALWAYS_SHOWN = 4 };

static bool is_shown(const LsJob *job, int row)
{
    return row < ALWAYS_SHOWN || shown[row] == job->recompute;
}

typedef struct Mode {
    bool fits;
    int64_t arena;              /* bytes; without a plan that fits, of the least one found */
    int64_t kept; /* bytes of a part between its forward and its backward part, the largest of its
                     plans */
    double first_ns, last_ns;   /* a part that is not the last one of its batch, and that */
} Mode;

typedef struct Modes { Mode of[LS_NRECOMPUTE]; int64_t levels, sum_bytes; } Modes;

static bool wanted(const LsJob *job)
{
    return !job->graph_file
           && (job->options->parts.microbatches > 0 || ls_options_over_ranks(job->options)
               || job->recompute == LS_RECOMPUTE_EXCEPT_LAST);
}

static Mode of_plan(const LsJob *job, const LsPlan *plan)
{
    const double ns = ls_job_plan_ns(job, plan);
    return (Mode){true, plan->arena, ls_plan_turn(job->dag, plan).kept_bytes, ns, ns};
}

/* 0, or the exit code after diagnostics; a policy without a plan within the budget is no error. */
static int plan_mode(LsJob *job, LsRecompute policy, Mode *to)
{
    LsPlan plan;
    LsPlanReport report;
    const LsProcessBytes process = ls_job_process(job);
    const int64_t arena = job->budget > 0 ? ls_process_arena(&process, job->budget) : 0;
    const int code = ls_job_plan_as(job, policy, arena, &plan, &report);
    if (code == 0)
        *to = of_plan(job, &plan);
    else if (code == LS_EXIT_BUDGET)
        *to = (Mode){.arena = report.least};
    return code == LS_EXIT_BUDGET ? 0 : code;
}

static int plan_modes(LsJob *job, Modes *m)
{
    const LsRecompute usual =
        job->recompute == LS_RECOMPUTE_EXCEPT_LAST ? LS_RECOMPUTE_ALL : job->recompute;
    for (int row = 0; row < LS_NRECOMPUTE; row++) {
        const LsRecompute k = shown[row];
        int code = 0;
        if (k == usual)
            m->of[k] = of_plan(job, &job->plan);
        else if (k != LS_RECOMPUTE_EXCEPT_LAST && is_shown(job, row))
            code = plan_mode(job, k, &m->of[k]);
        if (code != 0)
            return code;
    }
    const Mode *all = &m->of[LS_RECOMPUTE_ALL], *none = &m->of[LS_RECOMPUTE_NONE];
    Mode last = *(all->arena > none->arena ? all : none);
    last.fits = all->fits && none->fits;
    last.kept = all->kept > none->kept ? all->kept : none->kept;
    last.first_ns = all->first_ns;
    last.last_ns = none->last_ns;
    m->of[LS_RECOMPUTE_EXCEPT_LAST] = ls_job_own_steps(job) > 1 ? last : *none;
    return 0;
}

/* Partial sums: their state, and the levels of each. */
static void find_sums(const LsJob *job, Modes *m)
{
    const LsGraph *g = job->train;
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (g->value[i].of_update && !g->value[i].rank_sum)
            m->sum_bytes +=
                ls_align(ls_stored_bytes(g, (LsValueId){i}, job->target.real_bytes), LS_ALIGNMENT);
    m->levels = job->pipeline.optimizer.running_sums
                    ? m->sum_bytes > 0
                    : ls_tree_levels(ls_job_micro_steps(job) / ls_job_ranks(job));
}

static int64_t total(const LsJob *job, const Mode *m)
{
    const int64_t other = job->eval_plan.arena > job->update_plan.arena ? job->eval_plan.arena
                                                                        : job->update_plan.arena;
    const LsProcessBytes process = ls_job_process(job);
    return ls_process_total(&process, m->arena > other ? m->arena : other);
}

static double step_ns(const LsJob *job, const Mode *m)
{
    return (double)(ls_options_parts(job->options) / ls_job_ranks(job) - 1) * m->first_ns +
           m->last_ns + ls_job_update_ns(job);
}

bool ls_recompute_print(LsJob *job)
{
    Modes m = {.levels = 0};
    LsArena *a = job->cx.arena;
    if (!wanted(job))
        return true;
    if (plan_modes(job, &m) != 0)
        return false;
    find_sums(job, &m);
    const int64_t parts = ls_options_parts(job->options);
    printf("\na batch of %" PRId64 " samples runs in %" PRId64 " part%s of %" PRId64
           "; the plan is that of a part\n",
           job->train->batch * parts, parts, parts == 1 ? "" : "s", job->train->batch);
    if (m.levels > 0)
        printf("  gradients of %" PRId64 " parts add up %s: %" PRId64
               " partial sum%s of each, %s of the state\n",
               ls_job_micro_steps(job) / ls_job_ranks(job),
               job->pipeline.optimizer.running_sums ? "one after the other" : "in a tree",
               m.levels, m.levels == 1 ? "" : "s",
               ls_bytes_text(a, m.sum_bytes));
    printf("  %-12s %12s %18s %15s  (%s)\n", "recompute", "in all", "kept of a part", "a step",
           ls_job_told_of(job));
    for (int k = 0; k < LS_NRECOMPUTE; k++) {
        const Mode *of = &m.of[shown[k]];
        if (!is_shown(job, k))
            continue;
        const char *mark = shown[k] == job->recompute ? "  chosen" : "";
        printf("  %-12s %12s", ls_recompute_policy[shown[k]].name,
               ls_bytes_text(a, total(job, of)));
        if (of->fits)
            printf(" %18s %12.4g ms%s\n", ls_bytes_text(a, of->kept), step_ns(job, of) * 1e-6,
                   mark);
        else
            printf("  exceeds the budget%s\n", mark);
    }
    return true;
}

static cJSON *json_row(const LsJob *job, LsRecompute policy, const Mode *of)
{
    cJSON *o = cJSON_CreateObject();
    cJSON_AddStringToObject(o, "mode", ls_recompute_policy[policy].name);
    cJSON_AddBoolToObject(o, "feasible", of->fits);
    cJSON_AddNumberToObject(o, "total_bytes", (double)total(job, of));
    cJSON_AddNumberToObject(o, "arena_bytes", (double)of->arena);
    if (of->fits) {
        cJSON_AddNumberToObject(o, "kept_bytes", (double)of->kept);
        ls_json_add_exact(o, "step_ns", step_ns(job, of));
    }
    return o;
}

const char *ls_recompute_json(LsJob *job)
{
    Modes m = {.levels = 0};
    if (!wanted(job) || plan_modes(job, &m) != 0)
        return NULL;
    find_sums(job, &m);
    const int64_t parts = ls_options_parts(job->options);
    cJSON *o = cJSON_CreateObject();
    cJSON_AddNumberToObject(o, "batch", (double)(job->train->batch * parts));
    cJSON_AddNumberToObject(o, "parts", (double)parts);
    cJSON_AddNumberToObject(o, "per_update", (double)ls_job_micro_steps(job));
    cJSON_AddNumberToObject(o, "sum_levels", (double)m.levels);
    cJSON_AddNumberToObject(o, "sum_bytes", (double)m.sum_bytes);
    cJSON_AddStringToObject(o, "mode", ls_recompute_policy[job->recompute].name);
    cJSON *rows = cJSON_AddArrayToObject(o, "modes");
    for (int k = 0; k < LS_NRECOMPUTE; k++)
        if (is_shown(job, k))
            cJSON_AddItemToArray(rows, json_row(job, shown[k], &m.of[shown[k]]));
    return ls_json_line(job->cx.arena, o);
}
