/* runtime/trainer/print_plan.h -- what --print-plan shows. */
#ifndef LS_RUNTIME_TRAINER_PRINT_PLAN_H
#define LS_RUNTIME_TRAINER_PRINT_PLAN_H

#include "runtime/ls_program.h"

/* The figures of the program, then a line for each step of training, and of each stage of a pipeline. */
void ls_print_plan(const LsProgram *p);

#endif
