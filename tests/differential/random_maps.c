/* tests/differential/random_maps.c -- pointwise operators, reductions, and what exporters make of
 * them. */
#include "tests/differential/random_ops.h"

#include <math.h>

static const Twin none;

/* ---- pointwise ---- */
static Twin within(Net *net, Twin x, double least, double most)
{
    double lo, hi;
    net_range(net, x, &lo, &hi);
    if (lo >= least && hi <= most)
        return x;
    if (isfinite(most)) { /* into the interval by tanh */
        x = binary(net, LS_OP_MUL, net_append1(net, LS_OP_TANH, x, NULL),
                   number(net, (most - least) / 2 * 0.98));
        return binary(net, LS_OP_ADD, x, number(net, (most + least) / 2));
    }
    return binary(net, LS_OP_ADD, binary(net, LS_OP_MUL, x, x), number(net, least + 0.1));
}

Twin grow_unary(Net *net)
{
    static const struct {
        LsOpCode op;
        double least, most, a, b;
    } row[] = {
        {LS_OP_NEG, -INFINITY, INFINITY, 0, 0},
        {LS_OP_RELU, -INFINITY, INFINITY, 0, 0},
        {LS_OP_RELU, -INFINITY, INFINITY, 0, 0},
        {LS_OP_LEAKY_RELU, -INFINITY, INFINITY, 0.1, 0},
        {LS_OP_LEAKY_RELU, -INFINITY, INFINITY, -0.2, 0},
        {LS_OP_HARD_SIGMOID, -INFINITY, INFINITY, 0.2, 0.5},
        {LS_OP_HARD_SWISH, -INFINITY, INFINITY, 0, 0},
        {LS_OP_SIGMOID, -INFINITY, INFINITY, 0, 0},
        {LS_OP_TANH, -INFINITY, INFINITY, 0, 0},
        {LS_OP_SOFTPLUS, -INFINITY, INFINITY, 0, 0},
        {LS_OP_SOFTSIGN, -INFINITY, INFINITY, 0, 0},
        {LS_OP_ELU, -INFINITY, INFINITY, 1, 0},
        {LS_OP_ELU, -INFINITY, INFINITY, 0.3, 0},
        {LS_OP_ERF, -INFINITY, INFINITY, 0, 0},
        {LS_OP_GELU, -INFINITY, INFINITY, 0, 0},
        {LS_OP_GELU_TANH, -INFINITY, INFINITY, 0, 0},
        {LS_OP_SIN, -INFINITY, INFINITY, 0, 0},
        {LS_OP_COS, -INFINITY, INFINITY, 0, 0},
        {LS_OP_ATAN, -INFINITY, INFINITY, 0, 0},
        {LS_OP_ASINH, -INFINITY, INFINITY, 0, 0},
        {LS_OP_ABS, -INFINITY, INFINITY, 0, 0},
        {LS_OP_CLIP, -INFINITY, INFINITY, -0.5, 0.7},
        {LS_OP_CLIP, -INFINITY, INFINITY, 0, INFINITY},
        {LS_OP_CEIL, -INFINITY, INFINITY, 0, 0},
        {LS_OP_FLOOR, -INFINITY, INFINITY, 0, 0},
        {LS_OP_ROUND, -INFINITY, INFINITY, 0, 0},
        {LS_OP_SIGN, -INFINITY, INFINITY, 0, 0},
        {LS_OP_DETACH, -INFINITY, INFINITY, 0, 0},
        {LS_OP_SQRT, 0.01, INFINITY, 0, 0},
        {LS_OP_LOG, 0.01, INFINITY, 0, 0},
        {LS_OP_RECIPROCAL, 0.1, INFINITY, 0, 0},
        {LS_OP_EXP, -40, 3, 0, 0},
        {LS_OP_TAN, -1.2, 1.2, 0, 0},
        {LS_OP_ASIN, -0.95, 0.95, 0, 0},
        {LS_OP_ACOS, -0.95, 0.95, 0, 0},
        {LS_OP_ATANH, -0.95, 0.95, 0, 0},
        {LS_OP_SINH, -3, 3, 0, 0},
        {LS_OP_COSH, -3, 3, 0, 0},
        {LS_OP_ACOSH, 1.05, INFINITY, 0, 0},
        {LS_OP_DROPOUT, -INFINITY, INFINITY, 0.3, 0},
        {LS_OP_NORMAL, -INFINITY, INFINITY, 0, 0},
    };
    const uint32_t k = net_roll(net, sizeof row / sizeof *row);
    LsAttr at = {.scalar = {.a = row[k].a, .b = row[k].b}};
    if (row[k].op == LS_OP_DROPOUT || row[k].op == LS_OP_NORMAL)
        at.scalar.b = net->nleaf++; /* a stream of its own */
    return net_append1(net, row[k].op, within(net, net_pick(net), row[k].least, row[k].most), &at);
}

/* A shape that broadcasts to s, in one direction or (of == true) in both. */
static LsShape beside(Net *net, LsShape s, bool grow)
{
    const uint32_t skip =
        net_one_in(net, 2) && s.rank > 0 ? net_roll(net, (uint32_t)s.rank + 1) : 0;
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

Twin grow_binary(Net *net)
{
    static const LsOpCode op[] = {LS_OP_ADD, LS_OP_ADD, LS_OP_ADD,   LS_OP_SUB,       LS_OP_SUB,
                                  LS_OP_MUL, LS_OP_MUL, LS_OP_MUL,   LS_OP_DIV,       LS_OP_MIN,
                                  LS_OP_MAX, LS_OP_POW, LS_OP_PRELU, LS_OP_FLOOR_MOD, LS_OP_FMOD};
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
        y = net_one_in(net, 2) ? number(net, (double[]){2, 3, 0.5, -1, 1.5}[net_roll(net, 5)])
                               : within(net, y, -2, 2);
    }
    return binary(net, code, x, y);
}

static Twin condition(Net *net, Twin x)
{
    static const LsOpCode op[] = {LS_OP_GREATER, LS_OP_LESS, LS_OP_GREATER_EQUAL, LS_OP_LESS_EQUAL,
                                  LS_OP_EQUAL};
    static const LsOpCode join[] = {LS_OP_AND, LS_OP_OR, LS_OP_XOR};
    Twin c = binary(net, op[net_roll(net, 5)], x, partner(net, x));
    if (net_one_in(net, 4) && net_is(c))
        c = net_append1(net, LS_OP_NOT, c, NULL);
    if (net_one_in(net, 4) && net_is(c))
        c = binary(net, join[net_roll(net, 3)], c,
                   binary(net, op[net_roll(net, 4)], x, number(net, net_real(net, -1, 1))));
    return c;
}

Twin grow_choice(Net *net)
{
    Twin x = net_pick(net), c = condition(net, x), y = partner(net, x);
    if (!net_is(c))
        return none;
    if (net_one_in(net, 4))
        return binary(net, LS_OP_MUL, net_append1(net, LS_OP_CAST, c, &(LsAttr){.cast = LS_REAL}),
                      x);
    return net_is(y) ? net_append(net, LS_OP_WHERE, 3, (Twin[]){c, x, y}, NULL) : none;
}

Twin grow_expansion(Net *net)
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
    return net_append1(net, op, x, &(LsAttr){.reduce = {.axes = axes, .keep = true}});
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

Twin grow_reduction(Net *net)
{
    static const LsOpCode op[] = {LS_OP_REDUCE_SUM,  LS_OP_REDUCE_SUM,       LS_OP_REDUCE_MEAN,
                                  LS_OP_REDUCE_MEAN, LS_OP_REDUCE_MAX,       LS_OP_REDUCE_MIN,
                                  LS_OP_REDUCE_PROD, LS_OP_REDUCE_SUM_SQUARE};
    Twin x = net_pick_rank(net, 1, 5);
    if (!net_is(x))
        return none;
    const uint32_t axes = some_axes(net, net_shape(net, x));
    Twin y = reduced(net, op[net_roll(net, 8)], x, axes);
    return net_one_in(net, 2) ? dropped(net, y, axes) : y;
}

static Twin center(Net *net, Twin x, uint32_t axes)
{
    return binary(net, LS_OP_SUB, x, reduced(net, LS_OP_REDUCE_MEAN, x, axes));
}

/* Softmax, logsumexp, standardisation and layer norms as exporters take them apart. */
Twin grow_taken_apart(Net *net)
{
    Twin x = net_pick_rank(net, 1, 4), y, z;
    if (!net_is(x))
        return none;
    const LsShape s = *net_shape(net, x);
    const uint32_t axes = net_one_in(net, 2) ? 1u << (s.rank - 1) : some_axes(net, &s);
    switch (net_roll(net, 5)) {
    case 0:
        y = net_append1(net, LS_OP_EXP,
                        binary(net, LS_OP_SUB, x, reduced(net, LS_OP_REDUCE_MAX, x, axes)), NULL);
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
    case 3: /* gelu */
        y = net_append1(net, LS_OP_ERF, binary(net, LS_OP_DIV, x, number(net, sqrt(2))), NULL);
        y = binary(net, LS_OP_ADD, y, number(net, 1));
        return binary(net, LS_OP_MUL, binary(net, LS_OP_MUL, x, y), number(net, 0.5));
    default:
        y = net_append1(net, LS_OP_SQRT,
                        binary(net, LS_OP_ADD, reduced(net, LS_OP_REDUCE_SUM_SQUARE, x, axes),
                               number(net, 1e-2)),
                        NULL);
        return binary(net, LS_OP_DIV, x, y);
    }
}
