/* scheduler/algorithms/search_limit.h -- how long a search may go on. Its length is counted in moves and its time in
 * work, which are the same on every machine and in every build, and so is the plan that is found.
 * The clock can only cut it where that takes many times as long, and many times the usual seconds:
 * what precedes the first move costs short searches more than the moves that are left to them. */
#ifndef LS_SCHEDULER_ALGORITHMS_SEARCH_LIMIT_H
#define LS_SCHEDULER_ALGORITHMS_SEARCH_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

enum { LS_USUAL_SECONDS = 2 };  /* of planning */

typedef struct LsLimit {
    uint32_t effort;            /* percent of the usual number of moves */
    uint64_t work, most;        /* what was done, what may be: about ns of one core of 2023 */
    double stop;                /* seconds of processor time: neighbours do not count */
} LsLimit;

/* Processor time of this process, seconds. */
double ls_cpu_seconds(void);

/* From now on: effort 0 is 100, seconds <= 0 the usual. An effort of less than 100 has as much less
 * time. */
LsLimit ls_limit_start(uint32_t effort, double seconds);

/* The same with another effort, and over when that part of the work that is left is done. */
LsLimit ls_limit_part(const LsLimit *limit, uint32_t effort, double part);

bool ls_limit_is_over(const LsLimit *limit);

#endif
