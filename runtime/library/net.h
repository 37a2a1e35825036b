/* runtime/library/net.h -- the training step of a program, for a library (--emit=lib).
 *
 * The functions of the library's own header (codegen/program/library_text.c) call these. A net is
 * one instance: it has no globals, prints nothing, and ends no process. State and arena are the
 * caller's; the net's tables, one batch of inputs and its threads are made by `open` and given back
 * by `close`. */
#ifndef LS_RUNTIME_LIBRARY_NET_H
#define LS_RUNTIME_LIBRARY_NET_H

#include "runtime/base/run_error.h"
#include "runtime/ls_program.h"

typedef struct LsNet LsNet;

enum { LS_NET_ALIGN = 64 };     /* of state and arena, bytes */

typedef struct LsNetMemory {
    void *state, *arena;
    size_t state_bytes, arena_bytes;    /* at least LsPlannedBytes.state and .arena */
} LsNetMemory;

/* Starts with the initial weights of the model's file, as a trainer with that seed does. Returns
 * NULL with an error: memory that is too small or not aligned, threads that cannot be started. */
LsNet *ls_net_open(const LsProgram *p, LsNetMemory memory, int threads, uint64_t seed, LsError *e);
void ls_net_close(LsNet *n);    /* NULL is allowed */

/* One update over `samples` samples. input: an array for each LsProgram.input, row-major in logical
 * order, of the input's type. samples: those of the batches of an update, of which the last may be
 * short, as in a trainer. loss: of the update, before it. After an error other than of the
 * data, weights are those of before or of after the update. */
bool ls_net_step(LsNet *n, const void *const *input, int64_t samples, double rate, double *loss,
                 LsError *e);
/* The loss of the evaluation form over `samples` samples, of any number. */
bool ls_net_evaluate(LsNet *n, const void *const *input, int64_t samples, double *loss,
                     LsError *e);

/* Writes and reads checkpoints of trainers. */
bool ls_net_save(LsNet *n, const char *path, LsError *e);
bool ls_net_load(LsNet *n, const char *path, LsError *e);
int64_t ls_net_updates(const LsNet *n);     /* done */

/* The current bytes of state tensor k, in the state; of a channels-last tensor they are not in
 * logical order. NULL: there is no such tensor. */
void *ls_net_state(LsNet *n, uint32_t k, const LsStateTensor **t);

#endif
