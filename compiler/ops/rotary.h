/* compiler/ops/rotary.h -- rotary position embedding (Su et al. 2021), shared by the definitions of
 * two domains. */
#ifndef LS_COMPILER_OPS_ROTARY_H
#define LS_COMPILER_OPS_ROTARY_H

#include "compiler/ops/row.h"

typedef struct LsRotary {
    LsValueId x;                /* [N,H,T,D], or [N,T,H,D] if by_token */
    LsValueId cos, sin;         /* [positions,R/2] with ids; without them [N or 1,T,R/2] */
    LsValueId ids;              /* [N or 1,T]: positions of the tokens; or none */
    bool by_token;
    bool interleaved;           /* pairs are neighbours; otherwise the halves of the first R
                                 * elements */
    int64_t rotated;            /* R: elements of a head that are rotated; 0: all */
} LsRotary;

/* x with each pair (a, b) of a head turned by its angle: (a cos - b sin, a sin + b cos). None after
 * an error. */
LsValueId ls_rotary(LsOnnxNode *n, const LsRotary *r);
/* The same of an operand [N,H,T,D], or [N,T,H*D] if by_token, with a result of its shape. */
LsValueId ls_rotary_joined(LsOnnxNode *n, LsRotary *r, int64_t heads);
/* Operand 0 has such a shape; else reports it under the name `what`. */
bool ls_rotary_fits(LsOnnxNode *n, int64_t heads, const char *what);

#endif
