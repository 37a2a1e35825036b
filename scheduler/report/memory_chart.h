/* scheduler/report/memory_chart.h -- memory over time as SVG: areas by owner, lines for budget and
 * bound. */
#ifndef LS_SCHEDULER_REPORT_MEMORY_CHART_H
#define LS_SCHEDULER_REPORT_MEMORY_CHART_H

#include <stdio.h>

#include "scheduler/report/memory_series.h"

/* Place of the runs in the picture's units: run i of n starts at left + i (right - left) / n. */
enum { LS_MEMORY_WIDTH = 1040, LS_MEMORY_LEFT = 72, LS_MEMORY_RIGHT = 1024 };

typedef struct LsMemoryLimits {
    int64_t budget;             /* bytes of arena; <= 0: none */
    int64_t arena;              /* bytes of arena of the plan */
    int64_t least_bound;        /* lower bound on any plan's live peak, bytes; 0: unknown */
} LsMemoryLimits;

/* Prints an svg element with id "memory". In long plans each column shows its largest run. */
void ls_memory_chart(FILE *to, const LsSeries *series, const LsMemoryLimits *limits);

/* The class of the owner's colour (scheduler/report/html.h), a phrase for the key, a word for
 * tables. */
extern const char *const ls_owner_colour[LS_NOWNERS], *const ls_owner_name[LS_NOWNERS],
    *const ls_owner_short[LS_NOWNERS];

#endif
