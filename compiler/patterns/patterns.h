/* compiler/patterns/patterns.h -- recognising what exporters write out.
 *
 * A pattern looks at the old graph backwards from its last node, the root. When all of it is
 * there, it appends the replacement to the new graph and returns the value that stands for the
 * root's result. Values in between must have no other reader, or nothing would be saved. */
#ifndef LS_COMPILER_PATTERNS_PATTERNS_H
#define LS_COMPILER_PATTERNS_PATTERNS_H

#include "compiler/ir/diag.h"

bool ls_patterns(LsCtx *, LsGraph *);       /* GELU, layer norm, hard-swish written out -> one node */

#endif
