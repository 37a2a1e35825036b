/* runtime/data/label_input.h -- finds the input of a program that is the target. */
#ifndef LS_RUNTIME_DATA_LABEL_INPUT_H
#define LS_RUNTIME_DATA_LABEL_INPUT_H

#include "runtime/ls_program.h"

/* Index of the target, or ninput: no target. */
uint32_t ls_label_input(const LsProgram *p);

#endif
