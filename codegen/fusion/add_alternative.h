/* codegen/fusion/add_alternative.h -- two ways to one value become a node and its alternative. */
#ifndef LS_CODEGEN_FUSION_ADD_ALTERNATIVE_H
#define LS_CODEGEN_FUSION_ADD_ALTERNATIVE_H

#include "codegen/emit/target.h"
#include "compiler/ir/graph.h"

/* Resolves all EITHER nodes, after the passes of the compiler: where the makers of both operands
 * have one result each, of the same bytes in the same order, and nothing else reads the second one,
 * its maker becomes an alternative of the first maker (fused_alternatives.h) and the planner
 * chooses. It keeps its own result, now a view of the first one: kernels read shapes of their
 * results, and those of two ways may differ in axes. Else the first way stays, and the second one
 * is removed. Returns how many have become alternatives. */
uint32_t ls_other_ways(LsCtx *cx, LsGraph *g, const LsTarget *target);

#endif
