/* tests/scheduler/test_pipeline_bound.c -- no pipeline is faster than the bound on cuts, and more
 * bytes make none slower. */
#include <check.h>
#include <math.h>
#include <string.h>

#include "scheduler/pipeline/pipeline_plan.h"
#include "tests/support/dag_tools.h"
#include "tests/support/less.h"
#include "tests/support/suite.h"

static LsArena *a;
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

/* Parameters have readers in several stages. Stages share them only where no other cut is found,
 * which may be faster. */
static bool is_shared(uint64_t seed) { return seed % 3 == 0; }

/* Graphs with nodes that only phase B needs, with alternatives, with statistics, and with a norm of
 * all gradients. */
static const LsProb *problem(uint64_t seed)
{
    const LsDag *g = dag_make(a, 5 + seed % 5, seed);
    char why[200];
    if (!is_shared(seed))
        g = dag_without_shared_weights(a, dag_make(a, 5 + seed % 5, seed));
    if (seed % 4 == 1)
        g = dag_with_alternatives(a, g, seed % 8 == 5, seed);
    if (seed % 4 >= 2)
        g = dag_with_updates(a, g, seed % 4 == 3, seed);
    ck_assert_msg(ls_dag_check(g, why, sizeof why), "%s", why);
    return ls_prob_new(a, g, true);
}

static LsPipelineWant want_of(const LsProb *p, uint64_t seed)
{
    int64_t *state = ls_arena_alloc(a, p->nt + 1u, sizeof *state);
    for (uint32_t t = 0; t < p->nt; t++)
        state[t] =
            p->dag->tensor[t].persistent ? ls_align(p->dag->tensor[t].bytes, p->dag->alignment) : 0;
    return (LsPipelineWant){.stages = 2 + (uint32_t)(seed / 4 % 3),
                            .micros = 1 + (uint32_t)(seed % 5),
                            .plan = {.effort = 1},
                            .state = state,
                            .input = ls_arena_alloc(a, p->nt + 1u, sizeof(int64_t)),
                            .memo = ls_pipeline_memo_new(a)};
}

/* False: the graph has no such pipeline. */
static bool holds_bound(const LsProb *p, const LsPipelineWant *want, LsKeepMode keep, uint64_t seed,
                        LsPipelinePlan *out)
{
    char why[500];
    if (!ls_pipeline_plan(a, p, want, (LsOrderKind)(seed / 2 % LS_ORDERS), keep, out, why,
                          sizeof why)) {
        ck_assert_msg(strstr(why, "stages are too many") != NULL, "seed %d: %s", (int)seed, why);
        return false;
    }
    ck_assert_msg(ls_pipeline_is_proven(out),
                  "seed %d, mode %d, budget %lld: a bound of %g, and a plan of %g", (int)seed,
                  (int)keep, (long long)want->budget.bytes, out->bound, out->bottleneck);
    return true;
}

START_TEST(no_pipeline_is_faster_than_its_bound)
{
    int tight[LS_KEEP_AUTO + 1] = {0}, n = 0;
    for (uint64_t seed = 500; seed < 500 + (uint64_t)tests_part(1000, 30); seed++) {
        const LsProb *p = problem(seed);
        const LsPipelineWant want = want_of(p, seed);
        for (int keep = 0; keep <= LS_KEEP_AUTO; keep++) {
            LsPipelinePlan plan;
            if (!holds_bound(p, &want, (LsKeepMode)keep, seed, &plan))
                continue;
            tight[keep] += ls_pipeline_gap(&plan) < 0.02;
            n++;
        }
    }
    for (int keep = 0; keep <= LS_KEEP_AUTO; keep++)
        ck_assert_int_gt(tight[keep], n / 20);
}
END_TEST

/* v and u make y and z. The gradient g of both is read by b alone; an alternative makes b's result
 * of z, so nobody reads y again. */
START_TEST(what_only_spared_gradients_read_is_not_made_again)
{
    static const char text[] =
        "{\"format\": \"lowerset-graph\", \"version\": 1, \"name\": \"spared\", \"alignment\": 1, "
        "\"outputs\": [2, 4], \"tensors\": ["
        "{\"id\": 0, \"name\": \"x\", \"bytes\": 8, \"persistent\": true}, {\"id\": 1, \"name\": "
        "\"y\", \"bytes\": 8},"
        "{\"id\": 2, \"name\": \"z\", \"bytes\": 8}, {\"id\": 3, \"name\": \"g\", \"bytes\": 8}, "
        "{\"id\": 4, \"name\": \"b\", \"bytes\": 8}],"
        "\"nodes\": ["
        "{\"id\": 0, \"name\": \"v\", \"op\": \"F\", \"kind\": \"forward\", \"cost\": 10, "
        "\"inputs\": [0], \"outputs\": [1]},"
        "{\"id\": 1, \"name\": \"u\", \"op\": \"F\", \"kind\": \"forward\", \"cost\": 1, "
        "\"inputs\": [1], \"outputs\": [2], \"once\": true},"
        "{\"id\": 2, \"name\": \"g\", \"op\": \"B\", \"kind\": \"backward\", \"cost\": 1, "
        "\"inputs\": [1, 2], \"outputs\": [3], \"of\": 1},"
        "{\"id\": 3, \"name\": \"b\", \"op\": \"B\", \"kind\": \"backward\", \"cost\": 1, "
        "\"inputs\": [3], \"outputs\": [4], \"of\": 0},"
        "{\"id\": 4, \"name\": \"zb\", \"op\": \"A\", \"kind\": \"backward\", \"cost\": 5, "
        "\"inputs\": [2], \"outputs\": [4], \"of\": 0,"
        "\"alternative\": true}]}";
    char why[200];
    const LsDag *g = ls_dag_parse(a, text, why, sizeof why);
    ck_assert_msg(g != NULL, "%s", why);
    const LsProb *p = ls_prob_new(a, g, true);
    LsPipelineWant want = want_of(p, 0);
    want.stages = 1;
    LsPipelinePlan plan;
    ck_assert(holds_bound(p, &want, LS_KEEP_ALWAYS, 0, &plan));
    ck_assert_double_eq(plan.bottleneck, 16);
}
END_TEST

START_TEST(within_budgets_no_pipeline_is_faster_than_its_bound)
{
    int kept = 0, slower = 0;
    for (uint64_t seed = 2008; seed < 2008 + (uint64_t)tests_part(200, 6); seed++) {
        const LsProb *p = problem(seed);
        LsPipelineWant want = want_of(p, seed);
        const LsKeepMode keep = (LsKeepMode)(seed / 4 % (LS_KEEP_AUTO + 1));
        LsPipelinePlan plan;
        if (!holds_bound(p, &want, LS_KEEP_AUTO, seed, &plan))
            continue;
        const int64_t most = plan.peak;
        double last = INFINITY;
        for (int part = 7; part <= 10; part++) {        /* more bytes hardly ever find a slower
                                                         * pipeline, or none */
            want.budget = (LsBudget){LS_BUDGET_OF_PROCESS, .bytes = most * part / 10};
            ck_assert(holds_bound(p, &want, keep, seed, &plan));
            slower +=
                !is_shared(seed) && (plan.fits ? plan.bottleneck > 1.005 * last : !isinf(last));
            if (!plan.fits)
                continue;
            ck_assert_int_le(plan.peak, want.budget.bytes);
            last = plan.bottleneck;
            kept++;
        }
    }
    ck_assert_int_gt(kept, 5);
    ck_assert_msg(50 * slower <= kept, "%d of %d budgets find a slower pipeline than a smaller one",
                  slower, kept);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("pipeline_bound");
    tcase_set_timeout(tc, 600);
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    tcase_add_test(tc, no_pipeline_is_faster_than_its_bound);
    tcase_add_test(tc, what_only_spared_gradients_read_is_not_made_again);
    tcase_add_test(tc, within_budgets_no_pipeline_is_faster_than_its_bound);
    return run_tests("pipeline_bound", tc);
}
