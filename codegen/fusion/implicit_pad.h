/* codegen/fusion/implicit_pad.h -- FUSED kernels read padded values and pooling gradients at their
 * source.
 *
 * A padded value is at each point an element of the value inside, or 0; a pooling's gradient is the
 * sum of the few elements whose windows cover the point. If only FUSED kernels read such a result,
 * each kernel can find those elements itself (codegen/kernels/read_padded.h), and the result need
 * not be made. In a U-Net such results are the largest values of the backward part. */
#ifndef LS_CODEGEN_FUSION_IMPLICIT_PAD_H
#define LS_CODEGEN_FUSION_IMPLICIT_PAD_H

#include "codegen/emit/target.h"
#include "compiler/ir/graph.h"

/* Changes g, after ls_alternatives and ls_join_operands: nodes whose results are no longer needed
 * become NOP, as do alternatives that would need one. Returns the nodes dropped. made: globs over
 * names of values and nodes that must stay. */
uint32_t ls_inset_operands(LsCtx *cx, LsGraph *g, const LsTarget *t, const char *const *made,
                           uint32_t nmade);

#endif
