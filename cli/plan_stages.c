/* cli/plan_stages.c -- see the header. */
#include "cli/plan_stages.h"

#include "cli/commands.h"
#include "cli/job.h"
#include "cli/output.h"
#include "cli/pipeline_table.h"
#include "runtime/base/number.h"
#include "scheduler/report/pipeline_picture.h"

#include <string.h>

static int usage(const char *text)
{
    fprintf(stderr, "lowerset: --stages %s\n", text);
    return LS_EXIT_USAGE;
}

static int check(const LsOptions *o)
{
    if (o->privacy != NULL || o->grads != NULL)
        return usage("is for gradients of whole batches: leave --dp and --grads out");
    if (o->ensemble > 0)
        return usage("is for one model: leave --ensemble out");
    if (o->target != NULL && strcmp(o->target, "cuda") == 0)
        return usage("is for --target=cpu so far");
    if (o->keep.n + o->forget.n > 0 || o->recompute != NULL || o->strategy != NULL)
        return usage("plans each stage by --checkpoint: leave --strategy, --keep, --forget and --recompute out");
    if (o->graph_json != NULL || o->plan_json != NULL || o->dot != NULL || o->report != NULL || o->against != NULL)
        return usage("writes --timeline and --json alone: leave the other reports out");
    if (o->accumulate > 1)
        return usage("takes the micro-batches of one batch: leave --accumulate out");
    if (ls_job_is_graph(o->model))
        return usage("needs a model, not a training graph");
    return 0;
}

/* "10GB,5", "10GB", "none" */
static int link_speed(const LsOptions *o, LsLinkSpeed *to)
{
    const char *text = o->link != NULL ? o->link : "10GB,5";
    const char *comma = strchr(text, ',');
    char rate[64];
    LsBudget b;
    double us = 0;
    *to = (LsLinkSpeed){0};
    if (strcmp(text, "none") == 0)
        return 0;
    snprintf(rate, sizeof rate, "%.*s", comma != NULL ? (int)(comma - text) : (int)strlen(text), text);
    if (!ls_budget_parse(rate, &b) || b.kind != LS_BUDGET_BYTES
        || (comma != NULL && !ls_number_real(comma + 1, 0, 1e9, &us)))
        return ls_options_bad("--link", text, "bytes per second and microseconds, like 10GB,5, or none");
    *to = (LsLinkSpeed){us * 1e3, b.value * 1e-9};
    return 0;
}

static int budget_of_rank(const LsOptions *o, int64_t *bytes)
{
    LsBudget b;
    *bytes = 0;
    if (!ls_budget_parse(o->budget, &b) || b.kind == LS_BUDGET_PERCENT || b.kind == LS_BUDGET_MIN)
        return ls_options_bad("--budget", o->budget, "a size like 2GiB, as --stages wants it of each rank");
    *bytes = b.kind == LS_BUDGET_BYTES ? (int64_t)b.value : 0;
    return 0;
}

static LsKeepMode keep_mode(LsCheckpoint mode)
{
    static const LsKeepMode of[] = {[LS_CHECKPOINT_AUTO] = LS_KEEP_AUTO, [LS_CHECKPOINT_NEVER] = LS_KEEP_NEVER,
                                    [LS_CHECKPOINT_EXCEPT_LAST] = LS_KEEP_EXCEPT_LAST,
                                    [LS_CHECKPOINT_ALWAYS] = LS_KEEP_ALWAYS};
    return of[mode];
}

/* All orders with all modes, or those of --order and --checkpoint. order, mode: -1: not given. */
static int plan_all(LsJob *job, LsPipelines *to, int order, int mode)
{
    char why[500];
    LsArena *a = job->cx.arena;
    const uint32_t effort = job->options->plan_effort > 0 ? (uint32_t)job->options->plan_effort : 10;
    const LsStageOptions plain = {.stages = to->want.stages, .micros = to->want.micros};
    LsStagePlanner *sp = ls_stage_planner_new(a, to->prob, effort);
    bool ok = ls_stages_find(a, to->prob, &plain, &to->best, why, sizeof why)
              && ls_stages_in_file_order(a, to->prob, &plain, &to->in_list_order, why, sizeof why);
    to->plan = ls_arena_alloc(a, LS_ORDERS * (LS_KEEP_AUTO + 1), sizeof *to->plan);
    for (int k = 0; ok && k < LS_ORDERS; k++)
        for (int m = 0; ok && m <= LS_KEEP_AUTO; m++) {
            if ((order >= 0 && k != order) || (mode >= 0 && m != mode))
                continue;
            if (k == (order >= 0 ? order : LS_ORDER_1F1B) && m == (mode >= 0 ? mode : LS_KEEP_AUTO))
                to->chosen = to->n;
            ok = ls_pipeline_plan(a, sp, to->prob, &to->want, (LsOrderKind)k, (LsKeepMode)m, &to->plan[to->n++], why,
                                  sizeof why);
        }
    if (ok)
        return 0;
    ls_error(&job->cx, LS_NOWHERE, LS_E_OPTION, NULL, "--stages: %s", why);
    return ls_job_failed(job);
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
    ls_pipeline_svg(to, &of->times, ls_arena_printf(p->job->cx.arena, "%s: %s, %s, %.1f %% bubbles", p->job->options->model,
                                                    ls_order_name[of->order], ls_keep_name[of->keep],
                                                    100 * of->times.bubble));
}

/* Prints; the chosen plan must keep the budget. */
static int report(LsPipelines *p)
{
    const LsOptions *o = p->job->options;
    const char *path = o->timeline;
    const size_t n = path != NULL ? strlen(path) : 0;
    const bool picture = n >= 4 && strcmp(path + n - 4, ".svg") == 0;
    if (o->json)
        ls_pipelines_json(stdout, p);
    else
        ls_pipelines_print(p);
    if (path != NULL && !ls_output_write(path, picture ? write_picture : write_table, p))
        return LS_EXIT_MODEL;
    if (p->plan[p->chosen].fits)
        return 0;
    fprintf(stderr, "lowerset: --budget: no cut into %u stages was found whose ranks keep %s by --checkpoint=%s; the "
            "largest rank of the one shown takes %s\n", p->want.stages, ls_bytes_text(p->job->cx.arena, p->want.budget),
            ls_keep_name[p->plan[p->chosen].keep], ls_bytes_text(p->job->cx.arena, p->plan[p->chosen].peak));
    return LS_EXIT_BUDGET;
}

int ls_plan_stages(const LsOptions *o)
{
    LsJob job;
    LsPipelines p = {.job = &job, .want = {.stages = (uint32_t)o->stages, .micros = (uint32_t)ls_options_parts(o)}};
    LsCheckpoint mode = LS_CHECKPOINT_AUTO;
    int order = -1, code = check(o);
    code = code != 0 ? code : link_speed(o, &p.want.link);
    code = code != 0 ? code : budget_of_rank(o, &p.want.budget);
    code = code != 0 ? code : ls_options_checkpoint(o, &mode);
    if (code == 0 && o->order != NULL && (order = ls_options_word("--order", o->order, ls_order_name, 0)) < 0)
        code = LS_EXIT_USAGE;
    if (code != 0)
        return code;
    code = ls_job_start(&job, o, true);
    code = code != 0 ? code : ls_job_load(&job);
    if (code == 0) {
        p.prob = ls_prob_new(job.cx.arena, job.dag, !o->no_inplace);
        code = plan_all(&job, &p, order, o->checkpoint != NULL ? (int)keep_mode(mode) : -1);
    }
    code = code != 0 ? code : report(&p);
    ls_job_end(&job);
    return code;
}
