/* tests/support/eval_sample.h -- images read at computed places for tests/support/eval.h, by the
 * words of move.def. */
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
        return slope ? sign * (3 * (a + 2) * t * t - 2 * (a + 3) * t)
                     : (a + 2) * t * t * t - (a + 3) * t * t + 1;
    return slope ? sign * (3 * a * t * t - 10 * a * t + 8 * a)
                 : a * t * t * t - 5 * a * t * t + 8 * a * t - 4 * a;
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
    LsValueId y = dx || dat ? ls_in(g, n, 0) : ls_out(g, n, 0),
              x = dx ? ls_out(g, n, 0) : ls_in(g, n, dat);
    LsValueId places = ls_in(g, n, 1 + dat), of = ls_in(g, n, 2 + dat), out = ls_out(g, n, 0);
    const LsShape *xs = ls_shape(g, x), *ps = ls_shape(g, places);
    int axes = xs->rank - 2, taps = 1;
    int64_t pixels = ls_count(xs) / xs->dim[0] / xs->dim[1],
            each = ls_count(ps) / ps->dim[0] / axes;
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
                    v[out.i][q * axes + (a->last_first ? axes - 1 - d : d)] +=
                        slope[d] * *to * *from;
            }
    }
    return true;
}

/* One sample of an image at (y, x), and its weight `by`: added to *to, or to the gradient of the
 * image. */
static inline void roi_sample(double *image, const LsShape *xs, double y, double x, double by,
                              bool back, double *to)
{
    double at[2] = {y, x};
    for (int d = 0; d < 2; d++) {
        double n = (double)xs->dim[2 + d];
        if (!(at[d] >= -1 && at[d] <= n))
            return;
        at[d] = fmin(fmax(at[d], 0), n - 1);
    }
    for (int64_t i = 0; i < xs->dim[2] * xs->dim[3]; i++) {
        double w = by * fmax(0, 1 - fabs(at[0] - (double)(i / xs->dim[3])))
                   * fmax(0, 1 - fabs(at[1] - (double)(i % xs->dim[3])));
        if (back)
            image[i] += w * *to;
        else
            *to += w * image[i];
    }
}

/* False: not a row of these. */
static inline bool roi_node(const LsGraph *g, double **v, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    const LsRoiAttr *a = &node->attr.roi;
    const bool back = node->op == LS_OP_ROI_MEAN_DX;
    if (node->op != LS_OP_ROI_MEAN && !back)
        return false;
    LsValueId y = back ? ls_in(g, n, 0) : ls_out(g, n, 0),
              x = back ? ls_out(g, n, 0) : ls_in(g, n, 0);
    const LsShape *xs = ls_shape(g, x);
    const int64_t bins = a->height * a->width, plane = xs->dim[2] * xs->dim[3];
    memset(v[ls_out(g, n, 0).i], 0,
           (size_t)ls_count(ls_shape(g, ls_out(g, n, 0))) * sizeof(double));
    for (int64_t q = 0; q < ls_count(ls_shape(g, y)); q++) {
        const int64_t p = q % bins, c = q / bins % xs->dim[1], r = q / bins / xs->dim[1];
        const double *box = &v[ls_in(g, n, 1).i][4 * r];
        const int64_t image = (int64_t)v[ls_in(g, n, 2).i][r];
        const bool is = image >= 0 && image < xs->dim[0] && box[2] <= 1e9 && box[3] <= 1e9
                        && !isnan(box[0]) && !isnan(box[1]);
        if (!is && !back)
            v[y.i][q] = NAN;
        if (!is)
            continue;
        const double tall = fmax(ceil(box[3]), 0), wide = fmax(ceil(box[2]), 0);
        for (double i = 0; i < tall; i++)
            for (double j = 0; j < wide; j++)
                roi_sample(&v[x.i][(image * xs->dim[1] + c) * plane], xs,
                           box[1] + (double)(p / a->width) * box[3] + (i + 0.5) * box[3] / tall,
                           box[0] + (double)(p % a->width) * box[2] + (j + 0.5) * box[2] / wide,
                           1 / (tall * wide), back, &v[y.i][q]);
    }
    return true;
}

#endif
