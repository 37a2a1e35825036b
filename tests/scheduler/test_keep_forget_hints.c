/* tests/scheduler/test_keep_forget_hints.c -- plans obey hints, and are plans of the original
 * graph. */
#include <check.h>
#include <string.h>

#include "scheduler/graph/dag_read.h"
#include "scheduler/plan/hint_plan.h"
#include "scheduler/pipeline/pipeline_plan.h"
#include "scheduler/plan/keep_forget_hints.h"
#include "scheduler/plan/plan_audit.h"
#include "tests/support/dag_tools.h"
#include "tests/support/less.h"
#include "tests/support/suite.h"

static LsArena *a;
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

static char why[400];

/* Gives all nodes and tensors different names. */
static LsDag *named(uint32_t nf, uint64_t seed)
{
    LsDag *g = dag_make(a, nf, seed);
    for (uint32_t t = 0; t < g->ntensor; t++)
        g->tensor[t].name = ls_arena_printf(a, "t%u_", t);
    for (uint32_t i = 0; i < g->nnode; i++)
        g->node[i].name = ls_arena_printf(a, "n%u_", i);
    return g;
}

static uint32_t maker(const LsDag *g, uint32_t t)
{
    for (uint32_t i = 0; i < g->nnode; i++)
        if (ls_id_in(g->node[i].out, g->node[i].nout, t))
            return i;
    return UINT32_MAX;
}

static uint32_t runs_of(const LsPlan *plan, uint32_t node)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < plan->nstep; s++)
        n += !plan->step[s].free && plan->step[s].id == node;
    return n;
}

/* Plans under the hints and audits against the original graph; false: nothing fits. */
static bool plan_with(const LsDag *g, const LsHints *hints, int64_t budget, LsPlan *plan,
                      LsPlanReport *r)
{
    LsHinted h;
    ck_assert_msg(ls_hints_apply(a, g, hints, &h, why, sizeof why), "%s", why);
    if (!ls_hints_plan(a, &h, &(LsPlanOptions){.budget.bytes = budget, .effort = 1, .seconds = 1e6},
                       plan, r)) {
        ck_assert_ptr_nonnull(r->error);
        return false;
    }
    ck_assert_msg(ls_audit(g, plan, why, sizeof why), "%s: %s", g->name, why);
    ck_assert(budget <= 0 || plan->arena <= budget);
    ck_assert(r->bound <= plan->cost * (1 + 1e-9));
    ck_assert_uint_lt(r->peak_node, g->nnode);
    for (uint32_t k = 0; k < r->nowner; k++)
        ck_assert_uint_lt(r->owner[k].tensor, g->ntensor);
    return true;
}

static int64_t plain_arena(const LsDag *g)
{
    LsPlan none;
    ck_assert(ls_plan_none(a, g, &none));
    return none.arena;
}

/* Whether some node after `turn` in the list reads an instance of t from before the turn's run. */
static bool crosses(const LsDag *g, const LsPlan *plan, uint32_t t, uint32_t turn)
{
    bool turned = false, fresh = false;
    for (uint32_t s = 0; s < plan->nstep; s++) {
        const LsPlanStep *step = &plan->step[s];
        const LsDagNode *n = &g->node[step->id];
        if (step->free)
            continue;
        if (step->id > turn && ls_id_in(n->in, n->nin, t) && !fresh)
            return true;
        fresh |= turned && ls_id_in(n->out, n->nout, t);
        turned |= step->id == turn;
    }
    return false;
}

START_TEST(what_is_kept_is_made_once)
{
    for (uint64_t seed = 0; seed < (uint64_t)tests_part(6, 2); seed++) {
        LsDag *g = named(8, seed);
        for (uint32_t t = 0; t < g->ntensor; t += 5) {
            LsPlan plan;
            LsPlanReport r;
            LsHints hints = {.keep = &g->tensor[t].name, .nkeep = 1};
            if (maker(g, t) != UINT32_MAX
                && plan_with(g, &hints, plain_arena(g) * 7 / 10, &plan, &r))
                ck_assert_uint_le(runs_of(&plan, maker(g, t)), 1);
        }
    }
}
END_TEST

START_TEST(what_is_forgotten_does_not_cross_the_turn)
{
    int planned = 0;
    for (uint64_t seed = 0; seed < (uint64_t)tests_part(6, 2); seed++) {
        LsDag *g = named(8, seed);
        uint32_t turn = 7;              /* the last forward node; random graphs list them first */
        for (uint32_t t = 0; t < g->ntensor; t += 3)
            for (int part = 12; part >= 8; part -= 4) {
                LsPlan plan;
                LsPlanReport r;
                LsHinted h;
                LsHints hints = {.forget = &g->tensor[t].name, .nforget = 1};
                if (g->node[turn].once || !ls_hints_apply(a, g, &hints, &h, why, sizeof why)
                    || !plan_with(g, &hints, plain_arena(g) * part / 10, &plan, &r))
                    continue;
                ck_assert_msg(!crosses(g, &plan, t, turn), "seed %d, tensor %u", (int)seed, t);
                planned++;
            }
    }
    ck_assert_int_gt(planned, 10);
}
END_TEST

START_TEST(all_makes_again_whatever_can_be)
{
    LsPlan plan, none;
    LsPlanReport r;
    LsDag *g = named(9, 3);
    ck_assert(ls_plan_none(a, g, &none));
    ck_assert(plan_with(g, &(LsHints){.recompute = LS_RECOMPUTE_ALL}, 0, &plan, &r));
    ck_assert(plan.cost > none.cost);
    ck_assert_double_eq(plan.base_cost, none.base_cost);
    ck_assert(ls_plan_turn(g, &plan).kept_bytes < ls_plan_turn(g, &none).kept_bytes);
    ck_assert_int_gt(ls_plan_turn(g, &plan).all.bytes, 0);
    for (uint32_t t = 0; t < g->ntensor; t++)
        if (maker(g, t) < 8 && !g->node[maker(g, t)].once && !g->tensor[t].output)
            ck_assert(!crosses(g, &plan, t, 8));
}
END_TEST

START_TEST(none_runs_nothing_again_and_costs_nothing)
{
    for (uint64_t seed = 0; seed < 6; seed++) {
        LsPlan plan;
        LsPlanReport r;
        LsDag *g = named(9, seed);
        ck_assert(plan_with(g, &(LsHints){.recompute = LS_RECOMPUTE_NONE}, 0, &plan, &r));
        ck_assert_uint_eq(ls_plan_turn(g, &plan).all.runs, 0);
        ck_assert(ls_plan_overhead(&plan) <= 0);    /* below: alternatives that are cheaper */
    }
}
END_TEST

START_TEST(cheap_spares_products_and_conv_saved_spares_convolutions)
{
    static const char *const op[] = {"Conv", "Relu", "MatMul", "BatchNorm"};
    for (uint64_t seed = 0; seed < (uint64_t)tests_part(10, 4); seed++) {
        LsDag *g = named(10, seed);
        for (uint32_t i = 0; i < g->nnode; i++)
            g->node[i].op = op[i % 4];
        for (int policy = LS_RECOMPUTE_CHEAP; policy <= LS_RECOMPUTE_CONV_SAVED; policy++) {
            LsPlan plan;
            LsPlanReport r;
            if (!plan_with(g, &(LsHints){.recompute = policy}, plain_arena(g) * 8 / 10, &plan, &r))
                continue;
            for (uint32_t i = 0; i < g->nnode; i++)
                if (i % 4 == 0 || (i % 4 == 2 && policy == LS_RECOMPUTE_CHEAP))
                    ck_assert_uint_le(runs_of(&plan, i), 1);
        }
    }
}
END_TEST

/* x -> y -> z -> gz -> gy: the backward nodes read y and z; node 4 makes gz from x instead. */
static LsDag *with_alternative(void)
{
    static const uint32_t id[] = {0, 1, 2, 3, 4, 5};
    LsDag *g = ls_arena_alloc(a, 1, sizeof *g);
    g->name = "alternative";
    g->alignment = 1;
    g->tensor = ls_arena_alloc(a, 6, sizeof *g->tensor);
    g->ntensor = 5;
    for (uint32_t t = 0; t < 5; t++)
        g->tensor[t] = (LsDagTensor){ls_arena_printf(a, "t%u", t), 100, t == 0, t == 4};
    g->node = ls_arena_alloc(a, 6, sizeof *g->node);
    g->nnode = 5;
    for (uint32_t i = 0; i < 4; i++)
        g->node[i] = (LsDagNode){.name = ls_arena_printf(a, "n%u", i), .op = "F", .cost = 10,
                                 .kind = i < 2 ? LS_DAG_FORWARD : LS_DAG_BACKWARD, .of = -1,
                                 .in = id + i, .nin = 1, .out = id + i + 1, .nout = 1};
    g->node[4] = g->node[3];
    g->node[3] = g->node[2];
    g->node[3].name = "n2 again";
    g->node[3].alternative = true;
    g->node[3].in = id;
    return g;
}

START_TEST(ways_around_what_is_kept_are_ruled_out)
{
    LsDag *g = with_alternative();
    const char *name = "t2";
    LsHinted h;
    ck_assert_msg(ls_dag_check(g, why, sizeof why), "%s", why);
    ck_assert(ls_hints_apply(a, g, &(LsHints){0}, &h, why, sizeof why));
    ck_assert_uint_eq(h.dag->nnode, 5);
    ck_assert(ls_hints_apply(a, g, &(LsHints){.keep = &name, .nkeep = 1}, &h, why, sizeof why));
    ck_assert_uint_eq(h.dag->nnode, 4);         /* node 3 does not read t2, node 2 does */
    ck_assert_uint_eq(h.node_of[3], 4);
    ck_assert(ls_hints_apply(a, g, &(LsHints){.recompute = LS_RECOMPUTE_NONE}, &h, why,
                             sizeof why));
    ck_assert_uint_eq(h.dag->nnode, 4);
}
END_TEST

START_TEST(wrong_names_are_answered_with_near_ones)
{
    LsDag *g = named(6, 1);
    LsHinted h;
    const char *name = "t3-", *weight = NULL, *output = NULL, *back = NULL, *some = "n[0-9]_";
    ck_assert(!ls_hints_apply(a, g, &(LsHints){.keep = &name, .nkeep = 1}, &h, why, sizeof why));
    ck_assert_ptr_nonnull(strstr(why, "--keep: nothing is called 't3-'; near it: 't3_'"));
    ck_assert(!ls_hints_apply(a, g, &(LsHints){.forget = &name, .nforget = 1}, &h, why,
                              sizeof why));
    for (uint32_t t = 0; t < g->ntensor; t++) {
        if (g->tensor[t].persistent)
            weight = g->tensor[t].name;
        else if (g->tensor[t].output && maker(g, t) < 6)
            output = g->tensor[t].name;
        else if (maker(g, t) >= 6 && !g->tensor[t].output)
            back = g->tensor[t].name;
    }
    ck_assert(!ls_hints_apply(a, g, &(LsHints){.forget = &weight, .nforget = 1}, &h, why,
                              sizeof why));
    ck_assert_ptr_nonnull(strstr(why, "is there all the time"));
    ck_assert(!ls_hints_apply(a, g, &(LsHints){.forget = &output, .nforget = 1}, &h, why,
                              sizeof why));
    ck_assert_ptr_nonnull(strstr(why, "when the step ends"));
    ck_assert(!ls_hints_apply(a, g, &(LsHints){.forget = &back, .nforget = 1}, &h, why,
                              sizeof why));
    ck_assert_ptr_nonnull(strstr(why, "not made in the forward part"));
    ck_assert(!ls_hints_apply(a, g, &(LsHints){.keep = &some, .nkeep = 1, .forget = &some,
                                               .nforget = 1}, &h, why, sizeof why));
    ck_assert_ptr_nonnull(strstr(why, "is to be kept as well"));
}
END_TEST

START_TEST(policies_have_names)
{
    LsRecompute p;
    for (int k = 0; k < LS_NRECOMPUTE; k++)
        ck_assert(ls_recompute_parse(ls_recompute_policy[k].name, &p) && p == (LsRecompute)k);
    ck_assert(ls_recompute_parse("conv-saved", &p) && p == LS_RECOMPUTE_CONV_SAVED);
    ck_assert_str_eq(LS_RECOMPUTE_NAMES, "auto|none|cheap|conv-saved|all|except-last");
    /* of a pipeline, by policy */
    for (LsKeepMode keep = LS_KEEP_NEVER; keep <= LS_KEEP_AUTO; keep++)
        ck_assert_int_eq(ls_pipeline_keep(ls_pipeline_policy(&(LsPipelineWant){.stages = 2}, keep)),
                         keep);
    ck_assert_int_eq(ls_pipeline_keep(LS_RECOMPUTE_CHEAP), LS_KEEP_AUTO);
    ck_assert(!ls_recompute_parse("some", &p));
}
END_TEST

int main(void)
{
    const TTest *test[] = {
        what_is_kept_is_made_once,
        what_is_forgotten_does_not_cross_the_turn,
        all_makes_again_whatever_can_be,
        none_runs_nothing_again_and_costs_nothing,
        cheap_spares_products_and_conv_saved_spares_convolutions,
        ways_around_what_is_kept_are_ruled_out,
        wrong_names_are_answered_with_near_ones,
        policies_have_names,
    };
    TCase *tc = tcase_create("hints");
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    tcase_set_timeout(tc, 300);
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("hints", tc);
}
