/* runtime/cuda/cudnn_tally.h -- counts the sources of a program's convolution plans. */
#ifndef LS_CUDNN_TALLY_H
#define LS_CUDNN_TALLY_H

/* Numbers of plans: kept as the compiler made them, made again, chosen by timing, and of compiling
 * engines where the compiler planned the convolution alone. */
typedef struct LsDnnTally { int kept, again, timed, compiled; } LsDnnTally;

#endif
