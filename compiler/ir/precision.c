/* compiler/ir/precision.c -- see the header. */
#include "compiler/ir/precision.h"

const char *ls_precision_name(LsType type)
{
    return type == LS_BF16 ? "bf16" : type == LS_F16 ? "f16" : "f32";
}

#define LS_PRODUCT(op, operands, n)                                                                \
    [LS_OP_##op] = {.rule = LS_PR_PRODUCT, .rounded = (operands), .results = (n)},
#define LS_LIKE(op, k) [LS_OP_##op] = {.rule = LS_PR_LIKE, .results = 1, .like = (k)},
#define LS_WIDEST(op) [LS_OP_##op] = {.rule = LS_PR_WIDEST, .results = 1},
#define LS_WIDE(op) [LS_OP_##op] = {.rule = LS_PR_WIDE},
const LsPrecisionRow ls_precision_row[LS_NOPS] = {
#include "compiler/ir/precision.def"
};
