/* cli/report/checkpoint_modes.c -- see the header. Only the policies of a micro-batch are planned: except-last runs the plans of
 * always and of never. */
#include "cli/report/checkpoint_modes.h"

#include "cli/job/told_times.h"

#include <inttypes.h>
#include <string.h>

enum { NMODES = 4 };
static const char *const name[NMODES] = {
    [LS_CHECKPOINT_AUTO] = "auto", [LS_CHECKPOINT_NEVER] = "never", [LS_CHECKPOINT_EXCEPT_LAST] = "except-last",
    [LS_CHECKPOINT_ALWAYS] = "always"};
static const LsCheckpoint shown[NMODES] = {LS_CHECKPOINT_NEVER, LS_CHECKPOINT_EXCEPT_LAST, LS_CHECKPOINT_ALWAYS,
                                           LS_CHECKPOINT_AUTO};

typedef struct Mode {
    bool fits;
    int64_t arena;              /* bytes; without a plan that fits, of the least one found */
    int64_t kept;               /* bytes of a part between its forward and its backward part, the largest of its plans */
    double first_ns, last_ns;   /* a part that is not the last one of its batch, and that */
} Mode;

typedef struct Modes { Mode of[NMODES]; int64_t levels, sum_bytes; } Modes;

static bool wanted(const LsJob *job)
{
    return !job->graph_file
           && (job->options->microbatches > 0 || ls_options_over_ranks(job->options) || job->options->checkpoint != NULL);
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
    const int64_t arena = job->budget > 0 ? job->budget - ls_job_fixed_bytes(job) : 0;
    const int code = ls_job_plan_as(job, policy, arena, &plan, &report);
    if (code == 0)
        *to = of_plan(job, &plan);
    else if (code == LS_EXIT_BUDGET)
        *to = (Mode){.arena = report.least};
    return code == LS_EXIT_BUDGET ? 0 : code;
}

static int plan_modes(LsJob *job, Modes *m)
{
    static const LsRecompute policy[NMODES] = {[LS_CHECKPOINT_AUTO] = LS_RECOMPUTE_AUTO,
                                               [LS_CHECKPOINT_NEVER] = LS_RECOMPUTE_NONE,
                                               [LS_CHECKPOINT_ALWAYS] = LS_RECOMPUTE_ALL};
    for (int k = 0; k < NMODES; k++) {
        const bool own = k == (int)job->checkpoint
            || (k == LS_CHECKPOINT_ALWAYS && job->checkpoint == LS_CHECKPOINT_EXCEPT_LAST);
        int code = 0;
        if (own && k != LS_CHECKPOINT_EXCEPT_LAST)
            m->of[k] = of_plan(job, &job->plan);
        else if (k != LS_CHECKPOINT_EXCEPT_LAST)
            code = plan_mode(job, policy[k], &m->of[k]);
        if (code != 0)
            return code;
    }
    const Mode *always = &m->of[LS_CHECKPOINT_ALWAYS], *never = &m->of[LS_CHECKPOINT_NEVER];
    Mode last = *(always->arena > never->arena ? always : never);
    last.fits = always->fits && never->fits;
    last.kept = always->kept > never->kept ? always->kept : never->kept;
    last.first_ns = always->first_ns;
    last.last_ns = never->last_ns;
    m->of[LS_CHECKPOINT_EXCEPT_LAST] = ls_job_own_steps(job) > 1 ? last : *never;
    return 0;
}

/* Partial sums: their state, and the levels of each. */
static void find_sums(const LsJob *job, Modes *m)
{
    const LsGraph *g = job->train;
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (g->value[i].of_update && !g->value[i].rank_sum)
            m->sum_bytes += ls_align(ls_stored_bytes(g, (LsValueId){i}, job->target.real_bytes), LS_ALIGNMENT);
    m->levels = ls_tree_levels(ls_job_micro_steps(job) / ls_job_ranks(job));
}

static int64_t total(const LsJob *job, const Mode *m)
{
    const int64_t other = job->eval_plan.arena > job->update_plan.arena ? job->eval_plan.arena : job->update_plan.arena;
    return ls_job_fixed_bytes(job) + (m->arena > other ? m->arena : other);
}

static double step_ns(const LsJob *job, const Mode *m)
{
    return (double)(ls_options_parts(job->options) / ls_job_ranks(job) - 1) * m->first_ns + m->last_ns + ls_job_update_ns(job);
}

bool ls_checkpoint_modes(LsJob *job)
{
    Modes m = {.levels = 0};
    LsArena *a = job->cx.arena;
    if (!wanted(job))
        return true;
    if (plan_modes(job, &m) != 0)
        return false;
    find_sums(job, &m);
    const int64_t parts = ls_options_parts(job->options);
    printf("\na batch of %" PRId64 " samples runs in %" PRId64 " part%s of %" PRId64 "; the plan is that of a part\n",
           job->train->batch * parts, parts, parts == 1 ? "" : "s", job->train->batch);
    if (m.levels > 0)
        printf("  gradients of %" PRId64 " parts add up in a tree: %" PRId64 " partial sum%s of each, %s of the state\n",
               ls_job_micro_steps(job) / ls_job_ranks(job), m.levels, m.levels == 1 ? "" : "s", ls_bytes_text(a, m.sum_bytes));
    printf("  %-12s %12s %18s %15s  (%s)\n", "checkpoint", "in all", "kept of a part", "a step", ls_job_told_of(job));
    for (int k = 0; k < NMODES; k++) {
        const Mode *of = &m.of[shown[k]];
        const char *mark = shown[k] == job->checkpoint ? "  chosen" : "";
        if (of->fits)
            printf("  %-12s %12s %18s %12.4g ms%s\n", name[shown[k]], ls_bytes_text(a, total(job, of)),
                   ls_bytes_text(a, of->kept), step_ns(job, of) * 1e-6, mark);
        else
            printf("  %-12s %12s  exceeds the budget%s\n", name[shown[k]], ls_bytes_text(a, total(job, of)), mark);
    }
    return true;
}

const char *ls_checkpoint_json(LsJob *job)
{
    Modes m = {.levels = 0};
    LsArena *a = job->cx.arena;
    if (!wanted(job) || plan_modes(job, &m) != 0)
        return NULL;
    find_sums(job, &m);
    const int64_t parts = ls_options_parts(job->options);
    const char *text = ls_arena_printf(a, "{\"batch\":%" PRId64 ",\"parts\":%" PRId64 ",\"per_update\":%" PRId64
                                       ",\"sum_levels\":%" PRId64 ",\"sum_bytes\":%" PRId64 ",\"mode\":\"%s\",\"modes\":[",
                                       job->train->batch * parts, parts, ls_job_micro_steps(job), m.levels, m.sum_bytes,
                                       name[job->checkpoint]);
    for (int k = 0; k < NMODES; k++) {
        const Mode *of = &m.of[shown[k]];
        text = ls_arena_printf(a, "%s%s{\"mode\":\"%s\",\"feasible\":%s,\"total_bytes\":%" PRId64 ",\"arena_bytes\":%" PRId64,
                               text, k > 0 ? "," : "", name[shown[k]], of->fits ? "true" : "false", total(job, of), of->arena);
        text = of->fits ? ls_arena_printf(a, "%s,\"kept_bytes\":%" PRId64 ",\"step_ns\":%.17g}", text, of->kept,
                                          step_ns(job, of)) : ls_arena_printf(a, "%s}", text);
    }
    return ls_arena_printf(a, "%s]}", text);
}
