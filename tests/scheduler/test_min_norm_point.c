/* tests/scheduler/test_min_norm_point.c -- nearest points of random polyhedra, checked by the
 * optimality condition. */
#include <check.h>
#include <math.h>

#include "scheduler/algorithms/min_norm_point.h"
#include "tests/support/dag_tools.h"
#include "tests/support/suite.h"

enum { N = 5, M = 14 };

static double some(uint64_t *rnd) { return (dag_random(rnd, 2001) - 1000.0) / 500; }

START_TEST(a_point_is_allowed_and_what_holds_it_there_adds_up_to_it)
{
    uint64_t rnd = 7;
    int found = 0, none = 0;
    for (int round = 0; round < 2000; round++) {
        double row[M * N], level[M], x[N], weight[M], sum[N + 1] = {0};
        for (int k = 0; k < M * N; k++)
            row[k] = some(&rnd);
        for (int i = 0; i < M; i++)
            level[i] = some(&rnd) - round % 3;
        LsArena *a = ls_arena_new();
        bool is = ls_nearest_point(a, N, M, row, level, x, weight);
        for (int i = 0; i < M; i++) {
            double at = 0;
            ck_assert(weight[i] >= 0);
            for (int k = 0; k < N; k++) {
                at += is ? row[i * N + k] * x[k] : 0;
                sum[k] += weight[i] * row[i * N + k];
            }
            sum[N] += weight[i] * level[i];
            ck_assert(!is || at >= level[i] - 1e-6);
            ck_assert(!is || weight[i] * (at - level[i]) < 1e-5);
        }
        for (int k = 0; k < N; k++)
            ck_assert(fabs(sum[k] - (is ? x[k] : 0)) < 1e-3);
        ck_assert(is || fabs(sum[N] - 1) < 1e-3);
        found += is;
        none += !is;
        ls_arena_free(a);
    }
    ck_assert_int_gt(found, 100);
    ck_assert_int_gt(none, 100);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("nearest");
    tcase_add_test(tc, a_point_is_allowed_and_what_holds_it_there_adds_up_to_it);
    return run_tests("nearest", tc);
}
