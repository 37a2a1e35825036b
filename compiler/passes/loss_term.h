/* compiler/passes/loss_term.h -- one term of the loss: nodes that compute the loss of an output. */
#ifndef LS_COMPILER_PASSES_LOSS_TERM_H
#define LS_COMPILER_PASSES_LOSS_TERM_H

#include "compiler/passes/passes.h"

typedef struct LsLossTerm {
    LsLossPart part;
    LsValueId y[3];             /* outputs; part.kind determines their number */
    LsValueId target;           /* none: the kind has no target */
    int axis;                   /* of the classes (ce, nll), from 0 */
} LsLossTerm;

/* Outputs that a loss of this kind reads: 1, or 3 (LS_LOSS_TRIPLET). */
int ls_loss_reads(LsLossKind);
bool ls_loss_has_target(LsLossKind);
bool ls_loss_has_classes(LsLossKind);       /* scores on an axis: ce, nll, soft_ce */

/* Checks the outputs of a term whose y is set, sets its axis, and gives the type and shape that its
 * target has (for kinds that have one). False after a diagnostic. */
bool ls_loss_target(LsCtx *, LsGraph *, LsLossTerm *, const LsLossOptions *, LsType *, LsShape *);
/* Appends the nodes of a checked term, and returns their scalar result, without the weight; none
 * after a diagnostic. */
LsValueId ls_loss_append(LsCtx *, LsGraph *, const LsLossTerm *, const LsLossOptions *);

#endif
