/* cli/job/job_load.c -- from the file to the problem: imports and lowers a model's graphs, or reads
 * a training graph; sets bytes and costs. */
#include "cli/job/job_parts.h"

#include "cli/job/rank_facts.h"
#include "cli/job/progress_line.h"
#include "cli/job/told_times.h"
#include "codegen/planning/measured_costs.h"
#include "codegen/program/lowering.h"
#include "compiler/ir/precision.h"
#include "compiler/onnx/onnx_decisions.h"
#include "compiler/updates/rank_sums.h"
#include "runtime/ls_program.h"
#include "scheduler/graph/dag_read.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

/* Bytes of the state of a graph that graph `of` has not. */
static int64_t state_of(const LsJob *job, const LsGraph *g, const LsGraph *of)
{
    int64_t bytes = 0;
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (ls_is_state(g, (LsValueId){i})
            && (of == NULL || !ls_is(ls_source_named(of, g->value[i].name))))
            bytes +=
                ls_align(ls_stored_bytes(g, (LsValueId){i}, job->target.real_bytes), LS_ALIGNMENT);
    return bytes;
}

/* Counts the bytes of the number of ranks that takes the most. */
static void add_ranks(LsJob *job, LsGraph *g)
{
    LsRankFacts most = ls_rank_facts(job, g->rank.choice[0]);
    for (int k = 1; k < g->rank.nchoice; k++) {
        const LsRankFacts f = ls_rank_facts(job, g->rank.choice[k]);
        if (f.own + f.trees + f.exchange > most.own + most.trees + most.exchange) {
            most = f;
            ls_ranks_count(g, g->rank.choice[k]);
        }
    }
    job->state_bytes = state_of(job, g, NULL) + state_of(job, g->rank.updates, g);
    job->exchange_bytes = most.exchange;
}

static void add_fixed(LsJob *job)
{
    LsGraph *g = job->train;
    job->state_bytes = state_of(job, g, NULL);
    if (g->rank.updates != NULL)
        add_ranks(job, g);
    int batches = job->target.kind == LS_TARGET_CUDA ? (int)LS_DEVICE_SLOTS : (int)LS_RING;
    for (uint32_t i = 0; i < g->ninput; i++)
        job->input_bytes +=
            batches
            * ls_align(ls_stored_bytes(g, g->input[i], job->target.real_bytes), LS_ALIGNMENT);
}

/* Sets the costs of the nodes of both forms: the machine's, or measured for training. */
static bool price(LsJob *job)
{
    const LsMachine *m = &job->machine;
    const char *path = job->options->machine.costs;
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
    job->of = (LsCostsOf){path != NULL ? "measured" : m->name,
                          ls_precision_name(job->pipeline.precision.compute),
                          path == NULL && job->options->machine.threads > 0 && !m->gpu
                              ? (int)job->options->machine.threads
                              : threads};
    ls_job_set_threads(job);
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
    const LsList *keep = &job->options->memory.keep, *forget = &job->options->memory.forget;
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

static bool no_tiles(LsJob *job)
{
    static const char *const of[] = {
        "samples", "rows of one picture (--batch=1)",
        ("tokens (parts end with blocks of the sums of weights' gradients: each 256 tokens or so, "
         "of all samples together)")};
    return ls_error(&job->cx, LS_NOWHERE, LS_E_OPTION, "a smaller size, or --tiles=off",
                    "--tiles: no value of %" PRId64 " bytes or more can be computed in parts of "
                    "the %s", job->tiling.least, of[job->tiling.of]);
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
    LsLowering l = {.target = &job->target,
                    .name = o->model,
                    .no_epilogues = o->memory.no_epilogues,
                    .compiled_engines = o->machine.compiled_engines,
                    .store_gradients = o->memory.store_gradients,
                    .head_in_parts = job->pipeline.head.in_update && job->pipeline.head.chunks > 0,
                    .no_alternatives = o->memory.no_alternatives,
                    .tiling = job->tiling,
                    .made = made.glob,
                    .nmade = made.n,
                    .train = job->train,
                    .eval = job->eval};
    bool ok = ls_lower(&job->cx, &l);
    job->tiled = l.tiled;
    job->tiling.tiles = l.tiling.tiles;
    if (ok && job->tiling.tiles > 0 && l.tiled == 0)
        ok = no_tiles(job);
    job->train = l.train;
    job->eval = l.eval;
    job->train_problem = l.train_problem;
    job->eval_problem = l.eval_problem;
    job->update_problem = l.update_problem;
    return ok && price(job);
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
        return ls_error(&job->cx, LS_NOWHERE, LS_E_OPTION, NULL,
                        "%s is for models, but this is a training graph", job->options->model_only);
    for (uint32_t t = 0; t < dag->ntensor; t++)
        job->state_bytes += dag->tensor[t].persistent ? dag->tensor[t].bytes : 0;
    job->dag = dag;
    return true;
}

/* With -v, the gradients that stop. */
static void tell_stops(const LsJob *job)
{
    for (int asked = 0; asked < 2 && job->options->output.verbose; asked++) {
        const char *stops = ls_stops_text(job->cx.arena, job->train->source.decisions, asked == 1);
        if (stops != NULL)
            ls_progress_line(job->options, "%s", stops);
    }
}

static bool load(LsJob *job)
{
    if (job->options->output.verbose && job->cx.log == NULL)
        ls_progress_line(job->options, "reading");
    if (job->graph_file)
        return read_graph(job);
    if (!build_graphs(job))
        return false;
    tell_stops(job);
    add_fixed(job);
    job->dag = &job->train_problem->dag;
    return ls_job_share(job);
}

/* Plans the evaluation form and the updates after an exchange, which run within the same arena. */
static bool plan_eval(LsJob *job)
{
    LsPlanOptions eval = {.strategy = "none", .no_inplace = job->options->memory.no_inplace};
    LsPlanReport report;
    return job->graph_file
           || (ls_plan(job->cx.arena, &job->eval_problem->dag, &eval, &job->eval_plan, &report)
               && (job->update_problem == NULL
                   || ls_plan(job->cx.arena, &job->update_problem->dag, &eval, &job->update_plan,
                              &report)));
}

int ls_job_load_model(LsJob *job)
{
    const char *of = job->options->memory.budget_of;
    if (job->options->memory.no_offsets && !job->graph_file) {
        fprintf(stderr, "lowerset: --no-offsets is for training graphs (GRAPH.json): the program "
                        "of a model needs "
                        "offsets\n");
        return LS_EXIT_USAGE;
    }
    if (of != NULL && !ls_job_of_store_all(job->options) && strcmp(of, "none") != 0) {
        fprintf(stderr, "lowerset: --budget-of: '%s' is not one of none store-all\n", of);
        return LS_EXIT_USAGE;
    }
    return load(job) && plan_eval(job) ? 0 : ls_job_failed(job);
}

void ls_job_set_none(LsJob *job, const LsPlanReport *report)
{
    job->none = *report->none;
    job->whole = ls_job_of_store_all(job->options) ? report->store_all : report->none_arena;
}

bool ls_job_plan_none(LsJob *job)
{
    LsPlanReport report;
    LsPlanOptions none = {.strategy = "none", .no_offsets = job->options->memory.no_offsets};
    bool ok = ls_plan(job->cx.arena, job->dag, &none, &job->none, &report);
    if (ok)
        ls_job_set_none(job, &report);
    return ok;
}

int ls_job_load(LsJob *job)
{
    int code = ls_job_load_model(job);
    return code != 0 || ls_job_plan_none(job) ? code : ls_job_failed(job);
}
