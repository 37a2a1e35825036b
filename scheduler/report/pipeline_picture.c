/* scheduler/report/pipeline_picture.c -- see the header. */
#include "scheduler/report/pipeline_picture.h"

#include <inttypes.h>
#include <math.h>

#include "scheduler/report/html.h"
#include "scheduler/report/svg_chart.h"

enum {
    WIDTH = 960,
    LEFT = 64,
    RIGHT = 20,
    TOP = 40,
    ROW = 34,
    BAR = 26,
    AXIS = 44,
    KEY = 28,
    LETTER = 7
};

static const char *const colour[LS_PHASES] = {"exact", "auto", "approx"};

static const char *name_of(const LsPipelineTimes *t, uint8_t phase)
{
    static const char *const name[LS_PHASES] = {"F", "B", "W"};
    return t->joint && phase == LS_PHASE_B ? "BW" : name[phase];
}

void ls_pipeline_table(FILE *to, const LsPipelineTimes *t)
{
    fprintf(to, "# rank\tphase\tmicrobatch\tbegin\tend\n");
    for (uint32_t r = 0; r < t->k; r++)
        for (uint32_t k = 0; k < t->rank[r].flow->nturn; k++) {
            const LsPipeTurn *s = &t->rank[r].flow->turn[k];
            fprintf(to, "%" PRIu32 "\t%s\t%" PRIu32 "\t%.0f\t%.0f\n", r, name_of(t, s->phase),
                    s->micro, t->rank[r].begin[k], t->rank[r].end[k]);
        }
}

static double place(double ns, double end) { return LEFT + ns / end * (WIDTH - LEFT - RIGHT); }

static void put_rank(FILE *to, const LsPipelineTimes *t, uint32_t r, double end)
{
    const int y = TOP + (int)r * ROW;
    fprintf(to,
            "<text class=\"f-soft\" x=\"%d\" y=\"%d\" text-anchor=\"end\">rank %" PRIu32
            "</text>\n",
            LEFT - 8, y + BAR / 2 + 4, r);
    for (uint32_t k = 0; k < t->rank[r].flow->nturn; k++) {
        const LsPipeTurn *s = &t->rank[r].flow->turn[k];
        const double x = place(t->rank[r].begin[k], end), width = place(t->rank[r].end[k], end) - x;
        fprintf(to,
                "<rect class=\"f-%s s-page\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" "
                "height=\"%d\"><title>%s of micro-batch %" PRIu32 "</title></rect>\n",
                colour[s->phase], x, y, width, BAR, name_of(t, s->phase), s->micro);
        if (width >= 2 * LETTER)
            fprintf(to,
                    "<text class=\"f-page\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%" PRIu32
                    "</text>\n",
                    x + width / 2, y + BAR / 2 + 4, s->micro);
    }
}

static void put_axis(FILE *to, int y, double end)
{
    const double step = ls_chart_tick(end * 1e-6, 6);
    fprintf(to, "<line class=\"s-line\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>\n", LEFT,
            WIDTH - RIGHT, y, y);
    for (double ms = 0; ms <= end * 1e-6; ms += step)
        fprintf(to,
                "<text class=\"f-soft\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.4g</text>\n",
                place(ms * 1e6, end), y + 16, ms);
    fprintf(to,
            "<text class=\"f-soft\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">predicted time, "
            "ms</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, y + 34);
}

static void put_key(FILE *to, const LsPipelineTimes *t, int y)
{
    static const char *const what[LS_PHASES] = {"F: forward", "B: gradients of activations",
                                                "W: gradients of weights"};
    int x = LEFT;
    for (int k = 0; k < LS_PHASES; k++) {
        if (t->joint && k == LS_PHASE_W)
            continue;
        fprintf(to,
                "<rect class=\"f-%s\" x=\"%d\" y=\"%d\" width=\"12\" height=\"12\"/>"
                "<text class=\"f-ink\" x=\"%d\" y=\"%d\">%s</text>\n",
                colour[k], x, y, x + 18, y + 10,
                t->joint && k == LS_PHASE_B ? "BW: gradients" : what[k]);
        x += 220;
    }
}

void ls_pipeline_svg(FILE *to, const LsPipelineTimes *t, const char *title)
{
    const int bottom = TOP + (int)t->k * ROW, height = bottom + AXIS + KEY;
    double end = 0;
    for (uint32_t r = 0; r < t->k; r++)
        end = t->rank[r].flow->nturn > 0 ? fmax(end, t->rank[r].end[t->rank[r].flow->nturn - 1])
                                         : end;
    end = end > 0 ? end : 1;
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\">\n<style>\n",
            WIDTH, height, WIDTH, height);
    ls_page_colours(to);
    fprintf(to,
            "</style>\n<rect class=\"f-page\" width=\"%d\" height=\"%d\"/>\n"
            "<text class=\"f-ink\" x=\"%d\" y=\"20\" font-weight=\"600\" font-size=\"14\">",
            WIDTH, height, LEFT);
    ls_page_text(to, title);
    fprintf(to, "</text>\n");
    for (uint32_t r = 0; r < t->k; r++)
        put_rank(to, t, r, end);
    put_axis(to, bottom, end);
    put_key(to, t, bottom + AXIS);
    fprintf(to, "</svg>\n");
}
