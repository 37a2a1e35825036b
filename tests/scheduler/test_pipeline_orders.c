/* tests/scheduler/test_pipeline_orders.c -- orders, their simulation against closed formulas, and deadlocks. */
#include <check.h>
#include <string.h>

#include "scheduler/pipeline/deadlock.h"
#include "scheduler/pipeline/pipeline_simulation.h"
#include "tests/support/suite.h"

enum { MOST = 8 };

static LsArena *a;
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

static char why[500];

/* A chain of p stages: each sends `bytes` up in F and down in B. */
static LsStages chain(uint32_t p, int64_t bytes)
{
    LsStages s = {.k = p, .send = ls_arena_alloc(a, 2 * p, sizeof *s.send)};
    for (uint32_t k = 0; k < p; k++) {
        if (k > 0)
            s.send[s.nsend++] = (LsStageSend){2 * k, k, k - 1, LS_PHASE_B, LS_PHASE_B, false, bytes};
        if (k + 1 < p)
            s.send[s.nsend++] = (LsStageSend){2 * k + 1, k, k + 1, LS_PHASE_F, LS_PHASE_F, false, bytes};
    }
    return s;
}

/* Every stage takes f, b, w ns, keeps `kept` bytes, and needs `all` in B; W needs as much as B leaves it. */
static LsStageFigures *equal(uint32_t p, double f, double b, double w, int64_t kept, int64_t all, int64_t late)
{
    LsStageFigures *of = ls_arena_alloc(a, p, sizeof *of);
    for (uint32_t k = 0; k < p; k++)
        of[k] = (LsStageFigures){.ns = {f, b, w}, .kept = kept, .late = late, .peak = {kept, all, late}};
    return of;
}

static LsPipelineTimes simulate(const LsStages *s, LsOrderKind order, uint32_t m, const LsStageFigures *of,
                                const LsStageFigures *first, LsLinkSpeed link)
{
    const LsPipelineRun run = {s, order, m, of, first, link};
    return ls_pipeline_simulate(a, &run);
}

static const LsLinkSpeed no_time = {0, 0};

START_TEST(equal_stages_take_what_the_formulas_say)
{
    for (uint32_t p = 1; p <= MOST; p++)
        for (uint32_t m = 1; m <= 3 * p; m += 1 + p / 2) {
            const LsStages s = chain(p, 0);
            const LsStageFigures *of = equal(p, 2, 3, 1, 0, 0, 0);
            for (int kind = LS_ORDER_GPIPE; kind <= LS_ORDER_1F1B; kind++) {
                const LsPipelineTimes t = simulate(&s, (LsOrderKind)kind, m, of, of, no_time);
                ck_assert_double_eq_tol(t.step, (m + p - 1) * 6.0, 1e-9);
                ck_assert_double_eq_tol(t.bubble, (p - 1.0) / (m + p - 1), 1e-9);
            }
        }
}
END_TEST

/* ZB-H1: bubbles of (p - 1)(F + B - W), once there are micro-batches enough to fill the pipeline. */
START_TEST(gradients_of_weights_fill_bubbles)
{
    for (uint32_t p = 1; p <= MOST; p++)
        for (uint32_t m = p; m <= 4 * p; m += p) {
            const LsStages s = chain(p, 0);
            const LsStageFigures *of = equal(p, 1, 1, 1, 0, 0, 0);
            const LsPipelineTimes t = simulate(&s, LS_ORDER_ZB, m, of, of, no_time);
            ck_assert_double_eq_tol(t.step, 3.0 * m + (p - 1), 1e-9);
            ck_assert_double_eq_tol(t.bubble, (p - 1.0) / (3.0 * m + p - 1), 1e-9);
        }
}
END_TEST

START_TEST(equal_stages_hold_what_the_formulas_say)
{
    enum { A = 1000, K = 100 };
    for (uint32_t p = 1; p <= MOST; p++)
        for (uint32_t m = p; m <= 2 * p; m += p) {
            const LsStages s = chain(p, 0);
            const LsStageFigures *never = equal(p, 1, 1, 1, A, A, 0), *always = equal(p, 1, 2, 1, K, K + A, 0);
            for (uint32_t i = 0; i < p; i++) {
                ck_assert_int_eq(simulate(&s, LS_ORDER_GPIPE, m, never, never, no_time).rank[i].peak, (int64_t)m * A);
                ck_assert_int_eq(simulate(&s, LS_ORDER_GPIPE, m, always, always, no_time).rank[i].peak, (int64_t)m * K + A);
                ck_assert_int_eq(simulate(&s, LS_ORDER_1F1B, m, never, never, no_time).rank[i].peak, (int64_t)(p - i) * A);
                ck_assert_int_eq(simulate(&s, LS_ORDER_1F1B, m, always, always, no_time).rank[i].peak,
                                 (int64_t)(p - i) * K + A);
                /* One micro-batch is not made again, in no more memory than `always` takes. */
                const LsPipelineTimes t = simulate(&s, LS_ORDER_GPIPE, m, always, never, no_time);
                ck_assert_int_eq(t.rank[i].peak, (int64_t)(m - 1) * K + A);
                ck_assert_double_lt(t.step, simulate(&s, LS_ORDER_GPIPE, m, always, always, no_time).step);
            }
        }
}
END_TEST

START_TEST(no_rank_of_zb_holds_more_than_the_first_of_1f1b)
{
    for (uint32_t p = 1; p <= MOST; p++)
        for (uint32_t m = 1; m <= 3 * p; m++)
            for (uint32_t i = 0; i < p; i++) {
                const LsRankOrder zb = ls_rank_order(a, LS_ORDER_ZB, i, p, m);
                const LsRankOrder one = ls_rank_order(a, LS_ORDER_1F1B, i, p, m);
                const LsRankOrder all = ls_rank_order(a, LS_ORDER_GPIPE, i, p, m);
                const uint32_t ahead = p - i < m ? p - i : m;
                ck_assert_uint_eq(ls_rank_order_slots(&one, LS_PHASE_W), ahead);
                ck_assert_uint_eq(ls_rank_order_slots(&zb, LS_PHASE_B), ahead);
                ck_assert_uint_le(ls_rank_order_slots(&zb, LS_PHASE_W), p < m ? p : m);
                ck_assert_uint_eq(ls_rank_order_slots(&all, LS_PHASE_W), m);
            }
}
END_TEST

START_TEST(messages_take_latency_and_bytes_over_bandwidth)
{
    enum { P = 4, M = 6, BYTES = 30 };
    const LsStages s = chain(P, BYTES);
    const LsStageFigures *of = equal(P, 10, 20, 10, 0, 0, 0);
    const LsLinkSpeed link = {.latency = 2, .bytes_per_ns = 10};       /* a message takes 5 ns, less than a phase */
    const LsPipelineTimes t = simulate(&s, LS_ORDER_GPIPE, M, of, of, link);
    ck_assert_double_eq_tol(t.step, (M + P - 1) * 40.0 + 2 * (P - 1) * 5.0, 1e-9);
    /* A link slower than the stages carries one message after the other. */
    const LsPipelineTimes slow = simulate(&s, LS_ORDER_GPIPE, M, of, of, (LsLinkSpeed){0, 0.5});
    ck_assert_double_ge(slow.step, 2 * M * BYTES / 0.5);
}
END_TEST

START_TEST(messages_take_memory_until_they_are_read)
{
    enum { BYTES = 7 };
    const LsStages s = chain(2, BYTES);
    LsStageFigures *of = equal(2, 1, 1, 1, 0, 0, 0);
    of[1].ns[LS_PHASE_F] = 100;                     /* the second rank is late */
    const LsPipelineTimes t = simulate(&s, LS_ORDER_GPIPE, 4, of, of, no_time);
    ck_assert_int_eq(t.rank[1].peak, 3 * BYTES);    /* of 4 it has read one */
}
END_TEST

START_TEST(copies_are_sent_at_the_end_of_a_step)
{
    LsStages s = chain(2, 0);
    LsStageCopy copy = {0, 0, 1, 100};
    const LsStageFigures *of = equal(2, 1, 1, 1, 0, 0, 0);
    const double before = simulate(&s, LS_ORDER_1F1B, 3, of, of, (LsLinkSpeed){1, 10}).step;
    s.copy = &copy;
    s.ncopy = 1;
    ck_assert_double_eq_tol(simulate(&s, LS_ORDER_1F1B, 3, of, of, (LsLinkSpeed){1, 10}).step, before + 11, 1e-9);
}
END_TEST

static LsRankOrder order_of(const char *text)
{
    LsRankOrder o = {.step = ls_arena_alloc(a, strlen(text), sizeof *o.step)};
    for (; *text != '\0'; text += 2)
        o.step[o.n++] = (LsRankStep){text[0] == 'F' ? LS_PHASE_F : text[0] == 'B' ? LS_PHASE_B : LS_PHASE_W,
                                     (uint32_t)(text[1] - '0')};
    return o;
}

static bool run(const LsStages *s, const char *first, const char *second, uint32_t room)
{
    const LsFlows flows = ls_flows(a, s, false);
    const LsRankOrder order[] = {order_of(first), order_of(second)};
    return ls_orders_run(s, &flows, order, 2, room, why, sizeof why);
}

START_TEST(ranks_that_wait_in_a_circle_are_refused)
{
    const LsStages s = chain(2, 1);
    ck_assert(run(&s, "F0F1B0W0B1W1", "F0B0W0F1B1W1", UINT32_MAX));
    ck_assert(run(&s, "F0B0W0F1B1W1", "F0B0W0F1B1W1", UINT32_MAX));
    ck_assert(!run(&s, "F0B0W0F1B1W1", "F0F1B0W0B1W1", UINT32_MAX));
    ck_assert_str_eq(why, "rank 0 waits before B of micro-batch 0 for rank 1, "
                          "rank 1 waits before F of micro-batch 1 for rank 0");
}
END_TEST

START_TEST(sends_that_wait_for_their_receives_can_be_a_circle)
{
    const LsStages s = chain(2, 1);
    ck_assert(run(&s, "F0F1B0W0B1W1", "F0F1B0W0B1W1", 0));              /* gpipe */
    ck_assert(!run(&s, "F0F1B0W0B1W1", "F0B0W0F1B1W1", 0));             /* 1f1b: both send */
    ck_assert_ptr_nonnull(strstr(why, "rank 0 waits behind F of micro-batch 1 for rank 1"));
    ck_assert_ptr_nonnull(strstr(why, "rank 1 waits behind B of micro-batch 0 for rank 0"));
    ck_assert(run(&s, "F0F1B0W0B1W1", "F0B0W0F1B1W1", 1));
}
END_TEST

START_TEST(orders_without_a_phase_or_out_of_turn_are_refused)
{
    const LsStages s = chain(2, 1);
    ck_assert(!run(&s, "F0F1B0W0B1", "F0B0W0F1B1W1", UINT32_MAX));
    ck_assert_str_eq(why, "rank 0 never runs W of micro-batch 1");
    ck_assert(!run(&s, "F0F1B0W0B1W1", "F0W0B0F1B1W1", UINT32_MAX));
    ck_assert_str_eq(why, "rank 1 is to run W of micro-batch 0 out of its turn");
    ck_assert(!run(&s, "F0F1B0W0B1W1F0", "F0B0W0F1B1W1", UINT32_MAX));
}
END_TEST

START_TEST(all_orders_run_with_one_message_on_a_link)
{
    for (uint32_t p = 1; p <= MOST; p++)
        for (uint32_t m = 1; m <= 2 * p; m++)
            for (int kind = 0; kind < LS_ORDERS; kind++) {
                const LsStages s = chain(p, 1);
                const LsFlows flows = ls_flows(a, &s, !ls_order_is_apart((LsOrderKind)kind));
                LsRankOrder order[MOST];
                for (uint32_t k = 0; k < p; k++)
                    order[k] = ls_rank_order(a, (LsOrderKind)kind, k, p, m);
                ck_assert_msg(ls_orders_run(&s, &flows, order, m, 1, why, sizeof why), "%s", why);
            }
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("pipeline_orders");
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    tcase_add_test(tc, equal_stages_take_what_the_formulas_say);
    tcase_add_test(tc, gradients_of_weights_fill_bubbles);
    tcase_add_test(tc, equal_stages_hold_what_the_formulas_say);
    tcase_add_test(tc, no_rank_of_zb_holds_more_than_the_first_of_1f1b);
    tcase_add_test(tc, messages_take_latency_and_bytes_over_bandwidth);
    tcase_add_test(tc, messages_take_memory_until_they_are_read);
    tcase_add_test(tc, copies_are_sent_at_the_end_of_a_step);
    tcase_add_test(tc, ranks_that_wait_in_a_circle_are_refused);
    tcase_add_test(tc, sends_that_wait_for_their_receives_can_be_a_circle);
    tcase_add_test(tc, orders_without_a_phase_or_out_of_turn_are_refused);
    tcase_add_test(tc, all_orders_run_with_one_message_on_a_link);
    return run_tests("pipeline_orders", tc);
}
