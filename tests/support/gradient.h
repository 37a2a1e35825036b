/* tests/support/gradient.h -- small graphs made by hand, and their gradients against central
 * differences. */
#ifndef LS_TESTS_SUPPORT_GRADIENT_H
#define LS_TESTS_SUPPORT_GRADIENT_H

#include "compiler/fold/append.h"
#include "compiler/passes/passes.h"
#include "tests/support/eval.h"

static LsCtx cx;                /* of the running test */
static LsGraph *g;

static inline void graph_open(void)
{
    cx = (LsCtx){.arena = ls_arena_new()};
    g = ls_graph_new(&cx);
    g->batch = 1;
    g->training = true;
}

static inline void graph_close(void) { ls_arena_free(cx.arena); }

/* Goes on with an empty graph. */
static inline void graph_reopen(void)
{
    graph_close();
    graph_open();
}

/* Numbers in [-1, 1) that differ from each other. */
static inline float *numbers(int64_t n, uint32_t seed)
{
    float *v = ls_arena_alloc(cx.arena, (size_t)n + 1, sizeof *v);
    uint64_t s = seed * 2654435761u + 12345;
    for (int64_t i = 0; i < n; i++) {
        s = s * 6364136223846793005u + 1442695040888963407u;
        v[i] = (float)((double)(int64_t)(s >> 11) / (double)(1ll << 52) - 1);
    }
    return v;
}

static inline LsValueId param(const char *name, LsShape s)
{
    return ls_value_add(&cx, g, LS_V_PARAM, name, LS_REAL, &s, numbers(ls_count(&s), g->nvalue));
}

static inline LsValueId constant(LsShape s)
{
    return ls_const_add(&cx, g, LS_REAL, &s, numbers(ls_count(&s), g->nvalue));
}

static inline LsValueId labels(LsShape s, int64_t classes)
{
    int64_t *v = ls_arena_alloc(cx.arena, (size_t)ls_count(&s), sizeof *v);
    for (int64_t i = 0; i < ls_count(&s); i++)
        v[i] = (i * 7 + i / 3) % classes;
    return ls_const_add(&cx, g, LS_I64, &s, v);
}

/* Nodes of the operator in g. */
static inline uint32_t count_op(LsOpCode op)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        n += g->node[i].op == op;
    return n;
}

/* Appends and expects this error with this text in it. */
static inline void refused(LsOpCode op, int nin, const LsValueId in[], const LsAttr *at,
                           LsErrId id, const char *text)
{
    char *log;
    size_t size;
    cx.log = open_memstream(&log, &size);
    uint32_t nnode = g->nnode;
    LsValueId y = ls_append(&cx, g, op, nin, in, at);
    fclose(cx.log);
    ck_assert(!ls_is(y));
    ck_assert_uint_eq(g->nnode, nnode);
    ck_assert_int_eq(cx.last, id);
    ck_assert_msg(strstr(log, text) != NULL, "'%s' is not in: %s", text, log);
    free(log);
}

/* A loss with a different weight for every element of y. */
static inline LsValueId weighed(LsValueId y)
{
    LsShape s = *ls_shape(g, y);
    y = ls_append2(&cx, g, LS_OP_MUL, y, constant(s), NULL);
    if (s.rank > 0)
        y = ls_append1(&cx, g, LS_OP_REDUCE_SUM, y,
                       &(LsAttr){.reduce = {.axes = (1u << s.rank) - 1, .keep = true}});
    return ls_reshape(&cx, g, y, &(LsShape){0});
}

static inline double loss_at(Eval *e, uint32_t nforward)
{
    eval_run(e, 1, nforward);
    return e->v[g->objective.loss.i][0];
}

/* Differentiates `loss` and compares each gradient, element by element, with (f(p+h) - f(p-h)) /
 * 2h. */
static inline void check_gradients(LsValueId loss)
{
    const double h = 1e-4;
    uint32_t nforward = g->nnode;
    g->objective.loss = loss;
    ck_assert(ls_autodiff(&cx, g));
    Eval e = eval_new(g);
    for (uint32_t i = 0; i < g->ngrad; i++) {
        LsValueId p = g->grad[i].param;
        ck_assert(ls_shape_same(ls_shape(g, p), ls_shape(g, g->grad[i].grad)));
        eval_run(&e, 1, g->nnode);
        for (int64_t k = 0; k < ls_count(ls_shape(g, p)); k++) {
            double at = e.v[p.i][k], got = e.v[g->grad[i].grad.i][k], want = 0;
            e.v[p.i][k] = at + h;
            want += loss_at(&e, nforward);
            e.v[p.i][k] = at - h;
            want -= loss_at(&e, nforward);
            e.v[p.i][k] = at;
            want /= 2 * h;
            ck_assert_msg(fabs(got - want) <= 1e-5 * (1 + fabs(want)),
                          "%s[%d]: gradient %.9g, differences %.9g", g->value[p.i].name, (int)k,
                          got, want);
        }
    }
}

#endif
