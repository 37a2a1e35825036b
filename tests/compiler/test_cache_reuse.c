/* tests/compiler/test_cache_reuse.c -- the time since bytes were touched. */
#include "compiler/cost/cache_reuse.h"
#include "tests/support/suite.h"

#include <stdlib.h>
#include <string.h>

static LsReuse r;

static void open_reuse(void) { r = (LsReuse){.arena = ls_arena_new()}; }
static void close_reuse(void) { ls_arena_free(r.arena); }

static void expect(uint32_t k, double bytes, double age)
{
    ck_assert_uint_lt(k, r.npart);
    ck_assert_double_eq(r.part[k].bytes, bytes);
    ck_assert_double_eq(r.part[k].age, age);
}

START_TEST(what_was_never_touched_is_as_old_as_can_be)
{
    open_reuse();
    ls_reuse_touch(&r, 100, 150);
    expect(0, 50, LS_REUSE_NEVER);
    ls_reuse_touch(&r, 100, 100);
    ck_assert_uint_eq(r.npart, 0);
    close_reuse();
}
END_TEST

START_TEST(an_age_counts_every_byte_touched_since_once)
{
    open_reuse();
    ls_reuse_touch(&r, 0, 100);
    ls_reuse_touch(&r, 200, 230);
    ls_reuse_touch(&r, 200, 230);
    expect(0, 30, 30);
    ls_reuse_touch(&r, 0, 100);
    ck_assert_uint_eq(r.npart, 1);
    expect(0, 100, 130);
    close_reuse();
}
END_TEST

START_TEST(a_touch_of_several_ages_says_each)
{
    open_reuse();
    ls_reuse_touch(&r, 0, 100);
    ls_reuse_touch(&r, 40, 60);         /* 0..40 and 60..100 are older now */
    ls_reuse_touch(&r, 50, 130);
    ck_assert_uint_eq(r.npart, 3);
    expect(0, 10, 20);
    expect(1, 40, 60);
    expect(2, 30, LS_REUSE_NEVER);
    close_reuse();
}
END_TEST

/* The same result from a list of bytes, the last touched first. */
static void check_by_bytes(uint8_t *stack, int *n, int from, int to)
{
    double bytes = 0, sum = 0, oldest = 0;
    for (int b = from; b < to; b++)
        for (int k = 0; k < *n; k++)
            if (stack[k] == b && k + 1 > oldest)
                oldest = k + 1;
    ls_reuse_touch(&r, from, to);
    double said = 0;
    for (uint32_t k = 0; k < r.npart; k++) {
        bytes += r.part[k].bytes;
        if (r.part[k].age < LS_REUSE_NEVER && r.part[k].age > said)
            said = r.part[k].age;
        sum += r.part[k].age;
    }
    ck_assert_double_eq(bytes, to - from);
    ck_assert_double_ge(said, oldest);          /* a range is as old as its oldest byte */
    ck_assert_double_le(said, *n);
    ck_assert_double_gt(sum, 0);
    int kept = 0;
    uint8_t rest[256];
    for (int k = 0; k < *n; k++)
        if (stack[k] < from || stack[k] >= to)
            rest[kept++] = stack[k];
    for (int b = from; b < to; b++)
        stack[to - 1 - b] = (uint8_t)b;
    memcpy(stack + (to - from), rest, (size_t)kept);
    *n = kept + to - from;
}

START_TEST(ranges_and_single_bytes_agree)
{
    uint8_t stack[512];
    int n = 0;
    uint32_t seed = 1;
    open_reuse();
    for (int k = 0; k < 2000; k++) {
        seed = seed * 1664525u + 1013904223u;
        int from = (int)(seed >> 24), to = from + 1 + (int)(seed >> 16 & 31);
        check_by_bytes(stack, &n, from, to < 256 ? to : 256);
    }
    uint32_t total = 0;
    for (uint32_t k = 0; k < r.nrange; k++)
        total += (uint32_t)(r.range[k].to - r.range[k].from);
    ck_assert_uint_eq(total, (uint32_t)n);      /* no byte is in the list twice */
    close_reuse();
}
END_TEST

START_TEST(only_so_many_ranges_are_remembered)
{
    open_reuse();
    for (int64_t k = 0; k < 20000; k++)
        ls_reuse_touch(&r, 10 * k, 10 * k + 5);
    ck_assert_uint_le(r.nrange, 4096);
    ls_reuse_touch(&r, 199980, 199985);
    expect(0, 5, 10);
    ls_reuse_touch(&r, 0, 5);
    expect(0, 5, LS_REUSE_NEVER);
    close_reuse();
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("reuse");
    const TTest *const tests[] = {
        what_was_never_touched_is_as_old_as_can_be, an_age_counts_every_byte_touched_since_once,
        a_touch_of_several_ages_says_each, ranges_and_single_bytes_agree,
        only_so_many_ranges_are_remembered};
    add_tests(tc, sizeof tests / sizeof *tests, tests);
    return run_tests("reuse", tc);
}
