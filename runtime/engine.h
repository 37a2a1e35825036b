/* runtime/engine.h -- runs the table of steps. */
#ifndef LS_RUNTIME_ENGINE_H
#define LS_RUNTIME_ENGINE_H

#include "runtime/loader.h"
#include "runtime/memory.h"

/* Called around every step of a phase; either function may be NULL. */
typedef struct LsHook {
    void (*before)(void *self, uint32_t step);
    void (*after)(void *self, uint32_t step);
    void *self;
} LsHook;

typedef struct LsPatch { uint32_t arg, input; } LsPatch;

typedef struct LsEngine {
    const LsProgram *p;
    const LsMemory *m;
    LsRun run;
    void **arg;                 /* LsProgram.address, resolved once */
    LsPatch *patch; uint32_t npatch;    /* arguments that move with every batch */
} LsEngine;

bool ls_engine_open(LsEngine *g, const LsProgram *p, const LsMemory *m, LsError *e);
void ls_engine_close(LsEngine *g);
/* Points the inputs at a batch. */
void ls_engine_feed(LsEngine *g, const LsLoader *l, const LsBatch *b);
void ls_engine_run(LsEngine *g, const LsPhaseTable *t, const LsHook *hook, int nhook);
double ls_engine_loss(const LsEngine *g, const LsPhaseTable *t);
/* Address of argument k of a step. */
static inline void *ls_engine_arg(const LsEngine *g, const LsStep *s, uint32_t k)
{
    return g->arg[s->arg + k];
}

#endif
