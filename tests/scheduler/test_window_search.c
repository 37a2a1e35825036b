/* tests/scheduler/test_window_search.c -- windows of sequences: whole sequences against the
 * optimum, parts against the rules of memory. */
#include <check.h>
#include <math.h>

#include "scheduler/local_search/window_search.h"
#include "scheduler/state_search/best_first_search.h"
#include "tests/support/random_graph.h"
#include "tests/support/suite.h"

static LsSeq all_once(LsArena *a, const LsProb *p)
{
    LsSeq seq = {ls_arena_alloc(a, p->n + 1u, sizeof *seq.node), 0};
    for (uint32_t v = 0; v < p->n; v++)
        if (p->needed[v])
            seq.node[seq.n++] = v;
    return seq;
}

static uint32_t runs_of(const LsSeq *seq, uint32_t v)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < seq->n; k++)
        n += seq->node[k] == v;
    return n;
}

/* Every operand is made before its read; nodes that must run do run; nodes that may run once do not
 * run twice. */
static void check_order(LsArena *a, const LsProb *p, const LsSeq *seq)
{
    bool *made = ls_arena_alloc(a, p->nt + 1u, sizeof *made);
    for (uint32_t k = 0; k < seq->n; k++) {
        uint32_t v = seq->node[k];
        for (uint32_t j = p->in.at[v]; j < p->in.at[v + 1]; j++)
            ck_assert(made[p->in.id[j]]);
        for (uint32_t j = p->out.at[v]; j < p->out.at[v + 1]; j++)
            made[p->out.id[j]] = true;
    }
    for (uint32_t v = 0; v < p->n; v++) {
        const LsDagNode *n = &p->dag->node[v];
        ck_assert(n->alternative || !(n->required || n->nupd > 0) || runs_of(seq, v) > 0);
        ck_assert(!(n->once || n->nupd > 0) || runs_of(seq, v) <= 1);
    }
    for (uint32_t t = 0; t < p->nt; t++)
        ck_assert(!p->dag->tensor[t].output || p->dag->tensor[t].persistent || made[t]);
}

/* Windows leave out alternatives that make only some of a node's results. */
START_TEST(the_window_of_everything_is_the_optimum)
{
    int found = 0, best_ones = 0, missed = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        LsArena *a = ls_arena_new();
        LsProb *p = ls_prob_new(a, random_graph(a, 4 + seed % 4, 5 + seed % 5, seed), seed % 2);
        LsBoundGraph *b = ls_bound_graph_new(a, p);
        LsSeq seq = all_once(a, p), best, better;
        LsLive *live = ls_live_new(a, p);
        ls_live(p, &seq, live);
        for (int k = 5; k < 10; k++) {
            LsWindowSpent spent = {0};
            int64_t target = live->peak * k / 9;
            LsWindow w = {0, seq.n, target, 100000, live->peak > target};
            LsOptimum o = ls_optimum_plan(a, b, target, INFINITY, 100000, &best);
            ck_assert(o.exact);
            bool is = ls_window_improve(a, p, &seq, live, &w, &better, &spent);
            missed += !is && o.value < (w.fit ? INFINITY : live->cost * (1 - 1e-8));
            if (!is)
                continue;
            LsLive *then = ls_live_new(a, p);
            ls_live(p, &better, then);
            check_order(a, p, &better);
            ck_assert_int_le(then->peak, target);
            ck_assert(then->cost >= o.value * (1 - 1e-9));
            found++;
            best_ones += then->cost <= o.value * (1 + 1e-9);
        }
        ls_arena_free(a);
    }
    printf("%d found, %d of them optimal, %d missed\n", found, best_ones, missed);
    ck_assert_int_gt(found, 40);
    ck_assert_int_ge(10 * best_ones, 9 * found);
    ck_assert_int_le(10 * missed, found);
}
END_TEST

/* Each part of an optimum is optimal. A part of another sequence may improve, without harm to the
 * rest. */
START_TEST(parts_get_better_and_nothing_else_worse)
{
    int better_ones = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        LsArena *a = ls_arena_new();
        uint64_t rnd = seed;
        LsProb *p = ls_prob_new(a, random_graph(a, 6 + seed % 4, 8 + seed % 5, seed), seed % 2);
        LsBoundGraph *b = ls_bound_graph_new(a, p);
        LsSeq seq, better;
        LsOptimum o = ls_optimum_plan(a, b, 0, INFINITY, 20000, &seq);      /* of the least peak */
        if (!o.exact || o.value == INFINITY || seq.n < 4) {
            ls_arena_free(a);
            continue;
        }
        LsLive *live = ls_live_new(a, p), *then = ls_live_new(a, p);
        ls_live(p, &seq, live);
        for (int k = 0; k < 6; k++) {
            uint32_t from = dag_random(&rnd, seq.n - 2);
            uint32_t to = from + 2 + dag_random(&rnd, seq.n - from - 1);
            LsWindowSpent spent = {0};
            LsWindow w = {from, to, live->peak + live->peak * dag_random(&rnd, 4) / 4,
                          20000, false};
            if (!ls_window_improve(a, p, &seq, live, &w, &better, &spent))
                continue;
            ls_live(p, &better, then);
            check_order(a, p, &better);
            ck_assert_int_le(then->peak, w.target);
            ck_assert(then->cost < live->cost);
            better_ones++;
        }
        ls_arena_free(a);
    }
    ck_assert_int_gt(better_ones, 20);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("window");
    tcase_add_test(tc, the_window_of_everything_is_the_optimum);
    tcase_add_test(tc, parts_get_better_and_nothing_else_worse);
    return run_tests("window", tc);
}
