/* tests/codegen/test_kernels_update.c -- optimizer steps against the formulas of PyTorch, in
 * double. */
#include "compiler/ir/optimizer.h"
#include "tests/support/kernel_rig.h"
#include "tests/support/suite.h"

enum { N = 20011 };
static const int real_bytes[] = {4, 8};
static const LsValueId none = {0};

typedef struct Step {
    LsUpdateAttr at;
    bool adam, momentum, factor, acc, weight;
    double is;                  /* the factor; 0: any */
    LsOpCode op;                /* of other optimizers */
    unsigned state;             /* bit k: that state is there */
    bool average, shared;
} Step;

/* v[]: p, g, three tensors of state, the accumulator, the average, the direction that the node
 * makes. */
enum { P, G, STATE, ACC = STATE + LS_MOMENTS, AVERAGE, Y, TENSORS };

static LsOpCode op_of(const Step *s)
{
    return s->op != LS_OP_NOP ? s->op : s->adam ? LS_OP_ADAM : LS_OP_SGD;
}
static bool has_state(const Step *s, int k)
{
    return s->op != LS_OP_NOP ? s->state >> k & 1 : s->adam ? k < 2 : s->momentum && k == 0;
}

/* Schedule-free: moves z and the average; returns the step. */
static double free_step(const LsUpdateAttr *a, const LsRun *run, double shared, double way,
                        double v[TENSORS])
{
    const double z = (run->update == 1 ? v[P] : v[STATE]) - run->lr * (way + a->hyper.decay * v[P]);
    v[STATE] = z;
    v[AVERAGE] += shared * (z - v[AVERAGE]);
    return v[P] - ((1 - a->hyper.beta1) * z + a->hyper.beta1 * v[AVERAGE]);
}

/* The step of an element by the other optimizers, or its direction. */
static double other_step(const Step *s, const LsRun *run, double shared, double g,
                         double v[TENSORS])
{
    const LsUpdateAttr *a = &s->at;
    const double t = (double)run->update, p = v[P];
    double *m = &v[STATE], *q = &v[STATE + 1];
    double old, now, next, length, most, mean;
    switch (s->op) {
    case LS_OP_LION:
        old = a->hyper.beta1 * *m + (1 - a->hyper.beta1) * g;
        *m = a->hyper.beta2 * *m + (1 - a->hyper.beta2) * g;
        return run->lr * ((old > 0) - (old < 0) + a->hyper.decay * p);
    case LS_OP_RMSPROP:
        g += a->hyper.decay * p;
        *m = a->hyper.beta2 * *m + (1 - a->hyper.beta2) * g * g;
        mean = v[STATE + 2] = has_state(s, 2)
                                  ? a->hyper.beta2 * v[STATE + 2] + (1 - a->hyper.beta2) * g
                                  : v[STATE + 2];
        old = fmax(*m - (has_state(s, 2) ? mean * mean : 0), 0);
        old = a->hyper.inside != 0 ? g / sqrt(old + a->hyper.eps) : g / (sqrt(old) + a->hyper.eps);
        if (has_state(s, 1))
            old = *q = a->hyper.momentum * *q + old;
        return run->lr * old;
    case LS_OP_ADAGRAD:
        g += a->hyper.decay * p;
        *m += g * g;
        return run->lr / (1 + (t - 1) * a->hyper.lr_decay) * g
               / (sqrt(*m + a->hyper.initial) + a->hyper.eps);
    case LS_OP_DIRECTION:
        return g + a->hyper.decay * p;
    case LS_OP_MUON:
        *m = a->hyper.momentum * *m + (1 - a->hyper.momentum) * g;
        return (1 - a->hyper.momentum) * g + a->hyper.momentum * *m;
    case LS_OP_RAW_ADAM:
        *m = a->hyper.beta1 * *m + (1 - a->hyper.beta1) * g;
        *q = a->hyper.beta2 * *q + (1 - a->hyper.beta2) * g * g;
        return *m / (sqrt(*q) + a->hyper.eps);
    case LS_OP_STEP:
        if (a->hyper.late != 0) {
            old = run->lr * sqrt(1 - pow(a->hyper.beta2, t)) / (1 - pow(a->hyper.beta1, t)) * g;
            return old + run->lr * a->hyper.decay * (p - old);
        }
        return run->lr * a->hyper.decay * p
               + fmin(run->lr, a->hyper.relative != 0 ? 1 / sqrt(t) : run->lr) * g;
    case LS_OP_FREE_SGD:
        return free_step(a, run, shared, g, v);
    case LS_OP_FREE_ADAMW:
        *q = a->hyper.beta2 * *q + (1 - a->hyper.beta2) * g * g;
        return free_step(a, run, shared,
                         g / (sqrt(*q / (1 - pow(a->hyper.beta2, t))) + a->hyper.eps), v);
    case LS_OP_LAMB:
        *m = a->hyper.beta1 * *m + (1 - a->hyper.beta1) * g;
        *q = a->hyper.beta2 * *q + (1 - a->hyper.beta2) * g * g;
        return *m / (1 - pow(a->hyper.beta1, t))
                   / (sqrt(*q / (1 - pow(a->hyper.beta2, t))) + a->hyper.eps)
               + a->hyper.decay * p;
    default:
        break;
    }
    if (a->hyper.decoupled == 0)
        g += a->hyper.decay * p;
    *m = a->hyper.beta1 * *m + (1 - a->hyper.beta1) * g;
    *q = a->hyper.beta2 * *q + (1 - a->hyper.beta2) * g * g;
    old = a->hyper.decoupled != 0 ? run->lr * a->hyper.decay * p : 0;
    if (s->op == LS_OP_NADAM) {
        now = a->hyper.beta1 * (1 - 0.5 * pow(0.96, t * a->hyper.momentum_decay));
        next = a->hyper.beta1 * (1 - 0.5 * pow(0.96, (t + 1) * a->hyper.momentum_decay));
        return old + run->lr * ((1 - now) / (1 - shared) * g + next / (1 - shared * next) * *m)
                   / (sqrt(*q / (1 - pow(a->hyper.beta2, t))) + a->hyper.eps);
    }
    most = 2 / (1 - a->hyper.beta2) - 1;
    length = most - 2 * t * pow(a->hyper.beta2, t) / (1 - pow(a->hyper.beta2, t));
    next = run->lr * *m / (1 - pow(a->hyper.beta1, t));
    if (length > 5)
        next *= sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length))
                * sqrt(1 - pow(a->hyper.beta2, t)) / (sqrt(*q) + a->hyper.eps);
    return old + next;
}

/* One element by the book. */
static void by_the_book(const Step *s, const LsRun *run, double factor, double weight,
                        double shared, double v[TENSORS])
{
    double g = v[G], part = s->weight ? (weight != 0 ? weight : 1)
                           : s->at.sum.by_samples ? s->at.sum.scale * run->share : s->at.sum.scale;
    if (s->acc)
        g = v[ACC] = (run->first ? 0 : v[ACC]) + g * part;
    v[Y] = 0;
    if (!run->apply || (s->at.skips && factor < 0))
        return;
    g *= factor;
    if (s->at.clip > 0)
        g = fmin(fmax(g, -s->at.clip), s->at.clip);
    if (s->op != LS_OP_NOP) {
        const double step = other_step(s, run, shared, g, v);
        v[ls_rule_of(s->op)->makes ? Y : P] -= ls_rule_of(s->op)->makes ? -step : step;
        if (s->at.hyper.ema != 0)
            v[AVERAGE] = s->at.hyper.ema * v[AVERAGE] + (1 - s->at.hyper.ema) * v[P];
        return;
    }
    if (!s->adam) {
        g += s->at.hyper.decay * v[0];
        if (s->momentum) {
            v[2] = s->at.hyper.momentum * v[2] + g;
            g = s->at.hyper.nesterov ? g + s->at.hyper.momentum * v[2] : v[2];
        }
        v[0] -= run->lr * g;
        return;
    }
    if (s->at.hyper.decoupled && s->at.hyper.late == 0)
        v[0] -= run->lr * s->at.hyper.decay * v[0];
    else if (s->at.hyper.decoupled == 0)
        g += s->at.hyper.decay * v[0];
    v[2] = s->at.hyper.beta1 * v[2] + (1 - s->at.hyper.beta1) * g;
    v[3] = s->at.hyper.beta2 * v[3] + (1 - s->at.hyper.beta2) * g * g;
    double t = (double)run->update;
    if (s->at.hyper.late != 0) {
        v[0] -= run->lr * sqrt(1 - pow(s->at.hyper.beta2, t)) / (1 - pow(s->at.hyper.beta1, t))
                * v[2] / (sqrt(v[3]) + s->at.hyper.eps);
        v[0] -= run->lr * s->at.hyper.decay * v[0];
        return;
    }
    v[0] -= run->lr / (1 - pow(s->at.hyper.beta1, t)) * v[2]
            / (sqrt(v[3]) / sqrt(1 - pow(s->at.hyper.beta2, t)) + s->at.hyper.eps);
}

enum { MANY = 4 };
/* elements of tensors updated together */
typedef struct Sizes { int64_t n[MANY]; int many; } Sizes;
static const Sizes one = {{N}, 1}, fours = {{64, 4096, 1000, 4}, 4}, odd = {{33, 1, 20, 515}, 4};

/* The moments are in bfloat16: one of the two numbers beside the right one. */
static bool is_narrow(const Step *s, int k)
{
    return s->at.hyper.bf16 != 0 && k >= STATE && k < STATE + LS_MOMENTS;
}

/* Tensors of these sizes by one node: what its operands are, and what they become. */
static void check_step(const Step *s, int bytes, bool first, bool apply, const Sizes *z)
{
    Rig r;
    rig_open(&r, bytes);
    r.run.first = first;
    r.run.apply = apply;
    r.run.share = 0.75;
    const LsRule *rule = ls_rule_of(op_of(s));
    LsValueId v[MANY][TENSORS], in[MANY * LS_MAX_IN] = {{0}},
                                          factor = rig_operand(&r, LS_REAL, LS_ROW, (LsShape){0});
    LsValueId weight = rig_operand(&r, LS_REAL, LS_ROW, (LsShape){0});
    rig_set(&r, weight, 0, first ? 0 : 2.5);
    if (s->is != 0)
        rig_set(&r, factor, 0, s->is);
    LsValueId shared = rig_operand(&r, LS_REAL, LS_ROW, (LsShape){0});
    rig_set(&r, shared, 0, 0.4);
    double (*want)[N][TENSORS] = calloc((size_t)z->many, sizeof *want);
    const int nin = ls_rule_shared(rule) + 1;
    for (int t = 0; t < z->many; t++) {
        for (int k = 0; k < TENSORS; k++)
            v[t][k] = rig_operand(&r, is_narrow(s, k) ? LS_BF16 : LS_REAL, LS_ROW,
                                  SHAPE(z->n[t]));
        for (int64_t i = 0; i < z->n[t]; i++) {
            for (int k = 0; k < 2; k++)         /* second moments, but a mean is below the root of
                                                 * RMSprop's */
                rig_set(&r, v[t][STATE + k], i,
                        fabs(rig_get(&r, v[t][STATE + k], i)) + (s->op == LS_OP_RMSPROP ? 9 : 0));
            for (int k = 0; k < TENSORS; k++)
                want[t][i][k] = rig_get(&r, v[t][k], i);
            by_the_book(s, &r.run, s->factor ? rig_get(&r, factor, 0) : 1, rig_get(&r, weight, 0),
                        rig_get(&r, shared, 0), want[t][i]);
        }
        LsValueId *to = in + t * nin;
        to[0] = v[t][P];
        to[1] = v[t][G];
        for (int k = 0; k < rule->nstate; k++)
            to[2 + k] = has_state(s, k) ? v[t][STATE + k] : none;
        to[ls_rule_factor(rule)] = s->factor ? factor : none;
        to[ls_rule_acc(rule)] = s->acc ? v[t][ACC] : none;
        to[ls_rule_weight(rule)] = s->weight ? weight : none;
        to[ls_rule_average(rule)] = s->average ? v[t][AVERAGE] : none;
        to[ls_rule_shared(rule)] = s->shared ? shared : none;
    }
    LsAttr at = {.update = s->at};
    at.update.many = z->many;
    LsNodeId node = rig_node(&r, op_of(s), (size_t)(nin * z->many), in, rule->makes, &at);
    if (rule->makes)
        v[0][Y] = rig_result(&r, node, 0, LS_REAL, LS_ROW, SHAPE(z->n[0]));
    rig_run(&r);
    for (int t = 0; t < z->many; t++)
        for (int64_t i = 0; i < z->n[t]; i++)
            for (int k = 0; k < (rule->makes ? TENSORS : Y); k++)
                rig_close_to(&r, v[t][k], i, want[t][i][k],
                             !is_narrow(s, k) ? 2e-6
                             : bytes == 4     ? 0x1p-7
                                              : 0x1p-7 * 1e8);
    free(want);
    rig_close(&r);
}

static const Step steps[] = {
    {.adam = false},
    {.at = {.hyper.momentum = 0.9, .hyper.decay = 0.01}, .momentum = true},
    {.at = {.hyper.momentum = 0.9, .hyper.decay = 0.01, .hyper.nesterov = true, .clip = 0.5},
     .momentum = true,
     .factor = true},
    {.at = {.sum.scale = 0.25, .clip = 0.3}, .acc = true},
    {.at = {.sum.scale = 0.25, .sum.by_samples = true}, .acc = true},
    {.at = {.hyper.momentum = 0.9, .clip = 0.3},
     .momentum = true,
     .factor = true,
     .acc = true,
     .weight = true},
    {.at = {.hyper.beta1 = 0.9, .hyper.beta2 = 0.999, .hyper.eps = 1e-8},
     .adam = true,
     .factor = true,
     .acc = true,
     .weight = true},
    {.at = {.hyper.beta1 = 0.9, .hyper.beta2 = 0.999, .hyper.eps = 1e-8, .hyper.decay = 0.01},
     .adam = true},
    {.at = {.hyper.beta1 = 0.9,
            .hyper.beta2 = 0.999,
            .hyper.eps = 1e-8,
            .hyper.decay = 0.01,
            .hyper.decoupled = true,
            .sum.scale = 0.5,
            .clip = 0.5},
     .adam = true,
     .factor = true,
     .acc = true},
    {.at = {.hyper.momentum = 0.9, .skips = true}, .momentum = true, .factor = true, .is = -1},
    {.at = {.hyper.beta1 = 0.9, .hyper.beta2 = 0.999, .hyper.eps = 1e-8, .skips = true},
     .adam = true,
     .factor = true,
     .is = -1},
    {.at = {.hyper.beta1 = 0.9, .hyper.beta2 = 0.999, .hyper.eps = 1e-8, .skips = true},
     .adam = true,
     .factor = true,
     .is = 0.5},
    {.op = LS_OP_LION,
     .state = 1,
     .at = {.hyper.beta1 = 0.9, .hyper.beta2 = 0.99, .hyper.decay = 0.1, .sum.scale = 0.5},
     .acc = true},
    {.op = LS_OP_LAMB,
     .state = 3,
     .at = {.hyper.beta1 = 0.9, .hyper.beta2 = 0.999, .hyper.eps = 1e-3, .hyper.decay = 0.1}},
    {.op = LS_OP_LAMB,
     .state = 3,
     .at = {.hyper.beta1 = 0.9, .hyper.beta2 = 0.999, .hyper.eps = 1e-3, .skips = true},
     .factor = true,
     .is = -1},
    {.op = LS_OP_RAW_ADAM,
     .state = 3,
     .at = {.hyper.beta1 = 0.9, .hyper.beta2 = 0.999, .hyper.eps = 1e-3}},
    {.op = LS_OP_STEP,
     .at = {.hyper.decay = 0.1,
            .hyper.late = 1,
            .hyper.corrects = 1,
            .hyper.beta1 = 0.9,
            .hyper.beta2 = 0.999},
     .factor = true},
    {.at = {.hyper.beta1 = 0.9,
            .hyper.beta2 = 0.999,
            .hyper.eps = 1e-3,
            .hyper.decay = 0.1,
            .hyper.decoupled = 1,
            .hyper.late = 1},
     .adam = true},
    {.at = {.hyper.beta1 = 0.9,
            .hyper.beta2 = 0.999,
            .hyper.eps = 1e-3,
            .hyper.decay = 0.1,
            .hyper.bf16 = 1,
            .skips = true},
     .adam = true,
     .factor = true,
     .is = 0.5},
    {.at = {.hyper.momentum = 0.9, .hyper.nesterov = true, .hyper.bf16 = 1, .clip = 0.3},
     .momentum = true},
    {.op = LS_OP_LION,
     .state = 1,
     .at = {.hyper.beta1 = 0.9, .hyper.beta2 = 0.99, .hyper.bf16 = 1, .sum.scale = 0.5},
     .acc = true},
    {.op = LS_OP_MUON, .state = 1, .at = {.hyper.momentum = 0.95}},
    {.op = LS_OP_DIRECTION, .at = {.hyper.decay = 0.1, .clip = 0.5, .sum.scale = 0.5}, .acc = true},
    {.op = LS_OP_STEP,
     .at = {.hyper.decay = 0.1, .hyper.relative = 1, .hyper.ema = 0.9},
     .average = true,
     .factor = true},
    {.op = LS_OP_FREE_SGD,
     .state = 1,
     .at = {.hyper.beta1 = 0.9, .hyper.decay = 0.1},
     .average = true,
     .shared = true},
    {.op = LS_OP_FREE_ADAMW,
     .state = 3,
     .at = {.hyper.beta1 = 0.9, .hyper.beta2 = 0.99, .hyper.eps = 1e-3, .hyper.decay = 0.1},
     .average = true,
     .shared = true},
    {.op = LS_OP_RMSPROP,
     .state = 1,
     .at = {.hyper.beta2 = 0.9, .hyper.eps = 1e-3, .hyper.decay = 0.1},
     .factor = true},
    {.op = LS_OP_RMSPROP,
     .state = 7,
     .at = {.hyper.beta2 = 0.9,
            .hyper.eps = 1e-3,
            .hyper.inside = 1,
            .hyper.momentum = 0.9,
            .hyper.centered = 1}},
    {.op = LS_OP_ADAGRAD,
     .state = 1,
     .at = {.hyper.eps = 1e-3, .hyper.lr_decay = 0.1, .hyper.initial = 0.2, .hyper.decay = 0.1}},
    {.op = LS_OP_NADAM,
     .state = 3,
     .shared = true,
     .at = {.hyper.beta1 = 0.9,
            .hyper.beta2 = 0.999,
            .hyper.eps = 1e-3,
            .hyper.momentum_decay = 0.004,
            .hyper.decay = 0.1}},
    {.op = LS_OP_RADAM,
     .state = 3,
     .at = {.hyper.beta1 = 0.9,
            .hyper.beta2 = 0.999,
            .hyper.eps = 1e-3,
            .hyper.decay = 0.1,
            .hyper.decoupled = 1}},
    {.op = LS_OP_RADAM,
     .state = 3,
     .at = {.hyper.beta1 = 0.9, .hyper.beta2 = 0.5, .hyper.eps = 1e-3},
     .factor = true},
};

enum { SHARED_STEPS = 13 };     /* the first ones: what all optimizers share is tested with these */

START_TEST(test_steps_follow_the_formulas)
{
    for (int b = 0; b < 2; b++)
        check_step(&steps[_i], real_bytes[b], true, true, &one);
}
END_TEST

START_TEST(test_many_tensors_are_updated_by_one_kernel)
{
    for (int b = 0; b < tests_part(2, 1); b++) {    /* one tensor at a time has both precisions */
        check_step(&steps[_i], real_bytes[b], true, true, &fours);
        check_step(&steps[_i], real_bytes[b], true, true, &odd);
    }
    check_step(&steps[_i], 4, false, false, &fours);
}
END_TEST

START_TEST(test_micro_steps_accumulate_and_do_not_update)
{
    check_step(&steps[_i], 4, false, false, &one);
    check_step(&steps[_i], 4, true, false, &one);
    check_step(&steps[_i], 4, false, true, &one);
}
END_TEST

START_TEST(test_accumulation_and_running_statistics)
{
    Rig r;
    rig_open(&r, real_bytes[_i]);
    r.run.first = false;
    LsValueId g = rig_operand(&r, LS_REAL, LS_ROW, SHAPE(N)),
              acc = rig_operand(&r, LS_REAL, LS_ROW, SHAPE(N));
    LsValueId stat = rig_operand(&r, LS_REAL, LS_ROW, SHAPE(33));
    LsValueId batch = rig_operand(&r, LS_REAL, LS_ROW, SHAPE(1, 33, 1, 1));
    LsValueId more[] = {
        rig_operand(&r, LS_REAL, LS_ROW, SHAPE(5)), rig_operand(&r, LS_REAL, LS_ROW, SHAPE(5)),
        rig_operand(&r, LS_REAL, LS_ROW, SHAPE(300)), rig_operand(&r, LS_REAL, LS_ROW, SHAPE(300))};
    double wanted[] = {0.9 * rig_get(&r, more[0], 4) + 0.1 * rig_get(&r, more[1], 4),
                       0.9 * rig_get(&r, more[2], 299) + 0.1 * rig_get(&r, more[3], 299)};
    rig_node(&r, LS_OP_RUNNING_STAT, 4, more, 0,
             &(LsAttr){.update = {.hyper.momentum = 0.9, .sum.scale = 0.1, .many = 2}});
    LsNodeId n =
        rig_node(&r, LS_OP_ACCUMULATE, VALUES(g, acc), 1, &(LsAttr){.update = {.sum.scale = 0.5}});
    LsValueId sum = rig_result(&r, n, 0, LS_REAL, LS_ROW, SHAPE(N));
    rig_node(&r, LS_OP_RUNNING_STAT, VALUES(stat, batch), 0,
             &(LsAttr){.update = {.hyper.momentum = 0.9, .sum.scale = 0.1}});
    LsValueId weight = rig_operand(&r, LS_REAL, LS_ROW, (LsShape){0}),
              all = rig_operand(&r, LS_REAL, LS_ROW, SHAPE(N));
    double want_all = rig_get(&r, all, 7) + rig_get(&r, weight, 0) * rig_get(&r, g, 7);
    n = rig_node(&r, LS_OP_ACCUMULATE, VALUES(g, all, weight), 1,
                 &(LsAttr){.update = {.sum.scale = 1}});
    rig_result(&r, n, 0, LS_REAL, LS_ROW, SHAPE(N));
    double want[33], want_sum = rig_get(&r, acc, N - 1) + 0.5 * rig_get(&r, g, N - 1);
    for (int k = 0; k < 33; k++)
        want[k] = 0.9 * rig_get(&r, stat, k) + 0.1 * rig_get(&r, batch, k);
    rig_run(&r);
    rig_close_to(&r, sum, N - 1, want_sum, 1e-7);
    rig_close_to(&r, acc, N - 1, want_sum, 1e-7);
    rig_close_to(&r, all, 7, want_all, 1e-7);
    for (int k = 0; k < 33; k++)
        rig_close_to(&r, stat, k, want[k], 1e-7);
    rig_close_to(&r, more[0], 4, wanted[0], 1e-7);
    rig_close_to(&r, more[2], 299, wanted[1], 1e-7);
    rig_close(&r);
}
END_TEST

/* A part joins the partial sums of the tree: ACCUMULATE of one tensor, updates of several small
 * ones together, which lie one after the other. Part 5 of 6: levels 0 and 2 join; part 3 of more:
 * levels 0 and 1 become level 2. A sum that stays in the accumulator is level 0 after the last
 * part. */
enum { TREES = 5 };
START_TEST(test_a_part_joins_the_tree)
{
    enum { LEVELS = 3, SMALL = 36 };
    const bool stays = _i >= TREES;
    const struct { int64_t part; bool last; int joined[2]; int to;
    } * c, cases[TREES] = {{5, true, {0, 2}, 0},
                      {3, false, {0, 1}, 2},
                      {4, false, {-1, -1}, 0},
                      {0, true, {-1, -1}, 0},
                      {2, true, {1, -1}, 1}};
    Rig r;
    c = &cases[_i % TREES];
    rig_open(&r, 4);
    r.run.part = c->part;
    r.run.apply = c->last;
    const LsAttr at = {.update = {.sum.scale = 0.3, .sum.levels = LEVELS, .stays = stays}};
    LsValueId g = rig_operand(&r, LS_REAL, LS_ROW, SHAPE(N)),
              acc = rig_operand(&r, LS_REAL, LS_ROW, SHAPE(LEVELS * N));
    LsAttr many = at;
    many.update.many = 2;
    const LsValueId p[] = {rig_operand(&r, LS_REAL, LS_ROW, SHAPE(SMALL)),
                           rig_operand(&r, LS_REAL, LS_ROW, SHAPE(SMALL)),
                           none,
                           none,
                           rig_operand(&r, LS_REAL, LS_ROW, SHAPE(LEVELS * SMALL)),
                           rig_operand(&r, LS_REAL, LS_ROW, SHAPE(4)),
                           rig_operand(&r, LS_REAL, LS_ROW, SHAPE(4)),
                           none,
                           none,
                           rig_operand(&r, LS_REAL, LS_ROW, SHAPE(LEVELS * 4))};
    float want[2], before = (float)rig_get(&r, p[0], SMALL - 1);
    for (int k = 0; k < 2; k++) {
        const LsValueId v = k == 0 ? g : p[1], sums = k == 0 ? acc : p[4];
        const int n = k == 0 ? N : SMALL;
        volatile float leaf = (float)rig_get(&r, v, n - 1) * 0.3f;
        want[k] = leaf;
        for (int j = 0; j < 2 && c->joined[j] >= 0; j++)
            want[k] = (float)rig_get(&r, sums, (c->joined[j] + 1) * n - 1) + want[k];
    }
    LsNodeId n = rig_node(&r, LS_OP_ACCUMULATE, VALUES(g, acc), 1, &at);
    LsValueId sum = rig_result(&r, n, 0, LS_REAL, LS_ROW, SHAPE(N));
    rig_node(&r, LS_OP_SGD, 10, p, 0, &many);
    rig_run(&r);
    ck_assert(rig_get(&r, acc, ((stays && c->last ? 0 : c->to) + 1) * N - 1) == want[0]);
    ck_assert(stays || rig_get(&r, sum, N - 1) == want[0]);
    ck_assert(rig_get(&r, p[4], (c->to + 1) * SMALL - 1) == want[1]);
    rig_close_to(&r, p[0], SMALL - 1, c->last ? before - 0.1f * want[1] : before, 1e-7);
    rig_close(&r);
}
END_TEST

/* Statistics that a bad step does not move; with `next`, at the last of several micro-batches. */
static void check_statistic(bool with_next, bool first, bool apply, double factor)
{
    Rig r;
    LsAttr at = {.update = {.hyper.momentum = 0.9, .sum.scale = 0.1}};
    rig_open(&r, 4);
    r.run.first = first;
    r.run.apply = apply;
    LsValueId stat = rig_operand(&r, LS_REAL, LS_ROW, SHAPE(33)),
              batch = rig_operand(&r, LS_REAL, LS_ROW, SHAPE(33));
    LsValueId next = with_next ? rig_operand(&r, LS_REAL, LS_ROW, SHAPE(33)) : none;
    LsValueId f = rig_operand(&r, LS_REAL, LS_ROW, (LsShape){0});
    rig_set(&r, f, 0, factor);
    double from = rig_get(&r, with_next && !first ? next : stat, 7),
           moved = 0.9 * from + 0.1 * rig_get(&r, batch, 7);
    double old = rig_get(&r, stat, 7);
    rig_node(&r, LS_OP_RUNNING_STAT, VALUES(stat, batch, next, f), 0, &at);
    rig_run(&r);
    rig_close_to(&r, stat, 7, factor >= 0 && apply ? moved : old, 1e-7);
    if (with_next)
        rig_close_to(&r, next, 7, moved, 1e-7);
    rig_close(&r);
}

START_TEST(test_statistics_of_bad_steps_are_discarded)
{
    check_statistic(false, true, true, _i == 0 ? -1 : 0.5);
    check_statistic(true, true, false, -1);
    check_statistic(true, false, true, _i == 0 ? -1 : 0.5);
}
END_TEST

/* A step of the machine: what scale, counter and skips become. */
static void check_machine(int bytes, bool apply, double factor, double good, const double want[4])
{
    Rig r;
    rig_open(&r, bytes);
    r.run.apply = apply;
    LsValueId f = rig_operand(&r, LS_REAL, LS_ROW, (LsShape){0}),
              scale = rig_operand(&r, LS_REAL, LS_ROW, (LsShape){0});
    LsValueId counter = rig_operand(&r, LS_REAL, LS_ROW, (LsShape){0}),
              skips = rig_operand(&r, LS_REAL, LS_ROW, SHAPE(2));
    rig_set(&r, f, 0, factor);
    rig_set(&r, scale, 0, 1024);
    rig_set(&r, counter, 0, good);
    rig_set(&r, skips, 0, 5);
    rig_set(&r, skips, 1, 2);
    rig_node(
        &r, LS_OP_LOSS_SCALE, VALUES(f, scale, counter, skips), 0,
        &(LsAttr){
            .update = {
                .rule = {.period = 3, .grow = 4, .shrink = 4, .divides = true, .least = 512}}});
    rig_run(&r);
    ck_assert_double_eq(rig_get(&r, scale, 0), want[0]);
    ck_assert_double_eq(rig_get(&r, counter, 0), want[1]);
    ck_assert_double_eq(rig_get(&r, skips, 0), want[2]);
    ck_assert_double_eq(rig_get(&r, skips, 1), want[3]);
    rig_close(&r);
}

START_TEST(test_the_loss_scale_moves_at_the_end_of_a_step)
{
    static const double grown[] = {4096, 0, 5, 0}, counted[] = {1024, 2, 5, 0},
                        shrunk[] = {512, 0, 6, 3}, same[] = {1024, 1, 5, 2};
    check_machine(real_bytes[_i], true, 0.5, 2, grown);
    check_machine(real_bytes[_i], true, 0.5, 1, counted);
    check_machine(real_bytes[_i], true, -1, 1, shrunk);
    check_machine(real_bytes[_i], false, -1, 1, same);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("kernels_update");
    int n = sizeof steps / sizeof *steps;
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_steps_follow_the_formulas, 0, n);
    tcase_add_loop_test(t, test_many_tensors_are_updated_by_one_kernel, 0, SHARED_STEPS);
    tcase_add_loop_test(t, test_micro_steps_accumulate_and_do_not_update, 0, SHARED_STEPS);
    tcase_add_loop_test(t, test_a_part_joins_the_tree, 0, 2 * TREES);
    tcase_add_loop_test(t, test_accumulation_and_running_statistics, 0, 2);
    tcase_add_loop_test(t, test_statistics_of_bad_steps_are_discarded, 0, 2);
    tcase_add_loop_test(t, test_the_loss_scale_moves_at_the_end_of_a_step, 0, 2);
    return run_tests("kernels_update", t);
}
