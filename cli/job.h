/* cli/job.h -- one model, or training graph, on its way: options, graphs, problem, plan. */
#ifndef LS_CLI_JOB_H
#define LS_CLI_JOB_H

#include "cli/options.h"
#include "codegen/planning/plan_problem.h"
#include "compiler/cost/machine.h"
#include "scheduler/plan/planner.h"

typedef struct LsJob {
    LsCtx cx;
    const LsOptions *options;
    LsPipelineOptions pipeline;
    bool unproven;              /* spend nothing on lower bounds */
    bool compare;               /* report every strategy, not only the one that is used */
    LsTarget target;
    bool graph_file;            /* options->model is a training graph: no model, no evaluation form,
                                 * no input ring, and the budget is that of the arena alone */
    LsMachine machine;          /* whose costs nodes have that were not measured */
    const char *costs;          /* where the nodes' costs are from, for people */
    LsGraph *train, *eval;      /* eval: evaluation form with the same loss */
    LsProblem *train_problem, *eval_problem;
    const LsDag *dag;           /* what is planned: of train_problem, or the one of the file */
    LsPlan plan, eval_plan, none;       /* none: training without recomputation */
    LsPlanReport report;
    int64_t state_bytes, input_bytes;   /* input_bytes: the ring of batches */
    int64_t whole;              /* bytes of arena that 100 % of a budget are */
    int64_t arena_bytes;        /* of the program: the larger of both plans */
    int64_t budget;             /* asked for, bytes in all; 0: none */
} LsJob;

/* Options understood, context ready. 0 or the exit code. */
int ls_job_start(LsJob *job, const LsOptions *o, bool weightless);
/* Imports and differentiates, or reads the training graph; plans training and evaluation without
 * recomputation. 0 or the exit code, after diagnostics. */
int ls_job_load(LsJob *job);
/* Bytes that a budget in all must hold beside the arena. */
int64_t ls_job_fixed_bytes(const LsJob *job);
/* What a budget leaves to the arena of a loaded job, bytes, at least 1; 0: no limit in bytes. */
int64_t ls_job_arena_budget(const LsJob *job, const LsBudget *b);
/* What the hints among the options make of a loaded job's graph: *out, in the job's arena; NULL:
 * there are none. 0 or the exit code, after diagnostics. */
int ls_job_hints(LsJob *job, const LsHinted **out);
/* Loads, then plans training within the budget, which the evaluation form must keep too. 0
 * or the exit code, after diagnostics. */
int ls_job_plan(LsJob *job);
/* Replays a plan by code that had no part in making any. false, after diagnostics: it is wrong. */
bool ls_job_audited(LsJob *job, const LsDag *dag, const LsPlan *plan);
/* Whether some machine could hold a program of that many bytes; false after a diagnostic. That this one
 * cannot is a warning: programs may run elsewhere. */
bool ls_job_fits_machine(LsJob *job, int64_t bytes);
/* Closes the list of diagnostics, which were printed as they came; the exit code. */
int ls_job_failed(const LsJob *job);
/* ns of a training step by a plan of a loaded job: what its runs take one after the other, from
 * what the cache holds then (codegen/planning/step_replay.h); of measured costs, GPUs and training graphs the sum
 * of the costs. */
double ls_job_plan_ns(const LsJob *job, const LsPlan *plan);
/* The same by the job's own plan. */
double ls_job_step_ns(const LsJob *job);
/* Whether the file holds JSON, as training graphs are, and not an ONNX model. */
bool ls_job_is_graph(const char *path);
void ls_job_end(LsJob *job);

/* "1.25 GiB" in the arena. */
const char *ls_bytes_text(LsArena *a, int64_t bytes);

#endif
