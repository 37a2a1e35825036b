/* scheduler/report/sweep_chart.h -- pictures of a sweep over budgets, and the points worth one of
 * their own. */
#ifndef LS_SCHEDULER_REPORT_SWEEP_CHART_H
#define LS_SCHEDULER_REPORT_SWEEP_CHART_H

#include "scheduler/plan/budget_sweep.h"

/* Points worth a closer look by the last strategy: the ends and others between, of different plans,
 * by rising budget. chosen: room for `most`; their number. */
uint32_t ls_sweep_choose(const LsSweep *sweep, uint32_t *chosen, uint32_t most);

/* Overhead over arena, a curve per strategy and one of the bound, as SVG (scheduler/report/svg_chart.h). */
void ls_sweep_svg(LsArena *arena, FILE *to, const LsSweep *sweep, bool standalone);

/* Memory over predicted time of the last strategy's plans at those points. */
void ls_sweep_memory_svg(LsArena *arena, FILE *to, const LsSweep *sweep, const uint32_t *chosen,
                         uint32_t n, bool standalone);

#endif
