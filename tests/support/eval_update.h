/* tests/support/eval_update.h -- what changes state, in double precision: updates of parameters by
 * the formulas of docs/optimizers.md, partial sums, statistics, the loss scale
 * (compiler/ir/loss.def). */
#ifndef LS_TESTS_SUPPORT_EVAL_UPDATE_H
#define LS_TESTS_SUPPORT_EVAL_UPDATE_H

#include <check.h>
#include <math.h>
#include <stdbool.h>

#include "compiler/ir/graph.h"
#include "compiler/ir/optimizer.h"

typedef struct Eval {
    const LsGraph *g;
    double **v;                 /* by value */
    int64_t valid;              /* LsRun.valid, .update; .first, .apply are true */
    int64_t update;
    bool first, apply;
    double lr, share;
} Eval;

/* LOSS_SCALE, and RUNNING_STAT with a factor. */
static inline void eval_scaled(Eval *e, LsNodeId n)
{
    const LsGraph *g = e->g;
    const LsUpdateAttr *at = &g->node[n.i].attr.update;
    double *v[4];
    for (int k = 0; k < 4; k++)
        v[k] = ls_is(ls_in(g, n, k)) ? e->v[ls_in(g, n, k).i] : NULL;
    if (g->node[n.i].op == LS_OP_LOSS_SCALE && e->apply) {
        const LsScaleAttr *r = &at->rule;
        bool finite = v[0][0] >= 0, full = v[2][0] + 1 >= r->period;
        if (r->period > 0) {
            double down = r->divides ? *v[1] / r->shrink : *v[1] * r->shrink;
            *v[1] = !finite ? fmax(down, r->least) : full ? *v[1] * r->grow : *v[1];
            *v[2] = finite && !full ? *v[2] + 1 : 0;
        }
        v[3][0] += !finite;
        v[3][1] = finite ? 0 : v[3][1] + 1;
    }
    for (int64_t i = 0; g->node[n.i].op == LS_OP_RUNNING_STAT && i < ls_count(ls_in_shape(g, n, 0));
         i++) {
        double moved = (v[2] == NULL || e->first ? v[0][i] : v[2][i]) * at->hyper.momentum
                       + v[1][i] * at->sum.scale;
        if (v[2] != NULL)
            v[2][i] = moved;
        if (e->apply && *v[3] >= 0)
            v[0][i] = moved;
    }
}

/* An operand's numbers; NULL: there is none. */
static inline double *eval_operand(const Eval *e, LsNodeId n, int k)
{
    return ls_is(ls_in(e->g, n, k)) ? e->v[ls_in(e->g, n, k).i] : NULL;
}

/* One element of a parameter, where it is, and what its update reads. */
typedef struct EvalElement {
    double *p, *y;              /* y: of rules that make a direction */
    double *s[LS_MOMENTS];      /* its state; NULL: none */
    double *average;
    double shared, lr, t;       /* t: number of the update */
} EvalElement;

static inline double eval_towards(double *mean, double beta, double x)
{
    return *mean = beta * *mean + (1 - beta) * x;
}

/* Adam's step, or that of an optimizer like it, before the rate. */
static inline double eval_adam(const LsUpdateAttr *h, const EvalElement *x, double d)
{
    const double m = eval_towards(x->s[0], h->hyper.beta1, d),
                 v = eval_towards(x->s[1], h->hyper.beta2, d * d);
    if (h->hyper.late != 0)     /* eps before the correction */
        return m * sqrt(1 - pow(h->hyper.beta2, x->t)) / (1 - pow(h->hyper.beta1, x->t))
               / (sqrt(v) + h->hyper.eps);
    return m / (1 - pow(h->hyper.beta1, x->t))
           / (sqrt(v / (1 - pow(h->hyper.beta2, x->t))) + h->hyper.eps);
}

static inline double eval_nadam(const LsUpdateAttr *h, const EvalElement *x, double d)
{
    const double now = h->hyper.beta1 * (1 - 0.5 * pow(0.96, x->t * h->hyper.momentum_decay));
    const double next =
        h->hyper.beta1 * (1 - 0.5 * pow(0.96, (x->t + 1) * h->hyper.momentum_decay));
    const double m = eval_towards(x->s[0], h->hyper.beta1, d),
                 v = eval_towards(x->s[1], h->hyper.beta2, d * d);
    const double ahead = d * (1 - now) / (1 - x->shared) + m * next / (1 - x->shared * next);
    return ahead / (sqrt(v / (1 - pow(h->hyper.beta2, x->t))) + h->hyper.eps);
}

static inline double eval_radam(const LsUpdateAttr *h, const EvalElement *x, double d)
{
    const double m = eval_towards(x->s[0], h->hyper.beta1, d) / (1 - pow(h->hyper.beta1, x->t)),
                 v = eval_towards(x->s[1], h->hyper.beta2, d * d);
    const double most = 2 / (1 - h->hyper.beta2) - 1, b = pow(h->hyper.beta2, x->t),
                 length = most - 2 * x->t * b / (1 - b);
    if (length <= 5)
        return m;
    return m * sqrt(1 - b) / (sqrt(v) + h->hyper.eps)
           * sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length));
}

static inline double eval_rmsprop(const LsUpdateAttr *h, const EvalElement *x, double d)
{
    double v = eval_towards(x->s[0], h->hyper.beta2, d * d);
    if (x->s[2] != NULL)
        v = fmax(0, v - pow(eval_towards(x->s[2], h->hyper.beta2, d), 2));
    const double step =
        h->hyper.inside != 0 ? d / sqrt(v + h->hyper.eps) : d / (sqrt(v) + h->hyper.eps);
    return x->s[1] != NULL ? *x->s[1] = h->hyper.momentum * *x->s[1] + step : step;
}

static inline double eval_sgd(const LsUpdateAttr *h, const EvalElement *x, double d)
{
    if (x->s[0] == NULL)
        return d;
    *x->s[0] = h->hyper.momentum * *x->s[0] + d;
    return h->hyper.nesterov != 0 ? d + h->hyper.momentum * *x->s[0] : *x->s[0];
}

static inline void eval_schedule_free(const LsUpdateAttr *h, const EvalElement *x, double d)
{
    double *z = x->s[0];
    *z = (x->t > 1 ? *z : *x->p) - x->lr * (d + h->hyper.decay * *x->p);
    *x->average += x->shared * (*z - *x->average);
    *x->p = (1 - h->hyper.beta1) * *z + h->hyper.beta1 * *x->average;
}

/* The rule of an op. Decay that is not decoupled is in d already. */
static inline void eval_rule(uint16_t op, const LsUpdateAttr *h, const EvalElement *x, double d)
{
    const double part = h->hyper.rate_part != 0 ? h->hyper.rate_part : 1;
    switch (op) {
    case LS_OP_SGD:
        *x->p -= h->hyper.rate_first != 0 ? eval_sgd(h, x, d * x->lr) : x->lr * eval_sgd(h, x, d);
        break;
    case LS_OP_ADAM: *x->p -= x->lr * part * eval_adam(h, x, d); break;
    case LS_OP_NADAM: *x->p -= x->lr * eval_nadam(h, x, d); break;
    case LS_OP_RADAM: *x->p -= x->lr * eval_radam(h, x, d); break;
    case LS_OP_RMSPROP: *x->p -= x->lr * eval_rmsprop(h, x, d); break;
    case LS_OP_ADAGRAD:
        *x->s[0] += d * d;
        *x->p -= x->lr / (1 + (x->t - 1) * h->hyper.lr_decay) * d
                 / (sqrt(*x->s[0] + h->hyper.initial) + h->hyper.eps);
        break;
    case LS_OP_LION: {
        const double way = h->hyper.beta1 * *x->s[0] + (1 - h->hyper.beta1) * d;
        eval_towards(x->s[0], h->hyper.beta2, d);
        *x->p -= x->lr * ((way > 0) - (way < 0) + h->hyper.decay * *x->p);
        break;
    }
    case LS_OP_LAMB: *x->y = eval_adam(h, x, d) + h->hyper.decay * *x->p; break;
    case LS_OP_DIRECTION: *x->y = d; break;
    case LS_OP_RAW_ADAM: {
        const double m = eval_towards(x->s[0], h->hyper.beta1, d);
        *x->y = m / (sqrt(eval_towards(x->s[1], h->hyper.beta2, d * d)) + h->hyper.eps);
        break;
    }
    case LS_OP_MUON: {
        const double mean = eval_towards(x->s[0], h->hyper.momentum, d);
        *x->y = (1 - h->hyper.momentum) * d + h->hyper.momentum * mean;
        break;
    }
    case LS_OP_STEP:
        if (h->hyper.corrects != 0)
            d *= sqrt(1 - pow(h->hyper.beta2, x->t)) / (1 - pow(h->hyper.beta1, x->t));
        *x->p -= (h->hyper.relative != 0 ? fmin(x->lr, 1 / sqrt(x->t)) : x->lr) * part * d;
        break;
    case LS_OP_FREE_SGD: eval_schedule_free(h, x, d); break;
    case LS_OP_FREE_ADAMW: {
        const double v = eval_towards(x->s[1], h->hyper.beta2, d * d);
        eval_schedule_free(h, x, d / (sqrt(v / (1 - pow(h->hyper.beta2, x->t))) + h->hyper.eps));
        break;
    }
    default: ck_abort_msg("tests/support/eval_update.h has no rule of %s", ls_op[op]->name);
    }
}

/* Whether weight decay is added to the gradient; else it shrinks the parameter first, or the rule
 * itself decays. */
static inline bool eval_adds_decay(uint16_t op, const LsUpdateAttr *h)
{
    return h->hyper.decoupled == 0 && op != LS_OP_LION && op != LS_OP_LAMB && op != LS_OP_MUON
           && op != LS_OP_RAW_ADAM && op != LS_OP_STEP && op != LS_OP_FREE_SGD
           && op != LS_OP_FREE_ADAMW;
}

/* What the parameter loses of itself first, over the rate. */
static inline double eval_shrinks(uint16_t op, const LsUpdateAttr *h)
{
    if (op == LS_OP_ADAM && h->hyper.decoupled != 0)
        return h->hyper.decay * (h->hyper.rate_part != 0 ? h->hyper.rate_part : 1);
    return op == LS_OP_STEP || (h->hyper.decoupled != 0 && (op == LS_OP_NADAM || op == LS_OP_RADAM))
               ? h->hyper.decay
               : 0;
}

/* The update of a parameter. */
static inline void eval_parameter(Eval *e, LsNodeId n, const LsRule *rule)
{
    const LsGraph *g = e->g;
    const LsUpdateAttr *h = &g->node[n.i].attr.update;
    const uint16_t op = g->node[n.i].op;
    double *p = eval_operand(e, n, 0), *grad = eval_operand(e, n, 1),
           *factor = eval_operand(e, n, ls_rule_factor(rule));
    double *acc = eval_operand(e, n, ls_rule_acc(rule)),
           *weight = eval_operand(e, n, ls_rule_weight(rule));
    double *average = eval_operand(e, n, ls_rule_average(rule)),
           *shared = eval_operand(e, n, ls_rule_shared(rule));
    const bool bad = h->skips && factor[0] < 0;
    const double part = weight != NULL      ? weight[0] != 0 ? weight[0] : 1
                        : h->sum.by_samples ? h->sum.scale * e->share
                                            : h->sum.scale;
    for (int64_t i = 0; i < ls_count(ls_in_shape(g, n, 0)); i++) {
        EvalElement x = {.p = p + i,
                         .lr = e->lr,
                         .t = (double)e->update,
                         .shared = shared != NULL ? shared[0] : 0};
        for (int k = 0; k < rule->nstate; k++)
            x.s[k] = eval_operand(e, n, 2 + k) != NULL ? eval_operand(e, n, 2 + k) + i : NULL;
        x.average = average != NULL ? average + i : NULL;
        x.y = rule->makes ? e->v[ls_out(g, n, 0).i] + i : NULL;
        double d = grad[i];
        if (acc != NULL)
            d = acc[i] = (e->first ? 0 : acc[i]) + d * part;
        if (x.y != NULL)
            *x.y = 0;
        if (!e->apply || bad)
            continue;
        d *= factor != NULL ? factor[0] : 1;
        if (h->clip != 0)
            d = fmin(fmax(d, -h->clip), h->clip);
        d += eval_adds_decay(op, h) ? h->hyper.decay * p[i] : 0;
        const double shrinks = e->lr * eval_shrinks(op, h);
        p[i] -= h->hyper.late == 0 ? shrinks * p[i] : 0;
        eval_rule(op, h, &x, d);
        p[i] -= h->hyper.late != 0 ? shrinks * p[i] : 0;
        if (h->hyper.ema != 0 && average != NULL && op != LS_OP_FREE_SGD && op != LS_OP_FREE_ADAMW)
            average[i] = h->hyper.ema * average[i] + (1 - h->hyper.ema) * p[i];
    }
}

/* Numbers that optimizers keep beside the states of parameters; the result is what they are
 * then. */
static inline void eval_number(Eval *e, LsNodeId n)
{
    const LsGraph *g = e->g;
    const LsUpdateAttr *h = &g->node[n.i].attr.update;
    const uint16_t op = g->node[n.i].op;
    double *of = eval_operand(e, n, 0), *y = e->v[ls_out(g, n, 0).i], t = (double)e->update;
    const double *factor = eval_operand(e, n, op == LS_OP_MOMENTUM_PRODUCT ? 1 : 2);
    const bool moves = e->apply && !(h->skips && factor[0] < 0);
    if (op == LS_OP_MOMENTUM_PRODUCT && moves)
        of[0] = (t > 1 ? of[0] : 1) * h->hyper.beta1
                * (1 - 0.5 * pow(0.96, t * h->hyper.momentum_decay));
    if (op == LS_OP_GROWTH_LIMIT) {
        const double now = sqrt(eval_operand(e, n, 1)[0]), most = h->hyper.growth;
        const double over = most > 0 && t > 1 ? fmax(now / (of[0] + 1e-8), most) / most : 1;
        y[0] = moves ? (h->hyper.front != 0 ? 1 : sqrt(h->hyper.scale)) / over : 1;
        of[0] = moves ? now / over : of[0];
        return;
    }
    for (int64_t i = 0; op == LS_OP_BLEND && moves && i < ls_count(ls_in_shape(g, n, 0)); i++)
        of[i] += pow(t, -h->hyper.power) * (eval_operand(e, n, 1)[i] - of[i]);
    for (int64_t i = 0; op != LS_OP_AVERAGE_SHARE && i < ls_count(ls_in_shape(g, n, 0)); i++)
        y[i] = of[i];
    if (op != LS_OP_AVERAGE_SHARE)
        return;
    double *mean = eval_operand(e, n, 1);
    const double most = t > 1 ? fmax(of[0], e->lr) : e->lr,
                 w = pow(t, h->hyper.by_time) * pow(most, h->hyper.by_rate);
    const double all = t > 1 ? mean[0] + (w - mean[0]) / t : w;
    y[0] = moves && all > 0 ? w / (t * all) : 0;
    of[0] = moves ? most : of[0];
    mean[0] = moves ? all : mean[0];
}

static inline void eval_update(Eval *e, LsNodeId n)
{
    const LsGraph *g = e->g;
    const LsUpdateAttr *at = &g->node[n.i].attr.update;
    const uint16_t op = g->node[n.i].op;
    double *p = eval_operand(e, n, 0), *x = eval_operand(e, n, 1);
    if (ls_rule_of((LsOpCode)op) != NULL) {
        eval_parameter(e, n, ls_rule_of((LsOpCode)op));
        return;
    }
    if (op == LS_OP_MOMENTUM_PRODUCT || op == LS_OP_BLEND || op == LS_OP_GROWTH_LIMIT
        || op == LS_OP_AVERAGE_SHARE) {
        eval_number(e, n);
        return;
    }
    if (op == LS_OP_LOSS_SCALE || (op == LS_OP_RUNNING_STAT && g->node[n.i].nin > 2)) {
        eval_scaled(e, n);
        return;
    }
    const double *weight = op == LS_OP_ACCUMULATE ? eval_operand(e, n, 2) : NULL;
    const double part = weight != NULL       ? weight[0] != 0 ? weight[0] : 1
                        : at->sum.by_samples ? at->sum.scale * e->share
                                             : at->sum.scale;
    for (int64_t i = 0; i < ls_count(ls_in_shape(g, n, 0)); i++)
        if (op == LS_OP_RUNNING_STAT)
            p[i] = p[i] * at->hyper.momentum + x[i] * at->sum.scale;
        else                    /* ACCUMULATE: p is the gradient, x the accumulator */
            e->v[ls_out(g, n, 0).i][i] = x[i] = (e->first ? 0 : x[i]) + p[i] * part;
}

#endif
