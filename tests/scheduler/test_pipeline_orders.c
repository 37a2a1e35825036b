/* tests/scheduler/test_pipeline_orders.c -- orders, their simulation against closed formulas, and
 * deadlocks. */
#include <check.h>
#include <string.h>

#include "scheduler/pipeline/message_lifetimes.h"
#include "tests/support/suite.h"

enum { MOST = 8 };

static LsArena *a;
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

static char why[500];

/* A chain of p stages: each sends `bytes` up in F and down in B. */
static LsPipeCut chain(uint32_t p, int64_t bytes, LsOrderKind order)
{
    LsPipeCut c = {.k = p,
                   .splits = order == LS_ORDER_ZB,
                   .move = ls_arena_alloc(a, 2 * p + 2, sizeof *c.move)};
    for (uint32_t k = 0; k < p; k++) {
        if (k > 0)
            c.move[c.nmove++] = (LsPipeMove){2 * k,      k,     k - 1,      LS_PHASE_B,
                                             LS_PHASE_B, bytes, LS_PHASE_F, LS_TO_THE_END};
        if (k + 1 < p)
            c.move[c.nmove++] = (LsPipeMove){2 * k + 1,  k,     k + 1,      LS_PHASE_F,
                                             LS_PHASE_F, bytes, LS_PHASE_F, LS_TO_THE_END};
    }
    return c;
}

static LsPipeFlow *flows(const LsPipeCut *c, LsOrderKind order, uint32_t m)
{
    static const bool reads[MOST] = {true};
    LsPipeFlow *flow = ls_arena_alloc(a, c->k, sizeof *flow);
    uint32_t ring;
    ls_pipe_flow(a, c, order, m, reads, flow);
    ck_assert_msg(ls_pipe_ring(c, flow, m, &ring, why, sizeof why), "%s", why);
    return flow;
}

/* Every stage takes f, b, w ns. */
typedef LsStageTimes Times[LS_PIPE_PLANS];

static Times *equal(uint32_t p, double f, double b, double w)
{
    Times *of = ls_arena_alloc(a, p, sizeof *of);
    for (uint32_t k = 0; k < p; k++)
        of[k][LS_PIPE_USUAL] = (LsStageTimes){.ns = {f, b, w}};
    return of;
}

static LsPipelineTimes simulate(const LsPipeCut *c, LsOrderKind order, uint32_t m, Times *of,
                                LsLinkSpeed link)
{
    const LsPipelineRun run = {c, flows(c, order, m), m, of, link};
    return ls_pipeline_simulate(a, &run);
}

static const LsLinkSpeed no_time = {0, 0};

START_TEST(equal_stages_take_what_the_formulas_say)
{
    for (uint32_t p = 1; p <= MOST; p++)
        for (uint32_t m = 1; m <= 3 * p; m += 1 + p / 2)
            for (int kind = LS_ORDER_GPIPE; kind <= LS_ORDER_1F1B; kind++) {
                const LsPipeCut c = chain(p, 0, (LsOrderKind)kind);
                const LsPipelineTimes t =
                    simulate(&c, (LsOrderKind)kind, m, equal(p, 2, 3, 1), no_time);
                ck_assert_double_eq_tol(t.step, (m + p - 1) * 6.0, 1e-9);
                ck_assert_double_eq_tol(t.bubble, (p - 1.0) / (m + p - 1), 1e-9);
            }
}
END_TEST

/* The first micro-batch runs nothing again: each stage saves its recomputation once, and the last
 * one is never idle. */
START_TEST(a_micro_batch_that_is_kept_saves_its_recomputation)
{
    for (uint32_t p = 1; p <= MOST; p++)
        for (uint32_t m = 2; m <= 3 * p; m += 1 + p / 2)
            for (int kind = LS_ORDER_GPIPE; kind <= LS_ORDER_1F1B; kind++) {
                const LsPipeCut c = chain(p, 0, (LsOrderKind)kind);
                LsPipeFlow *flow = flows(&c, (LsOrderKind)kind, m);
                Times *of = equal(p, 2, 5, 1);
                for (uint32_t k = 0; k < p; k++) {
                    ls_pipe_flow_keep(&flow[k]);
                    of[k][LS_PIPE_KEPT] = (LsStageTimes){.ns = {2, 3, 1}};
                }
                const LsPipelineRun run = {&c, flow, m, of, no_time};
                const LsPipelineTimes t = ls_pipeline_simulate(a, &run);
                ck_assert_double_eq_tol(t.step, (m + p - 1) * 8.0 - 2, 1e-9);
                for (uint32_t k = 0; k < p; k++)
                    ck_assert_double_eq_tol(t.rank[k].busy, m * 8.0 - 2, 1e-9);
            }
}
END_TEST

/* ZB-H1: bubbles of (p - 1)(F + B - W), once there are micro-batches enough to fill the
 * pipeline. */
START_TEST(gradients_of_weights_fill_bubbles)
{
    for (uint32_t p = 1; p <= MOST; p++)
        for (uint32_t m = p; m <= 4 * p; m += p) {
            const LsPipeCut c = chain(p, 0, LS_ORDER_ZB);
            const LsPipelineTimes t = simulate(&c, LS_ORDER_ZB, m, equal(p, 1, 1, 1), no_time);
            ck_assert_double_eq_tol(t.step, 3.0 * m + (p - 1), 1e-9);
            ck_assert_double_eq_tol(t.bubble, (p - 1.0) / (3.0 * m + p - 1), 1e-9);
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

START_TEST(flows_say_how_many_micro_batches_are_under_way)
{
    for (uint32_t p = 1; p <= MOST; p++)
        for (uint32_t m = 1; m <= 2 * p; m++)
            for (int kind = 0; kind < LS_ORDERS; kind++) {
                const LsPipeCut c = chain(p, 1, (LsOrderKind)kind);
                const LsPipeFlow *f = flows(&c, (LsOrderKind)kind, m);
                for (uint32_t i = 0; i < p; i++) {
                    const LsRankOrder o = ls_rank_order(a, (LsOrderKind)kind, i, p, m);
                    ck_assert_uint_eq(f[i].most,
                                      ls_rank_order_slots(&o, c.splits ? LS_PHASE_W : LS_PHASE_B));
                }
            }
}
END_TEST

/* F, B and W once each, in this sequence, and each phase takes the micro-batches in rising
 * order. */
START_TEST(orders_have_all_phases_in_their_turn)
{
    for (uint32_t p = 1; p <= MOST; p++)
        for (uint32_t m = 1; m <= 3 * p; m++)
            for (int kind = 0; kind < LS_ORDERS; kind++)
                for (uint32_t i = 0; i < p; i++) {
                    const LsRankOrder o = ls_rank_order(a, (LsOrderKind)kind, i, p, m);
                    uint32_t next[LS_PHASES + 1] = {0};         /* by phase: micro-batch */
                    for (uint32_t k = 0; k < o.n; k++) {
                        const LsPipePhase phase = o.step[k].phase;
                        ck_assert_uint_eq(o.step[k].micro, next[phase]);
                        next[phase]++;
                        ck_assert(phase == LS_PHASE_F || next[phase] <= next[phase - 1]);
                    }
                    ck_assert(next[LS_PHASE_F] == m && next[LS_PHASE_B] == m
                              && next[LS_PHASE_W] == m);
                }
}
END_TEST

START_TEST(messages_take_latency_and_bytes_over_bandwidth)
{
    enum { P = 4, M = 6, BYTES = 30 };
    const LsPipeCut c = chain(P, BYTES, LS_ORDER_GPIPE);
    /* a message takes 5 ns, less than a phase */
    const LsLinkSpeed link = {.latency = 2, .bytes_per_ns = 10};
    const LsPipelineTimes t = simulate(&c, LS_ORDER_GPIPE, M, equal(P, 10, 20, 10), link);
    ck_assert_double_eq_tol(t.step, (M + P - 1) * 40.0 + 2 * (P - 1) * 5.0, 1e-9);
    /* A link slower than the stages carries one message after the other. */
    const LsPipelineTimes slow =
        simulate(&c, LS_ORDER_GPIPE, M, equal(P, 10, 20, 10), (LsLinkSpeed){0, 0.5});
    ck_assert_double_ge(slow.step, 2 * M * BYTES / 0.5);
}
END_TEST

START_TEST(what_happens_once_per_step_counts_once)
{
    LsPipeCut c = chain(2, 0, LS_ORDER_1F1B);
    LsPipeCopy copy = {0, 0, 1, 100};
    Times *of = equal(2, 1, 1, 1);
    const LsLinkSpeed link = {1, 10};
    const double before = simulate(&c, LS_ORDER_1F1B, 3, of, link).step;
    c.copy = &copy;
    c.ncopy = 1;
    ck_assert_double_eq_tol(simulate(&c, LS_ORDER_1F1B, 3, of, link).step, before + 11, 1e-9);
    of[0][0].ns[LS_PHASE_LATE] = 7;
    ck_assert_double_eq_tol(simulate(&c, LS_ORDER_1F1B, 3, of, link).step, before + 18, 1e-9);
    c.move = ls_arena_grow(a, c.move, c.nmove, c.nmove + 1u, sizeof *c.move, &(uint32_t){0});
    c.move[c.nmove++] =
        (LsPipeMove){9, 1, 0, LS_PHASE_B, LS_PHASE_LATE, 200, LS_PHASE_F, LS_TO_THE_END};
    ck_assert_double_eq_tol(simulate(&c, LS_ORDER_1F1B, 3, of, link).step, before + 28, 1e-9);
    c.move[c.nmove - 1].until = LS_PHASE_B;         /* nobody waits for it before the end */
    c.move[c.nmove - 1].lag = 1;
    ck_assert_double_eq_tol(simulate(&c, LS_ORDER_1F1B, 3, of, link).step, before + 28, 1e-9);
}
END_TEST

/* What goes from one stage to another once per step goes one behind the other. */
START_TEST(a_link_adds_up_what_happens_once_per_step)
{
    LsPipeCut c = chain(2, 0, LS_ORDER_1F1B);
    LsPipeCopy copy[] = {{0, 0, 1, 100}, {1, 0, 1, 50}};
    LsPipeMove *move = ls_arena_alloc(a, c.nmove + 2u, sizeof *move);
    memcpy(move, c.move, c.nmove * sizeof *move);
    c.move = move;
    const LsLinkSpeed link = {1, 10};
    const double before = simulate(&c, LS_ORDER_1F1B, 3, equal(2, 1, 1, 1), link).step;
    c.copy = copy;
    c.ncopy = 2;
    ck_assert_double_eq_tol(simulate(&c, LS_ORDER_1F1B, 3, equal(2, 1, 1, 1), link).step,
                            before + 16, 1e-9);
    c.ncopy = 0;
    for (uint32_t k = 0; k < 2; k++)
        c.move[c.nmove++] =
            (LsPipeMove){9 + k, 1, 0, LS_PHASE_B, LS_PHASE_LATE, 200, LS_PHASE_F, LS_TO_THE_END};
    ck_assert_double_eq_tol(simulate(&c, LS_ORDER_1F1B, 3, equal(2, 1, 1, 1), link).step,
                            before + 41, 1e-9);
}
END_TEST

/* F ends at 10, 20 and 30, and its messages arrive at 40, 70 and 100; those of B leave at 120 and
 * arrive at 150, 180 and 210. */
START_TEST(a_link_carries_one_message_after_the_other)
{
    const LsPipeCut c = chain(2, 30, LS_ORDER_GPIPE);
    ck_assert_double_eq_tol(
        simulate(&c, LS_ORDER_GPIPE, 3, equal(2, 10, 10, 0), (LsLinkSpeed){0, 1}).step, 220, 1e-9);
}
END_TEST

/* What the first stage sends to the last one does not keep back what it sends to the second, which
 * has it at 40. */
START_TEST(each_pair_of_stages_has_a_link)
{
    LsPipeCut c = chain(3, 30, LS_ORDER_GPIPE);
    LsPipeMove *move = ls_arena_alloc(a, c.nmove + 1u, sizeof *move);
    memcpy(move + 1, c.move, c.nmove * sizeof *move);
    move[0] = (LsPipeMove){9, 0, 2, LS_PHASE_F, LS_PHASE_F, 30, LS_PHASE_F, LS_TO_THE_END};
    c.move = move;
    c.nmove++;
    ck_assert_double_eq_tol(
        simulate(&c, LS_ORDER_GPIPE, 1, equal(3, 10, 10, 0), (LsLinkSpeed){0, 1}).step, 180, 1e-9);
}
END_TEST

/* A chain whose last stage also exchanges skips with the first. */
static LsPipeCut with_skips(uint32_t p, LsOrderKind order)
{
    LsPipeCut c = chain(p, 1, order);
    c.move[c.nmove++] =
        (LsPipeMove){2 * p, 0, p - 1, LS_PHASE_F, LS_PHASE_F, 1, LS_PHASE_F, LS_TO_THE_END};
    c.move[c.nmove++] =
        (LsPipeMove){2 * p + 1, p - 1, 0, LS_PHASE_B, LS_PHASE_B, 1, LS_PHASE_F, LS_TO_THE_END};
    return c;
}

/* Neighbours take messages at once, stages far apart later, and nobody stands still for it. */
START_TEST(messages_are_kept_as_shortly_as_costs_nothing)
{
    for (int kind = 0; kind < LS_ORDERS; kind++) {
        enum { P = 4, M = 12 };
        LsPipeCut c = with_skips(P, (LsOrderKind)kind);
        Times *of = equal(P, 2, 3, 1);
        const double before = simulate(&c, (LsOrderKind)kind, M, of, no_time).step;
        ls_pipe_holds(&c, (LsOrderKind)kind, M, of, no_time);
        ck_assert_double_eq_tol(simulate(&c, (LsOrderKind)kind, M, of, no_time).step, before, 1e-9);
        for (uint32_t k = 0; k < c.nmove; k++) {
            const LsPipeMove *m = &c.move[k];
            const bool near = m->to == m->from + 1 || m->from == m->to + 1;
            ck_assert_uint_le(m->lag, near ? (m->made == LS_PHASE_F ? 1 : P) : P);
        }
        LsPipeMove *skip = &c.move[c.nmove - 1];
        ck_assert_uint_ge(skip->until == skip->made ? skip->lag : skip->lag + 1, 2);
    }
}
END_TEST

/* The last stage keeps one gradient of a skip at a time: it waits until the first stage has got to
 * it. */
START_TEST(a_sender_that_waits_stands_still)
{
    enum { P = 4, M = 12 };
    LsPipeCut c = with_skips(P, LS_ORDER_1F1B);
    Times *of = equal(P, 2, 3, 1);
    const double before = simulate(&c, LS_ORDER_1F1B, M, of, no_time).step;
    c.move[c.nmove - 1].until = LS_PHASE_F;
    c.move[c.nmove - 1].lag = 1;
    ck_assert_double_ge(simulate(&c, LS_ORDER_1F1B, M, of, no_time).step, 1.3 * before);
}
END_TEST

/* What the last stage makes in each phase and the first one reads in a later one, as a loss scale's
 * sums and statistics are. */
static LsPipeCut with_later_readers(uint32_t p, LsOrderKind order)
{
    LsPipeCut c = chain(p, 1, order);
    LsPipeMove *move = ls_arena_alloc(a, c.nmove + 3u, sizeof *move);
    memcpy(move, c.move, c.nmove * sizeof *move);
    c.move = move;
    c.move[c.nmove++] =
        (LsPipeMove){2 * p, p - 1, 0, LS_PHASE_F, LS_PHASE_B, 1, LS_PHASE_F, LS_TO_THE_END};
    if (c.splits) {
        c.move[c.nmove++] =
            (LsPipeMove){2 * p + 1, p - 1, 0, LS_PHASE_F, LS_PHASE_W, 1, LS_PHASE_F, LS_TO_THE_END};
        c.move[c.nmove++] =
            (LsPipeMove){2 * p + 2, p - 1, 0, LS_PHASE_B, LS_PHASE_W, 1, LS_PHASE_F, LS_TO_THE_END};
    }
    return c;
}

/* In gpipe a sender that waits late among few micro-batches waits in the midst of phase F among
 * many. */
START_TEST(what_suits_few_micro_batches_must_suit_all)
{
    for (int kind = 0; kind < LS_ORDERS; kind++)
        for (uint32_t p = 2; p <= 4; p++)
            for (uint32_t m = 3 * p; m <= 12 * p; m += p / 2) {
                LsPipeCut c = with_later_readers(p, (LsOrderKind)kind);
                Times *of = equal(p, 2, 3, 1);
                const double before = simulate(&c, (LsOrderKind)kind, m, of, no_time).step;
                ls_pipe_holds(&c, (LsOrderKind)kind, m, of, no_time);
                ck_assert_double_le(simulate(&c, (LsOrderKind)kind, m, of, no_time).step,
                                    1.001 * before);
            }
}
END_TEST

/* "F0F1B0" */
static LsPipeFlow flow_of(const char *text)
{
    LsPipeFlow f = {.turn = ls_arena_alloc(a, strlen(text), sizeof *f.turn), .most = 2};
    for (; *text != '\0'; text += 2)
        f.turn[f.nturn++] = (LsPipeTurn){text[0] == 'F' ? LS_PHASE_F : LS_PHASE_B, LS_PIPE_USUAL,
                                         (uint32_t)(text[1] - '0')};
    return f;
}

static bool ends(const LsPipeCut *c, const char *first, const char *second, uint32_t ring)
{
    LsPipeFlow flow[] = {flow_of(first), flow_of(second)};
    flow[0].reads = flow[1].reads = true;
    return ls_pipe_flow_ends(c, flow, 2, ring, why, sizeof why);
}

START_TEST(stages_that_wait_in_a_circle_are_refused)
{
    const LsPipeCut c = chain(2, 1, LS_ORDER_1F1B);
    ck_assert_msg(ends(&c, "F0F1B0B1", "F0B0F1B1", 2), "%s", why);
    ck_assert(ends(&c, "F0B0F1B1", "F0B0F1B1", 2));
    ck_assert(!ends(&c, "F0B0F1B1", "F0F1B0B1", 2));
    ck_assert_str_eq(why, "stage 1 waits in B of micro-batch 0 for B of stage 2, "
                          "stage 2 waits in F of micro-batch 1 for F of stage 1");
}
END_TEST

/* No message is stored: a stage must not begin B before the next one has asked for what it made in
 * F. */
START_TEST(messages_are_not_stored)
{
    LsPipeCut c = chain(2, 1, LS_ORDER_1F1B);
    c.nmove = 1;
    c.move[0] = (LsPipeMove){0, 0, 1, LS_PHASE_F, LS_PHASE_F, 1, LS_PHASE_F, LS_TO_THE_END};
    ck_assert(ends(&c, "F0B0F1B1", "F0F1B0B1", 2));
    c.move[0] = (LsPipeMove){0, 1, 0, LS_PHASE_B, LS_PHASE_B, 1, LS_PHASE_F, LS_TO_THE_END};
    ck_assert(ends(&c, "F0F1B0B1", "F0B0F1B1", 2));
    ck_assert(ends(&c, "F0F1B0B1", "F0B0F1B1", 1) == false);
    ck_assert_ptr_nonnull(strstr(why, "stage 1 waits before F of micro-batch 1"));
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("pipeline_orders");
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    tcase_add_test(tc, equal_stages_take_what_the_formulas_say);
    tcase_add_test(tc, a_micro_batch_that_is_kept_saves_its_recomputation);
    tcase_add_test(tc, gradients_of_weights_fill_bubbles);
    tcase_add_test(tc, no_rank_of_zb_holds_more_than_the_first_of_1f1b);
    tcase_add_test(tc, flows_say_how_many_micro_batches_are_under_way);
    tcase_add_test(tc, messages_are_kept_as_shortly_as_costs_nothing);
    tcase_add_test(tc, a_sender_that_waits_stands_still);
    tcase_add_test(tc, what_suits_few_micro_batches_must_suit_all);
    tcase_add_test(tc, orders_have_all_phases_in_their_turn);
    tcase_add_test(tc, messages_take_latency_and_bytes_over_bandwidth);
    tcase_add_test(tc, what_happens_once_per_step_counts_once);
    tcase_add_test(tc, a_link_adds_up_what_happens_once_per_step);
    tcase_add_test(tc, a_link_carries_one_message_after_the_other);
    tcase_add_test(tc, each_pair_of_stages_has_a_link);
    tcase_add_test(tc, stages_that_wait_in_a_circle_are_refused);
    tcase_add_test(tc, messages_are_not_stored);
    return run_tests("pipeline_orders", tc);
}
