/* tests/scheduler/test_anneal_least_peak.c -- the search for the least memory: its candidates are
 * valid, and reach the least memory of tiny graphs. */
#include <check.h>

#include "scheduler/plan/plan_audit.h"
#include "scheduler/strategies/published_strategies.h"
#include "tests/support/dag_tools.h"
#include "tests/support/less.h"
#include "tests/support/suite.h"

static LsArena *a;
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

/* Returns the least peak that the search finds from the plain sequence; audits all its
 * candidates. */
static int64_t search(const LsDag *g, uint64_t seed, int64_t *before)
{
    LsProb *p = ls_prob_new(a, g, seed % 3 != 0);
    LsCandidates *pool = ls_candidates_new(a, p);
    LsLimit limit = ls_limit_start(10, 1);
    ls_strategy_none(pool);
    *before = ls_candidates_least(pool)->peak;
    ls_strategy_least(pool, &limit, 0);
    for (uint32_t k = 0; k < pool->n; k++) {
        LsPlan plan;
        char why[200];
        ls_plan_build(a, p, &pool->cand[k].seq, "auto", LS_PACK_QUICK, 0, &plan);
        ck_assert_msg(ls_audit(g, &plan, why, sizeof why), "seed %d: %s", (int)seed, why);
        ck_assert_int_ge(pool->cand[k].peak, plan.live_peak);     /* aligned sizes */
    }
    int64_t least = ls_candidates_least(pool)->peak;
    ls_candidates_free(pool);
    return least;
}

static int64_t optimum(const LsDag *g, uint64_t seed)
{
    LsCandidates *pool = ls_candidates_new(a, ls_prob_new(a, g, seed % 3 != 0));
    ls_strategy_none(pool);
    ls_strategy_optima(pool, 100);
    int64_t least = ls_candidates_least(pool)->peak;
    ls_candidates_free(pool);
    return least;
}

START_TEST(a_slow_machine_ends_no_short_search)
{
    const double usual = ls_limit_start(100, 0).stop - ls_cpu_seconds();
    const struct { uint32_t effort; double seconds; } shorter[] = {{2, 0}, {100, 0.1}, {1, 0.1}};
    for (size_t k = 0; k < sizeof shorter / sizeof *shorter; k++) {
        LsLimit l = ls_limit_start(shorter[k].effort, shorter[k].seconds);
        ck_assert_uint_lt(l.most, ls_limit_start(100, 0).most);
        ck_assert_double_ge(l.stop - ls_cpu_seconds(), usual - 1);
    }
    ck_assert_double_gt(ls_limit_start(100, 10).stop - ls_cpu_seconds(), 4 * usual);
}
END_TEST

START_TEST(the_least_of_tiny_graphs_is_found)
{
    const int graphs = tests_part(60, 24);
    int lower = 0, found = 0;
    for (uint64_t seed = 0; seed < (uint64_t)graphs; seed++) {
        const LsDag *g = dag_make(a, 3 + seed % 4, seed);
        int64_t before, least = search(g, seed, &before), best = optimum(g, seed);
        ck_assert_int_le(least, before);
        ck_assert_msg(least >= best, "seed %d: %d, the optimum is %d", (int)seed, (int)least,
                      (int)best);
        lower += best < before;
        found += best < before && least == best;
    }
    ck_assert_int_gt(6 * lower, 5 * graphs);
    /* with a tenth of the usual moves */
    ck_assert_int_ge(3 * found, 2 * graphs);
}
END_TEST

/* Every pool on a thread starts from all candidates, and its results join the main pool. */
START_TEST(turns_go_ways_of_their_own)
{
    enum { TURNS = 4 };
    int differ = 0;
    for (uint64_t seed = 0; seed < (uint64_t)tests_part(6, 2); seed++) {
        LsCandidates *pool = ls_candidates_new(a, ls_prob_new(a, dag_make(a, 40, seed), true));
        LsLimit limit = ls_limit_start(10, 1);
        ls_strategy_none(pool);
        ls_strategy_least(pool, &limit, 0);
        int64_t least = ls_candidates_least(pool)->peak, found[TURNS];
        LsCandidates *beside[TURNS];
        for (uint32_t turn = 0; turn < TURNS; turn++) {
            beside[turn] = ls_candidates_beside(pool, UINT32_MAX);
            ck_assert_uint_eq(beside[turn]->n, pool->n);
            ls_strategy_least(beside[turn], &limit, turn + 1);
            found[turn] = ls_candidates_least(beside[turn])->peak;
            ck_assert_int_le(found[turn], least);
            differ += turn > 0 && found[turn] != found[turn - 1];
        }
        for (uint32_t turn = 0; turn < TURNS; turn++) {
            ls_candidates_join(pool, beside[turn]);
            least = found[turn] < least ? found[turn] : least;
            ck_assert_int_eq(ls_candidates_least(pool)->peak, least);
        }
        ls_candidates_free(pool);
    }
    ck_assert_int_gt(differ, 0);
}
END_TEST

START_TEST(the_same_search_finds_the_same)
{
    const LsDag *g = dag_make(a, 20, 5);
    int64_t before, first = search(g, 1, &before);
    ck_assert_int_lt(first, before);
    ck_assert_int_eq(search(g, 1, &before), first);
}
END_TEST

int main(void)
{
    const TTest *const test[] = {
        a_slow_machine_ends_no_short_search,
        the_least_of_tiny_graphs_is_found,
        turns_go_ways_of_their_own,
        the_same_search_finds_the_same,
    };
    TCase *tc = tcase_create("least");
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("least", tc);
}
