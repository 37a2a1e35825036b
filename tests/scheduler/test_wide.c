/* tests/scheduler/test_wide.c -- graphs with very wide kernels: every search ends within its limit
 * of work. */
#include <check.h>
#include <math.h>
#include <stdio.h>

#include "scheduler/local_search/window_search.h"
#include "scheduler/plan/plan_audit.h"
#include "scheduler/plan/planner.h"
#include "scheduler/state_search/beam_search.h"
#include "scheduler/state_search/best_first_search.h"
#include "scheduler/state_search/inplace_matching.h"
#include "scheduler/state_search/state_table.h"
#include "scheduler/strategies/published_strategies.h"
#include "tests/support/suite.h"
#include "tests/support/wide_graph.h"

static const WideShape shapes[] = {
    {40, 40, 0}, {60, 200, 0}, {200, 200, 0}, {200, 0, 200}, {12, 100, 100}, {200, 200, 200},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* The work of one more step when the limit is reached: a state with many kernels to try. */
static const uint64_t SLACK = 40000000;

/* ---- the best matching ---- */

static bool any_pair(const void *of, LsDagPair pair)
{
    (void)of;
    (void)pair;
    return true;
}

/* Tries all subsets of the pairs from k on. */
static int64_t best_of(const LsDagNode *n, const int64_t *size, uint64_t stays, uint32_t k,
                       uint64_t taken)
{
    if (k == n->ninplace)
        return 0;
    LsDagPair x = n->inplace[k];
    uint64_t both = UINT64_C(1) << x.in | UINT64_C(1) << x.out;
    int64_t best = best_of(n, size, stays, k + 1, taken);
    if (!(stays >> x.in & 1) && !(taken & both)) {
        int64_t with = size[x.out] + best_of(n, size, stays, k + 1, taken | both);
        best = with > best ? with : best;
    }
    return best;
}

START_TEST(pairs_spare_what_the_best_of_all_subsets_does)
{
    int some = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        LsArena *a = ls_arena_new();
        uint64_t rnd = seed;
        WideShape shape = {2 + dag_random(&rnd, 5), 1 + dag_random(&rnd, 12), 0};
        LsDag *g = wide_graph(a, shape, seed);
        LsProb *p = ls_prob_new(a, g, true);
        LsInplace *x = ls_inplace_new(a, g, p->size, any_pair, NULL);
        for (int k = 0; k < 4; k++) {
            uint64_t stays = k == 0 ? 0 : dag_random(&rnd, 1u << (shape.width + 1));
            int64_t want = best_of(&g->node[shape.width], p->size, stays, 0, 0);
            ck_assert_int_eq(ls_inplace_spared(x, shape.width, &stays), want);
            some += want > 0;
        }
        ck_assert_int_eq(ls_inplace_spared(x, 0, &(uint64_t){0}), 0);
        ls_arena_free(a);
    }
    ck_assert_int_gt(some, 600);
}
END_TEST

/* Every result with every operand: too many pairs, so the matching gives up. */
START_TEST(no_number_of_pairs_takes_long_and_none_spares_less_than_the_best)
{
    enum { N = 2000 };
    LsArena *a = ls_arena_new();
    uint64_t *stays = ls_arena_alloc(a, 1 + 2 * N / 64, sizeof *stays);
    LsDag *g = wide_graph(a, (WideShape){N, 0, 0}, 1);
    LsDagNode *n = &g->node[N];
    LsDagPair *pair = ls_arena_alloc(a, (size_t)N * N, sizeof *pair);
    int64_t all = 0;
    LsProb *p = ls_prob_new(a, g, true);
    for (uint32_t o = 0; o < N; o++) {
        all += p->size[n->out[o]];
        for (uint32_t i = 0; i < N; i++)
            pair[n->ninplace++] = (LsDagPair){n->out[o], n->in[i]};
    }
    n->inplace = pair;
    LsInplace *x = ls_inplace_new(a, g, p->size, any_pair, NULL);
    ck_assert_int_eq(ls_inplace_spared(x, N, stays), all);
    ck_assert_int_le((int64_t)x->looks, 10000000);
    ls_arena_free(a);
}
END_TEST

/* ---- searches ---- */

static LsSeq all_once(LsArena *a, const LsProb *p)
{
    LsSeq seq = {ls_arena_alloc(a, p->n + 1u, sizeof *seq.node), 0};
    for (uint32_t v = 0; v < p->n; v++)
        if (p->needed[v])
            seq.node[seq.n++] = v;
    return seq;
}

START_TEST(windows_of_wide_kernels_end_within_the_work_of_their_states)
{
    LsArena *a = ls_arena_new();
    LsProb *p = ls_prob_new(a, wide_graph(a, shapes[_i], 3), true);
    LsSeq seq = all_once(a, p), better;
    LsLive *live = ls_live_new(a, p);
    ls_live(p, &seq, live);
    enum { MOST = 500 };
    for (uint32_t from = 0; from < seq.n && from < 300; from += 48) {
        LsWindowSpent spent = {0};
        LsWindow w = {from, from + 60 < seq.n ? from + 60 : seq.n, live->peak * 9 / 10, MOST, true};
        ls_window_improve(a, p, &seq, live, &w, &better, &spent);
        ck_assert_int_le((int64_t)spent.states, MOST);
        ck_assert_int_le((int64_t)spent.work, (int64_t)(MOST * 10000 + SLACK));
    }
    ls_arena_free(a);
}
END_TEST

START_TEST(exact_searches_of_wide_kernels_end_within_the_work_of_their_states)
{
    enum { MOST = 500, WIDTH = 2 };
    LsArena *a = ls_arena_new();
    LsProb *p = ls_prob_new(a, wide_graph(a, shapes[_i], 4), true);
    LsBoundGraph *b = ls_bound_graph_new(a, p);
    LsSeq seq = all_once(a, p);
    LsLive *live = ls_live_new(a, p);
    ls_live(p, &seq, live);
    const int64_t budget = live->peak * 9 / 10, most = (int64_t)(MOST * 10000 + SLACK);
    ck_assert_int_le((int64_t)ls_optimum_cost(b, budget, INFINITY, MOST).work, most);
    ck_assert_int_le((int64_t)ls_optimum_peak(b, 1, MOST).work, most);
    ck_assert_int_le((int64_t)ls_optimum_peak_of(b, p->n - 1, 1, MOST).work, most);
    ck_assert_int_le((int64_t)ls_optimum_plan(a, b, budget, INFINITY, MOST, &seq).work, most);
    LsBeamResult r =
        ls_beam(a, b, &(LsBeamOptions){budget, WIDTH, 0.15, INFINITY}, &seq);
    ck_assert_int_le((int64_t)r.states, WIDTH * (p->n + 1) + (int64_t)SLACK / 10000);
    ls_arena_free(a);
}
END_TEST

static LsDag *chain_of(LsArena *a, uint32_t n)
{
    LsDag *g = ls_arena_alloc(a, 1, sizeof *g);
    LsDagTensor *tensor = ls_arena_alloc(a, n + 1u, sizeof *tensor);
    LsDagNode *node = ls_arena_alloc(a, n, sizeof *node);
    uint32_t *id = ls_arena_alloc(a, n + 1u, sizeof *id);
    for (uint32_t v = 0; v <= n; v++) {
        tensor[v] = (LsDagTensor){"t", 64, v == 0, v == n};
        id[v] = v;
        if (v < n)
            node[v] = (LsDagNode){.name = "n", .op = "N", .cost = 1, .of = -1, .in = id + v,
                                  .nin = 1, .out = id + v + 1, .nout = 1};
    }
    *g = (LsDag){.name = "chain", .alignment = 1, .tensor = tensor, .ntensor = n + 1, .node = node,
                 .nnode = n};
    return g;
}

/* Of very many nodes a search for the least peak keeps no groups: nothing is written where they
 * would be, before the arrays of nodes. */
START_TEST(a_search_without_groups_writes_none)
{
    enum { N = 3100, LEAST = 2 * 64 };
    LsArena *a = ls_arena_new();
    LsProb *p = ls_prob_new(a, chain_of(a, N), true);
    LsBoundGraph *b = ls_bound_graph_new(a, p);
    LsTails *t = ls_tails_new(b, (LsTailOptions){.peak = true});
    ck_assert_uint_eq(t->group_words, 0);
    for (uint32_t k = 0; k < t->row; k++)
        ck_assert(t->next[k] == 0);
    for (uint32_t v = 0; v < N; v++)
        ck_assert(t->pick[v] == 0 && t->first[v] == 0 && t->met[v] == 0);
    ls_tails_free(t);
    ck_assert(ls_optimum_peak_of(b, N - 1, 1, 2 * N).value == LEAST);
    ls_arena_free(a);
}
END_TEST

/* Annealing checks its limit within every step. Its starts run in up to four parallel lanes, each
 * with the whole limit. */
START_TEST(annealing_of_wide_kernels_ends_within_its_limit)
{
    const double seconds = 0.02;
    LsArena *a = ls_arena_new();
    LsProb *p = ls_prob_new(a, wide_graph(a, shapes[_i], 5), true);
    LsCandidates *pool = ls_candidates_new(a, p);
    ls_strategy_none(pool);
    LsLimit limit = ls_limit_start(0, seconds);
    ls_strategy_auto(pool, pool->cand[0].peak, &limit);
    ck_assert_int_le((int64_t)limit.work, (int64_t)(5 * limit.most + 4 * 60000000));
    LsLimit more = ls_limit_start(0, seconds);
    ls_strategy_polish(pool, pool->cand[0].peak, &more);
    ck_assert_int_le((int64_t)more.work, (int64_t)(more.most + 4000 * 10000 + SLACK));
    ls_candidates_free(pool);
    ls_arena_free(a);
}
END_TEST

START_TEST(plans_of_wide_kernels_are_made_and_sound)
{
    LsArena *a = ls_arena_new();
    LsDag *g = wide_graph(a, shapes[_i], 6);
    char why[256];
    LsPlan plan;
    LsPlanReport r;
    ck_assert_msg(ls_dag_check(g, why, sizeof why), "%s", why);
    LsPlanOptions o = {.budget.least = true, .seconds = 0.02, .effort = 3};
    ck_assert(ls_plan(a, g, &o, &plan, &r));
    ck_assert_msg(ls_audit(g, &plan, why, sizeof why), "%s", why);
    ck_assert_int_le(r.least_bound, plan.live_peak);
    ls_arena_free(a);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("wide");
    tcase_add_test(tc, pairs_spare_what_the_best_of_all_subsets_does);
    tcase_add_test(tc, no_number_of_pairs_takes_long_and_none_spares_less_than_the_best);
    tcase_add_loop_test(tc, windows_of_wide_kernels_end_within_the_work_of_their_states, 0, SHAPES);
    tcase_add_loop_test(tc, exact_searches_of_wide_kernels_end_within_the_work_of_their_states, 0,
                        SHAPES);
    tcase_add_test(tc, a_search_without_groups_writes_none);
    tcase_add_loop_test(tc, annealing_of_wide_kernels_ends_within_its_limit, 0, SHAPES);
    tcase_add_loop_test(tc, plans_of_wide_kernels_are_made_and_sound, 0, SHAPES);
    return run_tests("wide", tc);
}
