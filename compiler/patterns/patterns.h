/* compiler/patterns/patterns.h -- recognising what exporters write out; shared by the patterns_*.c files.
 *
 * A pattern looks at the old graph backwards from its last node, the root. When all of it is
 * there, it appends the replacement to the new graph and returns the value that stands for the
 * root's result. Values in between must have no other reader, or nothing would be saved. */
#ifndef LS_COMPILER_PATTERNS_PATTERNS_H
#define LS_COMPILER_PATTERNS_PATTERNS_H

#include "compiler/ir/graph.h"
#include "compiler/ir/rewrite.h"

typedef struct LsMatch {
    LsRewrite *r;
    const LsGraph *g;           /* r->from */
    const uint32_t *readers;    /* by value: operands that it is, and outputs */
} LsMatch;

typedef LsValueId (*LsPattern)(const LsMatch *, LsNodeId root);     /* none: no match */

/* v is the result of such a node, *n, and read `readers` times in all (0: any number). */
bool ls_made_by(const LsMatch *m, LsValueId v, LsOpCode op, uint32_t readers, LsNodeId *n);
/* A node of two operands has one that is `want`: the other one. */
LsValueId ls_other_than_number(const LsGraph *g, LsNodeId n, double want);

/* A value as coefficient times factors, through MUL, POW and DIV by constants that nobody else
 * reads. */
typedef struct LsProduct { double coef; int n; LsValueId factor[4]; } LsProduct;
bool ls_product(const LsMatch *m, LsValueId v, LsProduct *p);       /* false: too many factors */

LsValueId ls_match_gelu(const LsMatch *m, LsNodeId root);
LsValueId ls_match_hard_swish(const LsMatch *m, LsNodeId root);
LsValueId ls_match_log_softmax(const LsMatch *m, LsNodeId root);
LsValueId ls_match_layer_norm(const LsMatch *m, LsNodeId root);
LsValueId ls_match_attention(const LsMatch *m, LsNodeId root);
LsValueId ls_match_attention_turned(const LsMatch *m, LsNodeId root);
LsValueId ls_match_transposed(const LsMatch *m, LsNodeId root);
LsValueId ls_match_bias(const LsMatch *m, LsNodeId root);

#endif
