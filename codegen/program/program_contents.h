/* codegen/program/program_contents.h -- the contents of a training program's text. */
#ifndef LS_CODEGEN_PROGRAM_PROGRAM_CONTENTS_H
#define LS_CODEGEN_PROGRAM_PROGRAM_CONTENTS_H

#include "codegen/planning/plan_problem.h"
#include "codegen/program/state_layout.h"
#include "scheduler/candidates/plan_steps.h"
#include "scheduler/pipeline/turn_order.h"
#include "scheduler/pipeline/stage_plan.h"

typedef struct LsCodePhase {
    const LsProblem *problem;
    const LsPlan *plan;
    bool overlap;               /* print each step's dependencies, so that other steps need not
                                 * wait */
} LsCodePhase;

typedef struct LsCodeStage {    /* of a pipeline */
    LsCodePhase phase[LS_PIPE_PLANS];   /* micro-batch and late phase, by each plan of the stage;
                                         * nodes that begin a phase are no nodes of the graph */
    const LsPipePlan *plan;     /* all stages have as many plans */
    const LsPipeFlow *flow;
    int64_t at;                 /* of its arena in the program's, bytes */
} LsCodeStage;

typedef struct LsCode {         /* the text's contents */
    /* schedule may be NULL */
    const char *model, *plan_hash, *strategy, *loss, *optimizer, *schedule;
    const char *precision;      /* "bf16", "f16", or NULL: computes in reals */
    const LsTarget *target;
    const char *archs;          /* CUDA: the GPUs that the code runs on; else NULL */
    int accumulate, parts;
    int64_t budget;             /* bytes in all; 0: none */
    double default_lr;
    LsPredicted predicted;
    LsCodePhase train, eval;    /* eval.problem NULL: no evaluation form */
    LsCodePhase last;           /* the last micro-batch of an update; without a problem it is as
                                 * `train` */
    LsCodePhase update;         /* over ranks; else without a problem */
    LsCodePhase once;           /* of an ensemble: what runs before all members' steps; else without
                                 * a problem */
    const struct LsRankTable *ranks;    /* ls_rank_layout; NULL: one process */
    bool mpi;                   /* linked with MPI */
    bool library;               /* has no main: functions of a library run it */
    const LsPipeCut *cut;       /* of a pipeline: its stages, cut->k, take the place of `train`;
                                 * else NULL */
    const LsCodeStage *stage;
    const int64_t *copy_at;     /* by cut->copy: its place in the state */
    uint32_t ring;              /* batches in the input ring; 0: LS_RING */
    LsAddresses *addresses;
    size_t onnx_bytes, onnx_tail, onnx_shift;
    const struct LsAdapters *adapters;  /* NULL: none */
    bool onnx_attached;         /* to the linked program (ls_attach_form), not embedded in its
                                 * data */
} LsCode;

#endif
