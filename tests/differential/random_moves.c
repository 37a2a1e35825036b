/* tests/differential/random_moves.c -- copies by index, gathers, scatters, scans. */
#include "tests/differential/random_ops.h"

static const Twin none;

/* ---- copies by index ---- */
Twin grow_reshape(Net *net)
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

Twin grow_transpose(Net *net)
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
    if (net_one_in(net, 3)) { /* the last two axes alone */
        for (int k = 0; k < rank; k++)
            at.perm.perm[k] = k;
        at.perm.perm[rank - 1] = rank - 2;
        at.perm.perm[rank - 2] = rank - 1;
    }
    return net_append1(net, LS_OP_TRANSPOSE, x, &at);
}

Twin grow_slice(Net *net)
{
    Twin x = net_pick_rank(net, 1, 4);
    if (!net_is(x))
        return none;
    const LsShape s = *net_shape(net, x);
    LsAttr at = {0};
    for (int k = 0; k < s.rank; k++) {
        const bool all = net_one_in(net, 2), back = net_one_in(net, 5);
        const int64_t lo = all ? 0 : net_between(net, 0, s.dim[k] - 1),
                      hi = all ? s.dim[k] : net_between(net, lo + 1, s.dim[k]);
        const int64_t step = net_one_in(net, 3) ? net_between(net, 1, 3) : 1;
        at.slice.start[k] = back ? hi - 1 : lo;
        at.slice.stop[k] = back ? lo - 1 : hi;
        at.slice.step[k] = back ? -step : step;
    }
    return net_append1(net, LS_OP_SLICE, x, &at);
}

/* All parts of an axis, each of which may be read. */
Twin grow_split(Net *net)
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
        part = (Twin){ls_slice_axis(&net->cx, net->a, x.a, axis, at, end),
                      ls_slice_axis(&net->cx, net->b, x.b, axis, at, end)};
        part = net_append1(net, net_one_in(net, 2) ? LS_OP_TANH : LS_OP_NEG, part, NULL);
        if (!net_is(part))
            return none;
        at = end;
    }
    return part;
}

Twin grow_pad(Net *net)
{
    Twin x = net_pick_rank(net, 1, 4);
    if (!net_is(x))
        return none;
    const LsShape s = *net_shape(net, x);
    LsAttr at = {
        .pad = {.mode = (LsPadMode)net_roll(net, 3), .value = net_one_in(net, 3) ? 0.5 : 0}};
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

Twin grow_concat(Net *net)
{
    Twin x = net_pick_rank(net, 1, 4), in[4] = {x};
    if (!net_is(x))
        return none;
    const int n = (int)net_between(net, 2, 4),
              axis = net_one_in(net, 2) && net_shape(net, x)->rank > 1
                         ? 1
                         : some_axis(net, net_shape(net, x));
    for (int k = 1; k < n; k++)
        in[k] = sibling(net, x, axis);
    const int at = (int)net_roll(net, (uint32_t)n);
    in[0] = in[at];
    in[at] = x;
    return net_append(net, LS_OP_CONCAT, n, in, &(LsAttr){.axis = {axis}});
}

Twin grow_tile(Net *net)
{
    Twin x = net_pick_rank(net, 1, 3);
    if (!net_is(x))
        return none;
    LsAttr at = {.shape = {*net_shape(net, x)}};
    for (int k = 0; k < at.shape.shape.rank; k++)
        at.shape.shape.dim[k] = net_between(net, 1, 3);
    return net_append1(net, LS_OP_TILE, x, &at);
}

Twin grow_resize(Net *net)
{
    Twin x = net_pick_rank(net, 3, 4);
    if (!net_is(x))
        return none;
    LsAttr at = {.resize = {.mode = (LsResizeMode)net_roll(net, 2),
                            .coord = (LsResizeCoord)net_roll(net, 4),
                            .nearest = (LsRound)net_roll(net, 4),
                            .x = *net_shape(net, x),
                            .y = *net_shape(net, x)}};
    for (int k = 0; k < at.resize.x.rank; k++) {
        const int64_t d = at.resize.x.dim[k];
        at.resize.y.dim[k] = k < 2 ? d : net_one_in(net, 2) ? 2 * d : net_between(net, 1, d + 3);
        at.resize.scale[k] = (double)at.resize.y.dim[k] / (double)d;
    }
    return net_append1(net, LS_OP_RESIZE, x, &at);
}

/* ---- by indices ---- */
Twin grow_gather(Net *net)
{
    Twin x = net_pick_rank(net, 1, 3);
    if (!net_is(x))
        return none;
    const LsShape s = *net_shape(net, x);
    LsShape by = {.rank = (int)net_between(net, 0, 2),
                  .dim = {net_between(net, 1, 5), net_between(net, 1, 3)}};
    const int axis = some_axis(net, &s);
    const int64_t lo = net_one_in(net, 3) ? -s.dim[axis] : 0;
    return net_append2(net, LS_OP_GATHER, x, net_index(net, by, lo, s.dim[axis]),
                       &(LsAttr){.gather = {.axis = axis}});
}

Twin grow_gather_each(Net *net)
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
        index = net_append1(
            net, LS_OP_TOP_K, x,
            &(LsAttr){.top = {axis, net_between(net, 1, s.dim[axis]), net_one_in(net, 2)}});
    return net_append2(net, LS_OP_GATHER_EACH, x, index, &(LsAttr){.gather = {.axis = axis}});
}

Twin grow_scatter(Net *net)
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
    Twin index = sets ? net_different(net, by, each ? axis : 0, s.dim[axis])
                      : net_index(net, by, 0, s.dim[axis]);
    return net_append(net, each ? LS_OP_SCATTER_EACH : LS_OP_SCATTER, 3,
                      (Twin[]){update, index, base}, &at);
}

Twin grow_scan(Net *net)
{
    Twin x = net_pick_rank(net, 1, 3);
    if (!net_is(x))
        return none;
    return net_append1(net, net_one_in(net, 3) ? LS_OP_CUM_PROD : LS_OP_CUM_SUM, x,
                       &(LsAttr){.scan = {some_axis(net, net_shape(net, x)), net_one_in(net, 3),
                                          net_one_in(net, 3)}});
}
