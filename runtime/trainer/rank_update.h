/* runtime/trainer/rank_update.h -- an update of a run over ranks. */
#ifndef LS_RUNTIME_TRAINER_RANK_UPDATE_H
#define LS_RUNTIME_TRAINER_RANK_UPDATE_H

#include "runtime/trainer/trainer_state.h"

/* LsPartsBy.run of a rank: its block of the update under way, and the exchange. */
bool ls_rank_block(void *trainer, LsError *e);
/* Compares what all ranks have alike, if it is time for that after an update, or at the start of a
 * run. */
bool ls_rank_compare(LsTrainer *t, bool start, LsError *e);
/* Calls save(t, e) in the first rank, to which all others give their slices of the state
 * meanwhile. */
bool ls_train_by_first(LsTrainer *t, bool (*save)(LsTrainer *, LsError *), LsError *e);

#endif
