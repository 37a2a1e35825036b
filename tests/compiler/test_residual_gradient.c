/* tests/compiler/test_residual_gradient.c -- which sums of gradients a norm's kernel does, and that
 * the gradients stay the same. */
#include "tests/support/gradient.h"
#include "tests/support/suite.h"

static LsValueId norm_of(LsValueId x)
{
    int last = ls_shape(g, x)->rank - 1;
    LsShape over = SHAPE(ls_shape(g, x)->dim[last]);
    LsValueId in[] = {x, param("scale", over), param("bias", over)};
    return ls_append(&cx, g, LS_OP_LAYER_NORM, 3, in, &(LsAttr){.norm = {last, 1e-5}});
}

/* A layer between a norm and the sum that reads it. */
static LsValueId layer(LsValueId x)
{
    LsValueId w = param("w", SHAPE(4, 4));
    return ls_append2(&cx, g, LS_OP_MATMUL, x, w, &(LsAttr){.gemm = {.alpha = 1}});
}

static LsValueId add(LsValueId a, LsValueId b) { return ls_append2(&cx, g, LS_OP_ADD, a, b, NULL); }

static LsValueId open_stream(LsShape s)
{
    graph_open();
    return ls_append1(&cx, g, LS_OP_EXP, param("x", s), NULL);
}

/* The sum of x and a layer of x: the gradient of the sum arrives at x before the gradient of the
 * norm. */
static LsValueId block(LsValueId x) { return add(x, layer(norm_of(x))); }

static uint32_t sums(void)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        n += g->node[i].op == LS_OP_ADD && g->node[i].phase == LS_BACKWARD;
    return n;
}

static uint32_t taken(void)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < g->nnode; i++)
        n += g->node[i].op == LS_OP_LAYER_NORM_GRAD && ls_is(ls_in(g, (LsNodeId){i}, 5));
    return n;
}

/* The first gradient of a norm. */
static LsNodeId gradient(void)
{
    uint32_t i = 1;
    while (g->node[i].op != LS_OP_LAYER_NORM_GRAD)
        i++;
    return (LsNodeId){i};
}

/* Checks how many sums of how many the pass fuses, and that all gradients are unchanged. */
static void check_pass(uint32_t want, uint32_t of)
{
    Eval before = eval_new(g);
    eval_run(&before, 1, g->nnode);
    const LsGrad *grad = g->grad;
    ck_assert_uint_eq(sums(), of);
    ck_assert(ls_residual(&cx, g));
    ck_assert(ls_verify(&cx, g));
    ck_assert_uint_eq(taken(), want);
    ck_assert_uint_eq(sums(), of - want);
    Eval after = eval_new(g);
    eval_run(&after, 1, g->nnode);
    for (uint32_t k = 0; k < g->ngrad; k++)
        ck_assert_mem_eq(before.v[grad[k].grad.i], after.v[g->grad[k].grad.i],
                         (size_t)ls_count(ls_shape(g, g->grad[k].param)) * sizeof(double));
}

START_TEST(a_norm_adds_the_gradient_that_comes_along_the_residual)
{
    LsValueId x = open_stream(SHAPE(2, 3, 4));
    check_gradients(weighed(block(block(x))));
    check_pass(2, 2);
    for (uint32_t i = 1; i < g->nnode; i++) {
        const LsNode *n = &g->node[i];
        if (n->op == LS_OP_LAYER_NORM_GRAD) {       /* of the norm whose place it has */
            ck_assert_int_eq(g->node[n->fwd.i].op, LS_OP_LAYER_NORM);
            ck_assert_uint_eq(ls_in(g, n->fwd, 0).i, ls_in(g, (LsNodeId){i}, 1).i);
        }
    }
    graph_close();
}
END_TEST

START_TEST(norms_of_the_same_value_add_one_to_the_other)
{
    LsValueId x = open_stream(SHAPE(3, 4));
    check_gradients(weighed(add(add(x, layer(norm_of(x))), layer(norm_of(x)))));
    check_pass(2, 2);
    graph_close();
}
END_TEST

START_TEST(views_may_stand_between)
{
    LsValueId x = open_stream(SHAPE(2, 3, 4));
    LsValueId rows = ls_reshape(&cx, g, x, &SHAPE(6, 4));
    LsValueId y = ls_reshape(&cx, g, layer(norm_of(rows)), &SHAPE(2, 3, 4));
    check_gradients(weighed(add(x, y)));
    check_pass(1, 1);
    graph_close();
}
END_TEST

/* The gradient also goes to the layer before the norm. */
START_TEST(a_gradient_that_others_read_is_stored)
{
    LsValueId x = open_stream(SHAPE(3, 4));
    LsValueId other = layer(param("other", SHAPE(3, 4)));
    check_gradients(weighed(add(x, layer(norm_of(add(x, other))))));
    check_pass(0, 1);
    graph_close();
}
END_TEST

START_TEST(a_gradient_that_is_an_output_is_stored)
{
    LsValueId x = open_stream(SHAPE(3, 4));
    check_gradients(weighed(block(x)));
    LsValueId out[] = {ls_out(g, gradient(), 0)};
    g->output = out;
    g->noutput = 1;
    check_pass(0, 1);
    graph_close();
}
END_TEST

START_TEST(a_sum_that_is_an_output_keeps_its_name)
{
    LsValueId x = open_stream(SHAPE(3, 4));
    check_gradients(weighed(block(x)));
    LsValueId out[1];
    for (uint32_t i = 1; i < g->nnode; i++)
        if (g->node[i].op == LS_OP_ADD && g->node[i].phase == LS_BACKWARD)
            out[0] = ls_out(g, (LsNodeId){i}, 0);
    const char *name = g->value[out[0].i].name;
    g->output = out;
    g->noutput = 1;
    check_pass(1, 1);
    ck_assert_uint_eq(g->value[g->output[0].i].def.i, gradient().i);
    ck_assert_str_eq(g->value[g->output[0].i].name, name);
    graph_close();
}
END_TEST

/* When the layer's gradient exists, the norm's scale may already be updated. */
START_TEST(what_comes_later_is_added_later)
{
    LsValueId x = open_stream(SHAPE(3, 4));
    LsValueId y = layer(x);
    check_gradients(weighed(add(y, layer(norm_of(x)))));
    check_pass(0, 1);
    graph_close();
}
END_TEST

START_TEST(what_the_loop_of_the_sum_can_compute_is_not_stored)
{
    LsValueId x = open_stream(SHAPE(3, 4));
    LsValueId y = layer(norm_of(x)), scaled = ls_append2(&cx, g, LS_OP_MUL, x, x, NULL);
    check_gradients(weighed(add(y, scaled)));
    uint32_t all = sums();
    check_pass(0, all);
    graph_close();
}
END_TEST

START_TEST(a_sum_in_another_layout_is_left_alone)
{
    LsValueId x = open_stream(SHAPE(2, 3, 4));
    check_gradients(weighed(block(x)));
    for (uint32_t i = 1; i < g->nnode; i++)
        if (g->node[i].op == LS_OP_ADD && g->node[i].phase == LS_BACKWARD)
            g->value[ls_out(g, (LsNodeId){i}, 0).i].layout = LS_LAST;
    check_pass(0, 1);
    graph_close();
}
END_TEST

START_TEST(an_addend_of_another_shape_is_refused)
{
    LsValueId x = open_stream(SHAPE(3, 4));
    check_gradients(weighed(block(x)));
    LsNodeId n = gradient();
    LsValueId in[6] = {{0}};
    for (int k = 0; k < 5; k++)
        in[k] = ls_in(g, n, k);
    in[5] = constant(SHAPE(4));
    refused(LS_OP_LAYER_NORM_GRAD, 6, in, &g->node[n.i].attr, LS_E_SHAPE, "4 is added to");
    graph_close();
}
END_TEST

int main(void)
{
    const TTest *const test[] = {
        a_norm_adds_the_gradient_that_comes_along_the_residual,
        norms_of_the_same_value_add_one_to_the_other,
        views_may_stand_between,
        a_gradient_that_others_read_is_stored,
        a_gradient_that_is_an_output_is_stored,
        a_sum_that_is_an_output_keeps_its_name,
        what_comes_later_is_added_later,
        what_the_loop_of_the_sum_can_compute_is_not_stored,
        a_sum_in_another_layout_is_left_alone,
        an_addend_of_another_shape_is_refused,
    };
    TCase *tc = tcase_create("residual");
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("residual", tc);
}
