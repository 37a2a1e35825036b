/* tests/base/test_csr.c -- rows against lists kept by hand. */
#include <check.h>

#include "base/csr.h"
#include "tests/support/suite.h"

static void check_row(const LsRows *r, uint32_t row, const uint32_t *want, uint32_t n)
{
    ck_assert_uint_eq(r->at[row + 1] - r->at[row], n);
    for (uint32_t k = 0; k < n; k++)
        ck_assert_uint_eq(r->id[r->at[row] + k], want[k]);
}

START_TEST(a_row_keeps_the_order_of_its_numbers)
{
    LsArena *a = ls_arena_new();
    LsPairs p = {0};
    const uint32_t row[] = {2, 0, 2, 4, 2}, id[] = {9, 1, 3, 7, 8};
    for (int k = 0; k < 5; k++)
        ls_pairs_add(a, &p, row[k], id[k]);
    LsRows r = ls_rows(a, &p, 5);
    check_row(&r, 0, (uint32_t[]){1}, 1);
    check_row(&r, 1, NULL, 0);
    check_row(&r, 2, (uint32_t[]){9, 3, 8}, 3);
    check_row(&r, 3, NULL, 0);
    check_row(&r, 4, (uint32_t[]){7}, 1);
    ck_assert_uint_eq(r.at[0], 0);
    ls_arena_free(a);
}
END_TEST

START_TEST(no_numbers_are_rows_without_any)
{
    LsArena *a = ls_arena_new();
    LsRows r = ls_rows(a, &(LsPairs){0}, 2), none = ls_rows_by(a, NULL, 0, 0);
    check_row(&r, 0, NULL, 0);
    check_row(&r, 1, NULL, 0);
    ck_assert_uint_eq(none.at[0], 0);
    ls_arena_free(a);
}
END_TEST

START_TEST(a_number_added_once_is_in_its_row_once)
{
    LsArena *a = ls_arena_new();
    LsPairs p = {0};
    const uint32_t row[] = {0, 0, 0, 1, 1, 1}, id[] = {5, 6, 5, 5, 5, 4};
    for (int k = 0; k < 6; k++)
        ls_pairs_add_once(a, &p, row[k], id[k]);
    LsRows r = ls_rows(a, &p, 2);
    check_row(&r, 0, (uint32_t[]){5, 6}, 2);
    check_row(&r, 1, (uint32_t[]){5, 4}, 2);
    ls_arena_free(a);
}
END_TEST

START_TEST(rows_by_place_hold_every_index_of_a_row)
{
    enum { MOST = 40, ROWS = 7 };
    for (uint32_t round = 0; round < 100; round++) {
        LsArena *a = ls_arena_new();
        uint32_t n = round % MOST, many = 1 + round % ROWS, row[MOST];
        for (uint32_t k = 0; k < n; k++)            /* `many` and UINT32_MAX: in no row */
            row[k] = (k + round) % 4 == 0 ? UINT32_MAX : (k * k + round * k) % (many + 1);
        LsRows r = ls_rows_by(a, row, n, many);
        for (uint32_t x = 0; x < many; x++) {
            uint32_t want[MOST], nwant = 0;
            for (uint32_t k = 0; k < n; k++)
                if (row[k] == x)
                    want[nwant++] = k;
            check_row(&r, x, want, nwant);
        }
        ls_arena_free(a);
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("csr");
    tcase_add_test(tc, a_row_keeps_the_order_of_its_numbers);
    tcase_add_test(tc, no_numbers_are_rows_without_any);
    tcase_add_test(tc, a_number_added_once_is_in_its_row_once);
    tcase_add_test(tc, rows_by_place_hold_every_index_of_a_row);
    return run_tests("csr", tc);
}
