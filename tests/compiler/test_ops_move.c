/* tests/compiler/test_ops_move.c -- moving rows: shapes, gradients against central differences,
 * messages. */
#include "tests/support/gradient.h"
#include "tests/support/suite.h"

static void check(LsOpCode op, LsShape x, LsAttr at, LsShape want)
{
    graph_open();
    LsValueId y = ls_append1(&cx, g, op, param("x", x), &at);
    ck_assert(ls_is(y));
    ck_assert_msg(ls_shape_same(ls_shape(g, y), &want), "%s gives %s, not %s", ls_op[op]->name,
                  ls_shape_text(cx.arena, ls_shape(g, y)), ls_shape_text(cx.arena, &want));
    check_gradients(weighed(y));
    graph_close();
}

START_TEST(gradient_of_transpose_turns_back)
{
    check(LS_OP_TRANSPOSE, SHAPE(2, 3, 4), (LsAttr){.perm = {{2, 0, 1}}}, SHAPE(4, 2, 3));
    check(LS_OP_TRANSPOSE, SHAPE(2, 3), (LsAttr){.perm = {{1, 0}}}, SHAPE(3, 2));
    check(LS_OP_TRANSPOSE, SHAPE(2, 1, 3, 2), (LsAttr){.perm = {{3, 1, 0, 2}}}, SHAPE(2, 1, 2, 3));
}
END_TEST

START_TEST(gradient_of_reshape_has_the_operand_shape)
{
    check(LS_OP_RESHAPE, SHAPE(2, 3, 4), (LsAttr){.shape = {SHAPE(6, 4)}}, SHAPE(6, 4));
}
END_TEST

static LsAttr slice(int64_t b0, int64_t e0, int64_t s0, int64_t b1, int64_t e1, int64_t s1)
{
    return (LsAttr){.slice = {.start = {b0, b1}, .stop = {e0, e1}, .step = {s0, s1}}};
}

START_TEST(gradient_of_slice_is_zero_outside)
{
    check(LS_OP_SLICE, SHAPE(4, 5), slice(1, 3, 1, 0, 5, 1), SHAPE(2, 5));
    check(LS_OP_SLICE, SHAPE(4, 5), slice(0, 4, 1, 2, 4, 1), SHAPE(4, 2));
    check(LS_OP_SLICE, SHAPE(4, 5), slice(0, 4, 1, 1, 5, 2), SHAPE(4, 2));
    check(LS_OP_SLICE, SHAPE(4, 5), slice(3, -1, -1, 4, -1, -2), SHAPE(4, 3));
    check(LS_OP_SLICE, SHAPE(4, 5), slice(2, 0, -2, 0, 5, 7), SHAPE(1, 1));
}
END_TEST

/* x in three parts along axis 1, each through another function; the loss is the sum of the
 * results. */
START_TEST(gradients_of_all_parts_of_a_split_are_joined_not_added)
{
    graph_open();
    LsValueId x = ls_append1(&cx, g, LS_OP_NEG, param("x", SHAPE(2, 6)), NULL), total = {0};
    for (int k = 0; k < 3; k++) {
        LsAttr at = slice(0, 2, 1, k * (k + 1) / 2, (k + 1) * (k + 2) / 2, 1);
        LsValueId y =
            weighed(ls_append1(&cx, g, LS_OP_EXP, ls_append1(&cx, g, LS_OP_SLICE, x, &at), NULL));
        total = k == 0 ? y : ls_append2(&cx, g, LS_OP_ADD, total, y, NULL);
    }
    uint32_t nforward = g->nnode, concats = 0;
    check_gradients(total);
    ck_assert(ls_dce(&cx, g));
    for (uint32_t i = nforward; i < g->nnode; i++) {
        ck_assert_int_ne(g->node[i].op, LS_OP_PAD);
        ck_assert_int_ne(g->node[i].op, LS_OP_ADD);
        concats += g->node[i].op == LS_OP_CONCAT && g->node[i].nin == 3;
    }
    ck_assert_uint_eq(concats, 1);
    graph_close();
}
END_TEST

/* Overlapping parts, and parts that leave a gap. */
START_TEST(gradients_of_other_slices_add_up)
{
    static const int64_t part[][4] = {{0, 3, 2, 5}, {0, 2, 3, 5}, {1, 3, 3, 4}, {3, 5, 0, 3}};
    for (int p = 0; p < 4; p++) {
        graph_open();
        LsValueId x = param("x", SHAPE(2, 5)), y[2];
        for (int k = 0; k < 2; k++) {
            LsAttr at = slice(0, 2, 1, part[p][2 * k], part[p][2 * k + 1], 1);
            y[k] = weighed(ls_append1(&cx, g, LS_OP_SLICE, x, &at));
        }
        check_gradients(ls_append2(&cx, g, LS_OP_ADD, y[0], y[1], NULL));
        graph_close();
    }
}
END_TEST

static LsAttr pad(LsPadMode mode, int64_t lo0, int64_t hi0, int64_t lo1, int64_t hi1)
{
    return (LsAttr){.pad = {.mode = mode, .lo = {lo0, lo1}, .hi = {hi0, hi1}, .value = 0.5}};
}

START_TEST(gradient_of_pad_returns_what_the_border_copied)
{
    for (int mode = LS_PAD_CONSTANT; mode <= LS_PAD_EDGE; mode++) {
        check(LS_OP_PAD, SHAPE(3, 4), pad(mode, 1, 2, 0, 3), SHAPE(6, 7));
        check(LS_OP_PAD, SHAPE(3, 4), pad(mode, 2, 2, 3, 3), SHAPE(7, 10));
        check(LS_OP_PAD, SHAPE(3, 4), pad(mode, -1, 2, 0, -2), SHAPE(4, 2));
        check(LS_OP_PAD, SHAPE(3, 4), pad(mode, -1, -1, 2, 0), SHAPE(1, 6));
    }
    check(LS_OP_PAD, SHAPE(3, 4), pad(LS_PAD_EDGE, 5, 0, 0, 6), SHAPE(8, 10));
    check(LS_OP_PAD, SHAPE(3, 1), pad(LS_PAD_EDGE, 0, 0, 2, 2), SHAPE(3, 5));
}
END_TEST

START_TEST(gradient_of_tile_sums_the_repetitions)
{
    check(LS_OP_TILE, SHAPE(2, 3), (LsAttr){.shape = {SHAPE(3, 2)}}, SHAPE(6, 6));
    check(LS_OP_TILE, SHAPE(2, 1, 3), (LsAttr){.shape = {SHAPE(1, 4, 2)}}, SHAPE(2, 4, 6));
}
END_TEST

START_TEST(gradient_of_concat_cuts_apart)
{
    for (int axis = 0; axis < 3; axis++) {
        graph_open();
        LsShape s[3];
        LsValueId in[3];
        for (int k = 0; k < 3; k++) {
            s[k] = SHAPE(2, 3, 2);
            s[k].dim[axis] = k + 1;
            in[k] = param("x", s[k]);
        }
        LsValueId y = ls_append(&cx, g, LS_OP_CONCAT, 3, in, &(LsAttr){.axis = {axis}});
        ck_assert_int_eq(ls_shape(g, y)->dim[axis], 6);
        check_gradients(weighed(y));
        graph_close();
    }
}
END_TEST

static void check_gather(LsShape x, int axis, LsShape index, const int64_t *data, LsShape want)
{
    graph_open();
    LsValueId i = ls_const_add(&cx, g, LS_I64, &index, data);
    LsAttr at = {.gather = {.axis = axis}};
    LsValueId y = ls_append2(&cx, g, LS_OP_GATHER, param("x", x), i, &at);
    ck_assert(ls_shape_same(ls_shape(g, y), &want));
    check_gradients(weighed(y));
    graph_close();
}

START_TEST(gradient_of_gather_adds_up_at_each_place)
{
    check_gather(SHAPE(5, 2), 0, SHAPE(2, 3), (int64_t[]){4, 0, 4, -1, 2, 4}, SHAPE(2, 3, 2));
    check_gather(SHAPE(2, 4, 3), 1, SHAPE(2), (int64_t[]){3, 3}, SHAPE(2, 2, 3));
    check_gather(SHAPE(2, 3), 1, (LsShape){0}, (int64_t[]){1}, SHAPE(2));
}
END_TEST

static void check_resize(LsResizeMode mode, LsResizeCoord coord, LsRound nearest, int64_t h,
                         int64_t w)
{
    LsAttr at = {.resize = {mode, coord, nearest, {1, 1, (double)h / 3, (double)w / 4},
                            SHAPE(1, 2, 3, 4), SHAPE(1, 2, h, w)}};
    check(LS_OP_RESIZE, SHAPE(1, 2, 3, 4), at, SHAPE(1, 2, h, w));
}

START_TEST(gradient_of_resize_is_its_transpose)
{
    static const int64_t size[][2] = {{6, 8}, {5, 4}, {2, 3}, {1, 7}};
    for (int s = 0; s < 4; s++)
        for (int c = LS_COORD_HALF_PIXEL; c <= LS_COORD_ASYMMETRIC; c++) {
            check_resize(LS_RESIZE_LINEAR, c, LS_ROUND_FLOOR, size[s][0], size[s][1]);
            for (int r = LS_ROUND_FLOOR; r <= LS_ROUND_PREFER_CEIL; r++)
                check_resize(LS_RESIZE_NEAREST, c, r, size[s][0], size[s][1]);
        }
}
END_TEST

START_TEST(moves_that_do_not_fit_are_named)
{
    graph_open();
    LsValueId x = param("x", SHAPE(2, 3)), y = param("y", SHAPE(3, 3));
    LsAttr at = {.shape = {SHAPE(4, 2)}};
    refused(LS_OP_RESHAPE, 1, &x, &at, LS_E_SHAPE, "2x3 has 6 elements, 4x2 has 8");
    at = (LsAttr){.axis = {1}};
    refused(LS_OP_CONCAT, 2, (LsValueId[]){x, y}, &at, LS_E_SHAPE,
            "operand 0 is 2x3, operand 1 is 3x3, joined along axis 1");
    at = pad(LS_PAD_REFLECT, 0, 0, 3, 0);
    refused(LS_OP_PAD, 1, &x, &at, LS_E_SHAPE,
            "pads axis 1, of length 3, by 3 and 0; at most 2 fit");
    at = pad(LS_PAD_CONSTANT, -1, -1, 0, 0);
    refused(LS_OP_PAD, 1, &x, &at, LS_E_SHAPE, "of length 0 along axis 0");
    at = pad(LS_PAD_EDGE, -2, 2, 0, 0);
    refused(LS_OP_PAD, 1, &x, &at, LS_E_SHAPE, "crops axis 0, of length 2, by 2");
    at = slice(1, 1, 1, 0, 3, 1);
    refused(LS_OP_SLICE, 1, &x, &at, LS_E_SHAPE, "of length 0 along axis 0");
    at = (LsAttr){0};
    refused(LS_OP_GATHER, 2, (LsValueId[]){x, y}, &at, LS_E_TYPE,
            "the indices are float, not integers");
    at = (LsAttr){.shape = {SHAPE(INT64_MAX, 2)}};
    refused(LS_OP_TILE, 1, &x, &at, LS_E_SHAPE, "times");
    graph_close();
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("ops_move");
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, gradient_of_transpose_turns_back);
    tcase_add_test(tc, gradient_of_reshape_has_the_operand_shape);
    tcase_add_test(tc, gradient_of_slice_is_zero_outside);
    tcase_add_test(tc, gradients_of_all_parts_of_a_split_are_joined_not_added);
    tcase_add_test(tc, gradients_of_other_slices_add_up);
    tcase_add_test(tc, gradient_of_pad_returns_what_the_border_copied);
    tcase_add_test(tc, gradient_of_tile_sums_the_repetitions);
    tcase_add_test(tc, gradient_of_concat_cuts_apart);
    tcase_add_test(tc, gradient_of_gather_adds_up_at_each_place);
    tcase_add_test(tc, gradient_of_resize_is_its_transpose);
    tcase_add_test(tc, moves_that_do_not_fit_are_named);
    return run_tests("ops_move", tc);
}
