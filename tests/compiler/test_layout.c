/* tests/compiler/test_layout.c -- all readers of a value agree about its layout. */
#include "compiler/passes/channels_last.h"
#include "tests/support/gradient.h"
#include "tests/support/suite.h"

/* w is first read where nothing has channels last, then beside a picture. */
START_TEST(a_parameter_keeps_the_layout_of_its_first_reader)
{
    graph_open();
    LsValueId w = param("w", SHAPE(2, 3, 4, 5)), x = param("x", SHAPE(2, 2, 4, 5));
    LsValueId p = ls_append1(&cx, g, LS_OP_SOFTMAX, w, &(LsAttr){.axis = {3}});
    const LsAttr at = {
        .window = {.n = 2, .kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}, .group = 1}};
    LsValueId y = ls_append2(&cx, g, LS_OP_CONV, x, param("f", SHAPE(3, 2, 1, 1)), &at);
    y = ls_append2(&cx, g, LS_OP_ADD, y, w, NULL);
    g->output = (LsValueId[]){p, y};
    g->noutput = 2;
    ck_assert(ls_layout(&cx, g, NULL));
    ck_assert(ls_verify(&cx, g));
    ck_assert_int_eq(g->value[g->output[0].i].layout, LS_ROW);
    ck_assert_int_eq(g->value[g->output[1].i].layout, LS_LAST);
    for (uint32_t i = 1; i < g->nnode; i++)
        if (g->node[i].op == LS_OP_SOFTMAX)
            ck_assert_int_eq(g->value[ls_in(g, (LsNodeId){i}, 0).i].layout, LS_ROW);
    graph_close();
}
END_TEST

/* The check that would have found it. */
START_TEST(kernels_with_one_layout_for_all_are_verified)
{
    graph_open();
    LsValueId w = param("w", SHAPE(2, 3, 4, 5));
    ls_append1(&cx, g, LS_OP_SOFTMAX, w, &(LsAttr){.axis = {3}});
    ck_assert(ls_verify(&cx, g));
    g->value[w.i].layout = LS_LAST;
    cx.log = fopen("/dev/null", "w");
    ck_assert(!ls_verify(&cx, g));
    fclose(cx.log);
    graph_close();
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("layout");
    tcase_add_test(tc, a_parameter_keeps_the_layout_of_its_first_reader);
    tcase_add_test(tc, kernels_with_one_layout_for_all_are_verified);
    return run_tests("layout", tc);
}
