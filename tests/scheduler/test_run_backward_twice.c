/* tests/scheduler/test_run_backward_twice.c -- backward nodes may run twice, updates and statistics
 * may not: plans of tiny graphs against the search of all schedules, the audit, and the judge of
 * the interchange format. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler/bounds/lower_bound.h"
#include "scheduler/plan/plan_audit.h"
#include "scheduler/plan/plan_json.h"
#include "tests/support/clip_graph.h"
#include "tests/support/exhaust.h"
#include "tests/support/less.h"
#include "tests/support/shared_file.h"
#include "tests/support/suite.h"

typedef struct Tally { int plans, twice, paid, missed, optimal, tight; } Tally;

static bool is_once(const LsDagNode *n) { return n->once || n->nupd > 0; }

/* Further runs of nodes that are not forward. */
static int backward_again(const LsDag *g, const LsPlan *plan)
{
    int again = 0;
    for (uint32_t s = 0; s < plan->nstep; s++)
        again += !plan->step[s].free && plan->step[s].again
                 && g->node[plan->step[s].id].kind == LS_DAG_BACKWARD;
    return again;
}

/* The same graph, but no backward node may run twice. */
static LsDag backward_once(LsArena *a, const LsDag *g)
{
    LsDag once = *g;
    once.node = ls_arena_alloc(a, g->nnode, sizeof *once.node);
    for (uint32_t v = 0; v < g->nnode; v++) {
        once.node[v] = g->node[v];
        once.node[v].once |= g->node[v].kind == LS_DAG_BACKWARD;
    }
    return once;
}

static void check_bounds(LsArena *a, const LsDag *g, int64_t budget, double best, double least,
                         Tally *tally)
{
    LsProb *p = ls_prob_new(a, g, true);
    LsBound loose = ls_bound(p, budget, &(LsBoundOptions){.relaxed = true});
    LsBound exact = ls_bound(p, budget, &(LsBoundOptions){0});
    ck_assert_int_le(loose.least, (int64_t)least);
    ck_assert_int_eq(exact.infeasible, best < 0);
    ck_assert_msg(best < 0 || (!loose.infeasible && loose.cost <= best + 1e-9),
                  "%s at %ld: bound %g, best %g", g->name, (long)budget, loose.cost, best);
    ck_assert_msg(best < 0 || fabs(exact.cost - best) < 1e-9, "%s at %ld: %g, best %g", g->name,
                  (long)budget, exact.cost, best);
    tally->tight += best >= 0 && loose.cost >= best - 1e-9;
}

/* Every budget between the least peak and the plan without recomputation. */
static void check_graph(uint32_t layers, uint64_t seed, Tally *tally)
{
    enum { PARTS = 5 };
    char why[400];
    LsArena *a = ls_arena_new();
    const LsDag *g = clip_graph(a, layers, seed);
    LsPlan none, plan;
    LsPlanReport r;
    ck_assert_msg(ls_dag_check(g, why, sizeof why), "%s: %s", g->name, why);
    ck_assert(ls_plan_none(a, g, &none));
    const double least = exhaust(g, true, true, 0);
    ck_assert_double_gt(least, 0);
    const LsDag once = backward_once(a, g);
    LsPlanner *planner = ls_planner_new(a, g, &(LsPlanOptions){.seconds = 1e6, .effort = 30});
    for (int part = 0; part < PARTS; part++) {
        const int64_t budget =
            (int64_t)least - (part == 0) + (none.live_peak - (int64_t)least) * part / PARTS;
        const double best = exhaust(g, true, false, (double)budget);
        check_bounds(a, g, budget, best, least, tally);
        const bool fits = ls_planner_ask(planner, "auto", budget, &plan, &r);
        ck_assert_msg(!fits || best >= 0, "%s has a plan at %ld, where nothing fits", g->name,
                      (long)budget);
        if (best < 0)
            continue;
        const double best_once = exhaust(&once, true, false, (double)budget);
        tally->plans++;
        tally->paid += best_once < 0 || best_once > best + 1e-9;
        tally->missed += !fits;
        if (!fits)
            continue;
        ck_assert_msg(ls_audit(g, &plan, why, sizeof why), "%s at %ld: %s", g->name, (long)budget,
                      why);
        ck_assert_int_le(plan.arena, budget);
        ck_assert_msg(plan.cost >= best - 1e-9, "%s at %ld: %g beats the search of all, %g",
                      g->name, (long)budget, plan.cost, best);
        ck_assert_msg(r.bound <= plan.cost + 1e-9, "%s at %ld: bound %g, cost %g", g->name,
                      (long)budget, r.bound, plan.cost);
        tally->twice += backward_again(g, &plan) > 0;
        tally->optimal += plan.cost <= best + 1e-9;
    }
    ls_planner_free(planner);
    ls_arena_free(a);
}

START_TEST(plans_that_run_backward_nodes_twice_are_the_best_of_all)
{
    const uint64_t graphs = (uint64_t)tests_part(120, 14);
    Tally t = {0};
    for (uint64_t seed = 0; seed < graphs; seed++)
        check_graph(2 + seed % 4 / 3, seed, &t);
    printf("%d plans, %d run backward nodes twice, %d times it pays; %d not found, %d as good as "
           "can be; separators prove %d\n",
           t.plans, t.twice, t.paid, t.missed, t.optimal, t.tight);
    ck_assert_int_gt(3 * t.paid, t.plans);
    ck_assert_int_ge(t.twice, t.paid);
    ck_assert_int_eq(t.missed, 0);
    ck_assert_int_eq(t.optimal, t.plans);
}
END_TEST

/* Bytes of all gradients of weights. If none is made twice, all are live when their factor is
 * made. */
static int64_t gradient_bytes(const LsDag *g)
{
    int64_t bytes = 0;
    for (uint32_t t = 0; t < g->ntensor; t++)
        bytes += strncmp(g->tensor[t].name, "dw", 2) == 0 ? g->tensor[t].bytes : 0;
    return bytes;
}

/* These graphs have too many states to search them all. */
START_TEST(larger_graphs_get_plans_where_no_plan_of_single_backward_runs_fits)
{
    for (uint64_t seed = 0; seed < (uint64_t)tests_part(24, 3); seed++) {
        char why[400];
        LsArena *a = ls_arena_new();
        const LsDag *g = clip_graph(a, 5 + seed % 9, seed);
        LsPlan plan;
        LsPlanReport r;
        LsPlanner *planner = ls_planner_new(a, g, &(LsPlanOptions){.seconds = 1e6, .effort = 2});
        for (int part = 0; part < 3; part++) {
            ck_assert(part == 0 ? ls_planner_least(planner, "auto", &plan, &r)
                                : ls_planner_ask(planner, "auto",
                                                 gradient_bytes(g) * (6 + part) / 10, &plan, &r));
            ck_assert_msg(ls_audit(g, &plan, why, sizeof why), "%s: %s", g->name, why);
            ck_assert(r.bound <= plan.cost * (1 + 1e-9) && r.least_bound <= plan.live_peak);
            ck_assert_int_lt(plan.arena, gradient_bytes(g));
            ck_assert_int_gt(backward_again(g, &plan), 0);
        }
        ls_planner_free(planner);
        ls_arena_free(a);
    }
}
END_TEST

/* Inserts another run of the step's node behind step s; its results lie beyond all others. */
static LsPlan with_again(LsArena *a, const LsDag *g, const LsPlan *plan, uint32_t s)
{
    LsPlan more = *plan;
    const LsDagNode *n = &g->node[plan->step[s].id];
    const uint32_t frees = n->nout;
    more.step = ls_arena_alloc(a, plan->nstep + 1u + frees, sizeof *more.step);
    more.offset = ls_arena_alloc(a, plan->noffset + n->nout + 1u, sizeof *more.offset);
    memcpy(more.offset, plan->offset, plan->noffset * sizeof *more.offset);
    memcpy(more.step, plan->step, (s + 1u) * sizeof *more.step);
    more.nstep = s + 1;
    for (uint32_t k = 0; k < frees; k++)
        more.step[more.nstep++] = (LsPlanStep){.free = true, .id = n->out[k]};
    more.step[more.nstep] = plan->step[s];
    more.step[more.nstep].again = true;
    more.step[more.nstep].nreuse = 0;
    more.step[more.nstep++].offset = more.noffset;
    for (uint32_t k = 0; k < n->nout; k++)
        more.offset[more.noffset++] = plan->offset[plan->step[s].offset + k];
    memcpy(more.step + more.nstep, plan->step + s + 1, (plan->nstep - s - 1u) * sizeof *more.step);
    more.nstep += plan->nstep - s - 1;
    more.cost += n->cost;
    return more;
}

START_TEST(the_audit_refuses_a_second_run_of_updates_and_statistics_alone)
{
    int refused = 0, accepted = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        char why[400];
        LsArena *a = ls_arena_new();
        const LsDag *g = clip_graph(a, 2 + seed % 2, seed);
        LsPlan plan;
        ck_assert(ls_plan_none(a, g, &plan));
        for (uint32_t s = 0; s < plan.nstep; s++) {
            const LsDagNode *n = &g->node[plan.step[s].id];
            if (plan.step[s].free
                || (!is_once(n) && (plan.step[s].nreuse > 0 || n->kind != LS_DAG_BACKWARD)))
                continue;
            const LsPlan more = with_again(a, g, &plan, s);
            const bool good = ls_audit(g, &more, why, sizeof why);
            ck_assert_msg(good == !is_once(n), "%s, %s twice: %s", g->name, n->name,
                          good ? "accepted" : why);
            ck_assert(good || strstr(why, "runs a second time") != NULL);
            refused += !good;
            accepted += good;
        }
        ls_arena_free(a);
    }
    ck_assert_int_gt(refused, 80);
    ck_assert_int_gt(accepted, 80);
}
END_TEST

/* Exit status of the judge about a plan within a budget. */
static int judged(const char *judge, const LsDag *g, const LsPlan *plan, const LsPlanReport *r)
{
    char graph[] = "/tmp/lowerset-graph-XXXXXX", steps[] = "/tmp/lowerset-plan-XXXXXX",
         command[4096];
    FILE *to[2] = {fdopen(mkstemp(graph), "w"), fdopen(mkstemp(steps), "w")};
    ck_assert(to[0] != NULL && to[1] != NULL);
    ls_dag_write(to[0], g);
    ls_plan_write(to[1], g, plan, r);
    fclose(to[0]);
    fclose(to[1]);
    snprintf(command, sizeof command, "python3 %s %s %s >/dev/null 2>&1", judge, graph, steps);
    const int status = system(command);
    unlink(graph);
    unlink(steps);
    return status == -1 ? -1 : WEXITSTATUS(status);
}

START_TEST(the_judge_accepts_backward_nodes_that_run_twice_and_refuses_updates_that_do)
{
    enum { PLANS = 5, BREAKS_A_RULE = 1 };
    char path[SHARED_PATH];
    const char *judge = shared_file(path, "judge/judge.py");
    ck_assert_ptr_nonnull(judge);
    if (system("python3 -c pass >/dev/null 2>&1") != 0) {
        printf("skipped: no python3 to run the judge\n");
        return;
    }
    int plans = 0;
    for (uint64_t seed = 0; seed < 4 * PLANS && plans < PLANS; seed++) {
        LsArena *a = ls_arena_new();
        const LsDag *g = clip_graph(a, 2 + seed % 2, seed);
        LsPlan plan;
        LsPlanReport r;
        LsPlanner *planner = ls_planner_new(a, g, &(LsPlanOptions){.seconds = 1e6, .effort = 2});
        if (ls_planner_least(planner, "auto", &plan, &r) && backward_again(g, &plan) > 0) {
            plans++;
            ck_assert_msg(judged(judge, g, &plan, &r) == 0, "%s: the judge refuses", g->name);
            for (uint32_t s = 0; s < plan.nstep && plans == PLANS; s++)
                if (!plan.step[s].free && g->node[plan.step[s].id].nupd > 0) {
                    const LsPlan more = with_again(a, g, &plan, s);
                    ck_assert_int_eq(judged(judge, g, &more, &r), BREAKS_A_RULE);
                }
        }
        ls_planner_free(planner);
        ls_arena_free(a);
    }
    ck_assert_int_eq(plans, PLANS);
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        plans_that_run_backward_nodes_twice_are_the_best_of_all,
        larger_graphs_get_plans_where_no_plan_of_single_backward_runs_fits,
        the_audit_refuses_a_second_run_of_updates_and_statistics_alone,
        the_judge_accepts_backward_nodes_that_run_twice_and_refuses_updates_that_do,
    };
    TCase *tc = tcase_create("run_backward_twice");
    tcase_set_timeout(tc, 120);
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("run_backward_twice", tc);
}
