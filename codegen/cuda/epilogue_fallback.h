/* codegen/cuda/epilogue_fallback.h -- the epilogue of a library's call (a bias, an activation, its
 * gradient, sums) as a FUSED kernel of its own, over the arguments of the call, for when the
 * library does not do it.
 *
 * A caller sets space, layout and axes of `body`, takes operands, adds statements, takes results,
 * and emits. */
#ifndef LS_CODEGEN_BEHIND_H
#define LS_CODEGEN_BEHIND_H

#include "codegen/emit/kernel_emit.h"
#include "compiler/passes/fuse.h"

enum { LS_BEHIND_ARGUMENTS = 6 };

typedef struct LsBehind {       /* a FUSED node in a graph of its own; starts as zeros */
    LsType type;                /* of operands, statements and results */
    LsGraph g;
    LsNode node[2];
    LsValue value[LS_BEHIND_ARGUMENTS + 1];
    LsValueId operand[LS_BEHIND_ARGUMENTS];
    LsFused body;
    LsStmt stmt[4];
    LsFusedOut out[2];
    int argument[LS_BEHIND_ARGUMENTS];  /* by argument of the node: the call's argument */
} LsBehind;

/* Makes an argument of the call an operand; returns its number in statements (LsStmt.arg). All
 * operands come before the results. */
int ls_behind_operand(LsBehind *b, int argument, const LsShape *shape);
/* Adds a statement and returns its number. second: for operators of two arguments. */
int ls_behind_state(LsBehind *b, LsOpCode op, int first, int second);
/* Makes an argument of the call the result of statement `out.stmt`; it may be an operand, too. */
void ls_behind_result(LsBehind *b, int argument, const LsShape *shape, LsFusedOut out);

/* Prints the parts, under a comment that names the library, and NAME_behind(run, arg) with the arg
 * of the call. The parts can be shared (lift_constants.h) only if the host text is empty so far. */
void ls_behind_emit(LsBehind *b, const LsKernelText *k, const char *library);

#endif
