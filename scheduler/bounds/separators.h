/* scheduler/bounds/separators.h -- which places of the path to bound at. */
#ifndef LS_SCHEDULER_BOUNDS_SEPARATORS_H
#define LS_SCHEDULER_BOUNDS_SEPARATORS_H

#include "scheduler/bounds/lagrange_prices.h"

/* Places that are crowded beyond the budget, about as many in every stretch of equal excess; in
 * each stretch the most crowded. At most `want`, rising, to sep; returns how many. */
uint32_t ls_separators_choose(const LsBoundGraph *b, int64_t budget, uint32_t want, uint32_t *sep);

/* Where a search has put prices, and crowded places next to those, `step` apart. At most `want`,
 * rising, to sep; returns how many. price [want]: what the search found there, or 0. */
uint32_t ls_separators_refine(const LsBoundDual *dual, int64_t budget, uint32_t step,
                              uint32_t want, uint32_t *sep, double *price);

#endif
