/* cli/staged_job.c -- see the header. */
#include "cli/staged_job.h"

#include "cli/stage.h"
#include "codegen/planning/stage_problem.h"
#include "scheduler/pipeline/pipeline_plan.h"
#include "scheduler/pipes/pipe_audit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MICROS = 1024, PREFETCH = 2 };

int ls_staged_check(const LsJob *job)
{
    const LsOptions *o = job->options;
    const char *why = NULL;
    if (ls_options_stages(o) == 1)
        why = o->order != NULL ? "--order: there is no pipeline without --stages" : NULL;
    else if (job->target.kind == LS_TARGET_CUDA)
        why = "--stages is for --target=cpu so far";
    else if (job->graph_file)
        why = "--stages: compile needs the ONNX model";
    else if (job->pipeline.grads.privacy.on)
        why = "--stages: private training has updates of any number of parts; leave --dp out";
    else if (ls_wants_samples(&job->pipeline.grads))
        why = "--stages: --grads shows the samples of a whole batch; leave one of them out";
    else if (o->ensemble > 0)
        why = "--stages: members of an ensemble run in lanes of one process; leave --ensemble out";
    else if (o->ranks > 1)
        why = "--stages: each stage is a rank; leave --ranks out";
    else if (o->accumulate > 1)
        why = "--stages: --microbatches says how many parts an update has; leave --accumulate out";
    else if (o->keep.n + o->forget.n > 0)
        why = "--stages: --checkpoint says what stages make again; leave --keep and --forget out";
    else if (ls_options_parts(o) > MOST_MICROS)
        why = "--stages: a pipeline runs at most 1024 micro-batches per step (--microbatches)";
    else if (job->checkpoint == LS_CHECKPOINT_EXCEPT_LAST)
        why = "--stages: --checkpoint=except-last is for one process so far; never, always and auto are for pipelines, too";
    if (why == NULL)
        return 0;
    fprintf(stderr, "lowerset: %s\n", why);
    return LS_EXIT_USAGE;
}

static bool refuse(LsJob *job, const char *why)
{
    return ls_error(&job->cx, LS_NOWHERE, LS_E_OPTION, NULL, "--stages %" PRId64 ": %s", job->options->stages, why);
}

/* The stages that lowerset plan --stages shows. */
static bool find_stages(LsJob *job, const LsProb *p, LsOrderKind order, LsStages *to, char *why, size_t room)
{
    static const LsKeepMode keep[] = {[LS_CHECKPOINT_AUTO] = LS_KEEP_AUTO, [LS_CHECKPOINT_NEVER] = LS_KEEP_NEVER,
                                      [LS_CHECKPOINT_ALWAYS] = LS_KEEP_ALWAYS};
    enum { EFFORT = 10 };       /* percent, of plans that only judge cuts */
    const LsOptions *o = job->options;
    const LsStageOptions any = {.stages = (uint32_t)o->stages, .micros = (uint32_t)ls_options_parts(o), .order = order,
                                .keep = keep[job->checkpoint]};
    LsArena *a = job->cx.arena;
    LsPipelinePlan plan;
    if (job->budget == 0)
        return ls_stages_find(a, p, &any, to, why, room);
    const LsPipelineWant want = {.stages = any.stages, .micros = any.micros, .budget = job->budget};
    LsStagePlanner *sp = ls_stage_planner_new(a, p, o->plan_effort > 0 ? (uint32_t)o->plan_effort : EFFORT);
    if (!ls_pipeline_plan(a, sp, p, &want, order, any.keep, &plan, why, room))
        return false;
    *to = plan.stages;
    return true;
}

/* Finds stages, messages and order. */
static bool cut(LsJob *job, LsStagedJob *s, const LsPlanOptions *want)
{
    char why[512];
    LsArena *a = job->cx.arena;
    LsStages stages;
    const LsProb *p = ls_prob_new(a, job->dag, !want->no_inplace);
    if (!find_stages(job, p, s->order, &stages, why, sizeof why)
        || !ls_pipe_cut(a, p, &stages, s->order == LS_ORDER_ZB, &s->cut, why, sizeof why))
        return refuse(job, why);
    if (s->cut.nmove + s->cut.ncopy >= LS_STAGE_TAGS)
        return refuse(job, "the stages send each other too many tensors");
    bool *reads = ls_arena_alloc(a, s->cut.k, 1);
    for (uint32_t k = 0; k < s->cut.k; k++)
        reads[k] = ls_stage_inputs(job->train_problem, &s->cut, k) > 0;
    s->flow = ls_arena_alloc(a, s->cut.k, sizeof *s->flow);
    if (!ls_pipe_flow(a, &s->cut, s->order, (uint32_t)ls_options_parts(job->options), reads, s->flow, &s->ring, why, sizeof why))
        return ls_error(&job->cx, LS_NOWHERE, LS_E_VERIFY, NULL, "%s", why);
    s->ring = s->ring + PREFETCH > LS_RING ? s->ring + PREFETCH : LS_RING;
    return ls_stages_check(&job->cx, job->train_problem, &s->cut);
}

static bool over_budget(LsJob *job, const LsStagedJob *s, uint32_t k)
{
    LsArena *a = job->cx.arena;
    const LsPipePlan *p = &s->plan[k];
    const char *rest = job->budget > 0
        ? ls_arena_printf(a, ", %s for its state and inputs and %s for the arena", ls_bytes_text(a, s->fixed[k]),
                          ls_bytes_text(a, p->least)) : "";
    const int64_t least = p->least + (job->budget > 0 ? s->fixed[k] : 0);
    return ls_error(&job->cx, LS_NOWHERE, LS_E_BUDGET,
                    job->budget > 0 ? ls_arena_printf(a, "ask for --budget %" PRId64 " or more, or --budget min", least)
                                    : "ask for more, or for --budget min",
                    "stage %u of the pipeline: the %s is %s, but the least found is %s%s", k + 1,
                    job->budget > 0 ? "budget of a rank" : "budget of its arena",
                    ls_bytes_text(a, job->budget > 0 ? job->budget : p->budget), ls_bytes_text(a, least), rest);
}

/* Plans stage k, and has the plan checked twice: a micro-batch alone, and all that are under way. */
static bool plan_stage(LsJob *job, LsStagedJob *s, uint32_t k, const LsBudget *b, const LsPlanOptions *want,
                       const LsHints *hints)
{
    char why[512];
    LsArena *a = job->cx.arena;
    LsPipePlan *p = &s->plan[k];
    LsPipeWish wish = {.plan = *want, .hints = *hints, .slots = s->flow[k].slots, .least = b->kind == LS_BUDGET_MIN};
    wish.plan.unproven = true;
    wish.plan.compare = false;
    s->fixed[k] = ls_stage_state(job->train_problem, &s->cut, k) + s->ring * ls_stage_inputs(job->train_problem, &s->cut, k);
    if (b->kind == LS_BUDGET_BYTES)
        wish.budget = (int64_t)b->value > s->fixed[k] ? (int64_t)b->value - s->fixed[k] : 1;
    wish.percent = b->kind == LS_BUDGET_PERCENT ? b->value : 0;
    if (!ls_pipe_plan(a, &s->cut, k, &wish, p, why, sizeof why))
        return why[0] != '\0' ? refuse(job, why) : over_budget(job, s, k);
    if (!ls_job_audited(job, &p->graph.dag, &p->layout.plan))
        return false;
    if (!ls_pipe_audit(&p->graph, &s->cut, k, &p->layout, &s->flow[k], why, sizeof why))
        return ls_error(&job->cx, LS_NOWHERE, LS_E_VERIFY, NULL, "the plan of stage %u is wrong: %s", k + 1, why);
    s->code[k] = (LsCodeStage){.phase = {ls_stage_problem(a, job->train_problem, &p->graph), &p->layout.plan, false},
                               .plan = p, .flow = &s->flow[k]};
    return true;
}

/* The figures of the whole program: one process that runs all stages as threads. */
static void sum_up(LsJob *job, LsStagedJob *s)
{
    uint64_t hash = 0;
    int64_t at = 0;
    job->plan = (LsPlan){.strategy = s->plan[0].layout.plan.strategy};
    for (uint32_t k = 0; k < s->cut.k; k++) {
        const LsPlan *plan = &s->plan[k].layout.plan;
        char text[17];
        s->code[k].at = at;
        at += ls_align(s->plan[k].layout.arena, LS_ALIGNMENT);
        job->plan.cost += plan->cost;
        job->plan.base_cost += plan->base_cost;
        ls_plan_hash(plan, text);
        hash = hash * 31 + strtoull(text, NULL, 16);
    }
    snprintf(job->report.hash, sizeof job->report.hash, "%016" PRIx64, hash * 31 + (uint64_t)s->order);
    for (uint32_t k = 0; k < s->cut.ncopy; k++)
        job->state_bytes += ls_align(job->dag->tensor[s->cut.copy[k].tensor].bytes, LS_ALIGNMENT);
    job->input_bytes = job->input_bytes / LS_RING * s->ring;
    job->arena_bytes = at > job->eval_plan.arena ? at : job->eval_plan.arena;
}

/* Cuts a loaded job into stages and plans each. */
static int plan_stages(LsJob *job, LsStagedJob *s, const LsBudget *b, const LsPlanOptions *want, const LsHints *hints)
{
    LsArena *a = job->cx.arena;
    if (!cut(job, s, want))
        return ls_job_failed(job);
    s->plan = ls_arena_alloc(a, s->cut.k, sizeof *s->plan);
    s->code = ls_arena_alloc(a, s->cut.k, sizeof *s->code);
    s->fixed = ls_arena_alloc(a, s->cut.k, sizeof *s->fixed);
    for (uint32_t k = 0; k < s->cut.k; k++) {
        if (job->cx.log == NULL)
            ls_stage(job->options, "planning stage %" PRIu32 " of %" PRIu32, k + 1, s->cut.k);
        const bool ok = plan_stage(job, s, k, b, want, hints);
        ls_stage_end(job->options);
        if (!ok)
            return ls_job_failed(job);
    }
    if (!ls_job_audited(job, &job->eval_problem->dag, &job->eval_plan))
        return ls_job_failed(job);
    sum_up(job, s);
    job->staged = s;
    return ls_job_fits_machine(job, job->arena_bytes + job->state_bytes + job->input_bytes) ? 0 : ls_job_failed(job);
}

int ls_staged_plan(LsJob *job)
{
    LsStagedJob *s = ls_arena_alloc(job->cx.arena, 1, sizeof *s);
    const int order = ls_options_word("--order", job->options->order, ls_order_name, LS_ORDER_1F1B);
    LsPlanOptions want = {.unproven = true};
    LsHints hints;
    LsBudget b;
    int code = order < 0 ? LS_EXIT_USAGE : ls_options_planning(job->options, &want);
    code = code != 0 ? code : ls_options_checkpoint(job->options, &job->checkpoint);
    code = code != 0 ? code : ls_options_hints(job->options, &hints);
    code = code != 0 || ls_job_budget(job->options, &b) ? code : LS_EXIT_USAGE;
    code = code != 0 ? code : ls_staged_check(job);
    code = code != 0 ? code : ls_job_load(job);
    if (code != 0)
        return code;
    s->order = (LsOrderKind)order;
    job->budget = b.kind == LS_BUDGET_BYTES ? (int64_t)b.value : 0;
    return plan_stages(job, s, &b, &want, &hints);
}

const char *ls_staged_text(const LsJob *job)
{
    const LsStagedJob *s = job->staged;
    int64_t most = 0;
    if (s == NULL)
        return "";
    for (uint32_t k = 0; k < s->cut.k; k++)
        most = s->fixed[k] + s->plan[k].layout.arena > most ? s->fixed[k] + s->plan[k].layout.arena : most;
    return ls_arena_printf(job->cx.arena, ", %" PRIu32 " stages (%s), the largest rank %s", s->cut.k, ls_order_name[s->order],
                           ls_bytes_text(job->cx.arena, most));
}

double ls_staged_step_ns(const LsJob *job)
{
    double most = 0, sum = 0;
    for (uint32_t k = 0; k < job->staged->cut.k; k++) {
        const double ns = job->staged->plan[k].layout.plan.cost;
        most = ns > most ? ns : most;
        sum += ns;
    }
    return sum + (double)(ls_options_parts(job->options) - 1) * most;
}
