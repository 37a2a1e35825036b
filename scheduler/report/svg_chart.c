/* scheduler/report/svg_chart.c -- axes, curves, key. */
#include "scheduler/report/svg_chart.h"

#include <math.h>

#include "scheduler/report/html.h"

enum { WIDTH = 960, HEIGHT = 440, LEFT = 64, RIGHT = 20, TOP = 40, BOTTOM = 84 };

typedef struct Frame { double x0, x1, y0, y1; } Frame;  /* y0 is 0 or less */

double ls_chart_tick(double range, int least)
{
    if (!(range > 0))
        return 1;
    double unit = pow(10, floor(log10(range / least)));
    double parts = range / least / unit;
    return parts >= 5 ? 5 * unit : parts >= 2 ? 2 * unit : unit;
}

static double place_x(const Frame *f, double x)
{
    return LEFT + (x - f->x0) / (f->x1 - f->x0) * (WIDTH - LEFT - RIGHT);
}

static double place_y(const Frame *f, double y)
{
    return HEIGHT - BOTTOM - (y - f->y0) / (f->y1 - f->y0) * (HEIGHT - TOP - BOTTOM);
}

static Frame fit(const LsChart *c)
{
    Frame f = {INFINITY, -INFINITY, 0, 0};
    for (uint32_t k = 0; k < c->nline; k++)
        for (uint32_t i = 0; i < c->line[k].n; i++)
            if (isfinite(c->line[k].y[i])) {
                f.x0 = fmin(f.x0, c->line[k].x[i]);
                f.x1 = fmax(f.x1, c->line[k].x[i]);
                f.y0 = fmin(f.y0, c->line[k].y[i]);
                f.y1 = fmax(f.y1, c->line[k].y[i]);
            }
    if (!(f.x1 > f.x0))
        f = (Frame){isfinite(f.x0) ? f.x0 - 1 : 0, isfinite(f.x0) ? f.x0 + 1 : 1, f.y0, f.y1};
    double margin = 0.02 * (f.x1 - f.x0);
    f.x0 -= margin;
    f.x1 += margin;
    f.y1 = f.y1 > 0 ? 1.06 * f.y1 : 1;
    return f;
}

static void put_axes(FILE *to, const LsChart *c, const Frame *f)
{
    double step = ls_chart_tick(f->y1 - f->y0, 4);
    for (double y = ceil(f->y0 / step) * step + 0.0; y <= f->y1; y += step)
        fprintf(to, "<line class=\"s-line\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                    "<text class=\"f-soft\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.4g%s"
                    "</text>\n",
                LEFT, WIDTH - RIGHT, place_y(f, y), place_y(f, y), LEFT - 8, place_y(f, y) + 4, y,
                c->y_unit);
    step = ls_chart_tick(f->x1 - f->x0, 6);
    for (double x = ceil(f->x0 / step) * step + 0.0; x <= f->x1; x += step)
        fprintf(to, "<line class=\"s-line\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>"
                    "<text class=\"f-soft\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.4g%s"
                    "</text>\n",
                place_x(f, x), place_x(f, x), HEIGHT - BOTTOM, HEIGHT - BOTTOM + 5, place_x(f, x),
                HEIGHT - BOTTOM + 19, x, c->x_unit);
    fprintf(to, "<text class=\"f-ink\" x=\"%d\" y=\"20\" font-weight=\"600\" font-size=\"14\">",
            LEFT);
    ls_page_text(to, c->title);
    fprintf(to, "</text>\n<text class=\"f-soft\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 38);
    ls_page_text(to, c->x_label);
    fprintf(to, "</text>\n<text class=\"f-soft\" transform=\"translate(14 %d) rotate(-90)\" "
                "text-anchor=\"middle\">", (TOP + HEIGHT - BOTTOM) / 2);
    ls_page_text(to, c->y_label);
    fprintf(to, "</text>\n");
}

static void put_shade(FILE *to, const LsChartLine *l, const Frame *f)
{
    bool open = false;
    for (uint32_t i = 0; i < l->n; i++) {
        if (!isfinite(l->y[i]))
            continue;
        if (!open)
            fprintf(to, "<path class=\"f-bound never\" d=\"M%.1f %.1f", place_x(f, l->x[i]),
                    place_y(f, f->y0));
        open = true;
        fprintf(to, "L%.1f %.1f", place_x(f, l->x[i]), place_y(f, l->y[i]));
    }
    if (open)
        fprintf(to, "V%.1fZ\"/>\n", place_y(f, f->y0));
}

/* Shades the area left of the wall. */
static void put_wall(FILE *to, const LsChart *c, const Frame *f)
{
    if (c->wall > 0 && c->wall > f->x0)
        fprintf(to, "<rect class=\"f-bound never\" x=\"%d\" y=\"%d\" width=\"%.1f\" "
                    "height=\"%d\"/>\n", LEFT, TOP, place_x(f, fmin(c->wall, f->x1)) - LEFT,
                HEIGHT - TOP - BOTTOM);
}

static void put_line(FILE *to, const LsChart *c, const LsChartLine *l, const Frame *f)
{
    bool pen = false;
    fprintf(to, "<path class=\"curve%s s-%s\" d=\"M0 0",
            l->dashed ? " dash" : "", l->colour);
    for (uint32_t i = 0; i < l->n; i++) {
        bool there = isfinite(l->y[i]);
        if (there && pen && l->steps)
            fprintf(to, "H%.1fV%.1f", place_x(f, l->x[i]), place_y(f, l->y[i]));
        else if (there)
            fprintf(to, "%c%.1f %.1f", pen ? 'L' : 'M', place_x(f, l->x[i]), place_y(f, l->y[i]));
        pen = there;
    }
    fprintf(to, "\"/>\n");
    for (uint32_t i = 0; l->dots && i < l->n; i++) {
        if (!isfinite(l->y[i]))
            continue;
        fprintf(to, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" class=\"f-%s\"><title>",
                place_x(f, l->x[i]), place_y(f, l->y[i]), l->colour);
        ls_page_text(to, l->name);
        fprintf(to, ": %.4g%s at %.4g%s</title></circle>\n", l->y[i], c->y_unit, l->x[i],
                c->x_unit);
    }
}

static void put_key(FILE *to, const LsChart *c)
{
    double room = (double)(WIDTH - LEFT - RIGHT) / (c->nline > 0 ? c->nline : 1);
    for (uint32_t k = 0; k < c->nline; k++) {
        double x = LEFT + room * k;
        fprintf(to, "<line class=\"curve%s s-%s\" x1=\"%.1f\" x2=\"%.1f\" "
                    "y1=\"%d\" y2=\"%d\"/><text class=\"f-ink\" x=\"%.1f\" y=\"%d\">",
                c->line[k].dashed ? " dash" : "", c->line[k].colour, x, x + 24, HEIGHT - 18,
                HEIGHT - 18, x + 30, HEIGHT - 14);
        ls_page_text(to, c->line[k].name);
        fprintf(to, "</text>\n");
    }
}

void ls_chart_svg(FILE *to, const LsChart *c, bool standalone)
{
    Frame f = fit(c);
    if (standalone)
        fprintf(to, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    int cut = c->title[0] == '\0' ? TOP - 12 : 0;      /* no room for an empty title */
    fprintf(to, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 %d %d %d\" role=\"img\">\n",
            cut, WIDTH, HEIGHT - cut);
    if (standalone) {
        fprintf(to, "<style>\n");
        ls_page_colours(to);
        fprintf(to, "</style>\n<rect class=\"f-page\" width=\"%d\" height=\"%d\"/>\n", WIDTH,
                HEIGHT);
    }
    put_axes(to, c, &f);
    put_wall(to, c, &f);
    for (uint32_t k = 0; k < c->nline; k++)
        if (c->line[k].never)
            put_shade(to, &c->line[k], &f);
    for (uint32_t k = 0; k < c->nline; k++)
        put_line(to, c, &c->line[k], &f);
    put_key(to, c);
    fprintf(to, "</svg>\n");
}
