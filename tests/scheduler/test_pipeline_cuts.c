/* tests/scheduler/test_pipeline_cuts.c -- cuts into stages against all chains of lower sets, and
 * the plans of whole pipelines. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "scheduler/lower_sets/lower_set.h"
#include "scheduler/cuts/coarse_sets.h"
#include "scheduler/cuts/node_times.h"
#include "scheduler/cuts/stages.h"
#include "scheduler/pipeline/pipeline_plan.h"
#include "scheduler/plan/planner.h"
#include "tests/support/dag_tools.h"
#include "tests/support/less.h"
#include "tests/support/suite.h"

static LsArena *a;
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

static char why[500];

typedef struct Chains {         /* every chain of lower sets, judged by what ls_stages_complete
                                 * makes of it */
    const LsProb *p;
    const LsForward *f;
    const LsFamily *fam;
    const LsStageOptions *o;
    uint32_t cut[8];
    double least;               /* bottleneck of those within the budget */
    uint64_t n;
} Chains;

/* The nodes of a stage by phase, in list order; ends with LS_NO_ID. */
static uint32_t *nodes_of(const LsProb *p, const LsStages *s, uint32_t stage)
{
    uint32_t *node = ls_arena_alloc(a, p->n + 1u, sizeof *node), n = 0;
    for (int phase = 0; phase < LS_PHASES; phase++)
        for (uint32_t i = 0; i < p->n; i++)
            if (p->needed[i] && s->stage[i] == stage && s->phase[i] == phase)
                node[n++] = i;
    node[n] = LS_NO_ID;
    return node;
}

static bool is_read_later(const LsProb *p, const uint32_t *node, uint32_t t)
{
    for (; *node != LS_NO_ID; node++)
        if (ls_id_in(p->in.id + p->in.at[*node], p->in.at[*node + 1] - p->in.at[*node], t))
            return true;
    return false;
}

/* Bytes of values that were made or received, up to and with *node, and that it or later nodes
 * need. */
static int64_t live(const LsProb *p, const LsStages *s, const uint32_t *first, const uint32_t *node,
                    bool with)
{
    int64_t bytes = 0;
    for (uint32_t t = 0; t < p->nt; t++) {
        const uint32_t m = p->maker[t];
        bool there = false;
        for (const uint32_t *k = first; !there && k < node + with; k++)
            there =
                *k == m || ls_id_in(p->in.id + p->in.at[*k], p->in.at[*k + 1] - p->in.at[*k], t);
        there |= !with && m != LS_NO_ID && p->needed[m] && s->stage[m] != s->stage[*first]
                 && s->phase[m] == LS_PHASE_F;
        bytes += there && (is_read_later(p, node, t) || (with && m == *node)) ? p->size[t] : 0;
    }
    return bytes;
}

/* Bytes of a rank that keeps everything, and runs every node once, in list order. */
static int64_t rank_bytes(const LsProb *p, const LsStages *s, uint32_t stage, uint32_t slots)
{
    const LsDag *g = p->dag;
    const uint32_t *first = nodes_of(p, s, stage);
    int64_t state = 0, kept = 0, peak = 0;
    for (uint32_t t = 0; t < p->nt; t++) {
        const uint32_t *k = first;
        while (*k != LS_NO_ID && !ls_id_in(g->node[*k].in, g->node[*k].nin, t))
            k++;
        state += g->tensor[t].persistent && *k != LS_NO_ID
                     ? ls_align(g->tensor[t].bytes, g->alignment)
                     : 0;
    }
    for (const uint32_t *k = first; *k != LS_NO_ID; k++) {
        const int64_t now = live(p, s, first, k, true) + p->workspace[*k];
        peak = now > peak ? now : peak;
        if (s->phase[*k] == LS_PHASE_F && (k[1] == LS_NO_ID || s->phase[k[1]] != LS_PHASE_F))
            kept = k[1] == LS_NO_ID ? 0 : live(p, s, first, k + 1, false);
    }
    return state + (slots - 1) * kept + (peak > kept ? peak : kept);
}

static bool keeps_budget(const Chains *c, const LsStages *s)
{
    for (uint32_t k = 0; c->o->budget > 0 && k < s->k; k++) {
        const LsRankOrder order = ls_rank_order(a, c->o->order, k, s->k, c->o->micros);
        if (rank_bytes(c->p, s, k, ls_rank_order_slots(&order, LS_PHASE_B)) > c->o->budget)
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
        if ((n + 1 == c->o->stages) != (j == c->fam->n - 1)
            || !ls_cut_step(c->f, c->fam, last, j, &step))
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
        const LsProb *p =
            ls_prob_new(a, dag_without_shared_weights(a, dag_make(a, 5 + seed % 5, seed)), true);
        const LsStageOptions o = {.stages = 2 + seed % 3, .micros = 4, .order = LS_ORDER_1F1B};
        const Chains c = all_chains(p, &o);
        LsStages s;
        ck_assert_msg(ls_stages_find(a, p, &o, &s, why, sizeof why), "%s", why);
        ck_assert_double_eq_tol(s.bottleneck, c.least, 1e-9);
        ck_assert_double_eq_tol(s.bound, c.least, 1e-9);
        LsPipeCut cut;
        ck_assert_msg(ls_pipe_cut(a, p, &s, false, &cut, why, sizeof why), "%s", why);
        ck_assert_uint_eq(cut.ncopy, 0);
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
        const LsProb *p =
            ls_prob_new(a, dag_without_shared_weights(a, dag_make(a, 5 + seed % 4, seed)), true);
        /* What fits with everything kept fits for the planner, too. */
        const LsStageOptions o = {.stages = 2 + seed % 2,
                                  .micros = 4,
                                  .order = (LsOrderKind)(seed % LS_ORDERS),
                                  .keep = seed % 4 < 2 ? LS_KEEP_NEVER : LS_KEEP_AUTO,
                                  .budget = 4000 + 1500 * (int64_t)(seed % 8)};
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

/* Every needed node or its cheapest alternative once: more than plans need in which alternatives
 * make nodes superfluous. */
static double cheapest_of_each(const LsProb *p)
{
    double sum = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        double least = p->needed[i] ? p->cost[i] : 0;
        for (uint32_t k = p->swap.at[i]; k < p->swap.at[i + 1]; k++)
            least = fmin(least, p->cost[p->swap.id[k]]);
        sum += least;
    }
    return sum;
}

static double sum_of_least(const LsProb *p)
{
    const double *least = ls_least_times(a, p, NULL);
    double sum = 0;
    for (uint32_t i = 0; i < p->n; i++)
        sum += least[i];
    return sum;
}

START_TEST(no_plan_is_faster_than_the_least_times_of_its_nodes)
{
    int cheaper = 0, spared = 0;
    for (uint64_t seed = 800; seed < 800 + (uint64_t)tests_part(60, 12); seed++) {
        const LsDag *g = dag_with_alternatives(a, dag_make(a, 6 + seed % 5, seed), false, seed);
        const LsProb *p = ls_prob_new(a, g, true);
        LsPlan plan;
        LsPlanReport report;
        ck_assert(ls_plan(a, g, &(LsPlanOptions){.effort = 1, .unproven = true}, &plan, &report));
        ck_assert_double_ge(plan.cost, sum_of_least(p) - 1e-9);
        /* the reports of plans without proofs */
        ck_assert_double_ge(plan.cost, report.bound - 1e-9);
        cheaper += plan.cost < p->base_cost - 1e-9;
        spared += plan.cost < cheapest_of_each(p) - 1e-9;
    }
    ck_assert_int_gt(cheaper, 3);
    ck_assert_int_gt(spared, 1);        /* nodes that no plan needs once their readers are
                                         * replaced */
}
END_TEST

/* x -> u -> v -> y, and an alternative that makes y of x: neither u nor v must run. */
START_TEST(a_chain_that_an_alternative_spares_counts_as_nothing)
{
    static const char text[] = "{\"format\": \"lowerset-graph\", \"version\": 1, \"name\": "
                               "\"chain\", \"alignment\": 1, \"outputs\": [3],"
                               "\"tensors\": [{\"id\": 0, \"name\": \"x\", \"bytes\": 8, "
                               "\"persistent\": true}, {\"id\": 1, \"name\": \"u\", \"bytes\": 8},"
                               "{\"id\": 2, \"name\": \"v\", \"bytes\": 8}, {\"id\": 3, \"name\": "
                               "\"y\", \"bytes\": 8}], \"nodes\": ["
                               "{\"id\": 0, \"name\": \"u\", \"op\": \"F\", \"kind\": \"forward\", "
                               "\"cost\": 10, \"inputs\": [0], \"outputs\": [1]},"
                               "{\"id\": 1, \"name\": \"v\", \"op\": \"F\", \"kind\": \"forward\", "
                               "\"cost\": 10, \"inputs\": [1], \"outputs\": [2]},"
                               "{\"id\": 2, \"name\": \"y\", \"op\": \"F\", \"kind\": \"forward\", "
                               "\"cost\": 1, \"inputs\": [2], \"outputs\": [3]},"
                               "{\"id\": 3, \"name\": \"xy\", \"op\": \"A\", \"kind\": "
                               "\"forward\", \"cost\": 2, \"inputs\": [0], \"outputs\": [3],"
                               "\"alternative\": true}]}";
    const LsDag *g = ls_dag_parse(a, text, why, sizeof why);
    ck_assert_msg(g != NULL, "%s", why);
    const LsProb *p = ls_prob_new(a, g, true);
    LsPlan plan;
    LsPlanReport report;
    ck_assert(ls_plan(a, g, &(LsPlanOptions){.effort = 1, .unproven = true}, &plan, &report));
    ck_assert_double_eq(plan.cost, 2);
    ck_assert_double_eq(cheapest_of_each(p), 21);
    ck_assert_double_le(report.bound, 2);
    ck_assert_double_le(sum_of_least(p), 2);
    ck_assert_double_ge(sum_of_least(p), 1);
}
END_TEST

static bool is_sent(const LsPipeCut *c, uint32_t t, uint32_t reader)
{
    for (uint32_t k = 0; k < c->nmove; k++)
        if (c->move[k].tensor == t && c->move[k].from == c->stage[c->p->maker[t]]
            && c->move[k].to == c->stage[reader])
            return c->move[k].read <= c->phase[reader];
    return c->stage[c->p->maker[t]] == c->stage[reader];
}

/* What the headers promise of stages, whatever the cut. */
static void check_stages(const LsProb *p, const LsStages *s, bool splits)
{
    const LsDag *g = p->dag;
    double sum = 0, whole = 0;
    LsPipeCut c;
    ck_assert_msg(ls_pipe_cut(a, p, s, splits, &c, why, sizeof why), "%s", why);
    for (uint32_t k = 0; k < s->k; k++)
        for (int phase = 0; phase < LS_PHASES; phase++)
            sum += s->ns[k][phase];
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
            ck_assert_msg(is_sent(&c, t, i), "node %u has no tensor %u", i, t);
        }
    }
    ck_assert_double_eq_tol(sum, whole, 1e-6);
}

START_TEST(stages_have_all_nodes_and_get_what_they_read)
{
    for (uint64_t seed = 300; seed < 330; seed++) {
        const LsProb *p = ls_prob_new(a, dag_make(a, 12, seed), true);
        const LsStageOptions o = {
            .stages = 2 + seed % 4, .micros = 5, .order = (LsOrderKind)(seed % LS_ORDERS)};
        LsStages s[2];
        ck_assert(ls_stages_find(a, p, &o, &s[0], why, sizeof why));
        ck_assert(ls_stages_in_file_order(a, p, &o, &s[1], why, sizeof why));
        for (int k = 0; k < 2; k++)
            check_stages(p, &s[k], seed % 2 == 0);
        ck_assert_double_le(s[0].bound, s[1].bottleneck + 1e-9);
    }
}
END_TEST

static const int64_t *none_of(const LsProb *p)
{
    return ls_arena_alloc(a, p->nt + 1u, sizeof(int64_t));
}

static LsPipelinePlan pipeline_by(const LsProb *p, int64_t budget, LsOrderKind order,
                                  LsKeepMode keep, LsPipelineMemo *memo)
{
    int64_t *bytes = ls_arena_alloc(a, p->nt + 1u, sizeof *bytes);
    for (uint32_t t = 0; t < p->nt; t++)
        bytes[t] =
            p->dag->tensor[t].persistent ? ls_align(p->dag->tensor[t].bytes, p->dag->alignment) : 0;
    const LsPipelineWant want = {.stages = 2,
                                 .micros = 4,
                                 .budget = {LS_BUDGET_OF_PROCESS, .bytes = budget},
                                 .plan = {.effort = 1},
                                 .state = bytes,
                                 .input = none_of(p),
                                 .memo = memo};
    LsPipelinePlan out;
    ck_assert_msg(ls_pipeline_plan(a, p, &want, order, keep, &out, why, sizeof why), "%s", why);
    return out;
}

static LsPipelinePlan pipeline(const LsProb *p, int64_t budget, LsOrderKind order, LsKeepMode keep)
{
    return pipeline_by(p, budget, order, keep, NULL);
}

/* Stages that are alike in several orders, modes and budgets are planned once, with the same
 * result. */
START_TEST(what_is_planned_once_is_what_is_planned_anew)
{
    for (uint64_t seed = 300; seed < 300 + (uint64_t)tests_part(12, 1); seed++) {
        const LsProb *p = ls_prob_new(a, dag_make(a, 8, seed), true);
        LsPipelineMemo *memo = ls_pipeline_memo_new(a);
        const int64_t budget = pipeline(p, 0, LS_ORDER_GPIPE, LS_KEEP_AUTO).peak * 9 / 10;
        for (int k = 0; k < LS_ORDERS * (LS_KEEP_AUTO + 2); k++) {
            const LsOrderKind order = (LsOrderKind)(k % LS_ORDERS);
            const bool poor = k / LS_ORDERS > LS_KEEP_AUTO;
            const LsKeepMode keep = poor ? LS_KEEP_AUTO : (LsKeepMode)(k / LS_ORDERS);
            const LsPipelinePlan known = pipeline_by(p, poor ? budget : 0, order, keep, memo);
            const LsPipelinePlan anew = pipeline(p, poor ? budget : 0, order, keep);
            ck_assert(known.fits == anew.fits && known.peak == anew.peak
                      && known.bound == anew.bound);
            ck_assert_double_eq(known.times.step, anew.times.step);
            for (uint32_t stage = 0; stage < 2; stage++) {
                char one[17], other[17];
                ls_plan_hash(&known.plan[stage].layout.of[0].plan, one);
                ls_plan_hash(&anew.plan[stage].layout.of[0].plan, other);
                ck_assert_str_eq(one, other);
            }
        }
    }
}
END_TEST

START_TEST(plans_of_stages_cost_what_their_nodes_do)
{
    for (uint64_t seed = 500; seed < 500 + (uint64_t)tests_part(20, 6); seed++) {
        const LsProb *p = ls_prob_new(a, dag_make(a, 10, seed), true);
        const LsOrderKind order = (LsOrderKind)(seed % LS_ORDERS);
        const LsPipelinePlan never = pipeline(p, 0, order, LS_KEEP_NEVER),
                             always = pipeline(p, 0, order, LS_KEEP_ALWAYS);
        double whole = 0, sum = 0, again = -always.of[0][0].again - always.of[1][0].again;
        for (uint32_t i = 0; i < p->n; i++)
            whole += p->needed[i] ? p->cost[i] : 0;
        for (uint32_t k = 0; k < 2; k++)
            for (int phase = 0; phase < LS_STAGE_PHASES; phase++) {
                sum += never.of[k][0].ns[phase];
                again += always.of[k][0].ns[phase];
            }
        ck_assert_double_eq_tol(sum, whole, 1e-6);
        ck_assert_double_eq_tol(again, whole, 1e-6);
        ck_assert_double_eq(never.of[0][0].again + never.of[1][0].again, 0);
        ck_assert_double_gt(always.of[0][0].again + always.of[1][0].again, 0);
    }
}
END_TEST

/* One of four micro-batches as with `never`, the others as with `always`; a single one is the one
 * that is kept. */
START_TEST(one_micro_batch_is_kept)
{
    for (uint64_t seed = 500; seed < 500 + (uint64_t)tests_part(20, 2); seed++) {
        const LsProb *p = ls_prob_new(a, dag_make(a, 10, seed), true);
        const LsOrderKind order = (LsOrderKind)(seed % LS_ORDERS);
        const LsPipelinePlan one = pipeline(p, 0, order, LS_KEEP_EXCEPT_LAST);
        ck_assert(one.bound > 0
                  && one.bound <= pipeline(p, 0, order, LS_KEEP_ALWAYS).bound * (1 + 1e-9));
        ck_assert(one.bound >= pipeline(p, 0, order, LS_KEEP_NEVER).bound * (1 - 1e-9));
        for (uint32_t k = 0; k < 2; k++) {
            const LsStageTimes *usual = &one.of[k][LS_PIPE_USUAL], *kept = &one.of[k][LS_PIPE_KEPT];
            double again = 0;
            for (int phase = 0; phase < LS_STAGE_PHASES; phase++)
                again += usual->ns[phase] - kept->ns[phase];
            ck_assert_double_eq_tol(again, usual->again, 1e-6);
            ck_assert_double_eq(kept->again, 0);
            ck_assert_double_ge(one.bottleneck,
                                one.plan[k].layout.of[LS_PIPE_USUAL].plan.cost - again / 4 - 1e-6);
            for (uint32_t t = 0; t < one.flow[k].nturn; t++)
                ck_assert_uint_eq(one.flow[k].turn[t].plan,
                                  one.flow[k].turn[t].micro == 0 ? LS_PIPE_KEPT : LS_PIPE_USUAL);
        }
        const LsPipelineWant single = {.stages = 2,
                                       .micros = 1,
                                       .plan = {.effort = 1},
                                       .state = none_of(p),
                                       .input = none_of(p)};
        LsPipelinePlan alone[2];
        for (int k = 0; k < 2; k++)
            ck_assert_msg(ls_pipeline_plan(a, p, &single, order,
                                           k ? LS_KEEP_EXCEPT_LAST : LS_KEEP_NEVER, &alone[k], why,
                                           sizeof why),
                          "%s", why);
        ck_assert_int_eq(alone[0].peak, alone[1].peak);
        ck_assert_double_eq(alone[0].times.step, alone[1].times.step);
        ck_assert_double_eq(alone[0].bound, alone[1].bound);
    }
}
END_TEST

START_TEST(a_budget_makes_stages_run_things_again)
{
    int again = 0;
    for (uint64_t seed = 600; seed < 604; seed++) {
        const LsProb *p = ls_prob_new(a, dag_make(a, 9, seed), true);
        const LsPipelinePlan rich = pipeline(p, 0, LS_ORDER_GPIPE, LS_KEEP_AUTO);
        const LsPipelinePlan poor = pipeline(p, rich.peak * 9 / 10, LS_ORDER_GPIPE, LS_KEEP_AUTO);
        ck_assert(!poor.fits || poor.peak <= rich.peak * 9 / 10);
        again += poor.fits
                 && poor.of[0][0].again + poor.of[1][0].again
                        > rich.of[0][0].again + rich.of[1][0].again;
    }
    ck_assert_int_gt(again, 1);
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
        const LsFamily *same = ls_coarse_sets(a, f, ns, 0, 100000),
                       *some = ls_coarse_sets(a, f, ns, 4, 100000);
        ck_assert_uint_eq(same->n, all->n);
        ck_assert_uint_le(some->n, all->n);
        for (uint32_t i = 0; i < some->n; i++)
            for (uint32_t v = 0; v < f->n; v++)
                for (uint32_t k = f->pred.at[v]; ls_bit(some->low + i, v) && k < f->pred.at[v + 1];
                     k++)
                    ck_assert(ls_bit(some->low + i, f->pred.id[k]));
    }
}
END_TEST

/* A source, `wide` nodes that read it, each with a light node behind, and a sink: far more than all
 * lower sets can be. */
static LsDag *fan(uint32_t wide, uint64_t seed)
{
    LsDag *g = ls_arena_alloc(a, 1, sizeof *g);
    const uint32_t n = 2 * wide + 2;
    uint32_t *id = ls_arena_alloc(a, n, sizeof *id);
    *g = (LsDag){.name = "fan",
                 .alignment = 1,
                 .tensor = ls_arena_alloc(a, n, sizeof *g->tensor),
                 .ntensor = n,
                 .node = ls_arena_alloc(a, n, sizeof *g->node),
                 .nnode = n};
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
        const LsProb *few = ls_prob_new(a, fan(11, seed), true),
                     *many = ls_prob_new(a, fan(24, seed), true);
        LsStages s, list;
        /* 3^11 sets; 2^11 without light nodes */
        ck_assert(ls_stages_find(a, few, &o, &s, why, sizeof why));
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
    ck_assert(
        !ls_stages_find(a, p, &(LsStageOptions){.stages = 6, .micros = 1}, &s, why, sizeof why));
    ck_assert_ptr_nonnull(strstr(why, "6 stages are too many: the forward part has 5 kernels"));
    ck_assert(
        ls_stages_find(a, p, &(LsStageOptions){.stages = 5, .micros = 1}, &s, why, sizeof why));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("pipeline_cuts");
    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    tcase_add_test(tc, the_cut_is_the_best_of_all_chains_and_its_bound_says_so);
    tcase_add_test(tc, the_bound_holds_whoever_shares_parameters);
    tcase_add_test(tc, within_a_budget_no_chain_that_fits_beats_the_bound);
    tcase_add_test(tc, no_plan_is_faster_than_the_least_times_of_its_nodes);
    tcase_add_test(tc, a_chain_that_an_alternative_spares_counts_as_nothing);
    tcase_add_test(tc, stages_have_all_nodes_and_get_what_they_read);
    tcase_add_test(tc, plans_of_stages_cost_what_their_nodes_do);
    tcase_add_test(tc, one_micro_batch_is_kept);
    tcase_add_test(tc, what_is_planned_once_is_what_is_planned_anew);
    tcase_add_test(tc, a_budget_makes_stages_run_things_again);
    tcase_add_test(tc, coarse_sets_are_lower_sets_and_fewer);
    tcase_add_test(tc, large_lattices_are_cut_as_well_as_their_list_or_better);
    tcase_add_test(tc, too_many_stages_are_refused);
    return run_tests("pipeline_cuts", tc);
}
