/* runtime/update/update_loss.h -- the loss of an update, of its micro-batches one by one, and what
 * is checked of them. */
#ifndef LS_RUNTIME_UPDATE_UPDATE_LOSS_H
#define LS_RUNTIME_UPDATE_UPDATE_LOSS_H

#include "runtime/update/training.h"

/* Whether the values of the next part are looked at: also to name the cause if this skipped update
 * would be one too many. */
bool ls_part_watched(const LsTraining *t);
/* The steps of a micro-batch. */
const LsPhaseTable *ls_part_table(const LsTraining *t, bool last);
/* For a run of these steps; returns the number of hooks. last: of the last part of an update. */
int ls_part_hooks(LsTraining *t, const LsPhaseTable *table, bool last, LsHook hook[LS_PART_HOOKS]);
/* What the checks of the last run found. With a loss scale it is kept for later. */
bool ls_part_check(LsTraining *t, const LsInFlight *f, LsLoss one, LsError *e);
/* Adds the loss of a part; after the last part of an update, reports the update. */
bool ls_part_loss(LsTraining *t, const LsInFlight *f, LsLoss one, LsError *e);

#endif
