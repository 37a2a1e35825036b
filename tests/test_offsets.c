/* tests/test_offsets.c -- places in the arena never overlap in time, and are near the bound. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scheduler/offsets.h"
#include "tests/dag_tools.h"
#include "tests/suite.h"

static int64_t check(const LsBlock *b, uint32_t n, int64_t alignment, const int64_t *offset)
{
    int64_t end = 0;
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_int_ge(offset[i], 0);
        ck_assert_int_eq(offset[i] % alignment, 0);
        end = offset[i] + b[i].size > end ? offset[i] + b[i].size : end;
        for (uint32_t j = 0; j < i; j++)
            ck_assert(b[i].to < b[j].from || b[j].to < b[i].from || b[i].size == 0 || b[j].size == 0
                      || offset[i] + b[i].size <= offset[j] || offset[j] + b[j].size <= offset[i]);
    }
    return end;
}

START_TEST(random_blocks_never_overlap_and_the_end_is_the_one_returned)
{
    uint64_t rnd = 1;
    for (int round = 0; round < 60; round++) {
        uint32_t n = 1 + dag_random(&rnd, 60);
        int64_t alignment = round % 2 ? 64 : 1, offset[60];
        LsBlock b[60];
        for (uint32_t i = 0; i < n; i++) {
            b[i].size = (int64_t)dag_random(&rnd, 40) * 64;
            b[i].from = dag_random(&rnd, 50);
            b[i].to = b[i].from + dag_random(&rnd, 20);
        }
        int64_t bound = ls_offsets_bound(b, n), end = ls_offsets(b, n, alignment, bound, offset);
        ck_assert_int_eq(check(b, n, alignment, offset), end);
        ck_assert_int_ge(end, bound);
        ck_assert_int_le(end, bound + bound / 4 + 64);
    }
}
END_TEST

START_TEST(nested_lifetimes_are_packed_without_a_gap)
{
    enum { N = 40 };
    LsBlock b[N];
    int64_t offset[N];
    for (uint32_t i = 0; i < N; i++)                /* forward values: made in
                                                     * order, freed in reverse */
        b[i] = (LsBlock){64 * (1 + i % 7), i, 2 * N - i};
    int64_t bound = ls_offsets_bound(b, N);
    ck_assert_int_eq(ls_offsets(b, N, 64, bound, offset), bound);
    ck_assert_int_eq(check(b, N, 64, offset), bound);
}
END_TEST

START_TEST(no_blocks_need_no_arena)
{
    int64_t offset[1];
    ck_assert_int_eq(ls_offsets(NULL, 0, 1, 0, offset), 0);
}
END_TEST

START_TEST(the_hard_instances_of_minimalloc_are_packed_not_far_above_the_bound)
{
    for (char name = 'A'; name <= 'K'; name++) {
        char path[4096], line[256];
        snprintf(path, sizeof path, "%s/judge/minimalloc/%c.1048576.csv", LS_SHARED, name);
        FILE *f = fopen(path, "r");
        if (f == NULL) {
            printf("skipped: no %s\n", path);
            return;
        }
        enum { MOST = 4000 };
        static LsBlock b[MOST];
        static int64_t offset[MOST];
        uint32_t n = 0, id, from, to;
        long long size;
        while (fgets(line, sizeof line, f) != NULL && n < MOST)
            if (sscanf(line, "%*[^,],%u,%u,%lld", &from, &to, &size) == 3
                || sscanf(line, "%u,%u,%u,%lld", &id, &from, &to, &size) == 4)
                b[n++] = (LsBlock){size, from, to - 1};
        fclose(f);
        ck_assert_uint_gt(n, 50);
        int64_t bound = ls_offsets_bound(b, n), end = ls_offsets(b, n, 1, bound, offset);
        printf("minimalloc %c: %u blocks, %.3f of the bound, %.3f of the capacity\n", name, n,
               (double)end / (double)bound, (double)end / 1048576);
        ck_assert_int_eq(check(b, n, 1, offset), end);
        ck_assert_int_le(end, bound + bound / 2);
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("offsets");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, random_blocks_never_overlap_and_the_end_is_the_one_returned);
    tcase_add_test(tc, nested_lifetimes_are_packed_without_a_gap);
    tcase_add_test(tc, no_blocks_need_no_arena);
    tcase_add_test(tc, the_hard_instances_of_minimalloc_are_packed_not_far_above_the_bound);
    return run_tests("offsets", tc);
}
