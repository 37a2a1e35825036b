/* scheduler/algorithms/min_norm_point.h -- the point of a polyhedron that is nearest to the
 * origin. */
#ifndef LS_SCHEDULER_ALGORITHMS_MIN_NORM_POINT_H
#define LS_SCHEDULER_ALGORITHMS_MIN_NORM_POINT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* Finds the x [n] of least length with row[i] . x >= level[i] for all m rows [m * n]. weight [m] >=
 * 0: x is the sum of weight[i] * row[i]. Returns false if there is no such x, or it is more than
 * about 1e4 away. The weighted rows then add up to about zero and their levels to about 1, which is
 * the proof. Least distance programming by non-negative least squares: Lawson and Hanson 1974, ch.
 * 23. */
bool ls_nearest_point(LsArena *scratch, uint32_t n, uint32_t m, const double *row,
                      const double *level, double *x, double *weight);

#endif
