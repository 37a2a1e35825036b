/* codegen/fusion/implicit_pad.h -- FUSED kernels read what others would first spread out.
 *
 * A border of zeros around a value has at each point an element of it, or 0; the gradient of a pooling
 * is the sum of the few elements whose windows lie over the point. Where nobody but FUSED kernels
 * reads such a result, each of them can find those elements itself (codegen/kernels/read_padded.h), and
 * the result need not be made: in a U-Net those are the largest values of the backward part. */
#ifndef LS_CODEGEN_FUSION_IMPLICIT_PAD_H
#define LS_CODEGEN_FUSION_IMPLICIT_PAD_H

#include "codegen/emit/target.h"
#include "compiler/ir/graph.h"

/* Changes g, after ls_alternatives and ls_join_operands: nodes whose results are no longer needed
 * become NOP, as do alternatives that would need one. How many nodes went. made: globs over names of
 * values and nodes, of those that stay all the same. */
uint32_t ls_inset_operands(LsCtx *cx, LsGraph *g, const LsTarget *t, const char *const *made,
                           uint32_t nmade);

#endif
