/* cli/commands/plan_stages.c -- see the header. */
#include "cli/commands/plan_stages.h"

#include "cli/commands/commands.h"
#include "cli/job/job.h"
#include "cli/report/output.h"
#include "cli/report/pipeline_table.h"
#include "cli/report/stage_files.h"
#include "scheduler/report/pipeline_picture.h"

#include <inttypes.h>
#include <string.h>

static int usage(const char *text)
{
    fprintf(stderr, "lowerset: --stages %s\n", text);
    return LS_EXIT_USAGE;
}

/* What only this command takes; the rest is what lowerset compile --stages refuses, too. */
static int check(const LsOptions *o)
{
    if (o->memory.strategy != NULL)
        return usage("plans each stage by --recompute: leave --strategy out");
    if (o->reports.dot != NULL || o->reports.page != NULL || o->reports.against != NULL)
        return usage(
            "writes --timeline, --json, --graph-json and --plan-json: leave the other reports out");
    if (o->memory.no_offsets)
        return usage("tells the arena of each stage: leave --no-offsets out");
    if (ls_job_is_graph(o->model))
        return usage("needs a model, not a training graph");
    return 0;
}

/* What is chosen must run: that of --order and --recompute or, where they leave the choice, the
 * first that does. */
static bool choose(LsJob *job, LsPipelines *to, bool given)
{
    uint32_t k = to->chosen;
    if (to->reason[k].why != NULL && !given)
        for (k = 0; k < to->n && to->reason[k].why != NULL; k++)
            ;
    if (k == to->n || to->reason[k].why != NULL)
        return ls_staged_refuse(job, &to->reason[to->chosen]);
    to->chosen = k;
    return true;
}

/* All orders with all modes, or those of --order and --recompute. order, mode: -1: not given. What
 * cannot run has a reason. */
static bool plan_all(LsJob *job, LsPipelines *to, int order, int mode)
{
    bool ok = true;
    to->plan = ls_arena_alloc(job->cx.arena, LS_ORDERS * (LS_KEEP_AUTO + 1), sizeof *to->plan);
    to->reason = ls_arena_alloc(job->cx.arena, LS_ORDERS * (LS_KEEP_AUTO + 1), sizeof *to->reason);
    for (int k = 0; ok && k < LS_ORDERS; k++)
        for (int m = 0; ok && m <= LS_KEEP_AUTO; m++) {
            if ((order >= 0 && k != order) || (mode >= 0 && m != mode))
                continue;
            if (k == (order >= 0 ? order : LS_ORDER_1F1B) && m == (mode >= 0 ? mode : LS_KEEP_AUTO))
                to->chosen = to->n;
            LsStagesReason *reason = &to->reason[to->n];
            ok = ls_staged_find(job, to->prob, &to->want, (LsOrderKind)k, (LsKeepMode)m,
                                &to->plan[to->n++], reason)
                 || reason->why != NULL;
        }
    return ok && choose(job, to, order >= 0 && mode >= 0);
}

/* For comparison: the best cut, and that in list order. */
static bool cut_plainly(LsJob *job, LsPipelines *to)
{
    char why[500];
    LsArena *a = job->cx.arena;
    const LsStageOptions plain = {.stages = to->want.stages, .micros = to->want.micros};
    return (ls_pipeline_cut(a, to->prob, &to->want, LS_KEEP_NEVER, &to->best, why, sizeof why)
            && ls_stages_in_file_order(a, to->prob, &plain, &to->in_list_order, why, sizeof why))
           || ls_error(&job->cx, LS_NOWHERE, LS_E_OPTION, NULL, "--stages %" PRIu32 ": %s",
                       to->want.stages, why);
}

static void write_table(FILE *to, void *user)
{
    const LsPipelines *p = user;
    ls_pipeline_table(to, &p->plan[p->chosen].times);
}

static void write_picture(FILE *to, void *user)
{
    const LsPipelines *p = user;
    const LsPipelinePlan *of = &p->plan[p->chosen];
    ls_pipeline_svg(to, &of->times,
                    ls_arena_printf(p->job->cx.arena, "%s: %s, %s, %.1f %% bubbles",
                                    p->job->options->model, ls_order_name[of->order],
                                    ls_pipeline_mode(p, of), 100 * of->times.bubble));
}

/* Prints; the chosen plan must keep the budget. */
static int report(LsPipelines *p)
{
    const LsOptions *o = p->job->options;
    const char *path = o->reports.timeline;
    const size_t n = path != NULL ? strlen(path) : 0;
    const bool picture = n >= 4 && strcmp(path + n - 4, ".svg") == 0;
    if (o->reports.json)
        ls_pipelines_json(stdout, p);
    else
        ls_pipelines_print(p);
    if (path != NULL && !ls_output_write(path, picture ? write_picture : write_table, p))
        return LS_EXIT_MODEL;
    if (p->plan[p->chosen].fits)
        return ls_stage_files_write(p->job, &p->plan[p->chosen]) ? 0 : LS_EXIT_MODEL;
    fprintf(stderr,
            "lowerset: --budget: no cut into %u stages was found whose ranks keep %s by "
            "--recompute=%s; the "
            "largest rank of the one shown takes %s\n",
            p->want.stages,
            p->want.budget.bytes > 0 ? ls_bytes_text(p->job->cx.arena, p->want.budget.bytes)
                                     : o->memory.budget,
            ls_pipeline_mode(p, &p->plan[p->chosen]),
            ls_bytes_text(p->job->cx.arena, p->plan[p->chosen].peak));
    return LS_EXIT_BUDGET;
}

int ls_plan_stages(const LsOptions *o)
{
    LsJob job;
    LsPipelines p = {.job = &job};
    int order, mode, code = check(o);
    code = code != 0 ? code : ls_staged_want(o, &p.want, &order, &mode);
    if (code != 0)
        return code;
    code = ls_job_start(&job, o, true);
    code = code != 0 ? code : ls_staged_check(&job);
    code = code != 0 || ls_stage_files_check(job.cx.arena, o) ? code : LS_EXIT_MODEL;
    code = code != 0 ? code : ls_job_load(&job);
    if (code == 0) {
        p.prob = ls_staged_open(&job, &p.want);
        code = cut_plainly(&job, &p) && plan_all(&job, &p, order, mode) ? report(&p)
                                                                        : ls_job_failed(&job);
    }
    ls_job_end(&job);
    return code;
}
