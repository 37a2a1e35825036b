/* scheduler/report/memory_chart.c -- stacked areas of the bytes of each owner. */
#include "scheduler/report/memory_chart.h"

#include "scheduler/report/html.h"
#include "scheduler/report/svg_chart.h"

enum { HEIGHT = 380, TOP = 18, BOTTOM = 36, COLUMNS = 800 };

const char *const ls_owner_colour[LS_NOWNERS] = {"kept", "passing", "again", "gradient",
                                                 "workspace"};
const char *const ls_owner_name[LS_NOWNERS] = {
    "activations kept for the backward pass", "activations on their way", "recomputed",
    "gradients", "workspace"};
const char *const ls_owner_short[LS_NOWNERS] = {"kept", "on its way", "recomputed", "gradient",
                                                "workspace"};

/* From the bottom up. */
static const LsOwner stack[LS_NOWNERS] = {LS_OWNER_KEPT, LS_OWNER_AGAIN, LS_OWNER_PASSING,
                                          LS_OWNER_GRADIENT, LS_OWNER_WORKSPACE};

typedef struct Area {
    const LsSeries *s;
    uint32_t columns;
    double top;                 /* bytes at the upper end */
} Area;

static double place_x(const Area *a, double column)
{
    return LS_MEMORY_LEFT + column / a->columns * (LS_MEMORY_RIGHT - LS_MEMORY_LEFT);
}

static double place_y(const Area *a, double bytes)
{
    return HEIGHT - BOTTOM - bytes / a->top * (HEIGHT - TOP - BOTTOM);
}

/* Returns the run that represents a column: the first of its largest runs. */
static const LsSeriesRun *run_of(const Area *a, uint32_t column)
{
    uint64_t from = (uint64_t)column * a->s->nrun / a->columns;
    uint64_t to = (uint64_t)(column + 1) * a->s->nrun / a->columns;
    const LsSeriesRun *best = &a->s->run[from];
    for (uint64_t k = from + 1; k < to; k++)
        if (a->s->run[k].total > best->total)
            best = &a->s->run[k];
    return best;
}

/* Returns the bytes of the lowest `levels` owners of the stack. */
static int64_t level(const LsSeriesRun *r, int levels)
{
    int64_t sum = 0;
    for (int k = 0; k < levels; k++)
        sum += r->bytes[stack[k]];
    return sum;
}

static void put_area(FILE *to, const Area *a, int k)
{
    fprintf(to, "<path class=\"f-%s\" d=\"M%.1f %.1f", ls_owner_colour[stack[k]], place_x(a, 0),
            place_y(a, 0));
    for (uint32_t c = 0; c < a->columns; c++)
        fprintf(to, "V%.1fH%.1f", place_y(a, (double)level(run_of(a, c), k + 1)),
                place_x(a, c + 1));
    for (uint32_t c = a->columns; c-- > 0; )
        fprintf(to, "V%.1fH%.1f", place_y(a, (double)level(run_of(a, c), k)), place_x(a, c));
    fprintf(to, "Z\"/>\n");
}

static void put_axes(FILE *to, const Area *a)
{
    static const char *const name[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double unit = 1;
    int u = 0;
    for (; a->top / unit >= 1024 && u < 4; u++)
        unit *= 1024;
    double step = ls_chart_tick(a->top / unit, 4);
    for (double y = 0; y * unit <= a->top; y += step)
        fprintf(to, "<line class=\"s-line\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                    "<text class=\"f-soft\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g %s"
                    "</text>\n",
                LS_MEMORY_LEFT, LS_MEMORY_RIGHT, place_y(a, y * unit), place_y(a, y * unit),
                LS_MEMORY_LEFT - 8, place_y(a, y * unit) + 4, y, name[u]);
}

/* Draws a line across with its name at the left, where the areas are low. */
static void put_limit(FILE *to, const Area *a, int64_t bytes, const char *colour, const char *name)
{
    char text[24];
    if (bytes <= 0 || (double)bytes > a->top)
        return;
    double y = place_y(a, (double)bytes);
    fprintf(to, "<line class=\"dash s-%s\" stroke-width=\"1.5\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" "
                "y2=\"%.1f\"/><text class=\"halo f-%s\" x=\"%d\" y=\"%.1f\">%s %s</text>\n",
            colour, LS_MEMORY_LEFT, LS_MEMORY_RIGHT, y, y, colour, LS_MEMORY_LEFT + 6, y - 5, name,
            ls_page_bytes(text, bytes));
}

/* Draws the turn from forward to backward, the peak, and the cursor that the page's script
 * moves. */
static void put_marks(FILE *to, const Area *a)
{
    const LsSeries *s = a->s;
    double scale = (double)a->columns / s->nrun;
    double turn = place_x(a, s->turn * scale), peak = place_x(a, (s->peak + 0.5) * scale);
    bool late = s->peak > s->nrun / 2;
    char text[24];
    fprintf(to, "<line class=\"turn s-soft\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>\n"
                "<text class=\"f-soft\" x=\"%d\" y=\"%d\">forward</text>"
                "<text class=\"f-soft\" x=\"%.1f\" y=\"%d\">backward</text>\n",
            turn, turn, TOP, HEIGHT - BOTTOM, LS_MEMORY_LEFT, HEIGHT - 14, turn + 4, HEIGHT - 14);
    double y = place_y(a, (double)s->run[s->peak].total);
    fprintf(to, "<circle class=\"f-ink\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"/>"
                "<text class=\"halo f-ink\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">peak %s"
                "</text>\n",
            peak, y, peak + (late ? -9 : 9), y - 5, late ? "end" : "start",
            ls_page_bytes(text, s->run[s->peak].total));
    fprintf(to, "<line id=\"cursor\" class=\"s-ink\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>"
                "\n", peak, peak, TOP, HEIGHT - BOTTOM);
}

void ls_memory_chart(FILE *to, const LsSeries *s, const LsMemoryLimits *limits)
{
    Area a = {s, s->nrun < COLUMNS ? s->nrun : COLUMNS, 1};
    double most = s->nrun > 0 ? (double)s->run[s->peak].total : 0;
    double limit = (double)(limits->budget > 0 ? limits->budget : limits->arena);
    a.top = 1.12 * (limit > most && limit < 2 * most ? limit : most);
    a.top = a.top > 0 ? a.top : 1;
    fprintf(to, "<svg id=\"memory\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
                "role=\"img\" aria-label=\"memory over the runs of one training step\">\n",
            LS_MEMORY_WIDTH, HEIGHT);
    put_axes(to, &a);
    for (int k = 0; s->nrun > 0 && k < LS_NOWNERS; k++)
        put_area(to, &a, k);
    put_limit(to, &a, limits->least_bound, "soft", "no plan needs less than");
    put_limit(to, &a, limits->budget, "bound", "budget");
    if (s->nrun > 0)
        put_marks(to, &a);
    fprintf(to, "</svg>\n");
}
