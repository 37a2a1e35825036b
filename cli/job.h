/* cli/job.h -- one model, or training graph, on its way: options, graphs, problem, plan. */
#ifndef LS_CLI_JOB_H
#define LS_CLI_JOB_H

#include "cli/options.h"
#include "codegen/problem.h"
#include "scheduler/plan.h"

typedef struct LsJob {
    LsCtx cx;
    const LsOptions *options;
    LsPipelineOptions pipeline;
    bool compare;               /* report every strategy, not only the one that is used */
    int real_bytes;
    bool graph_file;            /* options->model is a training graph: no model, no evaluation form,
                                 * no input ring, and the budget is that of the arena alone */
    LsGraph *train, *eval;      /* eval: evaluation form with the same loss */
    LsProblem *train_problem, *eval_problem;
    const LsDag *dag;           /* what is planned: of train_problem, or the one of the file */
    LsPlan plan, eval_plan, none;       /* none: training without recomputation */
    LsPlanReport report;
    int64_t state_bytes, input_bytes;   /* input_bytes: the ring of batches */
    int64_t arena_bytes;        /* of the program: the larger of both plans */
    int64_t budget;             /* asked for, bytes in all; 0: none */
} LsJob;

/* Options understood, context ready. 0 or the exit code. */
int ls_job_start(LsJob *job, const LsOptions *o, bool weightless);
/* Imports, differentiates, plans training within the budget and evaluation without recomputation;
 * or plans the training graph that the file holds. 0 or the exit code, after diagnostics. */
int ls_job_plan(LsJob *job);
/* Whether the file holds JSON, as training graphs are, and not an ONNX model. */
bool ls_job_is_graph(const char *path);
void ls_job_end(LsJob *job);

/* "1.25 GiB" in the arena. */
const char *ls_bytes_text(LsArena *a, int64_t bytes);

#endif
