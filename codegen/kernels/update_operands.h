/* codegen/kernels/update_operands.h -- lines that updates (update.c) have in common: declarations
 * of operands, the loop over elements, and what a part of a batch adds to the gradient. */
#ifndef LS_CODEGEN_KERNELS_UPDATE_OPERANDS_H
#define LS_CODEGEN_KERNELS_UPDATE_OPERANDS_H

#include "codegen/emit/kernel_emit.h"
#include "compiler/ir/optimizer.h"

typedef struct LsUpdateText {
    const LsKernelText *k;
    const LsNode *node;
    const LsUpdateAttr *at;
    const LsRule *rule;     /* NULL: no update of a parameter */
    int factor, acc, weight, average, shared, next;  /* operands, -1: absent */
    int each;               /* many tensors: operands of each tensor's update; else 0 */
    bool fours, row;        /* row: updates elements 0 .. end, whose gradient was just computed */
    int64_t unit;           /* elements of a unit of the grid */
} LsUpdateText;

/* Whether the update of the first tensor has this operand; factors of the gradient do not count. */
bool ls_update_has(const LsUpdateText *u, int operand);

/* A constant of the kernel's real type. */
const char *ls_update_number(const LsUpdateText *u, double v);

/* These declare a pointer to an operand. word: LS_IN or LS_OUT. state: an operand that is
 * overwritten. */
void ls_update_declare(const LsUpdateText *u, const char *word, const char *name, int operand);
void ls_update_state(const LsUpdateText *u, const char *name, int operand);
void ls_update_operand(const LsUpdateText *u, const char *name, int operand);

/* Opens the loop over elements `i`. */
void ls_update_open_loop(const LsUpdateText *u);

/* Declares `part`, the factor of this part's gradient; and also what ls_update_accumulate reads
 * besides the elements. */
void ls_update_declare_weight(const LsUpdateText *u);
void ls_update_declare_part(const LsUpdateText *u);

/* In the loop: adds to the accumulator. */
void ls_update_accumulate(const LsUpdateText *u);

/* Adds the part to the tree of partial sums (runtime/kernels/ls_tree.h); `sums` then has the sum.
 * The element of a part is rounded before it is added, as the sum of a part on another process is.
 * to: where the sum of the last part goes; NULL: its level. */
void ls_update_join_tree(const LsUpdateText *u, const char *to);

#endif
