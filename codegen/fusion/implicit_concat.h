/* codegen/fusion/implicit_concat.h -- FUSED kernels read the parts of a concatenation themselves.
 *
 * If only FUSED kernels read a concatenation of channels that lie side by side, each kernel can
 * find a channel in the operand that has it (codegen/kernels/read_concat.h), and the concatenation
 * need not be made. In a DenseNet, whose layers read all earlier layers, the concatenations are
 * most of the memory. */
#ifndef LS_CODEGEN_FUSION_IMPLICIT_CONCAT_H
#define LS_CODEGEN_FUSION_IMPLICIT_CONCAT_H

#include "codegen/emit/target.h"
#include "compiler/ir/graph.h"

/* Changes g, after ls_alternatives: concatenations that are no longer needed become NOP, as do
 * alternatives that would need one. Returns the concatenations dropped. made: globs over names of
 * values and nodes that must stay. */
uint32_t ls_join_operands(LsCtx *cx, LsGraph *g, const LsTarget *t, const char *const *made,
                          uint32_t nmade);

#endif
