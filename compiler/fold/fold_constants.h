/* compiler/fold/fold_constants.h -- evaluating nodes whose operands are all known. */
#ifndef LS_COMPILER_FOLD_FOLD_CONSTANTS_H
#define LS_COMPILER_FOLD_FOLD_CONSTANTS_H

#include "compiler/ir/graph.h"

/* If every operand of n (inferred, the last node of g) is a constant and the op can be evaluated
 * here: appends the result as a constant value, sets *out, returns true. Only single-result ops
 * fold. Integer operators fold exactly in int64; reals in double, stored as float. */
bool ls_fold(LsCtx *cx, LsGraph *g, LsNodeId n, LsValueId *out);

/* A constant of so many elements may be made while compiling: a limit on the elements of all of them
 * keeps compilation from needing more memory than the program. Counts it if so. */
bool ls_fold_affords(LsGraph *g, int64_t elements);

#endif
