/* runtime/trainer/pipelined_update.h -- the updates of a program for a pipeline, for training_loop.h. */
#ifndef LS_RUNTIME_TRAINER_PIPELINED_UPDATE_H
#define LS_RUNTIME_TRAINER_PIPELINED_UPDATE_H

#include "runtime/trainer/training_parts.h"

/* What looks at the steps of one stage. */
typedef struct LsStageWatch {
    LsHook hook[2];
    LsDump dump;                /* --dump */
    LsCheck check;              /* --check-numerics */
} LsStageWatch;

/* Starts the stages of this process. Close in any case. */
bool ls_pipelined_open(LsTrainer *t, LsError *e);
void ls_pipelined_close(LsTrainer *t);
/* Runs all parts of the update that have samples. Their losses are in t->pipeline.loss, by part. check: look for values
 * that are not finite; dump: copy the values of --dump from the last part. */
bool ls_pipelined_update(LsTrainer *t, bool check, bool dump, LsError *e);
/* With a rank for each stage: rank 0 gets the state of all. Every rank calls it at the same time. */
bool ls_pipelined_gather(LsTrainer *t, LsError *e);
/* Each stage is a process. */
static inline bool ls_has_stage_ranks(const LsTrainer *t) { return t->p->nstage > 0 && t->comm != NULL; }
bool ls_pipelined_dump_fits(const LsTrainer *t, LsError *e);
bool ls_pipelined_dump_write(const LsTrainer *t, LsError *e);

#endif
