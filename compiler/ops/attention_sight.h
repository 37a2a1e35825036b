/* compiler/ops/attention_sight.h -- which columns the rows of an attention see, where the kernels'
 * own causal mask cannot say it. */
#ifndef LS_COMPILER_OPS_ATTENTION_SIGHT_H
#define LS_COMPILER_OPS_ATTENTION_SIGHT_H

#include "compiler/ops/row.h"

typedef struct LsSight {
    int64_t rows, cols, past;
    int64_t left, right;        /* of a window; -1: no end */
    LsValueId filled;           /* [N,1,1,1]: columns that hold a token, whose last ones are the
                                 * rows' own; none: all */
    bool causal;
} LsSight;

/* Bools that broadcast to [N,1,T,S]; none: every column is seen. */
LsValueId ls_sight(LsOnnxNode *n, const LsSight *s);

#endif
