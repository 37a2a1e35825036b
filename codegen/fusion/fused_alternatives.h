/* codegen/fusion/fused_alternatives.h -- other kernels for the same results.
 *
 * If a pointwise FUSED node makes a value that a FUSED node reads, a second kernel can make the
 * reader's results from the maker's operands: the maker's statements run in the reader's loop, and
 * the value need not be in memory. Such a kernel is an *alternative* of the reader. It gives the
 * same bits: FUSED kernels round every operation by itself (LS_EXACT_BEGIN in
 * runtime/kernels/ls_kernel.h). Reductions add in the order of their loops, so a reduction has an
 * alternative only if its loops stay the same. */
#ifndef LS_CODEGEN_FUSION_FUSED_ALTERNATIVES_H
#define LS_CODEGEN_FUSION_FUSED_ALTERNATIVES_H

#include "codegen/emit/target.h"
#include "compiler/ir/graph.h"

/* Copies g, after the passes, with each alternative after the node whose results it makes. Ids of
 * values stay those of g, ids of nodes do not. There are at most as many alternatives as nodes. */
LsGraph *ls_alternatives(LsCtx *cx, const LsGraph *g, const LsTarget *target);

/* Whether another node makes the same results. */
static inline bool ls_is_alternative(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    return node->nout > 0 && g->value[node->out].def.i != n.i;
}

#endif
