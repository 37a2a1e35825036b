/* scheduler/report/sweep_page.h -- a sweep over budgets as one HTML page. */
#ifndef LS_SCHEDULER_REPORT_SWEEP_PAGE_H
#define LS_SCHEDULER_REPORT_SWEEP_PAGE_H

#include "scheduler/plan/budget_sweep.h"

/* Prints one HTML page: both pictures, a table, and links to the pages of the chosen points' plans,
 * which lie beside it under the names of ls_sweep_page_name. */
void ls_sweep_page(LsArena *arena, FILE *to, const LsSweep *sweep, const uint32_t *chosen,
                   uint32_t n);

/* Returns the file name of a plan's page: "auto-45.0.html". */
const char *ls_sweep_page_name(LsArena *arena, const LsSweep *sweep, uint32_t point);

#endif
