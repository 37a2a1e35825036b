/* compiler/fold/fold_constants.h -- constant folding: evaluates nodes whose operands are all
 * constant. */
#ifndef LS_COMPILER_FOLD_FOLD_CONSTANTS_H
#define LS_COMPILER_FOLD_FOLD_CONSTANTS_H

#include "compiler/ir/graph.h"

/* If every operand of n (inferred, the last node of g) is constant and the op can be evaluated
 * here: appends the result as a constant, sets *out, returns true. Only single-result ops fold.
 * Integer operators fold exactly in int64; reals in double, stored as float. */
bool ls_fold(LsCtx *cx, LsGraph *g, LsNodeId n, LsValueId *out);

/* Whether a constant of so many elements may be made; counts the elements if so. A limit on all
 * folded elements keeps compilation from needing more memory than the program. */
bool ls_fold_affords(LsGraph *g, int64_t elements);

#endif
