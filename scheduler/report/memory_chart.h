/* scheduler/report/memory_chart.h -- memory over time as SVG: areas by owner, budget and bound as
 * lines. */
#ifndef LS_SCHEDULER_REPORT_MEMORY_CHART_H
#define LS_SCHEDULER_REPORT_MEMORY_CHART_H

#include <stdio.h>

#include "scheduler/report/memory_series.h"

/* Where the runs lie in the picture's own units: run i of n from left + i (right - left) / n. */
enum { LS_MEMORY_WIDTH = 1040, LS_MEMORY_LEFT = 72, LS_MEMORY_RIGHT = 1024 };

typedef struct LsMemoryLimits {
    int64_t budget;             /* bytes of arena; <= 0: none */
    int64_t arena;              /* that the plan takes */
    int64_t least_bound;        /* no plan has a smaller live peak; 0: nothing known */
} LsMemoryLimits;

/* An svg element with id "memory". Of long plans each column shows its largest run. */
void ls_memory_chart(FILE *to, const LsSeries *series, const LsMemoryLimits *limits);

/* The class of the owner's colour (scheduler/report/html.h), a phrase for the key, a word for tables. */
extern const char *const ls_owner_colour[LS_NOWNERS], *const ls_owner_name[LS_NOWNERS],
    *const ls_owner_short[LS_NOWNERS];

#endif
