/* codegen/fusion/implicit_concat.h -- FUSED kernels read the parts of a concatenation themselves.
 *
 * Where nobody but FUSED kernels reads a concatenation of channels that lie side by side, each of
 * them can find a channel in the operand that has it (codegen/kernels/read_concat.h), and the
 * concatenation need not be made: in a DenseNet, whose layers read all layers before, those are
 * most of the memory. */
#ifndef LS_CODEGEN_FUSION_IMPLICIT_CONCAT_H
#define LS_CODEGEN_FUSION_IMPLICIT_CONCAT_H

#include "codegen/emit/target.h"
#include "compiler/ir/graph.h"

/* Changes g, after ls_alternatives: concatenations that are no longer needed become NOP, as do
 * alternatives that would need one. How many concatenations. made: globs over names of values and
 * nodes, of those that are made all the same. */
uint32_t ls_join_operands(LsCtx *cx, LsGraph *g, const LsTarget *t, const char *const *made,
                          uint32_t nmade);

#endif
