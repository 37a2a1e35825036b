/* runtime/trainer/find_rate.h -- --find-rate: a learning rate, from the losses of some updates
 * whose rates rise from one to the next (Smith 2017). The updates are not kept. */
#ifndef LS_RUNTIME_TRAINER_FIND_RATE_H
#define LS_RUNTIME_TRAINER_FIND_RATE_H

#include "runtime/trainer/trainer_state.h"

/* "LOW:HIGH" as --rate-range has it, NULL: the default. */
bool ls_find_rate_range(const char *text, double *low, double *high, LsError *e);
/* Sets the length of the run and its rates. */
bool ls_find_rate_plan(LsTrainer *t, LsError *e);
/* Runs the updates until the losses rise, prints a table and a rate, and writes --rate-table. All
 * ranks call it. */
bool ls_find_rate(LsTrainer *t, LsError *e);

#endif
