/* runtime/trainer/rescue.h -- what is kept of a run that ends too early. */
#ifndef LS_RUNTIME_TRAINER_RESCUE_H
#define LS_RUNTIME_TRAINER_RESCUE_H

#include "runtime/trainer/trainer_state.h"

/* Saves an interrupted run, unless its --save folder has it, and says how to continue. */
bool ls_end_interrupted(LsTrainer *t, LsError *e);
/* Saves a trained state that could not be written where it should be, unless a checkpoint has it.
 * Says on stderr where it is now, or that it is lost. */
void ls_rescue_unwritten(LsTrainer *t);

#endif
