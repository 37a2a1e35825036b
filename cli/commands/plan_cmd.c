/* cli/commands/plan_cmd.c -- lowerset plan: prints the memory of training and the cost of a budget;
 * builds nothing. */
#include "cli/report/adapter_report.h"
#include "cli/report/policy_table.h"
#include "cli/commands/commands.h"
#include "cli/job/job.h"
#include "cli/job/max_batch.h"
#include "cli/job/told_times.h"
#include "cli/options/optimizer_spec.h"
#include "cli/report/output.h"
#include "cli/commands/plan_against.h"
#include "cli/commands/plan_stages.h"
#include "cli/report/precision_advice.h"
#include "cli/report/rank_report.h"
#include "cli/report/tile_report.h"
#include "cli/options/scale_spec.h"
#include "codegen/cuda/conv_report.h"
#include "compiler/ir/precision.h"
#include "compiler/updates/trained_share.h"
#include "scheduler/graph/dag_read.h"
#include "scheduler/plan/plan_json.h"
#include "scheduler/plan/run_dependencies.h"
#include "scheduler/report/memory_timeline.h"
#include "scheduler/report/plan_page.h"
#include "scheduler/report/plan_view.h"

#include <inttypes.h>
#include <string.h>

enum { OWNERS_SHOWN = 6 };

typedef void (*Writer)(FILE *to, const LsJob *job);

static void write_graph(FILE *to, const LsJob *job) { ls_dag_write(to, job->dag); }
static void write_dot(FILE *to, const LsJob *job)
{
    ls_view_dot(to, job->dag, &job->plan);
}
static void write_timeline_table(FILE *to, const LsJob *job)
{
    ls_timeline_table(to, job->dag, &job->plan);
}

static void write_timeline_svg(FILE *to, const LsJob *job)
{
    ls_timeline_svg(to, job->dag, &job->plan,
                    &(LsTimelineFacts){job->options->model, ls_job_costs_of(job),
                                       job->plan.cost > job->none.cost ? &job->none : NULL,
                                       job->report.budget});
}

static void write_plan(FILE *to, const LsJob *job)
{
    ls_plan_write(to, job->dag, &job->plan, &job->report);
}

static void write_page(FILE *to, const LsJob *job)
{
    ls_report_plan(job->cx.arena, to, job->dag, &job->plan, &job->report,
                   &(LsPageFacts){job->options->model, job->state_bytes, job->input_bytes});
}

typedef struct Writing { Writer write; const LsJob *job; } Writing;

static void put(FILE *to, void *user)
{
    const Writing *w = user;
    w->write(to, w->job);
}

/* path NULL: file not requested. */
static int write_file(const char *path, Writer write, const LsJob *job)
{
    Writing w = {write, job};
    return path == NULL || ls_output_write(path, put, &w) ? 0 : LS_EXIT_MODEL;
}

/* FILE.svg: a drawing; any other name: the data. */
static int write_timeline(const LsJob *job)
{
    const char *path = job->options->reports.timeline;
    size_t n = path != NULL ? strlen(path) : 0;
    bool picture = n >= 4 && strcmp(path + n - 4, ".svg") == 0;
    return write_file(path, picture ? write_timeline_svg : write_timeline_table, job);
}

static void print_share(const LsJob *job, const char *what, int64_t bytes, const char *why)
{
    printf("  %-12s %12s  %s\n", what, ls_bytes_text(job->cx.arena, bytes), why);
}

/* For NVIDIA GPUs: prints cuDNN's part, and the speed with factors rounded to TF32. */
static void print_gpu(const LsJob *job)
{
    LsProblem fast = *job->train_problem;
    const LsDagNode *node = job->train_problem->dag.node;
    double ns = ls_job_step_ns(job);
    ls_conv_report(stdout, job->target.convs, job->train, job->target.real_bytes,
                   job->options->output.verbose);
    if (job->target.tf32 || job->target.real_bytes != 4 || job->options->machine.costs != NULL
        || job->pipeline.precision.compute != LS_REAL)
        return;
    fast.target.tf32 = true;
    fast.dag.node = ls_arena_alloc(job->cx.arena, fast.dag.nnode, sizeof *node);
    memcpy(fast.dag.node, node, fast.dag.nnode * sizeof *node);
    ls_problem_price(&fast, &job->machine);
    for (uint32_t k = 0; k < job->plan.nstep; k++)
        if (!job->plan.step[k].free)
            ns += fast.dag.node[job->plan.step[k].id].cost - node[job->plan.step[k].id].cost;
    printf("  with --precision=tf32 this plan's step would take %.4g ms (%s)\n", ns * 1e-6,
           ls_job_told_of(job));
}

/* Prints the price of the loss scale: updates wait for all gradients. */
static void print_scaling(const LsJob *job)
{
    const LsOptimizerOptions *op = &job->pipeline.optimizer;
    const LsGraph *g = job->train;
    int64_t bytes = 0;
    if (!op->scale.on)
        return;
    for (uint32_t k = 0; k < ls_gradients(g); k++)
        bytes += ls_value_bytes(g, g->grad[k].grad, job->target.real_bytes);
    printf("  loss scale %s: updates wait for all gradients",
           ls_scale_text(job->cx.arena, &op->scale));
    if (op->clip_norm > 0)
        printf(", as --clip-norm has them wait anyway\n");
    else
        printf(", %s of them in the arena at once%s\n", ls_bytes_text(job->cx.arena, bytes),
               job->pipeline.precision.compute == LS_F16 ? "; --precision=bf16 needs no loss scale"
                                                         : "");
}

/* Prints the dependencies of steps that may overlap. */
static void print_overlap(const LsJob *job)
{
    LsPieces p = ls_pieces(job->cx.arena, job->dag, &job->plan);
    LsWaits w = ls_waits(job->cx.arena, &p, false);
    printf("  independent steps run at the same time where that is faster: the longest chain of "
           "dependent steps takes %.4g of "
           "%.4g ms, by the plan's costs\n",
           ls_waits_longest(&p, &w) * 1e-6, p.begin[p.nrun] * 1e-6);
}

/* Bytes that the driver takes on the device: for itself and the libraries, and for the recordings
 * that let independent steps run at the same time. An H200 took 35e3 to 65e3 for a step of the
 * plan, in steps of 228 to 1413. */
static int64_t context_bytes(const LsJob *job)
{
    enum { OF_A_STEP = 50000 };
    int64_t bytes = (int64_t)job->machine.context;
    if (!ls_job_overlaps(job))
        return bytes;
    for (uint32_t k = 0; k < job->plan.nstep; k++)
        bytes += job->plan.step[k].free ? 0 : OF_A_STEP;
    return bytes;
}

/* Values that are computed in parts, and what the program would take with whole ones. */
static void print_tiles(const LsJob *job)
{
    LsArena *a = job->cx.arena;
    if (job->tiling.tiles == 0)
        return;
    printf("  values of %s or more in %" PRId64 " parts of the %s: %u kernels",
           ls_bytes_text(a, job->tiling.least), job->tiling.tiles,
           ls_tiling_of(&job->tiling), job->tiled);
    if (job->untiled > 0)
        printf("; with whole values at least %s in all", ls_bytes_text(a, job->untiled));
    printf("\n");
    ls_tile_print(job);
}

/* Prints the memory of the process, part by part. */
static void print_memory(const LsJob *job)
{
    printf("%s: plan %s, strategy %s", job->options->model, job->report.hash, job->plan.strategy);
    if (!job->graph_file)
        printf(", batch %" PRId64, job->train->batch * ls_options_parts(job->options));
    printf("\n");
    print_share(job, "state", job->state_bytes, job->graph_file ? "persistent tensors" :
                "parameters, running statistics, optimizer moments");
    if (!job->graph_file)
        print_share(job, "input", job->input_bytes, job->target.kind == LS_TARGET_CUDA
                    ? "two batches on the device" : "ring of batches");
    if (job->exchange_bytes > 0)
        print_share(job, "exchange", job->exchange_bytes, "what other ranks send");
    if (job->shared != NULL)
        print_share(job, "shared", job->shared->bytes,
                    "activations that are the same for all members, made once in a step");
    print_share(job, job->plan.unplaced ? "live" : "arena", job->arena_bytes,
                "activations, gradients, workspaces");
    print_share(job, "total",
                job->state_bytes + job->input_bytes + job->exchange_bytes + job->arena_bytes
                    + (job->shared != NULL ? job->shared->bytes : 0),
                "");
    if (job->target.kind == LS_TARGET_CUDA)
        print_share(job, "+ context", context_bytes(job),
                    "driver and libraries on the device: an estimate, outside the budget");
    if (job->budget > 0)
        print_share(job, "budget", job->budget, job->plan.unplaced ? "of live bytes"
                    : job->graph_file ? "of the arena" : "");
    printf("  recomputation costs %.2f %% of a step, at most %.2f %% more than necessary\n",
           100 * ls_plan_overhead(&job->plan), 100 * ls_plan_gap(&job->plan, &job->report));
    if (ls_plan_overhead(&job->plan) < 0)
        printf(
            "  below 0, because kernels that replace others save more than recomputation costs\n");
    print_tiles(job);
    if (!job->graph_file)
        printf("  a step takes %.4g ms (%s); the plan is by the costs of %s\n",
               ls_job_step_ns(job) * 1e-6, ls_job_told_of(job), job->costs);
    if (!job->graph_file) {
        printf("  %s\n", ls_trained_share_text(job->train));
        if (job->train->inert.biases > 0)
            printf("  %" PRIu32 " biases of %" PRId64 " elements are not added in front of batch "
                   "norms, and stay as they are\n",
                   job->train->inert.biases, job->train->inert.elements);
        printf("  optimizer %s\n", ls_optimizer_state_text(job->train, job->pipeline.optimizer.kind,
                                                           job->target.real_bytes));
        print_scaling(job);
    }
    if (!job->graph_file && job->pipeline.eval_compute != job->pipeline.precision.compute)
        printf("  evaluation computes in %s, within %s of the arena\n",
               ls_precision_name(job->pipeline.eval_compute),
               ls_bytes_text(job->cx.arena, job->eval_plan.arena));
    ls_precision_advice(job);
    if (job->target.kind == LS_TARGET_CUDA && !job->graph_file)
        print_gpu(job);
    if (ls_job_overlaps(job))
        print_overlap(job);
    printf("  ");
    ls_view_turn(stdout, job->dag, &job->plan);
}

/* What members of an ensemble share in a step, as JSON; NULL: nothing. */
static const char *shared_json(const LsJob *job)
{
    return job->shared == NULL
               ? NULL
               : ls_arena_printf(job->cx.arena,
                                 "{\"bytes\":%" PRId64 ",\"nodes\":%" PRIu32
                                 ",\"arena_bytes\":%" PRId64 "}",
                                 job->shared->bytes, job->shared->once->dag.nnode,
                                 job->once_plan.arena);
}

static const char *tiles_json(const LsJob *job)
{
    return job->tiling.tiles == 0
               ? NULL
               : ls_arena_printf(job->cx.arena,
                                 "{\"parts\":%" PRId64 ",\"of\":\"%s\",\"least_bytes\":%" PRId64
                                 ",\"nodes\":%" PRIu32 ",\"bytes_without\":%" PRId64
                                 ",\"regions\":%s}",
                                 job->tiling.tiles, ls_tiling_of(&job->tiling),
                                 job->tiling.least, job->tiled, job->untiled, ls_tile_json(job));
}

static int report(LsJob *job)
{
    const LsOptions *o = job->options;
    const LsDag *dag = job->dag;
    if (o->reports.json) {
        if (!job->graph_file)
            job->report.costs = job->costs, job->report.step_ns = ls_job_step_ns(job);
        job->report.precisions = ls_precision_json(job);
        job->report.microbatches = ls_recompute_json(job);
        job->report.ranks = ls_rank_json(job);
        job->report.adapters = ls_adapter_json(job);
        job->report.shared = shared_json(job);
        job->report.tiles = tiles_json(job);
        ls_view_json(stdout, dag, &job->plan, &job->report);
    } else if (!ls_against_has_stdout(o)) {
        ls_job_tell_people(job);
        print_memory(job);
        if (!ls_recompute_print(job))
            return ls_job_failed(job);
        ls_rank_report(job);
        ls_adapter_report(job);
        printf("\n");
        ls_view_table(stdout, &job->report);
        printf("\n");
        ls_view_bound(stdout, dag, &job->plan, &job->report);
        printf("\n");
        ls_view_peak(stdout, dag, &job->report, OWNERS_SHOWN);
        if (o->output.verbose) {
            printf("\n");
            ls_view_again(stdout, dag, &job->plan);
        }
    }
    int code = write_file(o->reports.graph_json, write_graph, job);
    code = code != 0 ? code : write_file(o->reports.plan_json, write_plan, job);
    code = code != 0 ? code : write_file(o->reports.dot, write_dot, job);
    code = code != 0 ? code : write_file(o->reports.page, write_page, job);
    return code != 0 ? code : write_timeline(job);
}

/* Checks output files early, before minutes of planning. */
static bool outputs_can_be(const LsOptions *o)
{
    return ls_output_check(o->reports.graph_json) && ls_output_check(o->reports.plan_json)
           && ls_output_check(o->reports.dot) && ls_output_check(o->reports.page)
           && ls_output_check(o->reports.timeline);
}

int ls_plan_main(int argc, char **argv)
{
    LsOptions o = {0};
    LsJob job;
    LsAgainstPlan against;
    int code = ls_options_parse(&o, LS_CMD_PLAN, argc, argv);
    code = code != 0 ? code : ls_against_check(&o, &against);
    if (code != 0)
        return code;
    if (o.memory.max_batch)
        return ls_max_batch(&o);
    if (!outputs_can_be(&o))
        return LS_EXIT_MODEL;
    if (o.pipe.stages > 0)
        return ls_plan_stages(&o);
    if (o.pipe.order != NULL || o.pipe.link != NULL) {
        fprintf(stderr, "lowerset: %s is for pipelines: it needs --stages\n",
                o.pipe.order != NULL ? "--order" : "--link");
        return LS_EXIT_USAGE;
    }
    code = ls_job_start(&job, &o, true);
    code = code != 0 ? code : ls_against_read(&job, &against);
    job.graph_file = ls_job_is_graph(o.model);
    job.compare = o.memory.strategy == NULL;
    if (code == 0)
        code = ls_job_plan(&job);
    job.report.of = job.of;
    /* the report of --json has the verdict; that for people ends with it */
    int verdict = code == 0 && o.reports.json ? ls_against_report(&job, &against) : 0;
    if (code == 0)
        code = report(&job);
    if (code == 0 && !o.reports.json)
        verdict = ls_against_report(&job, &against);
    code = code != 0 ? code : verdict;
    if (code == LS_EXIT_BUDGET && o.reports.json)
        ls_view_json(stdout, job.dag, NULL, &job.report);
    ls_job_end(&job);
    return code;
}
