/* runtime/watch/dump_values.h -- --dump: values of the last training step as an NPZ archive, in ONNX's order. */
#ifndef LS_RUNTIME_WATCH_DUMP_VALUES_H
#define LS_RUNTIME_WATCH_DUMP_VALUES_H

#include "runtime/engine/engine.h"

typedef struct LsDump {
    const LsEngine *g;
    const LsPhaseTable *t;
    char *copy;                 /* the watched values, one after the other, as they lie in memory */
    int64_t *offset;            /* of each watch in it */
} LsDump;

bool ls_dump_open(LsDump *d, const LsEngine *g, const LsPhaseTable *t, LsError *e);
void ls_dump_close(LsDump *d);
/* Whether all of it fits one archive. */
bool ls_dump_fits(const LsDump *d, const char *path, LsError *e);
/* Copies the watched values while the step runs. */
LsHook ls_dump_hook(LsDump *d);
/* After the step: loss, out/, grad/ as copied, param/, stat/ and moment/ as they are now. */
bool ls_dump_write(const LsDump *d, const char *path, double loss, LsError *e);

#endif
