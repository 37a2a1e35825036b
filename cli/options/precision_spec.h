/* cli/options/precision_spec.h -- parses --precision: the types that a program computes in. */
#ifndef LS_CLI_OPTIONS_PRECISION_SPEC_H
#define LS_CLI_OPTIONS_PRECISION_SPEC_H

#include "compiler/ir/ir.h"

typedef struct LsPrecisionSpec {
    int real_bytes;             /* of parameters, state and losses: 4, or 8 for f64 */
    bool tf32;                  /* products round their factors to TF32 */
    LsType compute;             /* LS_BF16, LS_F16: mixed precision; else LS_REAL */
} LsPrecisionSpec;

/* NULL, "f32", "f64", "tf32", "bf16", "f16", or "params=T,compute=T,output=T" (short: p= c= o=),
 * whose types that are left out follow the one before: compute params, output compute. False with a
 * sentence in why. */
bool ls_precision_parse(const char *text, LsPrecisionSpec *to, char *why, size_t size);

#endif
