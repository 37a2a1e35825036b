/* runtime/engine/device.h -- a device that runs a program's steps: its memory, the transfer of
 * batches and losses, and the order of work. Programs for the CPU have no device (LsMemory.device
 * is NULL) and use none of this.
 *
 * Work is issued in order and done asynchronously. A batch lies in one of LS_DEVICE_SLOTS slots on
 * the device, in turn: the next batch arrives while the steps of one run. The numbers and the loss
 * of a run have a place for each slot too, so the host may be one run ahead of the last known
 * loss. */
#ifndef LS_RUNTIME_ENGINE_DEVICE_H
#define LS_RUNTIME_ENGINE_DEVICE_H

#include "runtime/base/run_error.h"
#include "runtime/ls_program.h"

typedef struct LsDeviceKind LsDeviceKind;
typedef struct LsDevice {       /* first member of every kind's struct */
    const LsDeviceKind *kind;
    const LsProgram *p;
    char *arena, *state, *constant, *input[LS_DEVICE_SLOTS];    /* addresses on the device */
    const LsStep *at;           /* the step being issued, for messages; NULL: none */
    int64_t update;             /* the update being issued, for messages */
    bool tune;                  /* libraries time the candidates for a step at its first run */
    LsError error;              /* the first failure; later work is void */
    void *view; int64_t view_bytes;     /* a host copy of device memory: ls_memory_view */
} LsDevice;

/* Functions that return false have set d->error. */
struct LsDeviceKind {
    /* Opens the device and allocates all its memory, filled with zeros; slot: bytes of one batch.
     * NULL with an error. */
    LsDevice *(*open)(const LsProgram *p, int64_t slot, LsError *e);
    void (*close)(LsDevice *d);
    /* Both wait for all work issued so far, copy, and wait for the copy. */
    bool (*read)(LsDevice *d, void *here, const void *there, int64_t bytes);
    bool (*write)(LsDevice *d, void *there, const void *here, int64_t bytes);
    /* Whether memory that the program did not take lies on the device. If so, all work on the
     * device is done, whoever issued it, and `read` may copy the memory. */
    bool (*holds)(LsDevice *d, const void *at);
    /* Prepares host memory as a source of batch copies; optional. */
    void (*pin)(LsDevice *d, void *here, int64_t bytes);
    void (*unpin)(LsDevice *d, void *here);
    /* Issues the copy of a batch to a slot once the slot's last run is done; fed waits for the
     * copy. */
    bool (*feed)(LsDevice *d, int slot, const void *here, int64_t bytes);
    bool (*fed)(LsDevice *d, int slot);
    /* A run of a phase on the batch of a slot: begin, then steps or one replay, then end, which
     * issues the transfer of the loss (NULL: there is none) and its weight, if any, to the host.
     * loss waits for them; it leaves *weight alone where there is none. */
    bool (*begin)(LsDevice *d, int slot, const LsRun *run);
    bool (*end)(LsDevice *d, int slot, const void *loss, const void *weight);
    bool (*loss)(LsDevice *d, int slot, double *loss, double *weight);
    void (*enter)(LsDevice *d, const char *name); /* around the work that a step issues, for
                                                   * profilers */
    void (*leave)(LsDevice *d);
    /* Work issued between the two is recorded for replay instead. False or NULL: failed; or,
     * without an error, the work must be issued every time. beside: NULL, or an earlier recording
     * of the same steps, which recorded takes over; a replay of both uses the faster of the two. */
    bool (*record)(LsDevice *d);
    void *(*recorded)(LsDevice *d, void *beside);
    /* For recordings: step k, issued next, begins when these n steps have ended, and does not wait
     * for the step issued before it. Every step is announced, from 0 on. */
    bool (*follow)(LsDevice *d, uint32_t k, const uint32_t *step, uint32_t n);
    bool (*replay)(LsDevice *d, void *recording);
    void (*forget)(LsDevice *d, void *recording);
    /* n time marks. mark issues mark k in the order of work (and can be recorded). took waits for
     * all work and returns ns from mark a to mark b. */
    bool (*marks)(LsDevice *d, uint32_t n);
    void (*mark)(LsDevice *d, uint32_t k);
    int64_t (*took)(LsDevice *d, uint32_t a, uint32_t b);
};

/* Keeps the first failure of a device, with the step it happened at. Returns false. */
__attribute__((format(printf, 3, 4)))
bool ls_device_fail(LsDevice *d, LsExit code, const char *fmt, ...);
/* Passes on a device's failure; true: no failure, or no device. */
bool ls_device_ok(const LsDevice *d, LsError *e);

#endif
