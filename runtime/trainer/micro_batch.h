/* runtime/trainer/micro_batch.h -- what one micro-batch of an update is: its place in the run, and
 * what kernels read of it. */
#ifndef LS_RUNTIME_TRAINER_MICRO_BATCH_H
#define LS_RUNTIME_TRAINER_MICRO_BATCH_H

#include "runtime/trainer/trainer_state.h"

/* Sets what kernels read of micro-batch k of an update. part: its number among those with
 * samples. */
void ls_part_run(LsTrainer *t, const LsBatch *b, int64_t k, int64_t part);
/* Lets the loader go on with the batches from t->place to the end of the run. */
void ls_train_begin_pass(LsTrainer *t);
/* What all ranks must have alike: the program, and where they are in which run. */
uint64_t ls_rank_place(const LsTrainer *t);

#endif
