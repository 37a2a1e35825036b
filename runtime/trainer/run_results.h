/* runtime/trainer/run_results.h -- what a run leaves behind. */
#ifndef LS_RUNTIME_TRAINER_RUN_RESULTS_H
#define LS_RUNTIME_TRAINER_RUN_RESULTS_H

#include "runtime/trainer/trainer_state.h"

/* Writes all files that the options ask for at the end of a run. */
bool ls_write_results(LsTrainer *t, LsError *e);

#endif
