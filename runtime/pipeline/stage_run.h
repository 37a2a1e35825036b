/* runtime/pipeline/stage_run.h -- runs one stage of a pipeline: its phases in their order, and its
 * messages. */
#ifndef LS_RUNTIME_PIPELINE_STAGE_RUN_H
#define LS_RUNTIME_PIPELINE_STAGE_RUN_H

#include "runtime/comm/comm.h"
#include "runtime/engine/engine.h"
#include "runtime/pipeline/stage_check.h"

/* A micro-batch of an update, as all stages run it. */
typedef struct LsPartRun {
    LsRun run;                  /* without pool and device */
    int64_t batch;              /* number of its inputs, for the loader */
} LsPartRun;

/* The arguments of a plan's steps, resolved for each slot that its micro-batches are in. */
typedef struct LsStageArgs {
    void **arg;                 /* [slots][n] */
    uint32_t slots, first, n;   /* first: of LsArguments.address */
} LsStageArgs;

typedef struct LsStageRun {
    LsEngine engine;
    const LsStage *s;
    uint32_t number;            /* of the stage */
    LsComm *comm;
    LsLoader *loader;           /* shared by all stages that read inputs */
    LsStageArgs args[LS_STAGE_PLANS];
    char **input;               /* by slot: the inputs of its micro-batch */
    LsTransfer *sending, *receiving;        /* [slots][nsend], [nreceive] */
    bool *sends, *receives;     /* that are under way */
    LsLoss *loss;               /* by part of the update: set by the stage that has the loss */
    LsHook *hook; int nhook;    /* [LS_STAGE_PLANS][nhook]: for the last micro-batch, or with
                                 * `always` for all, by its plan; opened for `engine` */
    bool always;
    LsStageCheck check;
} LsStageRun;

/* Everything but `engine.run.pool`, which is the caller's. loss: room for
 * LsDivision.micro_batches. */
bool ls_stage_open(LsStageRun *r, const LsProgram *p, uint32_t number, const LsMemory *m,
                   LsComm *comm, LsLoader *l, LsLoss *loss, LsError *e);
void ls_stage_close(LsStageRun *r);
/* The turn of that part which runs last. */
const LsTurn *ls_stage_last_turn(const LsStage *s, int64_t part);
/* Runs an update of n micro-batches, those with samples, which all stages run at the same time.
 * Returns when all messages have arrived. */
bool ls_stage_update(LsStageRun *r, const LsPartRun *part, int64_t n, LsError *e);

#endif
