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

/* Samples on the device, row-major in logical order, and their place in a slot. */
typedef struct LsDeviceCopy {
    char *to; const char *from;
    int64_t samples, of;        /* how many there are; and in the slot, where they are repeated */
    int64_t rows;               /* of a sample, [channels][places] each, of which the slot has
                                 * [places][channels] */
    int64_t channels, places, bytes;    /* bytes: of an element */
} LsDeviceCopy;

/* Functions that return false have set d->error. */
struct LsDeviceKind {
    /* Opens the device and allocates all its memory, filled with zeros; slot: bytes of one batch.
     * NULL with an error. */
    LsDevice *(*open)(const LsProgram *p, int64_t slot, LsError *e);
    void (*close)(LsDevice *d);
    /* Both wait for all work issued so far, copy, and wait for the copy. */
    bool (*read)(LsDevice *d, void *here, const void *there, int64_t bytes);
    bool (*write)(LsDevice *d, void *there, const void *here, int64_t bytes);
    /* Whether memory that the program did not take lies on the device. */
    bool (*holds)(LsDevice *d, const void *at);
    /* Waits for all work on the device, whoever issued it. */
    bool (*settle)(LsDevice *d);
    /* The order of work on a stream of the caller's, NULL: the default one. after: work issued from
     * now on begins after what was issued there so far; a stream that cannot be used is the
     * caller's error, and none of the device. before: what is issued there from now on begins after
     * all steps issued so far. */
    bool (*after)(LsDevice *d, void *stream, LsError *e);
    bool (*before)(LsDevice *d, void *stream);
    /* Prepares host memory as a source of batch copies; optional. */
    void (*pin)(LsDevice *d, void *here, int64_t bytes);
    void (*unpin)(LsDevice *d, void *here);
    /* Issues the copy of a batch, or of the part of it from byte `at` on, to a slot once the slot's
     * last run is done; fed waits for the copies. */
    bool (*feed)(LsDevice *d, int slot, int64_t at, const void *here, int64_t bytes);
    bool (*fed)(LsDevice *d, int slot);
    /* Issues the copy of what lies on the device, in the order of the steps. */
    bool (*take)(LsDevice *d, const LsDeviceCopy *copy);
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
