/* tests/support/eval_sample.h -- images read at computed places for tests/support/eval.h, by the words of move.def. */
#ifndef LS_TESTS_SUPPORT_EVAL_SAMPLE_H
#define LS_TESTS_SUPPORT_EVAL_SAMPLE_H

#include "compiler/ir/graph.h"

#include <math.h>
#include <string.h>

/* Weight of element i for a place, or its slope. */
static inline double sample_weight(LsSampleMode mode, double at, double i, bool slope)
{
    double t = fabs(at - i), sign = at < i ? -1 : 1, a = -0.75;
    if (mode == LS_SAMPLE_NEAREST)
        return !slope && rint(at) == i;
    if (mode == LS_SAMPLE_LINEAR && slope)
        return (i == floor(at) + 1) - (i == floor(at));
    if (mode == LS_SAMPLE_LINEAR)
        return fmax(1 - t, 0);
    if (t >= 2)
        return 0;
    if (t < 1)
        return slope ? sign * (3 * (a + 2) * t * t - 2 * (a + 3) * t) : (a + 2) * t * t * t - (a + 3) * t * t + 1;
    return slope ? sign * (3 * a * t * t - 10 * a * t + 8 * a) : a * t * t * t - 5 * a * t * t + 8 * a * t - 4 * a;
}

/* The element that stands for element i; -1: none. */
static inline int64_t sample_element(LsBeyond beyond, int64_t i, int64_t n)
{
    if (beyond == LS_BEYOND_CLAMP)
        return i < 0 ? 0 : i < n ? i : n - 1;
    while (i < 0 || i >= n) {
        if (beyond == LS_BEYOND_NOTHING)
            return -1;
        if (n == 1)
            return 0;
        int border = beyond == LS_BEYOND_BORDER;
        i = i < 0 ? -i - border : 2 * (n - 1) + border - i;
    }
    return i;
}

typedef struct SamplePlace {
    double at[3];
    int64_t low[3];             /* the first element whose weight may not be 0 */
} SamplePlace;

enum { SAMPLE_TAPS = 6 };

/* False: not a row of these. */
static inline bool sample_node(const LsGraph *g, double **v, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    const LsSampleAttr *a = &node->attr.sample;
    bool dx = node->op == LS_OP_SAMPLE_DX, dat = node->op == LS_OP_SAMPLE_DAT;
    if (node->op != LS_OP_SAMPLE && !dx && !dat)
        return false;
    LsValueId y = dx || dat ? ls_in(g, n, 0) : ls_out(g, n, 0), x = dx ? ls_out(g, n, 0) : ls_in(g, n, dat);
    LsValueId places = ls_in(g, n, 1 + dat), of = ls_in(g, n, 2 + dat), out = ls_out(g, n, 0);
    const LsShape *xs = ls_shape(g, x), *ps = ls_shape(g, places);
    int axes = xs->rank - 2, taps = 1;
    int64_t pixels = ls_count(xs) / xs->dim[0] / xs->dim[1], each = ls_count(ps) / ps->dim[0] / axes;
    memset(v[out.i], 0, (size_t)ls_count(ls_shape(g, out)) * sizeof(double));
    for (int d = 0; d < axes; d++)
        taps *= SAMPLE_TAPS;
    for (int64_t q = 0; q < ps->dim[0] * each; q++) {
        int64_t row = q / each, image = ls_is(of) ? (int64_t)v[of.i][row] : row;
        bool is = image >= 0 && image < xs->dim[0];
        SamplePlace p;
        for (int d = 0; d < axes; d++) {
            p.at[d] = v[places.i][q * axes + (a->last_first ? axes - 1 - d : d)];
            is = is && !isnan(p.at[d]);
            p.low[d] = (int64_t)floor(fmin(fmax(p.at[d], -1e6), 1e6)) - 2;
        }
        for (int64_t c = 0; !is && !dx && c < (dat ? axes : xs->dim[1]); c++)
            v[out.i][dat ? q * axes + c : (row * xs->dim[1] + c) * each + q % each] = NAN;
        for (int64_t c = 0; is && c < xs->dim[1]; c++)
            for (int t = 0; t < taps; t++) {
                double by = 1, slope[3] = {1, 1, 1};
                int64_t pixel = 0;
                for (int d = 0, rest = t; d < axes; d++, rest /= SAMPLE_TAPS) {
                    int64_t i = p.low[d] + rest % SAMPLE_TAPS;
                    int64_t j = sample_element(a->beyond, i, xs->dim[2 + d]);
                    pixel = j < 0 || pixel < 0 ? -1 : pixel * xs->dim[2 + d] + j;
                    by *= sample_weight(a->mode, p.at[d], (double)i, false);
                    for (int k = 0; k < axes; k++)
                        slope[k] *= sample_weight(a->mode, p.at[d], (double)i, k == d);
                }
                if (pixel < 0)
                    continue;
                double *to = &v[y.i][(row * xs->dim[1] + c) * each + q % each];
                double *from = &v[x.i][(image * xs->dim[1] + c) * pixels + pixel];
                if (dx)
                    *from += by * *to;
                else if (!dat)
                    *to += by * *from;
                for (int d = 0; dat && d < axes; d++)
                    v[out.i][q * axes + (a->last_first ? axes - 1 - d : d)] += slope[d] * *to * *from;
            }
    }
    return true;
}

#endif
