/* tests/scheduler/test_pipeline_cuts.c -- cuts into stages against all chains of lower sets, and the graphs of stages. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "scheduler/lower_sets/lower_set.h"
#include "scheduler/pipeline/coarse_sets.h"
#include "scheduler/pipeline/deadlock.h"
#include "scheduler/pipeline/node_times.h"
#include "scheduler/pipeline/stage_graph.h"
#include "scheduler/pipeline/stage_plans.h"
#include "scheduler/plan/plan_audit.h"
#include "scheduler/plan/planner.h"
#include "tests/support/dag_tools.h"
#include "tests/support/less.h"
#include "tests/support/suite.h"

static LsArena *a;
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

static char why[500];

/* Backward nodes read no weights, so that no parameter has readers in several forward nodes. */
static LsDag *without_shared_weights(LsDag *g)
{
    for (uint32_t i = 0; i < g->nnode; i++) {
        LsDagNode *n = &g->node[i];
        uint32_t *in = ls_arena_alloc(a, n->nin + 1u, sizeof *in), nin = 0;
        for (uint32_t k = 0; k < n->nin; k++)
            if (n->op[0] != 'B' || !g->tensor[n->in[k]].persistent)
                in[nin++] = n->in[k];
        n->in = in;
        n->nin = nin;
    }
    return g;
}

typedef struct Chains {         /* every chain of lower sets, judged by what ls_stages_complete makes of it */
    const LsProb *p;
    const LsForward *f;
    const LsFamily *fam;
    const LsStageOptions *o;
    uint32_t cut[8];
    double least;               /* bottleneck of those within the budget */
    uint64_t n;
} Chains;

static bool keeps_budget(const Chains *c, const LsStages *s)
{
    for (uint32_t k = 0; k < s->k; k++) {
        const LsStageFigures *f = &s->of[k];
        const LsRankOrder order = ls_rank_order(a, c->o->order, k, s->k, c->o->micros);
        int64_t most = f->kept;
        for (int phase = 0; phase < LS_PHASES; phase++)
            most = f->peak[phase] > most ? f->peak[phase] : most;
        if (c->o->budget > 0
            && f->state + (int64_t)(ls_rank_order_slots(&order, LS_PHASE_B) - 1) * f->kept + most > c->o->budget)
            return false;
    }
    return true;
}

static void judge(Chains *c)
{
    LsStages s = {.k = c->o->stages, .stage = ls_arena_alloc(a, c->p->n, sizeof *s.stage)};
    for (uint32_t v = 0; v < c->f->n; v++) {
        uint32_t stage = 0;
        while (!ls_bit(c->fam->low + (size_t)c->cut[stage] * c->fam->nword, v))
            stage++;
        s.stage[c->f->node[v]] = stage;
    }
    ls_stages_complete(a, c->p, &s);
    c->n++;
    if (keeps_budget(c, &s))
        c->least = fmin(c->least, s.bottleneck);
}

static void extend(Chains *c, uint32_t last, uint32_t n)
{
    LsCutStep step;
    for (uint32_t j = last + 1; j < c->fam->n; j++) {
        if ((n + 1 == c->o->stages) != (j == c->fam->n - 1) || !ls_cut_step(c->f, c->fam, last, j, &step))
            continue;
        c->cut[n] = j;
        if (n + 1 == c->o->stages)
            judge(c);
        else
            extend(c, j, n + 1);
    }
}

static Chains all_chains(const LsProb *p, const LsStageOptions *o)
{
    Chains c = {.p = p, .o = o, .f = ls_forward_new(a, p), .least = INFINITY};
    c.fam = ls_family_all(c.f, 100000);
    extend(&c, 0, 0);
    return c;
}

START_TEST(the_cut_is_the_best_of_all_chains_and_its_bound_says_so)
{
    uint64_t chains = 0;
    for (uint64_t seed = 0; seed < (uint64_t)tests_part(60, 20); seed++) {
        const LsProb *p = ls_prob_new(a, without_shared_weights(dag_make(a, 5 + seed % 5, seed)), true);
        const LsStageOptions o = {.stages = 2 + seed % 3, .micros = 4, .order = LS_ORDER_1F1B};
        const Chains c = all_chains(p, &o);
        LsStages s;
        ck_assert_msg(ls_stages_find(a, p, &o, &s, why, sizeof why), "%s", why);
        ck_assert_double_eq_tol(s.bottleneck, c.least, 1e-9);
        ck_assert_double_eq_tol(s.bound, c.least, 1e-9);
        ck_assert_uint_eq(s.ncopy, 0);
        chains += c.n;
    }
    ck_assert_uint_gt(chains, 500);
}
END_TEST

START_TEST(the_bound_holds_whoever_shares_parameters)
{
    for (uint64_t seed = 100; seed < 100 + (uint64_t)tests_part(40, 15); seed++) {
        const LsProb *p = ls_prob_new(a, dag_make(a, 5 + seed % 5, seed), true);
        const LsStageOptions o = {.stages = 2 + seed % 3, .micros = 4, .order = LS_ORDER_1F1B};
        const Chains c = all_chains(p, &o);
        LsStages s;
        ck_assert_msg(ls_stages_find(a, p, &o, &s, why, sizeof why), "%s", why);
        ck_assert_double_le(s.bound, c.least + 1e-9);
        ck_assert_double_ge(s.bottleneck, c.least - 1e-9);
    }
}
END_TEST

START_TEST(within_a_budget_no_chain_that_fits_beats_the_bound)
{
    int some = 0, none = 0;
    for (uint64_t seed = 200; seed < 200 + (uint64_t)tests_part(60, 20); seed++) {
        const LsProb *p = ls_prob_new(a, without_shared_weights(dag_make(a, 5 + seed % 4, seed)), true);
        /* What fits with everything kept fits for the planner, too. */
        const LsStageOptions o = {.stages = 2 + seed % 2, .micros = 4, .order = (LsOrderKind)(seed % LS_ORDERS),
                                  .keep = seed % 4 < 2 ? LS_KEEP_NEVER : LS_KEEP_AUTO, .budget = 4000 + 1500 * (int64_t)(seed % 8)};
        const Chains c = all_chains(p, &o);
        LsStages s;
        const bool found = ls_stages_find(a, p, &o, &s, why, sizeof why);
        ck_assert(found || isinf(c.least));
        if (found)
            ck_assert_double_le(s.bound, c.least + 1e-9);
        some += !isinf(c.least);
        none += !found;
    }
    ck_assert_int_gt(some, 3);
    ck_assert_int_gt(none, 1);
}
END_TEST

/* Every second node that reads a forward value gets an alternative that reads the operands of its maker instead. */
static LsDag *with_alternatives(LsDag *g, uint64_t seed)
{
    LsDag *h = ls_arena_alloc(a, 1, sizeof *h);
    uint32_t *maker = ls_arena_alloc(a, g->ntensor, sizeof *maker), *place = ls_arena_alloc(a, g->nnode, sizeof *place);
    *h = *g;
    h->node = ls_arena_alloc(a, 2 * g->nnode, sizeof *h->node);
    h->nnode = 0;
    for (uint32_t i = 0; i < g->nnode; i++) {
        const LsDagNode *n = &g->node[i];
        place[i] = h->nnode;
        h->node[h->nnode] = *n;
        h->node[h->nnode].of = n->of >= 0 ? (int64_t)place[n->of] : -1;
        h->nnode++;
        for (uint32_t k = 0; k < n->nout; k++)
            maker[n->out[k]] = i;
        const uint32_t t = n->nin > 0 ? n->in[0] : 0;
        if (n->nin == 0 || g->tensor[t].persistent || g->node[maker[t]].op[0] != 'F' || n->nupd > 0 || dag_random(&seed, 2))
            continue;
        const LsDagNode *of = &g->node[maker[t]];
        uint32_t *in = ls_arena_alloc(a, n->nin + of->nin, sizeof *in), nin = 0;
        for (uint32_t k = 1; k < n->nin; k++)
            in[nin++] = n->in[k];
        for (uint32_t k = 0; k < of->nin; k++)
            if (!ls_id_in(in, nin, of->in[k]))
                in[nin++] = of->in[k];
        h->node[h->nnode] = (LsDagNode){.name = "alternative", .op = "A", .kind = n->kind, .alternative = true, .in = in,
                                        .nin = nin, .out = n->out, .nout = n->nout, .of = h->node[place[i]].of,
                                        .cost = n->cost + (int)dag_random(&seed, 5) - 1};
        h->nnode++;
    }
    ck_assert_msg(ls_dag_check(h, why, sizeof why), "%s", why);
    return h;
}

START_TEST(no_plan_is_faster_than_the_least_times_of_its_nodes)
{
    int cheaper = 0, spared = 0;
    for (uint64_t seed = 800; seed < 800 + (uint64_t)tests_part(60, 12); seed++) {
        const LsDag *g = with_alternatives(dag_make(a, 6 + seed % 5, seed), seed);
        const LsProb *p = ls_prob_new(a, g, true);
        const double *least = ls_least_times(a, p);
        double sum = 0;
        LsPlan plan;
        LsPlanReport report;
        for (uint32_t i = 0; i < p->n; i++)
            sum += least[i];
        ck_assert(ls_plan(a, g, &(LsPlanOptions){.effort = 1, .unproven = true}, &plan, &report));
        ck_assert_double_ge(plan.cost, sum - 1e-9);
        cheaper += plan.cost < p->base_cost - 1e-9;
        spared += plan.cost < p->needed_cost - 1e-9;
    }
    ck_assert_int_gt(cheaper, 3);
    ck_assert_int_gt(spared, 1);        /* nodes that no plan needs once their readers are replaced */
}
END_TEST

/* What the header promises of stages, whatever the cut. */
static void check_stages(const LsProb *p, const LsStages *s)
{
    const LsDag *g = p->dag;
    double sum = 0, whole = 0;
    for (uint32_t k = 0; k < s->k; k++)
        for (int phase = 0; phase < LS_PHASES; phase++)
            sum += s->of[k].ns[phase];
    for (uint32_t i = 0; i < p->n; i++) {
        if (!p->needed[i])
            continue;
        whole += p->cost[i];
        ck_assert_uint_lt(s->stage[i], s->k);
        for (uint32_t k = p->in.at[i]; k < p->in.at[i + 1]; k++) {
            const uint32_t t = p->in.id[k], m = p->maker[t];
            if (g->node[i].kind == LS_DAG_FORWARD)
                ck_assert_uint_le(s->stage[m], s->stage[i]);
            else if (g->node[m].kind == LS_DAG_BACKWARD)
                ck_assert_uint_ge(s->stage[m], s->stage[i]);
            bool sent = s->stage[m] == s->stage[i];
            for (uint32_t j = 0; j < s->nsend; j++)
                sent |= s->send[j].tensor == t && s->send[j].from == s->stage[m] && s->send[j].to == s->stage[i]
                        && s->send[j].read <= s->phase[i];
            ck_assert_msg(sent, "node %u has no tensor %u", i, t);
        }
    }
    ck_assert_double_eq_tol(sum, whole, 1e-6);
}

START_TEST(stages_have_all_nodes_and_get_what_they_read)
{
    for (uint64_t seed = 300; seed < 330; seed++) {
        const LsProb *p = ls_prob_new(a, dag_make(a, 12, seed), true);
        const LsStageOptions o = {.stages = 2 + seed % 4, .micros = 5, .order = (LsOrderKind)(seed % LS_ORDERS)};
        LsStages s[2];
        ck_assert(ls_stages_find(a, p, &o, &s[0], why, sizeof why));
        ck_assert(ls_stages_in_file_order(a, p, &o, &s[1], why, sizeof why));
        for (int k = 0; k < 2; k++)
            check_stages(p, &s[k]);
        ck_assert_double_le(s[0].bound, s[1].bottleneck + 1e-9);
    }
}
END_TEST

START_TEST(the_orders_of_every_cut_run)
{
    for (uint64_t seed = 400; seed < 430; seed++) {
        const LsProb *p = ls_prob_new(a, dag_make(a, 12, seed), true);
        LsStageOptions o = {.stages = 2 + seed % 4, .micros = 1 + seed % 7};
        LsStages s;
        ck_assert(ls_stages_in_file_order(a, p, &o, &s, why, sizeof why));
        for (int kind = 0; kind < LS_ORDERS; kind++) {
            const LsFlows flows = ls_flows(a, &s, !ls_order_is_apart((LsOrderKind)kind));
            LsRankOrder order[8];
            for (uint32_t k = 0; k < s.k; k++)
                order[k] = ls_rank_order(a, (LsOrderKind)kind, k, s.k, o.micros);
            ck_assert_msg(ls_orders_run(&s, &flows, order, o.micros, UINT32_MAX, why, sizeof why), "%s", why);
        }
    }
}
END_TEST

START_TEST(the_graph_of_a_stage_can_be_planned_and_costs_what_its_nodes_do)
{
    int less = 0;
    for (uint64_t seed = 500; seed < 500 + (uint64_t)tests_part(20, 6); seed++) {
        const LsProb *p = ls_prob_new(a, dag_make(a, 10, seed), true);
        const LsStageOptions o = {.stages = 3, .micros = 4};
        LsStages s;
        ck_assert(ls_stages_in_file_order(a, p, &o, &s, why, sizeof why));
        LsStagePlanner *sp = ls_stage_planner_new(a, p, 1);
        for (uint32_t k = 0; k < s.k; k++)
            for (int apart = 0; apart < 2; apart++) {
                const LsStageGraph *g = ls_stage_graph(a, p, &s, k, apart);
                LsPlan plan;
                LsPlanReport report;
                ck_assert_msg(ls_dag_check(&g->dag, why, sizeof why), "%s", why);
                ck_assert(ls_plan(a, &g->dag, &(LsPlanOptions){.effort = 1, .unproven = true}, &plan, &report));
                ck_assert_msg(ls_audit(&g->dag, &plan, why, sizeof why), "%s", why);
                const LsStageFigures f = ls_stage_plan(sp, &s, k, LS_KEEP_NEVER, apart, 2, 0);
                for (int phase = 0; phase < LS_PHASES; phase++)
                    ck_assert_double_eq_tol(f.ns[phase], s.of[k].ns[phase], 1e-6);
                ck_assert_double_eq(f.again_ns, 0);
                ck_assert_int_eq(f.kept, s.of[k].kept);
                const LsStageFigures all = ls_stage_plan(sp, &s, k, LS_KEEP_ALWAYS, apart, 2, 0);
                ck_assert_double_eq_tol(all.ns[LS_PHASE_F], s.of[k].ns[LS_PHASE_F], 1e-6);
                ck_assert_double_eq_tol(all.ns[LS_PHASE_B] + all.ns[LS_PHASE_W] - all.again_ns,
                                        s.of[k].ns[LS_PHASE_B] + s.of[k].ns[LS_PHASE_W], 1e-6);
                less += all.kept < f.kept;
            }
    }
    ck_assert_int_gt(less, 10);
}
END_TEST

START_TEST(a_budget_makes_a_stage_run_things_again)
{
    int again = 0;
    for (uint64_t seed = 600; seed < 606; seed++) {
        const LsProb *p = ls_prob_new(a, dag_make(a, 14, seed), true);
        const LsStageOptions o = {.stages = 2, .micros = 4};
        LsStages s;
        ck_assert(ls_stages_in_file_order(a, p, &o, &s, why, sizeof why));
        LsStagePlanner *sp = ls_stage_planner_new(a, p, 1);
        const LsStageFigures rich = ls_stage_plan(sp, &s, 0, LS_KEEP_AUTO, false, 4, 0);
        const int64_t need = rich.state + 4 * rich.kept;
        const LsStageFigures poor = ls_stage_plan(sp, &s, 0, LS_KEEP_AUTO, false, 4, need * 9 / 10);
        ck_assert_int_le(poor.kept, rich.kept);
        again += poor.kept < rich.kept && poor.again_ns > rich.again_ns;
    }
    ck_assert_int_gt(again, 2);
}
END_TEST

START_TEST(coarse_sets_are_lower_sets_and_fewer)
{
    for (uint64_t seed = 700; seed < 720; seed++) {
        const LsForward *f = ls_forward_new(a, ls_prob_new(a, dag_make(a, 12, seed), true));
        const LsFamily *all = ls_family_all(f, 100000);
        double ns[12];
        for (int v = 0; v < 12; v++)
            ns[v] = f->time[v];
        const LsFamily *same = ls_coarse_sets(a, f, ns, 0, 100000), *some = ls_coarse_sets(a, f, ns, 4, 100000);
        ck_assert_uint_eq(same->n, all->n);
        ck_assert_uint_le(some->n, all->n);
        for (uint32_t i = 0; i < some->n; i++)
            for (uint32_t v = 0; v < f->n; v++)
                for (uint32_t k = f->pred.at[v]; ls_bit(some->low + i, v) && k < f->pred.at[v + 1]; k++)
                    ck_assert(ls_bit(some->low + i, f->pred.id[k]));
    }
}
END_TEST

/* A source, `wide` nodes that read it, each with a light node behind, and a sink: far more than all lower sets can be. */
static LsDag *fan(uint32_t wide, uint64_t seed)
{
    LsDag *g = ls_arena_alloc(a, 1, sizeof *g);
    const uint32_t n = 2 * wide + 2;
    uint32_t *id = ls_arena_alloc(a, n, sizeof *id);
    *g = (LsDag){.name = "fan", .alignment = 1, .tensor = ls_arena_alloc(a, n, sizeof *g->tensor), .ntensor = n,
                 .node = ls_arena_alloc(a, n, sizeof *g->node), .nnode = n};
    for (uint32_t i = 0; i < n; i++) {
        const bool light = i > 0 && i % 2 == 0;
        id[i] = i;
        g->tensor[i] = (LsDagTensor){.name = "y", .bytes = 8, .output = i + 1 == n};
        g->node[i] = (LsDagNode){.name = "f", .op = "F", .of = -1, .out = &id[i], .nout = 1,
                                 .cost = light ? 1e-3 : 100 + dag_random(&seed, 100)};
        if (i + 1 == n) {
            uint32_t *in = ls_arena_alloc(a, wide, sizeof *in);
            for (uint32_t k = 0; k < wide; k++)
                in[k] = 2 * k + 2;
            g->node[i].in = in;
            g->node[i].nin = wide;
        } else if (i > 0) {
            g->node[i].in = &id[light ? i - 1 : 0];
            g->node[i].nin = 1;
        }
    }
    ck_assert_msg(ls_dag_check(g, why, sizeof why), "%s", why);
    return g;
}

START_TEST(large_lattices_are_cut_as_well_as_their_list_or_better)
{
    for (uint64_t seed = 1; seed < 5; seed++) {
        const LsStageOptions o = {.stages = 2 + seed % 3, .micros = 4, .order = LS_ORDER_1F1B};
        const LsProb *few = ls_prob_new(a, fan(11, seed), true), *many = ls_prob_new(a, fan(24, seed), true);
        LsStages s, list;
        ck_assert(ls_stages_find(a, few, &o, &s, why, sizeof why));     /* 3^11 sets; 2^11 without light nodes */
        ck_assert_ptr_nonnull(strstr(s.note, "more than 40000 lower sets"));
        ck_assert(ls_stages_in_file_order(a, few, &o, &list, why, sizeof why));
        ck_assert_double_lt(s.bottleneck, list.bottleneck);
        ck_assert_double_le(s.bottleneck, 1.01 * s.bound);
        ck_assert(ls_stages_find(a, many, &o, &s, why, sizeof why));    /* prefixes alone */
        ck_assert(ls_stages_in_file_order(a, many, &o, &list, why, sizeof why));
        ck_assert_double_le(s.bottleneck, list.bottleneck);
        ck_assert_double_ge(s.bottleneck, s.bound);
    }
}
END_TEST

START_TEST(too_many_stages_are_refused)
{
    const LsProb *p = ls_prob_new(a, dag_make(a, 5, 1), true);
    LsStages s;
    ck_assert(!ls_stages_find(a, p, &(LsStageOptions){.stages = 6, .micros = 1}, &s, why, sizeof why));
    ck_assert_ptr_nonnull(strstr(why, "6 stages are too many: the forward part has 5 kernels"));
    ck_assert(ls_stages_find(a, p, &(LsStageOptions){.stages = 5, .micros = 1}, &s, why, sizeof why));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("pipeline_cuts");
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    tcase_add_test(tc, the_cut_is_the_best_of_all_chains_and_its_bound_says_so);
    tcase_add_test(tc, the_bound_holds_whoever_shares_parameters);
    tcase_add_test(tc, within_a_budget_no_chain_that_fits_beats_the_bound);
    tcase_add_test(tc, no_plan_is_faster_than_the_least_times_of_its_nodes);
    tcase_add_test(tc, stages_have_all_nodes_and_get_what_they_read);
    tcase_add_test(tc, the_orders_of_every_cut_run);
    tcase_add_test(tc, the_graph_of_a_stage_can_be_planned_and_costs_what_its_nodes_do);
    tcase_add_test(tc, a_budget_makes_a_stage_run_things_again);
    tcase_add_test(tc, coarse_sets_are_lower_sets_and_fewer);
    tcase_add_test(tc, large_lattices_are_cut_as_well_as_their_list_or_better);
    tcase_add_test(tc, too_many_stages_are_refused);
    return run_tests("pipeline_cuts", tc);
}
