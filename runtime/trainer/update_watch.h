/* runtime/trainer/update_watch.h -- what a trainer looks at while its updates run, and tells of
 * them. */
#ifndef LS_RUNTIME_TRAINER_UPDATE_WATCH_H
#define LS_RUNTIME_TRAINER_UPDATE_WATCH_H

#include "runtime/trainer/trainer_state.h"

/* Once options are read, ranks have met and reports are open. */
void ls_update_watch(LsTrainer *t);
/* Hooks of an evaluation that is all that the run does; returns their number. */
int ls_evaluation_hooks(LsTrainer *t, LsHook hook[LS_PART_HOOKS]);

#endif
