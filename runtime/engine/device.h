/* runtime/engine/device.h -- a machine beside this one on which a program's steps run: its memory, the way
 * of batches and losses, and the order of work. Programs for the CPU have none (LsMemory.device is
 * NULL) and go through nothing of this.
 *
 * Work is given out in order and done later. A batch lies in one of LS_DEVICE_SLOTS slots on the
 * device, in turn: while the steps of one batch run, the next one comes. Numbers and loss of a run
 * have a place for each slot too, so the host may be one run ahead of what it knows the loss of. */
#ifndef LS_RUNTIME_ENGINE_DEVICE_H
#define LS_RUNTIME_ENGINE_DEVICE_H

#include "runtime/base/run_error.h"
#include "runtime/ls_program.h"

typedef struct LsDeviceKind LsDeviceKind;
typedef struct LsDevice {       /* begins the struct of every kind */
    const LsDeviceKind *kind;
    const LsProgram *p;
    char *arena, *state, *constant, *input[LS_DEVICE_SLOTS];    /* addresses on the device */
    const LsStep *at;           /* the step being given out, for messages; NULL: none */
    int64_t update;             /* likewise */
    bool tune;                  /* libraries time what may serve a step when it first runs */
    LsError error;              /* the first failure; all later work is moot */
    void *view; int64_t view_bytes;     /* a piece of device memory, here: ls_memory_view */
} LsDevice;

/* Functions that return false have set d->error. */
struct LsDeviceKind {
    /* Finds the device and takes all its memory, which starts as zeros; slot: bytes of one batch.
     * NULL with an error. */
    LsDevice *(*open)(const LsProgram *p, int64_t slot, LsError *e);
    void (*close)(LsDevice *d);
    /* Copies after all work given out so far is done, and waits. */
    bool (*read)(LsDevice *d, void *here, const void *there, int64_t bytes);
    bool (*write)(LsDevice *d, void *there, const void *here, int64_t bytes);
    /* The memory batches are copied from may be made fit for that. */
    void (*pin)(LsDevice *d, void *here, int64_t bytes);
    void (*unpin)(LsDevice *d, void *here);
    /* Has a batch copied to a slot once the slot's last run is done; fed waits for the copy. */
    bool (*feed)(LsDevice *d, int slot, const void *here, int64_t bytes);
    bool (*fed)(LsDevice *d, int slot);
    /* A run of a phase on the batch of a slot: begin, then steps or one replay, then end, which has
     * the loss and its weight, if any, brought here; loss waits for them and leaves *weight alone
     * where there is none. */
    bool (*begin)(LsDevice *d, int slot, const LsRun *run);
    bool (*end)(LsDevice *d, int slot, const void *loss, const void *weight);
    bool (*loss)(LsDevice *d, int slot, double *loss, double *weight);
    void (*enter)(LsDevice *d, const char *name); /* around what a step gives out, for tools */
    void (*leave)(LsDevice *d);
    /* What is given out between the two is kept instead, to be replayed. False, NULL: failed, or
     * without an error: it is to be given out every time. beside: NULL, or what was kept of the same
     * steps before, which is handed over; replays of both take whichever turns out to be faster. */
    bool (*record)(LsDevice *d);
    void *(*recorded)(LsDevice *d, void *beside);
    /* Of what is kept: step k, which is given out next, begins when these n steps have ended, and
     * does not wait for the one given out before it. Every step is announced, from 0 on. */
    bool (*follow)(LsDevice *d, uint32_t k, const uint32_t *step, uint32_t n);
    bool (*replay)(LsDevice *d, void *recording);
    void (*forget)(LsDevice *d, void *recording);
    /* n moments; mark notes moment k in the order of work (and can be recorded), took waits for all
     * work and gives ns from moment a to b, when
     * all is done. */
    bool (*marks)(LsDevice *d, uint32_t n);
    void (*mark)(LsDevice *d, uint32_t k);
    int64_t (*took)(LsDevice *d, uint32_t a, uint32_t b);
};

/* Keeps the first failure of a device, with the step it happened at. Returns false. */
__attribute__((format(printf, 3, 4)))
bool ls_device_fail(LsDevice *d, LsExit code, const char *fmt, ...);
/* Hands on a device's failure; true: there is none, or no device. */
bool ls_device_ok(const LsDevice *d, LsError *e);

#endif
