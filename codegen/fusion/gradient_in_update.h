/* codegen/fusion/gradient_in_update.h -- updates that compute the gradient they apply.
 *
 * The gradient of a large weight of a product is itself a product, of two matrices that are much
 * smaller than it is. Where nobody but the update reads it, the update's kernel computes it tile by
 * tile and applies each as it is: it is never stored, which of a network of dense layers is most of
 * what its arena would hold, and half of the bytes that its update would move. */
#ifndef LS_CODEGEN_FUSION_GRADIENT_IN_UPDATE_H
#define LS_CODEGEN_FUSION_GRADIENT_IN_UPDATE_H

#include "codegen/emit/target.h"
#include "compiler/ir/graph.h"

/* Changes g, before ls_alternatives: such updates get the product's factors as operands and
 * `computed` (compiler/passes/fuse.h), the product goes, and its gradient is no longer among g->grad. How
 * many. 0 for targets that have no such kernel. made: globs over names of values and nodes, of
 * those that stay all the same. */
uint32_t ls_apply_products(LsCtx *cx, LsGraph *g, const LsTarget *t, const char *const *made,
                           uint32_t nmade);

/* How many updates of g compute their gradient. */
uint32_t ls_applied(const LsGraph *g);

#endif
