/* tests/scheduler/test_peak_targets.c -- the targets of searches fill exactly the array that was
 * counted for them. */
#include "tests/support/suite.h"

#include "scheduler/candidates/peak_targets.h"

static const int64_t top[] = {1, 19, 20, 1000, 123456789, INT64_C(1) << 47};

static LsArena *arena;

static void setup(void) { arena = ls_arena_new(); }
static void teardown(void) { ls_arena_free(arena); }

/* The next allocation of the arena begins after the array's last number, and the numbers fall. */
static LsTargets checked(int64_t most, int64_t store_all, bool fine)
{
    LsTargets t = ls_targets(arena, most, store_all, fine);
    const char *behind = ls_arena_alloc(arena, 1, 1);
    ck_assert_msg((const char *)(t.bytes + t.n) <= behind || behind < (const char *)t.bytes,
                  "%u targets are more than there is room for", t.n);
    for (uint32_t k = 0; k < t.n; k++)
        ck_assert(t.bytes[k] >= 0 && t.bytes[k] <= most
                  && (k == 0 || t.bytes[k] <= t.bytes[k - 1]));
    return t;
}

START_TEST(all_targets_have_room)
{
    for (size_t k = 0; k < sizeof top / sizeof *top; k++)
        for (int fine = 0; fine < 2; fine++) {
            uint32_t n = checked(top[k], top[k], fine).n, parts = 0;
            ck_assert_uint_eq(n, fine ? 19 + 34 : 19);
            ck_assert_uint_eq(checked(top[k], top[k] - 1, fine).n, n + 19);
            LsTargets both = checked(top[k], 3 * top[k], fine);
            for (int64_t i = 1; i < 20; i++)
                parts += 3 * top[k] / 20 * i < top[k];
            ck_assert_uint_eq(both.n, n + parts);
        }
}
END_TEST

START_TEST(fine_targets_go_down_to_a_twentieth)
{
    LsTargets t = checked(1000000, 1000000, true);
    ck_assert_int_eq(t.bytes[0], 950000);
    ck_assert_int_eq(t.bytes[t.n - 1], 50000);
    for (uint32_t k = 1; k < t.n; k++)      /* by 6 % each, below 40 % */
        ck_assert(t.bytes[k - 1] > 400000 || t.bytes[k] * 16 >= t.bytes[k - 1] * 15);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("targets");
    tcase_add_checked_fixture(tc, setup, teardown);
    const TTest *const test[] = {all_targets_have_room, fine_targets_go_down_to_a_twentieth};
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("targets", tc);
}
