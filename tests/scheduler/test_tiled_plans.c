/* tests/scheduler/test_tiled_plans.c -- plans in tiles against all tilings and all orders.
 *
 * Small random graphs of up to eight nodes that can be split: a map makes a value of samples from
 * values of samples, tile by tile; a sum makes a small value of all tiles, which maps behind it
 * read, so all tiles must run before. */
#include <check.h>
#include <stdio.h>

#include "scheduler/plan/planner.h"
#include "tests/support/dag_tools.h"
#include "tests/support/exhaust.h"
#include "tests/support/less.h"
#include "tests/support/suite.h"

enum { SPLIT = 8, MOST_TILES = 3, MOST = SPLIT * (MOST_TILES + 1), BITS = 17 };

typedef struct Layer {          /* a node that can be split */
    bool sum;
    uint32_t from[2], nfrom;    /* layers whose values it reads */
    int64_t bytes;              /* of its value; of a sum's state */
    double cost;
} Layer;

typedef struct Net {
    Layer layer[SPLIT];
    uint32_t n;
} Net;

typedef struct Split {          /* a net in tiles */
    LsDag g;
    LsDagTensor tensor[MOST];
    LsDagNode node[MOST];
    uint32_t id[8 * MOST], nid;
    uint32_t value[SPLIT][MOST_TILES];      /* by layer: its tiles; of a sum: the whole */
} Split;

static Net random_net(uint64_t *rnd)
{
    Net x = {.n = 4 + dag_random(rnd, SPLIT - 3)};
    for (uint32_t k = 0; k < x.n; k++) {
        Layer *l = &x.layer[k];
        l->sum = k + 1 == x.n || (k > 0 && !x.layer[k - 1].sum && dag_random(rnd, 4) == 0);
        l->bytes = l->sum ? 1 + dag_random(rnd, 2) : 6 * (1 + dag_random(rnd, 6));
        l->cost = 6 * (1 + dag_random(rnd, 9));
        if (k > 0)
            l->from[l->nfrom++] = k - 1;
        if (k > 1 && dag_random(rnd, 2))
            l->from[l->nfrom++] = dag_random(rnd, k - 1);
    }
    return x;
}

static uint32_t add_tensor(Split *s, int64_t bytes, bool output)
{
    s->tensor[s->g.ntensor] = (LsDagTensor){"t", bytes, false, output};
    return s->g.ntensor++;
}

static void add_node(Split *s, const Net *x, uint32_t k, uint32_t tile, uint32_t tiles,
                     uint32_t state)
{
    const Layer *l = &x->layer[k];
    LsDagNode *n = &s->node[s->g.nnode++];
    *n = (LsDagNode){.name = "n", .op = l->sum ? "Sum" : "Map", .cost = l->cost / tiles, .of = -1};
    n->in = s->id + s->nid;
    for (uint32_t j = 0; j < l->nfrom; j++)
        s->id[s->nid + n->nin++] =
            s->value[l->from[j]][x->layer[l->from[j]].sum ? 0 : tile];
    if (l->sum && tile > 0)
        s->id[s->nid + n->nin++] = state;
    s->nid += n->nin;
    n->out = s->id + s->nid;
    n->nout = 1;
}

/* As the tiler does: a sum goes on from tile to tile in a state. */
static void split(const Net *x, uint32_t tiles, Split *s)
{
    *s = (Split){.g = {.name = "tiles", .alignment = 1, .tensor = s->tensor, .node = s->node}};
    for (uint32_t k = 0; k < x->n; k++)
        for (uint32_t t = 0, state = 0; t < tiles; t++) {
            const Layer *l = &x->layer[k];
            add_node(s, x, k, t, tiles, state);
            state = add_tensor(s, l->sum ? l->bytes : l->bytes / tiles,
                               k + 1 == x->n && t + 1 == tiles);
            s->id[s->nid++] = state;
            s->value[k][l->sum ? 0 : t] = state;
        }
}

typedef struct Tally { int plans, best, least, least_best, tiled, bound; } Tally;

static double cost_within(LsPlanner *planner, const Split *s, int64_t budget, double best,
                          Tally *tally)
{
    LsPlan plan;
    LsPlanReport r;
    if (!ls_planner_ask(planner, "auto", budget, &plan, &r))
        return INFINITY;
    ck_assert_int_le(plan.arena, budget);
    ck_assert_msg(best >= 0 && plan.cost >= best - 1e-9, "%g beats the search of all, %g",
                  plan.cost, best);
    ck_assert_msg(r.bound <= best + 1e-9, "bound %g above %g of %u nodes", r.bound, best,
                  s->g.nnode);
    tally->plans++;
    tally->best += plan.cost <= best + 1e-9;
    return plan.cost;
}

/* Plans one tiling for its least and for budgets above; cost[]: of the best of all tilings so far,
 * planned and searched. Returns the least peak of all orders. */
static double check_tiling(const Split *s, const int64_t *budget, uint32_t n, double *cost,
                           double *searched, Tally *tally)
{
    LsArena *a = ls_arena_new();
    LsPlan plan;
    LsPlanReport r;
    LsPlanOptions o = {.seconds = 1e6, .effort = 30};
    LsPlanner *planner = ls_planner_new(a, &s->g, &o);
    const double least = exhaust(&s->g, true, true, 0);
    ck_assert(ls_planner_least(planner, "auto", &plan, &r));
    ck_assert_int_ge(plan.live_peak, (int64_t)least);
    ck_assert_int_le(r.least_bound, (int64_t)least);
    tally->least++;
    tally->least_best += plan.live_peak == (int64_t)least;
    tally->bound += r.least_bound == (int64_t)least;
    for (uint32_t k = 0; k < n; k++) {
        const double best = exhaust(&s->g, true, false, (double)budget[k]);
        const double mine = cost_within(planner, s, budget[k], best, tally);
        cost[k] = fmin(cost[k], mine);
        searched[k] = best < 0 ? searched[k] : fmin(searched[k], best);
        ck_assert_msg(best >= 0 || mine == INFINITY, "a plan where none can be");
    }
    ls_planner_free(planner);
    ls_arena_free(a);
    return least;
}

START_TEST(plans_of_all_tilings_are_the_best_of_all_orders)
{
    enum { BUDGETS = 4 };
    Tally tally = {0};
    uint64_t rnd = 48;
    const int rounds = tests_part(60, 16);
    int same = 0, all = 0;
    for (int round = 0; round < rounds; round++) {
        Net x = random_net(&rnd);
        static Split s[MOST_TILES + 1];
        split(&x, 1, &s[1]);
        LsArena *a = ls_arena_new();
        LsPlan none;
        ck_assert(ls_plan_none(a, &s[1].g, &none));
        int64_t budget[BUDGETS];
        double cost[BUDGETS], searched[BUDGETS], whole = 0;
        for (int k = 0; k < BUDGETS; k++) {
            budget[k] = none.live_peak * (4 + 2 * k) / 10;
            cost[k] = searched[k] = INFINITY;
        }
        for (uint32_t tiles = 1; tiles <= MOST_TILES; tiles++) {
            split(&x, tiles, &s[tiles]);
            if (s[tiles].g.ntensor > BITS)
                continue;
            const double least = check_tiling(&s[tiles], budget, BUDGETS, cost, searched, &tally);
            whole = tiles == 1 ? least : whole;
            tally.tiled += least < whole;
        }
        for (int k = 0; k < BUDGETS; k++) {
            all += searched[k] < INFINITY;
            same += searched[k] < INFINITY && cost[k] <= searched[k] + 1e-9;
            ck_assert_msg(k == 0 || cost[k] <= cost[k - 1] + 1e-9, "dearer with more memory");
        }
        ls_arena_free(a);
    }
    printf("%d tilings: least %d times that of all orders, proven %d times, %d times below whole "
           "values; %d plans, %d as good as can be; best tiling %d of %d\n", tally.least,
           tally.least_best, tally.bound, tally.tiled, tally.plans, tally.best, same, all);
    ck_assert_int_gt(tally.tiled, rounds / 3);
    ck_assert_int_gt(10 * tally.least_best, 9 * tally.least);
    ck_assert_int_gt(10 * tally.best, 9 * tally.plans);
    ck_assert_int_gt(10 * same, 9 * all);
}
END_TEST

int main(void)
{
    const TTest *const test[] = {plans_of_all_tilings_are_the_best_of_all_orders};
    TCase *tc = tcase_create("tiled_plans");
    tcase_set_timeout(tc, 300);
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("tiled_plans", tc);
}
