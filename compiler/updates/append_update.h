/* compiler/updates/append_update.h -- the nodes that update one parameter. */
#ifndef LS_COMPILER_UPDATES_APPEND_UPDATE_H
#define LS_COMPILER_UPDATES_APPEND_UPDATE_H

#include "compiler/updates/update_options.h"

/* A parameter, its gradient, and the other operands of the node that reads the gradient
 * (compiler/ir/optimizer.h). */
typedef struct LsStepIn {
    LsValueId p, grad, factor, acc, weight, shared;
    bool decays;                /* the parameter is one that weight decay is for */
    LsAttr at;                  /* of that node */
} LsStepIn;

/* Appends the update of a parameter and the state that it needs: one node, or, where the step
 * depends on norms or means of the whole tensor, a node that makes a direction, nodes that make a
 * step of it, and one that takes the step. */
void ls_append_update(LsCtx *, LsGraph *, const LsStepIn *, const LsOptimizerOptions *);

#endif
