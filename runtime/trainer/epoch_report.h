/* runtime/trainer/epoch_report.h -- what a run prints: progress, results of epochs, evaluation. */
#ifndef LS_RUNTIME_TRAINER_EPOCH_REPORT_H
#define LS_RUNTIME_TRAINER_EPOCH_REPORT_H

#include "runtime/trainer/trainer_state.h"

/* Evaluates on t->val and prints and logs the result. */
bool ls_train_evaluate(LsTrainer *t, LsError *e);
/* Says at the start how much of the model is trained. */
void ls_train_say_what(const LsTrainer *t);
void ls_train_show_progress(LsTrainer *t);
/* Notes the time of an update; once, prints the time of a step beside the predicted one. */
void ls_train_pace(LsTrainer *t, int64_t ns);
/* Prints the result line of an epoch, with all updates that began in it, or of a part of an epoch
 * at the end of the run. */
bool ls_train_end_epoch(LsTrainer *t, bool whole, LsError *e);
/* The same for an evaluation amid an epoch, which goes on: with its updates so far. */
bool ls_train_amid_epoch(LsTrainer *t, LsError *e);

#endif
