/* runtime/ranks/buckets.h -- one bucket of gradients on its way between ranks: reduce-scatter, then
 * all-gather. */
#ifndef LS_RUNTIME_RANKS_BUCKETS_H
#define LS_RUNTIME_RANKS_BUCKETS_H

#include "runtime/ranks/rank_exchange_parts.h"
#include "runtime/ranks/slice_sum.h"

/* Number of ranks whose block has samples. They are the first ones. */
int ls_contributors(const LsExchange *x);
/* The slice of a rank in x->sums. */
char *ls_bucket_slice(const LsExchange *x, const LsBucket *b, int rank);
/* Slice k of a bucket in the window's sums of rank `of`. */
const char *ls_bucket_seen(const LsExchange *x, const LsBucket *b, int of, int k);
/* Whether slices are added up on the device. */
bool ls_adds_on_device(const LsExchange *x);

/* Begins the reduce-scatter: sends the slices of a bucket to their owners. A rank without samples
 * has nothing to send, and only receives. */
bool ls_bucket_begin(LsExchange *x, uint32_t b, LsError *e);
/* Waits for the operands of the sum that is this rank's slice: part[0 .. ls_contributors(x)). */
bool ls_bucket_take(LsExchange *x, uint32_t b, const char *part[LS_SLICE_RANKS], LsError *e);
/* Sets arg[0 .. LS_SLICE_ARGUMENTS) for the step that updates the slice of a sum, from the byte
 * `from` of the sums on; all but the gradient. */
enum { LS_SLICE_ARGUMENTS = 16 };
void ls_slice_arguments(const LsExchange *x, const LsBucket *b, const LsRankSum *s, int64_t from,
                        void *arg[]);
/* Waits for the slices of bucket b that are this rank's, and adds them up in their place in
 * x->sums. */
bool ls_bucket_reduce(LsExchange *x, uint32_t b, LsError *e);
/* Begins to send this rank's slice to all, and to take theirs; waits for that. */
bool ls_bucket_all_gather(LsExchange *x, uint32_t b, LsError *e);
bool ls_bucket_all_gathered(LsExchange *x, uint32_t b, LsError *e);

#endif
