/* tests/codegen/test_kernels_codes.c -- moments in codes: blocks by the logical order, whatever the
 * layout; sums of parts, factors and bad steps as of other updates. That the codes are the right
 * ones is shown by tests/whole/optimizer_codes.py. */
#include "compiler/ir/optimizer.h"
#include "tests/support/kernel_rig.h"
#include "tests/support/suite.h"

enum { P, G, M, M_SCALE, V, V_SCALE, FACTOR, ACC, AVERAGE, OPERANDS };

typedef struct Case {
    LsShape shape;
    int bits, levels;
    bool acc, average, factor, apply, bad;
    int64_t part;
} Case;

static const Case cases[] = {
    {SHAPE(8, 16, 4, 8), 8, .apply = true},
    {SHAPE(8, 16, 4, 8), 4, .apply = true, .average = true},
    {SHAPE(16, 3, 16, 16), 8, .acc = true, .apply = true, .factor = true},
    {SHAPE(64, 16, 3, 3), 8, .levels = 2, .acc = true, .apply = true, .part = 1},
    {SHAPE(64, 16, 3, 3), 4, .levels = 2, .acc = true, .apply = true, .part = 2},
    {SHAPE(64, 16, 3, 3), 4, .acc = true},
    {SHAPE(64, 96), 8, .apply = true, .factor = true, .bad = true},
};

/* The update in one layout. v: operands. */
static void run(Rig *r, const Case *c, int bytes, LsLayout layout, LsValueId v[OPERANDS])
{
    rig_open(r, bytes);
    r->run.apply = c->apply;
    r->run.first = false;
    r->run.part = c->part;
    const int64_t n = ls_count(&c->shape), block = ls_code_block(c->bits);
    const LsShape codes = SHAPE(n * c->bits / 8), scales = SHAPE(n / block);
    v[P] = rig_operand(r, LS_REAL, layout, c->shape);
    v[G] = rig_operand(r, LS_REAL, layout, c->shape);
    for (int k = M; k <= V_SCALE; k++)
        v[k] = rig_operand(r, k == M || k == V ? LS_U8 : LS_REAL, LS_ROW,
                           k == M || k == V ? codes : scales);
    for (int64_t k = 0; k < n / block; k++)
        for (int s = M_SCALE; s <= V_SCALE; s += V_SCALE - M_SCALE)
            rig_set(r, v[s], k, fabs(rig_get(r, v[s], k)));
    v[FACTOR] = rig_operand(r, LS_REAL, LS_ROW, (LsShape){0});
    rig_set(r, v[FACTOR], 0, c->bad ? -1 : 0.5);
    v[ACC] = c->levels > 0 ? rig_operand(r, LS_REAL, LS_ROW, SHAPE(c->levels * n))
                           : rig_operand(r, LS_REAL, layout, c->shape);
    /* partial sums are in the order of the parameter's memory */
    for (int64_t k = 0; c->levels > 0 && k < c->levels * n; k++)
        rig_set(r, v[ACC], k / n * n + rig_place(r, v[P], k % n), (double)(k % 1000) / 1000);
    v[AVERAGE] = rig_operand(r, LS_REAL, layout, c->shape);
    const LsValueId none = {0};
    const LsAttr at = {.update = {.hyper.beta1 = 0.9, .hyper.beta2 = 0.4, .hyper.eps = 1e-8,
                                  .hyper.decay = 0.1, .hyper.decoupled = 1, .hyper.bits = c->bits,
                                  .hyper.ema = c->average ? 0.9 : 0, .sum.scale = 0.5,
                                  .sum.levels = c->levels, .skips = c->factor}};
    rig_node(r, LS_OP_ADAM_CODES, VALUES(v[P], v[G], v[M], v[M_SCALE], v[V], v[V_SCALE],
                                         c->factor ? v[FACTOR] : none, c->acc ? v[ACC] : none, none,
                                         c->average ? v[AVERAGE] : none), 0, &at);
}

/* Whether operand k is what it was. */
static bool kept(const Rig *now, const Rig *before, const LsValueId v[OPERANDS], int k)
{
    for (int64_t i = 0; i < ls_count(ls_shape(now->g, v[k])); i++)
        if (rig_get(now, v[k], i) != rig_get(before, v[k], i))
            return false;
    return true;
}

START_TEST(test_a_layout_moves_no_element_to_another_block)
{
    const Case *c = &cases[_i / 2];
    const int bytes = _i % 2 == 0 ? 4 : 8;
    Rig row, last, start;
    LsValueId v[OPERANDS];
    run(&start, c, bytes, LS_ROW, v);
    run(&row, c, bytes, LS_ROW, v);
    run(&last, c, bytes, LS_LAST, v);
    rig_run(&row);
    rig_run(&last);
    for (int k = P; k < OPERANDS; k++)
        for (int64_t i = 0; i < ls_count(ls_shape(row.g, v[k])) && k != ACC; i++)
            ck_assert_msg(rig_get(&row, v[k], i) == rig_get(&last, v[k], i),
                          "operand %d, element %" PRId64 ": %.9g, channels last %.9g", k, i,
                          rig_get(&row, v[k], i), rig_get(&last, v[k], i));
    for (int k = P; k <= V_SCALE; k++)
        ck_assert_int_eq(kept(&row, &start, v, k), k == G || c->bad || !c->apply);
    ck_assert_int_eq(kept(&row, &start, v, AVERAGE), !c->average);
    rig_close(&start);
    rig_close(&row);
    rig_close(&last);
}
END_TEST

/* A gradient that is not finite makes the scales of its block so, and no other. */
START_TEST(test_what_is_not_finite_stays_in_its_block)
{
    const Case *c = &cases[0];
    Rig r;
    LsValueId v[OPERANDS];
    run(&r, c, 4, LS_ROW, v);
    rig_set(&r, v[G], 300, _i == 0 ? NAN : INFINITY);
    rig_run(&r);
    for (int64_t k = 0; k < ls_count(ls_shape(r.g, v[M_SCALE])); k++)
        for (int s = M_SCALE; s <= V_SCALE; s += V_SCALE - M_SCALE)
            ck_assert_int_eq(isfinite(rig_get(&r, v[s], k)) != 0, k != 300 / 256);
    rig_close(&r);
}
END_TEST

/* An update that computes its gradient takes each row of it in whole blocks: the same bits as one
 * that reads the gradient. */
START_TEST(test_a_product_is_applied_block_by_block)
{
    static const struct { int64_t m, n, k; int bits; bool acc; } of[] = {
        {61, 512, 13, 8, false}, {130, 256, 600, 8, true}, {33, 384, 303, 4, true},
        {1, 4096, 9, 4, false}};
    const int64_t m = of[_i].m, n = of[_i].n, all = m * n, block = ls_code_block(of[_i].bits);
    Rig r = rig_of_products(4, _i == 0 ? "-O2 -march=native" : "-O0 -march=native");
    const LsGemmAttr gemm = {.trans_a = true, .alpha = 1};
    const LsValueId none = {0};
    LsValueId a = rig_operand(&r, LS_REAL, LS_ROW, SHAPE(of[_i].k, m)),
              b = rig_operand(&r, LS_REAL, LS_ROW, SHAPE(of[_i].k, n)), v[2][OPERANDS];
    const LsNodeId product =
        rig_node(&r, LS_OP_MATMUL, VALUES(a, b), 1, &(LsAttr){.gemm = gemm});
    const LsValueId grad = rig_result(&r, product, 0, LS_REAL, LS_ROW, SHAPE(m, n));
    for (int way = 0; way < 2; way++) {
        for (int k = 0; k < OPERANDS; k++) {
            const bool codes = k == M || k == V, scales = k == M_SCALE || k == V_SCALE;
            const LsShape s = codes  ? SHAPE(all * of[_i].bits / 8)
                            : scales ? SHAPE(all / block)
                                     : SHAPE(m, n);
            v[way][k] = rig_operand(&r, codes ? LS_U8 : LS_REAL, LS_ROW, s);
            for (int64_t i = 0; i < ls_count(&s); i++)
                rig_set(&r, v[way][k], i, codes ? (double)(i * 7 % 256)
                                                : rig_get(&r, v[0][k], i));
            for (int64_t i = 0; scales && i < ls_count(&s); i++)
                rig_set(&r, v[way][k], i, (double)(1 + i % 3));
        }
        const LsAttr at = {.update = {.hyper.beta1 = 0.9, .hyper.beta2 = 0.99, .hyper.eps = 1e-8,
                                      .hyper.decoupled = 1, .hyper.bits = of[_i].bits,
                                      .sum.scale = 0.5}};
        const LsNodeId update = rig_node(
            &r, LS_OP_ADAM_CODES,
            VALUES(v[way][P], way == 0 ? grad : none, v[way][M], v[way][M_SCALE], v[way][V],
                   v[way][V_SCALE], none, of[_i].acc ? v[way][ACC] : none, none, none, none, a, b),
            0, &at);
        LsComputed *c = ls_arena_alloc(r.cx.arena, 1, sizeof *c);
        *c = (LsComputed){.operand = 1, .first = 11, .product = &gemm};
        r.g->node[update.i].computed = way == 0 ? NULL : c;
        if (way == 0)
            r.g->node[update.i].nin = 11;
    }
    rig_run(&r);
    for (int k = P; k < OPERANDS; k++)
        for (int64_t i = 0; i < ls_count(ls_shape(r.g, v[0][k])) && k != G; i++)
            ck_assert_msg(rig_get(&r, v[0][k], i) == rig_get(&r, v[1][k], i),
                          "operand %d, element %" PRId64 ": %.9g of a stored gradient, %.9g", k, i,
                          rig_get(&r, v[0][k], i), rig_get(&r, v[1][k], i));
    ck_assert(rig_get(&r, v[1][M_SCALE], 0) != 1);
    rig_close(&r);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("kernels_codes");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, test_a_layout_moves_no_element_to_another_block, 0,
                        2 * sizeof cases / sizeof *cases);
    tcase_add_loop_test(t, test_what_is_not_finite_stays_in_its_block, 0, 2);
    tcase_add_loop_test(t, test_a_product_is_applied_block_by_block, 0, 4);
    return run_tests("kernels_codes", t);
}
