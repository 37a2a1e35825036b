/* tests/codegen/test_run_command.c -- commands run with the words that their texts give them. */
#include "tests/support/suite.h"

#include "codegen/toolchain/compiler_version.h"
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

START_TEST(what_a_command_prints_is_read)
{
    LsCommand c = {.arena = arena};
    ls_command_add(&c, "/bin/sh");
    ls_command_add(&c, "-c");
    ls_command_add(
        &c, "echo oops >&2; cat; i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i + 1)); done");
    ck_assert_str_eq(ls_command_output(&c, 5), "0\n1\n2");
    c.word[2] = "exit 1";
    ck_assert_ptr_null(ls_command_output(&c, 5));
    c.word[0] = "/nonexistent";
    ck_assert_ptr_null(ls_command_output(&c, 5));
}
END_TEST

START_TEST(compilers_are_known_by_what_they_say)
{
#define FSF "\nCopyright (C) 2022 Free Software Foundation, Inc.\n"
    static const struct { const char *text; LsCompilerKind kind; int major, minor; } said[] = {
        {"cc (Debian 12.2.0-14+deb12u1) 12.2.0" FSF, LS_CC_GCC, 12, 2},
        {"gcc (GCC) 4.8.5 20150623 (Red Hat 4.8.5-44)" FSF, LS_CC_GCC, 4, 8},
        {"gcc-14 (Ubuntu 14.2.0-4ubuntu2~24.04) 14.2.0" FSF, LS_CC_GCC, 14, 2},
        {"Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu\n", LS_CC_CLANG, 14, 0},
        {"clang version 3.4 (tags/RELEASE_34/final)\n", LS_CC_CLANG, 3, 4},
        {"Apple clang version 15.0.0 (clang-1500.3.9.4)\n", LS_CC_UNKNOWN, 0, 0},
        {"tcc version 0.9.27 (x86_64 Linux)\n", LS_CC_UNKNOWN, 0, 0},
        {"icc (ICC) 2021.1 Beta 20201112\nCopyright (C) Intel\n", LS_CC_UNKNOWN, 0, 0},
        {"", LS_CC_UNKNOWN, 0, 0},
    };
    for (size_t k = 0; k < sizeof said / sizeof *said; k++) {
        LsCompiler c = ls_compiler_of(said[k].text);
        ck_assert_msg(c.kind == said[k].kind, "%s", said[k].text);
        ck_assert(c.kind == LS_CC_UNKNOWN
                  || (c.major == said[k].major && c.minor == said[k].minor));
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("command");
    tcase_add_checked_fixture(tc, setup, teardown);
    const TTest *const test[] = {words_are_not_limited, a_long_command_runs_whole,
                                 what_a_command_prints_is_read,
                                 compilers_are_known_by_what_they_say};
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("command", tc);
}
