/* runtime/engine/device_ranks.h -- what a kind of device has for programs that train over ranks
 * (LsAccelerator.ranks).
 *
 * Work is issued in the same order as steps are (device.h). Functions that take an LsDevice and
 * return false have set its error. */
#ifndef LS_RUNTIME_ENGINE_DEVICE_RANKS_H
#define LS_RUNTIME_ENGINE_DEVICE_RANKS_H

#include "runtime/comm/comm.h"
#include "runtime/engine/device.h"

/* A device among all of the world, and for people. */
typedef struct LsDeviceId { unsigned char id[16]; char name[64]; } LsDeviceId;

/* Numbers for a step. */
typedef struct LsRunSet { _Alignas(64) LsRun of; } LsRunSet;

typedef struct LsDeviceRanks {
    /* Chooses the device of this process before it is opened: number `local` of those that the
     * process sees, which are counted from the first again where there are fewer. */
    bool (*choose)(int local, LsDeviceId *id, LsError *e);
    /* Whether this process can have an engine for messages in devices' memory; else the reason. */
    bool (*can_join)(LsError *why);
    /* That engine. It stands on `under`, and takes it unless it fails. */
    LsComm *(*join)(LsDevice *d, LsComm *under, LsError *e);
    /* Memory of the device, zeros, which is given back with the device; NULL: it has no more. */
    void *(*take)(LsDevice *d, int64_t bytes);
    /* Issue copies from the device to the host, to the device, and within it. Host memory should be
     * pinned, and belongs to the copy until `settle`. */
    bool (*fetch)(LsDevice *d, void *here, const void *there, int64_t bytes);
    bool (*store)(LsDevice *d, void *there, const void *here, int64_t bytes);
    bool (*move)(LsDevice *d, void *to, const void *from, int64_t bytes);
    /* Issues to = a + b, so many bytes of reals on the device; `to` may be one of both. */
    bool (*add)(LsDevice *d, void *to, const void *a, const void *b, int64_t bytes);
    /* Waits for all work issued. */
    bool (*settle)(LsDevice *d);
    /* Makes n points. point: point k is here in the order of work. beside: a copy to the host which
     * waits for point k, but for nothing else; beside_done waits for it. */
    bool (*points)(LsDevice *d, uint32_t n);
    bool (*point)(LsDevice *d, uint32_t k);
    bool (*beside)(LsDevice *d, uint32_t k, void *here, const void *there, int64_t bytes);
    bool (*beside_done)(LsDevice *d, uint32_t k);
    /* Starts the messages that were named since the last call, once point k, if it was ever set, is
     * reached. comm: of join. */
    bool (*launch)(LsDevice *d, uint32_t k, LsComm *comm, LsError *e);
    /* Between begin and end of a run: issues the copy of n sets of numbers to the device; set: host
     * memory as for copies. Steps issued after `use` read set k; below 0: the numbers of begin. */
    bool (*numbers)(LsDevice *d, const LsRunSet *set, uint32_t n);
    void (*use)(LsDevice *d, int64_t k);
} LsDeviceRanks;

#endif
