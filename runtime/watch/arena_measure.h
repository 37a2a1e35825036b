/* runtime/watch/arena_measure.h -- --measure: how much of the arena the steps really use. */
#ifndef LS_RUNTIME_WATCH_ARENA_MEASURE_H
#define LS_RUNTIME_WATCH_ARENA_MEASURE_H

#include "runtime/engine/engine.h"

typedef struct LsMeasure {
    const LsEngine *g;
    const LsPhaseTable *t;
    int64_t addressed;          /* end of the highest result or workspace, bytes */
    int64_t touched;            /* highest byte that changed + 1 */
} LsMeasure;

void ls_measure_start(LsMeasure *x, const LsEngine *g, const LsPhaseTable *t);
LsHook ls_measure_hook(LsMeasure *x);
void ls_measure_end(LsMeasure *x);

#endif
