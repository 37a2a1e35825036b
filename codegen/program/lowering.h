/* codegen/program/lowering.h -- from the compiler's graphs to scheduling problems: the nodes that a
 * target's kernels fuse, and the operands that the kernels read at their source. */
#ifndef LS_CODEGEN_PROGRAM_LOWERING_H
#define LS_CODEGEN_PROGRAM_LOWERING_H

#include "codegen/planning/plan_problem.h"
#include "codegen/tiling/tile_samples.h"

typedef struct LsLowering {
    const LsTarget *target;
    const char *name;           /* of the problems */
    bool no_epilogues;          /* keep possible epilogues of products in kernels of their own */
    bool compiled_engines;      /* cuDNN's compiled engines were asked for */
    bool store_gradients;       /* store gradients that an update could compute itself */
    bool head_in_parts;         /* the update of a vocabulary head computes its gradient in parts */
    bool no_alternatives;       /* give each node one kernel only */
    LsTiling tiling;
    uint32_t tiled;             /* out: nodes of the training graph that run in tiles */
    const char *const *made; uint32_t nmade;    /* globs over names of values and nodes that must be
                                                 * made */
    LsGraph *train, *eval;      /* in: after the pipeline's passes; out: lowered. eval: the
                                 * evaluation form */
    LsProblem *train_problem, *eval_problem;    /* out */
    LsProblem *update_problem;  /* out: of LsGraph.updates; NULL: there is none */
} LsLowering;

/* Lowers both graphs and makes their problems, with the costs of the built-in machine "cpu".
 * Returns false after diagnostics. */
bool ls_lower(LsCtx *cx, LsLowering *l);

#endif
