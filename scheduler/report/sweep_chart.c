/* scheduler/report/sweep_chart.c -- the curves of a sweep. */
#include "scheduler/report/sweep_chart.h"

#include <math.h>
#include <string.h>

#include "scheduler/report/html.h"
#include "scheduler/report/memory_series.h"
#include "scheduler/report/svg_chart.h"
#include "scheduler/strategies/strategy_names.h"

/* Returns the curve of overhead over the plans' arenas. */
static LsChartLine line_of(LsArena *arena, const LsSweep *sweep, uint32_t s)
{
    const char *name = sweep->strategy[s];
    size_t n = strlen(name);
    double *x = ls_arena_alloc(arena, sweep->npoint, sizeof *x);
    double *y = ls_arena_alloc(arena, sweep->npoint, sizeof *y);
    for (uint32_t k = 0; k < sweep->npoint; k++) {
        const LsSweepCell *c = &sweep->point[k].cell[s];
        x[k] = 100.0 * (double)c->plan.arena / (double)(sweep->whole > 0 ? sweep->whole : 1);
        y[k] = c->feasible ? 100 * ls_plan_overhead(&c->plan) : NAN;
    }
    return (LsChartLine){.name = name, .colour = ls_strategy_find(name)->name, .x = x, .y = y,
                         .n = sweep->npoint, .dots = true, .steps = true,
                         .dashed = n > 3 && strcmp(name + n - 3, "-mc") == 0};
}

static LsChartLine bound_line(LsArena *arena, const LsSweep *sweep)
{
    double *x = ls_arena_alloc(arena, sweep->npoint, sizeof *x);
    double *y = ls_arena_alloc(arena, sweep->npoint, sizeof *y);
    for (uint32_t k = 0; k < sweep->npoint; k++) {
        x[k] = ls_sweep_percent(sweep, &sweep->point[k]);
        y[k] = 100 * sweep->point[k].bound;
    }
    return (LsChartLine){.name = "lower bound", .colour = "bound", .x = x, .y = y,
                         .n = sweep->npoint, .dashed = true, .never = true};
}

/* Returns the curve of measured overhead of the last strategy's programs. */
static LsChartLine measured_line(LsArena *arena, const LsSweep *sweep)
{
    uint32_t s = sweep->nstrategy - 1, n = 0;
    double *x = ls_arena_alloc(arena, sweep->npoint, sizeof *x);
    double *y = ls_arena_alloc(arena, sweep->npoint, sizeof *y);
    for (uint32_t k = 0; k < sweep->npoint; k++) {
        const LsSweepCell *c = &sweep->point[k].cell[s];
        if (c->run.measured_ns <= 0)
            continue;
        x[n] = 100.0 * (double)c->plan.arena / (double)(sweep->whole > 0 ? sweep->whole : 1);
        y[n++] = 100 * ls_sweep_longer(sweep, &c->run);
    }
    return (LsChartLine){.name = ls_arena_printf(arena, "%s, measured", sweep->strategy[s]),
                         .colour = "again", .x = x, .y = y, .n = n, .dots = true};
}

void ls_sweep_svg(LsArena *arena, FILE *to, const LsSweep *sweep, bool standalone)
{
    char bytes[24];
    LsChartLine *line = ls_arena_alloc(arena, sweep->nstrategy + 2u, sizeof *line);
    uint32_t n = 0;
    line[n++] = bound_line(arena, sweep);
    for (uint32_t s = 0; s < sweep->nstrategy; s++)
        line[n++] = line_of(arena, sweep, s);
    if (sweep->plain.measured_ns > 0)
        line[n++] = measured_line(arena, sweep);
    LsChart chart = {
        .title = standalone ? ls_arena_printf(arena, "%s: overhead over memory", sweep->model) : "",
        .x_label = ls_arena_printf(arena, "arena, %% of %s", ls_page_bytes(bytes, sweep->whole)),
        .y_label = "recomputation, % of a step", .x_unit = " %", .y_unit = " %",
        .line = line, .nline = n,
        .wall = sweep->whole > 0 ? 100.0 * (double)sweep->least_bound / (double)sweep->whole : 0};
    ls_chart_svg(to, &chart, standalone);
}

uint32_t ls_sweep_choose(const LsSweep *sweep, uint32_t *chosen, uint32_t most)
{
    uint32_t s = sweep->nstrategy - 1, first = sweep->npoint, n = 0;
    for (uint32_t k = sweep->npoint; k-- > 0; )
        if (sweep->point[k].cell[s].feasible)
            first = k;
    uint32_t span = sweep->npoint - first;
    for (uint32_t i = 0; span > 0 && i < most; i++) {
        uint32_t k = first + (most > 1 ? (span - 1) * i / (most - 1) : 0);
        const LsSweepCell *c = &sweep->point[k].cell[s];
        bool old = n > 0 && strcmp(sweep->point[chosen[n - 1]].cell[s].report->hash,
                                   c->report->hash) == 0;
        if (c->feasible && !old)
            chosen[n++] = k;
    }
    return n;
}

/* Returns the curve of live bytes over predicted time; each column shows its largest run. */
static LsChartLine memory_line(LsArena *arena, const LsSweep *sweep, uint32_t point, double unit)
{
    enum { COLUMNS = 400 };
    const LsSweepCell *c = &sweep->point[point].cell[sweep->nstrategy - 1];
    LsSeries *s = ls_series_new(arena, sweep->dag, &c->plan);
    uint32_t n = s->nrun < COLUMNS ? s->nrun : COLUMNS;
    double *x = ls_arena_alloc(arena, n + 1u, sizeof *x);
    double *y = ls_arena_alloc(arena, n + 1u, sizeof *y);
    double base = sweep->base_cost > 0 ? sweep->base_cost / 100 : 1;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t from = (uint64_t)i * s->nrun / n, to = (uint64_t)(i + 1) * s->nrun / n;
        x[i] = s->run[from].start / base;
        for (uint64_t k = from; k < to; k++)
            y[i] = fmax(y[i], (double)s->run[k].total / unit);
    }
    return (LsChartLine){.name = ls_arena_printf(arena, "%.0f %% of the arena",
                                                 ls_sweep_percent(sweep, &sweep->point[point])),
                         .x = x, .y = y, .n = n, .steps = true};
}

void ls_sweep_memory_svg(LsArena *arena, FILE *to, const LsSweep *sweep, const uint32_t *chosen,
                         uint32_t n, bool standalone)
{
    static const char *const colour[] = {"none", "auto", "approx", "exact", "again", "bound"};
    LsChartLine *line = ls_arena_alloc(arena, n + 1u, sizeof *line);
    const char *name = sweep->strategy[sweep->nstrategy - 1];
    bool large = sweep->whole >= INT64_C(1) << 31;
    double unit = large ? 1073741824.0 : 1048576.0;
    for (uint32_t k = 0; k < n; k++) {
        line[k] = memory_line(arena, sweep, chosen[n - 1 - k], unit);
        line[k].colour = colour[k % (sizeof colour / sizeof *colour)];
    }
    LsChart chart = {
        .title = standalone ? ls_arena_printf(arena, "%s: memory over one step, strategy %s",
                                              sweep->model, name) : "",
        .x_label = "predicted time, % of a step without recomputation", .y_label = "live",
        .x_unit = " %", .y_unit = large ? " GiB" : " MiB", .line = line, .nline = n};
    ls_chart_svg(to, &chart, standalone);
}
