/* scheduler/limit.c -- see the header. */
#include "scheduler/limit.h"

#include <time.h>

double ls_cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

LsLimit ls_limit_start(uint32_t effort, double seconds)
{
    return (LsLimit){effort ? effort : 100, ls_cpu_seconds() + (seconds > 0 ? seconds : 2)};
}

bool ls_limit_is_over(const LsLimit *limit)
{
    return ls_cpu_seconds() > limit->until;
}
