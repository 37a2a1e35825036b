/* compiler/updates/update_options.h -- what options say of the update of parameters, and the pass
 * that appends it. */
#ifndef LS_COMPILER_UPDATES_UPDATE_OPTIONS_H
#define LS_COMPILER_UPDATES_UPDATE_OPTIONS_H

#include "compiler/ir/graph.h"
#include "compiler/ir/optimizer.h"

/* What --loss-scale says: the scale at the start, and how it moves. */
typedef struct LsLossScale { bool on; double start; LsScaleAttr rule; } LsLossScale;
/* Sets g->scaling, if it is on: before ls_autodiff. (compiler/updates/loss_scale.c) */
void ls_loss_scale(LsCtx *, LsGraph *, const LsLossScale *);

/* More ranks than that are refused. */
enum { LS_RANKS_ANY = -1, LS_MOST_RANKS = 1024 };

typedef struct LsOptimizerOptions {
    LsOptimizerKind kind;
    LsHyper hyper;
    double clip_norm, clip_value;   /* 0: none */
    int accumulate;                 /* batches per update; 0, 1: one */
    bool spares_vectors;            /* no weight decay of biases and norms
                                     * (compiler/updates/decay_groups.h), nor */
    const char *const *no_decay; int nno_decay;     /* of parameters of these names: globs */
    int parts;                      /* micro-batches of a batch; 0, 1: it is not cut */
    bool running_sums;              /* parts add up one after the other, not in a tree */
    bool sums_stay;                 /* sums that wait for all gradients lie in the accumulators
                                     * until then: not across the stages of a pipeline */
    int ranks;                      /* that share the parts of an update; 0, 1: one; LS_RANKS_ANY:
                                     * as many as a run says */
    LsLossScale scale;
} LsOptimizerOptions;
/* The updates are a graph of their own, behind sums over ranks. */
static inline bool ls_over_ranks(const LsOptimizerOptions *o)
{
    return o->ranks > 1 || o->ranks == LS_RANKS_ANY;
}
/* Appends the update of every parameter right behind its gradient's last reader. Learning rate and
 * step number are run-time scalars (runtime/ls_program.h), not values of the graph. With g->scaling
 * all updates wait for all gradients. With ranks the updates are a graph of their own,
 * LsGraph.updates. */
bool ls_optimizer(LsCtx *, LsGraph *, const LsOptimizerOptions *);

#endif
