/* codegen/kernels/update_codes.h -- the loop over blocks of a parameter whose moments are codes
 * (ls_rule_has_codes in compiler/ir/optimizer.h). */
#ifndef LS_CODEGEN_KERNELS_UPDATE_CODES_H
#define LS_CODEGEN_KERNELS_UPDATE_CODES_H

#include "codegen/kernels/update_operands.h"

/* Elements of a unit: whole blocks, which hold the same elements in the parameter's layout. */
int64_t ls_update_block_unit(const LsUpdateText *u);
/* Elements of a block; 0: the update has no codes. */
int64_t ls_update_block(const LsUpdateText *u);
/* Operand `in` of the elements from `at` on, the first of a block; of the kernel's arguments
 * `all`. */
const char *ls_update_block_operand(const LsUpdateText *u, int in);
/* Opens the loop over blocks, which reads the moments of each into m, v; and in it that over
 * elements, `i` in the parameter's layout, `j` in the block. */
void ls_update_open_blocks(const LsUpdateText *u);
/* Writes the moments back, and closes the loop over blocks. */
void ls_update_close_blocks(const LsUpdateText *u);

#endif
