/* runtime/update/short_batch.h -- whether a run meets a batch that is not full and that the
 * program cannot compute. */
#ifndef LS_RUNTIME_UPDATE_SHORT_BATCH_H
#define LS_RUNTIME_UPDATE_SHORT_BATCH_H

#include "runtime/update/training.h"

/* Of training: after the run's length is set. False with a sentence that says what to do. */
bool ls_short_batch_trains(const LsTraining *t, LsError *e);
/* The same for one update: over `samples` samples, `some` of which are in a part that is not full;
 * 0: all parts are. data: what errors call them. */
bool ls_short_part_trains(const LsProgram *p, const char *data, int64_t samples, int64_t some,
                          LsError *e);
/* Of evaluation on these data. */
bool ls_short_batch_evaluates(const LsProgram *p, const LsDataset *data, LsError *e);

#endif
