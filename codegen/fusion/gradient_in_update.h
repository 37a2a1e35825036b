/* codegen/fusion/gradient_in_update.h -- updates that compute the gradient they apply.
 *
 * The gradient of a product's large weight is itself a product, of two matrices that are much
 * smaller than the gradient. If only the update reads it, the update's kernel computes the gradient
 * tile by tile and applies each tile at once. The gradient is never stored: in a network of dense
 * layers this saves most of the arena, and half of the bytes that the update would move. */
#ifndef LS_CODEGEN_FUSION_GRADIENT_IN_UPDATE_H
#define LS_CODEGEN_FUSION_GRADIENT_IN_UPDATE_H

#include "codegen/emit/target.h"
#include "compiler/ir/graph.h"

/* Changes g, before ls_alternatives: such updates get the product's factors as operands and
 * `computed` (compiler/passes/fuse.h), the product goes, and its gradient leaves g->grad. Returns
 * the updates changed; 0 for targets without such a kernel. made: globs over names of values and
 * nodes that must stay. */
uint32_t ls_apply_products(LsCtx *cx, LsGraph *g, const LsTarget *t, const char *const *made,
                           uint32_t nmade);

/* The number of updates of g that compute their gradient. */
uint32_t ls_applied(const LsGraph *g);

#endif
