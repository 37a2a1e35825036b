/* tests/test_joint.c -- joint relief keeps a tape valid and never raises its energy. */
#include <check.h>
#include <string.h>

#include "scheduler/joint.h"
#include "scheduler/sequence.h"
#include "tests/dag_tools.h"
#include "tests/suite.h"

static LsArena *a;
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

/* The tape is a valid sequence, which does all that must be done. */
static void check_tape(const LsTape *t, uint64_t seed)
{
    LsProb *p = t->p;
    LsSeq seq = {ls_arena_alloc(a, t->n + 1u, sizeof *seq.node), 0};
    ls_tape_store(t, &seq);
    ck_assert_uint_eq(t->bad, 0);
    LsLive *live = ls_live_new(p);
    ls_live(p, &seq, live);
    ck_assert_msg(live->peak == ls_tape_peak(t), "seed %d: peak %ld, live.h has %ld", (int)seed,
                  (long)ls_tape_peak(t), (long)live->peak);
    ck_assert_double_eq_tol(live->cost, t->cost, 1e-9 * (1 + live->cost));
    for (uint32_t v = 0; v < p->n; v++) {
        ck_assert_msg(!p->needed[v] || t->count[v] > 0, "seed %d: node %u is gone", (int)seed, v);
        ck_assert(!p->stuck[v] || t->count[v] <= 1);
    }
}

/* A random graph on a tape, with a target of so many percent of its peak. */
static LsMoves *start(uint32_t n, uint64_t seed, int percent)
{
    LsProb *p = ls_prob_new(a, dag_make(a, n, seed), seed % 3 != 0);
    LsSeq plain = ls_seq_plain(p);
    LsMoves *m = ls_moves_new(a, ls_tape_new(p));
    ls_tape_load(m->t, &plain);
    m->target = ls_tape_peak(m->t) / 100 * percent;
    return m;
}

START_TEST(a_joint_relief_lowers_the_energy_or_changes_nothing)
{
    uint32_t made = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        LsMoves *m = start(5 + seed % 20, seed, 70);
        double weight = 3 * m->p->base_cost / (double)ls_tape_peak(m->t);
        for (int k = 0; k < 6 && ls_tape_peak(m->t) > m->target; k++) {
            double before = ls_moves_energy(m, weight);
            uint32_t n = m->t->n;
            bool lower = ls_move_relieve_jointly(m, ls_tape_peak_run(m->t), weight);
            double after = ls_moves_energy(m, weight);
            ck_assert_msg(lower ? after < before : n == m->t->n && after <= before * (1 + 1e-9),
                          "seed %d: from %g to %g", (int)seed, before, after);
            check_tape(m->t, seed);
            made += lower;
        }
        ls_tape_free(m->t);
    }
    ck_assert_uint_gt(made, 10);
}
END_TEST

START_TEST(a_peak_at_the_target_is_left_alone)
{
    LsMoves *m = start(12, 1, 100);
    m->target = ls_tape_peak(m->t);
    uint32_t n = m->t->n;
    ck_assert(!ls_move_relieve_jointly(m, ls_tape_peak_run(m->t), 1));
    LsLimit limit = ls_limit_start(100, 1000);
    ck_assert(ls_moves_make_room(m, 1, 1, &limit));
    ck_assert_uint_eq(m->t->n, n);
    ck_assert_double_eq(ls_moves_energy(m, 1), m->t->cost);
    ls_tape_free(m->t);
}
END_TEST

START_TEST(room_is_made_by_valid_sequences)
{
    uint32_t reached = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        LsMoves *m = start(8 + seed, seed, 85);
        LsLimit limit = ls_limit_start(100, 1000);
        ck_assert(ls_moves_make_room(m, 10 * m->p->base_cost / (double)m->target,
                                     m->p->base_cost / 1000, &limit));
        check_tape(m->t, seed);
        reached += ls_tape_peak(m->t) <= m->target;
        ls_tape_free(m->t);
    }
    ck_assert_uint_gt(reached, 5);
}
END_TEST

START_TEST(the_limit_ends_it_where_it_was_counted_to)
{
    double cost[2];
    for (int k = 0; k < 2; k++) {
        LsMoves *m = start(30, 3, 60);
        LsLimit limit = ls_limit_start(100, 1e-4);
        limit.stop = 1e300;             /* no clock */
        ck_assert(!ls_moves_make_room(m, 10 * m->p->base_cost / (double)m->target, 1, &limit));
        ck_assert_uint_ge(limit.work, limit.most);
        cost[k] = ls_moves_energy(m, 1);
        check_tape(m->t, 3);
        ls_tape_free(m->t);
    }
    ck_assert_double_eq(cost[0], cost[1]);
}
END_TEST

int main(void)
{
    const TTest *const test[] = {
        a_joint_relief_lowers_the_energy_or_changes_nothing,
        a_peak_at_the_target_is_left_alone,
        the_limit_ends_it_where_it_was_counted_to,
        room_is_made_by_valid_sequences,
    };
    TCase *tc = tcase_create("joint");
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    add_tests(tc, sizeof test / sizeof test[0], test);
    return run_tests("joint", tc);
}
