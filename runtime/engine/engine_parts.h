/* runtime/engine/engine_parts.h -- the state of a program that runs, for engine.h and
 * member_runs.h. */
#ifndef LS_RUNTIME_ENGINE_ENGINE_PARTS_H
#define LS_RUNTIME_ENGINE_ENGINE_PARTS_H

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

/* On a device: where the last micro-batch of an update is cut into pieces, as something begins
 * between its steps: behind the steps step[0 .. n), ascending, none of them the last one. between:
 * called once piece k of such a run is issued; false: the device has failed. */
typedef struct LsCuts {
    const uint32_t *step; uint32_t n;
    bool (*between)(void *self, uint32_t k);
    void *self;
} LsCuts;

typedef struct LsEngine {
    const LsProgram *p;
    const LsMemory *m;
    LsRun run;
    void **arg;                 /* LsArguments.address, resolved once */
    LsPatch *patch; uint32_t npatch;    /* arguments that change with every batch */
    const LsLoader *loader;     /* loader of the batch fed last, */
    char *input;                /* and the address of that batch for steps */
    int slot;                   /* device: slot of that batch */
    const LsStage *stage;       /* of a pipeline: the engine of one stage, for hooks; its
                                 * micro-batch is in `at_slot`. Else NULL */
    uint32_t at_slot;
    LsRecording train, last, update, eval;      /* device */
    LsCuts cuts;
    LsRecording *piece;         /* [cuts.n + 1], instead of those of the phase that is cut; NULL:
                                 * none is */
    /* Of an ensemble, else 0: */
    int64_t member;             /* the one whose steps run, for hooks */
    struct LsOwn *own; uint32_t nown;   /* arguments that every member has of its own */
    uint32_t narg;              /* of a lane: g->arg has those of all lanes, one behind the other */
    const uint64_t *seeds;      /* by member, set by the trainer; NULL: run.seed */
    const double *rates;        /* likewise, learning rates; NULL: run.lr */
    LsLoss *loss;               /* by member, of the last run */
    bool apart;                 /* device: steps are recorded with explicit dependencies */
} LsEngine;

#endif
