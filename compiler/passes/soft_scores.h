/* compiler/passes/soft_scores.h -- finds the scores of a cross-entropy with probabilities, which is
 * several nodes (compiler/passes/loss_term.c). */
#ifndef LS_COMPILER_PASSES_SOFT_SCORES_H
#define LS_COMPILER_PASSES_SOFT_SCORES_H

#include "compiler/ir/graph.h"

/* The log-softmax of the scores, if node `loss` ends such a loss; none: it does not. Other passes
 * may have changed the pointwise nodes between both. */
LsNodeId ls_soft_scores(const LsGraph *g, LsNodeId loss);
/* Whether the loss reads the target, an input, in the same way. */
bool ls_soft_reads(const LsGraph *g, LsNodeId loss, LsValueId label);
/* The node is that log-softmax of some loss of the graph. */
bool ls_makes_soft_scores(const LsGraph *g, LsNodeId n);

#endif
