/* scheduler/report/memory_timeline.c -- see memory_timeline.h. */
#include "scheduler/report/memory_timeline.h"

#include <inttypes.h>
#include <math.h>

#include "scheduler/report/html.h"
#include "scheduler/report/memory_series.h"
#include "scheduler/report/svg_chart.h"

static const double MIB = 1 << 20;
static const double FAR = 1.25;         /* a budget above so many times the most bytes of a plan is
                                         * far */

void ls_timeline_table(FILE *to, const LsDag *g, const LsPlan *plan)
{
    LsArena *arena = ls_arena_new();
    const LsSeries *s = ls_series_new(arena, g, plan);
    fprintf(to, "# run\tstart\tbytes\tagain\tname\n");
    for (uint32_t r = 0; r < s->nrun; r++)
        fprintf(to, "%" PRIu32 "\t%.0f\t%" PRId64 "\t%d\t%s\n", r, s->run[r].start,
                s->run[r].total, s->run[r].again, g->node[s->run[r].node].name);
    ls_arena_free(arena);
}

/* Returns the curve of live bytes from the start of the first run to the end of the last;
 * only_again: with gaps except at recomputations. */
static LsChartLine curve(LsArena *arena, const LsSeries *s, double end, bool only_again)
{
    double *x = ls_arena_alloc(arena, s->nrun + 1u, sizeof *x),
           *y = ls_arena_alloc(arena, s->nrun + 1u, sizeof *y);
    for (uint32_t r = 0; r <= s->nrun; r++) {
        const LsSeriesRun *run = s->nrun > 0 ? &s->run[r < s->nrun ? r : s->nrun - 1] : NULL;
        bool shown = run != NULL && (!only_again || run->again || (r > 0 && s->run[r - 1].again));
        x[r] = (r < s->nrun ? run->start : end) * 1e-6;
        y[r] = shown ? (double)run->total / MIB : NAN;
    }
    return (LsChartLine){.x = x, .y = y, .n = s->nrun + 1u, .steps = true};
}

static LsChartLine named(LsChartLine line, const char *name, const char *colour)
{
    line.name = name;
    line.colour = colour;
    return line;
}

static double highest(const LsChartLine *line, uint32_t n)
{
    double most = 0;
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < line[k].n; i++)
            most = fmax(most, line[k].y[i]);    /* fmax ignores gaps */
    return most;
}

void ls_timeline_svg(FILE *to, const LsDag *g, const LsPlan *plan, const LsTimelineFacts *facts)
{
    LsArena *arena = ls_arena_new();
    LsChartLine line[4];
    uint32_t n = 0;
    const LsSeries *s = ls_series_new(arena, g, plan);
    if (facts->none != NULL)
        line[n++] =
            named(curve(arena, ls_series_new(arena, g, facts->none), facts->none->cost, false),
                  "without a budget", "none");
    line[n++] = named(curve(arena, s, plan->cost, false), "this plan", "auto");
    line[n++] = named(curve(arena, s, plan->cost, true), "run again", "again");
    double ends[] = {0, fmax(plan->cost, facts->none != NULL ? facts->none->cost : 0) * 1e-6};
    /* A budget far above the plan would leave the plan a line at the bottom: it stands at the upper
     * edge, with its value. */
    const double budget = (double)facts->budget / MIB, edge = FAR * highest(line, n),
                 level = budget > edge ? edge : budget;
    double levels[] = {level, level};
    char text[24];
    if (facts->budget > 0)
        line[n++] = (LsChartLine){
            .name = budget <= edge
                        ? "budget of the arena"
                        : ls_arena_printf(arena, "budget of the arena: %s, above this picture",
                                          ls_page_bytes(text, facts->budget)),
            .colour = "bound",
            .x = ends,
            .y = levels,
            .n = 2,
            .dashed = true};
    ls_chart_svg(to,
                 &(LsChart){.title = facts->title,
                            .x_label = facts->of != NULL ? ls_arena_printf(
                                           arena, "predicted time, ms (%s)", facts->of)
                                                         : "predicted time, ms",
                            .y_label = "MiB live",
                            .x_unit = "",
                            .y_unit = "",
                            .line = line,
                            .nline = n},
                 true);
    ls_arena_free(arena);
}
