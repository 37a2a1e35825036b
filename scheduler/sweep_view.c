/* scheduler/sweep_view.c -- the curves of a sweep. */
#include "scheduler/sweep.h"

#include <math.h>
#include <string.h>

#include "scheduler/chart.h"
#include "scheduler/page.h"

static bool begins(const char *s, const char *with) { return strncmp(s, with, strlen(with)) == 0; }

static const char *colour_of(const char *strategy)
{
    static const char *const family[] = {"none", "chen", "approx", "exact"};
    for (size_t k = 0; k < sizeof family / sizeof *family; k++)
        if (begins(strategy, family[k]))
            return family[k];
    return "auto";
}

/* Overhead over the arena that the plans take. */
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
    return (LsChartLine){.name = name, .colour = colour_of(name), .x = x, .y = y,
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
                         .n = sweep->npoint, .never = true};
}

void ls_sweep_svg(LsArena *arena, FILE *to, const LsSweep *sweep, bool standalone)
{
    char bytes[24];
    LsChartLine *line = ls_arena_alloc(arena, sweep->nstrategy + 1u, sizeof *line);
    uint32_t n = 0;
    line[n++] = bound_line(arena, sweep);
    for (uint32_t s = 0; s < sweep->nstrategy; s++)
        line[n++] = line_of(arena, sweep, s);
    LsChart chart = {
        .title = ls_arena_printf(arena, "%s: overhead over memory", sweep->model),
        .x_label = ls_arena_printf(arena, "arena, %% of %s", ls_page_bytes(bytes, sweep->whole)),
        .y_label = "recomputation, % of a step", .x_unit = " %", .y_unit = " %",
        .line = line, .nline = n};
    ls_chart_svg(to, &chart, standalone);
}
