/* runtime/cuda/cudnn_tally.h -- where the plans of a program's convolutions are from. */
#ifndef LS_CUDNN_TALLY_H
#define LS_CUDNN_TALLY_H

/* How many plans were taken as the compiler made them, were made again, came from the clock, or are
 * of engines that compile where the compiler planned the convolution alone. */
typedef struct LsDnnTally { int kept, again, timed, compiled; } LsDnnTally;

#endif
