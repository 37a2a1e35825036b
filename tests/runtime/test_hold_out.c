/* tests/runtime/test_hold_out.c -- samples held out of training: both parts together are the data,
 * each sample is in one of them, and a seed draws others. */
#include <check.h>
#include <stdlib.h>

#include "runtime/data/hold_out.h"

/* Marks the samples of a part, which are in the order of the data. */
static void mark(const LsHoldOut *h, bool is_held, int *of)
{
    LsHoldOut part = *h;
    int64_t before = -1;
    part.is_held = is_held;
    for (int64_t i = 0, n = ls_hold_out_samples(&part); i < n; i++) {
        const int64_t at = ls_hold_out_sample(&part, i);
        ck_assert(at > before && at < h->all);
        ck_assert_int_eq(of[at], 0);
        of[at] = is_held ? 2 : 1;
        before = at;
    }
}

START_TEST(each_sample_is_in_one_part)
{
    for (int64_t all = 2; all < 90; all++)
        for (int64_t held = 1; held < all; held++) {
            const LsHoldOut h = {.held = held, .all = all, .seed = (uint64_t)(all * held)};
            int of[90] = {0};
            mark(&h, true, of);
            mark(&h, false, of);
            for (int64_t i = 0; i < all; i++)
                ck_assert_int_ne(of[i], 0);
        }
}
END_TEST

/* No product of the number of samples and of those held out fits 64 bits. */
START_TEST(many_samples_are_told_apart)
{
    const int64_t all = (int64_t)1 << 59, held = all / 10 + 3;
    const LsHoldOut rest = {.held = held, .all = all, .seed = 5},
                    out = {.held = held, .all = all, .seed = 5, .is_held = true};
    ck_assert_int_eq(ls_hold_out_samples(&rest) + ls_hold_out_samples(&out), all);
    for (int64_t i = 0; i < 2000; i++) {
        const int64_t at = ls_hold_out_samples(&out) - 1 - i * (held / 2001),
                      sample = ls_hold_out_sample(&out, at);
        int64_t low = 0, high = ls_hold_out_samples(&rest) - 1;
        while (low < high) {
            const int64_t mid = low + (high - low) / 2;
            if (ls_hold_out_sample(&rest, mid) < sample)
                low = mid + 1;
            else
                high = mid;
        }
        ck_assert_int_ne(ls_hold_out_sample(&rest, low), sample);
    }
    ck_assert_int_eq(ls_hold_out_sample(&rest, all - held - 1) < all, 1);
}
END_TEST

/* Every sample is held out by some seed, and about as often as others. */
START_TEST(seeds_draw_other_samples)
{
    enum { ALL = 50, HELD = 7, SEEDS = 7000 };
    int often[ALL] = {0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const LsHoldOut h = {.held = HELD, .all = ALL, .seed = seed, .is_held = true};
        for (int64_t i = 0; i < HELD; i++)
            often[ls_hold_out_sample(&h, i)]++;
    }
    for (int i = 0; i < ALL; i++)       /* stretches have 7 or 8 samples: 1000 or 875 of each */
        ck_assert_msg(often[i] > 750 && often[i] < 1130, "sample %d: %d times", i, often[i]);
}
END_TEST

START_TEST(windows_share_no_token)
{
    enum { WINDOW = 8 };
    for (int64_t stride = 1; stride < 12; stride++) {
        const LsHoldOut h = {.held = 5, .all = 40, .stream = true, .gap = WINDOW / stride};
        LsHoldOut out = h;
        out.is_held = true;
        const int64_t last = ls_hold_out_sample(&h, ls_hold_out_samples(&h) - 1);
        ck_assert_int_eq(ls_hold_out_sample(&out, 4), 39);
        ck_assert_int_lt(last * stride + WINDOW, ls_hold_out_sample(&out, 0) * stride);
        ck_assert_int_ge((last + 1) * stride + WINDOW, ls_hold_out_sample(&out, 0) * stride);
    }
}
END_TEST

int main(void)
{
    const TTest *test[] = {each_sample_is_in_one_part, many_samples_are_told_apart,
                           seeds_draw_other_samples, windows_share_no_token};
    Suite *s = suite_create("hold_out");
    TCase *c = tcase_create("hold_out");
    for (size_t k = 0; k < sizeof test / sizeof *test; k++)
        tcase_add_test(c, test[k]);
    suite_add_tcase(s, c);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
