/* runtime/watch/dump_values.h -- --dump: values of the last training step as an NPZ archive, in
 * ONNX's order. */
#ifndef LS_RUNTIME_WATCH_DUMP_VALUES_H
#define LS_RUNTIME_WATCH_DUMP_VALUES_H

#include "runtime/engine/engine.h"

typedef struct LsDump {
    const LsEngine *g;
    const LsPhaseTable *t;      /* whose steps run; a table that watches the same values may take
                                 * its place */
    char *copy; int64_t bytes;  /* the watched values, one after the other, in memory order */
    int64_t *offset;            /* of each watch in `copy` */
} LsDump;

bool ls_dump_open(LsDump *d, const LsEngine *g, const LsPhaseTable *t, LsError *e);
void ls_dump_close(LsDump *d);
/* Whether all values of n dumps, of the tables of one step, fit one archive. */
bool ls_dump_fits(const LsDump *d, uint32_t n, const char *path, LsError *e);
/* Copies the watched values while the step runs. */
LsHook ls_dump_hook(LsDump *d);
/* Adds watched reals times `weight` to `to`, in memory order. */
void ls_dump_add(const LsDump *d, uint32_t watch, double weight, double *to);
/* Writes the archive of n dumps after the step: the loss, or those of an ensemble's members; out/
 * and grad/ as copied, param/, stat/ and moment/ as they are now. */
bool ls_dump_write(const LsDump *d, uint32_t n, const char *path, const double *loss, int64_t nloss,
                   LsError *e);

#endif
