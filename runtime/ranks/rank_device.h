/* runtime/ranks/rank_device.h -- the exchange of ranks whose sums are in the memory of devices:
 * what rank_exchange.c asks for then. It has two ways.
 *
 * Staged: the host's memory has a copy of the sums. A bucket is fetched, sent, added up and
 * gathered there as without a device, and then goes back. On the device: nothing leaves it. An
 * engine for such memory carries the slices, and the device adds them in the same order. So does a
 * rank alone, which sends nothing. */
#ifndef LS_RUNTIME_RANKS_RANK_DEVICE_H
#define LS_RUNTIME_RANKS_RANK_DEVICE_H

#include "runtime/ranks/rank_exchange_parts.h"

/* Passes on the device's failure. */
static inline bool ls_rank_device_ok(const LsExchange *x, bool ok, LsError *e)
{
    return ok || ls_device_ok(x->d, e);
}

/* To be called last by ls_exchange_open, and first by ls_exchange_close. */
bool ls_rank_device_open(LsExchange *x, LsMemory *m, LsError *e);
void ls_rank_device_close(LsExchange *x);

/* Waits until bucket b can be sent from x->sums, or lets its messages wait. The last part is issued
 * in pieces, and a bucket that is complete behind one of them does not wait for the others. */
bool ls_rank_device_ready(LsExchange *x, uint32_t b, LsError *e);
/* Starts the messages of bucket b, which have been named: a group of few messages, as NCCL takes no
 * more than some in one. */
bool ls_rank_device_launch(LsExchange *x, uint32_t b, LsError *e);
/* On the device: to = the sum of part[0 .. n), so many bytes of each, in the order of the tree. The
 * parts are overwritten; `to` may be one of them. */
bool ls_rank_device_add(LsExchange *x, const char *const part[], int n, int64_t bytes, char *to,
                        LsError *e);
/* Waits for such sums. */
bool ls_rank_device_settle(LsExchange *x, LsError *e);
/* Issues a copy between the device's memory and the host's. */
bool ls_rank_device_copy(LsExchange *x, void *there, void *here, int64_t bytes, bool to_device,
                         LsError *e);

#endif
