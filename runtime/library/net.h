/* runtime/library/net.h -- the training step of a program, for a library (--emit=lib).
 *
 * The functions of the library's own header (codegen/program/library_text.c) call these. A net is
 * one instance: it has no globals, prints nothing, and ends no process. State and arena are the
 * caller's; the net's tables, one batch of inputs and its threads are made by `open` and given back
 * by `close`. */
#ifndef LS_RUNTIME_LIBRARY_NET_H
#define LS_RUNTIME_LIBRARY_NET_H

#include "runtime/base/run_error.h"
#include "runtime/engine/thread_pool.h"
#include "runtime/ls_program.h"

typedef struct LsNet LsNet;

enum { LS_NET_ALIGN = 64 };     /* of state and arena, bytes */

typedef struct LsNetMemory {
    void *state, *arena;
    size_t state_bytes, arena_bytes;    /* at least LsPlannedBytes.state and .arena */
} LsNetMemory;

/* Who computes: so many threads, the caller among them; or the caller's parallel_for, if there is
 * one, with so many tasks at a time. */
typedef struct LsNetThreads { int count; LsParallelFor parallel_for; void *context; } LsNetThreads;

/* Starts with the initial weights of the model's file, as a trainer with that seed does. Returns
 * NULL with an error: memory that is too small or not aligned, threads that cannot be started. */
LsNet *ls_net_open(const LsProgram *p, LsNetMemory memory, LsNetThreads threads, uint64_t seed,
                   LsError *e);
void ls_net_close(LsNet *n);    /* NULL is allowed */
/* The initial weights again, as after `open`. */
bool ls_net_begin(LsNet *n, uint64_t seed, LsError *e);

/* One update over `samples` samples. input: an array for each LsProgram.input, row-major in logical
 * order, of the input's type. samples: those of the batches of an update, of which the last may be
 * short, as in a trainer; of private training: all data, of which the update draws its samples.
 * rate: at least 0. loss: of the update, before it; NULL: it is not waited for, and a device
 * computes on. Then a loss that is not finite is the error of a later call. After an error other
 * than of the data, weights are those of before or of after the update. */
bool ls_net_step(LsNet *n, const void *const *input, int64_t samples, double rate, double *loss,
                 LsError *e);
/* Waits for all updates. loss: of the last one; NULL is allowed. */
bool ls_net_wait(LsNet *n, double *loss, LsError *e);
/* The loss of the evaluation form over `samples` samples, of any number. */
bool ls_net_evaluate(LsNet *n, const void *const *input, int64_t samples, double *loss,
                     LsError *e);

/* net_device.c, of a device. Arrays of `input` may lie on it: those that a batch has as they are
 * (ls_dataset_copies) are copied there, in the order of the steps, and others by the host. Without
 * a stream all work on the device is waited for first. With one, of the device's kind, work of the
 * calls that follow begins after what was issued there before the call; what is issued there after
 * it begins when the call's work is done. NULL: the default stream. */
bool ls_net_set_stream(LsNet *n, void *stream, LsError *e);
/* Where the loss of the last step lies on the device until the next call that computes, a real.
 * Of updates of one batch alone: others have none there. */
bool ls_net_loss_there(const LsNet *n, const void **at, LsError *e);

/* net_values.c: outputs of the evaluation form, output k from 0; NULL: there is none. */
const LsTensor *ls_net_output(const LsProgram *p, uint32_t k);
/* output: for each of them the caller's array, or NULL: nobody wants it. An output whose first axis
 * has the samples gets its rows of all samples, in logical order; another one its value for the
 * last batch. Reals of 16 bits are widened. Targets may be NULL in `input`. */
bool ls_net_predict(LsNet *n, const void *const *input, int64_t samples, void *const *output,
                    LsError *e);
/* The gradients that an update over these samples would take, before clipping; the state stays as
 * it is. gradient: for each tensor of the state the caller's array, in logical order, or NULL.
 * Needs as much memory again as the state during the call. */
bool ls_net_gradients(LsNet *n, const void *const *input, int64_t samples, void *const *gradient,
                      double *loss, LsError *e);
/* Tensor k of the state in logical order; reals as the program computes, of 4 or 8 bytes. */
bool ls_net_read(LsNet *n, uint32_t k, void *to, LsError *e);
bool ls_net_write(LsNet *n, uint32_t k, const void *from, LsError *e);

/* Checkpoints of trainers, in files and in the caller's memory. save_to: bytes is set to those of
 * the checkpoint; with room 0 nothing is written. */
bool ls_net_save(LsNet *n, const char *path, LsError *e);
bool ls_net_load(LsNet *n, const char *path, LsError *e);
bool ls_net_save_to(LsNet *n, void *to, size_t room, int64_t *bytes, LsError *e);
bool ls_net_load_from(LsNet *n, const void *from, size_t bytes, LsError *e);
int64_t ls_net_updates(const LsNet *n);     /* done */

/* Private training, net_private.c. The secrets of draws and noise are those of this seed, which
 * voids privacy: to repeat a run. Before the first step. */
bool ls_net_seed_noise(LsNet *n, int64_t seed, LsError *e);
/* What the updates so far have spent: they are (epsilon, delta)-private, for the program's
 * delta. */
bool ls_net_spent(const LsNet *n, double *epsilon, double *delta, LsError *e);

/* The current bytes of state tensor k, in the state; of a channels-last tensor they are not in
 * logical order. NULL: there is no such tensor. */
void *ls_net_state(LsNet *n, uint32_t k, const LsStateTensor **t);

#endif
