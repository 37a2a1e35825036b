/* compiler/ops/einsum_text.h -- the equation of an Einsum as lists of labels. */
#ifndef LS_COMPILER_OPS_EINSUM_TEXT_H
#define LS_COMPILER_OPS_EINSUM_TEXT_H

#include "compiler/ops/row.h"

enum {
    LS_EINSUM_LETTERS = 52,     /* A .. Z, a .. z are labels 0 .. 51; the axes of an ellipsis follow
                                 * them */
    LS_EINSUM_LABELS = LS_EINSUM_LETTERS + LS_MAX_RANK,
};

typedef struct LsEinsumTerm { int n; uint8_t label[LS_MAX_RANK]; } LsEinsumTerm;

typedef struct LsEinsum {
    LsEinsumTerm *in, out;      /* one term per operand */
    int64_t dim[LS_EINSUM_LABELS];      /* length of each label's axes, but for operands with 1
                                         * there */
} LsEinsum;

/* Reads the node's equation against the shapes of its operands. False after an error: the equation
 * is malformed, or does not fit them. */
bool ls_einsum_read(LsOnnxNode *n, LsEinsum *e);

/* The equation's name of a label, for messages. */
char ls_einsum_letter(int label);

#endif
