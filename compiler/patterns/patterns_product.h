/* compiler/patterns/patterns_product.h -- matches decomposed products. */
#ifndef LS_COMPILER_PATTERNS_PATTERNS_PRODUCT_H
#define LS_COMPILER_PATTERNS_PATTERNS_PRODUCT_H

#include "compiler/patterns/patterns_match.h"

LsValueId ls_match_transposed(const LsMatch *m, LsNodeId root);
LsValueId ls_match_bias(const LsMatch *m, LsNodeId root);

#endif
