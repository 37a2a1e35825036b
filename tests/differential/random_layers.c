/* tests/differential/random_layers.c -- norms, windows, products, attention. */
#include "tests/differential/random_ops.h"

#include "compiler/ops/attention_shape.h"
#include "compiler/ops/normalize.h"
#include "compiler/ops/window.h"

#include <math.h>

static const Twin none;

/* ---- rows and channels ---- */
Twin grow_softmax(Net *net)
{
    Twin x = net_pick_rank(net, 1, 4);
    if (!net_is(x))
        return none;
    return net_append1(net, net_one_in(net, 2) ? LS_OP_SOFTMAX : LS_OP_LOG_SOFTMAX, x,
                       &(LsAttr){.axis = {some_axis(net, net_shape(net, x))}});
}

Twin grow_layer_norm(Net *net)
{
    Twin x = net_pick_rank(net, 1, 4);
    if (!net_is(x))
        return none;
    const LsShape s = *net_shape(net, x);
    const int axis = net_one_in(net, 3) ? some_axis(net, &s) : s.rank - 1;
    LsShape over = {.rank = s.rank - axis};
    memcpy(over.dim, s.dim + axis, (size_t)over.rank * sizeof *over.dim);
    Twin scale = net_leaf(net, over), bias = net_param(net, over);
    return net_append(net, LS_OP_LAYER_NORM, net_one_in(net, 3) ? 2 : 3, (Twin[]){x, scale, bias},
                      &(LsAttr){.norm = {axis, 1e-3}});
}

/* With batch statistics, which a running statistic may follow; or the norm of groups. */
Twin grow_batch_norm(Net *net)
{
    Twin x = net_pick_rank(net, 3, 4);
    if (!net_is(x))
        return none;
    const LsShape s = *net_shape(net, x), c = {1, {s.dim[1]}};
    const uint32_t axes =
        net_one_in(net, 5) ? some_axes(net, &s) & ~3u : ((1u << s.rank) - 1) & ~2u;
    if (axes == 0)
        return none;
    Twin scale = net_param(net, c), bias = net_param(net, c), run = net_state(net, c, true), y;
    const bool follows = net_one_in(net, 2) && (axes & 1);
    LsStats of[2];
    for (int k = 0; k < 2; k++) {
        LsGraph *g = k == 0 ? net->a : net->b;
        of[k] = ls_stats(&net->cx, g, k == 0 ? x.a : x.b, axes, 1e-2);
        LsValueId w = ls_per_channel(&net->cx, g, k == 0 ? scale.a : scale.b, s.rank);
        LsValueId v = ls_normalized(&net->cx, g, k == 0 ? x.a : x.b, &of[k], w,
                                    ls_per_channel(&net->cx, g, k == 0 ? bias.a : bias.b, s.rank));
        *(k == 0 ? &y.a : &y.b) = v;
        if (follows && g->training)
            ls_append2(&net->cx, g, LS_OP_RUNNING_STAT, k == 0 ? run.a : run.b, of[k].mean,
                       &(LsAttr){.update = {.hyper.momentum = 0.9, .sum.scale = 0.1}});
    }
    return net_append1(net, net_one_in(net, 2) ? LS_OP_RELU : LS_OP_NEG, y, NULL);
}

/* ---- windows ---- */
static Twin image(Net *net)
{
    Twin x = net_pick_rank(net, 3, net_one_in(net, 6) ? 5 : 4);
    return x;
}

Twin grow_conv(Net *net)
{
    Twin x = image(net);
    if (!net_is(x))
        return none;
    const LsShape s = *net_shape(net, x);
    LsAttr at = {.window = {.n = s.rank - 2, .group = 1}};
    LsShape f = {.rank = s.rank};
    const int64_t c = s.dim[1], few[] = {1, 2, 3, 4, 8, 9, 16, 19, 32};
    if (net_one_in(net, 4))
        at.window.group = net_one_in(net, 2) ? c : c % 2 == 0 ? 2 : c % 3 == 0 ? 3 : 1;
    f.dim[0] = at.window.group * few[net_roll(net, at.window.group > 1 ? 3 : 9)];
    f.dim[1] = c / at.window.group;
    const bool same = net_one_in(net, 2); /* the usual windows of networks */
    for (int d = 0; d < at.window.n; d++) {
        LsWindowAttr *w = &at.window;
        w->kernel[d] = f.dim[2 + d] = same ? (net_one_in(net, 2) ? 3 : 1) : net_between(net, 1, 4);
        w->stride[d] = net_one_in(net, 3) ? 2 : same ? 1 : net_between(net, 1, 3);
        w->dilation[d] = net_one_in(net, 5) ? 2 : 1;
        w->pad_lo[d] = same ? ls_window_span(w, d) / 2 : net_between(net, 0, 2);
        w->pad_hi[d] = same ? w->pad_lo[d] : net_between(net, 0, 2);
    }
    if (ls_count(&f) > 6000)
        return none;
    Twin in[3] = {x, net_one_in(net, 8) ? net_leaf(net, f) : net_param(net, f),
                  net_param(net, (LsShape){1, {f.dim[0]}})};
    return net_append(net, LS_OP_CONV, net_one_in(net, 2) ? 3 : 2, in, &at);
}

Twin grow_conv_transpose(Net *net)
{
    Twin x = image(net);
    if (!net_is(x))
        return none;
    const LsShape s = *net_shape(net, x);
    LsAttr at = {.window = {.n = s.rank - 2, .group = 1}};
    const int64_t few[] = {1, 2, 3, 4, 8};
    if (net_one_in(net, 4))
        at.window.group = net_one_in(net, 2) ? s.dim[1] : s.dim[1] % 2 == 0 ? 2 : 1;
    LsShape f = {.rank = s.rank, .dim = {s.dim[1], few[net_roll(net, 5)]}};
    for (int d = 0; d < at.window.n; d++) {
        LsWindowAttr *w = &at.window;
        w->kernel[d] = f.dim[2 + d] = net_between(net, 1, 4);
        w->stride[d] = net_between(net, 1, 3);
        w->dilation[d] = net_one_in(net, 5) ? 2 : 1;
        w->pad_lo[d] = net_between(net, 0, 1);
        w->pad_hi[d] = net_between(net, 0, 1);
        w->x_dim[d] = (s.dim[2 + d] - 1) * w->stride[d] + ls_window_span(w, d) - w->pad_lo[d] -
                      w->pad_hi[d] + net_roll(net, (uint32_t)w->stride[d]);
        if (w->x_dim[d] < 1)
            return none;
    }
    if (ls_count(&f) > 6000)
        return none;
    Twin in[3] = {x, net_param(net, f), net_param(net, (LsShape){1, {f.dim[1] * at.window.group}})};
    return net_append(net, LS_OP_CONV_DX, net_one_in(net, 2) ? 3 : 2, in, &at);
}

Twin grow_pool(Net *net)
{
    Twin x = image(net);
    if (!net_is(x))
        return none;
    const LsShape s = *net_shape(net, x);
    LsAttr at = {.window = {.n = s.rank - 2, .group = 1, .count_pad = net_one_in(net, 2)}};
    for (int d = 0; d < at.window.n; d++) {
        LsWindowAttr *w = &at.window;
        w->kernel[d] = net_between(net, 1, s.dim[2 + d] < 3 ? s.dim[2 + d] : 3);
        w->stride[d] = net_one_in(net, 2) ? w->kernel[d] : net_between(net, 1, 3);
        w->dilation[d] = net_one_in(net, 6) ? 2 : 1;
        w->pad_lo[d] =
            w->dilation[d] > 1 || net_one_in(net, 2) ? 0 : net_between(net, 0, w->kernel[d] / 2);
        w->pad_hi[d] =
            w->dilation[d] > 1 || net_one_in(net, 2) ? 0 : net_between(net, 0, w->kernel[d] / 2);
        w->x_dim[d] = ls_window_places(w, d, s.dim[2 + d], net_one_in(net, 4));
        if (w->x_dim[d] < 1 || (w->x_dim[d] - 1) * w->stride[d] - w->pad_lo[d] >= s.dim[2 + d])
            return none;
    }
    return net_append1(net, net_one_in(net, 2) ? LS_OP_MAX_POOL : LS_OP_AVERAGE_POOL, x, &at);
}

/* ---- products ---- */
Twin grow_matmul(Net *net)
{
    Twin x = net_pick_rank(net, 2, net_one_in(net, 3) ? 4 : 2), in[3] = {x};
    if (!net_is(x))
        return none;
    const LsShape s = *net_shape(net, x);
    LsAttr at = {.gemm = {.alpha = net_one_in(net, 4) ? 0.5 : 1,
                          .trans_a = net_one_in(net, 5),
                          .trans_b = net_one_in(net, 2)}};
    const int64_t inner = s.dim[s.rank - 1 - at.gemm.trans_a], few[] = {1, 2, 3, 5, 8, 16, 17, 33};
    LsShape w = {.rank = 2};
    if (net_one_in(net, 4)) {
        w.rank = s.rank;
        for (int k = 0; k < s.rank - 2; k++)
            w.dim[k] = net_one_in(net, 2) ? 1 : s.dim[k];
    }
    const int64_t n = few[net_roll(net, 8)];
    w.dim[w.rank - 1 - at.gemm.trans_b] = n;
    w.dim[w.rank - 2 + at.gemm.trans_b] = inner;
    in[1] = net_param(net, w);
    if (net_one_in(net, 4)) { /* with itself */
        in[1] = x;
        at.gemm.trans_b = !at.gemm.trans_a;
    }
    if (net_one_in(net, 5)) { /* by way of a transposition that the product can take over */
        int perm[LS_MAX_RANK];
        const int rank = net_shape(net, in[1])->rank;
        for (int k = 0; k < rank; k++)
            perm[k] = k < rank - 2 ? k : 2 * rank - 3 - k;
        in[1] = (Twin){ls_transpose(&net->cx, net->a, in[1].a, perm),
                       ls_transpose(&net->cx, net->b, in[1].b, perm)};
        at.gemm.trans_b = !at.gemm.trans_b;
    }
    const LsShape *b = net_shape(net, in[1]);
    const int64_t columns = b->dim[b->rank - 1 - at.gemm.trans_b];
    in[2] = net_param(net, (LsShape){1, {columns}});
    Twin y = net_append(net, LS_OP_MATMUL, net_one_in(net, 3) ? 3 : 2, in, &at);
    return net_is(y) && net_one_in(net, 3)
               ? binary(net, LS_OP_ADD, y, net_param(net, (LsShape){1, {columns}}))
               : y;
}

static Twin heads_of(Net *net, int64_t n, int64_t h, int64_t t, int64_t d, bool by_token)
{
    LsShape s = by_token ? (LsShape){4, {n, t, h, d}} : (LsShape){4, {n, h, t, d}};
    for (int tries = 0; tries < 3; tries++) {
        Twin x = net_pick(net);
        if (ls_count(net_shape(net, x)) == ls_count(&s))
            return net_reshape(net, x, s);
    }
    return net_append1(net, LS_OP_TANH, net_leaf(net, s), NULL);
}

Twin grow_attention(Net *net)
{
    const int64_t n = net_between(net, 1, 2), g = net_between(net, 1, 2),
                  h = g * net_between(net, 1, 2);
    const int64_t t = net_between(net, 1, 7), s = net_one_in(net, 2) ? t : net_between(net, 1, 9);
    const int64_t few[] = {1, 3, 4, 8, 16}, d = few[net_roll(net, 5)],
                  e = net_one_in(net, 2) ? d : few[net_roll(net, 5)];
    LsAttr at = {.attention = {.scale = 1 / sqrt((double)d),
                               .by_token = net_one_in(net, 2) ? 0 : net_roll(net, 16),
                               .causal = net_one_in(net, 3),
                               .past = net_one_in(net, 2) ? 0 : net_between(net, 0, 2)}};
    Twin in[4] = {heads_of(net, n, h, t, d, at.attention.by_token & LS_Q_BY_TOKEN),
                  heads_of(net, n, g, s, d, at.attention.by_token & LS_K_BY_TOKEN),
                  heads_of(net, n, g, s, e, at.attention.by_token & LS_V_BY_TOKEN)};
    const LsShape mask = {
        4, {net_one_in(net, 2) ? 1 : n, net_one_in(net, 2) ? 1 : h, net_one_in(net, 3) ? 1 : t, s}};
    float *v = ls_arena_alloc(net->cx.arena, (size_t)ls_count(&mask), sizeof *v);
    for (int64_t i = 0; i < ls_count(&mask); i++)
        v[i] = net_one_in(net, 4) ? -1e4f : (float)net_real(net, -1, 1);
    bool masked = net_one_in(net, 3);
    if (masked)
        in[3] = (Twin){ls_const_add(&net->cx, net->a, LS_REAL, &mask, v),
                       ls_const_add(&net->cx, net->b, LS_REAL, &mask, v)};
    return net_is(in[0]) && net_is(in[1]) && net_is(in[2])
               ? net_append(net, LS_OP_ATTENTION, 3 + masked, in, &at)
               : none;
}

/* Products and a softmax, which ls_patterns makes into one node. */
Twin grow_open_attention(Net *net)
{
    const int64_t n = net_between(net, 1, 2), h = net_between(net, 1, 3),
                  t = net_between(net, 2, 6), d = net_between(net, 2, 8);
    const LsAttr plain = {.gemm = {.alpha = 1}};
    Twin q = heads_of(net, n, h, t, d, false), k = heads_of(net, n, h, t, d, false),
         v = heads_of(net, n, h, t, d, false);
    if (!net_is(q) || !net_is(k) || !net_is(v))
        return none;
    if (net_one_in(net, 2))
        q = binary(net, LS_OP_MUL, q, number(net, 0.5));
    k = net_append1(net, LS_OP_TRANSPOSE, k, &(LsAttr){.perm = {{0, 1, 3, 2}}});
    Twin s = net_append2(net, LS_OP_MATMUL, q, k, &plain);
    if (net_one_in(net, 2))
        s = binary(net, LS_OP_DIV, s, number(net, sqrt((double)d)));
    if (net_one_in(net, 2))
        s = binary(net, LS_OP_ADD, s, net_leaf(net, (LsShape){2, {t, t}}));
    s = net_append1(net, LS_OP_SOFTMAX, s, &(LsAttr){.axis = {3}});
    Twin y = net_append2(net, LS_OP_MATMUL, s, v, &plain);
    return net_is(y) && net_one_in(net, 2)
               ? net_append1(net, LS_OP_TRANSPOSE, y, &(LsAttr){.perm = {{0, 2, 1, 3}}})
               : y;
}

/* A recurrence over slices with one weight. */
Twin grow_recurrence(Net *net)
{
    Twin x = net_pick_rank(net, 3, 3);
    if (!net_is(x))
        return none;
    const LsShape s = *net_shape(net, x);
    const LsAttr plain = {.gemm = {.alpha = 1}};
    Twin w = net_param(net, (LsShape){2, {s.dim[2], s.dim[2]}}),
         h = net_leaf(net, (LsShape){2, {s.dim[1], s.dim[2]}});
    for (int64_t t = 0; t < s.dim[0] && t < 4 && net_is(h); t++) {
        Twin at = {ls_slice_axis(&net->cx, net->a, x.a, 0, t, t + 1),
                   ls_slice_axis(&net->cx, net->b, x.b, 0, t, t + 1)};
        at = net_reshape(net, at, (LsShape){2, {s.dim[1], s.dim[2]}});
        h = net_append1(net, LS_OP_TANH,
                        binary(net, LS_OP_ADD, at, net_append2(net, LS_OP_MATMUL, h, w, &plain)),
                        NULL);
        if (net_one_in(net, 3))
            net_offer(net, h);
    }
    return h;
}

/* x plus what a few operators make of it. */
Twin grow_residual(Net *net)
{
    Twin x = net_pick_rank(net, 2, 4), y;
    if (!net_is(x))
        return none;
    const int64_t c = net_shape(net, x)->dim[net_shape(net, x)->rank - 1];
    Twin w = net_param(net, (LsShape){2, {c, c}});
    y = net_append(
        net, LS_OP_LAYER_NORM, 3,
        (Twin[]){x, net_param(net, (LsShape){1, {c}}), net_param(net, (LsShape){1, {c}})},
        &(LsAttr){.norm = {net_shape(net, x)->rank - 1, 1e-2}});
    if (net_one_in(net, 3) || !net_is(y))
        y = x;
    y = net_append2(net, LS_OP_MATMUL, y, w, &(LsAttr){.gemm = {.alpha = 1}});
    y = net_append1(net, net_one_in(net, 2) ? LS_OP_GELU : LS_OP_RELU, y, NULL);
    return binary(net, LS_OP_ADD, x, y);
}
