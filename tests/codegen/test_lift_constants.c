/* tests/codegen/test_lift_constants.c -- which numbers of a kernel's text become arguments, and what the texts are
 * then. That the kernels still compute the same, kernel_rig.h checks of every kernel it runs. */
#include "codegen/emit/lift_constants.h"
#include "tests/support/suite.h"

#include <string.h>

static LsArena *arena;

static void open_arena(void) { arena = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(arena); }

static const char *slice_text(int rows, int first, int row, int lanes)
{
    return ls_arena_printf(arena,
                           "LS_PART(K_part, 3, 8, 32)\n{\n    LS_UNITS;\n    LS_IN(real, x, 0);\n"
                           "    LS_LOCAL(real, one, 64);\n    /* row 7 */\n"
                           "    LS_ROWS(j, lo * 64, ls_least(hi * 64, %d)) {\n"
                           "        LS_COPY(y + j * 32, x + %d + j * %d, 32);\n"
                           "        LS_LANES4(i, 0, %d) {\n"
                           "            y[i] = LS_R(0.5) * x[i] + ls_random(run, %d);\n"
                           "        }\n    }\n}\n", rows, first, row, lanes, rows);
}

static const char *launches(int64_t units)
{
    return ls_arena_printf(arena, "static void K(LsRun *run, void *const arg[])\n{\n"
                           "    ls_cuda_launch(run, p_K_part, %d, arg);\n}\n", (int)units);
}

static const LsNumbers *numbers(const char *text, int64_t units)
{
    return ls_numbers_find(arena, text, launches(units));
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
    ck_assert(ls_numbers_alike(numbers(slice_text(100, 64, 128, 32), 2),    /* 8 threads do 4 each */
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
                                       "    LS_NUMBER(n0, 3);\n    LS_NUMBER4(n1, 4);\n"));
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

START_TEST(functions_that_parts_call_keep_their_constants)
{
    static const char helper[] = "LS_HELPER int64_t twice(int64_t x)\n{\n    return x * 2;\n}\n";
    const char *text = ls_arena_printf(arena, "%s%s", helper, slice_text(100, 64, 128, 32));
    const LsNumbers *n = numbers(text, 2);
    const char *shared = ls_numbers_text(arena, ls_numbers_share(arena, &n, 1, true));
    ck_assert_int_eq(strncmp(shared, helper, sizeof helper - 1), 0);
    ck_assert_ptr_null(strstr(shared, "j * 128"));
}
END_TEST

START_TEST(a_kernel_that_does_more_than_launch_shares_nothing)
{
    const char *host = "static void K(LsRun *run, void *const arg[])\n{\n    ls_cuda_conv(run);\n"
                       "    ls_cuda_launch(run, p_K_part, 2, arg);\n}\n";
    ck_assert_ptr_null(ls_numbers_find(arena, slice_text(1, 1, 1, 4), host));
    ck_assert_ptr_null(ls_numbers_find(arena, "", launches(1)));
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
    for (int k = 0; k < 2; k++)
        of[k] = ls_numbers_find(arena, slice_text(100, 64, 128 << k, 32),
                                ls_arena_printf(arena, "%s%s", rest, call));
    const LsShared *s = ls_numbers_share(arena, of, 2, false);
    ck_assert_str_eq(ls_numbers_host(arena, s, 1, "K", "k5_conv"),
                     ls_arena_printf(arena, "static void K_rest(LsRun *run, void *const arg[])\n{\n"
                                     "    static const int64_t number[] = {256};\n"
                                     "    ls_cuda_launch_with(run, p_k5_conv_rest_part, 2, arg, "
                                     "3, number, 1);\n}\n%s", call));
    ck_assert_ptr_null(ls_numbers_find(arena, slice_text(1, 1, 1, 4),   /* a launch outside of it */
                                       ls_arena_printf(arena, "%s%s", rest, rest)));
}
END_TEST

/* A concatenation: its result stands behind its operands, which are so many. */
static const LsNumbers *concat(int operands)
{
    const char *text =
        ls_arena_printf(arena, "LS_PART(K_part, %d, 8, 32)\n{\n    LS_UNITS;\n"
                        "    LS_OUT(real, y, %d);\n    const int64_t end = 1 + %d;\n"
                        "    for (int64_t o = 1; o < end; o++) {\n        LS_IN(real, x, o);\n"
                        "        LS_COPY(y + o * 32, x, 32);\n    }\n}\n", operands + 2, operands,
                        operands - 1);
    return numbers(text, 2);
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
    tcase_add_test(tc, the_text_takes_what_varies_behind_the_operands);
    tcase_add_test(tc, numbers_that_always_agree_are_one_argument);
    tcase_add_test(tc, functions_that_parts_call_keep_their_constants);
    tcase_add_test(tc, a_kernel_that_does_more_than_launch_shares_nothing);
    tcase_add_test(tc, kernels_of_other_numbers_of_operands_share_the_text_of_the_most);
    tcase_add_test(tc, what_is_behind_the_launching_function_stays);
    return run_tests("numbers", tc);
}
