/* compiler/patterns/patterns.h -- recognises operators that exporters decompose.
 *
 * A pattern matches the old graph backwards from its last node, the root. On a full match it
 * appends the replacement to the new graph and returns the value that replaces the root's result.
 * Intermediate values must have no other reader, or nothing would be saved. */
#ifndef LS_COMPILER_PATTERNS_PATTERNS_H
#define LS_COMPILER_PATTERNS_PATTERNS_H

#include "compiler/ir/diag.h"

bool ls_patterns(LsCtx *, LsGraph *);       /* decomposed GELU, layer norm, hard-swish -> one
                                             * node */

#endif
