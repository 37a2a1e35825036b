/* runtime/watch/trace.h -- time per step: --trace, --profile. Costs two clock reads per step of the table, or two marks
 * on a device, and nothing when neither option is given. */
#ifndef LS_RUNTIME_WATCH_TRACE_H
#define LS_RUNTIME_WATCH_TRACE_H

#include "runtime/engine/engine.h"

enum {
    LS_TRACE_RUNS = 4,          /* runs in the timeline, the last ones */
    LS_TRACE_SAMPLES = 64,      /* samples of each step, the last ones, for the profile's median */
};

typedef struct LsTrace {
    const LsEngine *g;
    const LsPhaseTable *t;
    int64_t runs;               /* finished runs */
    int64_t *start, *took;      /* ns, [LS_TRACE_RUNS][nstep] */
    int64_t *total, *least;     /* ns by step, over all runs */
    int64_t *sample;            /* ns, [nstep][LS_TRACE_SAMPLES] */
} LsTrace;

bool ls_trace_open(LsTrace *x, const LsEngine *g, const LsPhaseTable *t, LsError *e);
void ls_trace_close(LsTrace *x);
LsHook ls_trace_hook(LsTrace *x);
/* Chrome's trace format; open it in a browser's about:tracing or in Perfetto. */
bool ls_trace_write(const LsTrace *x, const char *path, LsError *e);
/* JSON, the steps in the order of the table, {"schema": 1, "model", "plan", "threads" (of a device
 * 0), "real_bytes", "batch", "runs", "step_ns": mean sum of the steps, "steps": [{"node": the
 * plan's number, "name", "op", "elements": of each result, "again", "ns": median of the last runs,
 * scaled so that the sum over steps is the median of those runs, "mean_ns", "least_ns"}, ...]}. */
bool ls_profile_write(const LsTrace *x, const char *path, int threads, LsError *e);

#endif
