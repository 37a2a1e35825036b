/* runtime/trainer/update_loss.h -- the loss of an update, of its micro-batches one by one, and what
 * is checked of them. */
#ifndef LS_RUNTIME_TRAINER_UPDATE_LOSS_H
#define LS_RUNTIME_TRAINER_UPDATE_LOSS_H

#include "runtime/trainer/trainer_state.h"

enum { LS_PART_HOOKS = 6 };

/* Whether --check-numerics looks at this step; it also names the cause if this skipped update would
 * be one too many. Never in stages that are processes: they see only their own values. */
bool ls_part_watched(const LsTrainer *t);
/* The steps of a micro-batch. */
const LsPhaseTable *ls_part_table(const LsTrainer *t, bool last);
/* For a run of these steps; returns the number of hooks. Reports are of the table that they were
 * opened for. */
int ls_part_hooks(LsTrainer *t, const LsPhaseTable *table, bool last_batch,
                  LsHook hook[LS_PART_HOOKS]);
/* What the checks of the last run found. With a loss scale it is kept for later. */
bool ls_part_check(LsTrainer *t, const LsInFlight *f, LsLoss one, LsError *e);
/* Adds the loss of a part; after the last part of an update, reports the update. */
bool ls_part_loss(LsTrainer *t, const LsInFlight *f, LsLoss one, LsError *e);

#endif
