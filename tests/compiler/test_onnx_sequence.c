/* tests/compiler/test_onnx_sequence.c -- sequences are folded when a file is read; triangles of
 * matrices. */
#include "tests/support/onnx_small.h"
#include "tests/support/suite.h"

static void ints(const char *name, const char *dims, size_t n, const int64_t v[])
{
    MAKE_PUSH(&mk, mk.g->initializer, mk.g->n_initializer,
              make_tensor(&mk, name, MAKE_I64, dims, v, n * sizeof *v));
}

static Onnx__NodeProto *split(const char *in)
{
    Onnx__NodeProto *p = make_node(&mk, "SplitToSequence", in, "s");
    make_int(&mk, p, "axis", 1);
    return p;
}

static void item(int64_t k, const char *out)
{
    const char *at = ls_arena_printf(mk.cx.arena, "at_%s", out);
    ints(at, "", 1, &k);
    make_node(&mk, "SequenceAt", ls_arena_printf(mk.cx.arena, "s %s", at), out);
    make_output(&mk, out);
}

START_TEST(items_of_a_split_are_slices)
{
    ints("len", "2", 2, (int64_t[]){1, 3});
    split("y len");
    item(0, "a");
    item(-1, "b");
    LsGraph *g = import_well();
    ck_assert_int_eq(ls_shape(g, named(g, "a"))->dim[1], 1);
    ck_assert_int_eq(ls_shape(g, named(g, "b"))->dim[1], 3);
    LsNodeId view = g->value[named(g, "b").i].def;      /* an output has a name of its own */
    ck_assert_int_eq(g->node[g->value[ls_in(g, view, 0).i].def.i].attr.slice.start[1], 1);
}
END_TEST

START_TEST(one_length_is_that_of_every_part_but_the_last)
{
    ints("len", "", 1, (int64_t[]){3});
    split("y len");
    item(1, "a");
    LsGraph *g = import_well();
    ck_assert_int_eq(ls_shape(g, named(g, "a"))->dim[1], 1);
}
END_TEST

START_TEST(without_lengths_the_axis_is_taken_apart)
{
    make_int(&mk, split("y"), "keepdims", 0);
    item(3, "a");
    LsGraph *g = import_well();
    ck_assert_int_eq(ls_shape(g, named(g, "a"))->rank, 1);
}
END_TEST

START_TEST(what_was_split_is_put_together_again)
{
    split("y");
    make_int(&mk, make_node(&mk, "ConcatFromSequence", "s", "z"), "axis", 1);
    make_output(&mk, "z");
    LsGraph *g = import_well();
    ck_assert_int_eq(ls_shape(g, named(g, "z"))->dim[1], 4);
}
END_TEST

START_TEST(an_item_that_is_not_there_and_a_sequence_where_a_tensor_belongs_are_refused)
{
    split("y");
    item(4, "a");
    make_node(&mk, "Relu", "s", "r");
    ck_assert_ptr_null(make_import(&mk));
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "item 4 of a sequence of 4"));
    ck_assert_ptr_nonnull(strstr(make_log(&mk), "operand 0 is the sequence 's'"));
}
END_TEST

START_TEST(lengths_must_add_up)
{
    ints("len", "2", 2, (int64_t[]){1, 2});
    split("y len");
    item(0, "a");
    refuse(LS_E_SHAPE, LS_EXIT_MODEL, "do not add up to 4");
}
END_TEST

START_TEST(triangles_of_constants_are_folded)
{
    static const struct { int64_t upper, k; float y[6]; } form[] = {
        {1, 0, {1, 2, 3, 0, 5, 6}}, {0, 0, {1, 0, 0, 4, 5, 0}}, {1, 1, {0, 2, 3, 0, 0, 6}},
        {0, -1, {0, 0, 0, 4, 0, 0}}};
    const float x[6] = {1, 2, 3, 4, 5, 6};
    for (int i = 0; i < 4; i++) {
        mk.g->n_node = mk.g->n_initializer = mk.g->n_output = 0;
        mk.m->opset_import[0]->version = 14;
        mk.cx.parsed = NULL;
        make_node(&mk, "Relu", "x", "y");
        Onnx__NodeProto *c = make_node(&mk, "Constant", "", "m");
        make_tensor_attr(&mk, c, "value", make_tensor(&mk, "", MAKE_FLOAT, "2x3", x, sizeof x));
        ints("k", "", 1, &form[i].k);
        make_int(&mk, make_node(&mk, "Trilu", "m k", "t"), "upper", form[i].upper);
        make_node(&mk, "Add", "y t", "z");
        make_output(&mk, "z");
        LsGraph *g = import_well();
        ck_assert_int_eq(kind(g, "t"), LS_V_CONST);
        for (int j = 0; j < 6; j++)
            ck_assert_double_eq(ls_const_at(g, named(g, "t"), j), form[i].y[j]);
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("sequence");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    const TTest *const test[] = {
        items_of_a_split_are_slices,
        one_length_is_that_of_every_part_but_the_last,
        without_lengths_the_axis_is_taken_apart,
        what_was_split_is_put_together_again,
        an_item_that_is_not_there_and_a_sequence_where_a_tensor_belongs_are_refused,
        lengths_must_add_up,
        triangles_of_constants_are_folded,
    };
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("sequence", tc);
}
