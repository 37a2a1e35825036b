/* cli/job.c -- shared by plan and compile. */
#include "cli/job.h"

#include "cli/memory_here.h"
#include "cli/stage.h"
#include "codegen/planning/measured_costs.h"
#include "codegen/planning/step_replay.h"
#include "codegen/program/lowering.h"
#include "runtime/ls_program.h"
#include "scheduler/plan/hint_plan.h"
#include "scheduler/plan/plan_audit.h"
#include "scheduler/graph/dag_read.h"
#include "scheduler/report/html.h"
#include "scheduler/plan/spread_offsets.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
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

/* Bytes of the state of a graph that graph `of` has not. */
static int64_t state_of(const LsJob *job, const LsGraph *g, const LsGraph *of)
{
    int64_t bytes = 0;
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (ls_is_state(g, (LsValueId){i}) && (of == NULL || !ls_is(ls_source_named(of, g->value[i].name))))
            bytes += ls_align(ls_stored_bytes(g, (LsValueId){i}, job->target.real_bytes), LS_ALIGNMENT);
    return bytes;
}

/* Bytes that the trainer's exchange allocates. */
static int64_t exchange_bytes(const LsJob *job, const LsGraph *g)
{
    int64_t sums = 0, rows = 0;
    for (uint32_t i = 1; i < g->nvalue; i++)
        sums += g->value[i].rank_sum ? ls_stored_bytes(g, (LsValueId){i}, job->target.real_bytes) : 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        rows += g->node[i].op == LS_OP_PART_STAT ? ls_value_bytes(g, ls_in(g, (LsNodeId){i}, 0), job->target.real_bytes) : 0;
    return ls_rank_exchange_bytes(g->ranks, g->block, sums, rows);
}

static void add_fixed(LsJob *job)
{
    const LsGraph *g = job->train;
    job->state_bytes = state_of(job, g, NULL);
    if (g->updates != NULL) {
        job->state_bytes += state_of(job, g->updates, g);
        job->exchange_bytes = exchange_bytes(job, g);
    }
    int batches = job->target.kind == LS_TARGET_CUDA ? (int)LS_DEVICE_SLOTS : (int)LS_RING;
    for (uint32_t i = 0; i < g->ninput; i++)
        job->input_bytes +=
            batches * ls_align(ls_stored_bytes(g, g->input[i], job->target.real_bytes), LS_ALIGNMENT);
}

/* Sets the costs of the nodes of both forms: the machine's, or measured for training. */
static bool price(LsJob *job)
{
    const LsMachine *m = &job->machine;
    const char *path = job->options->costs;
    LsMeasured from;
    int threads = m->threads;
    ls_problem_price(job->eval_problem, m);
    ls_problem_price(job->train_problem, m);
    if (job->update_problem != NULL)
        ls_problem_price(job->update_problem, m);
    if (path != NULL) {
        if (!ls_measured_load(&job->cx, path, &from)
            || !ls_measured_price(&job->cx, &from, job->train_problem, m))
            return false;
        threads = from.threads;
        job->costs = ls_arena_printf(job->cx.arena, "measured in %s (%u of %u nodes, the others by "
                                     "machine %s)", path, from.matched, from.nodes, m->name);
    }
    if (threads > 0)
        job->costs = ls_arena_printf(job->cx.arena, "%s, %d thread%s", job->costs, threads,
                                     threads == 1 ? "" : "s");
    return true;
}

/* Globs of the values that hints name: such values must be stored, so that a plan can keep or
 * forget them. */
typedef struct Made { const char **glob; uint32_t n; } Made;

static Made made_for_hints(LsJob *job)
{
    const LsList *keep = &job->options->keep, *forget = &job->options->forget;
    Made made = {.glob = ls_arena_alloc(job->cx.arena, (size_t)(keep->n + forget->n),
                                        sizeof *made.glob)};
    for (int k = 0; k < keep->n; k++)
        made.glob[made.n++] = keep->item[k];
    for (int k = 0; k < forget->n; k++)
        made.glob[made.n++] = forget->item[k];
    return made;
}

/* The evaluation form with the training graph's layouts; NULL after diagnostics. */
static LsGraph *import_eval(LsJob *job)
{
    LsPipelineOptions o = job->pipeline;
    o.import.training = false;
    o.like = job->train;
    o.precision.compute = o.eval_compute;
    o.dump = NULL;
    o.import.weightless = true;     /* values come from the file that the program embeds */
    LsCtx quiet = job->cx;          /* the training form has given the same warnings */
    quiet.log = fopen("/dev/null", "w");
    LsGraph *g = ls_pipeline(&quiet, job->options->model, &o);
    if (quiet.log != NULL)
        fclose(quiet.log);
    if (g == NULL) {                /* again, with diagnostics */
        ls_warn(&job->cx, LS_NOWHERE, NULL, "the evaluation form of the model cannot be built");
        ls_pipeline(&job->cx, job->options->model, &o);
    }
    return g;
}

static bool build_graphs(LsJob *job)
{
    const LsOptions *o = job->options;
    job->pipeline.import.training = true;
    job->train = ls_pipeline(&job->cx, o->model, &job->pipeline);
    job->eval = job->train != NULL ? import_eval(job) : NULL;
    if (job->eval == NULL)
        return false;
    const Made made = made_for_hints(job);
    LsLowering l = {.target = &job->target, .machine = &job->machine, .name = o->model,
                    .no_epilogues = o->no_epilogues, .own_convolutions = o->own_convolutions,
                    .compiled_engines = o->compiled_engines,
                    .store_gradients = o->store_gradients, .no_alternatives = o->no_alternatives,
                    .made = made.glob, .nmade = made.n, .train = job->train, .eval = job->eval};
    bool ok = ls_lower(&job->cx, &l);
    job->train = l.train;
    job->eval = l.eval;
    job->train_problem = l.train_problem;
    job->eval_problem = l.eval_problem;
    job->update_problem = l.update_problem;
    return ok && price(job);
}

double ls_job_plan_ns(const LsJob *job, const LsPlan *plan)
{
    const double runs = job->pipeline.ensemble.members > 0 ? (double)job->pipeline.ensemble.members : 1;
    if (job->graph_file)
        return plan->cost;
    return job->machine.gpu || job->options->costs != NULL
               ? plan->cost + job->machine.step
               : runs * ls_replay_ns(job->cx.arena, job->train_problem, plan, &job->machine);
}

/* Arenas of the program: an ensemble has one for each lane. */
static int64_t arenas(const LsJob *job)
{
    return job->pipeline.ensemble.members > 0 ? job->pipeline.ensemble.lanes : 1;
}

void ls_job_set_arena(LsJob *job)
{
    const int64_t of[] = {job->plan.arena, job->eval_plan.arena, job->last_plan.arena, job->update_plan.arena};
    job->arena_bytes = 0;
    for (int k = 0; k < 4; k++)
        job->arena_bytes = of[k] > job->arena_bytes ? of[k] : job->arena_bytes;
    job->arena_bytes *= arenas(job);
}

const char *ls_job_gap_text(const LsJob *job)
{
    return ls_arena_printf(job->cx.arena, " (at most %.2f %% more than necessary)",
                           100 * ls_plan_gap(&job->plan, &job->report));
}

int64_t ls_job_micro_steps(const LsJob *job)
{
    return ls_options_parts(job->options) * (job->options->accumulate > 1 ? job->options->accumulate : 1);
}

int64_t ls_job_own_steps(const LsJob *job)
{
    return ls_job_micro_steps(job) / (job->options->ranks > 1 ? job->options->ranks : 1);
}

double ls_job_update_ns(const LsJob *job)
{
    return job->update_problem != NULL ? job->update_plan.cost / (job->train->sliced ? job->train->ranks : 1) : 0;
}

double ls_job_step_ns(const LsJob *job)
{
    const LsPlan *last = job->last_plan.nstep > 0 ? &job->last_plan : &job->plan;
    const int64_t parts = ls_options_parts(job->options) / (job->options->ranks > 1 ? job->options->ranks : 1);
    return (parts > 1 ? (double)(parts - 1) * ls_job_plan_ns(job, &job->plan) : 0) + ls_job_plan_ns(job, last)
           + ls_job_update_ns(job);
}

bool ls_job_is_graph(const char *path)
{
    FILE *f = fopen(path, "rb");
    int c = f != NULL ? fgetc(f) : EOF;
    while (c != EOF && isspace(c))
        c = fgetc(f);
    if (f != NULL)
        fclose(f);
    return c == '{' || c == '[';    /* no field of a ModelProto begins so */
}

static bool read_graph(LsJob *job)
{
    char why[512];
    LsDag *dag = ls_dag_read(job->cx.arena, job->options->model, why, sizeof why);
    if (dag == NULL)
        return ls_error(&job->cx, LS_NOWHERE, LS_E_PARSE, NULL, "not a training graph: %s", why);
    if (job->options->model_only != NULL)
        return ls_error(&job->cx, LS_NOWHERE, LS_E_OPTION, NULL, "%s is for models, but this is a training graph",
                        job->options->model_only);
    for (uint32_t t = 0; t < dag->ntensor; t++)
        job->state_bytes += dag->tensor[t].persistent ? dag->tensor[t].bytes : 0;
    job->dag = dag;
    return true;
}

static bool load(LsJob *job)
{
    if (job->options->verbose && job->cx.log == NULL)
        ls_stage(job->options, "reading");
    if (job->graph_file)
        return read_graph(job);
    if (!build_graphs(job))
        return false;
    add_fixed(job);
    job->dag = &job->train_problem->dag;
    return true;
}

/* Plans the evaluation form and the updates after an exchange, which run within the same arena. */
static bool plan_eval(LsJob *job)
{
    LsPlanOptions eval = {.strategy = "none", .no_inplace = job->options->no_inplace};
    LsPlanReport report;
    return job->graph_file
           || (ls_plan(job->cx.arena, &job->eval_problem->dag, &eval, &job->eval_plan, &report)
               && (job->update_problem == NULL
                   || ls_plan(job->cx.arena, &job->update_problem->dag, &eval, &job->update_plan, &report)));
}

static bool is_of_store_all(const LsJob *job)
{
    return job->options->budget_of != NULL && strcmp(job->options->budget_of, "store-all") == 0;
}

/* Everything but the plan without recomputation. 0 or the exit code. */
static int load_model(LsJob *job)
{
    const char *of = job->options->budget_of;
    if (job->options->no_offsets && !job->graph_file) {
        fprintf(stderr, "lowerset: --no-offsets is for training graphs (GRAPH.json): the program of a model needs "
                        "offsets\n");
        return LS_EXIT_USAGE;
    }
    if (of != NULL && !is_of_store_all(job) && strcmp(of, "none") != 0) {
        fprintf(stderr, "lowerset: --budget-of: '%s' is not one of none store-all\n", of);
        return LS_EXIT_USAGE;
    }
    return load(job) && plan_eval(job) ? 0 : ls_job_failed(job);
}

static void set_none(LsJob *job, const LsPlanReport *report)
{
    job->none = *report->none;
    job->whole = is_of_store_all(job) ? report->store_all : report->none_arena;
}

static bool plan_none(LsJob *job)
{
    LsPlanReport report;
    LsPlanOptions none = {.strategy = "none", .no_offsets = job->options->no_offsets};
    bool ok = ls_plan(job->cx.arena, job->dag, &none, &job->none, &report);
    if (ok)
        set_none(job, &report);
    return ok;
}

int ls_job_load(LsJob *job)
{
    int code = load_model(job);
    return code != 0 || plan_none(job) ? code : ls_job_failed(job);
}

int64_t ls_job_fixed_bytes(const LsJob *job)
{
    return job->graph_file ? 0 : job->state_bytes + job->input_bytes + job->exchange_bytes;
}

int64_t ls_job_arena_budget(const LsJob *job, const LsBudget *b)
{
    int64_t arena = ((int64_t)b->value - ls_job_fixed_bytes(job)) / arenas(job);
    if (b->kind == LS_BUDGET_PERCENT)
        arena = (int64_t)floor((double)job->whole * b->value / 100);
    else if (b->kind != LS_BUDGET_BYTES)
        return 0;
    return arena > 0 ? arena : 1;
}

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
    const char *place = node == NULL ? "" : ls_arena_printf(a, "at node '%s' with %u live tensors, the "
        "largest '%s' of %s", node, r->nowner, g->tensor[r->owner[0].tensor].name,
        like_budget(job, r->owner[0].bytes));
    return r->least_bound <= 0 ? place : ls_arena_printf(a, "%s%sno plan at all has an arena below %s",
        place, place[0] != '\0' ? "; " : "", like_budget(job, r->least_bound));
}

static int over_budget(LsJob *job)
{
    int64_t fixed = ls_job_fixed_bytes(job);
    const LsPlanReport *r = &job->report;
    const LsOptions *o = job->options;
    LsArena *a = job->cx.arena;
    if (r->error != NULL && r->nrow == 0) {     /* no search was made */
        fprintf(stderr, "lowerset: --strategy: %s\n", r->error);
        return LS_EXIT_USAGE;
    }
    int64_t arena = arenas(job) * (r->least > job->eval_plan.arena ? r->least : job->eval_plan.arena);
    const char *budget = like_budget(job, job->budget), *least = like_budget(job, fixed + arena);
    const char *whose = o->strategy != NULL ? ls_arena_printf(a, " by strategy %s", o->strategy)
        : o->checkpoint != NULL && job->checkpoint != LS_CHECKPOINT_AUTO
            ? ls_arena_printf(a, " with --checkpoint=%s", o->checkpoint)
        : o->keep.n + o->forget.n > 0 || o->recompute != NULL ? " with these hints" : "";
    const char *parts = fixed == 0 ? "" : ls_arena_printf(a, "%s for state and input ring and %s for the "
        "arena, ", like_budget(job, fixed), like_budget(job, arena));
    if (strcmp(budget, least) == 0) {           /* equal after rounding */
        budget = ls_arena_printf(a, "%" PRId64 " B", job->budget);
        least = ls_arena_printf(a, "%" PRId64 " B", fixed + arena);
    }
    ls_error(&job->cx, LS_NOWHERE, LS_E_BUDGET,
             ls_arena_printf(a, "ask for --budget %" PRId64 " (%s) or more, or --budget min",
                             fixed + arena, least),
             "the budget is %s, but the least budget found%s is %s, %s%s", budget, whose, least, parts,
             least_place(job));
    return ls_job_failed(job);
}

bool ls_job_audited(LsJob *job, const LsDag *dag, const LsPlan *plan)
{
    char why[512];
    return ls_audit(dag, plan, why, sizeof why)
        || ls_error(&job->cx, LS_NOWHERE, LS_E_VERIFY, NULL, "the plan is wrong: %s", why);
}

/* Fills in the planner's budget. A percentage refers to the plan without recomputation; where the
 * planner makes a different one, to the one made here. */
static bool set_budget(LsJob *job, const LsHinted *hinted, const LsBudget *b, LsPlanOptions *want)
{
    bool apart = hinted != NULL || want->no_inplace;
    if (apart && !plan_none(job))
        return false;
    if (b->kind == LS_BUDGET_PERCENT && !apart) {
        want->percent = b->value;
        want->of_store_all = is_of_store_all(job);
    } else {
        want->budget = ls_job_arena_budget(job, b);
    }
    want->least = b->kind == LS_BUDGET_MIN;
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
        set_none(job, &job->report);
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
    LsPlanOptions want = {.unproven = true, .state_bytes = job->state_bytes, .budget = arena};
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
    if (ls_budget_parse(o->budget, b))
        return true;
    fprintf(stderr, "lowerset: --budget: '%s' is not a size like 2GiB, 80%% or min\n", o->budget);
    return false;
}

/* Makes both plans; true if both exist and fit what the budget leaves them. */
static bool plan_both(LsJob *job, const LsHinted *hinted, const LsBudget *b, LsPlanOptions *want)
{
    if (!set_budget(job, hinted, b, want))
        return false;
    if (job->cx.log == NULL)
        ls_stage(job->options, "planning %" PRIu32 " nodes", job->dag->nnode);
    bool ok = plan_training(job, hinted, want);
    ls_stage_end(job->options);
    int64_t arena = job->report.budget;
    if (b->kind == LS_BUDGET_BYTES)
        job->budget = (int64_t)b->value;
    else if (b->kind == LS_BUDGET_PERCENT)
        job->budget = ls_job_fixed_bytes(job) + arenas(job) * arena;
    return ok && (arena <= 0 || (job->eval_plan.arena <= arena && job->update_plan.arena <= arena));
}

/* A GPU program must fit the device, whose size is not known here. */
bool ls_job_fits_machine(LsJob *job, int64_t bytes)
{
    LsArena *a = job->cx.arena;
    int64_t here = ls_memory_here();
    if (bytes > LS_MOST_BYTES)
        return ls_error(&job->cx, LS_NOWHERE, LS_E_BUDGET, "check the sizes that --batch, --dim and "
                        "--shape give", "training takes %s, but no machine addresses more than %s",
                        ls_bytes_text(a, bytes), ls_bytes_text(a, LS_MOST_BYTES));
    if (here > 0 && bytes > here && job->target.kind == LS_TARGET_CPU && !job->graph_file)
        ls_warn(&job->cx, LS_NOWHERE, "use a smaller --batch or --budget, or a larger machine",
                "the program takes %s, but this machine has %s", ls_bytes_text(a, bytes),
                ls_bytes_text(a, here));
    return true;
}

/* With --checkpoint=except-last: the plan of the last micro-step of an update, and a hash of both plans. Its arena must
 * keep the same budget. */
static int plan_last(LsJob *job, const LsBudget *b)
{
    LsPlanReport report = job->report;
    const int64_t arena = b->kind == LS_BUDGET_MIN ? 0 : job->report.budget;
    if (job->checkpoint != LS_CHECKPOINT_EXCEPT_LAST)
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

int ls_job_plan(LsJob *job)
{
    LsPlanOptions want = {.compare = job->compare, .unproven = job->unproven};
    const LsHinted *hinted;
    LsHints hints;
    LsBudget budget;
    int code = ls_options_planning(job->options, &want);
    code = code != 0 ? code : ls_options_checkpoint(job->options, &job->checkpoint);
    code = code != 0 ? code : ls_options_hints(job->options, &hints);   /* invalid hints are
                                                                         * reported early */
    code = code != 0 || ls_job_budget(job->options, &budget) ? code : LS_EXIT_USAGE;
    code = code != 0 ? code : load_model(job);
    code = code != 0 ? code : ls_job_hints(job, &hinted);
    if (code != 0)
        return code;
    want.state_bytes = job->state_bytes;
    if (!plan_both(job, hinted, &budget, &want))
        return over_budget(job);
    if (job->options->overlap) {
        ls_spread(job->cx.arena, job->dag, &job->plan);
        ls_plan_hash(&job->plan, job->report.hash);
    }
    if (!ls_job_audited(job, job->dag, &job->plan)
        || (!job->graph_file
            && (!ls_job_audited(job, &job->eval_problem->dag, &job->eval_plan)
                || (job->update_problem != NULL
                    && !ls_job_audited(job, &job->update_problem->dag, &job->update_plan)))))
        return ls_job_failed(job);
    code = plan_last(job, &budget);
    if (code != 0)
        return code;
    ls_job_set_arena(job);
    return ls_job_fits_machine(job, job->arena_bytes + ls_job_fixed_bytes(job)) ? 0 : ls_job_failed(job);
}
