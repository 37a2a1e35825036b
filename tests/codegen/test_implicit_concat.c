/* tests/codegen/test_implicit_concat.c -- which concatenations FUSED kernels read in parts, and
 * which are stored. */
#include "codegen/fusion/implicit_concat.h"
#include "compiler/passes/fuse.h"
#include "tests/support/gradient.h"
#include "tests/support/suite.h"

static const LsTarget cpu = {.real_bytes = 4}, gpu = {.kind = LS_TARGET_CUDA, .real_bytes = 4};
static LsValueId output[8];

static LsValueId given(const char *name, LsShape s)
{
    return ls_value_add(&cx, g, LS_V_INPUT, name, LS_REAL, &s, NULL);
}

static LsValueId concat(int axis, int n, const LsValueId x[])
{
    return ls_append(&cx, g, LS_OP_CONCAT, n, x, &(LsAttr){.axis = {axis}});
}
#define CONCAT(axis, ...) \
    concat(axis, sizeof (LsValueId[]){__VA_ARGS__} / sizeof(LsValueId), (LsValueId[]){__VA_ARGS__})

static LsValueId map(LsOpCode op, LsValueId x) { return ls_append1(&cx, g, op, x, NULL); }

/* Fuses and joins with these outputs. Returns the number of concatenations that disappeared. */
static uint32_t join(const LsTarget *t, uint32_t n, const LsValueId out[])
{
    for (uint32_t k = 0; k < n; k++)
        output[k] = out[k];
    g->output = output;
    g->noutput = n;
    ck_assert(ls_fuse(&cx, g));
    uint32_t before = count_op(LS_OP_CONCAT), went = ls_join_operands(&cx, g, t, NULL, 0);
    ck_assert_uint_eq(count_op(LS_OP_CONCAT), before - went);
    return went;
}
#define JOIN(target, ...) \
    join(target, sizeof (LsValueId[]){__VA_ARGS__} / sizeof(LsValueId), (LsValueId[]){__VA_ARGS__})

static const LsNode *maker(int k) { return &g->node[g->value[g->output[k].i].def.i]; }

START_TEST(kernels_get_the_parts_in_place_of_the_whole)
{
    graph_open();
    LsValueId x = given("x", SHAPE(2, 8)), y = given("y", SHAPE(2, 4)),
              w = given("w", SHAPE(2, 12));
    LsValueId v = given("v", SHAPE(2, 12)), c = CONCAT(1, x, y);
    LsValueId s = ls_append2(&cx, g, LS_OP_ADD, ls_append2(&cx, g, LS_OP_MUL, w, c, NULL), v, NULL);
    LsValueId sum =
        ls_append1(&cx, g, LS_OP_REDUCE_SUM, c, &(LsAttr){.reduce = {.axes = 1, .keep = true}});
    ck_assert_uint_eq(JOIN(&cpu, s, sum), 1);
    const LsNode *n = maker(0);
    const LsFused *f = n->attr.fused.body;
    ck_assert_int_eq(f->njoined, 2);
    ck_assert_int_eq(n->nin, 4);
    const uint32_t want[] = {w.i, v.i, x.i, y.i};
    for (int k = 0; k < 4; k++)
        ck_assert_uint_eq(g->operand[n->in + (uint32_t)k].i, want[k]);
    ck_assert_int_eq(f->joined, 2);
    for (int k = 0; k < f->nstmt; k++)
        if (f->stmt[k].op == LS_OP_MUL)
            ck_assert(f->stmt[k].arg[0] == ~0 && f->stmt[k].arg[1] == ~2);
        else if (f->stmt[k].op == LS_OP_ADD)
            ck_assert_int_eq(f->stmt[k].arg[1], ~1);
    graph_close();
}
END_TEST

/* The parts lie along an axis that the kernel does not walk innermost, or a kernel other than FUSED
 * reads them. */
START_TEST(what_is_needed_as_a_whole_is_made)
{
    graph_open();
    LsValueId x = given("x", SHAPE(4, 8)), y = given("y", SHAPE(4, 4)), z = given("z", SHAPE(2, 8));
    LsValueId seen = CONCAT(1, x, y), rows = CONCAT(0, x, z), read = CONCAT(1, x, y, y);
    LsValueId turned = CONCAT(1, y, x);
    LsAttr last = {.axis = {1}};
    ck_assert_uint_eq(JOIN(&cpu, seen, map(LS_OP_EXP, seen), map(LS_OP_EXP, rows),
                           ls_append1(&cx, g, LS_OP_SOFTMAX, read, &last), map(LS_OP_EXP, read),
                           ls_append1(&cx, g, LS_OP_RESHAPE, map(LS_OP_RELU, turned),
                                      &(LsAttr){.shape = {SHAPE(48)}}),
                           ls_append1(&cx, g, LS_OP_RESHAPE, turned,
                                      &(LsAttr){.shape = {SHAPE(48)}})), 0);
    graph_close();
}
END_TEST

/* A single pixel has one order of elements with two names; the kernel uses its own. */
START_TEST(what_is_walked_along_another_axis_is_made)
{
    for (int layout = LS_ROW; layout <= LS_LAST; layout++) {
        graph_open();
        LsValueId c = CONCAT(1, given("x", SHAPE(2, 8, 1, 1)), given("y", SHAPE(2, 4, 1, 1)));
        LsValueId e = map(LS_OP_EXP, c);
        for (uint32_t i = 1; i < g->nvalue; i++)
            g->value[i].layout = (LsLayout)layout;
        ck_assert_uint_eq(JOIN(&cpu, e), 0);
        graph_close();
    }
}
END_TEST

/* A kernel of the backward part would read the parameter after its update. */
START_TEST(what_is_updated_is_not_read_late)
{
    for (int view = 0; view < 2; view++) {
        graph_open();
        LsValueId p = param("p", view ? SHAPE(8) : SHAPE(2, 4)), x = given("x", SHAPE(2, 8));
        if (view)
            p = ls_append1(&cx, g, LS_OP_RESHAPE, p, &(LsAttr){.shape = {SHAPE(2, 4)}});
        ck_assert_uint_eq(JOIN(&cpu, map(LS_OP_EXP, CONCAT(1, x, p))), 0);
        graph_close();
    }
}
END_TEST

START_TEST(what_is_asked_for_by_name_is_made)
{
    static const char *const glob[] = {"z", "a*"};
    for (int n = 1; n <= 2; n++) {
        graph_open();
        LsValueId c = CONCAT(1, given("x", SHAPE(2, 4)), given("y", SHAPE(2, 4)));
        g->value[c.i].name = "ab";
        output[0] = map(LS_OP_EXP, c);
        g->output = output;
        g->noutput = 1;
        ck_assert(ls_fuse(&cx, g));
        ck_assert_uint_eq(ls_join_operands(&cx, g, &cpu, glob, n), n == 1);
        graph_close();
    }
}
END_TEST

START_TEST(a_kernel_reads_the_parts_of_one_concatenation)
{
    graph_open();
    LsValueId x = given("x", SHAPE(4, 8)), y = given("y", SHAPE(4, 4)), a = CONCAT(1, x, y);
    LsValueId b = CONCAT(1, y, x);
    ck_assert_uint_eq(JOIN(&cpu, ls_append2(&cx, g, LS_OP_ADD, a, b, NULL)), 1);
    ck_assert_int_eq(maker(0)->nin, 3);
    ck_assert_int_eq(maker(0)->attr.fused.body->njoined, 2);
    graph_close();
}
END_TEST

/* A thread of a GPU reads four neighbours at a time, and compares an index with few others. */
static uint32_t joined_of(const LsTarget *t, int n, const int64_t length[])
{
    LsValueId x[8];
    graph_open();
    for (int k = 0; k < n; k++)
        x[k] = given(ls_arena_printf(cx.arena, "x%d", k), SHAPE(3, length[k]));
    uint32_t went = JOIN(t, map(LS_OP_EXP, concat(1, n, x)));
    graph_close();
    return went;
}

START_TEST(parts_are_such_that_an_index_finds_its_own_soon)
{
    static const int64_t plain[] = {64, 32, 32, 32, 8, 8}, odd[] = {8, 6, 6},
                         many[] = {4, 8, 12, 16, 20}, wide[] = {8192, 4};
    const LsTarget *both[] = {&cpu, &gpu};
    for (int k = 0; k < 2; k++) {
        ck_assert_uint_eq(joined_of(both[k], 6, plain), 1);
        ck_assert_uint_eq(joined_of(both[k], 3, odd), both[k] == &cpu);
        ck_assert_uint_eq(joined_of(both[k], 5, many), 0);
        ck_assert_uint_eq(joined_of(both[k], 2, wide), 0);
    }
}
END_TEST

int main(void)
{
    const TTest *const test[] = {
        kernels_get_the_parts_in_place_of_the_whole,
        what_is_needed_as_a_whole_is_made,
        what_is_walked_along_another_axis_is_made,
        what_is_updated_is_not_read_late,
        what_is_asked_for_by_name_is_made,
        a_kernel_reads_the_parts_of_one_concatenation,
        parts_are_such_that_an_index_finds_its_own_soon,
    };
    TCase *tc = tcase_create("join");
    add_tests(tc, sizeof test / sizeof test[0], test);
    return run_tests("join", tc);
}
