/* compiler/updates/rank_sums.h -- what ranks add up, between the graph of their parts and the graph
 * of updates (--ranks).
 *
 * A rank runs a block of an update's parts: a power of two of them, from a multiple of that number
 * on, so that the block is a subtree of the tree that adds the gradients
 * (runtime/kernels/ls_tree.h); one rank alone runs all of them, the whole tree. The block's sums
 * are state of the graph g. Between the two graphs the trainer adds them up over the ranks; then
 * g->updates reads the same state. */
#ifndef LS_COMPILER_UPDATES_RANK_SUMS_H
#define LS_COMPILER_UPDATES_RANK_SUMS_H

#include "compiler/updates/update_options.h"

/* Sets what LsGraph has of ranks, with the empty graph g->updates; steps: parts of an update. False
 * after a diagnostic: the parts do not divide into such blocks. */
bool ls_ranks_begin(LsCtx *, LsGraph *g, const LsOptimizerOptions *, int steps);
/* Counts bytes as those of one of so many ranks, which is one of g->rank_choice. */
void ls_ranks_count(LsGraph *g, int ranks);
/* Appends to g the sum of v over the rank's parts, weighted as attr.update of `part` says, or by
 * `weight`. p: the parameter whose gradient v is, or none. Returns the sum over all ranks, of
 * g->updates. */
LsValueId ls_rank_sum(LsCtx *, LsGraph *g, const char *name, LsValueId v, LsValueId weight,
                      LsValueId p, const LsAttr *part);
/* A source of g in g->updates: the parameter or state of the same name. */
LsValueId ls_rank_source(LsCtx *, LsGraph *g, LsValueId v);
/* Has g store the statistics of each part, and g->updates move the running ones by those of all
 * parts, in their order. factor: of g->updates, negative if the step is bad; or none. */
void ls_rank_statistics(LsCtx *, LsGraph *g, LsValueId factor, int64_t steps);
/* Whether every rank may update a slice of each parameter: no element's update needs another
 * element. Slices do not end at the ends of blocks of codes. */
bool ls_rank_slices(const LsOptimizerOptions *);

#endif
