/* runtime/engine/engine.h -- runs the table of steps, on the host or on a device. */
#ifndef LS_RUNTIME_ENGINE_ENGINE_H
#define LS_RUNTIME_ENGINE_ENGINE_H

#include "runtime/engine/engine_parts.h"

bool ls_engine_open(LsEngine *g, const LsProgram *p, const LsMemory *m, LsError *e);
void ls_engine_close(LsEngine *g);
/* How many runs may be in flight when another is started, before their losses are read. */
static inline int ls_engine_ahead(const LsEngine *g)
{
    return g->m->device ? LS_DEVICE_SLOTS - 1 : 0;
}
/* Points the inputs at a batch, or issues its copy to the device. */
void ls_engine_feed(LsEngine *g, const LsLoader *l, const LsBatch *b);
/* The address for steps; of a stage, for its micro-batch in that slot. */
void *ls_stage_address(const LsMemory *m, const LsStage *s, uint32_t slot, LsAddress a);
/* ls_memory_view, but also for the inputs of that batch, and in a stage of a pipeline. */
void *ls_engine_view(const LsEngine *g, LsAddress a, int64_t bytes);
/* Runs a phase on that batch; of an ensemble, for every member: in lanes at the same time, or one
 * after the other if hooks look on. On a device, issues the run; hooks are called as steps are
 * issued. */
bool ls_engine_run(LsEngine *g, const LsPhaseTable *t, const LsHook *hook, int nhook, LsError *e);
/* Cuts the last micro-batch of updates, before the first run. The steps belong to the caller. */
bool ls_engine_cut(LsEngine *g, LsCuts cuts, LsError *e);
/* Waits until the batch fed last may be released. */
bool ls_engine_fed(LsEngine *g, LsError *e);
/* With an ensemble the loss is the mean over members, those with a finite loss if there are any
 * (LsEngine.loss has each). The loss of the last run of a phase on a slot (LsEngine.slot at that
 * time), over `valid` samples. */
bool ls_engine_loss(const LsEngine *g, const LsPhaseTable *t, int slot, int64_t valid, LsLoss *loss,
                    LsError *e);
/* Feeds a batch and runs the evaluation form on it; sets the loss over its samples. */
bool ls_engine_evaluate(LsEngine *g, const LsLoader *l, const LsBatch *b, const LsHook *hook,
                        int nhook, LsLoss *loss, LsError *e);

#endif
