/* tests/support/eval_index.h -- scatters, gathers by element, scans and largest elements for
 * tests/support/eval.h, by the words of move.def. */
#ifndef LS_TESTS_SUPPORT_EVAL_INDEX_H
#define LS_TESTS_SUPPORT_EVAL_INDEX_H

#include "tests/support/eval_move.h"

static inline double index_combined(LsScatterHow how, double old, double v)
{
    switch (how) {
    case LS_SCATTER_SET: return v;
    case LS_SCATTER_MUL: return old * v;
    case LS_SCATTER_MAX: return fmax(old, v);
    case LS_SCATTER_MIN: return fmin(old, v);
    default:             return old + v;
    }
}

/* Gathers by element, and all scatters but GATHER_GRAD. */
static inline void index_move(const LsGraph *g, double **v, LsNodeId n, bool back)
{
    const LsGatherAttr *at = &g->node[n.i].attr.gather;
    bool each = g->node[n.i].op != LS_OP_SCATTER;
    LsValueId in = ls_in(g, n, 0), out = ls_out(g, n, 0), index = ls_in(g, n, 1),
              base = ls_in(g, n, 2);
    const LsShape *table = ls_shape(g, back ? out : in), *by = ls_shape(g, index);
    int64_t inner = move_inner(table, at->axis), dim = table->dim[at->axis];
    int64_t count = each ? by->dim[at->axis] : ls_count(by), all = ls_count(table) / dim * count;
    bool single = back && ls_count(ls_shape(g, in)) == 1;
    if (back && ls_is(base))
        memcpy(v[out.i], v[base.i], (size_t)ls_count(table) * sizeof(double));
    else if (back)
        memset(v[out.i], 0, (size_t)ls_count(table) * sizeof(double));
    for (int64_t i = 0; i < all; i++) {
        int64_t j = (int64_t)v[index.i][each ? i : i / inner % count];
        int64_t place = (i / inner / count * dim + (j < 0 ? j + dim : j)) * inner + i % inner;
        bool inside = j >= -dim && j < dim;
        if (!back)
            v[out.i][i] = inside ? v[in.i][place] : NAN;
        else if (inside)
            v[out.i][place] = index_combined(at->how, v[out.i][place], v[in.i][single ? 0 : i]);
    }
}

/* One line of a scan: elements i0, i0 + step, ..; a negative step for `reverse`. */
static inline void index_scan_line(const LsNode *n, const double *x, const double *dy, double *y,
                                   int64_t i0, int64_t step, int64_t length)
{
    bool product = n->op != LS_OP_CUM_SUM, exclusive = n->attr.scan.exclusive;
    for (int64_t k = 0; k < length; k++) {
        double sum = 0;
        for (int64_t i = 0; i < length && dy != NULL; i++) {    /* of the gradient by x[k] */
            double part = dy[i0 + i * step];
            if (i < k + exclusive)
                continue;
            for (int64_t j = 0; j < i + !exclusive; j++)
                part *= j == k ? 1 : x[i0 + j * step];
            sum += part;
        }
        double so_far = product;
        for (int64_t j = 0; j < k + !exclusive && dy == NULL; j++)
            so_far = product ? so_far * x[i0 + j * step] : so_far + x[i0 + j * step];
        y[i0 + k * step] = dy != NULL ? sum : so_far;
    }
}

/* Element a comes before element b among the largest, or least. */
static inline bool index_before(const LsTopAttr *at, const double *x, int64_t a, int64_t b,
                                int64_t inner)
{
    double v = x[a * inner], w = x[b * inner];
    if (v == w || (isnan(v) && isnan(w)))
        return a < b;
    bool larger = isnan(v) || v > w;
    return larger != at->least;
}

static inline void index_top_line(const LsTopAttr *at, const double *x, double *y, int64_t length,
                                  int64_t inner)
{
    for (int64_t i = 0; i < length; i++) {
        int64_t before = 0;
        for (int64_t j = 0; j < length; j++)
            before += j != i && index_before(at, x, j, i, inner);
        if (before < at->k)
            y[before * inner] = (double)i;
    }
}

static inline void index_lines(const LsGraph *g, double **v, LsNodeId n)
{
    const LsNode *node = &g->node[n.i];
    bool top = node->op == LS_OP_TOP_K, grad = node->op == LS_OP_CUM_PROD_GRAD;
    const LsShape *s = ls_in_shape(g, n, 0);
    int axis = top ? node->attr.top.axis : node->attr.scan.axis;
    int64_t inner = move_inner(s, axis), length = s->dim[axis];
    double *x = v[ls_in(g, n, grad).i], *y = v[ls_out(g, n, 0).i];
    for (int64_t l = 0; l < ls_count(s) / length; l++) {
        int64_t outer = l / inner, i = l % inner, start = outer * length * inner + i;
        bool reverse = node->attr.scan.reverse;
        if (top)
            index_top_line(&node->attr.top, x + start, y + outer * node->attr.top.k * inner + i,
                           length, inner);
        else
            index_scan_line(node, x, grad ? v[ls_in(g, n, 0).i] : NULL, y,
                            reverse ? start + (length - 1) * inner : start,
                            reverse ? -inner : inner, length);
    }
}

/* False: not a row of these. */
static inline bool index_node(const LsGraph *g, double **v, LsNodeId n)
{
    switch (g->node[n.i].op) {
    case LS_OP_GATHER_EACH: index_move(g, v, n, false); return true;
    case LS_OP_SCATTER: case LS_OP_SCATTER_EACH: index_move(g, v, n, true); return true;
    case LS_OP_CUM_SUM: case LS_OP_CUM_PROD: case LS_OP_CUM_PROD_GRAD: case LS_OP_TOP_K:
        index_lines(g, v, n);
        return true;
    default: return false;
    }
}

#endif
