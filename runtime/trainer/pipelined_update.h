/* runtime/trainer/pipelined_update.h -- an update of a pipeline. */
#ifndef LS_RUNTIME_TRAINER_PIPELINED_UPDATE_H
#define LS_RUNTIME_TRAINER_PIPELINED_UPDATE_H

#include "runtime/trainer/trainer_state.h"

/* Starts the stages of this process. Close in any case. */
bool ls_pipelined_open(LsTrainer *t, LsError *e);
void ls_pipelined_close(LsTrainer *t);
/* LsPartsBy.run of a pipeline. */
bool ls_pipelined_update(void *trainer, LsError *e);
/* With a rank for each stage: rank 0 gets the state of all. Every rank calls it at the same
 * time. */
bool ls_pipelined_gather(LsTrainer *t, LsError *e);
/* The same for what --dump copied, and for the times of --trace and --profile. */
bool ls_pipelined_gather_watched(LsTrainer *t, LsError *e);
bool ls_pipelined_dump_fits(const LsTrainer *t, LsError *e);
bool ls_pipelined_dump_write(const LsTrainer *t, LsError *e);
bool ls_pipelined_trace_write(const LsTrainer *t, LsError *e);

#endif
