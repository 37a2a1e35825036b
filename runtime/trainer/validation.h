/* runtime/trainer/validation.h -- what a run does with its evaluations: which samples they are of,
 * the best one, and whether the run goes on.
 *
 * The rank that evaluates decides for all. */
#ifndef LS_RUNTIME_TRAINER_VALIDATION_H
#define LS_RUNTIME_TRAINER_VALIDATION_H

#include "runtime/trainer/trainer_state.h"

/* Batches of an evaluation, as evaluation runs them; 0: all (--limit-val-batches). */
int64_t ls_validation_limit(const LsTrainer *t);
/* Holds samples out of the training data (--val-split), as the run of the checkpoint did: when a
 * checkpoint, if any, is loaded. */
bool ls_validation_open(LsTrainer *t, bool resumed, LsError *e);
/* Before the first update: whether evaluations have the metric that the run asks for. Evaluates one
 * batch for that. */
bool ls_validation_begin(LsTrainer *t, LsError *e);
/* An evaluation is due after this update, whether or not it ends an epoch. */
bool ls_validation_due(const LsTrainer *t);
/* What an evaluation gave: t->saves.best_due, t->ending.early. */
bool ls_validation_take(LsTrainer *t, const LsScore *s, LsError *e);
/* Tells the other ranks, after an evaluation; all ranks call it. */
bool ls_validation_agree(LsTrainer *t, LsError *e);
/* Says why a run ended early. */
void ls_validation_tell(const LsTrainer *t);

#endif
