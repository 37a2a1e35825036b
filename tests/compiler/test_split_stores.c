/* tests/compiler/test_split_stores.c -- which slices FUSED nodes write themselves, and which
 * stay. */
#include "compiler/ops/row.h"
#include "compiler/passes/fuse.h"
#include "tests/support/gradient.h"
#include "tests/support/suite.h"

static LsValueId output[8];

static LsValueId given(LsShape s)
{
    return ls_value_add(&cx, g, LS_V_INPUT, "x", LS_REAL, &s, NULL);
}

static LsValueId slice(LsValueId x, int axis, int64_t from, int64_t to)
{
    return ls_slice_axis(&cx, g, x, axis, from, to);
}

/* Fuses and splits with these outputs. */
static void split(uint32_t n, const LsValueId out[])
{
    for (uint32_t k = 0; k < n; k++)
        output[k] = out[k];
    g->output = output;
    g->noutput = n;
    ck_assert(ls_fuse(&cx, g));
    ck_assert(ls_split(&cx, g));
    ck_assert(ls_verify(&cx, g));
}
#define SPLIT(...) \
    split(sizeof (LsValueId[]){__VA_ARGS__} / sizeof(LsValueId), (LsValueId[]){__VA_ARGS__})

/* The part that is output k; length 0: no part. */
static LsFusedOut part(int k)
{
    const LsValueId v = g->output[k];
    const LsNode *n = &g->node[g->value[v.i].def.i];
    return n->op == LS_OP_FUSED ? n->attr.fused.body->out[v.i - n->out]
                                : (LsFusedOut){.length = -1};
}

START_TEST(slices_of_a_fused_result_become_its_results)
{
    graph_open();
    LsValueId e = ls_append1(&cx, g, LS_OP_EXP, given(SHAPE(2, 10, 3)), NULL);
    LsValueId a = slice(e, 1, 0, 6), b = slice(e, 1, 6, 10), c = slice(e, 1, 3, 4);
    SPLIT(a, b, c);
    ck_assert_uint_eq(count_op(LS_OP_SLICE), 0);
    ck_assert_uint_eq(count_op(LS_OP_FUSED), 1);
    const int64_t from[] = {0, 6, 3}, length[] = {6, 4, 1};
    for (int k = 0; k < 3; k++) {
        ck_assert_int_eq(part(k).from, from[k]);
        ck_assert_int_eq(part(k).length, length[k]);
        ck_assert_int_eq(ls_shape(g, g->output[k])->dim[1], length[k]);
    }
    graph_close();
}
END_TEST

START_TEST(other_results_of_the_node_stay_whole)
{
    graph_open();
    LsValueId e = ls_append1(&cx, g, LS_OP_EXP, given(SHAPE(2, 10)), NULL);
    LsValueId r = ls_append1(&cx, g, LS_OP_RELU, e, NULL);
    LsValueId a = slice(e, 1, 0, 5);
    SPLIT(a, r);
    ck_assert_uint_eq(count_op(LS_OP_SLICE), 0);
    ck_assert_int_eq(part(0).length, 5);
    ck_assert_int_eq(part(1).length, 0);
    graph_close();
}
END_TEST

/* A value that is read, sliced along two axes, sliced in steps, or an output stays in memory. */
START_TEST(what_is_needed_as_a_whole_is_not_split)
{
    for (int way = 0; way < 4; way++) {
        graph_open();
        LsValueId e = ls_append1(&cx, g, LS_OP_EXP, given(SHAPE(4, 10)), NULL);
        LsValueId a = slice(e, 1, 0, 5), b = slice(e, way == 0 ? 0 : 1, 1, 3);
        LsAttr odd = {.slice = {.step = {1, 2}, .stop = {4, 10}}};
        LsValueId third = way == 1   ? ls_transpose(&cx, g, e, (int[]){1, 0})
                          : way == 2 ? ls_append1(&cx, g, LS_OP_SLICE, e, &odd)
                                     : e;
        if (way == 0)
            SPLIT(a, b);
        else
            SPLIT(a, b, third);
        ck_assert_uint_eq(count_op(LS_OP_SLICE), way == 2 ? 3 : 2);
        ck_assert_int_eq(part(0).length, -1);
        graph_close();
    }
}
END_TEST

START_TEST(slices_of_what_others_make_stay)
{
    graph_open();
    LsValueId x = given(SHAPE(4, 10));
    LsValueId p = ls_append2(&cx, g, LS_OP_MATMUL, x, given(SHAPE(10, 6)),
                             &(LsAttr){.gemm = {.alpha = 1}});
    SPLIT(slice(x, 1, 0, 5), slice(p, 1, 0, 3));
    ck_assert_uint_eq(count_op(LS_OP_SLICE), 2);
    graph_close();
}
END_TEST

int main(void)
{
    const TTest *const test[] = {
        slices_of_a_fused_result_become_its_results,
        other_results_of_the_node_stay_whole,
        what_is_needed_as_a_whole_is_not_split,
        slices_of_what_others_make_stay,
    };
    TCase *tc = tcase_create("split");
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("split", tc);
}
