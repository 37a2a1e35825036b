/* cli/job/staged_job.c -- see the header. */
#include "cli/job/staged_job.h"

#include "cli/job/progress_line.h"
#include "codegen/planning/stage_problem.h"
#include "runtime/base/number.h"
#include "scheduler/pipeline/stage_audit.h"
#include "cli/options/option_values.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MICROS = 1024, PREFETCH = 2 };
/* Percent, without --plan-effort: all stages are planned, within a budget those of several cuts.
 * Without one they have little to choose. */
enum { EFFORT = 10, EFFORT_AT_EASE = 2 };

int ls_staged_check(const LsJob *job)
{
    const LsOptions *o = job->options;
    const char *why = NULL;
    if (ls_options_stages(o) == 1)
        why = o->pipe.order != NULL ? "--order: there is no pipeline without --stages" : NULL;
    else if (job->target.kind == LS_TARGET_CUDA)
        why = "--stages is for --target=cpu so far";
    else if (job->graph_file)
        why = "--stages: compile needs the ONNX model";
    else if (job->pipeline.grads.privacy.on)
        why = "--stages: private training has updates of any number of parts; leave --dp out";
    else if (ls_wants_samples(&job->pipeline.grads))
        why = "--stages: --grads shows the samples of a whole batch; leave one of them out";
    else if (o->ensemble.members > 0)
        why = "--stages: members of an ensemble run in lanes of one process; leave --ensemble out";
    else if (ls_options_over_ranks(o))
        why = "--stages: each stage is a rank; leave --ranks out";
    else if (o->parts.accumulate > 1)
        why = "--stages: --microbatches says how many parts an update has; leave --accumulate out";
    else if (o->memory.keep.n + o->memory.forget.n > 0)
        why = "--stages: --recompute says what stages make again; leave --keep and --forget out";
    else if (ls_options_parts(o) > MOST_MICROS)
        why = "--stages: a pipeline runs at most 1024 micro-batches per step (--microbatches)";
    if (why == NULL)
        return 0;
    fprintf(stderr, "lowerset: %s\n", why);
    return LS_EXIT_USAGE;
}

/* "10GB,5", "10GB", "none" */
static int link_speed(const LsOptions *o, LsLinkSpeed *to)
{
    const char *text = o->pipe.link != NULL ? o->pipe.link : "10GB,5";
    const char *comma = strchr(text, ',');
    char rate[64];
    int64_t bytes;
    double us = 0;
    *to = (LsLinkSpeed){0};
    if (strcmp(text, "none") == 0)
        return 0;
    snprintf(rate, sizeof rate, "%.*s", comma != NULL ? (int)(comma - text) : (int)strlen(text),
             text);
    if (!ls_size_parse(rate, &bytes)
        || (comma != NULL && !ls_number_real(comma + 1, 0, 1e9, &us)))
        return ls_options_bad("--link", text,
                              "bytes per second and microseconds, like 10GB,5, or none");
    *to = (LsLinkSpeed){us * 1e3, (double)bytes * 1e-9};
    return 0;
}

/* The option's place in a list of words; -1: it was not given. */
static int word(const char *option, const char *text, const char *const *words, int *at)
{
    *at = text == NULL ? -1 : ls_options_word(option, text, words, 0);
    return text != NULL && *at < 0 ? LS_EXIT_USAGE : 0;
}

int ls_staged_want(const LsOptions *o, LsPipelineWant *want, int *order, int *mode)
{
    *want = (LsPipelineWant){.stages = (uint32_t)o->pipe.stages,
                             .micros = (uint32_t)ls_options_parts(o),
                             .prefetch = PREFETCH,
                             .least_ring = LS_RING};
    int code = word("--order", o->pipe.order, ls_order_name, order);
    code = code != 0 ? code : ls_options_planning(o, &want->plan);
    code = code != 0 ? code : ls_options_recompute(o, &want->policy);
    code = code != 0 || ls_job_budget(o, &want->budget) ? code : LS_EXIT_USAGE;
    code = code != 0 ? code : link_speed(o, &want->link);
    if (want->plan.effort == 0)
        want->plan.effort = ls_budget_is_none(&want->budget) ? EFFORT_AT_EASE : EFFORT;
    *mode = o->memory.recompute != NULL ? (int)ls_pipeline_keep(want->policy) : -1;
    return code;
}

const LsProb *ls_staged_open(LsJob *job, LsPipelineWant *want)
{
    want->state = ls_state_bytes(job->cx.arena, job->train_problem);
    want->input = ls_input_bytes(job->cx.arena, job->train_problem);
    want->memo = ls_pipeline_memo_new(job->cx.arena);
    return ls_prob_new(job->cx.arena, job->dag, !want->plan.no_inplace);
}

bool ls_staged_refuse(LsJob *job, const LsStagesReason *reason)
{
    return reason->why != NULL &&
           ls_error(&job->cx, reason->at, LS_E_OPTION, reason->hint, "--stages %" PRId64 ": %s",
                    job->options->pipe.stages, reason->why);
}

static bool refuse(LsStagesReason *to, const char *why)
{
    *to = (LsStagesReason){.at = LS_NOWHERE, .why = why};
    return false;
}

/* Has the plans of a stage checked twice: a micro-batch alone, and all that are under way. */
static bool audited(LsJob *job, const LsPipelinePlan *of, uint32_t k)
{
    char why[512];
    const LsPipePlan *p = &of->plan[k];
    for (uint32_t plan = 0; plan < p->layout.nplan; plan++)
        if (!ls_job_audited(job, &p->graph.dag, &p->layout.of[plan].plan))
            return false;
    if (!ls_pipe_audit(&p->graph, &of->cut, k, &p->layout, &of->flow[k], why, sizeof why))
        return ls_error(&job->cx, LS_NOWHERE, LS_E_VERIFY, NULL,
                        "the plan of stage %u is wrong: %s", k + 1, why);
    return true;
}

bool ls_staged_find(LsJob *job, const LsProb *p, const LsPipelineWant *want, LsOrderKind order,
                    LsKeepMode keep, LsPipelinePlan *out, LsStagesReason *reason)
{
    char why[512];
    *reason = (LsStagesReason){.why = NULL};
    if (job->cx.log == NULL)
        ls_progress_line(job->options, "planning %" PRIu32 " stages, %s", want->stages,
                         ls_order_name[order]);
    bool ok = ls_pipeline_plan(job->cx.arena, p, want, order, keep, out, why, sizeof why);
    ls_stage_end(job->options);
    if (!ok)
        return refuse(reason, ls_arena_printf(job->cx.arena, "%s", why));
    if (out->cut.nmove + out->cut.ncopy >= LS_STAGE_TAGS)
        return refuse(reason, "the stages send each other too many tensors");
    ok = ls_stages_check(job->train_problem, &out->cut, reason);
    for (uint32_t k = 0; ok && k < want->stages; k++)
        ok = audited(job, out, k);
    return ok;
}

/* Names the stage that needs most of those that do not keep the budget. */
static bool over_budget(LsJob *job, const LsPipelinePlan *of)
{
    LsArena *a = job->cx.arena;
    uint32_t k = 0;
    for (uint32_t s = 1; s < of->cut.k; s++)
        if (of->plan[s].layout.arena > of->plan[s].budget
            && (of->plan[k].layout.arena <= of->plan[k].budget
                || ls_pipeline_rank_bytes(of, s) > ls_pipeline_rank_bytes(of, k)))
            k = s;
    const LsPipePlan *p = &of->plan[k];
    const char *rest =
        job->budget > 0 ? ls_arena_printf(a, ", %s for its state and inputs and %s for the arena",
                                          ls_bytes_text(a, ls_process_fixed(&of->rank[k])),
                                          ls_bytes_text(a, p->least))
                        : "";
    const int64_t least = job->budget > 0 ? ls_process_total(&of->rank[k], p->least) : p->least;
    return ls_error(
        &job->cx, LS_NOWHERE, LS_E_BUDGET,
        job->budget > 0
            ? ls_arena_printf(a, "ask for --budget %" PRId64 " or more, or --budget min", least)
            : "ask for more, or for --budget min",
        "stage %u of the pipeline: the %s is %s, but the least found is %s%s", k + 1,
        job->budget > 0 ? "budget of a rank" : "budget of its arena",
        ls_bytes_text(a, job->budget > 0 ? job->budget : p->budget), ls_bytes_text(a, least), rest);
}

void ls_staged_hash(const LsPipelinePlan *plan, char hash[17])
{
    uint64_t sum = 0;
    for (uint32_t k = 0; k < plan->cut.k; k++) {
        const LsPipeLayout *l = &plan->plan[k].layout;
        for (uint32_t n = 0; n < l->nplan; n++) {
            ls_plan_hash(&l->of[n].plan, hash);
            sum = sum * 31 + strtoull(hash, NULL, 16);
        }
    }
    snprintf(hash, 17, "%016" PRIx64, sum * 31 + (uint64_t)plan->order);
}

/* The figures of the whole program: one process that runs all stages as threads. */
static void sum_up(LsJob *job, LsStagedJob *s)
{
    const LsPipelinePlan *of = &s->plan;
    int64_t at = 0;
    job->plan = (LsPlan){.strategy = of->plan[0].layout.of[LS_PIPE_USUAL].plan.strategy};
    s->code = ls_arena_alloc(job->cx.arena, of->cut.k, sizeof *s->code);
    for (uint32_t k = 0; k < of->cut.k; k++) {
        const LsPipePlan *p = &of->plan[k];
        const LsProblem *problem = ls_stage_problem(job->cx.arena, job->train_problem, &p->graph);
        s->code[k] = (LsCodeStage){.plan = p, .flow = &of->flow[k], .at = at};
        for (uint32_t plan = 0; plan < p->layout.nplan; plan++)
            s->code[k].phase[plan] = (LsCodePhase){problem, &p->layout.of[plan].plan, false};
        at += ls_align(p->layout.arena, LS_ALIGNMENT);
        job->plan.cost += ls_pipe_cost(&p->layout, (uint32_t)ls_options_parts(job->options));
        job->plan.base_cost += p->layout.of[LS_PIPE_USUAL].plan.base_cost;
    }
    ls_staged_hash(of, job->report.hash);
    for (uint32_t k = 0; k < of->cut.ncopy; k++)
        job->state_bytes += ls_align(of->cut.copy[k].bytes, LS_ALIGNMENT);
    job->input_bytes = job->input_bytes / LS_RING * of->ring;
    job->arena_bytes = at > job->eval_plan.arena ? at : job->eval_plan.arena;
    job->staged = s;
}

int ls_staged_plan(LsJob *job)
{
    LsStagedJob *s = ls_arena_alloc(job->cx.arena, 1, sizeof *s);
    LsPipelineWant want;
    int order, mode, code = ls_staged_want(job->options, &want, &order, &mode);
    code = code != 0 ? code : ls_staged_check(job);
    code = code != 0 ? code : ls_job_load(job);
    if (code != 0)
        return code;
    job->budget = want.budget.bytes;
    LsStagesReason reason;
    const LsProb *p = ls_staged_open(job, &want);
    bool ok = ls_staged_find(job, p, &want, order >= 0 ? (LsOrderKind)order : LS_ORDER_1F1B,
                             mode >= 0 ? (LsKeepMode)mode : LS_KEEP_AUTO, &s->plan, &reason)
              || ls_staged_refuse(job, &reason);
    ok = ok && (s->plan.fits || over_budget(job, &s->plan))
         && ls_job_audited(job, &job->eval_problem->dag, &job->eval_plan);
    if (!ok)
        return ls_job_failed(job);
    sum_up(job, s);
    return ls_job_fits_machine(job, job->arena_bytes + job->state_bytes + job->input_bytes)
               ? 0
               : ls_job_failed(job);
}

const char *ls_staged_text(const LsJob *job)
{
    const LsStagedJob *s = job->staged;
    if (s == NULL)
        return "";
    return ls_arena_printf(job->cx.arena, ", %" PRIu32 " stages (%s), the largest rank %s",
                           s->plan.cut.k, ls_order_name[s->plan.order],
                           ls_bytes_text(job->cx.arena, s->plan.peak));
}

double ls_staged_step_ns(const LsJob *job) { return job->staged->plan.times.step; }
