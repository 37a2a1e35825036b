/* runtime/engine/run_steps.h -- the steps of a phase, one after the other, on the host. */
#ifndef LS_RUNTIME_ENGINE_RUN_STEPS_H
#define LS_RUNTIME_ENGINE_RUN_STEPS_H

#include "runtime/engine/engine_parts.h"

/* Runs the steps of a phase in order. arg: of all steps. */
void ls_steps_run(LsRun *run, const LsPhaseTable *t, void **arg, const LsHook *hook, int nhook);

#endif
