/* scheduler/limit.h -- how long a search may go on. Its length is counted in moves, which are the
 * same on every machine; the clock can only cut it. */
#ifndef LS_SCHEDULER_LIMIT_H
#define LS_SCHEDULER_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

typedef struct LsLimit {
    uint32_t effort;            /* percent of the usual number of moves */
    double until;               /* seconds of processor time: neighbours do not count */
} LsLimit;

/* Processor time of this process, seconds. */
double ls_cpu_seconds(void);

/* From now on: effort 0 is 100, seconds <= 0 is 2. */
LsLimit ls_limit_start(uint32_t effort, double seconds);

bool ls_limit_is_over(const LsLimit *limit);

#endif
