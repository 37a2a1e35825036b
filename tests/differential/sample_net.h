/* tests/differential/sample_net.h -- random networks whose samples have gradients of their own. */
#ifndef LS_TESTS_DIFFERENTIAL_SAMPLE_NET_H
#define LS_TESTS_DIFFERENTIAL_SAMPLE_NET_H

#include "tests/differential/random_net.h"

/* Dense layers with factors, convolutions with strides, dilations and groups, embeddings,
 * attention, norms; weights, factors and tables that are used several times; constants with a row
 * for each sample. Up to a cross-entropy or an error, without gradients. The same for the same
 * seed. Only `a`, `cx` and `input` of the net are set. */
Net *sample_net_new(uint64_t seed);

#endif
