/* tests/scheduler/test_planner.c -- every plan of every strategy is valid and keeps the promises of
 * planner.h. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/plan/plan_audit.h"
#include "scheduler/plan/plan_json.h"
#include "scheduler/plan/planner.h"
#include "scheduler/report/memory_timeline.h"
#include "scheduler/report/plan_view.h"
#include "scheduler/strategies/strategy_names.h"
#include "tests/support/dag_tools.h"
#include "tests/support/less.h"
#include "tests/support/suite.h"

static LsArena *a;
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

/* Graphs this small need few moves. */
#define QUICK(...) (LsPlanOptions){.effort = 4, .unproven = true, __VA_ARGS__}

/* Checks a plan's promises, or the report of no plan. Returns the cost, or -1. */
static double check(const LsDag *g, const char *name, int64_t budget, bool fits,
                    const LsPlan *plan, const LsPlanReport *r)
{
    char why[300];
    if (!fits) {
        ck_assert_ptr_nonnull(r->error);
        ck_assert_int_gt(r->least, budget);
        ck_assert(!r->feasible);
        return -1;
    }
    ck_assert_msg(ls_audit(g, plan, why, sizeof why), "%s at %ld: %s", name, (long)budget, why);
    ck_assert(budget <= 0 || plan->arena <= budget);
    ck_assert_int_le(r->least, plan->arena);
    ck_assert_int_ge(plan->arena, plan->live_peak);
    ck_assert(r->feasible);
    ck_assert_ptr_null(r->error);
    return plan->cost;
}

/* Plans and audits. Returns the cost, or -1 when nothing fits. */
static double cost_at(const LsDag *g, const char *name, int64_t budget, LsPlan *plan,
                      LsPlanReport *r)
{
    bool fits = ls_plan(a, g, &QUICK(.strategy = name, .budget.bytes = budget), plan, r);
    return check(g, name, budget, fits, plan, r);
}

enum { LEAST = 3, PARTS = 10 };  /* of the arena without recomputation */

/* cost[k]: likewise within k parts of `full` bytes, all by one planning. */
static void costs_of(const LsDag *g, const char *name, int64_t full, double cost[PARTS + 1])
{
    LsPlan plan;
    LsPlanReport r;
    LsPlanOptions o = QUICK(.strategy = name);
    LsPlanner *planner = ls_planner_new(a, g, &o);
    for (int k = PARTS; k >= LEAST; k--) {
        int64_t budget = full * k / PARTS;
        bool fits = ls_planner_ask(planner, name, budget, &plan, &r);
        cost[k] = check(g, name, budget, fits, &plan, &r);
    }
    ls_planner_free(planner);
}

START_TEST(random_graphs_get_plans_that_hold_and_are_monotone)
{
    for (uint64_t seed = 0; seed < (uint64_t)tests_part(25, 5); seed++) {
        char why[300];
        double cost[PARTS + 1];
        LsDag *g = dag_make(a, 3 + seed % 9, seed);
        LsPlan plan;
        LsPlanReport r;
        ck_assert_msg(ls_dag_check(g, why, sizeof why), "seed %d: %s", (int)seed, why);
        double base = cost_at(g, "none", 0, &plan, &r);
        int64_t full = plan.arena;
        ck_assert(base >= 0);
        for (int k = 0; k < LS_NSTRATEGY; k++) {
            double before = base;
            bool fits = true;
            costs_of(g, ls_strategy_name[k].name, full, cost);
            for (int part = PARTS; part >= LEAST; part--) {
                ck_assert_msg(cost[part] < 0 || (fits && cost[part] >= before),
                              "seed %d: %s is not monotone", (int)seed, ls_strategy_name[k].name);
                before = cost[part];
                fits = fits && cost[part] >= 0;
            }
        }
    }
}
END_TEST

START_TEST(a_planner_answers_every_budget_as_a_plan_of_its_own_would)
{
    for (uint64_t seed = 50; seed < 50 + (uint64_t)tests_part(6, 1); seed++) {
        LsDag *g = dag_make(a, 8, seed);
        LsPlan one, many;
        LsPlanReport r, rm;
        cost_at(g, "none", 0, &one, &r);
        int64_t full = one.arena;
        LsPlanOptions all = QUICK(.compare = true);
        LsPlanner *planner = ls_planner_new(a, g, &all);
        for (int k = 0; k < LS_NSTRATEGY; k++)
            for (int part = 4; part <= 10; part += 2) {
                double cost = cost_at(g, ls_strategy_name[k].name, full * part / 10, &one, &r);
                bool fits = ls_planner_ask(planner, ls_strategy_name[k].name, full * part / 10,
                                           &many, &rm);
                ck_assert_int_eq(fits, cost >= 0);
                ck_assert_int_eq(rm.least, r.least);
                ck_assert_str_eq(rm.hash, r.hash);
                ck_assert_int_eq(rm.none_arena, r.none_arena);
            }
        ck_assert(!ls_planner_ask(planner, "best", 0, &many, &rm));
        ck_assert_ptr_nonnull(rm.error);
        ls_planner_free(planner);
    }
    ck_assert_ptr_null(ls_planner_new(a, dag_make(a, 3, 1), &(LsPlanOptions){.strategy = "best"}));
}
END_TEST

START_TEST(strategies_and_their_halves_have_names)
{
    static const char *const known[] = {"none", "chen", "approx", "approx-tc", "approx-mc",
                                        "exact", "exact-tc", "exact-mc", "auto"};
    static const char *const none[] = {"", "best", "exact-", "exact-t", "chen-tc", "auto-mc",
                                       "approx-tcx", "Auto"};
    const LsStrategyName *last = NULL;
    int n = 0;
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        const LsStrategyName *s = ls_strategy_find(known[k]);
        ck_assert(s != NULL && strncmp(known[k], s->name, strlen(s->name)) == 0);
        n += s != last;
        last = s;
    }
    ck_assert_int_eq(n, LS_NSTRATEGY);
    for (size_t k = 0; k < sizeof none / sizeof *none; k++)
        ck_assert_ptr_null(ls_strategy_find(none[k]));
}
END_TEST

START_TEST(auto_is_never_worse_than_a_named_strategy)
{
    for (uint64_t seed = 30; seed < 30 + (uint64_t)tests_part(12, 2); seed++) {
        LsDag *g = dag_make(a, 9, seed);
        double best[PARTS + 1], cost[PARTS + 1];
        LsPlan plan;
        LsPlanReport r;
        cost_at(g, "none", 0, &plan, &r);
        int64_t full = plan.arena;
        costs_of(g, "auto", full, best);
        for (int k = 0; k < LS_NSTRATEGY - 1; k++) {
            costs_of(g, ls_strategy_name[k].name, full, cost);
            for (int part = PARTS; part >= LEAST; part--)
                ck_assert(cost[part] < 0 || (best[part] >= 0 && best[part] <= cost[part]));
        }
    }
}
END_TEST

/* n nodes in a line, of two costs and sizes, and their gradients, which read the same operands. */
static LsDag *chain(uint32_t n)
{
    LsDag *g = ls_arena_alloc(a, 1, sizeof *g);
    uint32_t *id = ls_arena_alloc(a, 6 * n, sizeof *id);
    *g = (LsDag){.name = "chain",
                 .alignment = 1,
                 .tensor = ls_arena_alloc(a, 2 * n + 2, sizeof *g->tensor),
                 .node = ls_arena_alloc(a, 2 * n, sizeof *g->node)};
    for (uint32_t k = 0; k < n; k++) {              /* node k reads k and makes k + 1 */
        id[2 * k] = k;
        id[2 * k + 1] = k + 1;
        g->node[g->nnode++] = (LsDagNode){"f", "F", LS_DAG_FORWARD, 1 + 9 * (k % 3 == 0), .nin = 1,
                                          .in = id + 2 * k, .out = id + 2 * k + 1, .nout = 1,
                                          .of = -1};
    }
    for (uint32_t t = 0; t < 2 * n + 1; t++)        /* the gradient of value k: 2 n + 1 - k */
        g->tensor[g->ntensor++] = (LsDagTensor){"t", 100 + 100 * (t % 3 == 1), t == 0, t == 2 * n};
    for (uint32_t k = n; k-- > 0;) {
        uint32_t *in = id + 2 * n + 3 * k, last = k + 1 == n;
        in[0] = k;
        in[1] = last ? n : 2 * n - k - 1;
        in[2] = 2 * n - k;
        g->node[g->nnode++] = (LsDagNode){"b", "B", LS_DAG_BACKWARD, 2, .nin = 2, .in = in,
                                          .out = in + 2, .nout = 1, .required = k == 0, .of = k};
    }
    return g;
}

/* The results of exact when it is named, and of auto, which has its row. */
static void check_exact_within_auto(const LsDag *g, int64_t budget, double seconds, uint32_t effort,
                                    const char *note, bool same)
{
    LsPlan plan;
    LsPlanReport named, other;
    LsPlanOptions o = {.strategy = "exact", .budget.bytes = budget, .unproven = true,
                       .seconds = seconds, .effort = effort};
    bool fits = ls_plan(a, g, &o, &plan, &named);
    o.strategy = "auto";
    ck_assert(ls_plan(a, g, &o, &plan, &other) || !fits);
    const LsPlanRow *mine = &named.row[named.nrow - 1], *row = &other.row[other.nrow - 2];
    ck_assert_str_eq(mine->name, "exact");
    ck_assert_str_eq(row->name, "exact");
    ck_assert_str_eq(row->note, note);
    ck_assert(!fits || ls_plan_overhead(&plan) <= mine->overhead);
    if (same) {
        ck_assert_int_eq(mine->feasible, row->feasible);
        ck_assert_double_eq(mine->overhead, row->overhead);
    }
}

START_TEST(auto_is_never_worse_than_the_optima_and_runs_them_when_there_is_time)
{
    char why[300];
    LsDag *g = chain(310);                          /* in small graphs it begins with them */
    LsPlan plan;
    ck_assert_msg(ls_dag_check(g, why, sizeof why), "%s", why);
    ls_plan_none(a, g, &plan);
    for (int part = tests_part(3, 1); part >= 1; part--) {
        int64_t budget = plan.arena * part / 10;
        check_exact_within_auto(g, budget, 0, 0,
                                "311 lower sets, --plan-time is too short for the optima", false);
        check_exact_within_auto(g, budget, 4, 1, "311 lower sets", true);
    }
}
END_TEST

START_TEST(a_percentage_is_of_the_plan_without_recomputation_or_of_the_store_all_peak)
{
    for (uint64_t seed = 70; seed < 70 + (uint64_t)tests_part(4, 1); seed++) {
        LsDag *g = dag_make(a, 9, seed);
        for (int of_all = 0; of_all < 2; of_all++) {
            LsPlan none, plan, same;
            LsPlanReport r, again;
            ck_assert(ls_plan_none(a, g, &none));
            bool fits = ls_plan(
                a, g, &QUICK(.compare = true, .budget.percent = 75, .budget.of_store_all = of_all),
                &plan, &r);
            int64_t whole = of_all ? r.store_all : none.arena;
            ck_assert_int_eq(r.budget, whole * 75 / 100);
            ck_assert_int_eq(ls_plan(a, g, &QUICK(.compare = true, .budget.bytes = r.budget), &same,
                                     &again), fits);
            ck_assert_str_eq(again.hash, r.hash);
            for (uint32_t k = 0; k < r.nrow; k++)
                ck_assert_int_eq(again.row[k].least, r.row[k].least);
            ck_assert_int_eq(r.none_arena, none.arena);
            ck_assert_int_eq(r.none->nstep, none.nstep);
            ck_assert_mem_eq(r.none->offset, none.offset, none.noffset * sizeof *none.offset);
            ck_assert_str_eq(r.row[0].name, "none");
            ck_assert_int_eq(r.row[0].least, none.arena);
            ck_assert_int_eq(r.row[0].feasible, none.arena <= r.budget);
        }
    }
}
END_TEST

START_TEST(the_least_budget_is_feasible_and_a_byte_less_is_not)
{
    for (uint64_t seed = 50; seed < 50 + (uint64_t)tests_part(8, 2); seed++) {
        LsDag *g = dag_make(a, 8, seed);
        for (int k = 0; k < LS_NSTRATEGY; k++) {
            LsPlan plan, same;
            LsPlanReport r;
            ck_assert(ls_plan(a, g,
                              &QUICK(.strategy = ls_strategy_name[k].name, .budget.least = true),
                              &plan, &r));
            ck_assert_int_eq(plan.arena, r.least);
            ck_assert(cost_at(g, ls_strategy_name[k].name, r.least, &same, &r) >= 0);
            ck_assert_double_eq(same.cost, plan.cost);
            ck_assert(cost_at(g, ls_strategy_name[k].name, same.arena - 1, &same, &r) < 0);
            ck_assert_ptr_nonnull(strstr(r.error, "the least found needs"));
            ck_assert_uint_gt(r.nowner, 0);
        }
    }
}
END_TEST

START_TEST(a_small_result_does_not_hold_the_whole_place_of_its_operand)
{
    /* large -> small in its place; then another of nearly that size beside small */
    static const uint32_t id[] = {0, 1, 2, 3};
    static const LsDagPair in_place = {1, 0};
    LsDagTensor tensor[] = {{"large", 1000, false, false}, {"small", 10, false, false},
                            {"other", 990, false, false}, {"end", 1, false, true}};
    LsDagNode node[] = {
        {.name = "a", .op = "Op", .cost = 1, .out = id, .nout = 1, .of = -1},
        {.name = "b", .op = "Op", .cost = 1, .in = id, .nin = 1, .out = id + 1, .nout = 1,
         .inplace = &in_place, .ninplace = 1, .of = -1},
        {.name = "c", .op = "Op", .cost = 1, .out = id + 2, .nout = 1, .of = -1},
        {.name = "d", .op = "Op", .cost = 1, .in = id + 1, .nin = 2, .out = id + 3, .nout = 1,
         .of = -1},
    };
    LsDag g = {.name = "small heir",
               .alignment = 1,
               .tensor = tensor,
               .ntensor = 4,
               .node = node,
               .nnode = 4};
    LsPlan plan;
    char why[300];
    ck_assert_msg(ls_dag_check(&g, why, sizeof why), "%s", why);
    ck_assert(ls_plan_none(a, &g, &plan));
    ck_assert_msg(ls_audit(&g, &plan, why, sizeof why), "%s", why);
    ck_assert_int_eq(plan.arena, 1001);              /* other, small and end */
}
END_TEST

START_TEST(plans_are_the_same_every_time_and_without_places_taken_over_too)
{
    LsDag *g = dag_make(a, 10, 99);
    LsPlan plan[2];
    LsPlanReport r[2];
    for (int k = 0; k < 2; k++)
        ck_assert(ls_plan(a, g, &QUICK(.budget.least = true), &plan[k], &r[k]));
    ck_assert_str_eq(r[0].hash, r[1].hash);
    plan[0].offset[0] += 64;
    ls_plan_hash(&plan[0], r[0].hash);
    ck_assert_str_ne(r[0].hash, r[1].hash);
    char why[300];
    ck_assert(ls_plan(a, g, &QUICK(.no_inplace = true), &plan[0], &r[0]));
    ck_assert_uint_eq(plan[0].nreuse, 0);
    ck_assert(ls_audit(g, &plan[0], why, sizeof why));
}
END_TEST

START_TEST(an_exact_plan_says_when_it_is_not_exact)
{
    LsDag *g = dag_make(a, 12, 5);
    LsPlan plan;
    LsPlanReport r;
    ck_assert(ls_plan(a, g, &QUICK(.strategy = "exact", .max_lower_sets = 5), &plan, &r));
    const LsPlanRow *row = &r.row[r.nrow - 1];
    ck_assert_str_eq(row->name, "exact");
    ck_assert_ptr_nonnull(strstr(row->note, "more than 5 lower sets"));
}
END_TEST

START_TEST(an_unknown_strategy_is_named_in_the_error)
{
    LsPlan plan;
    LsPlanReport r;
    ck_assert(!ls_plan(a, dag_make(a, 4, 1), &QUICK(.strategy = "magic"), &plan, &r));
    ck_assert_ptr_nonnull(strstr(r.error, "'magic'"));
}
END_TEST

START_TEST(a_graph_without_nodes_has_an_empty_plan)
{
    LsDag g = {.name = "empty", .alignment = 1};
    LsPlan plan;
    LsPlanReport r;
    char why[300];
    ck_assert(ls_plan(a, &g, &(LsPlanOptions){0}, &plan, &r));
    ck_assert_uint_eq(plan.nstep, 0);
    ck_assert_int_eq(plan.arena, 0);
    ck_assert_msg(ls_audit(&g, &plan, why, sizeof why), "%s", why);
}
END_TEST

/* The text that `print` writes. */
static char *text_of(void (*print)(FILE *, const LsDag *, const LsPlan *, const LsPlanReport *),
                     const LsDag *g, const LsPlan *plan, const LsPlanReport *r)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    print(f, g, plan, r);
    fclose(f);
    char *kept = ls_arena_strdup(a, text);
    free(text);
    return kept;
}

static void print_plan(FILE *f, const LsDag *g, const LsPlan *plan, const LsPlanReport *r)
{
    (void)r;
    ls_plan_write(f, g, plan, NULL);
}

static void print_all(FILE *f, const LsDag *g, const LsPlan *plan, const LsPlanReport *r)
{
    ls_view_table(f, r);
    ls_view_peak(f, g, r, 3);
    ls_view_dot(f, g, plan);
    ls_timeline_table(f, g, plan);
    ls_view_json(f, g, plan, r);
}

/* A picture counts runs of nodes; the id of a step that frees is a tensor's id, and may be far
 * beyond the last node. This graph has so many tensors that a read by that id would leave the array
 * of nodes. */
START_TEST(a_picture_counts_runs_whatever_tensors_are_freed)
{
    enum { MANY = 1 << 27 };
    LsDagNode node[] = {{.name = "one", .op = "Op", .of = -1},
                        {.name = "two", .op = "Op", .of = -1}};
    LsDag g = {.name = "few nodes", .alignment = 1, .ntensor = MANY + 1, .node = node, .nnode = 2};
    LsPlanStep step[] = {{.id = 0}, {.free = true, .id = 1}, {.free = true, .id = MANY}, {.id = 0}};
    LsPlan plan = {.step = step, .nstep = 4};
    char text[1000] = "";
    FILE *to = fmemopen(text, sizeof text, "w");
    ls_view_dot(to, &g, &plan);
    fclose(to);
    ck_assert_ptr_nonnull(strstr(text, "\"one\", tooltip=\"2 runs\""));
    ck_assert_ptr_null(strstr(text, "two"));
}
END_TEST

START_TEST(a_plan_written_and_read_is_the_same_plan)
{
    for (uint64_t seed = 60; seed < 60 + (uint64_t)tests_part(10, 2); seed++) {
        LsDag *g = dag_make(a, 9, seed);
        LsPlan plan, back;
        LsPlanReport r;
        char why[300], hash[17];
        ck_assert(ls_plan(a, g, &QUICK(.budget.least = true, .no_offsets = seed % 2), &plan, &r));
        char *text = text_of(print_plan, g, &plan, &r);
        ck_assert(strstr(text, seed % 2 ? "live_peak" : "offset") != NULL);
        ck_assert(seed % 2 == 0
                  || (strstr(text, "offset") == NULL && strstr(text, "arena") == NULL));
        ck_assert_msg(ls_plan_parse(a, g, text, &back, why, sizeof why), "%s", why);
        ck_assert_int_eq(back.unplaced, seed % 2);
        ck_assert_msg(ls_audit(g, &back, why, sizeof why), "%s", why);
        ls_plan_hash(&back, hash);
        ck_assert_str_eq(hash, r.hash);
        for (size_t cut = 3; cut < strlen(text); cut += 97) {   /* damaged: an error, not a crash */
            char *less = ls_arena_strdup(a, text);
            less[strlen(text) - cut] = '\0';
            ck_assert(!ls_plan_parse(a, g, less, &back, why, sizeof why));
        }
    }
}
END_TEST

START_TEST(a_plan_has_all_places_or_none)
{
    static const char what[] = ", \"offsets\": {";
    LsDag *g = dag_make(a, 9, 61);
    LsPlan plan, back;
    LsPlanReport r;
    char why[300];
    ck_assert(ls_plan(a, g, &QUICK(.budget.least = true), &plan, &r));
    char *text = text_of(print_plan, g, &plan, &r), *from = strstr(text, what);
    ck_assert_ptr_nonnull(from);
    char *past = strchr(from, '}') + 1;
    memmove(from, past, strlen(past) + 1);              /* the first run has none, the others do */
    ck_assert(!ls_plan_parse(a, g, text, &back, why, sizeof why));
    ck_assert_msg(strstr(why, "offsets") != NULL, "%s", why);
}
END_TEST

START_TEST(views_show_rows_peak_graph_curve_and_summary)
{
    LsDag *g = dag_make(a, 9, 3);
    LsPlan plan;
    LsPlanReport r;
    ck_assert(ls_plan(a, g, &QUICK(.budget.least = true), &plan, &r));
    char *text = text_of(print_all, g, &plan, &r);
    const char *const want[] = {"strategy", "approx", "peak at run", "digraph", "-> n", "# run",
                                "\"schema\":\t1", "\"arena_bytes\"", "lower sets"};
    for (size_t k = 0; k < sizeof want / sizeof *want; k++)
        ck_assert_msg(strstr(text, want[k]) != NULL, "no '%s'", want[k]);
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        random_graphs_get_plans_that_hold_and_are_monotone,
        a_planner_answers_every_budget_as_a_plan_of_its_own_would,
        strategies_and_their_halves_have_names,
        auto_is_never_worse_than_a_named_strategy,
        auto_is_never_worse_than_the_optima_and_runs_them_when_there_is_time,
        a_percentage_is_of_the_plan_without_recomputation_or_of_the_store_all_peak,
        the_least_budget_is_feasible_and_a_byte_less_is_not,
        a_small_result_does_not_hold_the_whole_place_of_its_operand,
        plans_are_the_same_every_time_and_without_places_taken_over_too,
        an_exact_plan_says_when_it_is_not_exact,
        an_unknown_strategy_is_named_in_the_error,
        a_graph_without_nodes_has_an_empty_plan,
        a_plan_written_and_read_is_the_same_plan,
        a_picture_counts_runs_whatever_tensors_are_freed,
        a_plan_has_all_places_or_none,
        views_show_rows_peak_graph_curve_and_summary,
    };
    TCase *tc = tcase_create("plan");
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    tcase_set_timeout(tc, 300);
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("plan", tc);
}
