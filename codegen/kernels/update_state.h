/* codegen/kernels/update_state.h -- the text of updates that have no rule
 * (compiler/ir/optimizer.h). */
#ifndef LS_CODEGEN_KERNELS_UPDATE_STATE_H
#define LS_CODEGEN_KERNELS_UPDATE_STATE_H

#include "codegen/kernels/update_operands.h"

/* Prints the declarations and the loops over the elements of one tensor. */
void ls_update_of_state(const LsUpdateText *u);

#endif
