/* runtime/trainer/training_parts.h -- what an update of training_loop.c consists of, for rank_block.c. */
#ifndef LS_RUNTIME_TRAINER_TRAINING_PARTS_H
#define LS_RUNTIME_TRAINER_TRAINING_PARTS_H

#include "runtime/trainer/training_loop.h"

enum { LS_PART_HOOKS = 5 };

/* Epochs are counted in batches, `group` of which make an update. In private training the number of batches of an update
 * varies, and is nobody's business: updates are counted, and the group is 1. */
static inline int64_t ls_group(const LsTrainer *t)
{
    return !ls_is_private(t->p) && t->p->accumulate > 0 ? t->p->accumulate : 1;
}

/* Parts of a batch. */
static inline int64_t ls_parts(const LsProgram *p) { return p->parts > 1 ? p->parts : 1; }

/* Sets what kernels read of micro-step k of an update. part: its number among those with samples. */
void ls_part_run(LsTrainer *t, const LsBatch *b, int64_t k, int64_t part);
/* The steps of a micro-step. */
const LsPhaseTable *ls_part_table(const LsTrainer *t, bool last);
/* For a run of these steps; returns the number of hooks. */
int ls_part_hooks(LsTrainer *t, const LsPhaseTable *table, bool last_batch, LsHook hook[LS_PART_HOOKS]);
/* What the checks of the last run found. */
bool ls_part_check(LsTrainer *t, const LsFlight *f, LsLoss one, LsError *e);
/* Adds the loss of a part; after the last part of an update, reports the update. */
bool ls_part_loss(LsTrainer *t, const LsFlight *f, LsLoss one, LsError *e);

/* rank_block.c: the rank's block of the update under way, and the exchange. */
bool ls_rank_block(LsTrainer *t, LsError *e);

#endif
