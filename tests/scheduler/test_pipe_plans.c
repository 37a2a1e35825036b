/* tests/scheduler/test_pipe_plans.c -- plans of the stages of random graphs are sound for all
 * micro-batches under way, also where one of them has a plan of its own, and the audit that says so
 * finds what is broken. */
#include <check.h>

#include "scheduler/pipeline/stage_audit.h"
#include "scheduler/pipeline/message_lifetimes.h"
#include "scheduler/pipeline/stage_plan.h"
#include "scheduler/plan/plan_audit.h"
#include "tests/support/dag_tools.h"
#include "tests/support/less.h"
#include "tests/support/suite.h"

static LsArena *a;
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

static char why[512];

typedef struct Pipe {           /* a graph in stages, with the flow of each */
    LsPipeCut cut;
    LsPipeFlow flow[LS_MOST_STAGES];
    uint32_t ring;
} Pipe;

/* Appends the update of a statistic that reads the value of the forward node v. */
static void add_statistic(LsDag *g, uint32_t v)
{
    uint32_t *in = ls_arena_alloc(a, 2, sizeof *in);
    in[0] = g->node[v].out[0];
    in[1] = g->ntensor;
    g->tensor[g->ntensor++] = (LsDagTensor){"mean", 64, true, false};
    g->node[g->nnode++] = (LsDagNode){.name = "stat",
                                      .op = "Stat",
                                      .kind = LS_DAG_OPTIMIZER,
                                      .cost = 1,
                                      .in = in,
                                      .nin = 2,
                                      .upd = in + 1,
                                      .nupd = 1,
                                      .of = v};
}

static bool make(Pipe *x, uint64_t seed, uint32_t stages, uint32_t micros, LsOrderKind order)
{
    LsDag *g = dag_make(a, 6 + (uint32_t)(seed % 9), seed);
    add_statistic(g, 1);
    add_statistic(g, 4);
    if (seed % 4 == 1)
        g = dag_with_alternatives(a, g, seed % 8 == 5, seed);
    const LsProb *p = ls_prob_new(a, g, true);
    const LsStageOptions o = {.stages = stages, .micros = micros, .order = order};
    LsStages s;
    bool reads[LS_MOST_STAGES] = {false};
    reads[0] = reads[stages - 1] = true;
    if (!ls_stages_in_file_order(a, p, &o, &s, why, sizeof why))
        return false;
    ck_assert_msg(ls_pipe_cut(a, p, &s, order == LS_ORDER_ZB, &x->cut, why, sizeof why),
                  "seed %d: %s", (int)seed, why);
    LsStageTimes (*of)[LS_PIPE_PLANS] = ls_arena_alloc(a, stages, sizeof *of);
    for (uint32_t k = 0; k < stages; k++)
        of[k][LS_PIPE_USUAL] = (LsStageTimes){.ns = {2, 3, 1 + k % 2}};
    ls_pipe_flow(a, &x->cut, order, micros, reads, x->flow);
    ls_pipe_holds(&x->cut, order, micros, of, (LsLinkSpeed){0, 0});
    ck_assert_msg(ls_pipe_ring(&x->cut, x->flow, micros, &x->ring, why, sizeof why), "seed %d: %s",
                  (int)seed, why);
    return true;
}

static bool plan(const Pipe *x, uint32_t stage, LsPipeWish wish, LsPipePlan *to)
{
    wish.flow = &x->flow[stage];
    wish.plan.unproven = true;
    wish.plan.effort = 1;
    return ls_pipe_plan(a, &x->cut, stage, &wish, to, why, sizeof why);
}

/* Micro-batches change a state in their order whatever their plans, as each does so in the phase of
 * the node. */
static void check_changes(const LsPipeCut *c, const LsPipePlan *p, const LsPipeRuns *of)
{
    uint32_t run = 0;
    for (uint32_t s = 0; s < of->plan.nstep; s++) {
        const LsPlanStep *step = &of->plan.step[s];
        if (step->free)
            continue;
        const uint32_t node = p->graph.node_of[step->id];
        const int phase = node != LS_NO_ID ? c->phase[node] : 0;
        if (p->graph.dag.node[step->id].nupd > 0)
            ck_assert(run >= of->phase_at[phase] && run < of->phase_at[phase + 1]);
        run++;
    }
}

static void check(const Pipe *x, uint32_t stage, const LsPipePlan *p, uint64_t seed)
{
    const LsPipeLayout *l = &p->layout;
    for (uint32_t k = 0; k < l->nplan; k++) {
        ck_assert_msg(ls_audit(&p->graph.dag, &l->of[k].plan, why, sizeof why),
                      "seed %d, stage %u: %s", (int)seed, stage, why);
        ck_assert_int_le(l->of[k].plan.arena, l->arena);
        check_changes(&x->cut, p, &l->of[k]);
    }
    ck_assert_msg(ls_pipe_audit(&p->graph, &x->cut, stage, l, &x->flow[stage], why, sizeof why),
                  "seed %d, stage %u: %s", (int)seed, stage, why);
    int64_t bytes = 0;
    for (uint32_t k = 0; k < l->nregion; k++) {
        ck_assert_int_eq(l->region[k].at, bytes);
        bytes += l->region[k].copies * l->region[k].bytes;
    }
    ck_assert_int_eq(l->arena, bytes);
}

START_TEST(plans_are_sound_with_all_micro_batches)
{
    const LsOrderKind order = (LsOrderKind)_i;
    int kept = 0;
    for (uint64_t seed = 1; seed <= (uint64_t)tests_part(60, 3); seed++) {
        const uint32_t stages = 2 + (uint32_t)(seed % 3);
        Pipe x;
        if (!make(&x, seed, stages, 5, order))
            continue;
        ck_assert_uint_le(x.ring, 5);
        for (uint32_t k = 0; k < stages; k++) {
            const LsPipeWish want[] = {{.budget.least = false},
                                       {.budget.least = true},
                                       {.budget.percent = 80},
                                       {.hints.recompute = LS_RECOMPUTE_ALL}};
            LsPipePlan p[4];
            for (int w = 0; w < 4; w++) {
                const bool fits = plan(&x, k, want[w], &p[w]);
                ck_assert_msg(fits || w == 2, "seed %d: %s", (int)seed, why);
                if (fits)
                    check(&x, k, &p[w], seed);
                kept += fits && w == 2;
                ck_assert(!fits || w != 2 || p[w].layout.arena * 100 <= p[w].none_arena * 80);
            }
            ck_assert_int_le(p[1].layout.arena, p[0].layout.arena);
            ck_assert_int_eq(p[1].least, p[1].layout.arena);
        }
    }
    ck_assert(kept > 0 || order != LS_ORDER_GPIPE);     /* where most micro-batches are under way */
}
END_TEST

static void keep_one(Pipe *x)
{
    for (uint32_t k = 0; k < x->cut.k; k++)
        ls_pipe_flow_keep(&x->flow[k]);
}

static bool plan_keeping(const Pipe *x, uint32_t stage, LsPipeWish wish, LsPipePlan *to)
{
    wish.keeps_one = true;
    wish.hints.recompute = LS_RECOMPUTE_ALL;
    return plan(x, stage, wish, to);
}

static int64_t runs(const LsPlan *p, bool again)
{
    int64_t n = 0;
    for (uint32_t s = 0; s < p->nstep; s++)
        n += !p->step[s].free && p->step[s].again == again;
    return n;
}

START_TEST(a_micro_batch_that_is_kept_is_sound_among_others)
{
    int again = 0, within = 0, shared = 0;
    for (uint64_t seed = 3; seed < 3 + (uint64_t)tests_part(20, 2); seed++) {
        const uint32_t stages = 2 + (uint32_t)(seed % 3);
        Pipe x;
        if (!make(&x, seed, stages, 5, (LsOrderKind)_i))
            continue;
        for (uint32_t k = 0; k < stages; k++) {
            LsPipePlan always, one, least, some;
            ck_assert(plan(&x, k, (LsPipeWish){.hints.recompute = LS_RECOMPUTE_ALL}, &always));
            keep_one(&x);
            ck_assert(plan_keeping(&x, k, (LsPipeWish){.budget.least = false}, &one));
            ck_assert(plan_keeping(&x, k, (LsPipeWish){.budget.least = true}, &least));
            check(&x, k, &one, seed);
            check(&x, k, &least, seed);
            ck_assert_uint_eq(one.layout.nplan, 2);
            ck_assert_int_eq(runs(&one.layout.of[LS_PIPE_KEPT].plan, true), 0);
            ck_assert_int_eq(runs(&one.layout.of[LS_PIPE_KEPT].plan, false),
                             runs(&one.layout.of[LS_PIPE_USUAL].plan, false));
            again += runs(&one.layout.of[LS_PIPE_USUAL].plan, true) > 0;
            shared +=
                one.layout.arena < always.layout.arena + one.layout.of[LS_PIPE_KEPT].plan.arena;
            ck_assert_int_le(least.layout.arena, one.layout.arena);
            const int64_t between = (least.layout.arena + one.layout.arena) / 2;
            const bool fits = plan_keeping(&x, k, (LsPipeWish){.budget.bytes = between}, &some);
            ck_assert(fits && some.layout.arena <= between);
            check(&x, k, &some, seed);
            within += some.layout.arena < one.layout.arena;
            ck_assert(!plan_keeping(&x, k, (LsPipeWish){.budget.bytes = 1}, &some) &&
                      some.layout.arena > 1);
        }
    }
    ck_assert_msg(again > 3 && within > 0 && shared > 3, "%d %d %d", again, within, shared);
}
END_TEST

/* Returns whether the audit finds the fault. */
static bool is_found(const Pipe *x, uint32_t stage, const LsPipePlan *p, const LsPipeLayout *l,
                     const LsPipeFlow *f)
{
    return !ls_pipe_audit(&p->graph, &x->cut, stage, l, f, why, sizeof why);
}

START_TEST(the_audit_finds_what_is_broken)
{
    int offsets = 0, found = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        Pipe x;
        LsPipePlan p;
        ck_assert(make(&x, seed, 2, 4, LS_ORDER_GPIPE) &&
                  plan(&x, 0, (LsPipeWish){.budget.least = false}, &p));
        check(&x, 0, &p, seed);
        LsPipeLayout l = p.layout;
        uint32_t r = l.nregion - 1;
        ck_assert(l.region[r].copies == 4 && l.region[r].bytes > 0);
        l.region[r].copies = 1;                             /* all micro-batches in one place */
        ck_assert_msg(is_found(&x, 0, &p, &l, &x.flow[0]), "seed %d", (int)seed);
        l.region[r].copies = 3;                             /* two of four */
        ck_assert_msg(is_found(&x, 0, &p, &l, &x.flow[0]), "seed %d", (int)seed);
        l = p.layout;
        l.arena -= l.region[r].bytes;                       /* a copy less */
        ck_assert_msg(is_found(&x, 0, &p, &l, &x.flow[0]), "seed %d", (int)seed);
        /* a result somewhere else */
        for (uint32_t k = 0; k < p.layout.of[0].plan.noffset; k++) {
            l = p.layout;
            l.of[0].plan.offset =
                ls_arena_alloc(a, l.of[0].plan.noffset, sizeof *l.of[0].plan.offset);
            for (uint32_t j = 0; j < l.of[0].plan.noffset; j++)
                l.of[0].plan.offset[j] =
                    p.layout.of[0].plan.offset[j == k ? (k + 1) % l.of[0].plan.noffset : j];
            offsets += l.of[0].plan.offset[k] != p.layout.of[0].plan.offset[k];
            found += is_found(&x, 0, &p, &l, &x.flow[0]);
        }
    }
    ck_assert_msg(found * 3 > offsets && offsets > 20, "%d of %d", found, offsets);
}
END_TEST

START_TEST(the_audit_finds_a_kept_micro_batch_in_the_way)
{
    int floors = 0, found_floors = 0, offsets = 0, found = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        Pipe x;
        LsPipePlan p;
        ck_assert(make(&x, seed, 2, 4, (LsOrderKind)(seed % LS_ORDERS)));
        keep_one(&x);
        ck_assert(plan_keeping(&x, 0, (LsPipeWish){.budget.least = false}, &p));
        check(&x, 0, &p, seed);
        LsPipeLayout l = p.layout;
        l.nplan = 1;
        ck_assert_msg(is_found(&x, 0, &p, &l, &x.flow[0]), "seed %d", (int)seed);
        /* As if no other micro-batch were under way. */
        const LsProb *prob = ls_prob_new(a, &p.graph.dag, true);
        ck_assert(ls_pipe_layout(a, &x.cut, 0, &p.graph, prob, &p.layout.of[LS_PIPE_USUAL].plan,
                                 &x.flow[0], 0, &l));
        l.nplaced = 0;
        ls_pipe_layout_kept(a, &x.cut, 0, &p.graph, prob, &p.layout.of[LS_PIPE_KEPT].plan, &l);
        floors += l.arena < p.layout.arena;
        found_floors += is_found(&x, 0, &p, &l, &x.flow[0]);
        LsPipeFlow f = x.flow[0];
        f.turn = ls_arena_alloc(a, f.nturn, sizeof *f.turn);
        for (uint32_t k = 0; k < f.nturn; k++) {            /* another micro-batch is kept */
            f.turn[k] = x.flow[0].turn[k];
            f.turn[k].plan = f.turn[k].micro == 1 ? LS_PIPE_KEPT : LS_PIPE_USUAL;
        }
        found_floors += is_found(&x, 0, &p, &p.layout, &f);
        const LsPlan *kept = &p.layout.of[LS_PIPE_KEPT].plan;
        for (uint32_t k = 0; k < kept->noffset; k++) {      /* a result somewhere else */
            l = p.layout;
            int64_t *offset = l.of[LS_PIPE_KEPT].plan.offset =
                ls_arena_alloc(a, kept->noffset, sizeof *offset);
            for (uint32_t j = 0; j < kept->noffset; j++)
                offset[j] = kept->offset[j == k ? (k + 1) % kept->noffset : j];
            offsets += offset[k] != kept->offset[k];
            found += is_found(&x, 0, &p, &l, &x.flow[0]);
        }
    }
    ck_assert_msg(floors > 0 && found_floors >= 5, "%d %d", floors, found_floors);
    ck_assert_msg(found * 3 > offsets && offsets > 20, "%d of %d", found, offsets);
}
END_TEST

/* A pipeline needs no more inputs at a time than its first stage has micro-batches under way, give
 * or take what others do late. */
START_TEST(few_inputs_are_needed_at_a_time)
{
    Pipe x;
    ck_assert(make(&x, 3, 3, 32, LS_ORDER_1F1B));
    ck_assert_uint_eq(x.flow[0].most, 3);
    ck_assert_uint_eq(x.flow[2].most, 1);
    ck_assert_uint_eq(x.ring, 3);
    ck_assert(make(&x, 3, 3, 32, LS_ORDER_GPIPE));
    ck_assert_uint_eq(x.ring, 32);
    ck_assert(make(&x, 3, 3, 32, LS_ORDER_ZB));
    ck_assert_uint_le(x.ring, 6);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("pipe_plans");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, open_arena, close_arena);
    tcase_add_loop_test(t, plans_are_sound_with_all_micro_batches, 0, LS_ORDERS);
    tcase_add_loop_test(t, a_micro_batch_that_is_kept_is_sound_among_others, 0, LS_ORDERS);
    tcase_add_test(t, the_audit_finds_what_is_broken);
    tcase_add_test(t, the_audit_finds_a_kept_micro_batch_in_the_way);
    tcase_add_test(t, few_inputs_are_needed_at_a_time);
    return run_tests("pipe_plans", t);
}
