/* runtime/library/net_state.h -- one instance, for the files of runtime/library/. */
#ifndef LS_RUNTIME_LIBRARY_NET_STATE_H
#define LS_RUNTIME_LIBRARY_NET_STATE_H

#include "runtime/update/training.h"
#include "runtime/watch/dump_values.h"

#include <sys/types.h>

typedef struct LsNet LsNet;

struct LsNet {
    LsTraining t;               /* whose data are the caller's batch */
    int64_t noise_seed;         /* of private training; -1: a secret */
    pid_t opened_by;            /* whose threads compute; 0: they are the caller's, or there are
                                 * none */
    LsDump seen;                /* outputs of the last batch, once one was predicted; else
                                 * seen.copy is NULL */
    void **fetched;             /* by input: a copy of what lies on a device, or NULL */
    bool follows;               /* the caller's stream on the device, */
    void *stream;               /* and which; NULL: the default one */
    bool begun;                 /* a private net: its ledger has this run */
};

/* Whether this process has the net's threads. */
bool ls_net_has_threads(const LsNet *n, LsError *e);
/* net_device.c: the array of input k becomes its source. Work begins after what the caller's stream
 * has so far; work there after what was issued here. Without such a stream both do nothing. */
bool ls_net_point(LsNet *n, uint32_t k, const void *at, int64_t samples, LsError *e);
bool ls_net_after(LsNet *n, LsError *e);
bool ls_net_before(LsNet *n, LsError *e);
/* Takes the caller's arrays as the data. unlabelled: targets may be NULL, and are zeros then. */
bool ls_net_take(LsNet *n, const void *const *input, int64_t samples, bool unlabelled, LsError *e);
/* Sets the pass to the batches of an update over these samples. */
bool ls_net_divide(LsNet *n, int64_t samples, LsError *e);

#endif
