/* runtime/data/sample_order.h -- orders of samples. */
#ifndef LS_RUNTIME_DATA_SAMPLE_ORDER_H
#define LS_RUNTIME_DATA_SAMPLE_ORDER_H

#include <stdint.h>

/* Index in the data of sample i of an epoch: a permutation of 0..n-1 computed without memory. */
int64_t ls_shuffled(uint64_t seed, int64_t epoch, int64_t n, int64_t i);

#endif
