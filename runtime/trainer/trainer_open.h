/* runtime/trainer/trainer_open.h -- opens what a run needs, from the options, and closes it. */
#ifndef LS_RUNTIME_TRAINER_TRAINER_OPEN_H
#define LS_RUNTIME_TRAINER_TRAINER_OPEN_H

#include "runtime/trainer/trainer_state.h"

/* Opens data, memory, threads, ranks' exchange and reports; loads a checkpoint. Close in any
 * case. */
bool ls_trainer_open(LsTrainer *t, LsError *e);

/* Waits for the other ranks before it closes, or ends them if *e is an error. */
void ls_trainer_close(LsTrainer *t, LsError *e);

#endif
