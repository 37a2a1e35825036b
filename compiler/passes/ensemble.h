/* compiler/passes/ensemble.h -- several models of one architecture in one graph.
 *
 * The graph stays that of one member. Values that depend on what a member has of its own, its parameters above all, are
 * marked: they exist once for every member (LsValue.stacked), and nodes that make them run once for every member, on
 * that member's part (runtime/engine/member_runs.h). All other values are computed once, for all members. */
#ifndef LS_COMPILER_PASSES_ENSEMBLE_H
#define LS_COMPILER_PASSES_ENSEMBLE_H

#include "compiler/passes/passes.h"

/* What --ensemble says. */
typedef struct LsEnsemble {
    int64_t members;            /* 0: the program is one model */
    bool own_batches;           /* in training every member has a batch of its own */
    LsRandomness randomness;
} LsEnsemble;

/* Marks what members have of their own. Requires the updates; like: the training graph, for the evaluation form, whose
 * state it shares. Refuses random numbers unless o->randomness says whose they are. */
bool ls_ensemble(LsCtx *, LsGraph *, const LsEnsemble *o, const LsGraph *like);

/* Marks the results of nodes anew, after a pass that made some. */
void ls_ensemble_mark(LsGraph *g);

#endif
