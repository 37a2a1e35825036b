/* runtime/trainer/run_place.h -- where a run is: in its data, and beside other ranks. */
#ifndef LS_RUNTIME_TRAINER_RUN_PLACE_H
#define LS_RUNTIME_TRAINER_RUN_PLACE_H

#include "runtime/trainer/trainer_state.h"

/* Lets the loader go on with the batches from t->u.place to the end of the run. */
void ls_train_begin_pass(LsTrainer *t);
/* What all ranks must have alike: the program, and where they are in which run. */
uint64_t ls_rank_place(const LsTrainer *t);

#endif
