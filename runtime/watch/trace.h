/* runtime/watch/trace.h -- time per step: --trace, --profile. Costs two clock reads per step of the
 * table, or two marks on a device, and nothing when neither option is given. */
#ifndef LS_RUNTIME_WATCH_TRACE_H
#define LS_RUNTIME_WATCH_TRACE_H

#include "runtime/engine/engine.h"

enum {
    LS_TRACE_RUNS = 4,          /* runs in the timeline, the last ones, at least; of tables that run
                                 * once per update fewer */
    LS_TRACE_SAMPLES = 64,      /* samples of each step, the last ones, for the profile's median */
};

/* Of one table. In a pipeline its steps do not run in turn: phase F of one micro-batch comes before
 * phase B of another, and the late phase runs once per step. So each step counts its own runs. */
typedef struct LsTrace {
    const LsEngine *g;
    const LsPhaseTable *t;
    uint32_t lane;              /* thread of the timeline: the stage, of which several tables may
                                 * be */
    int64_t kept;               /* runs in the timeline */
    int64_t *run;               /* by step: its finished runs. This and what follows is one
                                 * allocation */
    int64_t *start, *took;      /* ns, [kept][nstep] */
    int64_t *total, *least;     /* ns by step, over all runs */
    int64_t *sample;            /* ns, [nstep][LS_TRACE_SAMPLES] */
} LsTrace;

/* kept: 1 or more. */
bool ls_trace_open(LsTrace *x, const LsEngine *g, const LsPhaseTable *t, int64_t kept, LsError *e);
void ls_trace_close(LsTrace *x);
LsHook ls_trace_hook(LsTrace *x);
/* Size of what x->run points to: another process that opened the same table may take it over. */
int64_t ls_trace_bytes(const LsTrace *x);
/* x[0 .. n): one, or those of the stages of a pipeline, by lane. Chrome's trace format; open it in
 * a browser's about:tracing or in Perfetto. Lanes are its threads. */
bool ls_trace_write(const LsTrace *x, uint32_t n, const char *path, LsError *e);
/* JSON, the steps in the order of the tables, without those that never ran in a table that did,
 * {"schema": 1, "model", "plan", "threads" (of a device 0), "real_bytes", "batch", "runs": of all
 * tables of a lane, "step_ns": mean sum of the steps, "steps": [{"node": the plan's number, "name",
 * "op", "elements": of each result, "again", "ns": median of the last runs, scaled so that the sum
 * over the steps of a table is the median of those runs, "mean_ns", "least_ns"}, ...]}. */
bool ls_profile_write(const LsTrace *x, uint32_t n, const char *path, int threads, LsError *e);

#endif
