/* runtime/update/update_run.h -- runs one update: the trainer's loop and the library's step call
 * it.
 *
 * An update takes LsDivision.batches batches, each of them in micro-batches. Its loss combines
 * everything that counts in its batches (mean.h), and so do its gradients. */
#ifndef LS_RUNTIME_UPDATE_UPDATE_RUN_H
#define LS_RUNTIME_UPDATE_UPDATE_RUN_H

#include "runtime/update/training.h"

/* Runs the update after t->place.update, on the next batches of the loader. On a device its last
 * losses may not be known when this returns. */
bool ls_update_run(LsTraining *t, LsError *e);
/* Waits for all losses. */
bool ls_update_land(LsTraining *t, LsError *e);

#endif
