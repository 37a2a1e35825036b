/* tests/scheduler/test_plan_audit.c -- the auditor refuses every kind of broken plan, and says
 * why. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/plan/plan_audit.h"
#include "scheduler/plan/planner.h"
#include "tests/support/dag_tools.h"
#include "tests/support/suite.h"

/* x -> a -> b -> loss; backward db reads b, da reads a and db in place; dw reads a and db; sgd
 * updates w. */
static LsArena *a;
static LsDag g;
static LsDagTensor tensor[8];
static LsDagNode node[6];
static LsPlan plan;
static char why[300];
enum { X, W, A, B, DB, DA, DW, NT };

static void open_plan(void)
{
    static const uint32_t in[] = {X, W, A, B, A, DB, A, DB, DW, W};
    static const uint32_t out[] = {A, B, DB, DA, DW}, upd[] = {W};
    static const LsDagPair pair[] = {{DA, DB}};
    memcpy(tensor, (LsDagTensor[]){{"x", 10, true, false}, {"w", 20, true, false},
           {"a", 40, false, false}, {"b", 60, false, false}, {"db", 60, false, false},
           {"da", 40, false, true}, {"dw", 20, false, false}}, NT * sizeof *tensor);
    memcpy(node, (LsDagNode[]){
        {.name = "fa", .op = "", .cost = 5, .in = in, .nin = 2, .out = out, .nout = 1, .of = -1},
        {.name = "fb", .op = "", .cost = 3, .in = in + 2, .nin = 1, .out = out + 1, .nout = 1,
         .of = -1, .once = true, .workspace = 16},
        {.name = "gb", .op = "", .kind = LS_DAG_BACKWARD, .cost = 3, .in = in + 3, .nin = 1,
         .out = out + 2, .nout = 1, .of = 1},
        {.name = "gw", .op = "", .kind = LS_DAG_BACKWARD, .cost = 4, .in = in + 4, .nin = 2,
         .out = out + 4, .nout = 1, .of = 0},
        {.name = "ga", .op = "", .kind = LS_DAG_BACKWARD, .cost = 4, .in = in + 6, .nin = 2,
         .out = out + 3, .nout = 1, .inplace = pair, .ninplace = 1, .of = 0},
        {.name = "sgd", .op = "", .kind = LS_DAG_OPTIMIZER, .cost = 1, .in = in + 8, .nin = 2,
         .upd = upd, .nupd = 1, .of = 0}}, sizeof node);
    g = (LsDag){
        .name = "small", .alignment = 4, .tensor = tensor, .ntensor = NT, .node = node, .nnode = 6};
    a = ls_arena_new();
    LsPlanReport report;
    ck_assert(ls_dag_check(&g, why, sizeof why));
    ck_assert(ls_plan(a, &g, &(LsPlanOptions){0}, &plan, &report));
    ck_assert_msg(ls_audit(&g, &plan, why, sizeof why), "%s", why);
}

static void close_plan(void) { ls_arena_free(a); }

static uint32_t run_of(const char *name)
{
    for (uint32_t s = 0; s < plan.nstep; s++)
        if (!plan.step[s].free && strcmp(node[plan.step[s].id].name, name) == 0)
            return s;
    ck_abort_msg("no run of %s", name);
    return 0;
}

static uint32_t free_of(uint32_t t)
{
    for (uint32_t s = 0; s < plan.nstep; s++)
        if (plan.step[s].free && plan.step[s].id == t)
            return s;
    ck_abort_msg("no free of %u", t);
    return 0;
}

static void drop(uint32_t s)
{
    memmove(plan.step + s, plan.step + s + 1, (--plan.nstep - s) * sizeof *plan.step);
}

static void insert(uint32_t s, LsPlanStep step)
{
    LsPlanStep *now = ls_arena_alloc(a, plan.nstep + 1u, sizeof *now);
    memcpy(now, plan.step, s * sizeof *now);
    now[s] = step;
    memcpy(now + s + 1, plan.step + s, (plan.nstep++ - s) * sizeof *now);
    plan.step = now;
}

static void expect(const char *what)
{
    ck_assert_msg(!ls_audit(&g, &plan, why, sizeof why), "accepted; should say: %s", what);
    ck_assert_msg(strstr(why, what) != NULL, "says '%s', not '%s'", why, what);
}

START_TEST(a_read_before_it_is_made_is_refused)
{
    LsPlanStep first = plan.step[run_of("fa")];
    drop(run_of("fa"));
    insert(run_of("fb") + 1, first);
    expect("fb reads a, which is not live");
}
END_TEST

START_TEST(a_read_after_the_free_is_refused)
{
    insert(run_of("gb"), (LsPlanStep){.free = true, .id = B});
    expect("gb reads b, which is not live");
}
END_TEST

START_TEST(frees_of_what_is_not_live_or_persistent_are_refused)
{
    insert(0, (LsPlanStep){.free = true, .id = B});
    expect("frees b, which is not live");
    plan.step[0].id = W;
    expect("frees w, which is persistent");
    plan.step[0].id = 99;
    expect("frees tensor 99");
}
END_TEST

START_TEST(overlapping_places_are_refused)
{
    plan.offset[plan.step[run_of("fb")].offset] = plan.offset[plan.step[run_of("fa")].offset];
    expect("overlaps a");
}
END_TEST

START_TEST(a_workspace_on_a_live_tensor_is_refused)
{
    plan.step[run_of("fb")].workspace_offset = plan.offset[plan.step[run_of("fa")].offset];
    expect("a workspace at");
}
END_TEST

START_TEST(a_place_off_the_alignment_is_refused)
{
    plan.offset[plan.step[run_of("fa")].offset] += 2;
    expect("not a multiple of 4");
}
END_TEST

START_TEST(a_node_that_may_run_once_runs_once)
{
    LsPlanStep again = plan.step[run_of("fb")];
    again.again = true;
    insert(free_of(B) + 1, again);
    expect("fb runs a second time");
}
END_TEST

START_TEST(an_update_runs_once)
{
    LsPlanStep again = plan.step[run_of("sgd")];
    again.again = true;
    insert(run_of("sgd") + 1, again);
    expect("sgd runs a second time");
}
END_TEST

START_TEST(a_result_that_is_still_live_is_not_made_again)
{
    LsPlanStep again = plan.step[run_of("fa")];
    again.again = true;
    insert(run_of("fb") + 1, again);
    expect("makes a, which is still live");
}
END_TEST

START_TEST(a_reader_of_a_weight_never_runs_after_its_update)
{
    LsPlanStep again = plan.step[run_of("fa")];
    again.again = true;
    again.offset = plan.noffset;
    plan.offset[plan.noffset++] = 400;
    insert(run_of("sgd") + 1, again);
    if (free_of(A) > run_of("sgd"))
        insert(run_of("sgd") + 1, (LsPlanStep){.free = true, .id = A});
    expect("fa reads w after its update");
}
END_TEST

START_TEST(a_missing_update_is_refused)
{
    drop(run_of("sgd"));
    expect("sgd must run and never does");
}
END_TEST

START_TEST(a_missing_output_is_refused)
{
    insert(plan.nstep, (LsPlanStep){.free = true, .id = DA});
    expect("output da is not live");
}
END_TEST

START_TEST(places_taken_over_wrongly_are_refused)
{
    LsPlanStep *ga = &plan.step[run_of("ga")];
    ck_assert_uint_eq(ga->nreuse, 1);
    int64_t *at = &plan.offset[ga->offset];
    *at += 4;
    expect("da is not where db is");
    *at -= 4;
    plan.reuse[ga->reuse] = (LsDagPair){DA, A};
    expect("may not work in place");
    plan.reuse[ga->reuse] = (LsDagPair){DA, DB};
    ga->reuse = 7;
    expect("outside the list");
}
END_TEST

START_TEST(figures_that_are_not_so_are_refused)
{
    plan.live_peak++;
    expect("states a live peak");
    plan.live_peak--;
    plan.arena++;
    expect("states an arena");
    plan.arena--;
    plan.cost++;
    expect("states a cost");
    plan.cost--;
    plan.base_cost++;
    expect("states a base cost");
}
END_TEST

/* An alternative reads what only it needs: a node that no plan without it runs. */
START_TEST(what_only_alternatives_read_is_no_base_cost)
{
    static LsDagTensor tensors[NT + 1];
    static LsDagNode nodes[8];
    static const uint32_t a_alone[] = {A}, reads[] = {NT, DB}, aside[] = {NT}, makes[] = {DW};
    LsPlanReport report;
    const double base = plan.base_cost;
    memcpy(tensors, tensor, NT * sizeof *tensor);
    tensors[NT] = (LsDagTensor){"e", 400, false, false};
    memcpy(nodes, node, 3 * sizeof *node);
    nodes[3] = (LsDagNode){.name = "aside",
                           .op = "",
                           .kind = LS_DAG_BACKWARD,
                           .cost = 100,
                           .in = a_alone,
                           .nin = 1,
                           .out = aside,
                           .nout = 1,
                           .of = 0};
    nodes[4] = node[3];
    nodes[5] = (LsDagNode){.name = "gw otherwise",
                           .op = "",
                           .kind = LS_DAG_BACKWARD,
                           .cost = 1,
                           .in = reads,
                           .nin = 2,
                           .out = makes,
                           .nout = 1,
                           .alternative = true,
                           .of = 0};
    memcpy(nodes + 6, node + 4, 2 * sizeof *node);
    const LsDag two = {.name = "two ways",
                       .alignment = 4,
                       .tensor = tensors,
                       .ntensor = NT + 1,
                       .node = nodes,
                       .nnode = 8};
    ck_assert_msg(ls_dag_check(&two, why, sizeof why), "%s", why);
    ck_assert(ls_plan(a, &two, &(LsPlanOptions){0}, &plan, &report));
    ck_assert_msg(ls_audit(&two, &plan, why, sizeof why), "%s", why);
    ck_assert_double_eq(plan.base_cost, base);
    ck_assert_double_eq(report.base_cost, base);
    ck_assert_double_eq(plan.cost, base);
    ck_assert_int_lt(report.store_all, 400);
    plan.base_cost += 100;
    ck_assert(!ls_audit(&two, &plan, why, sizeof why));
}
END_TEST

START_TEST(marks_of_recomputation_must_be_right)
{
    plan.step[run_of("fa")].again = true;
    expect("marked as run again");
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        a_read_before_it_is_made_is_refused,
        a_read_after_the_free_is_refused,
        frees_of_what_is_not_live_or_persistent_are_refused,
        overlapping_places_are_refused,
        a_workspace_on_a_live_tensor_is_refused,
        a_place_off_the_alignment_is_refused,
        a_node_that_may_run_once_runs_once,
        an_update_runs_once,
        a_result_that_is_still_live_is_not_made_again,
        a_reader_of_a_weight_never_runs_after_its_update,
        a_missing_update_is_refused,
        a_missing_output_is_refused,
        places_taken_over_wrongly_are_refused,
        figures_that_are_not_so_are_refused,
        what_only_alternatives_read_is_no_base_cost,
        marks_of_recomputation_must_be_right,
    };
    TCase *tc = tcase_create("audit");
    tcase_add_checked_fixture(tc, open_plan, close_plan);
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("audit", tc);
}
