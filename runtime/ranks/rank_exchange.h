/* runtime/ranks/rank_exchange.h -- what ranks tell each other in an update: they add up the sums of
 * their blocks of parts, update slices of the parameters or whole ones, and see each other's losses
 * and statistics.
 *
 * A bucket is a run of sums (LsRanks) that become complete one after the other. As soon as a rank's
 * bucket is complete, its slices are on their way to their owners, while the backward part goes on.
 * The owner of a slice adds what the ranks sent in the order of runtime/kernels/ls_tree.h, so
 * neither buckets nor engines nor the number of ranks change a bit.
 *
 * Ranks that are processes of one machine have their sums in memory that all of them see, a window.
 * Then messages say only that bytes are there, and whoever needs them reads them in their place. A
 * rank's sums are read by others until these have said that their slices of the bucket are done. */
#ifndef LS_RUNTIME_RANKS_RANK_EXCHANGE_H
#define LS_RUNTIME_RANKS_RANK_EXCHANGE_H

#include "runtime/ranks/rank_exchange_parts.h"

/* Makes the buckets of a program; to: room for r->nsum. Returns their number. */
uint32_t ls_buckets_make(const LsRanks *r, LsBucketing how, LsBucket *to);

/* comm: NULL, or m->ranks ranks; the caller closes it before. bulk: NULL, or an engine for messages
 * in devices' memory, which stands on comm. window: memory of all ranks of this machine, with this
 * rank's sums (LsMemory.sums) in their place, unless they are on a device; NULL: ranks send each
 * other all bytes. */
bool ls_exchange_open(LsExchange *x, LsEngine *g, LsMemory *m, LsComm *comm, LsComm *bulk,
                      char *window, LsBucketing how, LsError *e);
void ls_exchange_close(LsExchange *x);
/* Whether all ranks are at the same place of the run (rank_packets.h). */
bool ls_exchange_agree(LsExchange *x, uint64_t place, LsError *e);

/* Whether all ranks have the same parameters, and whatever else of the state each has whole. after:
 * updates so far; start: of a run that begins here. All ranks call it at the same time, and get the
 * same error. */
bool ls_exchange_compare(LsExchange *x, int64_t after, bool start, LsError *e);

/* An update with so many parts with samples, of which this rank runs its block. */
void ls_exchange_start(LsExchange *x, int64_t parts);
/* For the run of the rank's last part; not on a device. */
LsHook ls_exchange_hook(LsExchange *x);
/* On a device, as soon as that run is issued: sends what is complete in its course. */
bool ls_exchange_begin(LsExchange *x, LsError *e);
/* Notes the loss of this rank's part j, from 0. */
void ls_exchange_note(LsExchange *x, int64_t j, LsLoss loss);
/* Completes the sums and runs the phase `update`. place, stop: see rank_packets.h. */
bool ls_exchange_finish(LsExchange *x, uint64_t place, int stop, LsError *e);
/* Afterwards: the loss of part k of all ranks; the largest `stop`. */
LsLoss ls_exchange_loss(const LsExchange *x, int64_t k);
int ls_exchange_stop(const LsExchange *x);

/* Rank 0 reads state that has slices between _collect and _release; all other ranks call _serve
 * meanwhile. */
void ls_exchange_collect(LsExchange *x);
bool ls_exchange_release(LsExchange *x, LsError *e);
bool ls_exchange_serve(LsExchange *x, LsError *e);

#endif
