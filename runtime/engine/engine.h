/* runtime/engine/engine.h -- runs the table of steps, on the host or on a device. */
#ifndef LS_RUNTIME_ENGINE_ENGINE_H
#define LS_RUNTIME_ENGINE_ENGINE_H

#include "runtime/data/batch_loader.h"
#include "runtime/engine/mean.h"
#include "runtime/engine/program_memory.h"

/* Called around every step of a phase; either function may be NULL. On a device the call comes when
 * the step is issued. A hook with `done` only issues time marks, which can be recorded and
 * replayed; `done` is called after every run of the phase has been issued. */
typedef struct LsHook {
    void (*before)(void *self, uint32_t step);
    void (*after)(void *self, uint32_t step);
    void *self;
    void (*done)(void *self);
} LsHook;

typedef struct LsPatch { uint32_t arg, input; } LsPatch;

/* Recordings of a phase on a device, one for each slot of batches. */
typedef struct LsRecording { void *of[LS_DEVICE_SLOTS]; } LsRecording;

typedef struct LsEngine {
    const LsProgram *p;
    const LsMemory *m;
    LsRun run;
    void **arg;                 /* LsProgram.address, resolved once */
    LsPatch *patch; uint32_t npatch;    /* arguments that change with every batch */
    const LsLoader *loader;     /* loader of the batch fed last, */
    char *input;                /* and the address of that batch for steps */
    int slot;                   /* device: slot of that batch */
    LsRecording train, eval;    /* device */
    /* Of an ensemble, else 0: */
    int64_t member;             /* the one whose steps run, for hooks */
    struct LsOwn *own; uint32_t nown;   /* arguments that every member has of its own */
    uint32_t narg;              /* of a lane: g->arg has those of all lanes, one behind the other */
    const uint64_t *seeds;      /* by member, set by the trainer; NULL: run.seed */
    const double *rates;        /* likewise, learning rates; NULL: run.lr */
    LsLoss *loss;               /* by member, of the last run */
    bool apart;                 /* device: steps are recorded with explicit dependencies */
} LsEngine;

bool ls_engine_open(LsEngine *g, const LsProgram *p, const LsMemory *m, LsError *e);
void ls_engine_close(LsEngine *g);
/* How many runs may be in flight when another is started, before their losses are read. */
static inline int ls_engine_ahead(const LsEngine *g)
{
    return g->m->device ? LS_DEVICE_SLOTS - 1 : 0;
}
/* Points the inputs at a batch, or issues its copy to the device. */
void ls_engine_feed(LsEngine *g, const LsLoader *l, const LsBatch *b);
/* ls_memory_view, but also for the inputs of that batch. */
void *ls_engine_view(const LsEngine *g, LsAddress a, int64_t bytes);
/* Runs a phase on that batch; of an ensemble, for every member: in lanes at the same time, or one after the other if hooks
 * look on. On a device, issues the run; hooks are called as steps are issued. */
bool ls_engine_run(LsEngine *g, const LsPhaseTable *t, const LsHook *hook, int nhook, LsError *e);
/* Waits until the batch fed last may be released. */
bool ls_engine_fed(LsEngine *g, LsError *e);
/* With an ensemble the loss is the mean over members, those with a finite loss if there are any (LsEngine.loss has each).
 * The loss of the last run of a phase on a slot (LsEngine.slot at that time), over `valid` samples. */
bool ls_engine_loss(const LsEngine *g, const LsPhaseTable *t, int slot, int64_t valid, LsLoss *loss,
                    LsError *e);

#endif
