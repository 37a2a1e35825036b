/* tests/scheduler/test_pipe_plans.c -- plans of the stages of random graphs are sound for all micro-batches under way, and the
 * audit that says so finds what is broken. */
#include <check.h>

#include "scheduler/pipeline/pipe_audit.h"
#include "scheduler/pipeline/pipe_holds.h"
#include "scheduler/pipeline/pipe_plan.h"
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

static bool make(Pipe *x, uint64_t seed, uint32_t stages, uint32_t micros, LsOrderKind order)
{
    const LsProb *p = ls_prob_new(a, dag_make(a, 6 + (uint32_t)(seed % 9), seed), true);
    const LsStageOptions o = {.stages = stages, .micros = micros, .order = order};
    LsStages s;
    bool reads[LS_MOST_STAGES] = {false};
    reads[0] = reads[stages - 1] = true;
    if (!ls_stages_in_file_order(a, p, &o, &s, why, sizeof why))
        return false;
    ck_assert_msg(ls_pipe_cut(a, p, &s, order == LS_ORDER_ZB, &x->cut, why, sizeof why), "seed %d: %s", (int)seed, why);
    LsStageTimes *of = ls_arena_alloc(a, stages, sizeof *of);
    for (uint32_t k = 0; k < stages; k++)
        of[k] = (LsStageTimes){.ns = {2, 3, 1 + k % 2}};
    ls_pipe_flow(a, &x->cut, order, micros, reads, x->flow);
    ls_pipe_holds(&x->cut, order, micros, of, (LsLinkSpeed){0, 0});
    ck_assert_msg(ls_pipe_ring(&x->cut, x->flow, micros, &x->ring, why, sizeof why), "seed %d: %s", (int)seed, why);
    return true;
}

static bool plan(const Pipe *x, uint32_t stage, LsPipeWish wish, LsPipePlan *to)
{
    wish.flow = &x->flow[stage];
    wish.plan.unproven = true;
    wish.plan.effort = 1;
    return ls_pipe_plan(a, &x->cut, stage, &wish, to, why, sizeof why);
}

static void check(const Pipe *x, uint32_t stage, const LsPipePlan *p, uint64_t seed)
{
    const LsPipeLayout *l = &p->layout;
    ck_assert_msg(ls_audit(&p->graph.dag, &l->plan, why, sizeof why), "seed %d, stage %u: %s", (int)seed, stage, why);
    ck_assert_msg(ls_pipe_audit(&p->graph, &x->cut, stage, l, &x->flow[stage], why, sizeof why), "seed %d, stage %u: %s",
                  (int)seed, stage, why);
    int64_t bytes = 0;
    for (uint32_t k = 0; k < l->nregion; k++) {
        ck_assert_int_eq(l->region[k].at, bytes);
        bytes += l->region[k].copies * l->region[k].bytes;
    }
    ck_assert_int_eq(l->arena, bytes);
    ck_assert_int_le(l->plan.arena, l->arena);
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
            const LsPipeWish want[] = {{.least = false}, {.least = true}, {.percent = 80}, {.hints.recompute = LS_RECOMPUTE_ALL}};
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

/* Returns whether the audit finds the fault. */
static bool is_found(const Pipe *x, uint32_t stage, const LsPipePlan *p, const LsPipeLayout *l, const LsPipeFlow *f)
{
    return !ls_pipe_audit(&p->graph, &x->cut, stage, l, f, why, sizeof why);
}

START_TEST(the_audit_finds_what_is_broken)
{
    int offsets = 0, found = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        Pipe x;
        LsPipePlan p;
        ck_assert(make(&x, seed, 2, 4, LS_ORDER_GPIPE) && plan(&x, 0, (LsPipeWish){.least = false}, &p));
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
        for (uint32_t k = 0; k < p.layout.plan.noffset; k++) {      /* a result somewhere else */
            l = p.layout;
            l.plan.offset = ls_arena_alloc(a, l.plan.noffset, sizeof *l.plan.offset);
            for (uint32_t j = 0; j < l.plan.noffset; j++)
                l.plan.offset[j] = p.layout.plan.offset[j == k ? (k + 1) % l.plan.noffset : j];
            offsets += l.plan.offset[k] != p.layout.plan.offset[k];
            found += is_found(&x, 0, &p, &l, &x.flow[0]);
        }
    }
    ck_assert_msg(found * 3 > offsets && offsets > 20, "%d of %d", found, offsets);
}
END_TEST

/* A pipeline needs no more inputs at a time than its first stage has micro-batches under way, give or take what others do
 * late. */
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
    tcase_add_test(t, the_audit_finds_what_is_broken);
    tcase_add_test(t, few_inputs_are_needed_at_a_time);
    return run_tests("pipe_plans", t);
}
