/* tests/codegen/test_lift_constants.c -- which numbers of a kernel's text become arguments, and the
 * resulting texts. kernel_rig.h checks for every kernel that it runs that the results stay the
 * same. */
#include "codegen/emit/lift_constants.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

static LsArena *arena;

static void open_arena(void) { arena = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(arena); }

/* A part as an emitter prints it. */
typedef struct Text {
    const char *text;
    LsMarks marks;
} Text;

static Text text_of(void (*print)(LsEmit *e, const int of[]), const int of[])
{
    char *buf = NULL;
    size_t size = 0;
    Text t = {.marks = {.arena = arena}};
    LsEmit e = {.to = open_memstream(&buf, &size), .marks = &t.marks};
    ck_assert_ptr_nonnull(e.to);
    print(&e, of);
    fclose(e.to);
    ck_assert_uint_eq(e.length, size);
    t.text = ls_arena_strdup(arena, buf);
    free(buf);
    return t;
}

/* of: rows, first, row, lanes. */
static void print_slice(LsEmit *e, const int of[])
{
    ls_emit_line(e, "LS_PART(K_part, " LS_HEAD ", " LS_WIDTH ", %d)", 3, 8, 32);
    ls_emit_line(e, "{");
    ls_emit_line(e, "LS_UNITS;");
    ls_emit_line(e, "LS_IN(real, x, " LS_N ");", 0);
    ls_emit_line(e, "LS_LOCAL(real, one, %d);", 64);
    ls_emit_line(e, "/* row %d */", 7);
    ls_emit_line(e, "LS_ROWS(j, lo * " LS_N ", ls_least(hi * " LS_N ", " LS_N ")) {", 64, 64,
                 of[0]);
    ls_emit_line(e, "LS_COPY(y + j * 32, x + %s + j * " LS_N64 ", 32);",
                 ls_arena_printf(arena, LS_N, of[1]), (int64_t)of[2]);
    ls_emit_line(e, "%s(i, 0, " LS_BOUND ") {", LS_FOURS "LS_LANES4", of[3]);
    ls_emit_line(e, "y[i] = LS_R(0.5) * x[i] + ls_random(run, %d);", of[0]);
    for (int k = 0; k < 3; k++)
        ls_emit_line(e, "}");
}

static Text slice_text(int rows, int first, int row, int lanes)
{
    return text_of(print_slice, (int[]){rows, first, row, lanes});
}

static const char *launches(int64_t units)
{
    return ls_arena_printf(arena, "static void K(LsRun *run, void *const arg[])\n{\n"
                           "    ls_cuda_launch(run, p_K_part, %d, arg);\n}\n", (int)units);
}

static const LsNumbers *numbers(Text t, int64_t units)
{
    return ls_numbers_find(arena, t.text, &t.marks, launches(units));
}

START_TEST(kernels_share_when_bounds_strides_and_offsets_alone_differ)
{
    const LsNumbers *a = numbers(slice_text(100, 64, 128, 32), 2);
    ck_assert(!ls_numbers_alike(a, numbers(slice_text(90, 64, 128, 32), 2)));   /* of ls_random */
    ck_assert(!ls_numbers_alike(a, numbers(slice_text(100, 64, 128, 64), 2)));  /* of LS_LANES4 */
    ck_assert(!ls_numbers_alike(numbers(slice_text(100, 64, 128, 96), 2),
                                numbers(slice_text(100, 64, 128, 64), 2)));
    ck_assert(ls_numbers_alike(a, numbers(slice_text(100, 60, 256, 32), 2)));
}
END_TEST

START_TEST(kernels_that_differ_in_units_alone_take_no_numbers)
{
    const LsNumbers *of[] = {numbers(slice_text(100, 64, 128, 64), 2),
                             numbers(slice_text(100, 64, 128, 64), 3)};
    ck_assert(ls_numbers_alike(of[0], of[1]));
    const LsShared *s = ls_numbers_share(arena, of, 2, false);
    ck_assert_int_eq(s->n, 0);
    ck_assert_str_eq(ls_numbers_text(arena, s), of[0]->text);
    ck_assert_str_eq(ls_numbers_host(arena, s, 1, "K", "k5_slice"),
                     "static void K(LsRun *run, void *const arg[])\n{\n"
                     "    ls_cuda_launch(run, p_k5_slice_part, 3, arg);\n}\n");
}
END_TEST

START_TEST(lanes_of_one_block_or_of_one_step_may_differ)
{
    ck_assert(ls_numbers_alike(numbers(slice_text(100, 64, 128, 32), 2),    /* 8 threads do 4
                               each */
                               numbers(slice_text(100, 64, 128, 16), 2)));
    ck_assert(ls_numbers_alike(numbers(slice_text(100, 64, 128, 32), 1),
                               numbers(slice_text(100, 64, 128, 64), 1)));
}
END_TEST

START_TEST(the_text_takes_what_varies_behind_the_operands)
{
    const LsNumbers *of[] = {numbers(slice_text(100, 64, 128, 32), 2),
                             numbers(slice_text(100, 65, 256, 32), 2),
                             numbers(slice_text(100, 64, 512, 32), 2)};
    const LsShared *s = ls_numbers_share(arena, of, 3, false);
    const char *text = ls_numbers_text(arena, s);
    ck_assert_int_eq(s->n, 2);
    ck_assert_ptr_nonnull(strstr(text, "LS_PART(K_part, 3 + 2, 8, 32)\n{\n    LS_UNITS;\n"
                                       "    LS_NUMBER(n0, 3);\n    LS_NUMBER8(n1, 4);\n"));
    ck_assert_ptr_nonnull(strstr(text, "LS_COPY(y + j * 32, x + n0 + j * n1, 32);"));
    ck_assert_ptr_nonnull(strstr(text, "ls_least(hi * 64, 100)"));
    ck_assert_str_eq(ls_numbers_host(arena, s, 1, "K", "k5_slice"),
                     "static void K(LsRun *run, void *const arg[])\n{\n"
                     "    static const int64_t number[] = {65, 256};\n"
                     "    ls_cuda_launch_with(run, p_k5_slice_part, 2, arg, 3, number, 2);\n}\n");
    ck_assert_str_eq(ls_numbers_table(arena, s, "LS_ROW(K_part, 3, 8, 32)\n"),
                     "LS_ROW(K_part, 3 + 2, 8, 32)\n");
}
END_TEST

START_TEST(numbers_that_always_agree_are_one_argument)
{
    const LsNumbers *of[] = {numbers(slice_text(100, 128, 128, 32), 2),
                             numbers(slice_text(100, 256, 256, 32), 2)};
    const LsShared *s = ls_numbers_share(arena, of, 2, false);
    ck_assert_int_eq(s->n, 1);
    ck_assert_ptr_nonnull(strstr(ls_numbers_text(arena, s), "x + n0 + j * n0, 32"));
}
END_TEST

/* of: operands, a bound. */
static void print_wide(LsEmit *e, const int of[])
{
    ls_emit_line(e, "LS_PART(K_part, " LS_HEAD ", " LS_WIDTH ", %d)", of[0], 8, 32);
    ls_emit_line(e, "{");
    ls_emit_line(e, "LS_ROWS(j, 0, " LS_N ") {", of[1]);
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

START_TEST(a_launch_has_room_for_all_arguments)
{
    for (int operands = 254; operands <= 256; operands++) {
        const LsNumbers *of[] = {numbers(text_of(print_wide, (int[]){operands, 5}), 2),
                                 numbers(text_of(print_wide, (int[]){operands, 6}), 2)};
        ck_assert_msg((ls_numbers_share(arena, of, 2, false) != NULL) == (operands < 256),
                      "%d operands", operands);
    }
}
END_TEST

/* y[i] for an index i that lies within the bounds of the lanes. */
static void print_flat(LsEmit *e, const int of[])
{
    ls_emit_line(e, "LS_PART(K_part, " LS_HEAD ", " LS_WIDTH ", %d)", 3, 8, 1);
    ls_emit_line(e, "{");
    ls_emit_line(e, "LS_UNITS;");
    ls_emit_line(e, "LS_LANES(i, lo * " LS_INNER64 ", " LS_BOUND ") {", (int64_t)of[0], 8);
    ls_emit_line(e, "y[i] = 0;");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

START_TEST(parts_of_bounds_of_lanes_vary_in_one_block)
{
    const Text a = text_of(print_flat, (int[]){64}), b = text_of(print_flat, (int[]){32});
    ck_assert(ls_numbers_alike(numbers(a, 1), numbers(b, 1)));
    ck_assert(!ls_numbers_alike(numbers(a, 2), numbers(b, 2)));
}
END_TEST

static void print_long(LsEmit *e, const int of[])
{
    ls_emit_line(e, "%0*d + " LS_N, of[0], 1, of[1]);
}

/* Lines of any length, with and without a list of the places. */
START_TEST(marks_do_not_reach_the_text)
{
    for (int width = 1; width < 2000; width += 37) {
        const Text t = text_of(print_long, (int[]){width, 42});
        ck_assert_uint_eq(strlen(t.text), (size_t)width + strlen(" + 42\n"));
        ck_assert_uint_eq(t.marks.n, 1);
        ck_assert_str_eq(t.text + t.marks.mark[0].at, "42\n");
    }
    char buf[32] = "";
    LsEmit e = {.to = fmemopen(buf, sizeof buf, "w")};
    print_long(&e, (int[]){1, 42});
    fclose(e.to);
    ck_assert_str_eq(buf, "1 + 42\n");
    ck_assert_str_eq(ls_unmarked(arena, ls_arena_printf(arena, "i * " LS_N, 42)), "i * 42");
}
END_TEST

START_TEST(a_kernel_that_does_more_than_launch_shares_nothing)
{
    const char *host = "static void K(LsRun *run, void *const arg[])\n{\n    ls_cuda_conv(run);\n"
                       "    ls_cuda_launch(run, p_K_part, 2, arg);\n}\n";
    const Text t = slice_text(1, 1, 1, 4);
    ck_assert_ptr_null(ls_numbers_find(arena, t.text, &t.marks, host));
    ck_assert_ptr_null(ls_numbers_find(arena, "", &t.marks, launches(1)));
}
END_TEST

/* A library's call and its table, behind the launches of the kernel that the call may need. */
START_TEST(what_is_behind_the_launching_function_stays)
{
    static const char call[] = "static const LsCudaConv K_conv = {.behind = K_rest};\n"
                               "static void K(LsRun *run, void *const arg[])\n{\n"
                               "    ls_cuda_conv(run, &K_conv, arg);\n}\n";
    const char *rest = "static void K_rest(LsRun *run, void *const arg[])\n{\n"
                       "    ls_cuda_launch(run, p_K_rest_part, 2, arg);\n}\n";
    const LsNumbers *of[2];
    Text t;
    for (int k = 0; k < 2; k++) {
        t = slice_text(100, 64, 128 << k, 32);
        of[k] = ls_numbers_find(arena, t.text, &t.marks, ls_arena_printf(arena, "%s%s", rest,
                                                                         call));
    }
    const LsShared *s = ls_numbers_share(arena, of, 2, false);
    ck_assert_str_eq(ls_numbers_host(arena, s, 1, "K", "k5_conv"),
                     ls_arena_printf(arena, "static void K_rest(LsRun *run, void *const arg[])\n{\n"
                                     "    static const int64_t number[] = {256};\n"
                                     "    ls_cuda_launch_with(run, p_k5_conv_rest_part, 2, arg, "
                                     "3, number, 1);\n}\n%s", call));
    ck_assert_ptr_null(ls_numbers_find(arena, t.text, &t.marks,         /* a launch outside of it */
                                       ls_arena_printf(arena, "%s%s", rest, rest)));
}
END_TEST

/* A concatenation: its result stands behind its operands, whose number varies. */
static void print_concat(LsEmit *e, const int of[])
{
    ls_emit_line(e, "LS_PART(K_part, " LS_HEAD ", " LS_WIDTH ", %d)", of[0] + 2, 8, 32);
    ls_emit_line(e, "{");
    ls_emit_line(e, "LS_UNITS;");
    ls_emit_line(e, "LS_OUT(real, y, " LS_N ");", of[0]);
    ls_emit_line(e, "const int64_t end = 1 + " LS_N ";", of[0] - 1);
    ls_emit_line(e, "for (int64_t o = 1; o < end; o++) {");
    ls_emit_line(e, "LS_IN(real, x, o);");
    ls_emit_line(e, "LS_COPY(y + o * 32, x, 32);");
    ls_emit_line(e, "}");
    ls_emit_line(e, "}");
}

START_TEST(multiples_of_four_and_of_eight_are_marked)
{
    const LsNumbers *of[] = {numbers(slice_text(100, 64, 128, 32), 2),
                             numbers(slice_text(100, 68, 136, 32), 2)};
    ck_assert_ptr_nonnull(strstr(ls_numbers_text(arena, ls_numbers_share(arena, of, 2, false)),
                                 "    LS_NUMBER4(n0, 3);\n    LS_NUMBER8(n1, 4);\n"));
}
END_TEST

static const LsNumbers *concat(int operands)
{
    return numbers(text_of(print_concat, (int[]){operands}), 2);
}

START_TEST(kernels_of_other_numbers_of_operands_share_the_text_of_the_most)
{
    const LsNumbers *of[] = {concat(3), concat(7), concat(5)};
    ck_assert(ls_numbers_alike(of[0], of[1]));
    const LsShared *s = ls_numbers_share(arena, of, 3, false);
    ck_assert_int_eq(s->n, 2);
    ck_assert_int_eq(s->narg, 9);
    const char *text = ls_numbers_text(arena, s);
    ck_assert_ptr_nonnull(strstr(text, "LS_PART(K_part, 9 + 2, 8, 32)\n{\n    LS_UNITS;\n"
                                       "    LS_NUMBER(n0, 9);\n    LS_NUMBER(n1, 10);\n"
                                       "    LS_OUT(real, y, n0);\n"));
    ck_assert_ptr_nonnull(strstr(text, "end = 1 + n1;"));
    ck_assert_str_eq(ls_numbers_host(arena, s, 2, "K", "k5_concat"),
                     "static void K(LsRun *run, void *const arg[])\n{\n"
                     "    static const int64_t number[] = {5, 4};\n"
                     "    ls_cuda_launch_with(run, p_k5_concat_part, 2, arg, 7, number, 2);\n}\n");
    ck_assert_str_eq(ls_numbers_table(arena, s, "LS_ROW(K_part, 5, 8, 32)\n"),
                     "LS_ROW(K_part, 9 + 2, 8, 32)\n");
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("numbers");
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    tcase_add_test(tc, kernels_share_when_bounds_strides_and_offsets_alone_differ);
    tcase_add_test(tc, kernels_that_differ_in_units_alone_take_no_numbers);
    tcase_add_test(tc, lanes_of_one_block_or_of_one_step_may_differ);
    tcase_add_test(tc, multiples_of_four_and_of_eight_are_marked);
    tcase_add_test(tc, the_text_takes_what_varies_behind_the_operands);
    tcase_add_test(tc, numbers_that_always_agree_are_one_argument);
    tcase_add_test(tc, a_launch_has_room_for_all_arguments);
    tcase_add_test(tc, parts_of_bounds_of_lanes_vary_in_one_block);
    tcase_add_test(tc, marks_do_not_reach_the_text);
    tcase_add_test(tc, a_kernel_that_does_more_than_launch_shares_nothing);
    tcase_add_test(tc, kernels_of_other_numbers_of_operands_share_the_text_of_the_most);
    tcase_add_test(tc, what_is_behind_the_launching_function_stays);
    return run_tests("numbers", tc);
}
