/* tests/codegen/test_gradient_in_update.c -- updates that compute the gradient that they apply:
 * which updates do, and that they give the same bits as updates that read it. */
#include "codegen/fusion/gradient_in_update.h"
#include "compiler/fold/append.h"
#include "compiler/passes/fuse.h"
#include "compiler/passes/passes.h"
#include "tests/support/kernel_rig.h"
#include "tests/support/suite.h"

/* ---- the kernel ---- */

static const LsValueId none = {0};

typedef struct Step { LsUpdateAttr at; LsOpCode op; bool momentum, factor, acc, weight; } Step;
typedef struct Product { int64_t m, n, k; bool ta, tb; double alpha; } Product;

static const Step steps[] = {
    {.op = LS_OP_SGD},
    {.op = LS_OP_SGD,
     .at = {.hyper.momentum = 0.9, .hyper.decay = 0.01, .hyper.nesterov = true, .clip = 0.5},
     .momentum = true,
     .factor = true},
    {.op = LS_OP_SGD, .at = {.sum.scale = 0.25}, .acc = true},
    {.op = LS_OP_ADAM,
     .at = {.hyper.beta1 = 0.9, .hyper.beta2 = 0.999, .hyper.eps = 1e-8, .hyper.decay = 0.01}},
    {.op = LS_OP_ADAM,
     .at = {.hyper.beta1 = 0.9,
            .hyper.beta2 = 0.999,
            .hyper.eps = 1e-8,
            .hyper.decay = 0.01,
            .hyper.decoupled = true,
            .sum.scale = 0.5,
            .clip = 0.5},
     .acc = true},
    {.op = LS_OP_SGD,
     .at = {.hyper.momentum = 0.9},
     .momentum = true,
     .factor = true,
     .acc = true,
     .weight = true},
};
/* Tiles that are cut short each way, one row, one column, several blocks of depth. */
static const Product products[] = {
    {120, 1037, 13, true, false, 1}, {130, 530, 600, true, false, 0.5}, {1, 700, 9, true, false, 1},
    {700, 1, 9, true, true, -2},     {257, 129, 64, false, true, 1},
    {61, 600, 303, false, false, 1},
};
enum { NSTEP = sizeof steps / sizeof *steps, NPRODUCT = sizeof products / sizeof *products };

enum { STATE = 4 };
/* p, v or m, v, acc: from a stored gradient, and from a computed gradient. */
typedef struct Pair { LsValueId state[2][STATE]; } Pair;

/* The same update by both kernels, on the same values. */
static Pair add_pair(Rig *r, const Step *s, const Product *q, LsValueId a, LsValueId b,
                     LsValueId factor, const LsGemmAttr *gemm)
{
    Pair x;
    const LsShape shape = SHAPE(q->m, q->n);
    for (int k = 0; k < 2 * STATE; k++)
        x.state[k / STATE][k % STATE] = rig_operand(r, LS_REAL, LS_ROW, shape);
    for (int k = 0; k < STATE; k++)
        for (int64_t i = 0; i < q->m * q->n; i++) {
            double v = rig_get(r, x.state[0][k], i);
            rig_set(r, x.state[0][k], i, k == 2 ? fabs(v) : v);     /* a second moment */
            rig_set(r, x.state[1][k], i, k == 2 ? fabs(v) : v);
        }
    LsNodeId product = rig_node(r, LS_OP_MATMUL, 2, (LsValueId[]){a, b}, 1,
                                &(LsAttr){.gemm = *gemm});
    LsValueId grad = rig_result(r, product, 0, LS_REAL, LS_ROW, shape);
    for (int k = 0; k < 2; k++) {
        LsValueId in[LS_MAX_IN] = {x.state[k][0], k == 0 ? grad : none};
        size_t n = 2;
        in[n++] = s->op == LS_OP_ADAM || s->momentum ? x.state[k][1] : none;
        if (s->op == LS_OP_ADAM)
            in[n++] = x.state[k][2];
        in[n++] = s->factor ? factor : none;
        in[n++] = s->acc ? x.state[k][3] : none;
        if (s->weight)
            in[n++] = factor;
        n = k == 0 ? n : (size_t)ls_rule_shared(ls_rule_of(s->op)) + 1;
        in[n] = a;
        in[n + 1] = b;
        LsNodeId update = rig_node(r, s->op, k == 0 ? n : n + 2, in, 0, &(LsAttr){.update = s->at});
        LsComputed *c = ls_arena_alloc(r->cx.arena, 1, sizeof *c);
        *c = (LsComputed){.operand = 1, .first = (int)n, .product = gemm};
        r->g->node[update.i].computed = k == 0 ? NULL : c;
    }
    return x;
}

/* Every kind of update. */
static void check_steps(const Product *q, int bytes, bool apply)
{
    Rig r;
    Pair pair[NSTEP];
    const LsGemmAttr gemm = {.trans_a = q->ta, .trans_b = q->tb, .alpha = q->alpha};
    rig_open(&r, bytes);
    r.products = true;
    /* Of the selection the first product is optimised. */
    r.flags = q == products || tests_do_all() ? "-O2 -march=native" : "-O0 -march=native";
    r.run.first = !apply;
    r.run.apply = apply;
    LsValueId a = rig_operand(&r, LS_REAL, LS_ROW, q->ta ? SHAPE(q->k, q->m) : SHAPE(q->m, q->k));
    LsValueId b = rig_operand(&r, LS_REAL, LS_ROW, q->tb ? SHAPE(q->n, q->k) : SHAPE(q->k, q->n));
    LsValueId factor = rig_operand(&r, LS_REAL, LS_ROW, (LsShape){0});
    for (size_t s = 0; s < NSTEP; s++)
        pair[s] = add_pair(&r, &steps[s], q, a, b, factor, &gemm);
    const double before = rig_get(&r, pair[0].state[0][0], 0);
    rig_run(&r);
    for (int k = 0; k < NSTEP * STATE; k++)
        for (int64_t i = 0; i < q->m * q->n; i++) {
            const Pair *x = &pair[k / STATE];
            double want = rig_get(&r, x->state[0][k % STATE], i);
            double got = rig_get(&r, x->state[1][k % STATE], i);
            ck_assert_msg(want == got, "step %d, operand %d, element %d: %.9g and %.9g", k / STATE,
                          k % STATE, (int)i, want, got);
        }
    ck_assert((rig_get(&r, pair[0].state[1][0], 0) != before) == apply);
    rig_close(&r);
}

START_TEST(a_product_applied_gives_the_bits_of_one_that_is_stored)
{
    check_steps(&products[_i], 4, true);
    if (_i % 3 == 0 || tests_do_all())      /* of doubles one that is applied, and one that is
                                             * not */
        check_steps(&products[_i], 8, _i % 2 == 0);
}
END_TEST

/* ---- which updates ---- */

static LsCtx cx;
static LsGraph *g;
static LsValueId p, x, dy;
static const LsTarget cpu = {.real_bytes = 4}, gpu = {.kind = LS_TARGET_CUDA, .real_bytes = 4};

static LsValueId value(LsValueKind kind, const char *name, int64_t rows, int64_t cols)
{
    LsShape s = SHAPE(rows, cols);
    return ls_value_add(&cx, g, kind, name, LS_REAL, &s, NULL);
}

/* p [m][n] less its gradient, x^T dy, over `batch` rows. Returns the gradient. */
static LsValueId descent(int64_t m, int64_t n, int64_t batch)
{
    cx = (LsCtx){.arena = ls_arena_new()};
    g = ls_graph_new(&cx);
    g->training = true;
    p = value(LS_V_PARAM, "p", m, n);
    x = value(LS_V_INPUT, "x", batch, m);
    dy = value(LS_V_INPUT, "dy", batch, n);
    LsValueId grad = ls_append2(&cx, g, LS_OP_MATMUL, x, dy,
                                &(LsAttr){.gemm = {.trans_a = true, .alpha = 1}});
    ls_append(&cx, g, LS_OP_SGD, 5, (LsValueId[]){p, grad, none, none, none}, &(LsAttr){0});
    static LsGrad pair[1];
    pair[0] = (LsGrad){.param = p, .grad = grad};
    g->grad = pair;
    g->ngrad = 1;
    return grad;
}

static void applied(uint32_t want, const LsTarget *t, const char *made)
{
    ck_assert(ls_verify(&cx, g));
    ck_assert_uint_eq(ls_apply_products(&cx, g, t, &made, made != NULL), want);
    ck_assert(ls_verify(&cx, g));
    ck_assert_uint_eq(ls_applied(g), want);
    ck_assert_uint_eq(g->ngrad, 1 - want);
    ls_arena_free(cx.arena);
}

START_TEST(the_update_of_a_large_weight_computes_its_gradient)
{
    descent(512, 1024, 32);
    ck_assert_uint_eq(ls_apply_products(&cx, g, &cpu, NULL, 0), 1);
    const LsNode *n = &g->node[g->nnode - 1];
    ck_assert(n->op == LS_OP_SGD && g->nnode == 2 && n->nin == 10 && g->ngrad == 0);
    ck_assert(n->computed != NULL && n->computed->operand == 1 && n->computed->first == 8);
    ck_assert(n->computed->product->trans_a && !n->computed->product->trans_b);
    ck_assert(!ls_is(g->operand[n->in + 1]));
    ck_assert_str_eq(g->value[g->operand[n->in + 8].i].name, "x");
    ck_assert_str_eq(g->value[g->operand[n->in + 9].i].name, "dy");
    ls_arena_free(cx.arena);
}
END_TEST

START_TEST(gradients_that_somebody_else_wants_are_stored)
{
    LsValueId grad = descent(512, 1024, 32);
    static LsValueId output[1];
    output[0] = grad;                               /* an output */
    g->output = output;
    g->noutput = 1;
    applied(0, &cpu, NULL);
    grad = descent(512, 1024, 32);                  /* clipped by norm */
    ls_append1(&cx, g, LS_OP_EXP, grad, NULL);
    applied(0, &cpu, NULL);
    grad = descent(512, 1024, 32);                  /* named by a hint */
    g->node[g->value[grad.i].def.i].name = "fc backward";
    applied(0, &cpu, "fc*");
    descent(512, 1024, 32);
    applied(1, &cpu, "conv*");
}
END_TEST

START_TEST(products_that_are_no_larger_than_their_factors_are_stored)
{
    descent(400, 400, 8);                           /* small */
    applied(0, &cpu, NULL);
    descent(512, 1024, 200);                        /* the factors are as large */
    applied(0, &cpu, NULL);
    descent(512, 1024, 170);
    applied(1, &cpu, NULL);
    descent(512, 1024, 32);                         /* no such kernel */
    applied(0, &gpu, NULL);
}
END_TEST

/* The other update may run first: then the factor is no longer the one of this step. */
START_TEST(products_of_what_the_step_updates_are_stored)
{
    const LsValueKind kind[] = {LS_V_PARAM, LS_V_STATE};
    for (int k = 0; k < 2; k++) {
        descent(512, 1024, 32);
        g->value[x.i].kind = kind[k];
        applied(0, &cpu, NULL);
        descent(512, 1024, 32);
        g->value[dy.i].kind = kind[k];
        applied(0, &cpu, NULL);
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("apply");
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, a_product_applied_gives_the_bits_of_one_that_is_stored, 0, NPRODUCT);
    const TTest *const test[] = {the_update_of_a_large_weight_computes_its_gradient,
                                 gradients_that_somebody_else_wants_are_stored,
                                 products_that_are_no_larger_than_their_factors_are_stored,
                                 products_of_what_the_step_updates_are_stored};
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("apply", tc);
}
