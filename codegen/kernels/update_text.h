/* codegen/kernels/update_text.h -- prints the text of a rule (compiler/ir/optimizer.h) into a
 * kernel. */
#ifndef LS_CODEGEN_KERNELS_UPDATE_TEXT_H
#define LS_CODEGEN_KERNELS_UPDATE_TEXT_H

#include "codegen/emit/kernel_emit.h"
#include "compiler/ir/optimizer.h"

/* Prints the lines of text that hold, with the hyperparameters of `h` for their names. state: bit
 * k, state k of the rule is there: lines may ask for its variable, too. text may be NULL. */
void ls_update_text(const LsKernelText *k, const LsRule *rule, const LsHyper *h, unsigned state,
                    const char *text);

#endif
