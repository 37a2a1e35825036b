/* runtime/cuda/cudnn_tune.h -- chooses among a convolution's candidates by timing, and caches the
 * choice. */
#ifndef LS_CUDNN_TUNE_H
#define LS_CUDNN_TUNE_H

#include "runtime/cuda/cudnn_run_parts.h"

enum { LS_DNN_KEY = LS_DNN_TEXT + 60 };
/* The cache key of a choice: everything that it was made for, workspace included. key: LS_DNN_KEY
 * characters. */
void ls_dnn_key(const LsCudaConv *c, const char *before, char *key);
/* Uses the cached choice of an earlier process; false: none. */
bool ls_dnn_take_timed(LsDnnRuns *r, LsDnnReady *q);
/* Times the candidates, plans of the library and the program's own kernel, and keeps the fastest;
 * where none can be timed, the current plan stays. Compiling engines that cover the whole step
 * compete with the convolution alone plus the kernel behind it. */
void ls_dnn_tune_one(LsDnnJob *j, LsDnnReady *q);

#endif
