/* runtime/pipeline/stage_ranks.h -- what ranks that are processes, one for each stage of a pipeline, tell each other beside
 * the messages of their stages. */
#ifndef LS_RUNTIME_PIPELINE_STAGE_RANKS_H
#define LS_RUNTIME_PIPELINE_STAGE_RANKS_H

#include "runtime/comm/comm.h"
#include "runtime/engine/program_memory.h"
#include "runtime/engine/mean.h"

/* Tags of the messages here. */
enum { LS_TAG_NEWS = LS_STAGE_TAGS, LS_TAG_STATE, LS_TAG_WATCHED };

/* What every rank knows after an update. */
typedef struct LsStageNews {
    uint64_t place;             /* of the run: the same for all, else an error */
    int64_t stop;               /* a signal's number that some rank got; 0: none */
    double scaling[4];          /* of the loss: scale, counter, skips */
} LsStageNews;

/* All ranks call it after an update: *news gets the largest `stop`, loss[0 .. n) the losses of the stage that has them, and the
 * state of the loss scale, if there is one, is that of its stage. */
bool ls_ranks_tell(LsComm *c, const LsMemory *m, LsStageNews *news, LsLoss *loss, int64_t n, LsError *e);
/* All ranks call it: rank 0 gets the state that the others change. */
bool ls_ranks_gather(LsComm *c, const LsProgram *p, const LsMemory *m, LsError *e);
/* `from` and rank 0 call it: rank 0 gets the bytes. */
bool ls_ranks_hand_over(LsComm *c, int from, uint32_t tag, void *data, int64_t bytes, LsError *e);

#endif
