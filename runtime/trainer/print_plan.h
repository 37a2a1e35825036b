/* runtime/trainer/print_plan.h -- what --print-plan shows. */
#ifndef LS_RUNTIME_TRAINER_PRINT_PLAN_H
#define LS_RUNTIME_TRAINER_PRINT_PLAN_H

#include "runtime/ranks/rank_exchange.h"

/* The figures of the program, over so many ranks (0: it has none), then when they exchange
 * gradients, then a line for each step of training, and of each stage of a pipeline. */
void ls_print_plan(const LsProgram *p, int ranks, LsBucketing how);

#endif
