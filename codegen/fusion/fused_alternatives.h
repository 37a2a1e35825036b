/* codegen/fusion/fused_alternatives.h -- other kernels for the same results.
 *
 * Where a FUSED node reads a value that is itself made by a pointwise FUSED node, a second kernel
 * can make the same results from that node's operands: its statements run in the reader's loop, and
 * the value need not be in memory. Such a kernel is an *alternative* of the reader. It gives the
 * same bits: FUSED kernels round every operation by itself (LS_EXACT_BEGIN in
 * runtime/kernels/ls_kernel.h), and reductions add in the order that their loops give, so a reduction has
 * an alternative only where its loops stay the same. */
#ifndef LS_CODEGEN_FUSION_FUSED_ALTERNATIVES_H
#define LS_CODEGEN_FUSION_FUSED_ALTERNATIVES_H

#include "codegen/emit/target.h"
#include "compiler/ir/graph.h"

/* g, after the passes, with alternatives behind the nodes whose results they make: values and their
 * ids are those of g, node ids are not. At most as many alternatives as there are nodes. */
LsGraph *ls_alternatives(LsCtx *cx, const LsGraph *g, const LsTarget *target);

/* Another node makes the same results. */
static inline bool ls_is_alternative(const LsGraph *g, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    return node->nout > 0 && g->value[node->out].def.i != n.i;
}

#endif
