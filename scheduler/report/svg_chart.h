/* scheduler/report/svg_chart.h -- draws curves as SVG. */
#ifndef LS_SCHEDULER_REPORT_SVG_CHART_H
#define LS_SCHEDULER_REPORT_SVG_CHART_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct LsChartLine {
    const char *name;           /* in the key */
    const char *colour;         /* one of ls_page_colours: "auto" */
    const double *x, *y; uint32_t n;        /* NaN in y leaves a gap */
    bool dashed;
    bool dots;                  /* a dot with its figures at each point */
    bool steps;                 /* y stays constant until the next x */
    bool never;                 /* shade the area below: no plan can be there */
} LsChartLine;

typedef struct LsChart {
    const char *title, *x_label, *y_label;
    const char *x_unit, *y_unit;        /* behind the numbers: " %" */
    const LsChartLine *line; uint32_t nline;
    double wall;                /* an x that no plan is left of; 0: none */
} LsChart;

/* Prints an svg element; standalone: a whole file with its style. */
void ls_chart_svg(FILE *to, const LsChart *chart, bool standalone);

/* Returns the largest of 1, 2, 5 times a power of ten that gives at least `least` steps in `range`;
 * 1 if the range is empty. */
double ls_chart_tick(double range, int least);

#endif
