/* tests/differential/expected.c -- see the header. */
#include "tests/differential/expected.h"

#include "tests/differential/interpreter.h"

#include <math.h>
#include <stdio.h>

/* ---- what a step leaves ---- */
typedef struct Visit {
    Expected *want;
    Net *net;
    bool first;
} Visit;

static void visit(Visit *s, const char *kind, const char *name, LsValueId v)
{
    Expected *k = s->want;
    const uint32_t i = k->n++;
    const double *now = interpreter_of(s->net->ref, v);
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
    s->want->n = 0;
    for (uint32_t k = 0; k < g->noutput; k++)
        visit(s, "out/", ls_arena_printf(g->arena, "%u", k), g->output[k]);
    visit(s, "loss", "", g->objective.loss);
    for (uint32_t k = 0; k < g->ngrad; k++)
        visit(s, "grad/", g->value[g->grad[k].param.i].name, g->grad[k].grad);
    for (uint32_t i = 1; i < g->nvalue; i++)
        if (ls_is_state(g, (LsValueId){i}) && g->value[i].once_written)
            visit(s, "state/", g->value[i].name, (LsValueId){i});
}

void expected_widen(Net *net, Expected *want, const Noise *noise, int times)
{
    Visit s = {want, net, false};
    for (int k = 0; k < times; k++) {
        interpreter_run(net->ref, net->input, noise, &net->dice);
        visit_all(&s);
    }
}

Expected expected_keep(Net *net, const Noise *noise, int times)
{
    const size_t most = net->b->noutput + 1 + net->b->ngrad + net->b->nvalue;
    Expected want = {.name = ls_arena_alloc(net->cx.arena, most, sizeof *want.name),
                     .shape = ls_arena_alloc(net->cx.arena, most, sizeof *want.shape),
                     .value = ls_arena_alloc(net->cx.arena, most, sizeof *want.value),
                     .off = ls_arena_alloc(net->cx.arena, most, sizeof *want.off)};
    interpreter_run(net->ref, net->input, NULL, &net->dice);
    visit_all(&(Visit){&want, net, true});
    expected_widen(net, &want, noise, times);
    return want;
}

/* ---- gradients against differences ---- */
static double loss_along(Net *net, LsValueId p, const double *start, const double *way, double h)
{
    Interpreter *r = net->ref;
    const int64_t count = ls_count(ls_shape(net->b, p));
    for (int64_t i = 0; i < count; i++)
        interpreter_of(r, p)[i] = start[i] + h * way[i];
    for (uint32_t i = 1; i < net->b->nnode; i++) {
        const LsNode *n = &net->b->node[i];
        if (n->phase == LS_FORWARD && n->op != LS_OP_RUNNING_STAT)
            interpreter_node(r, (LsNodeId){i});
    }
    return interpreter_of(r, net->b->objective.loss)[0];
}

/* The derivative of the loss along `way`, by differences; NAN: those of several steps do not agree.
 */
static double slope(Net *net, LsValueId p, const double *start, const double *way)
{
    static const double step[] = {1e-4, 3e-5, 1e-5};
    double by[3], f0 = loss_along(net, p, start, way, 0);
    for (int k = 0; k < 3; k++) {
        const double up = loss_along(net, p, start, way, step[k]);
        const double down = loss_along(net, p, start, way, -step[k]);
        by[k] = (up - down) / 2 / step[k];
        const double bend = 50 * step[k] * fabs(up - down) + 1e-7 * step[k] + 1e-13 * fabs(f0);
        if (fabs(up - 2 * f0 + down) > bend) /* a kink, or a jump */
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
    interpreter_load(net->ref, grad->param.i, net->input);
    memcpy(start, interpreter_of(net->ref, grad->param), (size_t)count * sizeof *start);
    memcpy(given, interpreter_of(net->ref, grad->grad), (size_t)count * sizeof *given);
    for (int64_t i = 0; i < count; i++) {
        way[i] = (double)roll(&net->dice, 1 << 20) / (1 << 19) - 1;
        want += way[i] * given[i];
    }
    const double got = slope(net, grad->param, start, way);
    memcpy(interpreter_of(net->ref, grad->param), start, (size_t)count * sizeof *start);
    *skipped += isnan(got);
    if (isnan(got) || fabs(got - want) <= 1e-5 + 2e-3 * fmax(fabs(want), fabs(got)))
        return true;
    printf("  gradient of %s: %.9g along a random direction, differences give %.9g\n",
           g->value[grad->param.i].name, want, got);
    return false;
}

int expected_check_gradients(Net *net, int *checked, int *skipped)
{
    int wrong = 0;
    interpreter_run(net->ref, net->input, NULL, &net->dice);
    for (uint32_t i = 1; i < net->b->nvalue; i++) /* updates changed them */
        if (ls_is_state(net->b, (LsValueId){i}))
            interpreter_load(net->ref, i, net->input);
    for (uint32_t k = 0; k < net->b->ngrad; k++, ++*checked)
        wrong += !check_gradient(net, &net->b->grad[k], skipped);
    return wrong;
}
