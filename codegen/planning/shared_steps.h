/* codegen/planning/shared_steps.h -- what is the same for all members of an ensemble, and need run
 * only once in a step.
 *
 * Members train on the same batch, and frozen weights are those of all. What depends on these alone
 * is computed before the members' own steps; its results that they read outlive these, and exist
 * once. */
#ifndef LS_CODEGEN_PLANNING_SHARED_STEPS_H
#define LS_CODEGEN_PLANNING_SHARED_STEPS_H

#include "codegen/planning/plan_problem.h"

typedef struct LsSharedSteps {
    LsProblem *once;            /* the steps of all members; NULL: there are none */
    LsProblem *each;            /* those of one member, whose problem the results are persistent
                                 * tensors of */
    const LsValueId *result; uint32_t nresult;
    int64_t bytes;              /* of the results, each aligned */
} LsSharedSteps;

/* Divides the problem of an ensemble's training graph, with its costs. The tensors of the three
 * problems have the same numbers. */
LsSharedSteps ls_shared_steps(LsCtx *cx, const LsProblem *whole);

#endif
