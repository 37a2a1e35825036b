/* codegen/cuda/behind.h -- what is fused behind a library's call (a bias, an activation, its gradient,
 * sums), as a kernel for where the library does not do it: the FUSED kernel that it would be by
 * itself, over the arguments of the call.
 *
 * A caller fills in space, layout and axes of `body`, takes operands, states what is computed, takes
 * results, and emits. */
#ifndef LS_CODEGEN_BEHIND_H
#define LS_CODEGEN_BEHIND_H

#include "codegen/emit/kernel_emit.h"
#include "compiler/passes/fuse.h"

enum { LS_BEHIND_ARGUMENTS = 6 };

typedef struct LsBehind {       /* a FUSED node in a graph of its own; zeros to begin with */
    LsGraph g;
    LsNode node[2];
    LsValue value[LS_BEHIND_ARGUMENTS + 1];
    LsValueId operand[LS_BEHIND_ARGUMENTS];
    LsFused body;
    LsStmt stmt[4];
    LsFusedOut out[2];
    int argument[LS_BEHIND_ARGUMENTS];  /* of the call, by argument of the node */
} LsBehind;

/* Takes an argument of the call as operand: what statements call it (LsStmt.arg). All operands come
 * before the results. */
int ls_behind_operand(LsBehind *b, int argument, const LsShape *shape);
/* The next statement: its number. second: of operators of two arguments. */
int ls_behind_state(LsBehind *b, LsOpCode op, int first, int second);
/* Takes an argument of the call as result, which statement `out.stmt` gives; it may be an operand,
 * too. */
void ls_behind_result(LsBehind *b, int argument, const LsShape *shape, LsFusedOut out);

/* Prints the parts, under a comment that names the library, and NAME_behind(run, arg), arg being the
 * call's. The host text so far must be empty for the parts to be shared (lift_constants.h). */
void ls_behind_emit(LsBehind *b, const LsKernelText *k, const char *library);

#endif
