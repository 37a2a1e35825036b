/* tests/codegen/test_run_command.c -- commands run with the words that their texts give them. */
#include "tests/support/suite.h"

#include "codegen/toolchain/run_command.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static LsArena *arena;

static void setup(void) { arena = ls_arena_new(); }
static void teardown(void) { ls_arena_free(arena); }

START_TEST(words_are_not_limited)
{
    for (uint32_t words = 60; words < 1300; words = words < 70 ? words + 1 : 2 * words) {
        LsCommand c = {.arena = arena};
        char text[16];
        for (uint32_t k = 0; k < words; k += 3) {
            ls_command_add_words(&c, ls_arena_printf(arena, "  w%u w%u ", k, k + 1));
            ls_command_add(&c, ls_arena_printf(arena, "w%u", k + 2));
        }
        ck_assert_uint_eq(c.n, (words + 2) / 3 * 3);
        for (uint32_t k = 0; k < c.n; k++) {
            snprintf(text, sizeof text, "w%u", k);
            ck_assert_str_eq(c.word[k], text);
        }
        ck_assert_ptr_null(c.word[c.n]);
    }
}
END_TEST

/* The shell counts its words. */
START_TEST(a_long_command_runs_whole)
{
    LsCommand c = {.arena = arena};
    ls_command_add(&c, "/bin/sh");
    ls_command_add(&c, "-c");
    ls_command_add(&c, "[ $# = 500 ] && [ \"${500}\" = -DW499 ]");
    ls_command_add(&c, "sh");
    for (int k = 0; k < 500; k++)
        ls_command_add_words(&c, ls_arena_printf(arena, "-DW%d ", k));
    ck_assert_int_eq(ls_command_run(&c), 0);
    c.word[--c.n] = NULL;
    ck_assert_int_eq(ls_command_run(&c), -1);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("command");
    tcase_add_checked_fixture(tc, setup, teardown);
    const TTest *const test[] = {words_are_not_limited, a_long_command_runs_whole};
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("command", tc);
}
