/* cli/report/paper_table.c -- peak memory by strategy and network in the layout of the paper, and
 * the memory of auto at the overhead of the paper's best strategy.
 *
 * Peaks are arenas: activations, gradients and workspaces, packed; parameters and optimizer state
 * do not count. Costs are those of `plan`. */
#include "cli/report/paper_table.h"

#include "cli/job/job.h"
#include "cli/report/output.h"
#include "models/zoo.h"
#include "scheduler/strategies/paper_procedure.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Batch and size of images as in the paper. */
static const struct { const char *title, *model, *batch, *size; } network[] = {
    {"PSPNet", "pspnet101", "2", "713"},         {"U-Net", "unet", "8", "572"},
    {"ResNet50", "resnet50", "96", "224"},       {"ResNet152", "resnet152", "48", "224"},
    {"VGG19", "vgg19", "64", "224"},             {"DenseNet161", "densenet161", "32", "224"},
    {"GoogLeNet", "googlenet", "256", "224"},
};
enum { NNETWORKS = sizeof network / sizeof *network, MOST_SETS = 40000 };

typedef struct Row {
    const char *title, *input;
    LsPaper paper;
    int64_t state, vanilla;     /* bytes; vanilla: without recomputation */
    int64_t least, least_bound; /* least arena of auto; lower bound for any plan */
    double least_overhead;      /* of auto at that arena */
    /* at the least peak of the paper's four columns */
    LsPaperColumn best;
    int64_t peak;
    double published, dp, at_peak, bound;   /* overheads there: of that column, of the best plan of
                                             * our dynamic programs, of auto, and the lower bound
                                             * for any plan */
    int64_t at_published, at_dp;        /* least arena of auto at no more than that overhead */
} Row;

static const char *const column[LS_NPAPER] = {"approx MC", "approx TC", "exact MC", "exact TC",
                                              "Chen"};

static double overhead_at(LsPlanner *planner, const char *strategy, int64_t budget)
{
    LsPlan plan;
    LsPlanReport r;
    return ls_planner_ask(planner, strategy, budget, &plan, &r) ? ls_plan_overhead(&plan) : NAN;
}

/* The least arena at which auto stays within an overhead: a bisection between a too small and a
 * sufficient arena. */
static int64_t arena_for(LsPlanner *planner, double overhead, int64_t small, int64_t large)
{
    enum { STEPS = 14 };
    for (int k = 0; k < STEPS; k++) {
        int64_t mid = small + (large - small) / 2;
        LsPlan plan;
        LsPlanReport r;
        bool fits = ls_planner_ask(planner, "auto", mid, &plan, &r);
        if (fits && ls_plan_overhead(&plan) <= overhead)
            large = plan.arena;
        else
            small = mid;
        if (small >= large)
            break;
    }
    return large;
}

static void compare(LsPlanner *planner, Row *row)
{
    row->peak = 0;
    for (int k = 0; k < LS_PAPER_CHEN; k++) {
        const LsPaperRun *r = &row->paper.run[k];
        if (r->found && (row->peak == 0 || r->arena < row->peak)) {
            row->peak = r->arena;
            row->best = (LsPaperColumn)k;
        }
    }
    if (row->peak == 0)
        return;
    double exact = overhead_at(planner, "exact", row->peak);
    double approx = overhead_at(planner, "approx", row->peak);
    row->published = row->paper.run[row->best].overhead;
    row->dp = fmin(row->published, fmin(exact, approx));
    row->at_peak = overhead_at(planner, "auto", row->peak);
    row->at_published = arena_for(planner, row->published, row->least, row->vanilla);
    row->at_dp = arena_for(planner, row->dp, row->least, row->vanilla);
    ls_planner_bounds(planner, &row->peak, 1, &row->bound);
}

/* Measures everything for one loaded model. */
static void measure(LsJob *job, Row *row)
{
    LsPlanOptions o = {.compare = true, .unproven = true};
    LsPlan plan;
    LsPlanReport r;
    ls_options_planning(job->options, &o);
    o.strategy = "auto";
    if (job->options->memory.plan_time == NULL) {   /* the default moves without a time limit: the
                                                     * table */
        o.seconds = 3600;                           /* is the same everywhere */
        o.effort = o.effort > 0 ? o.effort : 100;
    }
    row->state = job->state_bytes;
    row->paper = ls_paper(job->dag, MOST_SETS);
    LsPlanner *planner = ls_planner_new(job->cx.arena, job->dag, &o);
    ls_planner_least(planner, "auto", &plan, &r);
    row->vanilla = r.none_arena;
    row->least = plan.arena;
    row->least_overhead = ls_plan_overhead(&plan);
    compare(planner, row);
    double cost;
    row->least_bound = ls_planner_bounds(planner, &row->least, 1, &cost);
    row->bound = row->bound / r.base_cost - 1;
    ls_planner_free(planner);
}

static int load(const LsOptions *o, Row *row)
{
    LsJob job;
    int code = ls_job_start(&job, o, true);
    job.graph_file = ls_job_is_graph(o->model);
    code = code != 0 ? code : ls_job_load(&job);
    if (code == 0)
        measure(&job, row);
    ls_job_end(&job);
    return code;
}

/* Measures a network of the zoo, through a file in dir. 0 or the exit code. */
static int run_network(const LsOptions *o, const char *dir, int k, Row *row)
{
    char err[200] = "", path[4096];
    LsModelRequest request = ls_model_request(ls_model_find(network[k].model));
    LsOptions with = *o;
    snprintf(path, sizeof path, "%s/%s.onnx", dir, network[k].model);
    with.model = path;
    bool ok = ls_model_set(&request, "batch", network[k].batch, err, sizeof err)
              && ls_model_set(&request, "size", network[k].size, err, sizeof err)
              && ls_model_set(&request, "weights", "none", err, sizeof err)
              && ls_model_write(&request, path, NULL, err, sizeof err) == 0;
    if (!ok) {
        fprintf(stderr, "lowerset: %s: %s\n", network[k].model, err);
        return LS_EXIT_MODEL;
    }
    int code = load(&with, row);
    unlink(path);
    return code;
}

static void put_gib(FILE *to, int64_t bytes) { fprintf(to, "%.2f", (double)bytes / (1 << 30)); }

/* "2.70 (-71 %)" */
static void put_peak(FILE *to, const Row *row, bool found, int64_t bytes)
{
    if (!found) {
        fprintf(to, " | ");
        return;
    }
    fprintf(to, " | ");
    put_gib(to, bytes);
    fprintf(to, " (%+.0f %%)", 100.0 * ((double)bytes / (double)row->vanilla - 1));
}

static void put_head(FILE *to, const char *first, bool with_auto)
{
    fprintf(to, "| %s", first);
    for (int k = 0; k < LS_NPAPER; k++)
        fprintf(to, " | %s", column[k]);
    fprintf(to, " | vanilla%s |\n|---", with_auto ? " | auto | no plan below" : "");
    for (int k = 0; k < LS_NPAPER + 1 + 2 * with_auto; k++)
        fprintf(to, "|--:");
    fprintf(to, "|\n");
}

static void put_networks(FILE *to, const Row *row, int n)
{
    fprintf(to, "## The networks\n\n| network | batch, input | vertices | lower sets | state, GiB "
                "|\n|---|---|--:|--:|--:|\n");
    for (int k = 0; k < n; k++) {
        fprintf(to, "| %s | %s | %" PRIu32 " | ", row[k].title, row[k].input,
                row[k].paper.vertices);
        if (row[k].paper.sets > 0)
            fprintf(to, "%" PRIu32 " | ", row[k].paper.sets);
        else
            fprintf(to, "over %d | ", MOST_SETS);
        put_gib(to, row[k].state);
        fprintf(to, " |\n");
    }
}

static void put_peaks(FILE *to, const Row *row, int n)
{
    fprintf(to, "\n## Least peak with liveness analysis, GiB (against vanilla)\n\n");
    put_head(to, "network", true);
    for (int k = 0; k < n; k++) {
        fprintf(to, "| %s", row[k].title);
        for (int c = 0; c < LS_NPAPER; c++)
            put_peak(to, &row[k], row[k].paper.run[c].found, row[k].paper.run[c].arena);
        fprintf(to, " | ");
        put_gib(to, row[k].vanilla);
        put_peak(to, &row[k], true, row[k].least);
        fprintf(to, " | ");
        put_gib(to, row[k].least_bound);
        fprintf(to, " |\n");
    }
    fprintf(to, "\n## Recomputation at that peak, %% of a step\n\n");
    put_head(to, "network", false);
    for (int k = 0; k < n; k++) {
        fprintf(to, "| %s", row[k].title);
        for (int c = 0; c < LS_NPAPER; c++)
            if (row[k].paper.run[c].found)
                fprintf(to, " | %.1f", 100 * row[k].paper.run[c].overhead);
            else
                fprintf(to, " | ");
        fprintf(to, " | 0.0 |\n");
    }
    fprintf(to, "\n## Least peak without liveness analysis, GiB (against vanilla)\n\n");
    put_head(to, "network", false);
    for (int k = 0; k < n; k++) {
        fprintf(to, "| %s", row[k].title);
        for (int c = 0; c < LS_NPAPER; c++)
            put_peak(to, &row[k], row[k].paper.run[c].found, row[k].paper.run[c].formula);
        fprintf(to, " | ");
        put_gib(to, row[k].vanilla);
        fprintf(to, " |\n");
    }
}

/* Prints an arena and its saving against the peak of the paper's best strategy. */
static void put_saved(FILE *to, const Row *r, int64_t arena)
{
    put_gib(to, arena);
    fprintf(to, " (%+.0f %%) | ", 100 * ((double)arena / (double)r->peak - 1));
}

static void put_comparison(FILE *to, const Row *row, int n)
{
    fprintf(to, "\n## auto where the paper's best strategy is\n\n| network | best | its peak, "
                "GiB | its overhead, %% | our DPs, %% | auto, %% | bound, %% | auto / published | "
                "auto / our DPs | auto at its overhead, GiB | auto at our DPs' overhead, GiB | "
                "half the overhead | smaller peak |\n"
                "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|---|\n");
    for (int k = 0; k < n; k++) {
        const Row *r = &row[k];
        fprintf(to, "| %s | %s | ", r->title, column[r->best]);
        put_gib(to, r->peak);
        fprintf(to, " | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | ", 100 * r->published,
                100 * r->dp, 100 * r->at_peak, 100 * r->bound,
                r->published > 0 ? r->at_peak / r->published : 0,
                r->dp > 0 ? r->at_peak / r->dp : 0);
        put_saved(to, r, r->at_published);
        put_saved(to, r, r->at_dp);
        fprintf(to, "%s | %s |\n", r->at_peak <= r->published / 2 ? "yes" : "**no**",
                r->at_published < r->peak ? "yes" : "**no**");
    }
}

static const char *const intro[] = {
    "# Peak memory by strategy, in the layout of Kusumoto et al. 2019", "",
    "Made by `lowerset sweep --table`. Peaks are arenas, to the byte: activations, gradients and",
    "workspaces, without parameters and optimizer state. The four DP columns follow the published",
    "procedure (the least budget by binary search, then the time-centred or memory-centred",
    "strategy at it) on our training graphs, with exact read sets, in-place reuse and our cost",
    "model; the last block is neither recomputed nor counted where nothing forces a recomputation.",
    "Without liveness analysis, the peak is what the paper's formula says. Vanilla frees every",
    "value after its last reader. `auto` is the least peak that it finds. No plan at all is below",
    "the last column.", "", NULL};

static const char *const outro[] = {
    "",
    "Our DPs: the cheapest plan within that peak that the DPs make for any budget, by real "
    "liveness;",
    "the published procedure makes one plan at one budget. Bound: no plan at all within that peak "
    "has",
    "a lower overhead; it is below 0 where kernels that compute an operand might save more than "
    "they",
    "cost. Half the overhead: within the peak of the published strategy, auto has at most half its",
    "overhead. Smaller peak: with the overhead of the published strategy, auto takes less memory.",
    NULL};

static void put_lines(FILE *to, const char *const *line)
{
    for (; *line != NULL; line++)
        fprintf(to, "%s\n", *line);
}

typedef struct Rows { const Row *row; int n; } Rows;

static void put_all(FILE *to, void *user)
{
    const Row *row = ((const Rows *)user)->row;
    const int n = ((const Rows *)user)->n;
    put_lines(to, intro);
    put_networks(to, row, n);
    put_peaks(to, row, n);
    put_comparison(to, row, n);
    put_lines(to, outro);
}

static int put_table(const LsOptions *o, const Row *row, int n)
{
    Rows rows = {row, n};
    if (o->output.file != NULL)
        return ls_output_write(o->output.file, put_all, &rows) ? 0 : LS_EXIT_MODEL;
    put_all(stdout, &rows);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    fprintf(stderr, "lowerset: cannot write the table: %s\n", strerror(errno));
    return LS_EXIT_MODEL;
}

static int run_all(const LsOptions *o, LsArena *arena, Row *row)
{
    const char *dir = ls_temporary_folder(arena);
    if (dir == NULL)
        return LS_EXIT_MODEL;
    int code = 0;
    for (int k = 0; code == 0 && k < NNETWORKS; k++) {
        if (!o->output.quiet)
            fprintf(stderr, "%s: batch %s, %s x %s\n", network[k].title, network[k].batch,
                    network[k].size, network[k].size);
        row[k].title = network[k].title;
        row[k].input = ls_arena_printf(arena, "%s, %s²", network[k].batch, network[k].size);
        code = run_network(o, dir, k, &row[k]);
    }
    rmdir(dir);
    return code;
}

int ls_paper_table(const LsOptions *o)
{
    LsArena *arena = ls_arena_new();
    Row row[NNETWORKS] = {0};
    int code, n = o->model != NULL ? 1 : NNETWORKS;
    if (o->model != NULL) {
        row[0].title = o->model;
        row[0].input = "";
        code = load(o, &row[0]);
    } else {
        code = run_all(o, arena, row);
    }
    code = code != 0 ? code : put_table(o, row, n);
    ls_arena_free(arena);
    return code;
}
