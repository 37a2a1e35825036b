/* scheduler/algorithms/search_limit.c -- see the header. */
#include "scheduler/algorithms/search_limit.h"

#include <time.h>

double ls_cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

LsLimit ls_limit_start(uint32_t effort, double seconds)
{
    const double patience = 20;     /* a slow machine and a slow build together */
    double whole = seconds > LS_USUAL_SECONDS ? seconds : LS_USUAL_SECONDS;
    LsLimit l = {.effort = effort ? effort : 100};
    seconds = seconds > 0 ? seconds : LS_USUAL_SECONDS;
    seconds *= l.effort < 100 ? l.effort / 100.0 : 1;
    l.most = seconds < 1e9 ? (uint64_t)(1e9 * seconds) : UINT64_MAX / 2;
    l.stop = ls_cpu_seconds() + patience * whole;
    return l;
}

LsLimit ls_limit_part(const LsLimit *limit, uint32_t effort, double part)
{
    LsLimit l = *limit;
    uint64_t left = l.work < l.most ? l.most - l.work : 0;
    l.effort = effort;
    l.most = l.work + (uint64_t)(part * (double)left);
    return l;
}

bool ls_limit_is_over(const LsLimit *limit)
{
    return limit->work >= limit->most || ls_cpu_seconds() > limit->stop;
}
