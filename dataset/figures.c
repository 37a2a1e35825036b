/* dataset/figures.c -- see the header. */
#include "dataset/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool ls_figures_open(LsFigures *g, const LsDataField *f, LsError *e)
{
    *g = (LsFigures){.channels = f->rank > 0 ? f->dim[0] : 1, .run = 1};
    for (int k = 1; k < f->rank; k++)
        g->run *= f->dim[k];
    if (g->channels > LS_FIGURES_MOST)
        g->channels = 0; /* none */
    g->first = calloc(5 * (size_t)g->channels + 1, sizeof *g->first);
    if (g->first == NULL)
        return ls_fail(e, LS_EXIT_FAIL, "out of memory");
    g->sum = g->first + g->channels;
    g->squares = g->sum + g->channels;
    g->mean = g->squares + g->channels;
    g->std = g->mean + g->channels;
    return true;
}

void ls_figures_add(LsFigures *g, const double *v)
{
    if (g->n == 0)
        for (int64_t c = 0; c < g->channels; c++)
            g->first[c] = v[c * g->run];
    for (int64_t c = 0; c < g->channels; c++)
        for (int64_t i = 0; i < g->run; i++) {
            const double d = v[c * g->run + i] - g->first[c];
            g->sum[c] += d;
            g->squares[c] += d * d;
        }
    g->n += g->run;
}

void ls_figures_set(LsFigures *g, LsDataField *f)
{
    const double scale = f->type == LS_U8 ? 255 : 1;
    for (int64_t c = 0; c < g->channels && g->n > 0; c++) {
        const double mean = g->sum[c] / (double)g->n,
                     spread = g->squares[c] / (double)g->n - mean * mean;
        g->mean[c] = (g->first[c] + mean) / scale;
        g->std[c] = sqrt(spread > 0 ? spread : 0) / scale;
        if (!isfinite(g->mean[c]) || !isfinite(g->std[c]))
            return; /* the data have values that are not finite: no figures */
    }
    if (g->channels == 0 || g->n == 0 || f->rank == 0)
        return;
    f->mean = g->mean;
    f->std = g->std;
    f->figures = g->channels;
}

void ls_figures_close(LsFigures *g)
{
    free(g->first);
    *g = (LsFigures){0};
}
