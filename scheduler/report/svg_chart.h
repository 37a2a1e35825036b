/* scheduler/report/svg_chart.h -- curves as SVG, drawn without any other program. */
#ifndef LS_SCHEDULER_REPORT_SVG_CHART_H
#define LS_SCHEDULER_REPORT_SVG_CHART_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct LsChartLine {
    const char *name;           /* in the key */
    const char *colour;         /* one of ls_page_colours: "auto" */
    const double *x, *y; uint32_t n;        /* a y that is not a number leaves a gap */
    bool dashed;
    bool dots;                  /* a dot at each point, which tells its figures */
    bool steps;                 /* y stays until the next x: what holds for a point holds above */
    bool never;                 /* shade what lies below: no plan can be there */
} LsChartLine;

typedef struct LsChart {
    const char *title, *x_label, *y_label;
    const char *x_unit, *y_unit;        /* behind the numbers: " %" */
    const LsChartLine *line; uint32_t nline;
    double wall;                /* nothing can be left of it; 0: there is none */
} LsChart;

/* An svg element; standalone: a whole file, with its style. */
void ls_chart_svg(FILE *to, const LsChart *chart, bool standalone);

/* The largest of 1, 2, 5 times a power of ten that still gives at least `least` steps in
 * `range`; 1 when the range is empty. */
double ls_chart_tick(double range, int least);

#endif
