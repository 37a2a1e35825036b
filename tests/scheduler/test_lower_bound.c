/* tests/scheduler/test_lower_bound.c -- lower bounds against the best of all schedules. */
#include <check.h>
#include <string.h>

#include "scheduler/bounds/cut_line.h"
#include "scheduler/bounds/least_peak.h"
#include "scheduler/bounds/lower_bound.h"
#include "scheduler/plan/planner.h"
#include "tests/support/dag_tools.h"
#include "tests/support/exhaust.h"
#include "tests/support/less.h"
#include "tests/support/suite.h"

enum { NODES = 8, TENSORS = 12 };

typedef struct Tiny {
    LsDag g;
    LsDagTensor tensor[TENSORS];
    LsDagNode node[NODES + 4];
    uint32_t id[24 * NODES], nid;
    LsDagPair pair[4 * NODES];
    uint32_t npair;
} Tiny;

static void tiny_reads(Tiny *x, LsDagNode *n, uint64_t *rnd, uint32_t below)
{
    n->in = x->id + x->nid;
    for (uint32_t k = dag_random(rnd, 3); k > 0 && below > 0; k--) {
        uint32_t t = below - 1 - dag_random(rnd, below < 4 ? below : 4);
        if (!ls_id_in(n->in, n->nin, t))
            x->id[x->nid + n->nin++] = t;
    }
    x->nid += n->nin;
}

static void tiny_pairs(Tiny *x, LsDagNode *n, uint64_t *rnd)
{
    n->inplace = x->pair + x->npair;
    for (uint32_t k = 0; k < n->nin && n->nout > 0; k++)
        if (!x->g.tensor[n->in[k]].persistent && dag_random(rnd, 3) == 0)
            x->pair[x->npair + n->ninplace++] =
                (LsDagPair){n->out[dag_random(rnd, n->nout)], n->in[k]};
    x->npair += n->ninplace;
}

/* Tensor 0 is persistent; the others come one or two a node. Then an alternative. */
static void tiny_make(Tiny *x, uint64_t *rnd, bool whole)
{
    uint32_t n = 4 + dag_random(rnd, NODES - 4);
    *x = (Tiny){.g = {.name = "tiny", .alignment = 1, .tensor = x->tensor, .node = x->node}};
    x->tensor[x->g.ntensor++] = (LsDagTensor){"w", 5, true, false};
    for (uint32_t v = 0; v < n && x->g.ntensor + 2 < TENSORS; v++) {
        LsDagNode *node = &x->node[x->g.nnode++];
        *node = (LsDagNode){.name = "n", .op = "N", .of = -1};
        node->kind = 2 * v < n ? LS_DAG_FORWARD : LS_DAG_BACKWARD;
        node->cost = whole ? 2 * (1 + dag_random(rnd, 4)) : 0.1 + dag_random(rnd, 900) / 99.0;
        node->workspace = dag_random(rnd, 3) ? 0 : dag_random(rnd, 5);
        node->once = dag_random(rnd, 9) == 0;
        node->required = dag_random(rnd, 9) == 0;
        tiny_reads(x, node, rnd, x->g.ntensor);
        node->out = x->id + x->nid;
        for (node->nout = 1 + (dag_random(rnd, 5) == 0); x->nid < node->out - x->id + node->nout;)
            x->id[x->nid++] = x->g.ntensor++;
        for (uint32_t k = 0; k < node->nout; k++)
            x->tensor[node->out[k]] = (LsDagTensor){
                "t", dag_random(rnd, 12), false, v + 1 == n || dag_random(rnd, 6) == 0};
        tiny_pairs(x, node, rnd);
    }
}

static void tiny_alternative(Tiny *x, uint64_t *rnd)
{
    LsDagNode *node = &x->node[x->g.nnode];
    const LsDagNode *of = &x->node[dag_random(rnd, x->g.nnode)];
    *node = (LsDagNode){.name = "a", .op = "A", .of = -1, .alternative = true};
    node->cost = 1 + dag_random(rnd, 5);
    tiny_reads(x, node, rnd, x->g.ntensor);
    node->out = of->out + dag_random(rnd, of->nout);
    node->nout = 1;
    if (!ls_id_in(node->in, node->nin, node->out[0]))
        x->g.nnode++;
}

/* The node that makes t, or NULL. */
static const LsDagNode *tiny_maker(const Tiny *x, uint32_t t)
{
    for (uint32_t v = 0; v < x->g.nnode; v++)
        if (!x->node[v].alternative && ls_id_in(x->node[v].out, x->node[v].nout, t))
            return &x->node[v];
    return NULL;
}

/* An alternative of a node that computes one of its operands itself: it reads the operands of that
 * operand's maker. */
static void tiny_fused(Tiny *x, uint64_t *rnd)
{
    LsDagNode *node = &x->node[x->g.nnode];
    const LsDagNode *of = &x->node[dag_random(rnd, x->g.nnode)];
    if (of->nin == 0)
        return;
    uint32_t inner = of->in[dag_random(rnd, of->nin)];
    const LsDagNode *maker = tiny_maker(x, inner);
    *node = (LsDagNode){.name = "f", .op = "F", .of = -1, .alternative = true};
    node->cost = of->cost + (dag_random(rnd, 3) ? 0.5 : -0.05);
    node->in = x->id + x->nid;
    for (uint32_t k = 0; k < of->nin; k++)
        if (of->in[k] != inner)
            x->id[x->nid + node->nin++] = of->in[k];
    for (uint32_t k = 0; maker != NULL && k < maker->nin; k++)
        if (!ls_id_in(node->in, node->nin, maker->in[k]))
            x->id[x->nid + node->nin++] = maker->in[k];
    node->out = of->out;
    node->nout = of->nout;
    if (maker != NULL && maker != of) {
        x->nid += node->nin;
        x->g.nnode++;
    }
}

/* An update of tensor 0; nodes that read tensor 0 must come before. */
static void tiny_update(Tiny *x, uint64_t *rnd)
{
    LsDagNode *node = &x->node[x->g.nnode++];
    *node = (LsDagNode){.name = "u", .op = "U", .of = -1, .kind = LS_DAG_OPTIMIZER, .cost = 1};
    tiny_reads(x, node, rnd, x->g.ntensor);
    node->upd = x->id + x->nid;
    node->nupd = 1;
    x->id[x->nid++] = 0;
}

typedef struct Tally { int schedules, none, tight, least; double lost; } Tally;

/* The separators' bound holds; trying all schedules finds the optimum itself. */
static void check_budget(const Tiny *x, bool inplace, int64_t budget, int64_t least, Tally *tally)
{
    LsArena *a = ls_arena_new();
    LsProb *p = ls_prob_new(a, &x->g, inplace);
    double best = exhaust(&x->g, inplace, false, (double)budget);
    LsBound b = ls_bound(p, budget, &(LsBoundOptions){.relaxed = true});
    LsBound all = ls_bound(p, budget, &(LsBoundOptions){0});
    ck_assert_int_le(b.least, least);
    tally->least += b.least == least;
    ck_assert_int_eq(all.least, least);
    ck_assert_int_eq(all.infeasible, best < 0);
    if (best >= 0) {
        ck_assert_msg(!b.infeasible, "called infeasible at %ld, least %ld", (long)budget,
                      (long)least);
        ck_assert_msg(b.cost <= best, "bound %.17g above %.17g at %ld", b.cost, best,
                      (long)budget);
        ck_assert_msg(all.cost <= best && all.cost > best - 1e-9, "%.17g is not %.17g at %ld",
                      all.cost, best, (long)budget);
        tally->schedules++;
        tally->tight += b.cost >= best - 1e-9;
        tally->lost += best - b.cost;
    } else {
        tally->none++;
    }
    ls_arena_free(a);
}

typedef enum { PLAIN, UPDATES, ALTERNATIVES, FUSED } Kind;

static void check_random(Kind kind, uint64_t seed, int rounds)
{
    Tally tally = {0};
    uint64_t rnd = seed;
    for (int round = 0; round < rounds; round++) {
        Tiny x;
        tiny_make(&x, &rnd, round % 2);
        if (kind == UPDATES)
            tiny_update(&x, &rnd);
        if (kind == ALTERNATIVES)
            tiny_alternative(&x, &rnd);
        for (int k = 0; kind == FUSED && k < 3; k++)
            tiny_fused(&x, &rnd);
        bool inplace = dag_random(&rnd, 2);
        double least = exhaust(&x.g, inplace, true, 0);
        if (least < 0)
            continue;
        for (int64_t b = (int64_t)least - 1; b < (int64_t)least + 6; b += 2)
            check_budget(&x, inplace, b > 0 ? b : 1, (int64_t)least, &tally);
    }
    printf("%d schedules, separators prove %d optimal, %.2f lost on average; %d infeasible, "
           "the least peak %d times\n", tally.schedules, tally.tight,
           tally.lost / (tally.schedules + 1), tally.none, tally.least);
    ck_assert_int_gt(tally.schedules, rounds);
    ck_assert_int_gt(2 * tally.tight, tally.schedules);
    ck_assert_int_gt(3 * tally.least, 2 * (tally.schedules + tally.none));
}

START_TEST(no_schedule_of_a_random_graph_beats_the_bound)
{
    check_random(PLAIN, 1, 60);
}
END_TEST

START_TEST(no_schedule_with_updates_beats_the_bound)
{
    check_random(UPDATES, 2, 60);
}
END_TEST

START_TEST(no_schedule_with_alternatives_beats_the_bound)
{
    check_random(ALTERNATIVES, 3, 60);
}
END_TEST

START_TEST(no_schedule_with_fused_operands_beats_the_bound)
{
    check_random(FUSED, 5, 600);
}
END_TEST

START_TEST(a_curve_holds_everywhere_and_falls_as_budgets_grow)
{
    uint64_t rnd = 4;
    for (int round = 0; round < 12; round++) {
        enum { POINTS = 20 };
        Tiny x;
        tiny_make(&x, &rnd, round % 2);
        LsArena *a = ls_arena_new();
        LsProb *p = ls_prob_new(a, &x.g, true);
        LsBounder *bounder = ls_bounder_new(p, &(LsBoundOptions){0});
        int64_t budget[POINTS];
        double cost[POINTS];
        for (int k = 0; k < POINTS; k++)
            budget[k] = k + 1;
        ls_bounder_curve(bounder, budget, POINTS, cost);
        for (int k = 0; k < POINTS; k++) {
            double best = exhaust(&x.g, true, false, (double)budget[k]);
            ck_assert(best < 0 || cost[k] <= best);
            ck_assert(k == 0 || cost[k] <= cost[k - 1]);
        }
        ls_bounder_free(bounder);
        ls_arena_free(a);
    }
}
END_TEST

static int64_t store_all(LsArena *a, const LsDag *g)
{
    LsPlan plan;
    LsPlanReport r;
    ck_assert(ls_plan(a, g, &(LsPlanOptions){.strategy = "none"}, &plan, &r));
    return r.store_all;
}

/* Costs that judge/optimal.py --brute finds; 0: that nothing fits. */
START_TEST(tiny_shared_graphs_are_solved_exactly)
{
    static const struct { const char *name; double part, cost, inplace; } row[] = {
        {"chain4", 0.9, 434, 398}, {"chain4", 0.7, 0, 470}, {"res1", 0.9, 608, 579},
        {"res1", 0.7, 0, 608}, {"chain6opt", 0.9, 730, 694}, {"chain6opt", 0.7, 865, 730},
        {"skip5", 0.9, 280, 272}, {"skip5", 0.7, 0, 0}, {"dag5", 0.9, 1080, 1080},
        {"dag5", 0.7, 1771, 1758},
    };
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        LsArena *a = ls_arena_new();
        char name[64];
        snprintf(name, sizeof name, "graphs/%s.json", row[k].name);
        const LsDag *g = dag_shared(a, name);
        int64_t budget = g ? (int64_t)ceil((double)store_all(a, g) * row[k].part / 1024) * 1024 : 0;
        for (int inplace = 0; g != NULL && inplace < 2; inplace++) {
            LsBound b = ls_bound(ls_prob_new(a, g, inplace), budget, &(LsBoundOptions){0});
            double cost = inplace ? row[k].inplace : row[k].cost;
            ck_assert_int_eq(b.infeasible, cost == 0);
            ck_assert_msg(cost == 0 || fabs(b.cost - cost) < 1e-9, "%s at %g: %g, not %g",
                          row[k].name, row[k].part, b.cost, cost);
        }
        ls_arena_free(a);
    }
}
END_TEST

/* What judge/bound.py --stages 20 --lp proves without and with --inplace. */
START_TEST(shared_graphs_are_bounded_no_worse_than_by_a_linear_program)
{
    static const struct { const char *name; double part, lp, inplace; } row[] = {
        {"graphs/chain16", 0.6, 1736.559, 1724.047}, {"graphs/unet3", 0.6, 1649.779, 1636.112},
        {"graphs/resnet4", 0.6, 1854.973, 1844.492}, {"graphs/inception2", 0.6, 554.906, 553.985},
        {"graphs/transformer2", 0.6, 2150.923, 2150.923},
        {"graphs/mobile3", 0.6, 1508.544, 1457.982},
        {"graphs/sp16", 0.6, 1253.197, 1253.197}, {"graphs/dag16", 0.8, 3953.531, 3953.531},
        {"graphs/dag16", 0.6, 3995.590, 3995.590}, {"published/unet", 0.8, 663.676, 663.676},
        {"published/unet", 0.6, 684.923, 684.923}, {"published/vgg19", 0.6, 556.531, 556.531},
        {"published/googlenet", 0.6, 1966.182, 1965.978},
        {"published/resnet50", 0.6, 1881.833, 1881.833},
    };
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        LsArena *a = ls_arena_new();
        char name[64];
        snprintf(name, sizeof name, "%s.json", row[k].name);
        const LsDag *g = dag_shared(a, name);
        int64_t budget = g ? (int64_t)ceil((double)store_all(a, g) * row[k].part / 1024) * 1024 : 0;
        for (int inplace = 0; g != NULL && inplace < 2; inplace++) {
            LsBound b = ls_bound(ls_prob_new(a, g, inplace), budget, &(LsBoundOptions){0});
            double lp = inplace ? row[k].inplace : row[k].lp;
            ck_assert_msg(b.cost >= lp - 0.001, "%s at %g: %g, below %g", name, row[k].part, b.cost,
                          lp);
        }
        ls_arena_free(a);
    }
}
END_TEST

START_TEST(a_plan_that_costs_as_much_as_the_bound_is_called_optimal)
{
    LsArena *a = ls_arena_new();
    const LsDag *g = dag_shared(a, "graphs/chain8.json");
    if (g != NULL) {
        LsPlan plan;
        LsPlanReport r;
        int64_t full = store_all(a, g);
        ck_assert(ls_plan(a, g, &(LsPlanOptions){.budget.bytes = full * 6 / 10, .effort = 20},
                          &plan, &r));
        ck_assert(plan.cost > plan.base_cost);
        ck_assert(ls_plan_gap(&plan, &r) == 0);
        ck_assert(r.separator < g->nnode);
        ck_assert(
            !ls_plan(a, g, &(LsPlanOptions){.budget.bytes = full / 2, .effort = 4}, &plan, &r));
        ck_assert(r.impossible);
        ck_assert_int_gt(r.least_bound, full / 2);
        ck_assert_ptr_nonnull(strstr(r.error, "no plan of any kind can do with less"));
    }
    ls_arena_free(a);
}
END_TEST

START_TEST(plans_of_random_training_graphs_keep_the_bounds)
{
    for (uint64_t seed = 0; seed < 8; seed++) {
        LsArena *a = ls_arena_new();
        const LsDag *g = dag_make(a, 4 + seed % 20, seed);
        int64_t full = store_all(a, g);
        LsPlanner *planner = ls_planner_new(a, g, &(LsPlanOptions){.effort = 2});
        for (int part = 10; part >= 4; part -= 2) {
            LsPlan plan;
            LsPlanReport r;
            bool fits = ls_planner_ask(planner, "auto", full * part / 10, &plan, &r);
            ck_assert_int_le(r.least_bound, r.least);
            ck_assert(!fits || (!r.impossible && r.bound <= plan.cost * (1 + 1e-12)));
            ck_assert(!fits || r.least_bound <= plan.live_peak);
        }
        ls_planner_free(planner);
        ls_arena_free(a);
    }
}
END_TEST

/* A report certifies the exact least memory of any plan, to the byte. */
START_TEST(the_least_that_a_report_certifies_is_the_optimum_to_the_byte)
{
    uint64_t rnd = 77;
    const int rounds = tests_part(60, 24);
    int some = 0;
    for (int round = 0; round < rounds; round++) {
        Tiny x;
        tiny_make(&x, &rnd, round % 2);
        double least = exhaust(&x.g, true, true, 0);
        LsArena *a = ls_arena_new();
        LsPlan plan;
        LsPlanReport r;
        LsPlanOptions o = {.budget.bytes = 1000, .effort = 5};
        if (least >= 0 && ls_plan(a, &x.g, &o, &plan, &r)) {
            ck_assert_int_eq(r.least_bound, (int64_t)least);
            some++;
        }
        if (least > 1) {
            o.budget.bytes = (int64_t)least - 1;
            ck_assert(!ls_plan(a, &x.g, &o, &plan, &r));
            ck_assert(r.impossible);
            ck_assert_int_eq(r.least_bound, (int64_t)least);
            char *says = ls_arena_printf(a, "can do with less than %d", (int)least);
            ck_assert_msg(strstr(r.error, says) != NULL, "%s", r.error);
        }
        ls_arena_free(a);
    }
    ck_assert_int_gt(3 * some, 2 * rounds);
}
END_TEST

/* Bytes that a search of all schedules of the largest tensors proves, and that no node takes
 * alone. */
START_TEST(the_largest_tensors_prove_more_than_one_node)
{
    static const struct { const char *name; int64_t least; } row[] = {
        {"chain64", 26214400}, {"resnet4", 26492928}, {"inception2", 7225344},
        {"dense4", 16777216}, {"transformer2", 20971520}, {"mobile3", 48570368},
    };
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        LsArena *a = ls_arena_new();
        char name[64];
        snprintf(name, sizeof name, "graphs/%s.json", row[k].name);
        const LsDag *g = dag_shared(a, name);
        if (g != NULL) {
            const LsBoundGraph *b = ls_bound_graph_new(a, ls_prob_new(a, g, true));
            int64_t own = 0;
            for (uint32_t v = 0; v < g->nnode; v++)
                own = b->needed[v] && b->own[v] > own ? b->own[v] : own;
            const int64_t least = ls_least_peak(b, own, 60000);
            ck_assert_int_gt(least, own);
            ck_assert_int_ge(least, row[k].least);
        }
        ls_arena_free(a);
    }
}
END_TEST

/* A chain with more nodes than the exact search takes. Its least memory is known: the largest
 * operand and result together. */
START_TEST(the_least_certified_for_a_long_chain_is_its_largest_pair)
{
    enum { N = 90 };
    LsDagTensor tensor[N + 1] = {{"x", 5, true, false}};
    LsDagNode node[N];
    uint32_t id[N + 1];
    uint64_t rnd = 3;
    int64_t most = 0;
    for (uint32_t v = 0; v < N; v++) {
        tensor[v + 1] = (LsDagTensor){"t", 100 + dag_random(&rnd, 900), false, v + 1 == N};
        id[v] = v;
        id[v + 1] = v + 1;
        node[v] = (LsDagNode){.name = "n", .op = "N", .cost = 1, .of = -1, .in = id + v, .nin = 1,
                              .out = id + v + 1, .nout = 1};
        int64_t both = tensor[v + 1].bytes + (v > 0 ? tensor[v].bytes : 0);
        most = both > most ? both : most;
    }
    LsDag g = {.name = "chain", .alignment = 1, .tensor = tensor, .ntensor = N + 1, .node = node,
               .nnode = N};
    LsArena *a = ls_arena_new();
    LsPlan plan;
    LsPlanReport r;
    ck_assert(ls_plan(a, &g, &(LsPlanOptions){.budget.bytes = most, .effort = 2}, &plan, &r));
    ck_assert_int_eq(r.least_bound, most);
    ck_assert_int_eq(plan.live_peak, most);
    ck_assert(ls_plan(a, &g, &(LsPlanOptions){.strategy = "none"}, &plan, &r));
    ck_assert_int_eq(r.least_bound, most);          /* from each node alone */
    ls_arena_free(a);
}
END_TEST

/* If prices prove a budget too small, the least rises to one byte above it, and no further. */
START_TEST(a_budget_proven_too_small_raises_the_least_to_the_next_byte)
{
    int some = 0;
    for (uint64_t seed = 0; seed < (uint64_t)tests_part(60, 20); seed++) {
        LsArena *a = ls_arena_new();
        LsProb *p = ls_prob_new(a, dag_make(a, 8 + seed % 20, seed), true);
        LsBounder *c = ls_bounder_new(p, &(LsBoundOptions){.relaxed = true});
        int64_t least = ls_bounder_at(c, INT64_MAX / 64, 0).least;
        LsBound b = ls_bounder_at(c, least, 0);
        for (; b.infeasible && b.least > least; b = ls_bounder_at(c, least, 0)) {
            some += b.least == least + 1;           /* else separators prove more by themselves */
            least = b.least;
        }
        ls_bounder_free(c);
        ls_arena_free(a);
    }
    printf("%d budgets proven too small by prices\n", some);
    ck_assert_int_gt(some, 0);
}
END_TEST

/* Prices and results that must not depend on a machine's rounding, at signs and sizes where they
 * could. */
START_TEST(a_line_proves_the_same_whole_grains_on_every_machine)
{
    static const struct { int64_t value, budget, fixed; double price, want; } row[] = {
        {1000, 100, 0, 0.5, 948},           /* 950, less one and the allowance for rounding */
        {1000, 100, 200, 0.5, 1048},        /* more than fits costs more */
        {0, 3, 0, 0.5, -3},                 /* slightly more than -2.5, rounded down */
        {7, INT64_MAX, 0, 0, 5},
        {INT64_C(1) << 42, INT64_C(1) << 62, 0, 0x1p-21, (double)(INT64_C(1) << 41) - 2},
        {1000, INT64_C(1) << 50, 0, 0x1p-200, 998},
        {1000, INT64_C(1) << 46, 0, 1, -0x1p46 + 1000 - 2},
        {1000, INT64_C(1) << 62, 0, 1, -0x1p62},        /* no sum of 64 bits */
        {1000, 1, 0, 0x1p300, -0x1p62},
    };
    for (size_t k = 0; k < sizeof row / sizeof *row; k++) {
        int64_t fixed = row[k].fixed;
        double price = row[k].price;
        LsBoundNet net = {.nsep = 1, .fixed = &fixed};
        LsBoundLine line = {row[k].value, &price};
        double got = ls_bound_line_at(&net, &line, row[k].budget);
        ck_assert_msg(got == row[k].want, "row %zu: %.17g, not %.17g", k, got, row[k].want);
    }
}
END_TEST

/* Against exact sums of multiples of 2^-30 grains: never more, and hardly less. */
START_TEST(a_line_proves_no_more_than_the_exact_sum)
{
    enum { SEPARATORS = 6 };
    uint64_t rnd = 5;
    for (int round = 0; round < 2000; round++) {
        int64_t fixed[SEPARATORS], budget = (int64_t)dag_random(&rnd, 1u << 30) << 7, sum = 0;
        double price[SEPARATORS];
        for (int k = 0; k < SEPARATORS; k++) {
            int64_t units = dag_random(&rnd, 1u << (1 + dag_random(&rnd, 21)));
            fixed[k] = (int64_t)dag_random(&rnd, 1u << 30) << 6;
            price[k] = (double)units * 0x1p-30;
            sum += units * (budget - fixed[k]);
        }
        LsBoundNet net = {.nsep = SEPARATORS, .fixed = fixed};
        LsBoundLine line = {(int64_t)dag_random(&rnd, 1u << 30), price};
        double got = ls_bound_line_at(&net, &line, budget);
        double exact = (double)line.value - (double)sum * 0x1p-30;
        ck_assert_msg(got <= exact && got >= exact - 2.1, "%.17g, exact %.17g", got, exact);
    }
}
END_TEST

int main(void)
{
    const TTest *const test[] = {
        no_schedule_of_a_random_graph_beats_the_bound,
        no_schedule_with_updates_beats_the_bound,
        no_schedule_with_alternatives_beats_the_bound,
        no_schedule_with_fused_operands_beats_the_bound,
        a_curve_holds_everywhere_and_falls_as_budgets_grow,
        tiny_shared_graphs_are_solved_exactly,
        shared_graphs_are_bounded_no_worse_than_by_a_linear_program,
        a_plan_that_costs_as_much_as_the_bound_is_called_optimal,
        plans_of_random_training_graphs_keep_the_bounds,
        the_least_that_a_report_certifies_is_the_optimum_to_the_byte,
        the_largest_tensors_prove_more_than_one_node,
        the_least_certified_for_a_long_chain_is_its_largest_pair,
        a_budget_proven_too_small_raises_the_least_to_the_next_byte,
        a_line_proves_the_same_whole_grains_on_every_machine,
        a_line_proves_no_more_than_the_exact_sum,
    };
    TCase *tc = tcase_create("bound");
    tcase_set_timeout(tc, 120);
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("bound", tc);
}
