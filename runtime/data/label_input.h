/* runtime/data/label_input.h -- which input of a program is the target. */
#ifndef LS_RUNTIME_DATA_LABEL_INPUT_H
#define LS_RUNTIME_DATA_LABEL_INPUT_H

#include "runtime/ls_program.h"

/* Its index, or ninput: none is. */
uint32_t ls_label_input(const LsProgram *p);

#endif
