/* runtime/engine/engine.h -- runs the table of steps, here or on a device. */
#ifndef LS_RUNTIME_ENGINE_ENGINE_H
#define LS_RUNTIME_ENGINE_ENGINE_H

#include "runtime/data/batch_loader.h"
#include "runtime/engine/mean.h"
#include "runtime/engine/program_memory.h"

/* Called around every step of a phase; either function may be NULL. On a device that is when the
 * step is given out; a hook that has `done` does nothing but mark moments then, which can be
 * recorded and replayed, and is told of every run of the phase that has been given out. */
typedef struct LsHook {
    void (*before)(void *self, uint32_t step);
    void (*after)(void *self, uint32_t step);
    void *self;
    void (*done)(void *self);
} LsHook;

typedef struct LsPatch { uint32_t arg, input; } LsPatch;

/* A phase as a device keeps it to be replayed, for each slot of batches. */
typedef struct LsRecording { void *of[LS_DEVICE_SLOTS]; } LsRecording;

typedef struct LsEngine {
    const LsProgram *p;
    const LsMemory *m;
    LsRun run;
    void **arg;                 /* LsProgram.address, resolved once */
    LsPatch *patch; uint32_t npatch;    /* arguments that move with every batch */
    const LsLoader *loader;     /* of the batch fed last, */
    char *input;                /* and where steps find it */
    int slot;                   /* device: where that batch went */
    LsRecording train, eval;    /* device */
    bool apart;                 /* device: steps are recorded with what they wait for */
} LsEngine;

bool ls_engine_open(LsEngine *g, const LsProgram *p, const LsMemory *m, LsError *e);
void ls_engine_close(LsEngine *g);
/* How many runs may be under way while another is started, before their losses are asked for. */
static inline int ls_engine_ahead(const LsEngine *g)
{
    return g->m->device ? LS_DEVICE_SLOTS - 1 : 0;
}
/* Points the inputs at a batch, or has it copied to the device. */
void ls_engine_feed(LsEngine *g, const LsLoader *l, const LsBatch *b);
/* ls_memory_view, also of the inputs of that batch. */
void *ls_engine_view(const LsEngine *g, LsAddress a, int64_t bytes);
/* Runs a phase on that batch; on a device, starts it, and hooks are called as steps are given out.
 */
bool ls_engine_run(LsEngine *g, const LsPhaseTable *t, const LsHook *hook, int nhook, LsError *e);
/* Until the batch fed last may be released. */
bool ls_engine_fed(LsEngine *g, LsError *e);
/* Loss of the last run of a phase with a slot (LsEngine.slot as it was then), of `valid` samples. */
bool ls_engine_loss(const LsEngine *g, const LsPhaseTable *t, int slot, int64_t valid, LsLoss *loss,
                    LsError *e);

#endif
