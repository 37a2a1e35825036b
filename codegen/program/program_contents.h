/* codegen/program/program_contents.h -- what the text of a training program says. */
#ifndef LS_CODEGEN_PROGRAM_PROGRAM_CONTENTS_H
#define LS_CODEGEN_PROGRAM_PROGRAM_CONTENTS_H

#include "codegen/planning/plan_problem.h"
#include "codegen/program/state_layout.h"
#include "scheduler/candidates/plan_steps.h"

typedef struct LsCodePhase {
    const LsProblem *problem;
    const LsPlan *plan;
    bool overlap;               /* say what each step waits for, so that others need not */
} LsCodePhase;

typedef struct LsCode {         /* what the text says */
    /* schedule may be NULL */
    const char *model, *plan_hash, *strategy, *loss, *optimizer, *schedule;
    const LsTarget *target;
    const char *archs;          /* CUDA: the GPUs that code is made for; else NULL */
    int accumulate;
    int64_t budget;             /* bytes in all; 0: none */
    double default_lr;
    LsCodePhase train, eval;    /* eval.problem NULL: no evaluation form */
    LsAddresses *addresses;
    size_t onnx_bytes;
} LsCode;

#endif
