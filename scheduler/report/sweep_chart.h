/* scheduler/report/sweep_chart.h -- pictures of a sweep over budgets, and the points that get a
 * picture of their own. */
#ifndef LS_SCHEDULER_REPORT_SWEEP_CHART_H
#define LS_SCHEDULER_REPORT_SWEEP_CHART_H

#include "scheduler/plan/budget_sweep.h"

/* Chooses points of the last strategy for a closer look: the ends and some between, with different
 * plans, by rising budget. chosen: room for `most`. Returns their number. */
uint32_t ls_sweep_choose(const LsSweep *sweep, uint32_t *chosen, uint32_t most);

/* Prints overhead over arena as SVG (scheduler/report/svg_chart.h): a curve per strategy and a
 * curve of the bound. */
void ls_sweep_svg(LsArena *arena, FILE *to, const LsSweep *sweep, bool standalone);

/* Prints memory over predicted time of the last strategy's plans at those points. */
void ls_sweep_memory_svg(LsArena *arena, FILE *to, const LsSweep *sweep, const uint32_t *chosen,
                         uint32_t n, bool standalone);

#endif
