/* compiler/passes/ensemble.h -- several models of one architecture in one program.
 *
 * The graph, its plan and its kernels are those of one member. A step of training runs them for
 * every member in turn, on the member's own state and in the same arena, so that an ensemble of K
 * models takes K times the state of one model, and one arena (runtime/engine/engine.h). What is the
 * same for all members runs once (codegen/planning/shared_steps.h). The bits are those of K
 * programs. */
#ifndef LS_COMPILER_PASSES_ENSEMBLE_H
#define LS_COMPILER_PASSES_ENSEMBLE_H

#include "compiler/passes/passes.h"

/* What --ensemble says. */
typedef struct LsEnsemble {
    int64_t members;            /* 0: the program is one model */
    int64_t lanes;              /* members that run at the same time, at least 1 */
    bool own_batches;           /* in training every member has a batch of its own */
    LsRandomness randomness;
} LsEnsemble;

/* Marks what members have of their own. Requires the updates; like: the training graph, for the
 * evaluation form, whose state it shares. Refuses random numbers unless o->randomness says whose
 * they are. */
bool ls_ensemble(LsCtx *, LsGraph *, const LsEnsemble *o, const LsGraph *like);
/* Whether a node's result depends on the run's seed. */
bool ls_node_draws(const LsNode *n);

#endif
