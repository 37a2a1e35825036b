/* tests/differential/sample_net.c -- see the header. */
#include "tests/differential/sample_net.h"

#include "compiler/ops/normalize.h"
#include "compiler/ops/window.h"
#include "compiler/passes/passes.h"

#include <math.h>
#include <stdio.h>

/* The network while it grows. y: the value so far. */
typedef struct Build {
    Net *net;
    LsGraph *g;
    LsValueId y, table, square, factor; /* weights that were used before; none */
    int leaves;
} Build;

static float *numbers(Build *b, int64_t n, double scale)
{
    float *v = ls_arena_alloc(b->net->cx.arena, (size_t)n + 1, sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)(net_real(b->net, -1, 1) * scale);
    return v;
}

static LsValueId leaf(Build *b, LsValueKind kind, LsType type, LsShape s, const void *data)
{
    const char *name =
        ls_arena_printf(b->net->cx.arena, "%s%d", kind == LS_V_INPUT ? "x" : "w", b->leaves++);
    if (kind == LS_V_CONST)
        return ls_const_add(&b->net->cx, b->g, type, &s, data);
    const LsValueId v =
        ls_value_add(&b->net->cx, b->g, kind, name, type, &s, kind == LS_V_INPUT ? NULL : data);
    if (kind == LS_V_INPUT) {
        b->net->input[b->g->ninput] = data;
        b->g->input[b->g->ninput++] = v;
    }
    return v;
}

static LsValueId param(Build *b, LsShape s)
{
    const int64_t n = ls_count(&s), last = s.rank > 0 ? s.dim[s.rank - 1] : 1;
    return leaf(b, LS_V_PARAM, LS_REAL, s,
                numbers(b, n, 1.5 / sqrt((double)(s.rank > 1 ? last : 1))));
}

static LsShape shape(const Build *b) { return *ls_shape(b->g, b->y); }
static bool one_in(Build *b, uint32_t n) { return net_one_in(b->net, n); }

static LsValueId node2(Build *b, LsOpCode op, LsValueId x, LsValueId y)
{
    return ls_append2(&b->net->cx, b->g, op, x, y, NULL);
}

/* ---- layers ---- */

static void activation(Build *b)
{
    static const LsOpCode op[] = {LS_OP_RELU, LS_OP_TANH, LS_OP_SIGMOID, LS_OP_RELU};
    if (!one_in(b, 4))
        b->y = ls_append1(&b->net->cx, b->g, op[net_roll(b->net, 4)], b->y, NULL);
}

static void dense(Build *b, int64_t to);

/* All rows of all samples in one matrix. */
static void dense_by_rows(Build *b, int64_t to)
{
    LsShape s = shape(b);
    b->y = ls_reshape(&b->net->cx, b->g, b->y, &(LsShape){2, {s.dim[0] * s.dim[1], s.dim[2]}});
    dense(b, to);
    s.dim[2] = to;
    b->y = ls_reshape(&b->net->cx, b->g, b->y, &s);
}

/* A product over the last axis, mostly with a bias; sometimes times a factor, with a weight that
 * was there before. */
static void dense(Build *b, int64_t to)
{
    static const double alpha[] = {1, 1, 0.5, 0.7, 1.3};
    const LsShape s = shape(b);
    if (s.rank == 3 && one_in(b, 2)) {
        dense_by_rows(b, to);
        return;
    }
    const int64_t from = s.dim[s.rank - 1];
    LsAttr at = {.gemm = {.alpha = alpha[net_roll(b->net, 5)], .trans_b = one_in(b, 2)}};
    LsShape w = {2, {from, to}};
    if (at.gemm.trans_b)
        w = (LsShape){2, {to, from}};
    const bool same = ls_is(b->square) && from == to && ls_shape(b->g, b->square)->dim[0] == from;
    const LsValueId by = same ? b->square : param(b, w), bias = param(b, (LsShape){1, {to}});
    if (from == to && !ls_is(b->square))
        b->square = by;
    if (s.rank == 2 && one_in(b, 3)) {
        b->y = ls_append3(&b->net->cx, b->g, LS_OP_MATMUL, b->y, by, bias, &at);
        return;
    }
    b->y = ls_append2(&b->net->cx, b->g, LS_OP_MATMUL, b->y, by, &at);
    if (!one_in(b, 3))
        b->y = node2(b, LS_OP_ADD, b->y, bias);
}

/* The last axis times a vector, which may have been used before. */
static void gain(Build *b)
{
    const LsShape s = shape(b);
    const int64_t n = s.dim[s.rank - 1];
    if (!ls_is(b->factor) || ls_shape(b->g, b->factor)->dim[0] != n)
        b->factor = param(b, (LsShape){1, {n}});
    b->y = node2(b, LS_OP_MUL, b->y, b->factor);
}

static void layer_norm(Build *b)
{
    const LsShape s = shape(b), n = {1, {s.dim[s.rank - 1]}};
    const LsValueId scale = param(b, n), bias = param(b, n);
    b->y = ls_append3(&b->net->cx, b->g, LS_OP_LAYER_NORM, b->y, scale, bias,
                      &(LsAttr){.norm = {s.rank - 1, 1e-3}});
}

/* Each channel of each image with its own statistics. */
static void instance_norm(Build *b)
{
    const LsShape s = shape(b), c = {1, {s.dim[1]}};
    const LsStats of = ls_stats(&b->net->cx, b->g, b->y, ((1u << s.rank) - 1) & ~3u, 1e-2);
    const LsValueId scale = ls_per_channel(&b->net->cx, b->g, param(b, c), s.rank);
    b->y = ls_normalized(&b->net->cx, b->g, b->y, &of, scale,
                         ls_per_channel(&b->net->cx, b->g, param(b, c), s.rank));
}

/* A row that every sample has of its own: a constant, or trained. */
static void own_row(Build *b)
{
    const LsShape s = shape(b);
    LsShape w = s;
    w.dim[s.rank - 1] = 3;
    const LsValueId rows = leaf(b, one_in(b, 3) ? LS_V_PARAM : LS_V_CONST, LS_REAL, w,
                                numbers(b, ls_count(&w), one_in(b, 4) ? 0 : 1));
    const LsValueId by = param(b, (LsShape){2, {3, s.dim[s.rank - 1]}});
    const LsAttr at = {.gemm = {.alpha = one_in(b, 2) ? 1 : 0.7}};
    b->y = node2(b, LS_OP_ADD, b->y, ls_append2(&b->net->cx, b->g, LS_OP_MATMUL, rows, by, &at));
}

static void attention(Build *b)
{
    const LsShape s = shape(b);
    const LsValueId x = b->y;
    LsValueId of[3];
    for (int k = 0; k < 3; k++) {
        b->y = x;
        dense(b, s.dim[2]);
        of[k] = b->y;
    }
    const LsAttr scores = {.gemm = {.alpha = 1 / sqrt((double)s.dim[2]), .trans_b = true}},
                 plain = {.gemm = {.alpha = 1}};
    LsValueId p = ls_append2(&b->net->cx, b->g, LS_OP_MATMUL, of[0], of[1], &scores);
    p = ls_append1(&b->net->cx, b->g, LS_OP_SOFTMAX, p, &(LsAttr){.axis = {2}});
    b->y = node2(b, LS_OP_ADD, x, ls_append2(&b->net->cx, b->g, LS_OP_MATMUL, p, of[2], &plain));
}

static void conv(Build *b)
{
    static const int64_t few[] = {1, 2, 3, 4, 6};
    const LsShape s = shape(b);
    const int64_t c = s.dim[1];
    LsAttr at = {.window = {.n = s.rank - 2,
                            .group = one_in(b, 3) ? (one_in(b, 2) ? c
                                                     : c % 2 == 0 ? 2
                                                                  : 1)
                                                  : 1}};
    LsShape f = {.rank = s.rank,
                 .dim = {at.window.group * few[net_roll(b->net, at.window.group > 1 ? 2 : 5)],
                         c / at.window.group}};
    for (int d = 0; d < at.window.n; d++) {
        LsWindowAttr *w = &at.window;
        w->kernel[d] = f.dim[2 + d] = one_in(b, 3) ? 1 : net_between(b->net, 2, 3);
        w->stride[d] = one_in(b, 3) ? 2 : 1;
        w->dilation[d] = one_in(b, 2) ? 2 : 1;
        w->pad_lo[d] = ls_window_span(w, d) / 2;
        w->pad_hi[d] = one_in(b, 3) ? w->pad_lo[d] + 1 : w->pad_lo[d];
    }
    LsValueId w = param(b, f);
    if (one_in(b, 4))           /* filters that are computed */
        w = node2(b, LS_OP_MUL, w, param(b, (LsShape){.rank = f.rank, .dim = {f.dim[0], 1, 1, 1}}));
    const LsValueId in[] = {b->y, w, param(b, (LsShape){1, {f.dim[0]}})};
    b->y = ls_append(&b->net->cx, b->g, LS_OP_CONV, one_in(b, 2) ? 3 : 2, in, &at);
}

static void pool(Build *b)
{
    const LsShape s = shape(b);
    LsAttr at = {.window = {.n = s.rank - 2, .group = 1}};
    for (int d = 0; d < at.window.n; d++) {
        at.window.kernel[d] = at.window.stride[d] = s.dim[2 + d] > 3 ? 2 : 1;
        at.window.dilation[d] = 1;
        at.window.x_dim[d] = s.dim[2 + d] / at.window.stride[d];
    }
    b->y = ls_append1(&b->net->cx, b->g, one_in(b, 2) ? LS_OP_MAX_POOL : LS_OP_AVERAGE_POOL, b->y,
                      &at);
}

static void flatten(Build *b)
{
    const LsShape s = shape(b);
    b->y = ls_reshape(&b->net->cx, b->g, b->y, &(LsShape){2, {s.dim[0], ls_count(&s) / s.dim[0]}});
}

static void grow(Build *b)
{
    static const int64_t width[] = {3, 4, 5, 8, 12};
    const LsShape s = shape(b);
    if (s.rank == 4) {
        switch (net_roll(b->net, 6)) {
        case 0: pool(b); return;
        case 1: instance_norm(b); return;
        default: conv(b); activation(b); return;
        }
    }
    const LsValueId x = b->y;
    switch (net_roll(b->net, 8)) {
    case 0: layer_norm(b); return;
    case 1: gain(b); return;
    case 2: own_row(b); return;
    case 3: if (s.rank == 3) { attention(b); return; }    /* fall through */
    case 4: dense(b, s.dim[s.rank - 1]); activation(b); b->y = node2(b, LS_OP_ADD, x, b->y); return;
    default: dense(b, width[net_roll(b->net, 5)]); activation(b); return;
    }
}

/* ---- beginning and end ---- */

static int64_t *integers(Build *b, int64_t n, int64_t below)
{
    int64_t *v = ls_arena_alloc(b->net->cx.arena, (size_t)n, sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = net_roll(b->net, (uint32_t)below);
    return v;
}

static void begin(Build *b)
{
    const int64_t n = b->g->batch;
    LsShape s = {2, {n, net_between(b->net, 3, 9)}};
    switch (net_roll(b->net, 7)) {
    case 0:
    case 1:
    case 2:
        s = (LsShape){
            4,
            {n, net_between(b->net, 1, 4), net_between(b->net, 4, 7), net_between(b->net, 4, 7)}};
        break;
    case 3: s = (LsShape){3, {n, net_between(b->net, 2, 6), net_between(b->net, 3, 8)}}; break;
    case 4: case 5: {
        const LsShape ids = {2, {n, net_between(b->net, 2, 8)}},
                      t = {2, {net_between(b->net, 4, 11), net_between(b->net, 3, 8)}};
        const LsValueId x = leaf(b, LS_V_INPUT, LS_I64, ids, integers(b, ls_count(&ids), t.dim[0]));
        b->table = param(b, t);
        b->y = ls_append2(&b->net->cx, b->g, LS_OP_GATHER, b->table, x,
                          &(LsAttr){.gather = {.axis = 0}});
        return;
    }
    default: break;
    }
    b->y = leaf(b, LS_V_INPUT, LS_REAL, s, numbers(b, ls_count(&s), 1));
}

/* A cross-entropy over classes, those of the table if it fits, or an error. */
static bool end(Build *b)
{
    LsLossOptions loss = {.kind = one_in(b, 4) ? LS_LOSS_MSE : LS_LOSS_CE, .axis = -1};
    if (shape(b).rank == 4 || (shape(b).rank == 3 && one_in(b, 2)))
        flatten(b);
    if (ls_is(b->table) && shape(b).rank == 3 && one_in(b, 2))
        dense(b, ls_shape(b->g, b->table)->dim[1]);
    const LsShape s = shape(b);
    const bool tied =
        ls_is(b->table) && ls_shape(b->g, b->table)->dim[1] == s.dim[s.rank - 1] && !one_in(b, 4);
    if (tied)
        b->y = ls_append2(&b->net->cx, b->g, LS_OP_MATMUL, b->y, b->table,
                          &(LsAttr){.gemm = {.alpha = 1, .trans_b = true}});
    else
        dense(b, net_between(b->net, 2, 6));
    const uint32_t before = b->g->ninput;
    b->g->output[b->g->noutput++] = b->y;
    const LsShape y = shape(b);
    if (!ls_loss(&b->net->cx, b->g, &loss))
        return false;
    const LsShape *label = ls_shape(b->g, b->g->input[before]);
    b->net->input[before] = loss.kind == LS_LOSS_CE
                                ? (const void *)integers(b, ls_count(label), y.dim[y.rank - 1])
                                : numbers(b, ls_count(label), 1);
    return true;
}

Net *sample_net_new(uint64_t seed)
{
    LsArena *arena = ls_arena_new();
    Net *net = ls_arena_alloc(arena, 1, sizeof *net);
    net->cx = (LsCtx){.arena = arena, .log = fopen("/dev/null", "w"), .quiet = true};
    net->dice.state = seed * UINT64_C(0x9e3779b97f4a7c15) + 54321;
    for (int k = 0; k < 8; k++)
        net_roll(net, 2);
    LsGraph *g = net->a = ls_graph_new(&net->cx);
    g->batch = net_between(net, 2, 4);
    g->training = true;
    g->input = ls_arena_alloc(arena, NET_INPUTS, sizeof *g->input);
    g->output = ls_arena_alloc(arena, 8, sizeof *g->output);
    Build b = {.net = net, .g = g};
    begin(&b);
    for (int64_t layers = net_between(net, 1, 4); layers > 0; layers--) {
        const LsValueId was = b.y;
        grow(&b);
        b.y = ls_is(b.y) ? b.y : was;
    }
    g->objective.loss = end(&b) ? g->objective.loss : (LsValueId){0};
    return net;
}
