/* runtime/data/label_input.h -- finds the inputs of a program that are targets. */
#ifndef LS_RUNTIME_DATA_LABEL_INPUT_H
#define LS_RUNTIME_DATA_LABEL_INPUT_H

#include "runtime/ls_program.h"

/* Index of the target, or ninput: no target. Among several: the first of integers, which are the
 * labels of LsLossTarget.classes; else the first. */
uint32_t ls_label_input(const LsProgram *p);
/* Number of targets. */
uint32_t ls_label_inputs(const LsProgram *p);

#endif
