/* compiler/ir/precision.h -- the table of precision.def. */
#ifndef LS_COMPILER_IR_PRECISION_H
#define LS_COMPILER_IR_PRECISION_H

#include "compiler/ir/op.h"

typedef enum { LS_PR_NONE, LS_PR_PRODUCT, LS_PR_LIKE, LS_PR_WIDEST, LS_PR_WIDE } LsPrecisionRule;

typedef struct LsPrecisionRow {
    LsPrecisionRule rule;       /* LS_PR_NONE: not in the table (FUSED and the like, which later
                                 * passes make) */
    unsigned rounded;           /* PRODUCT: bit k: operand k is rounded */
    int results;                /* PRODUCT, LIKE: so many results may be stored in 16 bits */
    int like;                   /* LIKE: operand */
} LsPrecisionRow;

/* "f32", "bf16", "f16": the type that reals of this type are stored in, in a program whose LS_REAL
 * has 4 bytes. */
const char *ls_precision_name(LsType type);

extern const LsPrecisionRow ls_precision_row[LS_NOPS];

#endif
