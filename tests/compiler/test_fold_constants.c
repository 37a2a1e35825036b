/* tests/compiler/test_fold_constants.c -- nodes over constants become constants: exact integers,
 * reals as the program would compute them, and nothing where the result is undefined or too
 * large. */
#include "tests/support/gradient.h"
#include "tests/support/suite.h"

static LsValueId ints(LsShape s, const int64_t *v) { return ls_const_add(&cx, g, LS_I64, &s, v); }

static LsValueId reals(LsShape s, const float *v) { return ls_const_add(&cx, g, LS_REAL, &s, v); }

static LsValueId int1(int64_t v)
{
    int64_t *at = ls_arena_alloc(cx.arena, 1, sizeof *at);
    *at = v;
    return ints((LsShape){0}, at);
}

#define INTS(...) ints(SHAPE(sizeof (int64_t[]){__VA_ARGS__} / 8), (int64_t[]){__VA_ARGS__})
#define REALS(...) reals(SHAPE(sizeof (float[]){__VA_ARGS__} / 4), (float[]){__VA_ARGS__})

static void expect(LsValueId v, LsType type, int n, const double *want)
{
    ck_assert(ls_is(v));
    ck_assert_msg(ls_is_const(g, v), "did not fold");
    ck_assert_int_eq(ls_type(g, v), type);
    ck_assert_int_eq(ls_count(ls_shape(g, v)), n);
    for (int i = 0; i < n; i++)
        ck_assert_msg(ls_const_at(g, v, i) == want[i]
                          || (isnan(want[i]) && isnan(ls_const_at(g, v, i))),
                      "element %d is %.9g, not %.9g", i, ls_const_at(g, v, i), want[i]);
    ck_assert_uint_eq(g->nnode, 1);         /* no node was left behind */
}
#define EXPECT(v, type, ...) \
    expect(v, type, sizeof (double[]){__VA_ARGS__} / 8, (double[]){__VA_ARGS__})

static LsValueId two(LsOpCode op, LsValueId a, LsValueId b)
{
    return ls_append2(&cx, g, op, a, b, NULL);
}
static LsValueId one(LsOpCode op, LsValueId a, LsAttr at) { return ls_append1(&cx, g, op, a, &at); }

START_TEST(integer_arithmetic_is_exact)
{
    graph_open();
    LsValueId big = int1((INT64_C(1) << 60) + 1), y = two(LS_OP_ADD, big, int1(1));
    ck_assert_int_eq(ls_const_int_at(g, y, 0), (INT64_C(1) << 60) + 2);     /* no double holds it */
    EXPECT(two(LS_OP_SUB, INTS(5, 3), int1(4)), LS_I64, 1, -1);
    EXPECT(two(LS_OP_DIV_INT, INTS(7, -7), int1(2)), LS_I64, 3, -3);
    EXPECT(two(LS_OP_MOD, INTS(7, -7, 7, -7), INTS(3, 3, -3, -3)), LS_I64, 1, 2, -2, -1);
    EXPECT(two(LS_OP_REMAINDER, INTS(7, -7, 7, -7), INTS(3, 3, -3, -3)), LS_I64, 1, -1, 1, -1);
    EXPECT(two(LS_OP_MOD, INTS(INT64_MIN), int1(-1)), LS_I64, 0);
    EXPECT(two(LS_OP_POW, INTS(3, -2, 5), INTS(4, 3, 0)), LS_I64, 81, -8, 1);
    EXPECT(two(LS_OP_MAX, INTS(3, -2), int1(1)), LS_I64, 3, 1);
    graph_close();
}
END_TEST

START_TEST(undefined_integers_stay_nodes)
{
    graph_open();
    LsValueId max = int1(INT64_MAX), min = int1(INT64_MIN), zero = int1(0);
    ck_assert(!ls_is_const(g, two(LS_OP_ADD, max, int1(1))));
    ck_assert(!ls_is_const(g, two(LS_OP_SUB, min, int1(1))));
    ck_assert(!ls_is_const(g, two(LS_OP_MUL, max, int1(2))));
    ck_assert(!ls_is_const(g, two(LS_OP_DIV_INT, max, zero)));
    ck_assert(!ls_is_const(g, two(LS_OP_DIV_INT, min, int1(-1))));
    ck_assert(!ls_is_const(g, two(LS_OP_MOD, max, zero)));
    ck_assert(!ls_is_const(g, two(LS_OP_POW, int1(10), int1(19))));
    ck_assert(!ls_is_const(g, two(LS_OP_POW, int1(10), int1(-1))));
    ck_assert(!ls_is_const(g, one(LS_OP_NEG, min, (LsAttr){0})));
    ck_assert(!ls_is_const(g, one(LS_OP_ABS, min, (LsAttr){0})));
    ck_assert(!ls_is_const(g, one(LS_OP_CAST, REALS(NAN), (LsAttr){.cast = LS_I64})));
    ck_assert(!ls_is_const(g, one(LS_OP_CAST, REALS(1e30f), (LsAttr){.cast = LS_I64})));
    ck_assert_int_eq(cx.nerror, 0);
    graph_close();
}
END_TEST

/* An int32 constant; it is made by a cast, which folds. */
static LsValueId narrow(LsValueId wide) { return one(LS_OP_CAST, wide, (LsAttr){.cast = LS_I32}); }

START_TEST(integers_of_32_bits_fold_up_to_their_ends_and_no_further)
{
    graph_open();
    LsAttr all = {.reduce = {.axes = 1, .keep = true}};
    LsValueId max = narrow(INTS(INT32_MAX)), min = narrow(INTS(INT32_MIN)), step = narrow(INTS(1));
    LsValueId half = narrow(INTS(1 << 16));
    EXPECT(two(LS_OP_ADD, max, narrow(INTS(-1))), LS_I32, INT32_MAX - 1);
    EXPECT(two(LS_OP_SUB, max, narrow(INTS(0))), LS_I32, INT32_MAX);
    EXPECT(two(LS_OP_MUL, half, narrow(INTS(-(1 << 15)))), LS_I32, INT32_MIN);
    EXPECT(one(LS_OP_REDUCE_SUM, narrow(INTS(INT32_MAX, 5, -5)), all), LS_I32, INT32_MAX);
    EXPECT(one(LS_OP_CAST, REALS(-0x1p31f), (LsAttr){.cast = LS_I32}), LS_I32, INT32_MIN);
    ck_assert(!ls_is_const(g, two(LS_OP_ADD, max, step)));
    ck_assert(!ls_is_const(g, two(LS_OP_SUB, min, step)));
    ck_assert(!ls_is_const(g, two(LS_OP_MUL, half, half)));
    ck_assert(!ls_is_const(g, two(LS_OP_POW, narrow(INTS(2)), narrow(INTS(31)))));
    ck_assert(!ls_is_const(g, two(LS_OP_DIV_INT, min, narrow(INTS(-1)))));
    ck_assert(!ls_is_const(g, one(LS_OP_NEG, min, (LsAttr){0})));
    ck_assert(!ls_is_const(g, one(LS_OP_ABS, min, (LsAttr){0})));
    ck_assert(!ls_is_const(g, one(LS_OP_REDUCE_SUM, narrow(INTS(INT32_MAX, 1)), all)));
    ck_assert(!ls_is_const(g, one(LS_OP_REDUCE_PROD, narrow(INTS(1 << 16, 1 << 16)), all)));
    ck_assert(!ls_is_const(g, one(LS_OP_CAST, REALS(0x1p31f), (LsAttr){.cast = LS_I32})));
    ck_assert(!ls_is_const(g, one(LS_OP_CAST, REALS(-0x1.1p31f), (LsAttr){.cast = LS_I32})));
    graph_close();
}
END_TEST

START_TEST(reductions_of_64_bits_that_overflow_stay_nodes)
{
    graph_open();
    LsAttr all = {.reduce = {.axes = 1, .keep = true}};
    LsValueId most = INTS(INT64_MAX, 1), least = INTS(INT64_MIN, -1);
    EXPECT(one(LS_OP_CAST, REALS(-0x1p63f), (LsAttr){.cast = LS_I64}), LS_I64, -0x1p63);
    ck_assert(!ls_is_const(g, one(LS_OP_REDUCE_SUM, most, all)));
    ck_assert(!ls_is_const(g, one(LS_OP_REDUCE_SUM, least, all)));
    ck_assert(!ls_is_const(g, one(LS_OP_REDUCE_MEAN, most, all)));
    ck_assert(!ls_is_const(g, one(LS_OP_REDUCE_PROD, INTS(INT64_MIN, -1), all)));
    ck_assert(!ls_is_const(g, one(LS_OP_REDUCE_SUM_SQUARE, INTS(INT64_C(1) << 32), all)));
    ck_assert(!ls_is_const(g, one(LS_OP_CAST, REALS(0x1p63f), (LsAttr){.cast = LS_I64})));
    graph_close();
}
END_TEST

START_TEST(reals_fold_with_broadcasting_both_ways)
{
    graph_open();
    LsValueId column = reals(SHAPE(2, 1), (float[]){1, 2}), row = REALS(10, 20, 30);
    EXPECT(two(LS_OP_ADD, column, row), LS_REAL, 11, 21, 31, 12, 22, 32);
    EXPECT(two(LS_OP_DIV, row, column), LS_REAL, 10, 20, 30, 5, 10, 15);
    EXPECT(one(LS_OP_ROUND, REALS(0.5f, 1.5f, -2.5f), (LsAttr){0}), LS_REAL, 0, 2, -2);
    EXPECT(one(LS_OP_CLIP, REALS(-9, 0.5f, 9), (LsAttr){.scalar = {.a = -1, .b = 2}}), LS_REAL, -1,
           0.5, 2);
    EXPECT(two(LS_OP_MAX, REALS(NAN, 1), REALS(1, NAN)), LS_REAL, NAN, NAN);
    EXPECT(one(LS_OP_RELU, REALS(NAN, -1, 2), (LsAttr){0}), LS_REAL, NAN, 0, 2);
    EXPECT(one(LS_OP_CAST, REALS(1.9f, -1.9f), (LsAttr){.cast = LS_I64}), LS_I64, 1, -1);
    EXPECT(one(LS_OP_CAST, INTS(INT64_C(0x100000001)), (LsAttr){.cast = LS_I32}), LS_I32, 1);
    graph_close();
}
END_TEST

START_TEST(comparisons_and_selections_fold)
{
    graph_open();
    LsValueId c = two(LS_OP_GREATER, INTS(1, 5, 3), int1(2));
    EXPECT(c, LS_BOOL, 0, 1, 1);
    EXPECT(one(LS_OP_NOT, c, (LsAttr){0}), LS_BOOL, 1, 0, 0);
    EXPECT(two(LS_OP_XOR, c, c), LS_BOOL, 0, 0, 0);
    EXPECT(ls_append3(&cx, g, LS_OP_WHERE, c, INTS(1, 2, 3), int1(-1), NULL), LS_I64, -1, 2, 3);
    EXPECT(ls_append3(&cx, g, LS_OP_WHERE, c, REALS(1, 2, 3), REALS(0.5f), NULL), LS_REAL, 0.5, 2,
           3);
    EXPECT(two(LS_OP_EQUAL, INTS(3, 4), INTS(3, 5)), LS_BOOL, 1, 0);
    graph_close();
}
END_TEST

/* Of operands that are smaller, equal and larger, and not a number. */
START_TEST(every_comparison_has_its_ties)
{
    static const struct { LsOpCode op; double of[4]; } want[] = {
        {LS_OP_EQUAL, {0, 1, 0, 0}}, {LS_OP_GREATER, {0, 0, 1, 0}}, {LS_OP_LESS, {1, 0, 0, 0}},
        {LS_OP_GREATER_EQUAL, {0, 1, 1, 0}}, {LS_OP_LESS_EQUAL, {1, 1, 0, 0}}};
    graph_open();
    for (size_t k = 0; k < sizeof want / sizeof *want; k++) {
        expect(two(want[k].op, REALS(1, 2, 3, NAN), REALS(2)), LS_BOOL, 4, want[k].of);
        expect(two(want[k].op, INTS(1, 2, 3), int1(2)), LS_BOOL, 3, want[k].of);
    }
    graph_close();
}
END_TEST

START_TEST(logic_folds_over_every_pair)
{
    graph_open();
    LsValueId a = two(LS_OP_GREATER, INTS(0, 0, 1, 1), int1(0)),
              b = two(LS_OP_GREATER, INTS(0, 1, 0, 1), int1(0));
    EXPECT(two(LS_OP_AND, a, b), LS_BOOL, 0, 0, 0, 1);
    EXPECT(two(LS_OP_OR, a, b), LS_BOOL, 0, 1, 1, 1);
    EXPECT(two(LS_OP_XOR, a, b), LS_BOOL, 0, 1, 1, 0);
    EXPECT(one(LS_OP_NOT, a, (LsAttr){0}), LS_BOOL, 1, 1, 0, 0);
    graph_close();
}
END_TEST

START_TEST(signs_steps_and_remainders_fold)
{
    graph_open();
    EXPECT(one(LS_OP_SIGN, REALS(-2, 0, 0.5f), (LsAttr){0}), LS_REAL, -1, 0, 1);
    EXPECT(one(LS_OP_SIGN, INTS(-2, 0, 7), (LsAttr){0}), LS_I64, -1, 0, 1);
    EXPECT(one(LS_OP_FLOOR, REALS(-1.5f, 1.5f), (LsAttr){0}), LS_REAL, -2, 1);
    EXPECT(one(LS_OP_CEIL, REALS(-1.5f, 1.5f), (LsAttr){0}), LS_REAL, -1, 2);
    EXPECT(two(LS_OP_FMOD, REALS(-7, 7), REALS(3)), LS_REAL, -1, 1);
    EXPECT(two(LS_OP_FLOOR_MOD, REALS(-7, 7), REALS(3)), LS_REAL, 2, 1);
    EXPECT(two(LS_OP_REMAINDER, INTS(-7, 7), int1(-3)), LS_I64, -1, 1);     /* as the dividend */
    EXPECT(two(LS_OP_MOD, INTS(-7, 7), int1(-3)), LS_I64, -1, -2);          /* as the divisor */
    graph_close();
}
END_TEST

static LsValueId cube(void)             /* 2x2x3: 0 .. 11 */
{
    static const float v[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    return reals(SHAPE(2, 2, 3), v);
}

START_TEST(reductions_fold_over_any_axes)
{
    graph_open();
    LsAttr middle = {.reduce = {.axes = 2, .keep = true}},
           all = {.reduce = {.axes = 7, .keep = true}},
           ends = {.reduce = {.axes = 5, .keep = true}};
    EXPECT(one(LS_OP_REDUCE_SUM, cube(), middle), LS_REAL, 3, 5, 7, 15, 17, 19);
    EXPECT(one(LS_OP_REDUCE_MEAN, cube(), all), LS_REAL, 5.5);
    EXPECT(one(LS_OP_REDUCE_MAX, cube(), ends), LS_REAL, 8, 11);
    EXPECT(one(LS_OP_REDUCE_MIN, cube(), ends), LS_REAL, 0, 3);
    EXPECT(one(LS_OP_REDUCE_SUM_SQUARE, cube(), all), LS_REAL, 506);
    EXPECT(one(LS_OP_REDUCE_PROD, INTS(2, 3, 7), (LsAttr){.reduce = {.axes = 1, .keep = true}}),
           LS_I64, 42);
    EXPECT(one(LS_OP_REDUCE_MEAN, INTS(2, 3, 3), (LsAttr){.reduce = {.axes = 1, .keep = true}}),
           LS_I64, 2);
    LsValueId none = ints(SHAPE(0), (int64_t[]){0});
    EXPECT(one(LS_OP_REDUCE_SUM, none, (LsAttr){.reduce = {.axes = 1, .keep = true}}), LS_I64, 0);
    ck_assert(!ls_is_const(
        g, one(LS_OP_REDUCE_MAX, none, (LsAttr){.reduce = {.axes = 1, .keep = true}})));
    graph_close();
}
END_TEST

START_TEST(moves_fold)
{
    graph_open();
    EXPECT(one(LS_OP_TRANSPOSE, cube(), (LsAttr){.perm = {{2, 0, 1}}}), LS_REAL,
           0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11);
    LsAttr at = {.slice = {.start = {1, 1, 2}, .stop = {2, -1, -1}, .step = {1, -1, -2}}};
    EXPECT(one(LS_OP_SLICE, cube(), at), LS_REAL, 11, 9, 8, 6);
    at = (LsAttr){.pad = {.lo = {1}, .hi = {2}, .value = 9}};
    EXPECT(one(LS_OP_PAD, REALS(1, 2, 3), at), LS_REAL, 9, 1, 2, 3, 9, 9);
    EXPECT(one(LS_OP_PAD, INTS(1, 2, 3), at), LS_I64, 9, 1, 2, 3, 9, 9);
    at.pad.mode = LS_PAD_REFLECT;
    EXPECT(one(LS_OP_PAD, REALS(1, 2, 3), at), LS_REAL, 2, 1, 2, 3, 2, 1);
    at.pad.mode = LS_PAD_EDGE;
    EXPECT(one(LS_OP_PAD, REALS(1, 2, 3), at), LS_REAL, 1, 1, 2, 3, 3, 3);
    at = (LsAttr){.pad = {.lo = {-1}, .hi = {1}}};
    EXPECT(one(LS_OP_PAD, REALS(1, 2, 3), at), LS_REAL, 2, 3, 0);
    EXPECT(one(LS_OP_TILE, INTS(1, 2), (LsAttr){.shape = {SHAPE(2)}}), LS_I64, 1, 2, 1, 2);
    EXPECT(one(LS_OP_EXPAND, INTS(1, 2), (LsAttr){.shape = {SHAPE(2, 2)}}), LS_I64, 1, 2, 1, 2);
    EXPECT(one(LS_OP_RESHAPE, cube(), (LsAttr){.shape = {SHAPE(12)}}), LS_REAL, 0, 1, 2, 3, 4, 5, 6,
           7, 8, 9, 10, 11);
    graph_close();
}
END_TEST

START_TEST(concat_and_gather_fold)
{
    graph_open();
    LsValueId a = ints(SHAPE(2, 1), (int64_t[]){1, 2}),
              b = ints(SHAPE(2, 2), (int64_t[]){3, 4, 5, 6});
    EXPECT(ls_append2(&cx, g, LS_OP_CONCAT, a, b, &(LsAttr){.axis = {1}}), LS_I64, 1, 3, 4, 2, 5,
           6);
    EXPECT(ls_append2(&cx, g, LS_OP_GATHER, b, INTS(1, -1, 0), &(LsAttr){.gather = {.axis = 1}}),
           LS_I64, 4, 4, 3, 6, 6, 5);
    LsValueId y = ls_append2(&cx, g, LS_OP_GATHER, b, INTS(0, 5), &(LsAttr){.gather = {.axis = 0}});
    ck_assert(!ls_is_const(g, y));          /* there is no row 5 */
    graph_close();
}
END_TEST

START_TEST(what_reads_a_parameter_or_missing_data_stays_a_node)
{
    graph_open();
    LsValueId p = param("p", SHAPE(2)), absent = ls_const_add(&cx, g, LS_REAL, &SHAPE(2), NULL);
    ck_assert(!ls_is_const(g, two(LS_OP_ADD, p, REALS(1))));
    ck_assert(!ls_is_const(g, one(LS_OP_NEG, absent, (LsAttr){0})));
    ck_assert(!ls_is_const(g, one(LS_OP_RESHAPE, absent, (LsAttr){.shape = {SHAPE(2, 1)}})));
    graph_close();
}
END_TEST

START_TEST(repetition_beyond_reason_is_left_to_the_program)
{
    graph_open();
    LsValueId y = one(LS_OP_EXPAND, REALS(1), (LsAttr){.shape = {SHAPE(1 << 15, 1 << 15)}});
    ck_assert(ls_is(y) && !ls_is_const(g, y));
    y = one(LS_OP_TILE, REALS(1), (LsAttr){.shape = {SHAPE(INT64_C(1) << 38)}});
    ck_assert(ls_is(y) && !ls_is_const(g, y));
    graph_close();
}
END_TEST

START_TEST(constants_made_have_a_limit_in_all)
{
    graph_open();
    g->folded = (INT64_C(1) << 30) - 4;
    ck_assert(!ls_is_const(g, two(LS_OP_ADD, REALS(1, 2, 3, 4, 5), REALS(1))));
    ck_assert(ls_is_const(g, two(LS_OP_ADD, REALS(1, 2, 3), REALS(1))));
    ck_assert(!ls_is_const(g, two(LS_OP_ADD, REALS(1, 2, 3), REALS(1))));
    graph_close();
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("fold");
    tcase_add_test(tc, integer_arithmetic_is_exact);
    tcase_add_test(tc, undefined_integers_stay_nodes);
    tcase_add_test(tc, integers_of_32_bits_fold_up_to_their_ends_and_no_further);
    tcase_add_test(tc, reductions_of_64_bits_that_overflow_stay_nodes);
    tcase_add_test(tc, reals_fold_with_broadcasting_both_ways);
    tcase_add_test(tc, comparisons_and_selections_fold);
    tcase_add_test(tc, every_comparison_has_its_ties);
    tcase_add_test(tc, logic_folds_over_every_pair);
    tcase_add_test(tc, signs_steps_and_remainders_fold);
    tcase_add_test(tc, reductions_fold_over_any_axes);
    tcase_add_test(tc, moves_fold);
    tcase_add_test(tc, concat_and_gather_fold);
    tcase_add_test(tc, what_reads_a_parameter_or_missing_data_stays_a_node);
    tcase_add_test(tc, repetition_beyond_reason_is_left_to_the_program);
    tcase_add_test(tc, constants_made_have_a_limit_in_all);
    return run_tests("fold", tc);
}
