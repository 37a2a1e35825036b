/* runtime/ranks/slice_sum.h -- the sum of the slices that ranks sent, in the order of
 * runtime/kernels/ls_tree.h. */
#ifndef LS_RUNTIME_RANKS_SLICE_SUM_H
#define LS_RUNTIME_RANKS_SLICE_SUM_H

#include "runtime/ls_program.h"

enum { LS_SLICE_RANKS = 1024 };

/* to = the sum of `bytes` bytes of reals from part[0 .. n) + from on; `to` may be one of these
 * places. */
void ls_slice_sum(LsRun *run, const char *const part[], int n, int64_t from, int64_t bytes,
                  int real_bytes, char *to);

#endif
