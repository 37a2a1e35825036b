/* runtime/cuda/cudnn_tune.h -- the clock's choice among what may compute a convolution, and where it
 * is kept. */
#ifndef LS_CUDNN_TUNE_H
#define LS_CUDNN_TUNE_H

#include "runtime/cuda/cudnn_run_parts.h"

enum { LS_DNN_KEY = LS_DNN_TEXT + 60 };
/* What a choice is kept by: what it was made for, room included. key: LS_DNN_KEY characters. */
void ls_dnn_key(const LsCudaConv *c, const char *before, char *key);
/* Takes what the clock chose in an earlier process; false: there is nothing. */
bool ls_dnn_take_timed(LsDnnRuns *r, LsDnnReady *q);
/* Times what may serve and keeps the fastest: plans of the library, and the program's own kernel; what
 * is there stays where none can be timed. Where engines that compile may do all, they are compared with the
 * convolution alone and the kernel behind it. */
void ls_dnn_tune_one(LsDnnJob *j, LsDnnReady *q);

#endif
