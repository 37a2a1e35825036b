/* cli/job/job_plan.c -- plans a job within its budget, and says what a budget that is too small
 * lacks. */
#include "cli/job/job_parts.h"

#include "cli/job/progress_line.h"
#include "scheduler/plan/hint_plan.h"
#include "scheduler/plan/spread_offsets.h"
#include "scheduler/report/html.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Formats bytes in the unit of the requested budget. */
static const char *like_budget(const LsJob *job, int64_t bytes)
{
    char text[24];
    return ls_arena_strdup(job->cx.arena, ls_page_bytes_like(text, bytes, job->budget));
}

/* Names the step that needs the least arena, and the bytes that no plan can avoid. */
static const char *least_place(const LsJob *job)
{
    const LsPlanReport *r = &job->report;
    const LsDag *g = job->dag;
    LsArena *a = job->cx.arena;
    if (job->eval_plan.arena > r->least)
        return "in the evaluation form";
    const char *node = r->nowner > 0 ? g->node[r->peak_node].name : NULL;
    const char *place = node == NULL
                            ? ""
                            : ls_arena_printf(a,
                                              "at node '%s' with %u live tensors, the "
                                              "largest '%s' of %s",
                                              node, r->nowner, ls_dag_label(g, r->owner[0].tensor),
                                              like_budget(job, r->owner[0].bytes));
    return r->least_bound <= 0
               ? place
               : ls_arena_printf(a, "%s%sno plan at all has an arena below %s", place,
                                 place[0] != '\0' ? "; " : "", like_budget(job, r->least_bound));
}

static int over_budget(LsJob *job)
{
    const LsProcessBytes process = ls_job_process(job);
    const int64_t fixed = ls_process_fixed(&process);
    const LsPlanReport *r = &job->report;
    const LsOptions *o = job->options;
    LsArena *a = job->cx.arena;
    if (r->error != NULL && r->nrow == 0) {     /* no search was made */
        fprintf(stderr, "lowerset: --strategy: %s\n", r->error);
        return LS_EXIT_USAGE;
    }
    const int64_t of_one = r->least > job->eval_plan.arena ? r->least : job->eval_plan.arena;
    const int64_t total = ls_process_total(&process, of_one), arena = total - fixed;
    const char *budget = like_budget(job, job->budget), *least = like_budget(job, total);
    const char *whose = o->memory.strategy != NULL
                            ? ls_arena_printf(a, " by strategy %s", o->memory.strategy)
                        : o->memory.keep.n + o->memory.forget.n > 0 ? " with these hints"
                        : job->recompute != LS_RECOMPUTE_AUTO
                            ? ls_arena_printf(a, " with --recompute=%s", o->memory.recompute)
                        : job->pipeline.head.strict
                            ? ls_arena_printf(a, " with the vocabulary head in %" PRId64 " chunks",
                                              job->pipeline.head.chunks)
                            : "";
    const char *parts = fixed == 0
                            ? ""
                            : ls_arena_printf(a,
                                              "%s for state and input ring and %s for the "
                                              "arena, ",
                                              like_budget(job, fixed), like_budget(job, arena));
    if (strcmp(budget, least) == 0) {           /* equal after rounding */
        budget = ls_arena_printf(a, "%" PRId64 " B", job->budget);
        least = ls_arena_printf(a, "%" PRId64 " B", total);
    }
    ls_error(&job->cx, LS_NOWHERE, LS_E_BUDGET,
             ls_arena_printf(a, "ask for --budget %" PRId64 " (%s) or more, or --budget min", total,
                             least),
             "the budget is %s, but the least budget found%s is %s, %s%s", budget, whose, least,
             parts, least_place(job));
    return ls_job_failed(job);
}

/* Fills in the planner's budget. A percentage refers to the plan without recomputation; where the
 * planner makes a different one, to the one made here. */
static bool set_budget(LsJob *job, const LsHinted *hinted, const LsBudget *b, LsPlanOptions *want)
{
    bool apart = hinted != NULL || want->no_inplace;
    if (apart && !ls_job_plan_none(job))
        return false;
    const LsProcessBytes process = ls_job_process(job);
    want->budget = ls_budget_of_arena(b, &process);
    if (apart && b->percent > 0)
        want->budget = (LsBudget){.bytes = ls_budget_arena_bytes(&want->budget, job->whole)};
    return true;
}

/* Plans in the graph as it is, or as changed by hints. */
static bool plan_training(LsJob *job, const LsHinted *hinted, const LsPlanOptions *want)
{
    LsArena *a = job->cx.arena;
    if (hinted != NULL)
        return ls_hints_plan(a, hinted, want, &job->plan, &job->report);
    bool ok = ls_plan(a, job->dag, want, &job->plan, &job->report);
    if (!want->no_inplace && job->report.none != NULL)
        ls_job_set_none(job, &job->report);
    return ok;
}

/* The job's graph as changed by hints; NULL: there are none. */
static int apply_hints(LsJob *job, const LsHints *hints, const LsHinted **out)
{
    char why[512];
    *out = NULL;
    if (hints->nkeep == 0 && hints->nforget == 0 && hints->recompute == LS_RECOMPUTE_AUTO)
        return 0;
    LsHinted *hinted = ls_arena_alloc(job->cx.arena, 1, sizeof *hinted);
    if (!ls_hints_apply(job->cx.arena, job->dag, hints, hinted, why, sizeof why)) {
        ls_error(&job->cx, LS_NOWHERE, LS_E_OPTION, NULL, "%s", why);
        return ls_job_failed(job);
    }
    *out = hinted;
    return 0;
}

int ls_job_hints(LsJob *job, const LsHinted **out)
{
    LsHints hints;
    *out = NULL;
    const int code = ls_options_hints(job->options, &hints);
    return code != 0 ? code : apply_hints(job, &hints, out);
}

int ls_job_plan_as(LsJob *job, LsRecompute policy, int64_t arena, LsPlan *out, LsPlanReport *report)
{
    const LsHints hints = {.recompute = policy};
    LsPlanOptions want = {.unproven = true, .state_bytes = job->state_bytes, .budget.bytes = arena};
    const LsHinted *hinted;
    int code = ls_options_planning(job->options, &want);
    code = code != 0 ? code : apply_hints(job, &hints, &hinted);
    if (code != 0)
        return code;
    const bool ok = hinted != NULL ? ls_hints_plan(job->cx.arena, hinted, &want, out, report)
                                   : ls_plan(job->cx.arena, job->dag, &want, out, report);
    return !ok ? LS_EXIT_BUDGET : ls_job_audited(job, job->dag, out) ? 0 : ls_job_failed(job);
}

bool ls_job_budget(const LsOptions *o, LsBudget *b)
{
    const bool ok = ls_budget_parse(o->memory.budget, b);
    b->of_store_all = ls_job_of_store_all(o);
    if (!ok)
        fprintf(stderr, "lowerset: --budget: '%s' is not a size like 2GiB, 80%% or min\n",
                o->memory.budget);
    return ok;
}

/* Makes both plans; true if both exist and fit what the budget leaves them. */
static bool plan_both(LsJob *job, const LsHinted *hinted, const LsBudget *b, LsPlanOptions *want)
{
    if (!set_budget(job, hinted, b, want))
        return false;
    if (job->cx.log == NULL)
        ls_progress_line(job->options, "planning %" PRIu32 " nodes", job->dag->nnode);
    bool ok = plan_training(job, hinted, want);
    ls_stage_end(job->options);
    int64_t arena = job->report.budget;
    const LsProcessBytes process = ls_job_process(job);
    job->budget = b->percent > 0 ? ls_process_total(&process, arena) : b->bytes;
    return ok && (arena <= 0 || (job->eval_plan.arena <= arena && job->update_plan.arena <= arena
                                 && job->once_plan.arena <= arena));
}

/* Bytes of the process by the plans of now. */
static int64_t bytes_of(LsJob *job)
{
    const LsProcessBytes process = ls_job_process(job);
    ls_job_set_arena(job);
    return ls_process_fixed(&process) + job->arena_bytes;
}

/* What is the same for all members of an ensemble runs once, unless its results do not fit, or the
 * least memory has them made by each. */
static bool plan_ensemble(LsJob *job, const LsHinted *hinted, const LsBudget *b,
                          LsPlanOptions *want)
{
    const bool fits = plan_both(job, hinted, b, want);
    if (job->shared == NULL || (fits && !b->least))
        return fits;
    LsJob with = *job;
    ls_job_unshare(job);
    if (plan_both(job, hinted, b, want) && (!fits || bytes_of(job) < bytes_of(&with)))
        return true;
    if (fits)
        *job = with;
    return fits;
}

/* With --recompute=except-last: the plan of the last micro-batch of an update, and a hash of both
 * plans. Its arena must keep the same budget. */
static int plan_last(LsJob *job, const LsBudget *b)
{
    LsPlanReport report = job->report;
    const int64_t arena = b->least ? 0 : job->report.budget;
    if (job->recompute != LS_RECOMPUTE_EXCEPT_LAST)
        return 0;
    const int code = ls_job_plan_as(job, LS_RECOMPUTE_NONE, arena, &job->last_plan, &report);
    if (code == LS_EXIT_BUDGET) {
        job->report = report;
        return over_budget(job);
    }
    uint64_t sum = strtoull(job->report.hash, NULL, 16) * 31 + strtoull(report.hash, NULL, 16);
    snprintf(job->report.hash, sizeof job->report.hash, "%016" PRIx64, sum);
    return code;
}

/* A large value in parts is many equal nodes, in place of one, so moves of a few nodes at a time
 * take longer to change much. A look at one of many tilings has the usual time. */
static void give_tiles_time(const LsJob *job, LsPlanOptions *want)
{
    enum { MANY = 300, SECONDS = 8 };
    if (job->tiling.tiles > 1 && job->dag->nnode > MANY && !job->unproven && want->effort == 0
        && job->options->memory.plan_time == NULL)
        want->seconds = SECONDS;
}

bool ls_job_plan_loaded(LsJob *job, const LsBudget *b)
{
    LsPlanOptions want = {.compare = job->compare, .unproven = job->unproven,
                          .state_bytes = job->state_bytes};
    const LsHinted *hinted;
    if (ls_options_planning(job->options, &want) != 0)
        return false;
    give_tiles_time(job, &want);
    return ls_options_recompute(job->options, &job->recompute) == 0
           && ls_job_hints(job, &hinted) == 0 && plan_ensemble(job, hinted, b, &want);
}

int ls_job_plan(LsJob *job)
{
    LsPlanOptions want = {.compare = job->compare, .unproven = job->unproven};
    const LsHinted *hinted;
    LsHints hints;
    LsBudget budget;
    int code = ls_options_planning(job->options, &want);
    code = code != 0 ? code : ls_options_recompute(job->options, &job->recompute);
    code = code != 0 ? code : ls_options_hints(job->options, &hints);   /* invalid hints are
                                                                         * reported early */
    code = code != 0 || ls_job_budget(job->options, &budget) ? code : LS_EXIT_USAGE;
    code = code != 0 ? code : ls_job_load_model(job);
    code = code != 0 ? code : ls_job_hints(job, &hinted);
    if (code != 0)
        return code;
    want.state_bytes = job->state_bytes;
    give_tiles_time(job, &want);
    bool fits = plan_ensemble(job, hinted, &budget, &want);
    if (!fits || budget.least)
        fits |= ls_job_plan_chunks(job, &budget, fits);
    if (!fits || budget.least)
        fits |= ls_job_plan_tiles(job, &budget, fits);
    if (!fits)
        return over_budget(job);
    if (ls_job_overlaps(job)) {
        ls_spread(job->cx.arena, job->dag, &job->plan);
        ls_plan_hash(&job->plan, job->report.hash);
    }
    if (!ls_job_audited(job, job->dag, &job->plan)
        || (!job->graph_file
            && (!ls_job_audited(job, &job->eval_problem->dag, &job->eval_plan)
                || (job->shared != NULL
                    && !ls_job_audited(job, &job->shared->once->dag, &job->once_plan))
                || (job->update_problem != NULL
                    && !ls_job_audited(job, &job->update_problem->dag, &job->update_plan)))))
        return ls_job_failed(job);
    code = plan_last(job, &budget);
    if (code != 0)
        return code;
    ls_job_set_arena(job);
    return ls_job_fits_machine(job, job->arena_bytes + ls_job_fixed_bytes(job))
               ? 0
               : ls_job_failed(job);
}
