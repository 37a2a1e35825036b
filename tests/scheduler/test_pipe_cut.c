/* tests/scheduler/test_pipe_cut.c -- where alternatives and updates of a graph in two stages run,
 * and in which phase. */
#include <check.h>

#include "scheduler/cuts/mandatory_runs.h"
#include "scheduler/graph/dag_read.h"
#include "scheduler/pipeline/phases_and_messages.h"
#include "tests/support/suite.h"

static LsArena *a;
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

/* Stage 1 makes y of x and w, and stage 2 z of y and v. Gradients: dy, dv; dx, dw. */
enum { X, W, Y, V, Z, DY, DV, DX, DW, SOME };
enum { F, G, BZ, GV, BF, GW, MORE };

static const char tensors[] =
    "{\"id\": 0, \"name\": \"x\", \"bytes\": 8, \"persistent\": true}, {\"id\": 1, \"name\": "
    "\"w\", \"bytes\": 8, \"persistent\": true},"
    "{\"id\": 2, \"name\": \"y\", \"bytes\": 16}, {\"id\": 3, \"name\": \"v\", \"bytes\": 8, "
    "\"persistent\": true},"
    "{\"id\": 4, \"name\": \"z\", \"bytes\": 8}, {\"id\": 5, \"name\": \"dy\", \"bytes\": 16}, "
    "{\"id\": 6, \"name\": \"dv\", \"bytes\": 8},"
    "{\"id\": 7, \"name\": \"dx\", \"bytes\": 8}, {\"id\": 8, \"name\": \"dw\", \"bytes\": 8}, "
    "{\"id\": 9, \"name\": \"some\", \"bytes\": 8}";

static const char nodes[] = "{\"id\": 0, \"name\": \"f\", \"op\": \"F\", \"kind\": \"forward\", "
                            "\"cost\": 9, \"inputs\": [0, 1], \"outputs\": [2]},"
                            "{\"id\": 1, \"name\": \"g\", \"op\": \"F\", \"kind\": \"forward\", "
                            "\"cost\": 9, \"inputs\": [2, 3], \"outputs\": [4]},"
                            "{\"id\": 2, \"name\": \"bz\", \"op\": \"B\", \"kind\": \"backward\", "
                            "\"cost\": 9, \"inputs\": [4], \"outputs\": [5, 9], \"of\": 1},"
                            "{\"id\": 3, \"name\": \"gv\", \"op\": \"W\", \"kind\": \"backward\", "
                            "\"cost\": 1, \"inputs\": [5, 2], \"outputs\": [6], \"of\": 1},"
                            "{\"id\": 4, \"name\": \"bf\", \"op\": \"B\", \"kind\": \"backward\", "
                            "\"cost\": 9, \"inputs\": [5, 2], \"outputs\": [7], \"of\": 0},"
                            "{\"id\": 5, \"name\": \"gw\", \"op\": \"W\", \"kind\": \"backward\", "
                            "\"cost\": 1, \"inputs\": [5, 9, 7], \"outputs\": [8], \"of\": 0}";

static const char *wide = "";       /* one more tensor */

/* The graph with more nodes. outputs: of the graph. */
static const LsProb *problem(const char *outputs, const char *more)
{
    char why[400];
    const char *text = ls_arena_printf(
        a,
        "{\"format\": \"lowerset-graph\", \"version\": 1, \"name\": \"two\", \"alignment\": 1, "
        "\"outputs\": [%s], \"tensors\": [%s%s], \"nodes\": [%s, %s]}",
        outputs, tensors, wide, nodes, more);
    const LsDag *g = ls_dag_parse(a, text, why, sizeof why);
    ck_assert_msg(g != NULL, "%s", why);
    return ls_prob_new(a, g, true);
}

/* The cut between f and g. */
static LsPipeCut cut(const char *outputs, const char *more, bool splits)
{
    char why[400];
    LsPipeCut c;
    LsStages s;
    const LsProb *p = problem(outputs, more);
    const LsStageOptions o = {.stages = 2, .micros = 2};
    ck_assert_msg(ls_stages_in_file_order(a, p, &o, &s, why, sizeof why), "%s", why);
    ck_assert_msg(ls_pipe_cut(a, p, &s, splits, &c, why, sizeof why), "%s", why);
    ck_assert(c.stage[F] == 0 && c.stage[BF] == 0 && c.stage[GW] == 0 && c.stage[G] == 1
              && c.stage[BZ] == 1);
    return c;
}

#define UPDATE_V(id)                                                                               \
    "{\"id\": " id ", \"name\": \"uv\", \"op\": \"S\", \"kind\": \"optimizer\", \"cost\": 1, "     \
                   "\"inputs\": [6, 3], \"updates\": [3], \"of\": 1}"
#define UPDATE_W(id)                                                                               \
    "{\"id\": " id ", \"name\": \"uw\", \"op\": \"S\", \"kind\": \"optimizer\", \"cost\": 1, "     \
                   "\"inputs\": [8, 1], \"updates\": [1], \"of\": 0}"

/* g may be made of x, w and v, which needs no y: where w does not change, or stage 2 had a copy. */
START_TEST(an_alternative_needs_the_states_that_it_reads)
{
#define OF_W(id)                                                                                   \
    "{\"id\": " id ", \"name\": \"of w\", \"op\": \"A\", \"kind\": \"forward\", \"cost\": 9, "     \
                   "\"inputs\": [0, 1, 3], "                                                       \
    "\"outputs\": [4], \"alternative\": true}"
    ck_assert_uint_eq(cut("4, 7, 8", OF_W("6") ", " UPDATE_V("7"), false).stage[6], 1);
    ck_assert_uint_eq(cut("4, 7", OF_W("6") ", " UPDATE_V("7") ", " UPDATE_W("8"), false).stage[6],
                      LS_NO_ID);
}
END_TEST

/* `some` arrives for phase W, where gw reads it, and bf runs in phase B. */
START_TEST(an_alternative_needs_its_operands_in_time)
{
    static const char alternative[] =
        "{\"id\": 6, \"name\": \"of some\", \"op\": \"A\", \"kind\": \"backward\", \"cost\": 9, "
        "\"inputs\": [5, 9], \"outputs\": [7], \"alternative\": true, \"of\": 0}, " UPDATE_W("7");
    ck_assert_uint_eq(cut("4, 6, 7", alternative, true).stage[6], LS_NO_ID);
    ck_assert_uint_eq(cut("4, 6, 7", alternative, false).stage[6], 0);
}
END_TEST

/* A statistic of y, which is the larger one, and of z, which stage 2 makes: it is ready when
 * gradients come. */
START_TEST(an_update_waits_for_a_later_stage)
{
    static const char statistic[] =
        UPDATE_V("6") ", {\"id\": 7, \"name\": \"stat\", \"op\": \"R\", \"kind\": \"optimizer\", "
                      "\"cost\": 1, "
                      "\"inputs\": [2, 4, 1], \"updates\": [1], \"of\": 0}";
    for (int splits = 0; splits < 2; splits++) {
        const LsPipeCut c = cut("4, 7, 8", statistic, splits);
        ck_assert_uint_eq(c.stage[7], 0);
        ck_assert_uint_eq(c.phase[7], splits ? LS_PHASE_W : LS_PHASE_B);
        uint32_t k = 0;
        while (k < c.nmove && c.move[k].tensor != Z)
            k++;
        ck_assert(k < c.nmove && c.move[k].made == LS_PHASE_F && c.move[k].read == c.phase[7]);
    }
}
END_TEST

/* Stage 1 makes the gradient of v: v is there with its update, and stage 2 has a copy. */
START_TEST(an_update_goes_where_its_gradient_is_in_time)
{
    static const char update[] =
        "{\"id\": 6, \"name\": \"uv\", \"op\": \"S\", \"kind\": \"optimizer\", \"cost\": 1, "
        "\"inputs\": [7, 3], \"updates\": [3]}";
    for (int splits = 0; splits < 2; splits++) {
        const LsPipeCut c = cut("4, 6, 7, 8", update, splits);
        ck_assert_uint_eq(c.stage[6], 0);
        ck_assert_uint_eq(c.phase[6], splits ? LS_PHASE_W : LS_PHASE_B);
        ck_assert(c.ncopy == 1 && c.copy[0].tensor == V && c.copy[0].from == 0
                  && c.copy[0].to == 1);
    }
}
END_TEST

/* Stage 2 makes a gradient of w in 16 bits: stage 1 gets it in time, and widens it. */
START_TEST(a_gradient_is_widened_where_its_update_is)
{
    static const char update[] =
        "{\"id\": 6, \"name\": \"widen\", \"op\": \"C\", \"kind\": \"optimizer\", \"cost\": 1, "
        "\"inputs\": [9], \"outputs\": [10], \"of\": 1}, "
        "{\"id\": 7, \"name\": \"uw\", \"op\": \"S\", \"kind\": \"optimizer\", \"cost\": 1, "
        "\"inputs\": [10, 1], \"updates\": [1], \"of\": 0}";
    wide = ", {\"id\": 10, \"name\": \"wide\", \"bytes\": 16}";
    for (int splits = 0; splits < 2; splits++) {
        const LsPipeCut c = cut("4, 6, 7, 8", update, splits);
        ck_assert_uint_eq(c.stage[6], 0);
        ck_assert_uint_eq(c.stage[7], 0);
        ck_assert_uint_ne(c.phase[7], LS_PHASE_LATE);
    }
    wide = "";
}
END_TEST

/* A statistic of y, which belongs to f: its state is its own, is read by f, or by g, with which it
 * moves. */
START_TEST(an_update_stays_unless_others_read_its_state)
{
    static const struct { const char *state; bool stays; } of[] = {
        {"10", true}, {"1", true}, {"3", false}};
    wide = ", {\"id\": 10, \"name\": \"own\", \"bytes\": 8, \"persistent\": true}";
    for (int k = 0; k < 3; k++) {
        const LsProb *p = problem(
            "4, 6, 7, 8", ls_arena_printf(a, "{\"id\": 6, \"name\": \"stat\", \"op\": \"R\", "
                                             "\"kind\": \"optimizer\", \"cost\": 1, \"inputs\": "
                                             "[2, %s], \"updates\": [%s], \"of\": 0}",
                                          of[k].state, of[k].state));
        const LsAnchors at = ls_anchors(a, p);
        const LsCertain c = ls_certain_runs(a, p, &at, false);
        ck_assert_uint_eq(at.at[6], F);
        ck_assert(!at.loose[6]);
        ck_assert_int_eq(c.stays[6], of[k].stays);
        ck_assert_int_eq(c.ahead[6], of[k].stays);
        ck_assert(c.perhaps_ahead[6]);
    }
    wide = "";
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("pipe_cut");
    tcase_add_checked_fixture(t, open_arena, close_arena);
    tcase_add_test(t, an_alternative_needs_the_states_that_it_reads);
    tcase_add_test(t, an_alternative_needs_its_operands_in_time);
    tcase_add_test(t, an_update_waits_for_a_later_stage);
    tcase_add_test(t, an_update_goes_where_its_gradient_is_in_time);
    tcase_add_test(t, a_gradient_is_widened_where_its_update_is);
    tcase_add_test(t, an_update_stays_unless_others_read_its_state);
    return run_tests("pipe_cut", t);
}
