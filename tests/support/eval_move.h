/* tests/support/eval_move.h -- the moving rows for tests/support/eval.h, by the definitions of
 * move.def. A gradient runs as the transpose of its forward row: the same places with source and
 * target exchanged. */
#ifndef LS_TESTS_SUPPORT_EVAL_MOVE_H
#define LS_TESTS_SUPPORT_EVAL_MOVE_H

#include <math.h>
#include <string.h>

#include "compiler/ir/graph.h"

/* Up to two places per axis in the small side, with weights; none: the fill value. */
typedef struct Taps { int n; int64_t at[2]; double w[2]; } Taps;

static inline Taps tap(int64_t at, int64_t dim)
{
    return at < 0 || at >= dim ? (Taps){0} : (Taps){1, {at}, {1}};
}

static inline int64_t between(int64_t v, int64_t dim) { return v < 0 ? 0 : v >= dim ? dim - 1 : v; }

static inline Taps resize_taps(const LsResizeAttr *at, int k, int64_t i)
{
    int64_t x = at->x.dim[k], y = at->y.dim[k];
    double s = at->scale[k], c = (double)i;
    if (x == y && s == 1)
        return tap(i, x);
    switch (at->coord) {
    case LS_COORD_HALF_PIXEL: c = (c + 0.5) / s - 0.5; break;
    case LS_COORD_PYTORCH_HALF_PIXEL: c = y == 1 ? 0 : (c + 0.5) / s - 0.5; break;
    case LS_COORD_ALIGN_CORNERS: c = y == 1 ? 0 : c * (double)(x - 1) / (double)(y - 1); break;
    default: c = c / s; break;
    }
    if (at->mode == LS_RESIZE_LINEAR) {
        double lo = floor(c), f = c - lo;
        return (Taps){2, {between((int64_t)lo, x), between((int64_t)lo + 1, x)}, {1 - f, f}};
    }
    static double (*const rounding[])(double) = {floor, ceil};
    double r = at->nearest <= LS_ROUND_CEIL ? rounding[at->nearest](c)
             : at->nearest == LS_ROUND_PREFER_FLOOR ? ceil(c - 0.5) : floor(c + 0.5);
    return tap(between((int64_t)r, x), x);
}

/* Where index i of axis k on the large (result) side of the forward row lies on the small side. */
static inline Taps move_taps(const LsNode *n, int k, int64_t i, int64_t d)
{
    switch (n->op) {
    case LS_OP_SLICE: case LS_OP_SLICE_GRAD:
        return tap(n->attr.slice.start[k] + i * n->attr.slice.step[k], d);
    case LS_OP_TILE: return tap(i % d, d);
    case LS_OP_PAD: case LS_OP_PAD_GRAD: {
        int64_t j = i - n->attr.pad.lo[k];
        return n->attr.pad.mode == LS_PAD_EDGE      ? tap(between(j, d), d)
             : n->attr.pad.mode == LS_PAD_REFLECT ? tap(j < 0 ? -j : j < d ? j : 2 * (d - 1) - j, d)
                                                  : tap(j, d);
    }
    case LS_OP_RESIZE: case LS_OP_RESIZE_GRAD: return resize_taps(&n->attr.resize, k, i);
    default: return tap(i, d);
    }
}

typedef struct Move {
    const LsNode *n;
    LsShape x;                  /* the small side */
    double *small;
    bool back;                  /* adds dy to the small side instead of reading it */
    bool outside;               /* the point has no source */
} Move;

/* One point of the large side: axes k.. of its index; from, w: place and weight in the small side
 * so far. */
static inline double move_point(Move *m, const int64_t *at, int k, int64_t from, double w,
                                double dy)
{
    if (k == m->x.rank) {
        m->small[from] += m->back ? w * dy : 0;
        return w * m->small[from];
    }
    int axis = m->n->op == LS_OP_TRANSPOSE ? m->n->attr.perm.perm[k] : k;
    int64_t stride = 1;
    for (int d = axis + 1; d < m->x.rank; d++)
        stride *= m->x.dim[d];
    Taps t = move_taps(m->n, k, at[k], m->x.dim[axis]);
    double sum = 0;
    m->outside |= t.n == 0;
    for (int i = 0; i < t.n && i < 2; i++)
        sum += move_point(m, at, k + 1, from + t.at[i] * stride, w * t.w[i], dy);
    return sum;
}

static inline bool move_next(int64_t *at, const LsShape *s)
{
    for (int k = s->rank - 1; k >= 0; k--) {
        if (++at[k] < s->dim[k])
            return true;
        at[k] = 0;
    }
    return false;
}

static inline void move_by_axes(const LsGraph *g, double **v, LsNodeId n, bool back)
{
    LsValueId in = ls_in(g, n, 0), out = ls_out(g, n, 0), small = back ? out : in;
    LsValueId large = back ? in : out;
    Move m = {.n = &g->node[n.i], .x = *ls_shape(g, small), .small = v[small.i], .back = back};
    if (back)
        memset(m.small, 0, (size_t)ls_count(&m.x) * sizeof(double));
    int64_t at[LS_MAX_RANK] = {0}, i = 0;
    do {
        m.outside = false;
        double got = move_point(&m, at, 0, 0, 1, v[large.i][i]);
        if (!back)
            v[large.i][i] = m.outside && m.n->op == LS_OP_PAD ? m.n->attr.pad.value : got;
        i++;
    } while (move_next(at, ls_shape(g, large)));
}

/* Elements behind an axis, and before it. */
static inline int64_t move_inner(const LsShape *s, int axis)
{
    int64_t inner = 1;
    for (int k = axis + 1; k < s->rank; k++)
        inner *= s->dim[k];
    return inner;
}

static inline void move_concat(const LsGraph *g, double **v, LsNodeId n)
{
    int axis = g->node[n.i].attr.axis.axis;
    const LsShape *y = ls_shape(g, ls_out(g, n, 0));
    int64_t inner = move_inner(y, axis), start = 0;
    for (int k = 0; k < g->node[n.i].nin; k++) {
        const LsShape *x = ls_in_shape(g, n, k);
        for (int64_t i = 0; i < ls_count(x); i++) {
            int64_t outer = i / (inner * x->dim[axis]), rest = i % (inner * x->dim[axis]);
            v[ls_out(g, n, 0).i][outer * inner * y->dim[axis] + start * inner + rest]
                = v[ls_in(g, n, k).i][i];
        }
        start += x->dim[axis];
    }
}

static inline void move_gather(const LsGraph *g, double **v, LsNodeId n, bool back)
{
    const LsGatherAttr *at = &g->node[n.i].attr.gather;
    LsValueId in = ls_in(g, n, 0), out = ls_out(g, n, 0), index = ls_in(g, n, 1);
    const LsShape *table = ls_shape(g, back ? out : in);
    double *t = v[back ? out.i : in.i], *y = v[back ? in.i : out.i];
    int64_t inner = move_inner(table, at->axis), count = ls_count(ls_shape(g, index));
    int64_t dim = table->dim[at->axis], outer = ls_count(table) / inner / dim;
    if (back && ls_is(ls_in(g, n, 2)))
        memcpy(t, v[ls_in(g, n, 2).i], (size_t)ls_count(table) * sizeof *t);
    else if (back)
        memset(t, 0, (size_t)ls_count(table) * sizeof *t);
    for (int64_t i = 0; i < outer * count * inner; i++) {
        int64_t j = (int64_t)v[index.i][i / inner % count];
        int64_t place = (i / inner / count * dim + (j < 0 ? j + dim : j)) * inner + i % inner;
        bool inside = j >= -dim && j < dim;
        if (back && inside)
            t[place] += y[i];
        else if (!back)
            y[i] = inside ? t[place] : at->zero ? 0 : NAN;
    }
}

/* False: not a moving row. */
static inline bool move_node(const LsGraph *g, double **v, LsNodeId n)
{
    switch (g->node[n.i].op) {
    case LS_OP_TRANSPOSE: case LS_OP_SLICE: case LS_OP_PAD: case LS_OP_TILE: case LS_OP_RESIZE:
        move_by_axes(g, v, n, false);
        return true;
    case LS_OP_SLICE_GRAD: case LS_OP_PAD_GRAD: case LS_OP_RESIZE_GRAD:
        move_by_axes(g, v, n, true);
        return true;
    case LS_OP_CONCAT: move_concat(g, v, n); return true;
    case LS_OP_GATHER: case LS_OP_GATHER_GRAD:
        move_gather(g, v, n, g->node[n.i].op == LS_OP_GATHER_GRAD);
        return true;
    default: return false;
    }
}

#endif
