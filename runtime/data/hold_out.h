/* runtime/data/hold_out.h -- samples that are held out of training, to evaluate on.
 *
 * Which they are depends on their number, on the number of all samples and on the seed: not on
 * threads, ranks or the order of an epoch. The samples are cut into as many stretches as are held
 * out, of the same length but for rounding, and one of each stretch is drawn. Windows of a stream
 * of tokens may overlap, and each ends with the first token of the next one: of them the last ones
 * are held out, and training gets none that shares a token with them. */
#ifndef LS_RUNTIME_DATA_HOLD_OUT_H
#define LS_RUNTIME_DATA_HOLD_OUT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct LsHoldOut {
    int64_t held, all;          /* samples; held 0: none, the part is all of the data */
    int64_t gap;                /* of a stream: windows before those held out that no part has */
    uint64_t seed;
    bool stream;
    bool is_held;               /* the part held out; else the part for training */
} LsHoldOut;

/* Samples of a part. */
int64_t ls_hold_out_samples(const LsHoldOut *h);
/* The number in all the data of sample i of a part. Both parts are in the order of the data. */
int64_t ls_hold_out_sample(const LsHoldOut *h, int64_t i);

#endif
