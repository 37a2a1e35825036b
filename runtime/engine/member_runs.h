/* runtime/engine/member_runs.h -- runs a phase for every member of an ensemble, on the host. */
#ifndef LS_RUNTIME_ENGINE_MEMBER_RUNS_H
#define LS_RUNTIME_ENGINE_MEMBER_RUNS_H

#include "runtime/engine/engine_parts.h"

/* Resolves the arguments of all lanes, `n` each, from those of the first. */
bool ls_members_open(LsEngine *g, uint32_t n, LsError *e);
void ls_members_close(LsEngine *g);
/* Runs the phase on the batch fed last, and sets g->loss. */
void ls_members_run(LsEngine *g, const LsPhaseTable *t, const LsHook *hook, int nhook);
/* The mean loss of that run over the members whose loss is finite; if there are none: NaN. */
LsLoss ls_members_loss(const LsEngine *g);

#endif
