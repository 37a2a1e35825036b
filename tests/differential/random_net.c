/* tests/differential/random_net.c -- the pair of twins: leaves, nodes, the pool of values, the
 * loss. */
#include "tests/differential/random_net.h"

#include "tests/differential/interpreter.h"

#include <math.h>

int64_t net_between(Net *net, int64_t lo, int64_t hi)
{
    return lo + net_roll(net, (uint32_t)(hi - lo + 1));
}

double net_real(Net *net, double lo, double hi)
{
    return lo + (hi - lo) * net_roll(net, 1 << 20) / (1 << 20);
}

/* ---- leaves ---- */
enum { PLAIN, COARSE, SMALL, POSITIVE, NKINDS };

/* Mostly different numbers in [-1, 1); also multiples of 1/4 with ties and zeros, tiny and positive
 * numbers. */
static float *numbers(Net *net, int64_t n)
{
    static const int usual[] = {PLAIN, PLAIN, PLAIN, PLAIN, COARSE, SMALL, POSITIVE};
    const int kind = usual[net_roll(net, sizeof usual / sizeof *usual)];
    float *v = ls_arena_alloc(net->cx.arena, (size_t)n + 1, sizeof *v);
    for (int64_t i = 0; i < n; i++) {
        const double x = net_real(net, -1, 1);
        v[i] = (float)(kind == COARSE     ? floor(x * 4) / 4
                       : kind == SMALL    ? x * 0.01
                       : kind == POSITIVE ? fabs(x) + 0.1
                                          : x);
    }
    return v;
}

static Twin add_value(Net *net, LsValueKind kind, LsType type, const LsShape *s, const void *data)
{
    static const char *const word[] = {
        [LS_V_INPUT] = "x", [LS_V_PARAM] = "w", [LS_V_STATE] = "s", [LS_V_CONST] = "fixed"};
    const char *name = ls_arena_printf(net->cx.arena, "%s%d", word[kind], net->nleaf++);
    const bool constant = kind == LS_V_CONST;
    Twin v;
    if (kind == LS_V_INPUT && net->b->ninput == NET_INPUTS)
        kind = LS_V_STATE;
    const void *initial = kind == LS_V_INPUT ? NULL : data;
    v.a = constant ? ls_const_add(&net->cx, net->a, type, s, data)
                   : ls_value_add(&net->cx, net->a, kind, name, type, s, initial);
    /* Integers are no state: they are constants, or inputs. */
    v.b = constant && type != LS_REAL ? ls_const_add(&net->cx, net->b, type, s, data)
                                      : ls_value_add(&net->cx, net->b, constant ? LS_V_STATE : kind,
                                                     name, type, s, initial);
    if (kind == LS_V_INPUT) {
        net->a->input[net->a->ninput++] = v.a;
        net->input[net->b->ninput] = data;
        net->b->input[net->b->ninput++] = v.b;
    }
    interpreter_follow(net->ref, net->input);
    return v;
}

Twin net_leaf(Net *net, LsShape s)
{
    static const LsValueKind kind[] = {LS_V_PARAM, LS_V_PARAM, LS_V_PARAM, LS_V_CONST,
                                       LS_V_CONST, LS_V_INPUT, LS_V_INPUT, LS_V_STATE};
    return add_value(net, kind[net_roll(net, 8)], LS_REAL, &s, numbers(net, ls_count(&s)));
}

Twin net_param(Net *net, LsShape s)
{
    return add_value(net, LS_V_PARAM, LS_REAL, &s, numbers(net, ls_count(&s)));
}

Twin net_state(Net *net, LsShape s, bool statistic)
{
    Twin v = add_value(net, LS_V_STATE, LS_REAL, &s, numbers(net, ls_count(&s)));
    net->a->value[v.a.i].statistic = net->b->value[v.b.i].statistic = statistic;
    return v;
}

static const int64_t *some_integers(Net *net, LsShape s, int64_t lo, int64_t hi)
{
    int64_t *v = ls_arena_alloc(net->cx.arena, (size_t)ls_count(&s) + 1, sizeof *v);
    for (int64_t i = 0; i < ls_count(&s); i++)
        v[i] = net_between(net, lo, hi - 1);
    return v;
}

static Twin add_integers(Net *net, LsShape s, const int64_t *v, bool wide)
{
    const bool constant = net_one_in(net, 2);
    const int64_t n = ls_count(&s);
    int32_t *narrow = ls_arena_alloc(net->cx.arena, (size_t)n + 1, sizeof *narrow);
    for (int64_t i = 0; i < n; i++)
        narrow[i] = (int32_t)v[i];
    return add_value(net, constant ? LS_V_CONST : LS_V_INPUT, wide ? LS_I64 : LS_I32, &s,
                     wide ? (const void *)v : narrow);
}

Twin net_index(Net *net, LsShape s, int64_t lo, int64_t hi)
{
    return add_integers(net, s, some_integers(net, s, lo, hi), net_one_in(net, 2));
}

Twin net_different(Net *net, LsShape s, int axis, int64_t below)
{
    int64_t inner = 1, *v = ls_arena_alloc(net->cx.arena, (size_t)ls_count(&s) + 1, sizeof *v);
    const int64_t from = net_between(net, 0, below - 1);
    for (int k = axis + 1; k < s.rank; k++)
        inner *= s.dim[k];
    for (int64_t i = 0; i < ls_count(&s); i++)
        v[i] = (from + i / inner % s.dim[axis] + i % inner) % below;
    return add_integers(net, s, v, net_one_in(net, 2));
}

/* ---- nodes ---- */
void net_range(const Net *net, Twin v, double *least, double *most)
{
    const double *x = interpreter_of(net->ref, v.b);
    *least = INFINITY;
    *most = -INFINITY;
    for (int64_t i = 0; i < ls_count(net_shape(net, v)); i++) {
        *least = fmin(*least, x[i]);
        *most = fmax(*most, x[i]);
    }
}

static bool is_moderate(const Net *net, LsValueId v)
{
    const double *x = interpreter_of(net->ref, v);
    for (int64_t i = 0; i < ls_count(ls_shape(net->b, v)); i++)
        if (!(fabs(x[i]) < 200))
            return false;
    return true;
}

static bool are_moderate(const Net *net, uint32_t first_node)
{
    for (uint32_t i = first_node; i < net->b->nnode; i++)
        for (int k = 0; k < net->b->node[i].nout; k++)
            if (!is_moderate(net, ls_out(net->b, (LsNodeId){i}, k)))
                return false;
    return true;
}

Twin net_append(Net *net, LsOpCode op, int nin, const Twin in[], const LsAttr *at)
{
    enum { MOST = 20000 }; /* elements */
    LsValueId a[LS_MAX_IN], b[LS_MAX_IN];
    const uint32_t nnode = net->b->nnode;
    for (int k = 0; k < nin; k++) {
        a[k] = in[k].a;
        b[k] = in[k].b;
        if (k == 0 && !net_is(in[k]))
            return (Twin){{0}, {0}};
    }
    Twin y = {ls_append(&net->cx, net->a, op, nin, a, at),
              ls_append(&net->cx, net->b, op, nin, b, at)};
    net->cx.nerror = 0;
    net->cx.exit_code = 0;
    if (!net_is(y))
        return (Twin){{0}, {0}};
    if (ls_count(net_shape(net, y)) > MOST) {
        ls_graph_pop(net->b, net->b->value[y.b.i].def);
        return (Twin){{0}, {0}};
    }
    net->stops |= op == LS_OP_DETACH || op == LS_OP_EQUAL;
    interpreter_follow(net->ref, net->input);
    return are_moderate(net, nnode) ? y : (Twin){{0}, {0}};
}

Twin net_append1(Net *net, LsOpCode op, Twin x, const LsAttr *at)
{
    return net_append(net, op, 1, &x, at);
}

Twin net_append2(Net *net, LsOpCode op, Twin x, Twin y, const LsAttr *at)
{
    return net_is(y) ? net_append(net, op, 2, (Twin[]){x, y}, at) : y;
}

Twin net_result(Twin first, int k)
{
    return (Twin){{first.a.i + (uint32_t)k}, {first.b.i + (uint32_t)k}};
}

Twin net_reshape(Net *net, Twin x, LsShape to)
{
    if (!net_is(x) || ls_shape_same(net_shape(net, x), &to))
        return x;
    return net_append1(net, LS_OP_RESHAPE, x, &(LsAttr){.shape = {to}});
}

/* ---- the pool ---- */
void net_offer(Net *net, Twin v)
{
    if (net_is(v) && net->npool < NET_POOL && ls_type(net->b, v.b) == LS_REAL)
        net->pool[net->npool++] = v;
}

static LsShape some_shape(Net *net, int rank)
{
    static const int64_t usual[] = {1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 16, 17};
    LsShape s = {.rank = rank};
    int64_t left = net_one_in(net, 6) ? 6000 : 600;
    for (int k = 0; k < rank; k++) {
        int64_t d = usual[net_roll(net, sizeof usual / sizeof *usual)];
        if (rank == 2 && net_one_in(net, 6))
            d = net_between(net, 17, 70);
        while (d > 1 && d * (1 << (rank - k - 1)) > left)
            d = (d + 1) / 2;
        s.dim[k] = d;
        left /= d;
    }
    return s;
}

Twin net_pick(Net *net)
{
    if (net->npool == 0 || net_one_in(net, 25)) {
        net_offer(net, net_leaf(net, some_shape(net, (int)net_between(net, 0, 4))));
        net->read[net->npool - 1] = true;
        return net->pool[net->npool - 1];
    }
    const uint32_t n = (uint32_t)net->npool, late = n < 4 ? n : 4;
    const uint32_t at = n - 1 - (net_one_in(net, 3) ? net_roll(net, n) : net_roll(net, late));
    net->read[at] = true;
    return net->pool[at];
}

/* n elements with that rank: the largest axes are split, or the first axes joined. */
static LsShape regrouped(Net *net, LsShape s, int rank)
{
    while (s.rank > rank) {
        const int k = (int)net_roll(net, (uint32_t)s.rank - 1);
        s.dim[k] *= s.dim[k + 1];
        memmove(&s.dim[k + 1], &s.dim[k + 2], (size_t)(s.rank - k - 2) * sizeof *s.dim);
        s.rank--;
    }
    while (s.rank < rank) {
        const int k = s.rank == 0 ? 0 : (int)net_roll(net, (uint32_t)s.rank);
        const int64_t d = s.rank == 0 ? 1 : s.dim[k];
        int64_t part = 1;
        for (int64_t f = 2; f < d && part == 1; f++)
            part = d % f == 0 ? f : 1;
        memmove(&s.dim[k + 1], &s.dim[k], (size_t)(s.rank - k) * sizeof *s.dim);
        s.dim[k] = part;
        if (s.rank > 0)
            s.dim[k + 1] = d / part;
        s.rank++;
    }
    return s;
}

Twin net_pick_rank(Net *net, int lo, int hi)
{
    Twin x = {{0}, {0}};
    for (int tries = 0; tries < 4; tries++) {
        x = net_pick(net);
        const int rank = net_shape(net, x)->rank;
        if (rank >= lo && rank <= hi)
            return x;
    }
    const int rank = (int)net_between(net, lo, hi);
    if (net_one_in(net, 2))
        return net_leaf(net, some_shape(net, rank));
    return net_reshape(net, x, regrouped(net, *net_shape(net, x), rank));
}

/* ---- the loss ---- */
static Twin sum_of(Net *net, Twin y)
{
    const LsShape s = *net_shape(net, y);
    if (s.rank > 0)
        y = net_append1(net, LS_OP_REDUCE_SUM, y,
                        &(LsAttr){.reduce = {.axes = (1u << s.rank) - 1, .keep = true}});
    return net_reshape(net, y, (LsShape){0});
}

/* Different weights for all elements. */
static Twin weighed(Net *net, Twin y)
{
    const LsShape s = *net_shape(net, y);
    float *w = ls_arena_alloc(net->cx.arena, (size_t)ls_count(&s), sizeof *w);
    for (int64_t i = 0; i < ls_count(&s); i++)
        w[i] = (float)(net_real(net, -1, 1) / sqrt((double)ls_count(&s)));
    Twin weight = add_value(net, LS_V_CONST, LS_REAL, &s, w);
    return sum_of(net, net_append2(net, LS_OP_MUL, y, weight, NULL));
}

static Twin cross_entropy(Net *net, Twin y)
{
    LsShape s = *net_shape(net, y), labels = {.rank = s.rank - 1};
    const int axis = (int)net_between(net, 1, s.rank - 1);
    const int64_t classes = s.dim[axis];
    for (int k = 0; k < s.rank; k++)
        if (k != axis)
            labels.dim[k - (k > axis)] = s.dim[k];
    LsAttr at = {.loss = {.axis = axis,
                          .reduction = (LsReduction)net_roll(net, 3),
                          .smoothing = net_one_in(net, 3) ? 0.1 : 0,
                          .has_ignore = net_one_in(net, 3),
                          .ignore = net_between(net, 0, classes - 1)}};
    const bool weights = net_one_in(net, 2), nll = net_one_in(net, 4);
    if (nll) {
        y = net_append1(net, LS_OP_LOG_SOFTMAX, y, &(LsAttr){.axis = {axis}});
        at.loss.smoothing = 0;
    }
    Twin in[3] = {
        y, add_integers(net, labels, some_integers(net, labels, 0, classes), true), {{0}, {0}}};
    if (weights) {
        float *w = ls_arena_alloc(net->cx.arena, (size_t)classes, sizeof *w);
        for (int64_t i = 0; i < classes; i++)
            w[i] = (float)net_real(net, 0.1, 2);
        in[2] = add_value(net, LS_V_CONST, LS_REAL, &(LsShape){1, {classes}}, w);
    }
    y = net_append(net, nll ? LS_OP_NLL : LS_OP_XENT, 2 + weights, in, &at);
    return net_is(y) && at.loss.reduction == LS_LOSS_EACH ? sum_of(net, y) : y;
}

static Twin regression(Net *net, Twin y)
{
    static const LsRegression kind[] = {LS_REG_SQUARE, LS_REG_ABS,   LS_REG_LOGIT,
                                        LS_REG_SMOOTH, LS_REG_HUBER, LS_REG_LINEAR};
    const LsShape s = *net_shape(net, y);
    Twin target = add_value(net, LS_V_INPUT, LS_REAL, &s, numbers(net, ls_count(&s)));
    return net_append2(net, LS_OP_REGRESSION_LOSS, y, target,
                       &(LsAttr){.loss = {.regression = kind[net_roll(net, 6)], .edge = 0.5}});
}

/* One term of the loss. */
static Twin term_of(Net *net, Twin y)
{
    const LsShape *s = net_shape(net, y);
    switch (net_roll(net, 8)) {
    case 0:
    case 1:
        return s->rank >= 2 ? cross_entropy(net, y) : weighed(net, y);
    case 2:
        return s->rank >= 1 && s->dim[0] % net->b->batch == 0 ? regression(net, y)
                                                              : weighed(net, y);
    default:
        return weighed(net, y);
    }
}

/* The loss depends on all that nothing has read. */
static void add_loss(Net *net)
{
    Twin loss = {{0}, {0}};
    const int npool = net->npool;
    for (int k = npool - 1; k >= 0; k--) {
        if (net->read[k] || net->b->value[net->pool[k].b.i].kind != LS_V_TEMP ||
            net->a->value[net->pool[k].a.i].kind != LS_V_TEMP)
            continue;
        Twin term = term_of(net, net->pool[k]);
        Twin sum = net_is(loss) ? net_append2(net, LS_OP_ADD, loss, term, NULL) : term;
        loss = net_is(sum) ? sum : loss;
        if (net->b->noutput < 4) {
            net->a->output[net->a->noutput++] = net->pool[k].a;
            net->b->output[net->b->noutput++] = net->pool[k].b;
        }
    }
    net->a->objective.loss = loss.a;
    net->b->objective.loss = loss.b;
}

static LsGraph *open_graph(Net *net, int64_t batch, bool training)
{
    LsGraph *g = ls_graph_new(&net->cx);
    g->batch = batch;
    g->training = training;
    g->input = ls_arena_alloc(net->cx.arena, NET_INPUTS, sizeof *g->input);
    g->output = ls_arena_alloc(net->cx.arena, 8, sizeof *g->output);
    return g;
}

Net *net_new(uint64_t seed, int nops, bool training)
{
    LsArena *arena = ls_arena_new();
    Net *net = ls_arena_alloc(arena, 1, sizeof *net);
    net->cx = (LsCtx){.arena = arena, .log = fopen("/dev/null", "w"), .quiet = true};
    net->dice.state = seed * UINT64_C(0x9e3779b97f4a7c15) + 12345;
    for (int k = 0; k < 8; k++)
        roll(&net->dice, 2);
    const int64_t batch = net_between(net, 1, 3);
    net->a = open_graph(net, batch, training);
    net->b = open_graph(net, batch, training);
    net->ref = interpreter_new(net->b);
    net_pick(net);
    for (int k = 0; k < nops; k++)
        for (int tries = 0; tries < 5 && !net_grow(net); tries++)
            continue;
    add_loss(net);
    return net;
}

void net_free(Net *net)
{
    fclose(net->cx.log);
    ls_arena_free(net->cx.arena);
}
