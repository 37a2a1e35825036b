/* tests/differential/interpreter.c -- see the header. */
#include "tests/differential/interpreter.h"

#include "tests/differential/draw.h"
#include "tests/support/eval.h"

#include <math.h>
#include <stdio.h>

enum { VALUES = 16384 }; /* most values of a graph */

struct Interpreter {
    Eval e;
    uint32_t nvalue, nnode; /* those done so far */
    bool *fixed;            /* by value: depends on constants alone */
};

Interpreter *interpreter_new(const LsGraph *g)
{
    Interpreter *r = ls_arena_alloc(g->arena, 1, sizeof *r);
    r->e = (Eval){.g = g,
                  .v = ls_arena_alloc(g->arena, VALUES, sizeof(double *)),
                  .valid = g->batch,
                  .update = 1,
                  .first = true,
                  .apply = true,
                  .lr = INTERPRETER_LR,
                  .share = 1};
    r->fixed = ls_arena_alloc(g->arena, VALUES, sizeof *r->fixed);
    r->nvalue = r->nnode = 1;
    return r;
}

double *interpreter_of(const Interpreter *r, LsValueId v)
{
    return r->e.v[v.i];
}

/* ---- leaves ---- */
static const void *data_of(const LsGraph *g, uint32_t v, const void *const input[])
{
    for (uint32_t k = 0; k < g->ninput; k++)
        if (g->input[k].i == v)
            return input[k];
    return g->value[v].data;
}

void interpreter_load(Interpreter *r, uint32_t i, const void *const input[])
{
    const LsGraph *g = r->e.g;
    LsValue as = g->value[i];
    as.data = data_of(g, i, input);
    const LsGraph one = {.value = &as};
    for (int64_t k = 0; k < ls_count(&as.shape); k++)
        r->e.v[i][k] = as.data != NULL ? ls_const_at(&one, (LsValueId){0}, k) : 0;
}

static void follow_values(Interpreter *r, const void *const input[])
{
    const LsGraph *g = r->e.g;
    if (g->nvalue > VALUES)
        abort();
    for (; r->nvalue < g->nvalue; r->nvalue++) {
        const uint32_t i = r->nvalue;
        r->e.v[i] = eval_room(&r->e, (LsValueId){i});
        r->fixed[i] =
            g->value[i].kind == LS_V_CONST ||
            (g->value[i].kind == LS_V_STATE && strncmp(g->value[i].name, "fixed", 5) == 0);
        if (g->value[i].kind != LS_V_TEMP)
            interpreter_load(r, i, input);
    }
}

/* ---- nodes that draw ---- */
static void draw(Interpreter *r, LsNodeId n)
{
    const LsGraph *g = r->e.g;
    const LsNode *node = &g->node[n.i];
    const double *x = r->e.v[ls_in(g, n, 0).i];
    double *y = r->e.v[ls_out(g, n, 0).i], p = node->attr.scalar.a;
    const int64_t stream = (int64_t)node->attr.scalar.b;
    for (int64_t i = 0; i < ls_count(ls_shape(g, ls_out(g, n, 0))); i++)
        if (node->op == LS_OP_PROJECTION)
            y[i] = draw_normal(INTERPRETER_SEED, (r->e.update - 1) / (int64_t)p, (int64_t)x[0], i);
        else if (node->op == LS_OP_NORMAL)
            y[i] = draw_normal(INTERPRETER_SEED, 0, stream, i);
        else if (node->op == LS_OP_UNIFORM)
            y[i] = draw_uniform(INTERPRETER_SEED, 0, stream, i);
        else
            y[i] = draw_uniform(INTERPRETER_SEED, 0, stream, i) < p ? 0 : x[i] / (1 - p);
}

void interpreter_node(Interpreter *r, LsNodeId n)
{
    switch (r->e.g->node[n.i].op) {
    case LS_OP_DROPOUT:
    case LS_OP_UNIFORM:
    case LS_OP_NORMAL:
    case LS_OP_PROJECTION:
        draw(r, n);
        return;
    default:
        eval_node(&r->e, n);
    }
}

void interpreter_follow(Interpreter *r, const void *const input[])
{
    const LsGraph *g = r->e.g;
    follow_values(r, input);
    for (; r->nnode < g->nnode; r->nnode++) {
        const LsNodeId n = {r->nnode};
        bool fixed = true;
        for (int k = 0; k < g->node[n.i].nin; k++)
            fixed &= !ls_is(ls_in(g, n, k)) || r->fixed[ls_in(g, n, k).i];
        for (int k = 0; k < g->node[n.i].nout; k++)
            r->fixed[ls_out(g, n, k).i] = fixed;
        interpreter_node(r, n);
    }
}

/* ---- noise ---- */
static double some_noise(Dice *d, double noise)
{
    return noise * ((double)roll(d, 1 << 20) / (1 << 19) - 1);
}

/* By a relative error, and by an absolute one. */
static void disturb(Interpreter *r, LsValueId v, const Noise *noise, double absolute, Dice *d)
{
    if (noise == NULL || !ls_is(v) || ls_type(r->e.g, v) != LS_REAL)
        return;
    const double relative = r->fixed[v.i] ? noise->fixed : noise->relative;
    const double least = r->fixed[v.i] ? noise->fixed_least : noise->least;
    for (int64_t i = 0; i < ls_count(ls_shape(r->e.g, v)); i++) {
        double *const x = &r->e.v[v.i][i];
        *x *= 1 + some_noise(d, relative);
        *x += absolute > 0 ? some_noise(d, absolute) : 0;
        if (*x != 0 && fabs(*x) < least && roll(d, 2) == 0)
            *x = 0;
    }
}

/* The absolute error of results that are small differences. Some rows' expressions subtract numbers
 * near 1 (exp(x) - 1), some numbers like those of operand 0 (the log of a softmax over one
 * class). */
static double besides(const Interpreter *r, LsNodeId n, double noise)
{
    double most = 0;
    switch (r->e.g->node[n.i].op) {
    case LS_OP_ELU:
    case LS_OP_GELU:
    case LS_OP_GELU_GRAD:
    case LS_OP_GELU_TANH:
    case LS_OP_GELU_TANH_GRAD:
    case LS_OP_ACOSH: case LS_OP_ATANH: case LS_OP_NORMAL: return noise;
    case LS_OP_XENT:
    case LS_OP_XENT_GRAD:
    case LS_OP_LOG_SOFTMAX:
    case LS_OP_LOG_SOFTMAX_GRAD:
    case LS_OP_SOFTMAX_GRAD:
    case LS_OP_LAYER_NORM: case LS_OP_LAYER_NORM_GRAD: case LS_OP_NORM_DX: break;
    default: return 0;
    }
    const LsValueId x = ls_in(r->e.g, n, 0);
    for (int64_t i = 0; i < ls_count(ls_shape(r->e.g, x)); i++)
        most = fmax(most, fabs(r->e.v[x.i][i]));
    return noise * most;
}

void interpreter_run(Interpreter *r, const void *const input[], const Noise *noise, Dice *d)
{
    const LsGraph *g = r->e.g;
    interpreter_follow(r, input);
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (g->value[i].kind != LS_V_TEMP) {
            interpreter_load(r, i, input);
            disturb(r, (LsValueId){i}, noise, 0, d);
        }
    for (uint32_t i = 1; i < g->nnode; i++) {
        interpreter_node(r, (LsNodeId){i});
        for (int k = 0; k < g->node[i].nout; k++) {
            const LsValueId y = ls_out(g, (LsNodeId){i}, k);
            const double as = noise == NULL ? 0 : r->fixed[y.i] ? noise->fixed : noise->relative;
            disturb(r, y, noise, besides(r, (LsNodeId){i}, as), d);
        }
        for (int k = 0; k < g->node[i].nin; k++)
            if (ls_writes(&g->node[i], k))
                disturb(r, ls_in(g, (LsNodeId){i}, k), noise, 0, d);
    }
}
