/* cli/job/job.h -- one compilation, of a model or a training graph: options, graphs, problem,
 * plan. */
#ifndef LS_CLI_JOB_JOB_H
#define LS_CLI_JOB_JOB_H

#include "cli/options/options.h"
#include "codegen/planning/plan_problem.h"
#include "codegen/planning/shared_steps.h"
#include "codegen/tiling/tile_samples.h"
#include "compiler/cost/machine.h"
#include "scheduler/plan/keep_forget_hints.h"
#include "scheduler/plan/planner.h"

typedef struct LsJob {
    LsCtx cx;
    const LsOptions *options;
    LsPipelineOptions pipeline;
    bool unproven;              /* do not compute lower bounds */
    bool compare;               /* report every strategy, not only the chosen one */
    LsTarget target;
    bool graph_file;            /* options->model is a training graph: no model, no evaluation form,
                                 * no input ring, and the budget is that of the arena alone */
    LsMachine machine;          /* gives the costs of nodes that were not measured */
    LsCostsOf of;               /* what these costs are of */
    const LsMachine *told;      /* gives the times that are told (cli/job/told_times.h); NULL:
                                 * `machine` */
    const char *told_of;
    const char *costs;          /* where the nodes' costs come from, for people */
    bool built_in;              /* the machine is one of lowerset's own */
    LsGraph *train, *eval;      /* eval: evaluation form with the same loss */
    LsProblem *train_problem, *eval_problem;
    LsProblem *update_problem;  /* --ranks: what follows the sum over all ranks; NULL: one
                                 * process */
    LsPlan update_plan;
    const LsSharedSteps *shared;        /* --ensemble: train_problem is then shared->each; NULL:
                                         * nothing is the same for all members */
    LsPlan once_plan;           /* of shared->once */
    LsProblem *whole_problem;   /* shared and own steps in one; as train_problem without `shared` */
    const LsDag *dag;           /* the graph that is planned: train_problem's, or the file's */
    LsPlan plan, eval_plan, none;       /* none: the training plan without recomputation */
    LsRecompute recompute;      /* --recompute */
    LsTiling tiling;            /* --tiles */
    uint32_t tiled;             /* nodes that run in tiles */
    int64_t untiled;            /* bytes of all that the job takes at least without tiles; 0: it was
                                 * not asked */
    LsPlan last_plan; /* LS_RECOMPUTE_EXCEPT_LAST: of the last micro-batch of an update; else no
                         steps */
    struct LsStagedJob *staged; /* --stages: the plans of the stages, in place of `plan`
                                 * (cli/job/staged_job.h); else NULL */
    LsPlanReport report;
    int64_t state_bytes, input_bytes;   /* input_bytes: the ring of batches */
    int64_t exchange_bytes;     /* --ranks: buffers for what other ranks send
                                 * (cli/job/rank_facts.h) */
    int64_t whole;              /* bytes of arena that count as 100 % of a budget */
    int64_t arena_bytes;        /* arena of the program: the larger of both plans, for each lane of
                                 * an ensemble */
    LsArena *before;            /* of a job that this one took the place of; NULL: none */
    int64_t budget; /* as asked for, bytes of the process (of a graph: of the arena); 0: none */
} LsJob;

/* " (at most 1.23 % more than it must)": how far the plan may be from the best there is. */
const char *ls_job_gap_text(const LsJob *job);

/* Reads the options and sets up the context. 0 or the exit code. */
int ls_job_start(LsJob *job, const LsOptions *o, bool weightless);
/* Imports and differentiates, or reads the training graph; plans training and evaluation without
 * recomputation. 0 or the exit code, after diagnostics. */
int ls_job_load(LsJob *job);
/* Reads --budget and --budget-of. False after a message. */
bool ls_job_budget(const LsOptions *o, LsBudget *b);
/* What the program's process takes beside its arenas, and their number. Of a graph: nothing, and
 * one. */
LsProcessBytes ls_job_process(const LsJob *job);
/* Bytes that a budget of the process must hold beside its arenas. */
int64_t ls_job_fixed_bytes(const LsJob *job);
/* Bytes that a budget leaves to the arena of a loaded job, at least 1; 0: no limit in bytes. */
int64_t ls_job_arena_budget(const LsJob *job, const LsBudget *b);
/* Applies the hints among the options to a loaded job's graph: *out, in the job's arena; NULL:
 * there are no hints. 0 or the exit code, after diagnostics. */
int ls_job_hints(LsJob *job, const LsHinted **out);
/* Loads, then plans training within the budget. The evaluation form must keep the budget too. 0 or
 * the exit code, after diagnostics. */
int ls_job_plan(LsJob *job);
/* Whether independent steps of the program may run at the same time. */
static inline bool ls_job_overlaps(const LsJob *job)
{
    return job->target.kind == LS_TARGET_CUDA && !job->options->machine.no_overlap;
}
/* Sets arena_bytes from both plans. */
void ls_job_set_arena(LsJob *job);
/* Audits a plan, by code that took no part in making it. False, after diagnostics, when the plan is
 * wrong. */
bool ls_job_audited(LsJob *job, const LsDag *dag, const LsPlan *plan);
/* Whether some machine could hold a program of that many bytes; false after a diagnostic. A program
 * too large for this machine is a warning only: programs may run elsewhere. */
bool ls_job_fits_machine(LsJob *job, int64_t bytes);
/* Ends the list of diagnostics, which were printed as they came. Returns the exit code. */
int ls_job_failed(const LsJob *job);
/* Micro-batches of an update: parts of a batch times --accumulate. */
int64_t ls_job_micro_steps(const LsJob *job);
/* Those that one process runs, at most: with the fewest ranks that the program takes. */
int64_t ls_job_own_steps(const LsJob *job);
/* The number of ranks whose bytes and times are counted: of --ranks any, that of the most bytes. 1:
 * one process. */
int ls_job_ranks(const LsJob *job);
/* ns of the micro-batch by a plan of a loaded job: the sum of its runs one after the other, each
 * with the cache as the runs before left it (codegen/planning/step_replay.h). For measured costs,
 * GPUs and training graphs, the sum of the costs. */
double ls_job_plan_ns(const LsJob *job, const LsPlan *plan);
/* ns of the updates that follow an exchange between ranks, of one rank; 0: there is none. */
double ls_job_update_ns(const LsJob *job);
/* ns of a training step, of a whole batch, by the job's own plans; the last part also has the
 * update. Over ranks: of one of them, without the exchange. */
double ls_job_step_ns(const LsJob *job);
/* Plans a loaded job's training with that policy of recomputation within `arena` bytes (0: no
 * limit); *out is its own. 0 or the exit code; LS_EXIT_BUDGET without a message, with
 * report->least. */
int ls_job_plan_as(LsJob *job, LsRecompute policy, int64_t arena, LsPlan *out,
                   LsPlanReport *report);
/* Whether the file holds JSON (a training graph) and not an ONNX model. */
bool ls_job_is_graph(const char *path);
void ls_job_end(LsJob *job);

/* "1.25 GiB" in the arena. */
const char *ls_bytes_text(LsArena *a, int64_t bytes);

#endif
