/* compiler/patterns/patterns_norm.h -- matches decomposed norms. */
#ifndef LS_COMPILER_PATTERNS_PATTERNS_NORM_H
#define LS_COMPILER_PATTERNS_PATTERNS_NORM_H

#include "compiler/patterns/patterns_match.h"

LsValueId ls_match_layer_norm(const LsMatch *m, LsNodeId root);

#endif
