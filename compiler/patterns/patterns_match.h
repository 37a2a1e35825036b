/* compiler/patterns/patterns_match.h -- queries of patterns on the graph. */
#ifndef LS_COMPILER_PATTERNS_PATTERNS_MATCH_H
#define LS_COMPILER_PATTERNS_PATTERNS_MATCH_H

#include "compiler/ir/rewrite.h"

typedef struct LsMatch {
    LsRewrite *r;
    const LsGraph *g;           /* r->from */
    const uint32_t *readers;    /* by value: readers, operands and outputs */
} LsMatch;

/* v is the result of a node of that op, *n, and has `readers` readers in all (0: any number). */
bool ls_made_by(const LsMatch *m, LsValueId v, LsOpCode op, uint32_t readers, LsNodeId *n);
/* Of a node with two operands, of which one is the constant `want`: the other operand. */
LsValueId ls_other_than_number(const LsGraph *g, LsNodeId n, double want);

/* A value as coefficient times factors, through MUL, POW and DIV by constants without other
 * readers. */
typedef struct LsProduct { double coef; int n; LsValueId factor[4]; } LsProduct;
bool ls_product(const LsMatch *m, LsValueId v, LsProduct *p);       /* false: too many factors */

typedef LsValueId (*LsPattern)(const LsMatch *, LsNodeId root);     /* none: no match */

#endif
