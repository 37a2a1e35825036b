/* scheduler/bounds/separators.h -- chooses the places of the path where memory is bounded. */
#ifndef LS_SCHEDULER_BOUNDS_SEPARATORS_H
#define LS_SCHEDULER_BOUNDS_SEPARATORS_H

#include "scheduler/bounds/lagrange_prices.h"

/* Writes to sep at most `want` places, rising, whose crowd exceeds the budget: the most crowded of
 * each stretch, with about equal total excess per stretch. Returns their number. */
uint32_t ls_separators_choose(const LsBoundGraph *b, int64_t budget, uint32_t want, uint32_t *sep);

/* Writes to sep at most `want` places, rising: the places where the search put prices, and crowded
 * places next to them, `step` apart. Returns their number. price [want]: the price found there, or
 * 0. */
uint32_t ls_separators_refine(const LsBoundDual *dual, int64_t budget, uint32_t step,
                              uint32_t want, uint32_t *sep, double *price);

#endif
