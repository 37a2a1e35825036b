/* tests/codegen/test_step_replay.c -- a plan's step, run by run, with the bytes that the cache
 * holds. */
#include "codegen/planning/step_replay.h"
#include "scheduler/plan/planner.h"
#include "tests/support/gradient.h"
#include "tests/support/suite.h"

enum { N = 4096, BYTES = 4 * N };

static LsMachine m;
static LsProblem *p;
static LsPlan plan;

/* sum(a * sigmoid(relu(x))), node by node. */
static void open_plan(double cache)
{
    graph_open();
    m = (LsMachine){.name = "simple", .lanes = 1, .memory = 4, .cache = cache, .near = 4,
                    .step = 1000, .peak = {[LS_PEAK_F32] = 100}};
    for (int k = 0; k < LS_NCOSTS; k++)
        m.cost[k] = (LsClassCost){.read = 1, .write = 1, .launch = 50};
    LsValueId x = param("x", SHAPE(N)), a = param("a", SHAPE(N));
    LsValueId y = ls_append1(&cx, g, LS_OP_RELU, x, NULL);
    LsValueId z = ls_append1(&cx, g, LS_OP_SIGMOID, y, NULL);
    LsValueId w = ls_append2(&cx, g, LS_OP_MUL, z, a, NULL);
    g->objective.loss =
        ls_append1(&cx, g, LS_OP_REDUCE_SUM, w, &(LsAttr){.reduce = {.axes = 1, .keep = true}});
    p = ls_problem_new(&cx, g, "test", &(LsTarget){.real_bytes = 4});
    ls_problem_price(p, &m);
    ck_assert(ls_plan_none(cx.arena, &p->dag, &plan));
    ck_assert_uint_eq(p->dag.nnode, 4);
}

static void check_touch(const LsWork *w, uint32_t k, bool write, double age)
{
    ck_assert_uint_lt(k, w->ntouch);
    ck_assert(w->touch[k].write == write);
    ck_assert_double_eq(w->touch[k].age, age);
}

START_TEST(without_a_cache_a_step_takes_the_sum_of_the_costs)
{
    open_plan(0);
    ck_assert_double_eq_tol(ls_replay_ns(cx.arena, p, &plan, &m), plan.cost + m.step, 1e-6);
    graph_close();
}
END_TEST

START_TEST(in_a_cache_that_holds_it_all_bytes_cost_what_the_cache_takes)
{
    open_plan(1e12);
    double bytes = BYTES * (2 + 2 + 3 + 1) + 4, launches = 4 * 50;
    ck_assert_double_eq_tol(ls_replay_ns(cx.arena, p, &plan, &m),
                            m.step + launches + bytes / m.memory / m.near, 0.01);
    graph_close();
}
END_TEST

START_TEST(ages_are_those_of_the_order_of_the_runs)
{
    open_plan(BYTES);
    const LsWork *w = ls_replay(cx.arena, p, &plan, &m);
    /* x, a and two places that the results use in turn: a step touches four arrays. */
    check_touch(&w[0], 0, false, 4 * BYTES);        /* x, a step ago */
    check_touch(&w[1], 0, false, BYTES);            /* y, just written */
    check_touch(&w[2], 0, false, BYTES);            /* z */
    check_touch(&w[2], 1, false, 4 * BYTES);        /* a, a step ago */
    check_touch(&w[2], 2, true, 3 * BYTES);         /* w in y's place: before z and a */
    check_touch(&w[3], 0, false, BYTES);
    graph_close();
}
END_TEST

START_TEST(a_result_in_the_place_of_its_operand_is_there_already)
{
    open_plan(BYTES);
    plan.offset[plan.step[1].offset] = plan.offset[plan.step[0].offset];
    const LsWork *w = ls_replay(cx.arena, p, &plan, &m);
    check_touch(&w[1], 0, false, BYTES);
    check_touch(&w[1], 1, true, 0);
    graph_close();
}
END_TEST

START_TEST(what_runs_again_finds_its_operands_where_it_left_them)
{
    open_plan(BYTES);
    LsPlanStep step[16];
    uint32_t n = 0;
    step[n++] = plan.step[0];           /* relu, twice one after the other */
    ck_assert_uint_lt(plan.nstep, 16);
    for (uint32_t k = 0; k < plan.nstep; k++)
        step[n++] = plan.step[k];
    LsPlan twice = plan;
    twice.step = step;
    twice.nstep = n;
    const LsWork *w = ls_replay(cx.arena, p, &twice, &m);
    check_touch(&w[1], 0, false, 2 * BYTES);        /* y was written since */
    check_touch(&w[1], 1, true, 2 * BYTES);
    ck_assert_double_lt(ls_work_ns(&m, &w[1], 4), ls_work_ns(&m, &w[0], 4));
    graph_close();
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("replay");
    const TTest *const tests[] = {
        without_a_cache_a_step_takes_the_sum_of_the_costs,
        in_a_cache_that_holds_it_all_bytes_cost_what_the_cache_takes,
        ages_are_those_of_the_order_of_the_runs,
        a_result_in_the_place_of_its_operand_is_there_already,
        what_runs_again_finds_its_operands_where_it_left_them};
    add_tests(tc, sizeof tests / sizeof *tests, tests);
    return run_tests("replay", tc);
}
