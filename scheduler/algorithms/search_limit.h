/* scheduler/algorithms/search_limit.h -- limits a search. The limit counts moves and work, which
 * are the same on every machine and in every build, so the plan found is the same too. The clock
 * cuts a search only when it takes many times as long as its work, and many times the usual
 * seconds: for short searches the preparation costs more than the moves. */
#ifndef LS_SCHEDULER_ALGORITHMS_SEARCH_LIMIT_H
#define LS_SCHEDULER_ALGORITHMS_SEARCH_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

enum { LS_USUAL_SECONDS = 2 };  /* of planning */

typedef struct LsLimit {
    uint32_t effort;            /* percent of the usual number of moves */
    uint64_t work, most;        /* work done and allowed: about ns of one core of 2023 */
    double stop;                /* seconds of processor time, so other processes do not count */
} LsLimit;

/* Returns the processor time of this process, seconds. */
double ls_cpu_seconds(void);

/* Starts a limit now. effort 0 means 100; seconds <= 0 means the usual. An effort below 100 reduces
 * the time in proportion. */
LsLimit ls_limit_start(uint32_t effort, double seconds);

/* Returns the limit with another effort that ends after the fraction `part` of the work left. */
LsLimit ls_limit_part(const LsLimit *limit, uint32_t effort, double part);

bool ls_limit_is_over(const LsLimit *limit);

#endif
