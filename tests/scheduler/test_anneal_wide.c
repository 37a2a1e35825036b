/* tests/scheduler/test_anneal_wide.c -- unrestricted moves keep a tape valid, and annealing with
 * them finds the optima of small graphs without a backward part. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "scheduler/order/moves.h"
#include "scheduler/order/run_order.h"
#include "scheduler/state_search/best_first_search.h"
#include "scheduler/strategies/published_strategies.h"
#include "tests/support/dag_tools.h"
#include "tests/support/suite.h"
#include "tests/support/tape_tools.h"

static LsArena *a;
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

/* The tape is a valid and complete sequence, with the figures that liveness.h finds. */
static void check_tape(const LsTape *t, uint64_t seed)
{
    const LsProb *p = t->p;
    ck_assert_uint_eq(t->bad, 0);
    tape_is_as_live(a, t, "changed", seed);
    for (uint32_t v = 0; v < p->n; v++) {
        ck_assert_msg(!p->needed[v] || t->count[v] > 0, "seed %d: node %u is gone", (int)seed, v);
        ck_assert(!p->stuck[v] || t->count[v] <= 1);
    }
}

enum { KINDS = 6 };

static bool change(LsMoves *m, uint32_t kind)
{
    switch (kind) {
    case 0: return ls_move_again_for_any(m, INFINITY);
    case 1: return ls_move_again_for_peak(m, INFINITY);
    case 2: return ls_move_all_again_for_peak(m, INFINITY);
    case 3: return ls_move_jump(m);
    case 4: return ls_move_together(m, 16);
    default: return ls_move_trade(m, 4);
    }
}

START_TEST(moves_that_leave_no_bad_read_leave_a_valid_sequence)
{
    uint32_t made[KINDS] = {0};
    for (uint64_t seed = 0; seed < 20; seed++) {
        LsProb *p = ls_prob_new(a, dag_make(a, 6 + seed, seed), seed % 3 != 0);
        LsSeq plain = ls_seq_plain(a, p);
        LsMoves *m = ls_moves_new(a, ls_tape_new(p));
        ls_tape_load(m->t, &plain);
        m->target = ls_tape_peak(m->t) / 10 * 8;
        for (uint32_t k = 0; k < 300; k++) {
            if (!change(m, k % KINDS) || m->t->bad > 0 || m->t->n > 4 * p->n) {
                ls_tape_undo(m->t, 0);
                continue;
            }
            m->t->nchange = 0;
            made[k % KINDS]++;
            if (made[k % KINDS] % 8 == 0)
                check_tape(m->t, seed);
        }
        check_tape(m->t, seed);
        ls_tape_free(m->t);
    }
    for (int k = 0; k < KINDS; k++)
        ck_assert_msg(made[k] > 40, "kind %d was made %d times", k, (int)made[k]);
}
END_TEST

START_TEST(nothing_dearer_than_allowed_is_made_again)
{
    LsProb *p = ls_prob_new(a, dag_make(a, 12, 1), true);
    LsSeq plain = ls_seq_plain(a, p);
    LsMoves *m = ls_moves_new(a, ls_tape_new(p));
    ls_tape_load(m->t, &plain);
    m->target = ls_tape_peak(m->t) / 2;
    double cost = m->t->cost;
    for (int k = 0; k < 200; k++) {
        double most = 1 + k % 5;
        if (k % 2 ? ls_move_again_for_any(m, most) : ls_move_again_for_peak(m, most))
            ck_assert_double_le(m->t->cost, cost + most);
        ls_tape_undo(m->t, 0);
        ck_assert_double_eq_tol(m->t->cost, cost, 1e-9);
    }
    ls_tape_free(m->t);
}
END_TEST

static LsDag *forward_only(uint32_t n, uint64_t seed)
{
    LsDag *g = dag_make_forward(a, n, seed);
    g->alignment = 1;
    return g;
}

static LsCandidates *roam(const LsDag *g, bool is_patient)
{
    LsProb *p = ls_prob_new(a, g, true);
    LsCandidates *pool = ls_candidates_new(a, p);
    ls_strategy_none(pool);
    LsLimit limit = ls_limit_start(100, 1000);
    ls_strategy_roam(pool, &limit, is_patient);
    return pool;
}

START_TEST(small_graphs_without_a_backward_part_get_their_optima)
{
    enum { STATES = 100000 };
    uint32_t tried = 0, again = 0;
    for (uint64_t seed = 0; seed < 80; seed++) {
        LsDag *g = forward_only(8 + seed / 2 % 7, seed / 2);
        LsCandidates *pool = roam(g, seed % 2);
        LsBoundGraph *b = ls_bound_graph_new(a, pool->prob);
        for (uint32_t k = 0; k < pool->n; k++) {
            const LsCand *c = ls_candidates_within(pool, pool->cand[k].peak);
            LsOptimum best = ls_optimum_cost(b, c->peak, INFINITY, STATES);
            if (!best.exact)
                continue;
            ck_assert_msg(c->cost <= best.value * (1 + 1e-9), "seed %d: %g at %ld bytes, not %g",
                          (int)seed, c->cost, (long)c->peak, best.value);
            tried++;
            again += c->cost > pool->cand[0].cost;
        }
        ls_candidates_free(pool);
    }
    ck_assert_uint_gt(tried, 120);
    ck_assert_uint_gt(again, 30);
}
END_TEST

START_TEST(what_costs_nothing_does_not_run_without_end)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        LsDag *g = forward_only(60, seed);
        for (uint32_t v = 0; v < g->nnode; v++)
            g->node[v].cost = 0;
        LsCandidates *pool = roam(g, seed % 2);
        for (uint32_t k = 0; k < pool->n; k++) {
            ck_assert_uint_le(pool->cand[k].seq.n, 4 * g->nnode + 64);
            ck_assert_double_eq(pool->cand[k].cost, 0);
        }
        ls_candidates_free(pool);
    }
}
END_TEST

START_TEST(training_graphs_are_left_to_others)
{
    LsCandidates *pool = roam(dag_make(a, 12, 3), false);
    ck_assert_uint_eq(pool->n, 1);
    ls_candidates_free(pool);
}
END_TEST

int main(void)
{
    const TTest *const test[] = {
        moves_that_leave_no_bad_read_leave_a_valid_sequence,
        nothing_dearer_than_allowed_is_made_again,
        small_graphs_without_a_backward_part_get_their_optima,
        what_costs_nothing_does_not_run_without_end,
        training_graphs_are_left_to_others,
    };
    TCase *tc = tcase_create("roam");
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    add_tests(tc, sizeof test / sizeof test[0], test);
    return run_tests("roam", tc);
}
