/* runtime/trainer/training_loop.h -- one run of a trainer: the loop over updates. */
#ifndef LS_RUNTIME_TRAINER_TRAINING_LOOP_H
#define LS_RUNTIME_TRAINER_TRAINING_LOOP_H

#include "runtime/trainer/trainer_state.h"

/* Sets the length of the run and its start: after the data are open and a checkpoint, if any, is
 * loaded. */
bool ls_train_plan(LsTrainer *t, bool resumed, LsError *e);
/* The training loop. Allocates nothing. Returns true also when *stop ended it: then t->stopped is
 * set. */
bool ls_train(LsTrainer *t, LsError *e);

#endif
