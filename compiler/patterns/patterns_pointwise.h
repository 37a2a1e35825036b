/* compiler/patterns/patterns_pointwise.h -- matches decomposed pointwise operators. */
#ifndef LS_COMPILER_PATTERNS_PATTERNS_POINTWISE_H
#define LS_COMPILER_PATTERNS_PATTERNS_POINTWISE_H

#include "compiler/patterns/patterns_match.h"

LsValueId ls_match_gelu(const LsMatch *m, LsNodeId root);
LsValueId ls_match_hard_swish(const LsMatch *m, LsNodeId root);
LsValueId ls_match_log_softmax(const LsMatch *m, LsNodeId root);

#endif
