/* tests/differential/reference.c -- see the header. */
#include "tests/differential/reference.h"

#include "tests/differential/draw.h"
#include "tests/support/eval.h"

#include <math.h>
#include <stdio.h>

enum { VALUES = 16384 };        /* most values of a graph */

struct Reference {
    Eval e;
    uint32_t nvalue, nnode;     /* those done so far */
    bool *fixed;                /* by value: depends on constants alone */
};

Reference *reference_new(const LsGraph *g)
{
    Reference *r = ls_arena_alloc(g->arena, 1, sizeof *r);
    r->e = (Eval){.g = g, .v = ls_arena_alloc(g->arena, VALUES, sizeof(double *)), .valid = g->batch, .update = 1,
                  .first = true, .apply = true, .lr = REFERENCE_LR, .share = 1};
    r->fixed = ls_arena_alloc(g->arena, VALUES, sizeof *r->fixed);
    r->nvalue = r->nnode = 1;
    return r;
}

const double *reference_of(const Reference *r, LsValueId v) { return r->e.v[v.i]; }

/* ---- leaves ---- */
static const void *data_of(const LsGraph *g, uint32_t v, const void *const input[])
{
    for (uint32_t k = 0; k < g->ninput; k++)
        if (g->input[k].i == v)
            return input[k];
    return g->value[v].data;
}

static void load(Reference *r, uint32_t i, const void *const input[])
{
    const LsGraph *g = r->e.g;
    LsValue as = g->value[i];
    as.data = data_of(g, i, input);
    const LsGraph one = {.value = &as};
    for (int64_t k = 0; k < ls_count(&as.shape); k++)
        r->e.v[i][k] = as.data != NULL ? ls_const_at(&one, (LsValueId){0}, k) : 0;
}

static void follow_values(Reference *r, const void *const input[])
{
    const LsGraph *g = r->e.g;
    if (g->nvalue > VALUES)
        abort();
    for (; r->nvalue < g->nvalue; r->nvalue++) {
        const uint32_t i = r->nvalue;
        r->e.v[i] = eval_room(&r->e, (LsValueId){i});
        r->fixed[i] = g->value[i].kind == LS_V_CONST
            || (g->value[i].kind == LS_V_STATE && strncmp(g->value[i].name, "fixed", 5) == 0);
        if (g->value[i].kind != LS_V_TEMP)
            load(r, i, input);
    }
}

/* ---- nodes that draw ---- */
static void draw(Reference *r, LsNodeId n)
{
    const LsGraph *g = r->e.g;
    const LsNode *node = &g->node[n.i];
    const double *x = r->e.v[ls_in(g, n, 0).i];
    double *y = r->e.v[ls_out(g, n, 0).i], p = node->attr.scalar.a;
    const int64_t stream = (int64_t)node->attr.scalar.b;
    for (int64_t i = 0; i < ls_count(ls_shape(g, ls_out(g, n, 0))); i++)
        if (node->op == LS_OP_NORMAL)
            y[i] = draw_normal(REFERENCE_SEED, 0, stream, i);
        else if (node->op == LS_OP_UNIFORM)
            y[i] = draw_uniform(REFERENCE_SEED, 0, stream, i);
        else
            y[i] = draw_uniform(REFERENCE_SEED, 0, stream, i) < p ? 0 : x[i] / (1 - p);
}

static void run_node(Reference *r, LsNodeId n)
{
    switch (r->e.g->node[n.i].op) {
    case LS_OP_DROPOUT: case LS_OP_UNIFORM: case LS_OP_NORMAL: draw(r, n); return;
    default: eval_node(&r->e, n);
    }
}

void reference_follow(Reference *r, const void *const input[])
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
        run_node(r, n);
    }
}

/* ---- noise ---- */
static void disturb(Reference *r, LsValueId v, double noise, Dice *d)
{
    if (!ls_is(v) || ls_type(r->e.g, v) != LS_REAL || noise == 0)
        return;
    for (int64_t i = 0; i < ls_count(ls_shape(r->e.g, v)); i++)
        r->e.v[v.i][i] *= 1 + noise * ((double)roll(d, 1 << 20) / (1 << 19) - 1);
}

void reference_run(Reference *r, const void *const input[], double noise, double fixed, Dice *d)
{
    const LsGraph *g = r->e.g;
    reference_follow(r, input);
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (g->value[i].kind != LS_V_TEMP) {
            load(r, i, input);
            disturb(r, (LsValueId){i}, r->fixed[i] ? fixed : noise, d);
        }
    for (uint32_t i = 1; i < g->nnode; i++) {
        run_node(r, (LsNodeId){i});
        for (int k = 0; k < g->node[i].nout; k++) {
            const LsValueId y = ls_out(g, (LsNodeId){i}, k);
            disturb(r, y, r->fixed[y.i] ? fixed : noise, d);
        }
        for (int k = 0; k < g->node[i].nin; k++)
            if (ls_writes(&g->node[i], k))
                disturb(r, ls_in(g, (LsNodeId){i}, k), noise, d);
    }
}

/* ---- what a step leaves ---- */
typedef struct Visit { Kept *kept; Net *net; bool first; } Visit;

static void visit(Visit *s, const char *kind, const char *name, LsValueId v)
{
    Kept *k = s->kept;
    const uint32_t i = k->n++;
    const double *now = s->net->ref->e.v[v.i];
    const int64_t count = ls_count(ls_shape(s->net->b, v));
    if (s->first) {
        k->name[i] = ls_arena_printf(s->net->cx.arena, "%s%s", kind, name);
        k->shape[i] = *ls_shape(s->net->b, v);
        k->value[i] = ls_arena_alloc(s->net->cx.arena, (size_t)count + 1, sizeof(double));
        k->off[i] = ls_arena_alloc(s->net->cx.arena, (size_t)count + 1, sizeof(double));
        memcpy(k->value[i], now, (size_t)count * sizeof(double));
    }
    for (int64_t e = 0; e < count; e++) {
        const double off = fabs(now[e] - k->value[i][e]);
        k->off[i][e] = off > k->off[i][e] || isnan(off) ? off : k->off[i][e];
    }
}

static void visit_all(Visit *s)
{
    const LsGraph *g = s->net->b;
    s->kept->n = 0;
    for (uint32_t k = 0; k < g->noutput; k++)
        visit(s, "out/", ls_arena_printf(g->arena, "%u", k), g->output[k]);
    visit(s, "loss", "", g->loss);
    for (uint32_t k = 0; k < g->ngrad; k++)
        visit(s, "grad/", g->value[g->grad[k].param.i].name, g->grad[k].grad);
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (ls_is_state(g, (LsValueId){i}) && g->value[i].once_written)
            visit(s, "state/", g->value[i].name, (LsValueId){i});
}

void reference_widen(Net *net, Kept *kept, double noise, double fixed, int times)
{
    Visit s = {kept, net, false};
    for (int k = 0; k < times; k++) {
        reference_run(net->ref, net->input, noise, fixed, &net->dice);
        visit_all(&s);
    }
}

Kept reference_keep(Net *net, double noise, double fixed, int times)
{
    const size_t most = net->b->noutput + 1 + net->b->ngrad + net->b->nvalue;
    Kept kept = {.name = ls_arena_alloc(net->cx.arena, most, sizeof *kept.name),
                 .shape = ls_arena_alloc(net->cx.arena, most, sizeof *kept.shape),
                 .value = ls_arena_alloc(net->cx.arena, most, sizeof *kept.value),
                 .off = ls_arena_alloc(net->cx.arena, most, sizeof *kept.off)};
    reference_run(net->ref, net->input, 0, 0, &net->dice);
    visit_all(&(Visit){&kept, net, true});
    reference_widen(net, &kept, noise, fixed, times);
    return kept;
}

/* ---- gradients against differences ---- */
static double loss_along(Net *net, LsValueId p, const double *start, const double *way, double h)
{
    Reference *r = net->ref;
    const int64_t count = ls_count(ls_shape(net->b, p));
    for (int64_t i = 0; i < count; i++)
        r->e.v[p.i][i] = start[i] + h * way[i];
    for (uint32_t i = 1; i < net->b->nnode; i++) {
        const LsNode *n = &net->b->node[i];
        if (n->phase == LS_FORWARD && n->op != LS_OP_RUNNING_STAT)
            run_node(r, (LsNodeId){i});
    }
    return r->e.v[net->b->loss.i][0];
}

/* The derivative of the loss along `way`, by differences; NAN: those of several steps do not agree. */
static double slope(Net *net, LsValueId p, const double *start, const double *way)
{
    static const double step[] = {1e-4, 3e-5, 1e-5};
    double by[3], f0 = loss_along(net, p, start, way, 0);
    for (int k = 0; k < 3; k++) {
        const double up = loss_along(net, p, start, way, step[k]);
        const double down = loss_along(net, p, start, way, -step[k]);
        by[k] = (up - down) / 2 / step[k];
        const double bend = 50 * step[k] * fabs(up - down) + 1e-7 * step[k] + 1e-13 * fabs(f0);
        if (fabs(up - 2 * f0 + down) > bend)    /* a kink, or a jump */
            return NAN;
    }
    const double size = 1e-6 + 1e-9 * fabs(f0) + 1e-3 * fabs(by[2]);
    return fabs(by[2] - by[1]) < size && fabs(by[1] - by[0]) < 4 * size ? by[2] : NAN;
}

static bool check_gradient(Net *net, const LsGrad *grad, int *skipped)
{
    const LsGraph *g = net->b;
    const int64_t count = ls_count(ls_shape(g, grad->param));
    double *start = ls_arena_alloc(g->arena, (size_t)count + 1, sizeof *start);
    double *way = ls_arena_alloc(g->arena, (size_t)count + 1, sizeof *way), want = 0;
    double *given = ls_arena_alloc(g->arena, (size_t)count + 1, sizeof *given);
    load(net->ref, grad->param.i, net->input);
    memcpy(start, net->ref->e.v[grad->param.i], (size_t)count * sizeof *start);
    memcpy(given, net->ref->e.v[grad->grad.i], (size_t)count * sizeof *given);
    for (int64_t i = 0; i < count; i++) {
        way[i] = (double)roll(&net->dice, 1 << 20) / (1 << 19) - 1;
        want += way[i] * given[i];
    }
    const double got = slope(net, grad->param, start, way);
    memcpy(net->ref->e.v[grad->param.i], start, (size_t)count * sizeof *start);
    *skipped += isnan(got);
    if (isnan(got) || fabs(got - want) <= 1e-5 + 2e-3 * fmax(fabs(want), fabs(got)))
        return true;
    printf("  gradient of %s: %.9g along a random direction, differences give %.9g\n", g->value[grad->param.i].name, want,
           got);
    return false;
}

int reference_check_gradients(Net *net, int *checked, int *skipped)
{
    int wrong = 0;
    reference_run(net->ref, net->input, 0, 0, &net->dice);
    for (uint32_t i = 1; i < net->b->nvalue; i++)       /* updates changed them */
        if (ls_is_state(net->b, (LsValueId){i}))
            load(net->ref, i, net->input);
    for (uint32_t k = 0; k < net->b->ngrad; k++, ++*checked)
        wrong += !check_gradient(net, &net->b->grad[k], skipped);
    return wrong;
}
