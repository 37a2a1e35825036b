/* codegen/program/lowering.h -- from the compiler's graphs to the problems that are scheduled: what a
 * target's kernels do in one piece, and which operands they find themselves. */
#ifndef LS_CODEGEN_PROGRAM_LOWERING_H
#define LS_CODEGEN_PROGRAM_LOWERING_H

#include "codegen/planning/plan_problem.h"

typedef struct LsLowering {
    const LsTarget *target;
    const LsMachine *machine;   /* by whose costs own kernels of convolutions are taken */
    const char *name;           /* of the problems */
    bool no_epilogues;          /* keep what may end a product's kernel in kernels of its own */
    bool own_convolutions;      /* take own kernels where they serve */
    bool compiled_engines;      /* engines of cuDNN that it compiles were asked for */
    bool store_gradients;       /* keep gradients that an update could compute itself */
    bool no_alternatives;       /* make each node in one way only */
    const char *const *made; uint32_t nmade;    /* globs over names of values and nodes: these are
                                                 * made in any case */
    LsGraph *train, *eval;      /* after the pipeline's passes; lowered afterwards. eval: the
                                 * evaluation form */
    LsProblem *train_problem, *eval_problem;    /* set here */
} LsLowering;

/* Lowers both graphs and makes their problems, with the costs of the built-in machine "cpu". False
 * after diagnostics. */
bool ls_lower(LsCtx *cx, LsLowering *l);

#endif
