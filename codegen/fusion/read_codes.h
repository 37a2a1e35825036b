/* codegen/fusion/read_codes.h -- products and tables that read a weight's codes themselves: a
 * product unpacks them where it packs the factor, a table where it copies a row. */
#ifndef LS_CODEGEN_FUSION_READ_CODES_H
#define LS_CODEGEN_FUSION_READ_CODES_H

#include "codegen/emit/target.h"
#include "compiler/ir/graph.h"

/* On CPUs. Before alternatives are made: a kernel computes one operand at most. */
void ls_read_codes(LsCtx *cx, LsGraph *g, const LsTarget *target);

#endif
