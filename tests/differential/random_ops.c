/* tests/differential/random_ops.c -- the operators that a random graph is made of. */
#include "tests/differential/random_net.h"

#include "compiler/ops/attention_shape.h"
#include "compiler/ops/normalize.h"
#include "compiler/ops/window.h"

#include <math.h>

static const Twin none;

static int some_axis(Net *net, const LsShape *s) { return (int)net_roll(net, (uint32_t)s->rank); }

static Twin number(Net *net, double v)
{
    return (Twin){ls_const_real(&net->cx, net->a, v), ls_const_real(&net->cx, net->b, v)};
}

static Twin binary(Net *net, LsOpCode op, Twin x, Twin y) { return net_append2(net, op, x, y, NULL); }

/* ---- pointwise ---- */
static Twin within(Net *net, Twin x, double least, double most)
{
    double lo, hi;
    net_range(net, x, &lo, &hi);
    if (lo >= least && hi <= most)
        return x;
    if (isfinite(most)) {       /* into the interval by tanh */
        x = binary(net, LS_OP_MUL, net_append1(net, LS_OP_TANH, x, NULL), number(net, (most - least) / 2 * 0.98));
        return binary(net, LS_OP_ADD, x, number(net, (most + least) / 2));
    }
    return binary(net, LS_OP_ADD, binary(net, LS_OP_MUL, x, x), number(net, least + 0.1));
}

static Twin unary(Net *net)
{
    static const struct { LsOpCode op; double least, most, a, b; } row[] = {
        {LS_OP_NEG, -INFINITY, INFINITY, 0, 0},          {LS_OP_RELU, -INFINITY, INFINITY, 0, 0},
        {LS_OP_RELU, -INFINITY, INFINITY, 0, 0},         {LS_OP_LEAKY_RELU, -INFINITY, INFINITY, 0.1, 0},
        {LS_OP_LEAKY_RELU, -INFINITY, INFINITY, -0.2, 0}, {LS_OP_HARD_SIGMOID, -INFINITY, INFINITY, 0.2, 0.5},
        {LS_OP_HARD_SWISH, -INFINITY, INFINITY, 0, 0},   {LS_OP_SIGMOID, -INFINITY, INFINITY, 0, 0},
        {LS_OP_TANH, -INFINITY, INFINITY, 0, 0},         {LS_OP_SOFTPLUS, -INFINITY, INFINITY, 0, 0},
        {LS_OP_SOFTSIGN, -INFINITY, INFINITY, 0, 0},     {LS_OP_ELU, -INFINITY, INFINITY, 1, 0},
        {LS_OP_ELU, -INFINITY, INFINITY, 0.3, 0},        {LS_OP_ERF, -INFINITY, INFINITY, 0, 0},
        {LS_OP_GELU, -INFINITY, INFINITY, 0, 0},         {LS_OP_GELU_TANH, -INFINITY, INFINITY, 0, 0},
        {LS_OP_SIN, -INFINITY, INFINITY, 0, 0},          {LS_OP_COS, -INFINITY, INFINITY, 0, 0},
        {LS_OP_ATAN, -INFINITY, INFINITY, 0, 0},         {LS_OP_ASINH, -INFINITY, INFINITY, 0, 0},
        {LS_OP_ABS, -INFINITY, INFINITY, 0, 0},          {LS_OP_CLIP, -INFINITY, INFINITY, -0.5, 0.7},
        {LS_OP_CLIP, -INFINITY, INFINITY, 0, INFINITY},  {LS_OP_CEIL, -INFINITY, INFINITY, 0, 0},
        {LS_OP_FLOOR, -INFINITY, INFINITY, 0, 0},        {LS_OP_ROUND, -INFINITY, INFINITY, 0, 0},
        {LS_OP_SIGN, -INFINITY, INFINITY, 0, 0},         {LS_OP_DETACH, -INFINITY, INFINITY, 0, 0},
        {LS_OP_SQRT, 0.01, INFINITY, 0, 0},              {LS_OP_LOG, 0.01, INFINITY, 0, 0},
        {LS_OP_RECIPROCAL, 0.1, INFINITY, 0, 0},         {LS_OP_EXP, -40, 3, 0, 0},
        {LS_OP_TAN, -1.2, 1.2, 0, 0},                    {LS_OP_ASIN, -0.95, 0.95, 0, 0},
        {LS_OP_ACOS, -0.95, 0.95, 0, 0},                 {LS_OP_ATANH, -0.95, 0.95, 0, 0},
        {LS_OP_SINH, -3, 3, 0, 0},                       {LS_OP_COSH, -3, 3, 0, 0},
        {LS_OP_ACOSH, 1.05, INFINITY, 0, 0},             {LS_OP_DROPOUT, -INFINITY, INFINITY, 0.3, 0},
        {LS_OP_NORMAL, -INFINITY, INFINITY, 0, 0},
    };
    const uint32_t k = net_roll(net, sizeof row / sizeof *row);
    LsAttr at = {.scalar = {.a = row[k].a, .b = row[k].b}};
    if (row[k].op == LS_OP_DROPOUT || row[k].op == LS_OP_NORMAL)
        at.scalar.b = net->nleaf++;     /* a stream of its own */
    return net_append1(net, row[k].op, within(net, net_pick(net), row[k].least, row[k].most), &at);
}

/* A shape that broadcasts to s, in one direction or (of == true) in both. */
static LsShape beside(Net *net, LsShape s, bool grow)
{
    const uint32_t skip = net_one_in(net, 2) && s.rank > 0 ? net_roll(net, (uint32_t)s.rank + 1) : 0;
    LsShape to = {.rank = s.rank - (int)skip};
    for (int k = 0; k < to.rank; k++) {
        const int64_t d = s.dim[k + (int)skip];
        to.dim[k] = grow && d == 1 ? net_between(net, 1, 4) : net_one_in(net, 3) ? 1 : d;
    }
    if (grow && net_one_in(net, 5) && to.rank == s.rank && to.rank < 5) {
        memmove(&to.dim[1], &to.dim[0], (size_t)to.rank * sizeof *to.dim);
        to.dim[0] = net_between(net, 1, 3);
        to.rank++;
    }
    return to;
}

/* A second operand for x: of the pool where one fits. */
static Twin partner(Net *net, Twin x)
{
    const LsShape s = *net_shape(net, x);
    for (int tries = 0; tries < 4 && !net_one_in(net, 4); tries++) {
        LsShape all = s;
        Twin y = net_pick(net);
        if (ls_shape_broadcast(&all, net_shape(net, y)) && ls_count(&all) < 4000)
            return y;
    }
    return net_leaf(net, beside(net, s, net_one_in(net, 3)));
}

static Twin two(Net *net)
{
    static const LsOpCode op[] = {LS_OP_ADD, LS_OP_ADD, LS_OP_ADD, LS_OP_SUB, LS_OP_SUB, LS_OP_MUL, LS_OP_MUL, LS_OP_MUL,
                                  LS_OP_DIV, LS_OP_MIN, LS_OP_MAX, LS_OP_POW, LS_OP_PRELU, LS_OP_FLOOR_MOD, LS_OP_FMOD};
    const LsOpCode code = op[net_roll(net, sizeof op / sizeof *op)];
    Twin x = net_pick(net), y = partner(net, x);
    if (net_one_in(net, 3) && code != LS_OP_PRELU) {
        Twin t = x;
        x = y;
        y = t;
    }
    if (code == LS_OP_DIV || code == LS_OP_FLOOR_MOD || code == LS_OP_FMOD)
        y = within(net, y, 0.2, INFINITY);
    if (code == LS_OP_POW) {
        x = within(net, x, 0.05, INFINITY);
        y = net_one_in(net, 2) ? number(net, (double[]){2, 3, 0.5, -1, 1.5}[net_roll(net, 5)]) : within(net, y, -2, 2);
    }
    return binary(net, code, x, y);
}

static Twin condition(Net *net, Twin x)
{
    static const LsOpCode op[] = {LS_OP_GREATER, LS_OP_LESS, LS_OP_GREATER_EQUAL, LS_OP_LESS_EQUAL, LS_OP_EQUAL};
    static const LsOpCode join[] = {LS_OP_AND, LS_OP_OR, LS_OP_XOR};
    Twin c = binary(net, op[net_roll(net, 5)], x, partner(net, x));
    if (net_one_in(net, 4) && net_is(c))
        c = net_append1(net, LS_OP_NOT, c, NULL);
    if (net_one_in(net, 4) && net_is(c))
        c = binary(net, join[net_roll(net, 3)], c, binary(net, op[net_roll(net, 4)], x, number(net, net_real(net, -1, 1))));
    return c;
}

static Twin choose(Net *net)
{
    Twin x = net_pick(net), c = condition(net, x), y = partner(net, x);
    if (!net_is(c))
        return none;
    if (net_one_in(net, 4))
        return binary(net, LS_OP_MUL, net_append1(net, LS_OP_CAST, c, &(LsAttr){.cast = LS_REAL}), x);
    return net_is(y) ? net_append(net, LS_OP_WHERE, 3, (Twin[]){c, x, y}, NULL) : none;
}

static Twin expand(Net *net)
{
    Twin x = net_pick(net);
    LsShape s = *net_shape(net, x), to = s;
    for (int k = 0; k < s.rank; k++)
        to.dim[k] = s.dim[k] == 1 ? net_between(net, 1, 5) : s.dim[k];
    if (net_one_in(net, 3) && s.rank < 5) {
        memmove(&to.dim[1], &to.dim[0], (size_t)s.rank * sizeof *to.dim);
        to.dim[0] = net_between(net, 1, 4);
        to.rank++;
    }
    return net_append1(net, LS_OP_EXPAND, x, &(LsAttr){.shape = {to}});
}

/* ---- reductions and what is made of them ---- */
static Twin reduced(Net *net, LsOpCode op, Twin x, uint32_t axes)
{
    return net_append1(net, op, x, &(LsAttr){.reduce = {axes, true}});
}

static Twin dropped(Net *net, Twin y, uint32_t axes)
{
    if (!net_is(y))
        return y;
    const LsShape s = *net_shape(net, y);
    LsShape to = {0};
    for (int k = 0; k < s.rank; k++)
        if ((axes >> k & 1) == 0)
            to.dim[to.rank++] = s.dim[k];
    return net_reshape(net, y, to);
}

static uint32_t some_axes(Net *net, const LsShape *s) { return 1 + net_roll(net, (1u << s->rank) - 1); }

static Twin reduce(Net *net)
{
    static const LsOpCode op[] = {LS_OP_REDUCE_SUM, LS_OP_REDUCE_SUM, LS_OP_REDUCE_MEAN, LS_OP_REDUCE_MEAN, LS_OP_REDUCE_MAX,
                                  LS_OP_REDUCE_MIN, LS_OP_REDUCE_PROD, LS_OP_REDUCE_SUM_SQUARE};
    Twin x = net_pick_rank(net, 1, 5);
    if (!net_is(x))
        return none;
    const uint32_t axes = some_axes(net, net_shape(net, x));
    Twin y = reduced(net, op[net_roll(net, 8)], x, axes);
    return net_one_in(net, 2) ? dropped(net, y, axes) : y;
}

static Twin center(Net *net, Twin x, uint32_t axes) { return binary(net, LS_OP_SUB, x, reduced(net, LS_OP_REDUCE_MEAN, x, axes)); }

/* Softmax, logsumexp, standardisation and layer norms as exporters take them apart. */
static Twin taken_apart(Net *net)
{
    Twin x = net_pick_rank(net, 1, 4), y, z;
    if (!net_is(x))
        return none;
    const LsShape s = *net_shape(net, x);
    const uint32_t axes = net_one_in(net, 2) ? 1u << (s.rank - 1) : some_axes(net, &s);
    switch (net_roll(net, 5)) {
    case 0:
        y = net_append1(net, LS_OP_EXP, binary(net, LS_OP_SUB, x, reduced(net, LS_OP_REDUCE_MAX, x, axes)), NULL);
        return binary(net, LS_OP_DIV, y, reduced(net, LS_OP_REDUCE_SUM, y, axes));
    case 1:
        y = net_append1(net, LS_OP_EXP, within(net, x, -4, 4), NULL);
        return net_append1(net, LS_OP_LOG, reduced(net, LS_OP_REDUCE_SUM, y, axes), NULL);
    case 2:
        y = center(net, x, axes);
        z = reduced(net, LS_OP_REDUCE_MEAN, binary(net, LS_OP_MUL, y, y), axes);
        z = net_append1(net, LS_OP_SQRT, binary(net, LS_OP_ADD, z, number(net, 1e-3)), NULL);
        y = binary(net, LS_OP_DIV, y, z);
        if (!net_is(y) || net_one_in(net, 2))
            return y;
        y = binary(net, LS_OP_MUL, y, net_param(net, (LsShape){1, {s.dim[s.rank - 1]}}));
        return binary(net, LS_OP_ADD, y, net_param(net, (LsShape){1, {s.dim[s.rank - 1]}}));
    case 3:                     /* gelu */
        y = net_append1(net, LS_OP_ERF, binary(net, LS_OP_DIV, x, number(net, sqrt(2))), NULL);
        y = binary(net, LS_OP_ADD, y, number(net, 1));
        return binary(net, LS_OP_MUL, binary(net, LS_OP_MUL, x, y), number(net, 0.5));
    default:
        y = net_append1(net, LS_OP_SQRT, binary(net, LS_OP_ADD, reduced(net, LS_OP_REDUCE_SUM_SQUARE, x, axes),
                                                number(net, 1e-2)), NULL);
        return binary(net, LS_OP_DIV, x, y);
    }
}

static Twin softmax(Net *net)
{
    Twin x = net_pick_rank(net, 1, 4);
    if (!net_is(x))
        return none;
    return net_append1(net, net_one_in(net, 2) ? LS_OP_SOFTMAX : LS_OP_LOG_SOFTMAX, x,
                       &(LsAttr){.axis = {some_axis(net, net_shape(net, x))}});
}

static Twin layer_norm(Net *net)
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
static Twin batch_norm(Net *net)
{
    Twin x = net_pick_rank(net, 3, 4);
    if (!net_is(x))
        return none;
    const LsShape s = *net_shape(net, x), c = {1, {s.dim[1]}};
    const uint32_t axes = net_one_in(net, 5) ? some_axes(net, &s) & ~3u : ((1u << s.rank) - 1) & ~2u;
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
                       &(LsAttr){.update = {.momentum = 0.9, .scale = 0.1}});
    }
    return net_append1(net, net_one_in(net, 2) ? LS_OP_RELU : LS_OP_NEG, y, NULL);
}

/* ---- copies by index ---- */
static Twin reshape(Net *net)
{
    Twin x = net_pick(net);
    const LsShape s = *net_shape(net, x);
    LsShape to = s;
    if (s.rank >= 2 && net_one_in(net, 2)) {
        const int k = (int)net_roll(net, (uint32_t)s.rank - 1);
        to.dim[k] *= to.dim[k + 1];
        memmove(&to.dim[k + 1], &to.dim[k + 2], (size_t)(s.rank - k - 2) * sizeof *to.dim);
        to.rank--;
    } else if (s.rank < 5) {
        const int k = (int)net_roll(net, (uint32_t)s.rank + 1);
        memmove(&to.dim[k + 1], &to.dim[k], (size_t)(s.rank - k) * sizeof *to.dim);
        to.dim[k] = 1;
        to.rank++;
        for (int64_t f = 2; k + 1 < to.rank && f <= to.dim[k + 1] && to.dim[k] == 1; f++)
            if (to.dim[k + 1] % f == 0 && net_one_in(net, 2)) {
                to.dim[k] = f;
                to.dim[k + 1] /= f;
            }
    }
    return net_reshape(net, x, to);
}

static Twin transpose(Net *net)
{
    Twin x = net_pick_rank(net, 2, 5);
    if (!net_is(x))
        return none;
    const int rank = net_shape(net, x)->rank;
    LsAttr at = {0};
    for (int k = 0; k < rank; k++)
        at.perm.perm[k] = k;
    for (int k = rank - 1; k > 0; k--) {
        const int j = (int)net_roll(net, (uint32_t)k + 1), t = at.perm.perm[k];
        at.perm.perm[k] = at.perm.perm[j];
        at.perm.perm[j] = t;
    }
    if (net_one_in(net, 3)) {   /* the last two axes alone */
        for (int k = 0; k < rank; k++)
            at.perm.perm[k] = k;
        at.perm.perm[rank - 1] = rank - 2;
        at.perm.perm[rank - 2] = rank - 1;
    }
    return net_append1(net, LS_OP_TRANSPOSE, x, &at);
}

static Twin slice(Net *net)
{
    Twin x = net_pick_rank(net, 1, 4);
    if (!net_is(x))
        return none;
    const LsShape s = *net_shape(net, x);
    LsAttr at = {0};
    for (int k = 0; k < s.rank; k++) {
        const bool all = net_one_in(net, 2), back = net_one_in(net, 5);
        const int64_t lo = all ? 0 : net_between(net, 0, s.dim[k] - 1), hi = all ? s.dim[k] : net_between(net, lo + 1, s.dim[k]);
        const int64_t step = net_one_in(net, 3) ? net_between(net, 1, 3) : 1;
        at.slice.start[k] = back ? hi - 1 : lo;
        at.slice.stop[k] = back ? lo - 1 : hi;
        at.slice.step[k] = back ? -step : step;
    }
    return net_append1(net, LS_OP_SLICE, x, &at);
}

/* All parts of an axis, each of which may be read. */
static Twin split(Net *net)
{
    Twin x = net_pick_rank(net, 1, 4);
    if (!net_is(x))
        return none;
    const LsShape s = *net_shape(net, x);
    const int axis = some_axis(net, &s);
    Twin part = none;
    for (int64_t at = 0; at < s.dim[axis];) {
        const int64_t end = at + net_between(net, 1, s.dim[axis] - at);
        net_offer(net, part);
        part = (Twin){ls_slice_axis(&net->cx, net->a, x.a, axis, at, end), ls_slice_axis(&net->cx, net->b, x.b, axis, at, end)};
        part = net_append1(net, net_one_in(net, 2) ? LS_OP_TANH : LS_OP_NEG, part, NULL);
        if (!net_is(part))
            return none;
        at = end;
    }
    return part;
}

static Twin pad(Net *net)
{
    Twin x = net_pick_rank(net, 1, 4);
    if (!net_is(x))
        return none;
    const LsShape s = *net_shape(net, x);
    LsAttr at = {.pad = {.mode = (LsPadMode)net_roll(net, 3), .value = net_one_in(net, 3) ? 0.5 : 0}};
    for (int k = 0; k < s.rank; k++) {
        const int64_t most = at.pad.mode == LS_PAD_REFLECT && s.dim[k] < 3 ? s.dim[k] - 1 : 2;
        const bool crop = net_one_in(net, 6) && s.dim[k] > 2;
        at.pad.lo[k] = crop ? -1 : net_one_in(net, 2) ? 0 : net_between(net, 0, most);
        at.pad.hi[k] = net_one_in(net, 2) ? 0 : net_between(net, 0, most);
    }
    return net_append1(net, LS_OP_PAD, x, &at);
}

/* A value like x, but for the length of one axis. */
static Twin sibling(Net *net, Twin x, int axis)
{
    const LsShape s = *net_shape(net, x);
    for (int tries = 0; tries < 6; tries++) {
        Twin y = net_pick(net);
        LsShape t = *net_shape(net, y);
        t.dim[axis] = s.dim[axis];
        if (ls_shape_same(&s, &t))
            return y;
    }
    LsShape t = s;
    t.dim[axis] = net_between(net, 1, 4);
    return net_one_in(net, 3) ? x : net_leaf(net, t);
}

static Twin concat(Net *net)
{
    Twin x = net_pick_rank(net, 1, 4), in[4] = {x};
    if (!net_is(x))
        return none;
    const int n = (int)net_between(net, 2, 4), axis = net_one_in(net, 2) && net_shape(net, x)->rank > 1
        ? 1 : some_axis(net, net_shape(net, x));
    for (int k = 1; k < n; k++)
        in[k] = sibling(net, x, axis);
    const int at = (int)net_roll(net, (uint32_t)n);
    in[0] = in[at];
    in[at] = x;
    return net_append(net, LS_OP_CONCAT, n, in, &(LsAttr){.axis = {axis}});
}

static Twin tile(Net *net)
{
    Twin x = net_pick_rank(net, 1, 3);
    if (!net_is(x))
        return none;
    LsAttr at = {.shape = {*net_shape(net, x)}};
    for (int k = 0; k < at.shape.shape.rank; k++)
        at.shape.shape.dim[k] = net_between(net, 1, 3);
    return net_append1(net, LS_OP_TILE, x, &at);
}

static Twin resize(Net *net)
{
    Twin x = net_pick_rank(net, 3, 4);
    if (!net_is(x))
        return none;
    LsAttr at = {.resize = {.mode = (LsResizeMode)net_roll(net, 2), .coord = (LsResizeCoord)net_roll(net, 4),
                            .nearest = (LsRound)net_roll(net, 4), .x = *net_shape(net, x), .y = *net_shape(net, x)}};
    for (int k = 0; k < at.resize.x.rank; k++) {
        const int64_t d = at.resize.x.dim[k];
        at.resize.y.dim[k] = k < 2 ? d : net_one_in(net, 2) ? 2 * d : net_between(net, 1, d + 3);
        at.resize.scale[k] = (double)at.resize.y.dim[k] / (double)d;
    }
    return net_append1(net, LS_OP_RESIZE, x, &at);
}

/* ---- by indices ---- */
static Twin gather(Net *net)
{
    Twin x = net_pick_rank(net, 1, 3);
    if (!net_is(x))
        return none;
    const LsShape s = *net_shape(net, x);
    LsShape by = {.rank = (int)net_between(net, 0, 2), .dim = {net_between(net, 1, 5), net_between(net, 1, 3)}};
    const int axis = some_axis(net, &s);
    const int64_t lo = net_one_in(net, 3) ? -s.dim[axis] : 0;
    return net_append2(net, LS_OP_GATHER, x, net_index(net, by, lo, s.dim[axis]), &(LsAttr){.gather = {.axis = axis}});
}

static Twin gather_each(Net *net)
{
    Twin x = net_pick_rank(net, 1, 3);
    if (!net_is(x))
        return none;
    const LsShape s = *net_shape(net, x);
    LsShape by = s;
    const int axis = some_axis(net, &s);
    by.dim[axis] = net_between(net, 1, 5);
    Twin index = net_index(net, by, 0, s.dim[axis]);
    if (net_one_in(net, 2))
        index = net_append1(net, LS_OP_TOP_K, x, &(LsAttr){.top = {axis, net_between(net, 1, s.dim[axis]), net_one_in(net, 2)}});
    return net_append2(net, LS_OP_GATHER_EACH, x, index, &(LsAttr){.gather = {.axis = axis}});
}

static Twin scatter(Net *net)
{
    Twin base = net_pick_rank(net, 1, 3);
    if (!net_is(base))
        return none;
    const LsShape s = *net_shape(net, base);
    const int axis = some_axis(net, &s);
    const bool each = net_one_in(net, 2);
    LsAttr at = {.gather = {.axis = axis, .x = s, .how = (LsScatterHow)net_roll(net, 5)}};
    /* What is set twice has no gradient that all frameworks agree on. */
    const bool sets = at.gather.how == LS_SCATTER_SET;
    LsShape by = {1, {net_between(net, 1, sets && s.dim[axis] < 5 ? s.dim[axis] : 5)}}, with = s;
    with.dim[axis] = by.dim[0];
    if (each)
        by = with;
    Twin update = net_one_in(net, 2) ? net_leaf(net, with) : none;
    for (int tries = 0; tries < 4 && !net_is(update); tries++) {
        Twin y = net_pick(net);
        if (ls_shape_same(net_shape(net, y), &with))
            update = y;
    }
    if (!net_is(update))
        update = net_param(net, with);
    Twin index = sets ? net_different(net, by, each ? axis : 0, s.dim[axis]) : net_index(net, by, 0, s.dim[axis]);
    return net_append(net, each ? LS_OP_SCATTER_EACH : LS_OP_SCATTER, 3, (Twin[]){update, index, base}, &at);
}

static Twin scan(Net *net)
{
    Twin x = net_pick_rank(net, 1, 3);
    if (!net_is(x))
        return none;
    return net_append1(net, net_one_in(net, 3) ? LS_OP_CUM_PROD : LS_OP_CUM_SUM, x,
                       &(LsAttr){.scan = {some_axis(net, net_shape(net, x)), net_one_in(net, 3), net_one_in(net, 3)}});
}

/* ---- windows ---- */
static Twin image(Net *net)
{
    Twin x = net_pick_rank(net, 3, net_one_in(net, 6) ? 5 : 4);
    return x;
}

static Twin conv(Net *net)
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
    const bool same = net_one_in(net, 2);       /* the usual windows of networks */
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
    Twin in[3] = {x, net_one_in(net, 8) ? net_leaf(net, f) : net_param(net, f), net_param(net, (LsShape){1, {f.dim[0]}})};
    return net_append(net, LS_OP_CONV, net_one_in(net, 2) ? 3 : 2, in, &at);
}

static Twin conv_transpose(Net *net)
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
        w->x_dim[d] = (s.dim[2 + d] - 1) * w->stride[d] + ls_window_span(w, d) - w->pad_lo[d] - w->pad_hi[d]
            + net_roll(net, (uint32_t)w->stride[d]);
        if (w->x_dim[d] < 1)
            return none;
    }
    if (ls_count(&f) > 6000)
        return none;
    Twin in[3] = {x, net_param(net, f), net_param(net, (LsShape){1, {f.dim[1] * at.window.group}})};
    return net_append(net, LS_OP_CONV_DX, net_one_in(net, 2) ? 3 : 2, in, &at);
}

static Twin pool(Net *net)
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
        w->pad_lo[d] = w->dilation[d] > 1 || net_one_in(net, 2) ? 0 : net_between(net, 0, w->kernel[d] / 2);
        w->pad_hi[d] = w->dilation[d] > 1 || net_one_in(net, 2) ? 0 : net_between(net, 0, w->kernel[d] / 2);
        w->x_dim[d] = ls_window_places(w, d, s.dim[2 + d], net_one_in(net, 4));
        if (w->x_dim[d] < 1 || (w->x_dim[d] - 1) * w->stride[d] - w->pad_lo[d] >= s.dim[2 + d])
            return none;
    }
    return net_append1(net, net_one_in(net, 2) ? LS_OP_MAX_POOL : LS_OP_AVERAGE_POOL, x, &at);
}

/* ---- products ---- */
static Twin matmul(Net *net)
{
    Twin x = net_pick_rank(net, 2, net_one_in(net, 3) ? 4 : 2), in[3] = {x};
    if (!net_is(x))
        return none;
    const LsShape s = *net_shape(net, x);
    LsAttr at = {.gemm = {.alpha = net_one_in(net, 4) ? 0.5 : 1, .trans_a = net_one_in(net, 5), .trans_b = net_one_in(net, 2)}};
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
    if (net_one_in(net, 4)) {   /* with itself */
        in[1] = x;
        at.gemm.trans_b = !at.gemm.trans_a;
    }
    if (net_one_in(net, 5)) {   /* by way of a transposition that the product can take over */
        int perm[LS_MAX_RANK];
        const int rank = net_shape(net, in[1])->rank;
        for (int k = 0; k < rank; k++)
            perm[k] = k < rank - 2 ? k : 2 * rank - 3 - k;
        in[1] = (Twin){ls_transpose(&net->cx, net->a, in[1].a, perm), ls_transpose(&net->cx, net->b, in[1].b, perm)};
        at.gemm.trans_b = !at.gemm.trans_b;
    }
    const LsShape *b = net_shape(net, in[1]);
    const int64_t columns = b->dim[b->rank - 1 - at.gemm.trans_b];
    in[2] = net_param(net, (LsShape){1, {columns}});
    Twin y = net_append(net, LS_OP_MATMUL, net_one_in(net, 3) ? 3 : 2, in, &at);
    return net_is(y) && net_one_in(net, 3) ? binary(net, LS_OP_ADD, y, net_param(net, (LsShape){1, {columns}})) : y;
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

static Twin attention(Net *net)
{
    const int64_t n = net_between(net, 1, 2), g = net_between(net, 1, 2), h = g * net_between(net, 1, 2);
    const int64_t t = net_between(net, 1, 7), s = net_one_in(net, 2) ? t : net_between(net, 1, 9);
    const int64_t few[] = {1, 3, 4, 8, 16}, d = few[net_roll(net, 5)], e = net_one_in(net, 2) ? d : few[net_roll(net, 5)];
    LsAttr at = {.attention = {.scale = 1 / sqrt((double)d), .by_token = net_one_in(net, 2) ? 0 : net_roll(net, 16),
                               .causal = net_one_in(net, 3), .past = net_one_in(net, 2) ? 0 : net_between(net, 0, 2)}};
    Twin in[4] = {heads_of(net, n, h, t, d, at.attention.by_token & LS_Q_BY_TOKEN),
                  heads_of(net, n, g, s, d, at.attention.by_token & LS_K_BY_TOKEN),
                  heads_of(net, n, g, s, e, at.attention.by_token & LS_V_BY_TOKEN)};
    const LsShape mask = {4, {net_one_in(net, 2) ? 1 : n, net_one_in(net, 2) ? 1 : h, net_one_in(net, 3) ? 1 : t, s}};
    float *v = ls_arena_alloc(net->cx.arena, (size_t)ls_count(&mask), sizeof *v);
    for (int64_t i = 0; i < ls_count(&mask); i++)
        v[i] = net_one_in(net, 4) ? -1e4f : (float)net_real(net, -1, 1);
    bool masked = net_one_in(net, 3);
    if (masked)
        in[3] = (Twin){ls_const_add(&net->cx, net->a, LS_REAL, &mask, v), ls_const_add(&net->cx, net->b, LS_REAL, &mask, v)};
    return net_is(in[0]) && net_is(in[1]) && net_is(in[2]) ? net_append(net, LS_OP_ATTENTION, 3 + masked, in, &at) : none;
}

/* Products and a softmax, which ls_patterns makes into one node. */
static Twin open_attention(Net *net)
{
    const int64_t n = net_between(net, 1, 2), h = net_between(net, 1, 3), t = net_between(net, 2, 6), d = net_between(net, 2, 8);
    const LsAttr plain = {.gemm = {.alpha = 1}};
    Twin q = heads_of(net, n, h, t, d, false), k = heads_of(net, n, h, t, d, false), v = heads_of(net, n, h, t, d, false);
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
    return net_is(y) && net_one_in(net, 2) ? net_append1(net, LS_OP_TRANSPOSE, y, &(LsAttr){.perm = {{0, 2, 1, 3}}}) : y;
}

/* A recurrence over slices with one weight. */
static Twin recurrence(Net *net)
{
    Twin x = net_pick_rank(net, 3, 3);
    if (!net_is(x))
        return none;
    const LsShape s = *net_shape(net, x);
    const LsAttr plain = {.gemm = {.alpha = 1}};
    Twin w = net_param(net, (LsShape){2, {s.dim[2], s.dim[2]}}), h = net_leaf(net, (LsShape){2, {s.dim[1], s.dim[2]}});
    for (int64_t t = 0; t < s.dim[0] && t < 4 && net_is(h); t++) {
        Twin at = {ls_slice_axis(&net->cx, net->a, x.a, 0, t, t + 1), ls_slice_axis(&net->cx, net->b, x.b, 0, t, t + 1)};
        at = net_reshape(net, at, (LsShape){2, {s.dim[1], s.dim[2]}});
        h = net_append1(net, LS_OP_TANH, binary(net, LS_OP_ADD, at, net_append2(net, LS_OP_MATMUL, h, w, &plain)), NULL);
        if (net_one_in(net, 3))
            net_offer(net, h);
    }
    return h;
}

/* x plus what a few operators make of it. */
static Twin residual(Net *net)
{
    Twin x = net_pick_rank(net, 2, 4), y;
    if (!net_is(x))
        return none;
    const int64_t c = net_shape(net, x)->dim[net_shape(net, x)->rank - 1];
    Twin w = net_param(net, (LsShape){2, {c, c}});
    y = net_append(net, LS_OP_LAYER_NORM, 3, (Twin[]){x, net_param(net, (LsShape){1, {c}}), net_param(net, (LsShape){1, {c}})},
                   &(LsAttr){.norm = {net_shape(net, x)->rank - 1, 1e-2}});
    if (net_one_in(net, 3) || !net_is(y))
        y = x;
    y = net_append2(net, LS_OP_MATMUL, y, w, &(LsAttr){.gemm = {.alpha = 1}});
    y = net_append1(net, net_one_in(net, 2) ? LS_OP_GELU : LS_OP_RELU, y, NULL);
    return binary(net, LS_OP_ADD, x, y);
}

bool net_grow(Net *net)
{
    static const struct { Twin (*grow)(Net *); uint32_t weight; } kind[] = {
        {unary, 24}, {two, 24}, {choose, 4}, {expand, 3}, {reduce, 8}, {taken_apart, 5}, {softmax, 3}, {layer_norm, 4},
        {batch_norm, 6}, {reshape, 5}, {transpose, 5}, {slice, 4}, {split, 3}, {pad, 4}, {concat, 6}, {tile, 2}, {resize, 3},
        {gather, 3}, {gather_each, 2}, {scatter, 3}, {scan, 2}, {conv, 8}, {conv_transpose, 3}, {pool, 5}, {matmul, 9},
        {attention, 3}, {open_attention, 3}, {recurrence, 2}, {residual, 5},
    };
    uint32_t all = 0, k = 0;
    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++)
        all += kind[i].weight;
    uint32_t at = net_roll(net, all);
    while (at >= kind[k].weight)
        at -= kind[k++].weight;
    Twin y = kind[k].grow(net);
    net_offer(net, y);
    return net_is(y);
}
