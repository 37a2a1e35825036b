/* scheduler/report/sweep_page.c -- the page of a sweep. */
#include "scheduler/report/sweep_page.h"

#include <math.h>

#include "scheduler/report/html.h"
#include "scheduler/report/sweep_chart.h"

const char *ls_sweep_page_name(LsArena *arena, const LsSweep *sweep, uint32_t point)
{
    return ls_arena_printf(arena, "%s-%.1f.html", sweep->strategy[sweep->nstrategy - 1],
                           ls_sweep_percent(sweep, &sweep->point[point]));
}

static void put_head(FILE *to, const LsSweep *sweep)
{
    fprintf(to, "<tr><th>budget</th><th>bytes</th>");
    for (uint32_t s = 0; s < sweep->nstrategy; s++)
        fprintf(to, "<th>%s</th>", sweep->strategy[s]);
    fprintf(to, "<th>lower bound</th><th>gap of %s</th>",
            sweep->strategy[sweep->nstrategy - 1]);
    fprintf(to, "</tr>\n");
}

static double least(const LsSweep *sweep, const LsSweepPoint *p)
{
    double best = 1e300;
    for (uint32_t s = 0; s < sweep->nstrategy; s++)
        if (p->cell[s].feasible && ls_plan_overhead(&p->cell[s].plan) < best)
            best = ls_plan_overhead(&p->cell[s].plan);
    return best;
}

static void put_row(LsArena *arena, FILE *to, const LsSweep *sweep, uint32_t k, bool link)
{
    const LsSweepPoint *p = &sweep->point[k];
    const LsSweepCell *last = &p->cell[sweep->nstrategy - 1];
    char text[24];
    double best = least(sweep, p);
    fprintf(to, "<tr><td>");
    if (link)
        fprintf(to, "<a href=\"%s\">", ls_sweep_page_name(arena, sweep, k));
    fprintf(to, "%.1f %%%s</td><td>%s</td>", ls_sweep_percent(sweep, p), link ? "</a>" : "",
            ls_page_bytes(text, p->budget));
    for (uint32_t s = 0; s < sweep->nstrategy; s++) {
        const LsSweepCell *c = &p->cell[s];
        double overhead = ls_plan_overhead(&c->plan);
        if (c->feasible)
            fprintf(to, overhead <= best ? "<td><b>%.2f %%</b></td>" : "<td>%.2f %%</td>",
                    ls_sweep_hundred(overhead));
        else
            fprintf(to, "<td class=\"soft\">&ndash;</td>");
    }
    if (isinf(p->bound))
        fprintf(to, "<td>impossible</td>");
    else
        fprintf(to, "<td>%.2f %%</td>", ls_sweep_hundred(p->bound));
    if (last->feasible)
        fprintf(to, "<td>%.2f %%</td>", 100 * ls_sweep_gap(sweep, p, last));
    else
        fprintf(to, "<td></td>");
    fprintf(to, "</tr>\n");
}

static void put_run(FILE *to, const LsSweep *sweep, const char *budget, const char *strategy,
                    const LsSweepRun *run)
{
    char text[24];
    fprintf(to, "<tr><td>%s</td><td>%s</td><td>%.3f ms</td><td>%.3f ms</td><td>%+.1f %%</td>"
            "<td>%.2f %%</td><td>%s</td></tr>\n", budget, strategy, 1e-6 * run->predicted_ns,
            1e-6 * run->measured_ns, 100 * (run->predicted_ns / run->measured_ns - 1),
            100 * ls_sweep_longer(sweep, run), ls_page_bytes(text, run->touched));
}

/* Prints the measurements of programs built from the plans. */
static void put_runs(LsArena *arena, FILE *to, const LsSweep *sweep)
{
    fprintf(to, "<h2>Measured</h2>\n<div class=\"scroll\"><table>\n<tr><th>budget</th>"
            "<th>strategy</th><th>predicted step</th><th>measured step</th><th>off by</th>"
            "<th>longer than without recomputation</th><th>arena touched</th></tr>\n");
    put_run(to, sweep, "&ndash;", "nothing recomputed", &sweep->plain);
    for (uint32_t k = sweep->npoint; k-- > 0; )
        for (uint32_t s = 0; s < sweep->nstrategy; s++) {
            const LsSweepPoint *p = &sweep->point[k];
            if (p->cell[s].run.measured_ns > 0)
                put_run(to, sweep,
                        ls_arena_printf(arena, "%.1f %%", ls_sweep_percent(sweep, p)),
                        sweep->strategy[s], &p->cell[s].run);
        }
    fprintf(to, "</table></div>\n<p class=\"soft\">Programs built from these plans, run with %d "
            "thread%s: the median step, and the arena up to the last byte written. Predicted for ",
            sweep->threads, sweep->threads == 1 ? "" : "s");
    ls_page_text(to, sweep->predicted_of != NULL ? sweep->predicted_of : "the costs of the plans");
    fprintf(to, ".</p>\n");
}

void ls_sweep_page(LsArena *arena, FILE *to, const LsSweep *sweep, const uint32_t *chosen,
                   uint32_t n)
{
    char text[24];
    ls_page_head(to, ls_arena_printf(arena, "%s: sweep", sweep->model));
    fprintf(to, "<h1>");
    ls_page_text(to, sweep->model);
    fprintf(to, "</h1>\n<p class=\"soft\">%u budgets, %u strategies, %u nodes. 100 %% are %s of "
            "arena.</p>\n<h2>Overhead over memory</h2>\n", sweep->npoint, sweep->nstrategy,
            sweep->dag->nnode, ls_page_bytes(text, sweep->whole));
    ls_sweep_svg(arena, to, sweep, false);
    fprintf(to, "<p class=\"soft\">No plan, by whatever method, lies below the lower bound.</p>\n"
            "<h2>Recomputation, %% of a step</h2>\n<div class=\"scroll\"><table>\n");
    put_head(to, sweep);
    for (uint32_t k = sweep->npoint; k-- > 0; ) {
        bool link = false;
        for (uint32_t i = 0; i < n; i++)
            link = link || chosen[i] == k;
        put_row(arena, to, sweep, k, link);
    }
    fprintf(to, "</table></div>\n<p class=\"soft\">Bold: the best at that budget. A linked budget "
            "leads to the page of its plan.</p>\n");
    if (sweep->plain.measured_ns > 0)
        put_runs(arena, to, sweep);
    fprintf(to, "<h2>Memory over time, strategy %s</h2>\n",
            sweep->strategy[sweep->nstrategy - 1]);
    ls_sweep_memory_svg(arena, to, sweep, chosen, n, false);
    fprintf(to, "</body>\n</html>\n");
}
