/* tests/support/eval.h -- runs a graph in double precision, slowly, by the definitions of the .def
 * files: a check of rows and gradients that shares no code with codegen. Values are row-major
 * whatever the layout. */
#ifndef LS_TESTS_SUPPORT_EVAL_H
#define LS_TESTS_SUPPORT_EVAL_H

#include <check.h>

#include "tests/support/attention_reference.h"
#include "tests/support/eval_expr.h"
#include "tests/support/eval_index.h"
#include "tests/support/eval_move.h"
#include "tests/support/eval_sample.h"
#include "tests/support/eval_update.h"

#define SHAPE(...) (LsShape){sizeof (int64_t[]){__VA_ARGS__} / 8, {__VA_ARGS__}}

static inline double *eval_room(const Eval *e, LsValueId v)
{
    return ls_arena_alloc(e->g->arena, (size_t)ls_count(ls_shape(e->g, v)) + 1, sizeof(double));
}

/* Constants get their data, state its initial values, everything else zeros. */
static inline Eval eval_new(const LsGraph *g)
{
    Eval e = {g,  ls_arena_alloc(g->arena, g->nvalue, sizeof(double *)), INT64_MAX, 1, true, true,
              0.1, 1};
    for (uint32_t i = 1; i < g->nvalue; i++) {
        e.v[i] = eval_room(&e, (LsValueId){i});
        for (int64_t k = 0; g->value[i].data != NULL && k < ls_count(&g->value[i].shape); k++)
            e.v[i][k] = ls_const_at(g, (LsValueId){i}, k);
    }
    return e;
}

/* Index into v for the point `at` of a broadcast space. */
static inline int64_t eval_place(const LsShape *s, const int64_t *at, int rank)
{
    int64_t place = 0;
    for (int k = 0; k < s->rank; k++)
        place = place * s->dim[k] + (s->dim[k] == 1 ? 0 : at[k + rank - s->rank]);
    return place;
}

static inline bool eval_next(int64_t *at, const LsShape *s)
{
    for (int k = s->rank - 1; k >= 0; k--) {
        if (++at[k] < s->dim[k])
            return true;
        at[k] = 0;
    }
    return false;
}

static inline void eval_pointwise(Eval *e, LsNodeId n)
{
    const LsGraph *g = e->g;
    const LsOp *row = ls_op[g->node[n.i].op];
    LsShape space = {0}, out = *ls_shape(g, ls_out(g, n, 0));
    bool reduce = row->kernel == LS_K_REDUCE;
    for (int k = 0; k < g->node[n.i].nin; k++)
        ls_shape_broadcast(&space, ls_in_shape(g, n, k));
    if (!reduce)
        space = out;
    double *y = e->v[ls_out(g, n, 0).i], count = (double)ls_count(&space) / (double)ls_count(&out);
    for (int64_t k = 0; reduce && k < ls_count(&out); k++)
        y[k] = row->combine == LS_MAX ? -INFINITY : row->combine == LS_MIN ? INFINITY
             : row->combine == LS_PROD;
    int64_t at[LS_MAX_RANK] = {0};
    do {
        double arg[LS_MAX_IN];
        for (int k = 0; k < g->node[n.i].nin; k++)
            arg[k] = e->v[ls_in(g, n, k).i][eval_place(ls_in_shape(g, n, k), at, space.rank)];
        const LsScalarAttr *s = &g->node[n.i].attr.scalar;
        bool whole =
            ls_type(g, ls_in(g, n, 0)) != LS_REAL && ls_type(g, ls_out(g, n, 0)) != LS_REAL;
        double v = expr_value(row->expr, arg, s->a, s->b, whole),
               *to = &y[eval_place(&out, at, space.rank)];
        if (!reduce)
            *to = v;
        else if (row->combine == LS_SUM)
            *to += row->mean ? v / count : v;
        else
            *to = row->combine == LS_MAX   ? fmax(*to, v)
                  : row->combine == LS_MIN ? fmin(*to, v)
                                           : *to * v;
    } while (eval_next(at, &space));
}

/* ---- convolutions: f(x place, w place, y place) for every product, by net.def ---- */
static inline void eval_conv(Eval *e, LsNodeId n)
{
    const LsGraph *g = e->g;
    const LsWindowAttr *w = &g->node[n.i].attr.window;
    uint16_t op = g->node[n.i].op;
    LsValueId o = ls_out(g, n, 0), a = ls_in(g, n, 0), b = ls_in(g, n, 1);
    LsValueId xv = op == LS_OP_CONV ? a : op == LS_OP_CONV_DX ? o : b;
    LsValueId yv = op == LS_OP_CONV ? o : a, wv = op == LS_OP_CONV_DW ? o : b;
    const LsShape *xs = ls_shape(g, xv), *ys = ls_shape(g, yv), *ws = ls_shape(g, wv);
    double *x = e->v[xv.i], *y = e->v[yv.i], *f = e->v[wv.i], *to = e->v[o.i];
    int64_t per_c = xs->dim[1] / w->group, per_m = ys->dim[1] / w->group, at[LS_MAX_RANK] = {0};
    const LsShape *os = ls_shape(g, o);
    memset(to, 0, (size_t)ls_count(os) * sizeof *to);
    if (g->node[n.i].nin > 2)
        do
            to[eval_place(os, at, os->rank)] = e->v[ls_in(g, n, 2).i][at[1]];
        while (eval_next(at, os));
    do {                        /* at: of y */
        int64_t r[LS_MAX_RANK] = {0}, from[LS_MAX_RANK] = {at[0]};
        do {                    /* r: of w; r[0] selects nothing, the filter is at[1] */
            bool in = r[0] == 0;
            from[1] = at[1] / per_m * per_c + r[1];
            for (int d = 0; d < w->n; d++) {
                from[2 + d] = at[2 + d] * w->stride[d] - w->pad_lo[d] + r[2 + d] * w->dilation[d];
                in = in && from[2 + d] >= 0 && from[2 + d] < xs->dim[2 + d];
            }
            if (!in)
                continue;
            int64_t wr[LS_MAX_RANK];
            memcpy(wr, r, sizeof wr);
            wr[0] = at[1];
            int64_t xi = eval_place(xs, from, xs->rank), wi = eval_place(ws, wr, ws->rank);
            int64_t yi = eval_place(ys, at, ys->rank);
            if (op == LS_OP_CONV)
                y[yi] += x[xi] * f[wi];
            else if (op == LS_OP_CONV_DX)
                x[xi] += y[yi] * f[wi];
            else
                f[wi] += x[xi] * y[yi];
        } while (eval_next(r, ws));
    } while (eval_next(at, ys));
}

static inline void eval_matmul(Eval *e, LsNodeId n)
{
    const LsGraph *g = e->g;
    const LsGemmAttr *t = &g->node[n.i].attr.gemm;
    const LsShape *as = ls_in_shape(g, n, 0), *bs = ls_in_shape(g, n, 1),
                  *ys = ls_shape(g, ls_out(g, n, 0));
    double *y = e->v[ls_out(g, n, 0).i];
    int64_t inner = t->trans_a ? as->dim[as->rank - 2] : as->dim[as->rank - 1],
            at[LS_MAX_RANK] = {0};
    int r = ys->rank;
    do {
        double sum = 0;
        for (int64_t k = 0; k < inner; k++) {
            int64_t pa[LS_MAX_RANK], pb[LS_MAX_RANK];
            memcpy(pa, at, sizeof pa);
            memcpy(pb, at, sizeof pb);
            pa[r - 1 - t->trans_a] = k, pa[r - 2 + t->trans_a] = at[r - 2];
            pb[r - 2 + t->trans_b] = k, pb[r - 1 - t->trans_b] = at[r - 1];
            sum += e->v[ls_in(g, n, 0).i][eval_place(as, pa, r)]
                 * e->v[ls_in(g, n, 1).i][eval_place(bs, pb, r)];
        }
        double bias = g->node[n.i].nin > 2 ? e->v[ls_in(g, n, 2).i][at[r - 1]] : 0;
        y[eval_place(ys, at, r)] = t->alpha * sum + bias;
    } while (eval_next(at, ys));
}

/* ---- pooling ---- */
static inline void eval_pool(Eval *e, LsNodeId n)
{
    const LsGraph *g = e->g;
    const LsWindowAttr *w = &g->node[n.i].attr.window;
    uint16_t op = g->node[n.i].op;
    bool back = op == LS_OP_MAX_POOL_GRAD || op == LS_OP_AVERAGE_POOL_GRAD;
    bool max = op == LS_OP_MAX_POOL || op == LS_OP_MAX_POOL_GRAD;
    LsValueId o = ls_out(g, n, 0), i = ls_in(g, n, 0);
    const LsShape *xs = ls_shape(g, back ? o : i), *ys = ls_shape(g, back ? i : o);
    double *x = e->v[back ? o.i : i.i], *y = e->v[back ? i.i : o.i];
    double *index = max ? e->v[back ? ls_in(g, n, 1).i : ls_out(g, n, 1).i] : NULL;
    if (back)
        memset(x, 0, (size_t)ls_count(xs) * sizeof *x);
    int64_t at[LS_MAX_RANK] = {0};
    LsShape window = {.rank = w->n};
    memcpy(window.dim, w->kernel, sizeof w->kernel);
    do {
        int64_t r[LS_MAX_RANK] = {0}, from[LS_MAX_RANK] = {at[0], at[1]},
                yi = eval_place(ys, at, ys->rank);
        double best = -INFINITY, sum = 0, inside = 0, counted = 0;
        for (int pass = 0; pass < 2; pass++) {
            double position = 0;
            do {
                bool in = true, pad = true;
                for (int d = 0; d < w->n; d++) {
                    from[2 + d] = at[2 + d] * w->stride[d] - w->pad_lo[d] + r[d] * w->dilation[d];
                    in = in && from[2 + d] >= 0 && from[2 + d] < xs->dim[2 + d];
                    pad = pad && from[2 + d] < xs->dim[2 + d] + w->pad_hi[d];
                }
                int64_t xi = in ? eval_place(xs, from, xs->rank) : 0;
                if (pass == 0) {
                    inside += in;
                    counted += pad;
                } else if (in && back) {
                    x[xi] += !max ? y[yi] / (w->count_pad ? counted : inside)
                           : index[yi] == position ? y[yi] : 0;
                } else if (in) {
                    sum += x[xi];
                    if (max && x[xi] > best) {
                        best = x[xi];
                        index[yi] = position;
                    }
                }
                position++;
            } while (eval_next(r, &window));
        }
        if (!back)
            y[yi] = max ? best : sum / (w->count_pad ? counted : inside);
    } while (eval_next(at, ys));
}

/* ---- softmax, losses: per position along an axis ---- */
static inline void eval_softmax(Eval *e, LsNodeId n)
{
    const LsGraph *g = e->g;
    uint16_t op = g->node[n.i].op;
    const LsShape *s = ls_in_shape(g, n, 0);
    int axis = g->node[n.i].attr.axis.axis;
    int64_t stride = 1, len = s->dim[axis];
    for (int k = axis + 1; k < s->rank; k++)
        stride *= s->dim[k];
    for (int64_t i = 0; i < ls_count(s); i++) {
        if (i / stride % len != 0)
            continue;
        double *x = e->v[ls_in(g, n, 0).i] + i, *z = e->v[ls_out(g, n, 0).i] + i, sum = 0;
        double *y = g->node[n.i].nin > 1 ? e->v[ls_in(g, n, 1).i] + i : NULL;
        bool log_form = op == LS_OP_LOG_SOFTMAX || op == LS_OP_LOG_SOFTMAX_GRAD;
        double top = -INFINITY;
        for (int64_t c = 0; c < len; c++)
            top = fmax(top, x[c * stride]);
        for (int64_t c = 0; c < len; c++)
            sum += y == NULL  ? exp(x[c * stride] - top)
                   : log_form ? x[c * stride]
                              : x[c * stride] * y[c * stride];
        for (int64_t c = 0; c < len; c++) {
            double v = x[c * stride], p = y != NULL ? y[c * stride] : 0;
            z[c * stride] = y == NULL ? (log_form ? v - top - log(sum) : exp(v - top) / sum)
                          : log_form ? v - exp(p) * sum : (v - sum) * p;
        }
    }
}

typedef struct EvalLoss {       /* one position of a classification loss */
    bool counts;
    int64_t label, stride, classes, base;   /* class c lies at base + c * stride */
    double w;
} EvalLoss;

static inline EvalLoss eval_position(const Eval *e, LsNodeId n, LsValueId labels, LsValueId weights,
                                     const LsShape *x, int64_t i)
{
    const LsLossAttr *at = &e->g->node[n.i].attr.loss;
    const LsShape *t = ls_shape(e->g, labels);
    EvalLoss p = {.label = (int64_t)e->v[labels.i][i], .stride = 1, .classes = x->dim[at->axis]};
    for (int k = at->axis + 1; k < x->rank; k++)
        p.stride *= x->dim[k];
    p.base = i / p.stride * p.stride * p.classes + i % p.stride;
    const int64_t all = at->rows > 0 ? at->rows : t->dim[0];
    int64_t row = at->first + i / (ls_count(t) / t->dim[0]),
            per = all % e->g->batch == 0 ? all / e->g->batch : 0;
    p.counts = (per == 0 || row / per < e->valid) && !(at->has_ignore && p.label == at->ignore)
        && p.label >= 0 && p.label < p.classes;
    p.w = !p.counts ? 0 : ls_is(weights) ? e->v[weights.i][p.label] : 1;
    return p;
}

static inline void eval_class_loss(Eval *e, LsNodeId n)
{
    const LsGraph *g = e->g;
    const LsLossAttr *at = &g->node[n.i].attr.loss;
    bool xent = g->node[n.i].op == LS_OP_XENT;
    LsValueId xv = ls_in(g, n, 0), labels = ls_in(g, n, 1), weights = ls_in(g, n, 2);
    const LsShape *x = ls_shape(g, xv);
    double *loss = e->v[ls_out(g, n, 0).i], total = 0, wsum = 0;
    for (int64_t i = 0; i < ls_count(ls_shape(g, labels)); i++) {
        EvalLoss p = eval_position(e, n, labels, weights, x, i);
        double sum = 0, smooth = 0, each = 0, *in = e->v[xv.i] + p.base;
        for (int64_t c = 0; xent && c < p.classes; c++)
            sum += exp(in[c * p.stride]);
        double lse = xent ? log(sum) : 0;
        for (int64_t c = 0; c < p.classes; c++)
            smooth += (ls_is(weights) ? e->v[weights.i][c] : 1) * (lse - in[c * p.stride]);
        if (xent)
            e->v[ls_out(g, n, 1).i][i] = lse;
        if (p.counts)
            each = (1 - at->smoothing) * p.w * (lse - in[p.label * p.stride])
                 + at->smoothing / (double)p.classes * smooth;
        if (at->reduction == LS_LOSS_EACH)
            loss[i] = each;
        total += each;
        wsum += p.w;
    }
    e->v[ls_out(g, n, xent ? 2 : 1).i][0] = wsum;
    if (at->reduction != LS_LOSS_EACH)
        loss[0] = at->reduction == LS_LOSS_SUM ? total : wsum != 0 ? total / wsum : total;
}

/* XENT_SUM and LABEL_WEIGHT, whose positions lie on one axis. */
static inline void eval_class_sums(Eval *e, LsNodeId n)
{
    const LsGraph *g = e->g;
    const bool sums = g->node[n.i].op == LS_OP_XENT_SUM;
    const LsValueId labels = ls_in(g, n, sums), weights = ls_in(g, n, 1 + sums);
    const LsShape x = {2, {ls_shape(g, labels)->dim[0], g->node[n.i].attr.loss.nclass}};
    double total = 0, wsum = 0;
    for (int64_t i = 0; i < x.dim[0]; i++) {
        wsum += eval_position(e, n, labels, weights, &x, i).w;
        total += sums ? e->v[ls_in(g, n, 0).i][i] : 0;
    }
    e->v[ls_out(g, n, 0).i][0] = !sums ? wsum : wsum != 0 ? total / wsum : total;
}

static inline void eval_class_grad(Eval *e, LsNodeId n)
{
    const LsGraph *g = e->g;
    const LsLossAttr *at = &g->node[n.i].attr.loss;
    bool xent = g->node[n.i].op == LS_OP_XENT_GRAD;
    int k0 = xent ? 2 : 1;
    LsValueId labels = ls_in(g, n, k0), weights = ls_in(g, n, k0 + 1), o = ls_out(g, n, 0);
    double wsum = e->v[ls_in(g, n, xent ? 5 : 3).i][0], *dloss = e->v[ls_in(g, n, 0).i];
    const LsShape *x = ls_shape(g, o);
    for (int64_t i = 0; i < ls_count(ls_shape(g, labels)); i++) {
        EvalLoss p = eval_position(e, n, labels, weights, x, i);
        double *dx = e->v[o.i] + p.base, all = 0,
               k = at->reduction == LS_LOSS_EACH ? dloss[i] : dloss[0];
        k = at->reduction != LS_LOSS_MEAN ? k : wsum != 0 ? k / wsum : k;
        for (int64_t c = 0; c < p.classes; c++)
            all += ls_is(weights) ? e->v[weights.i][c] : 1;
        for (int64_t c = 0; c < p.classes; c++) {
            double w = ls_is(weights) ? e->v[weights.i][c] : 1, is = c == p.label, q = 0;
            if (xent)
                q = exp(e->v[ls_in(g, n, 1).i][p.base + c * p.stride] - e->v[ls_in(g, n, 4).i][i]);
            dx[c * p.stride] = !p.counts ? 0 : k * ((1 - at->smoothing) * p.w * (q - is)
                             + at->smoothing / (double)p.classes * (q * all - w));
        }
    }
}

/* One element's loss and slope (compiler/ir/loss.def). */
static inline void regression_term(const LsLossAttr *at, double y, double t, double *f, double *df)
{
    const double d = y - t, far = fabs(d), edge = at->edge;
    switch (at->regression) {
    case LS_REG_SQUARE: *f = d * d, *df = 2 * d; return;
    case LS_REG_ABS:    *f = far, *df = (d > 0) - (d < 0); return;
    case LS_REG_SMOOTH:
        *f = far < edge ? d * d / 2 / edge : far - edge / 2, *df = fmin(fmax(d / edge, -1), 1);
        return;
    case LS_REG_HUBER:
        *f = far < edge ? d * d / 2 : edge * (far - edge / 2), *df = fmin(fmax(d, -edge), edge);
        return;
    case LS_REG_KL:     *f = (t == 0 ? 0 : t * log(t)) - t * y, *df = -t; return;
    case LS_REG_LINEAR: *f = d, *df = 1; return;
    default:            *f = fmax(y, 0) - y * t + log1p(exp(-fabs(y))), *df = 1 / (1 + exp(-y)) - t;
    }
}

static inline void eval_regression(Eval *e, LsNodeId n)
{
    const LsGraph *g = e->g;
    bool back = g->node[n.i].op == LS_OP_REGRESSION_GRAD;
    const LsShape *s = ls_in_shape(g, n, back);
    double *y = e->v[ls_in(g, n, back).i], *t = e->v[ls_in(g, n, back + 1).i],
           *o = e->v[ls_out(g, n, 0).i];
    int64_t per = ls_count(s) / g->batch, count = (e->valid < g->batch ? e->valid : g->batch) * per;
    double divisor =
        (double)(g->node[n.i].attr.loss.regression == LS_REG_KL ? count * s->dim[0] / ls_count(s)
                                                                : count);
    memset(o, 0, (size_t)ls_count(ls_shape(g, ls_out(g, n, 0))) * sizeof *o);
    for (int64_t i = 0; i < count; i++) {
        double f, df;
        regression_term(&g->node[n.i].attr.loss, y[i], t[i], &f, &df);
        if (back)
            o[i] = e->v[ls_in(g, n, 0).i][0] * df / divisor;
        else
            o[0] += f / divisor;
    }
}

static inline void eval_layer_norm(Eval *e, LsNodeId n)
{
    const LsGraph *g = e->g;
    bool back = g->node[n.i].op == LS_OP_LAYER_NORM_GRAD;
    const LsShape *s = ls_in_shape(g, n, back);
    int64_t len = 1;
    for (int k = g->node[n.i].attr.norm.axis; k < s->rank; k++)
        len *= s->dim[k];
    double *scale = e->v[ls_in(g, n, back + 1).i];
    for (int64_t r = 0; r < ls_count(s) / len; r++) {
        double *x = e->v[ls_in(g, n, back).i] + r * len, *o = e->v[ls_out(g, n, 0).i] + r * len;
        double mean = 0, var = 0, mh = 0, mhz = 0;
        for (int64_t i = 0; i < len; i++)
            mean += x[i] / (double)len;
        for (int64_t i = 0; i < len; i++)
            var += (x[i] - mean) * (x[i] - mean) / (double)len;
        double inv = 1 / sqrt(var + g->node[n.i].attr.norm.eps);
        double *dy = e->v[ls_in(g, n, 0).i] + r * len;
        double *plus = back && ls_is(ls_in(g, n, 5)) ? e->v[ls_in(g, n, 5).i] + r * len : NULL;
        for (int64_t i = 0; back && i < len; i++) {
            mh += dy[i] * scale[i] / (double)len;
            mhz += dy[i] * scale[i] * (x[i] - mean) * inv / (double)len;
        }
        for (int64_t i = 0; i < len; i++)
            o[i] = back ? inv * (dy[i] * scale[i] - mh - (x[i] - mean) * inv * mhz)
                              + (plus != NULL ? plus[i] : 0)
                        : (x[i] - mean) * inv * scale[i]
                              + (g->node[n.i].nin > 2 ? e->v[ls_in(g, n, 2).i][i] : 0);
        if (!back) {
            e->v[ls_out(g, n, 1).i][r] = mean;
            e->v[ls_out(g, n, 2).i][r] = inv;
        }
    }
}

static inline void eval_attention(Eval *e, LsNodeId n)
{
    const LsGraph *g = e->g;
    bool back = ls_attention_is_back(g, n), joint = ls_attention_is_joint(g, n);
    LsValueId mask = ls_in(g, n, ls_attention_mask(g, n));
    AttentionData d = {.g = g, .n = n, .mask = ls_is(mask) ? e->v[mask.i] : NULL,
                       .y = e->v[back ? ls_in(g, n, 1).i : ls_out(g, n, 0).i],
                       .lse = e->v[back ? ls_in(g, n, 2).i : ls_out(g, n, 1).i]};
    double **const in[] = {&d.q, &d.k, &d.v}, **const out[] = {&d.dq, &d.dk, &d.dv};
    for (int k = 0; k < 3; k++) {
        *in[k] = e->v[ls_in(g, n, ls_attention_heads(g, n, (LsAttentionPart)k).operand).i];
        *out[k] = back ? e->v[ls_out(g, n, joint ? 0 : k).i] : NULL;
    }
    d.dy = back ? e->v[ls_in(g, n, 0).i] : NULL;
    const LsValueId spans = ls_in(g, n, ls_attention_spans(g, n));
    d.spans = ls_is(spans) ? e->v[spans.i] : NULL;
    attention_reference(&d);
}

/* By net.def: token i of a row has the segment of token j if all numbers between are equal. */
static inline void eval_segments(Eval *e, LsNodeId n)
{
    const LsShape *s = ls_in_shape(e->g, n, 0);
    const int64_t tokens = s->dim[1];
    double *spans = e->v[ls_out(e->g, n, 0).i], *places = e->v[ls_out(e->g, n, 1).i];
    for (int64_t at = 0; at < ls_count(s); at++) {
        const double *x = e->v[ls_in(e->g, n, 0).i] + at / tokens * tokens;
        int64_t first = at % tokens, end = first + 1;
        while (first > 0 && x[first - 1] == x[at % tokens])
            first--;
        while (end < tokens && x[end] == x[at % tokens])
            end++;
        spans[2 * at] = (double)first, spans[2 * at + 1] = (double)end;
        places[at] = (double)(at % tokens - first);
    }
}

static inline void eval_node(Eval *e, LsNodeId n)
{
    const LsGraph *g = e->g;
    LsKernelId kernel = ls_op[g->node[n.i].op]->kernel;
    switch (kernel) {
    case LS_K_MAP: case LS_K_REDUCE: eval_pointwise(e, n); return;
    case LS_K_CONV: eval_conv(e, n); return;
    case LS_K_MATMUL: eval_matmul(e, n); return;
    case LS_K_POOL: eval_pool(e, n); return;
    case LS_K_SOFTMAX: eval_softmax(e, n); return;
    case LS_K_NORM: eval_layer_norm(e, n); return;
    case LS_K_ATTENTION: eval_attention(e, n); return;
    case LS_K_UPDATE: eval_update(e, n); return;
    default: break;
    }
    if (move_node(g, e->v, n) || index_node(g, e->v, n) || sample_node(g, e->v, n)
        || roi_node(g, e->v, n))
        return;
    switch (g->node[n.i].op) {
    case LS_OP_XENT: case LS_OP_NLL: eval_class_loss(e, n); return;
    case LS_OP_XENT_SUM: case LS_OP_LABEL_WEIGHT: eval_class_sums(e, n); return;
    case LS_OP_XENT_GRAD: case LS_OP_NLL_GRAD: eval_class_grad(e, n); return;
    case LS_OP_REGRESSION_LOSS: case LS_OP_REGRESSION_GRAD: eval_regression(e, n); return;
    case LS_OP_RESHAPE: case LS_OP_EITHER:
        memcpy(e->v[ls_out(g, n, 0).i], e->v[ls_in(g, n, 0).i],
               (size_t)ls_count(ls_in_shape(g, n, 0)) * sizeof(double));
        return;
    case LS_OP_SEGMENTS: eval_segments(e, n); return;
    case LS_OP_NOP: return;
    default: ck_abort_msg("tests/support/eval.h does not run %s", ls_op[g->node[n.i].op]->name);
    }
}

/* Nodes first..end-1 in order. */
static inline void eval_run(Eval *e, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++)
        eval_node(e, (LsNodeId){i});
}

#endif
