/* runtime/trainer/scored_evaluation.h -- an evaluation with the metrics that the run asks for. */
#ifndef LS_RUNTIME_TRAINER_SCORED_EVALUATION_H
#define LS_RUNTIME_TRAINER_SCORED_EVALUATION_H

#include "runtime/trainer/trainer_state.h"

/* Chooses the metrics, once the data to evaluate on are known. */
bool ls_scored_open(LsTrainer *t, LsError *e);
/* ls_evaluate on --val or what is held out, or else on --data; s has the metrics, too. */
bool ls_scored_evaluation(LsTrainer *t, const LsHook *extra, int nextra, LsProgress *bar,
                          LsScore *s, LsError *e);

#endif
