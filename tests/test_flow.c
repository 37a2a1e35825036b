/* tests/test_flow.c -- minimum cuts against all cuts of small random networks. */
#include <check.h>

#include "scheduler/flow.h"
#include "tests/dag_tools.h"
#include "tests/suite.h"

START_TEST(the_cut_is_as_small_as_any)
{
    enum { N = 9, E = 24 };
    uint64_t rnd = 3;
    for (int round = 0; round < 200; round++) {
        LsArena *a = ls_arena_new();
        LsFlow f = ls_flow_new(a, N);
        uint32_t from[E], to[E], capacity[E];
        for (int k = 0; k < E; k++) {
            from[k] = dag_random(&rnd, N);
            to[k] = dag_random(&rnd, N);
            capacity[k] = dag_random(&rnd, 20);
            ls_flow_edge(&f, from[k], to[k], capacity[k]);
        }
        bool side[N];
        ls_flow_cut(&f, side);
        ck_assert(side[LS_FLOW_SOURCE] && !side[LS_FLOW_SINK]);
        uint64_t best = UINT64_MAX, mine = 0;
        for (int k = 0; k < E; k++)
            mine += side[from[k]] && !side[to[k]] ? capacity[k] : 0;
        for (uint32_t set = 0; set < 1 << N; set++) {
            if (!(set >> LS_FLOW_SOURCE & 1) || set >> LS_FLOW_SINK & 1)
                continue;
            uint64_t sum = 0;
            for (int k = 0; k < E; k++)
                sum += set >> from[k] & 1 && !(set >> to[k] & 1) ? capacity[k] : 0;
            best = sum < best ? sum : best;
        }
        ck_assert_uint_eq(mine, best);
        ls_arena_free(a);
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("flow");
    tcase_add_test(tc, the_cut_is_as_small_as_any);
    return run_tests("flow", tc);
}
