/* compiler/updates/append_update.c -- see append_update.h. */
#include "compiler/updates/append_update.h"

#include "compiler/fold/append.h"
#include "compiler/ops/random.h"
#include "compiler/updates/loss_scale.h"

#include <math.h>
#include <string.h>

typedef struct Make {
    LsCtx *cx;
    LsGraph *g;
    const LsStepIn *in;
    const LsOptimizerOptions *o;
} Make;

static const LsValueId none = {0};

/* State of the optimizer, beside the parameter. */
static LsValueId add_state(const Make *m, const char *suffix, const LsShape *shape)
{
    const LsShape s = *shape;
    const char *name = ls_arena_printf(m->cx->arena, "%s.%s", m->g->value[m->in->p.i].name, suffix);
    LsValueId v = ls_value_add(m->cx, m->g, LS_V_STATE, name, LS_REAL, &s, NULL);
    m->g->value[v.i].of_optimizer = true;
    m->g->value[v.i].sliced = m->in->at.update.sliced;
    return v;
}

/* Tensor k of a rule's state, for an operand of shape p. */
static LsValueId add_moment(const Make *m, const LsRule *rule, int k, const LsShape *p)
{
    const LsMoment *s = &rule->state[k];
    const double bits = m->in->at.update.hyper.bits;
    const int64_t n = ls_count(p);
    if (!ls_rule_has_codes(rule)) {
        const LsValueId v = add_state(m, s->suffix, p);
        if (m->in->at.update.hyper.bf16 != 0)
            m->g->value[v.i].type = LS_BF16;
        return v;
    }
    const bool codes = ls_are_codes(k);
    const LsShape flat = {1, {codes ? n * (int64_t)bits / 8 : n / ls_code_block(bits)}};
    const LsValueId v = add_state(m, s->suffix, &flat);
    if (codes)
        m->g->value[v.i].type = LS_U8;
    return v;
}

/* The average of the parameter, which begins with the parameter. */
static LsValueId average(const Make *m)
{
    const LsValueId p = m->in->p;
    LsValueId v = add_state(m, "average", ls_shape(m->g, p));
    m->g->value[v.i].average_of = m->g->value[p.i].name;
    m->g->value[v.i].data = m->g->value[p.i].data;
    return v;
}

/* Appends the node of a rule, which reads `in`; with its state, and if it writes the parameter with
 * the average. */
static LsValueId append_rule(const Make *m, const LsRule *rule, const LsStepIn *in)
{
    LsValueId of[LS_MAX_IN] = {in->p, in->grad};
    for (int k = 0; k < rule->nstate; k++) {
        const LsMoment *s = &rule->state[k];
        if (s->when == NULL || *ls_hyper_find(&in->at.update.hyper, s->when, strlen(s->when)) != 0)
            of[2 + k] = add_moment(m, rule, k, ls_shape(m->g, in->p));
    }
    of[ls_rule_factor(rule)] = in->factor;
    of[ls_rule_acc(rule)] = in->acc;
    of[ls_rule_weight(rule)] = in->weight;
    if ((in->at.update.hyper.ema != 0 && !rule->makes) || rule->op == LS_OP_FREE_SGD
        || rule->op == LS_OP_FREE_ADAMW)
        of[ls_rule_average(rule)] = average(m);
    of[ls_rule_shared(rule)] = in->shared;
    int nin = ls_rule_shared(rule) + 1;
    while (nin > ls_rule_acc(rule) + 1 && !ls_is(of[nin - 1]))
        nin--;
    return ls_append(m->cx, m->g, rule->op, nin, of, &in->at);
}

/* 1, or -1 if the step is bad, by the factor of the gradients; none: no step is bad. */
static LsValueId step_sign(const Make *m)
{
    return m->in->at.update.skips ? ls_append1(m->cx, m->g, LS_OP_SIGN, m->in->factor, NULL) : none;
}

static LsValueId times(const Make *m, LsValueId a, LsValueId b)
{
    return !ls_is(a) ? b : !ls_is(b) ? a : ls_append2(m->cx, m->g, LS_OP_MUL, a, b, NULL);
}

/* The step along direction u, by the rule of `op` with the hyperparameters h. */
static void take_step(const Make *m, LsOpCode op, LsValueId u, LsValueId factor, const LsHyper *h)
{
    LsStepIn in = {.p = m->in->p, .grad = u, .factor = factor};
    in.at.update = (LsUpdateAttr){.hyper = *h, .sum.scale = 1, .skips = m->in->at.update.skips};
    in.at.update.hyper.ema = m->o->hyper.ema;
    append_rule(m, ls_rule_of(op), &in);
}

/* LAMB, LARS: the step's length is to the direction's as the parameter's norm to the
 * direction's. */
static void trust_step(const Make *m, LsValueId u)
{
    const LsHyper *h = &m->in->at.update.hyper;
    LsValueId factor = step_sign(m);
    if (m->o->kind == LS_LARS || h->apex == 0 || h->everywhere != 0 || h->decay != 0) {
        const LsValueId norm[] = {ls_all_axes(m->cx, m->g, LS_OP_REDUCE_SUM_SQUARE, m->in->p),
                                  ls_all_axes(m->cx, m->g, LS_OP_REDUCE_SUM_SQUARE, u)};
        const bool lars = m->o->kind == LS_LARS;
        const LsAttr at = {.scalar = {.a = lars ? h->trust : 1, .b = lars ? h->eps : 0}};
        factor =
            times(m, ls_append2(m->cx, m->g, LS_OP_TRUST_RATIO, norm[0], norm[1], &at), factor);
    }
    const LsHyper step = {.momentum = h->momentum, .nesterov = h->nesterov, .rate_first = 1};
    take_step(m, LS_OP_SGD, u, factor, &step);
}

static LsValueId mean(const Make *m, LsValueId v, int axis)
{
    return ls_append1(m->cx, m->g, LS_OP_REDUCE_MEAN, v,
                      &(LsAttr){.reduce = {.axes = 1u << axis, .keep = true}});
}

static LsValueId mean_square(const Make *m, LsValueId v)
{
    const double n = (double)ls_count(ls_shape(m->g, v));
    return ls_scale(m->cx, m->g, ls_all_axes(m->cx, m->g, LS_OP_REDUCE_SUM_SQUARE, v), 1 / n);
}

/* The state `suffix`, moved towards v. */
static LsValueId moving_average(const Make *m, LsValueId v, const char *suffix)
{
    const LsAttr at = {.update = {.hyper = m->o->hyper, .skips = m->in->at.update.skips}};
    const LsValueId s = add_state(m, suffix, ls_shape(m->g, v));
    return ls_append(m->cx, m->g, LS_OP_BLEND, 2 + at.update.skips,
                     (LsValueId[]){s, v, m->in->factor}, &at);
}

/* The second moment that Adafactor keeps as the means of rows and columns, or of a vector as it
 * is. */
static LsValueId second_moment(const Make *m, LsValueId d)
{
    const int rank = ls_shape(m->g, d)->rank;
    const LsValueId square = ls_append2(m->cx, m->g, LS_OP_MUL, d, d, NULL);
    if (rank < 2)
        return moving_average(m, square, "v");
    const LsValueId row = moving_average(m, mean(m, square, rank - 1), "row"),
                    column = moving_average(m, mean(m, square, rank - 2), "column");
    const LsValueId least = ls_const_real(m->cx, m->g, m->o->hyper.floor);
    const LsValueId over = ls_append2(m->cx, m->g, LS_OP_MAX, mean(m, row, rank - 2), least, NULL);
    return ls_append2(m->cx, m->g, LS_OP_MUL, ls_append2(m->cx, m->g, LS_OP_DIV, row, over, NULL),
                      column, NULL);
}

static void adafactor_step(const Make *m, LsValueId d)
{
    const LsHyper *h = &m->in->at.update.hyper;
    const LsValueId least = ls_const_real(m->cx, m->g, h->floor * h->floor);
    LsValueId v = ls_append2(m->cx, m->g, LS_OP_MAX, second_moment(m, d), least, NULL);
    const LsValueId u =
        ls_append2(m->cx, m->g, LS_OP_DIV, d, ls_append1(m->cx, m->g, LS_OP_SQRT, v, NULL), NULL);
    const LsValueId rms[] = {mean_square(m, m->in->p), mean_square(m, u)};
    const LsAttr at = {.scalar = {.a = h->floor_p, .b = h->most}};
    const LsValueId factor = ls_append2(m->cx, m->g, LS_OP_RMS_RATIO, rms[0], rms[1], &at);
    take_step(m, LS_OP_STEP, u, times(m, factor, step_sign(m)),
              &(LsHyper){.decay = h->decay, .relative = 1});
}

/* a x + b y */
static LsValueId sum(const Make *m, double a, LsValueId x, double b, LsValueId y)
{
    const LsValueId left = ls_scale(m->cx, m->g, x, a), right = ls_scale(m->cx, m->g, y, b);
    return ls_append2(m->cx, m->g, LS_OP_ADD, left, right, NULL);
}

static LsValueId product(const Make *m, LsValueId a, LsValueId b, bool turned)
{
    return ls_append2(m->cx, m->g, LS_OP_MATMUL, a, b,
                      &(LsAttr){.gemm = {.trans_b = turned, .alpha = 1}});
}

/* Muon: the nearest matrix with orthogonal rows, roughly: singular values become 0.7 to 1.2. */
static void muon_step(const Make *m, LsValueId u)
{
    enum { ROUNDS = 5 };
    static const double a = 3.4445, b = -4.775, c = 2.0315, least = 1e-7;
    static const int turn[] = {1, 0};
    const LsHyper *h = &m->in->at.update.hyper;
    const int64_t rows = ls_shape(m->g, u)->dim[0], columns = ls_shape(m->g, u)->dim[1];
    LsValueId norm = ls_append1(m->cx, m->g, LS_OP_SQRT,
                                ls_all_axes(m->cx, m->g, LS_OP_REDUCE_SUM_SQUARE, u), NULL);
    norm = ls_append2(m->cx, m->g, LS_OP_MAX, norm, ls_const_real(m->cx, m->g, least), NULL);
    LsValueId x = ls_append2(m->cx, m->g, LS_OP_DIV, u, norm, NULL);
    if (rows > columns)
        x = ls_transpose(m->cx, m->g, x, turn);
    for (int k = 0; k < ROUNDS; k++) {
        const LsValueId pairs = product(m, x, x, true);
        x = sum(m, a, x, 1,
                product(m, sum(m, b, pairs, c, product(m, pairs, pairs, false)), x, false));
    }
    if (rows > columns)
        x = ls_transpose(m->cx, m->g, x, turn);
    const double longer = rows > columns ? sqrt((double)rows / (double)columns) : 1;
    take_step(m, LS_OP_STEP, x, step_sign(m), &(LsHyper){.decay = h->decay, .rate_part = longer});
}

/* The gradient with its sum over batches, its factor and its clipping, as it is stored. */
static LsValueId whole_gradient(const Make *m)
{
    if (!ls_is(m->in->factor) && !ls_is(m->in->acc) && m->in->at.update.clip == 0)
        return m->in->grad;
    LsStepIn plain = *m->in;
    plain.at.update.hyper.decay = 0;
    return append_rule(m, ls_rule_of(LS_OP_DIRECTION), &plain);
}

/* APOLLO's matrices have axes longer than the rank: Adam would have less state for others. */
static bool is_projected(const Make *m)
{
    const LsShape *p = ls_shape(m->g, m->in->p);
    const double rank = m->o->hyper.rank;
    return p->rank == 2 && (double)p->dim[0] > rank && (double)p->dim[1] > rank;
}

/* The stream of a parameter's random numbers: the same in every graph with the parameter. */
static double stream_of(const char *name)
{
    uint32_t sum = 0;
    for (; *name != '\0'; name++)
        sum = sum * 31 + (unsigned char)*name;
    return ls_random_stream_of_seed(sum);
}

/* The gradient's product with a random matrix, which shortens its shorter axis to the rank. */
static LsValueId project(const Make *m, LsValueId grad, bool right)
{
    const LsHyper *h = &m->in->at.update.hyper;
    const int64_t rank = (int64_t)h->rank, n = ls_shape(m->g, grad)->dim[right];
    const LsShape rows = {2, {right ? rank : n, 1}}, columns = {2, {1, right ? n : rank}};
    const double stream = stream_of(m->g->value[m->in->p.i].name);
    const LsValueId p =
        ls_append2(m->cx, m->g, LS_OP_PROJECTION,
                   ls_expand(m->cx, m->g, ls_const_real(m->cx, m->g, stream), rows),
                   ls_expand(m->cx, m->g, ls_const_real(m->cx, m->g, 0), columns),
                   &(LsAttr){.scalar = {.a = h->gap}});
    const LsAttr by = {.gemm = {.trans_a = !right, .trans_b = right, .alpha = 1 / sqrt(h->rank)}};
    return right ? ls_append2(m->cx, m->g, LS_OP_MATMUL, grad, p, &by)
                 : ls_append2(m->cx, m->g, LS_OP_MATMUL, p, grad, &by);
}

/* The norms of rows, of columns, or of the whole matrix. */
static LsValueId norms(const Make *m, LsValueId v, bool rows, bool all)
{
    const LsAttr at = {.reduce = {.axes = rows ? 2 : 1, .keep = true}};
    v = all ? ls_all_axes(m->cx, m->g, LS_OP_REDUCE_SUM_SQUARE, v)
            : ls_append1(m->cx, m->g, LS_OP_REDUCE_SUM_SQUARE, v, &at);
    return ls_append1(m->cx, m->g, LS_OP_SQRT, v, NULL);
}

/* APOLLO: the gradient, each row or column of it times what Adam does to its projection's norm. */
static void apollo_step(const Make *m)
{
    static const double least = 1e-8;
    const LsHyper *h = &m->in->at.update.hyper;
    const LsValueId grad = whole_gradient(m), sign = step_sign(m);
    const bool right = ls_shape(m->g, grad)->dim[0] >= ls_shape(m->g, grad)->dim[1];
    const bool all = h->tensor != 0 || m->o->kind == LS_APOLLO_MINI;
    const LsValueId low = project(m, grad, right);
    const LsUpdateAttr of = {.hyper = *h, .sum.scale = 1, .skips = m->in->at.update.skips};
    const LsStepIn in = {.p = low, .grad = low, .factor = sign, .at.update = of};
    const LsValueId way = append_rule(m, ls_rule_of(LS_OP_RAW_ADAM), &in);
    LsValueId down = norms(m, low, right, all);
    down = ls_append2(m->cx, m->g, LS_OP_ADD, down, ls_const_real(m->cx, m->g, least), NULL);
    LsValueId u =
        ls_append2(m->cx, m->g, LS_OP_DIV, norms(m, way, right, all), down, NULL);
    u = ls_append2(m->cx, m->g, LS_OP_MUL, grad, u, NULL);
    if (h->front != 0)
        u = ls_scale(m->cx, m->g, u, sqrt(h->scale));
    const LsAttr limit = {.update = of};
    const LsValueId squares = ls_all_axes(m->cx, m->g, LS_OP_REDUCE_SUM_SQUARE, u);
    const LsValueId factor = ls_append3(m->cx, m->g, LS_OP_GROWTH_LIMIT,
                                        add_state(m, "norm", &(LsShape){0}), squares, sign, &limit);
    take_step(m, LS_OP_STEP, u, times(m, factor, sign),
              &(LsHyper){.decay = h->decay, .late = 1, .corrects = h->raw == 0, .beta1 = h->beta1,
                         .beta2 = h->beta2});
}

static bool is_apollo(const Make *m)
{
    return m->o->kind == LS_APOLLO || m->o->kind == LS_APOLLO_MINI;
}

/* Muon's parameters that are no matrices, and APOLLO's that it does not project. */
static bool by_adam(const Make *m)
{
    return (m->o->kind == LS_MUON && ls_shape(m->g, m->in->p)->rank != 2)
        || (is_apollo(m) && !is_projected(m));
}

/* The decay of such a parameter. */
static double adam_decay(const Make *m)
{
    const double given = m->in->at.update.hyper.decay;
    if (is_apollo(m))
        return given;
    return given != 0 || !m->o->spares_vectors ? m->o->hyper.rest_decay : 0;
}

/* Bits of the codes in which the moments are kept; 0: they are reals. */
static int code_bits(const Make *m)
{
    enum { LEAST = 4096 };      /* elements: of smaller tensors there is little to save */
    const int bits = m->o->kind == LS_ADAM8 ? 8 : m->o->kind == LS_ADAM4 ? 4 : 0;
    const int64_t n = ls_count(ls_shape(m->g, m->in->p));
    return bits != 0 && n >= LEAST && n % ls_code_block(bits) == 0 ? bits : 0;
}

void ls_append_update(LsCtx *cx, LsGraph *g, const LsStepIn *given, const LsOptimizerOptions *o)
{
    LsStepIn in = *given;
    const Make m = {cx, g, &in, o};
    if (!in.decays)
        in.at.update.hyper.decay = 0;
    if (ls_optimizer_row[o->kind].decoupled)
        in.at.update.hyper.decoupled = 1;
    if (by_adam(&m)) {
        in.at.update.hyper.decoupled = 1;
        in.at.update.hyper.late = is_apollo(&m);
        in.at.update.hyper.decay = adam_decay(&m);
        append_rule(&m, ls_rule_of(LS_OP_ADAM), &in);
        return;
    }
    if (is_apollo(&m)) {
        apollo_step(&m);
        return;
    }
    in.at.update.hyper.bits = code_bits(&m);
    if (in.at.update.hyper.bits != 0) {
        append_rule(&m, ls_rule_of(LS_OP_ADAM_CODES), &in);
        return;
    }
    LsStepIn first = in;
    if (o->kind == LS_ADAFACTOR)        /* its step decays the parameter */
        first.at.update.hyper.decay = 0;
    const LsValueId u = append_rule(&m, ls_rule_of(ls_optimizer_row[o->kind].op), &first);
    switch (o->kind) {
    case LS_LAMB: case LS_LARS: trust_step(&m, u); break;
    case LS_ADAFACTOR: adafactor_step(&m, u); break;
    case LS_MUON: muon_step(&m, u); break;
    default: break;
    }
}
