/* tests/scheduler/test_edited_order.c -- an edited tape has the figures of a fresh evaluation of
 * its sequence. */
#include <check.h>
#include <string.h>

#include "scheduler/order/edited_order.h"
#include "scheduler/order/run_order.h"
#include "tests/support/dag_tools.h"
#include "tests/support/suite.h"
#include "tests/support/tape_tools.h"

static LsArena *a;
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

/* Runs of the tape, and cost and peak where no read is bad. */
static void compare(const LsTape *t, const char *when, uint64_t seed)
{
    LsSeq seq = {ls_arena_alloc(a, t->n + 1u, sizeof *seq.node), 0};
    ls_tape_store(t, &seq);
    ck_assert_uint_eq(seq.n, t->n);
    if (t->bad == 0)
        tape_is_as_live(a, t, when, seed);
}

/* A random run but for LS_TAPE_END, or LS_TAPE_END if there is none in the second half. */
static uint32_t any_run(const LsTape *t, uint64_t *rnd)
{
    return ls_tape_run_from(t, dag_random(rnd, t->tree.n));
}

START_TEST(random_changes_leave_what_a_fresh_evaluation_finds)
{
    for (uint64_t seed = 0; seed < 30; seed++) {
        LsDag *g = dag_make(a, 3 + seed % 12, seed);
        LsProb *p = ls_prob_new(a, g, seed % 3 != 0);
        LsSeq plain = ls_seq_plain(a, p);
        LsTape *t = ls_tape_new(p);
        uint64_t rnd = seed + 77;
        uint32_t bad = 0;
        ls_tape_load(t, &plain);
        compare(t, "loaded", seed);
        ck_assert_uint_eq(t->bad, 0);
        for (int k = 0; k < 300; k++) {
            uint32_t r = any_run(t, &rnd), at = any_run(t, &rnd), mark = t->nchange;
            if (r == LS_TAPE_END)
                continue;
            uint32_t node = t->run[r].node;
            if (dag_random(&rnd, 2) || t->n > 4 * p->n)
                ls_tape_remove(t, r);
            if (at != r && g->node[node].nupd == 0)
                ls_tape_insert(t, node, at);
            compare(t, "changed", seed);
            bad += t->bad > 0;
            if (t->bad > 0 || dag_random(&rnd, 3) == 0)
                ls_tape_undo(t, mark);
            ck_assert_uint_eq(t->bad, 0);
        }
        compare(t, "at the end", seed);
        ls_tape_undo(t, 0);
        LsSeq back = {ls_arena_alloc(a, t->n + 1u, sizeof *back.node), 0};
        ls_tape_store(t, &back);
        ck_assert_uint_eq(back.n, plain.n);
        ck_assert_int_eq(memcmp(back.node, plain.node, plain.n * sizeof *plain.node), 0);
        compare(t, "undone", seed);
        ck_assert_uint_gt(bad, 0);
        ls_tape_free(t);
    }
}
END_TEST

START_TEST(reads_after_an_update_and_of_what_is_not_made_are_bad)
{
    LsDag *g = dag_make(a, 6, 3);
    LsProb *p = ls_prob_new(a, g, true);
    LsSeq plain = ls_seq_plain(a, p);
    LsTape *t = ls_tape_new(p);
    ls_tape_load(t, &plain);
    uint32_t reader = LS_NO_ID;
    for (uint32_t v = 0; v < p->n; v++)
        if (p->before.at[v] < p->before.at[v + 1])
            reader = p->before.id[p->before.at[v]];
    ck_assert_uint_ne(reader, LS_NO_ID);
    ls_tape_insert(t, reader, LS_TAPE_END);
    ck_assert_uint_gt(t->bad, 0);
    ls_tape_undo(t, 0);
    ls_tape_remove(t, t->run[LS_TAPE_END].next);
    ck_assert_uint_gt(t->bad, 0);
    ls_tape_undo(t, 0);
    ck_assert_uint_eq(t->bad, 0);
    ls_tape_free(t);
}
END_TEST

START_TEST(what_nobody_reads_is_dead_and_what_is_read_later_is_there)
{
    LsDag *g = dag_make(a, 6, 5);
    LsProb *p = ls_prob_new(a, g, true);
    LsSeq plain = ls_seq_plain(a, p);
    LsTape *t = ls_tape_new(p);
    ls_tape_load(t, &plain);
    for (uint32_t r = t->run[LS_TAPE_END].next; r != LS_TAPE_END; r = t->run[r].next)
        ck_assert(!ls_tape_is_dead(t, r));
    uint32_t first = t->run[LS_TAPE_END].next, node = t->run[first].node;
    uint32_t again = ls_tape_insert(t, node, t->run[first].next);
    ck_assert(ls_tape_is_dead(t, first));
    ck_assert(!ls_tape_is_dead(t, again));
    ck_assert(ls_tape_has(t, p->out.id[p->out.at[node]], t->run[again].next));
    ck_assert(!ls_tape_has(t, p->out.id[p->out.at[node]], first));
    ls_tape_free(t);
}
END_TEST

/* Of two results that may take an operand's place the first does, and the second needs bytes of its
 * own. */
START_TEST(an_operand_gives_its_place_to_one_result)
{
    static const uint32_t id[] = {0, 1, 2, 3};
    static const LsDagPair pair[] = {{1, 0}, {2, 0}};
    LsDagTensor tensor[] = {{"t", 100, false, false},
                            {"u", 100, false, false},
                            {"v", 100, false, false},
                            {"w", 4, false, true}};
    LsDagNode node[] = {{.name = "make", .op = "", .cost = 1, .out = id, .nout = 1, .of = -1},
                        {.name = "split",
                         .op = "",
                         .cost = 1,
                         .in = id,
                         .nin = 1,
                         .out = id + 1,
                         .nout = 2,
                         .inplace = pair,
                         .ninplace = 2,
                         .workspace = 50,
                         .of = -1},
                        {.name = "join",
                         .op = "",
                         .cost = 1,
                         .in = id + 1,
                         .nin = 2,
                         .out = id + 3,
                         .nout = 1,
                         .of = -1}};
    LsDag g = {.name = "two heirs",
               .alignment = 1,
               .tensor = tensor,
               .ntensor = 4,
               .node = node,
               .nnode = 3};
    for (int inplace = 0; inplace < 2; inplace++) {
        LsProb *p = ls_prob_new(a, &g, inplace);
        LsSeq plain = ls_seq_plain(a, p);
        LsTape *t = ls_tape_new(p);
        ls_tape_load(t, &plain);
        ck_assert_int_eq(ls_tape_peak(t), inplace ? 250 : 350);
        compare(t, "two heirs", 0);
        ls_tape_free(t);
    }
}
END_TEST

int main(void)
{
    const TTest *const test[] = {
        random_changes_leave_what_a_fresh_evaluation_finds,
        reads_after_an_update_and_of_what_is_not_made_are_bad,
        what_nobody_reads_is_dead_and_what_is_read_later_is_there,
        an_operand_gives_its_place_to_one_result,
    };
    TCase *tc = tcase_create("tape");
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    add_tests(tc, sizeof test / sizeof test[0], test);
    return run_tests("tape", tc);
}
