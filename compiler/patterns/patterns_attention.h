/* compiler/patterns/patterns_attention.h -- matches decomposed attention. */
#ifndef LS_COMPILER_PATTERNS_PATTERNS_ATTENTION_H
#define LS_COMPILER_PATTERNS_PATTERNS_ATTENTION_H

#include "compiler/patterns/patterns_match.h"

LsValueId ls_match_attention(const LsMatch *m, LsNodeId root);
LsValueId ls_match_attention_turned(const LsMatch *m, LsNodeId root);

#endif
