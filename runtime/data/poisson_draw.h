/* runtime/data/poisson_draw.h -- the samples of private updates. Each update takes every sample
 * with the same probability, independently of all other samples and updates (Poisson sampling). */
#ifndef LS_RUNTIME_DATA_POISSON_DRAW_H
#define LS_RUNTIME_DATA_POISSON_DRAW_H

#include "runtime/base/secret_key.h"

#include <stdbool.h>
#include <stdint.h>

/* The samples of an update are functions of the key and its number. Nothing else is kept. */
typedef struct LsDraw {
    LsSecretKey key;
    double rate;
    int64_t samples;            /* of the data */
    int64_t update;             /* under way */
    int64_t next;               /* sample of the update that is taken next; `samples`: none is
                                 * left */
    uint64_t gaps;              /* drawn for the update so far, below 2^32 */
} LsDraw;

/* rate: probability of a sample, above 0 and at most 1; update: the first one. */
void ls_draw_begin(LsDraw *d, const LsSecretKey *key, double rate, int64_t samples, int64_t update);
/* Takes the update's next samples, at most `most`, in the order of the data. Returns their number.
 * *last: the update has no more, and the next call is for the next update. An update without
 * samples takes one call, which returns 0. */
int64_t ls_draw_take(LsDraw *d, int64_t most, int64_t *sample, bool *last);

#endif
