/* tests/scheduler/test_max_flow.c -- minimum cuts against all cuts of small random networks. */
#include <check.h>

#include "scheduler/algorithms/max_flow.h"
#include "tests/support/dag_tools.h"
#include "tests/support/suite.h"

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

static int64_t value_of(const LsFlow *f, const bool *side)
{
    int64_t sum = 0;
    for (uint32_t k = 0; k < f->nedge; k++)
        sum += side[f->end[2 * k]] && !side[f->end[2 * k + 1]] ? f->capacity[k] : 0;
    for (uint32_t v = 2; v < f->n; v++)
        sum += side[v] ? f->demand[v] : f->supply[v];
    return sum;
}

START_TEST(a_cut_after_changes_is_that_of_a_new_network)
{
    enum { N = 60, E = 220 };
    uint64_t rnd = 5;
    for (int round = 0; round < 30; round++) {
        LsArena *a = ls_arena_new();
        LsFlow f = ls_flow_new(a, N);
        for (int k = 0; k < E; k++)
            ls_flow_edge(&f, dag_random(&rnd, N), dag_random(&rnd, N), dag_random(&rnd, 50));
        for (int change = 0; change < 20; change++) {
            LsFlow fresh = ls_flow_new(a, N);
            bool side[N], other[N];
            for (uint32_t k = 0; k < f.nedge; k++) {
                if (dag_random(&rnd, 3) == 0)
                    ls_flow_set(&f, k, dag_random(&rnd, 50));
                ls_flow_edge(&fresh, f.end[2 * k], f.end[2 * k + 1], f.capacity[k]);
            }
            for (uint32_t v = 2; v < N; v++) {
                if (dag_random(&rnd, 5) == 0)
                    ls_flow_set_ends(&f, v, dag_random(&rnd, 40), dag_random(&rnd, 40));
                ls_flow_edge(&fresh, LS_FLOW_SOURCE, v, f.supply[v]);
                ls_flow_edge(&fresh, v, LS_FLOW_SINK, f.demand[v]);
            }
            ls_flow_cut(&f, side);
            ls_flow_cut(&fresh, other);
            ck_assert_int_eq(value_of(&f, side), value_of(&fresh, other));
            ck_assert_mem_eq(side, other, sizeof side);
        }
        ls_arena_free(a);
    }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("flow");
    tcase_add_test(tc, a_cut_after_changes_is_that_of_a_new_network);
    tcase_add_test(tc, the_cut_is_as_small_as_any);
    return run_tests("flow", tc);
}
