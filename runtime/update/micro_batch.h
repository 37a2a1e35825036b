/* runtime/update/micro_batch.h -- what one micro-batch of an update is: its place in the run, and
 * what kernels read of it. */
#ifndef LS_RUNTIME_UPDATE_MICRO_BATCH_H
#define LS_RUNTIME_UPDATE_MICRO_BATCH_H

#include "runtime/update/training.h"

/* Sets what kernels read of micro-batch k of an update. part: its number among those with
 * samples. */
void ls_part_run(LsTraining *t, const LsBatch *b, int64_t k, int64_t part);

#endif
