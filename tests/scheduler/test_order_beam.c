/* tests/scheduler/test_order_beam.c -- the order of all nodes against all possible orders. */
#include <check.h>
#include <string.h>

#include "scheduler/order/edited_order.h"
#include "scheduler/strategies/published_strategies.h"
#include "tests/support/dag_tools.h"
#include "tests/support/suite.h"

static LsArena *a;
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

enum { MOST = 14 };             /* graphs of this size have all orders tried */

typedef struct All { LsProb *p; uint32_t node[MOST], n; uint32_t bit[64]; } All;

static bool has(const All *x, uint32_t set, uint32_t v)
{
    return x->bit[v] < MOST && set >> x->bit[v] & 1;
}

/* Readers of t outside the set. The end counts as a reader of outputs. */
static uint32_t readers_left(const All *x, uint32_t set, uint32_t t)
{
    uint32_t n = x->p->dag->tensor[t].output;
    for (uint32_t k = 0; k < x->n; k++)
        n += !has(x, set, x->node[k])
             && ls_id_in(x->p->in.id + x->p->in.at[x->node[k]],
                         x->p->in.at[x->node[k] + 1] - x->p->in.at[x->node[k]], t);
    return n;
}

static bool may_run(const All *x, uint32_t set, uint32_t v)
{
    const LsProb *p = x->p;
    for (uint32_t k = p->in.at[v]; k < p->in.at[v + 1]; k++)
        if (!has(x, set, p->maker[p->in.id[k]]))
            return false;
    for (uint32_t k = p->before.at[v]; k < p->before.at[v + 1]; k++)
        if (p->needed[p->before.id[k]] && !has(x, set, p->before.id[k]))
            return false;
    return !has(x, set, v);
}

/* Bytes while v runs after the nodes of the set. In these graphs no two in-place pairs share a
 * tensor. */
static int64_t bytes_at(const All *x, uint32_t set, uint32_t v)
{
    const LsProb *p = x->p;
    const LsDagNode *d = &p->dag->node[v];
    int64_t bytes = p->workspace[v];
    for (uint32_t t = 0; t < p->nt; t++)
        if (p->maker[t] != LS_NO_ID && has(x, set, p->maker[t]) && readers_left(x, set, t) > 0)
            bytes += p->size[t];
    for (uint32_t k = p->out.at[v]; k < p->out.at[v + 1]; k++)
        bytes += p->size[p->out.id[k]];
    for (uint32_t k = 0; k < d->ninplace && p->inplace; k++)
        if (ls_prob_fits(p, d->inplace[k]) && readers_left(x, set, d->inplace[k].in) == 1)
            bytes -= p->size[d->inplace[k].out];
    return bytes;
}

static int64_t least_peak(const All *x)
{
    int64_t *best = ls_arena_alloc(a, (size_t)1 << x->n, sizeof *best);
    memset(best, 0x7f, sizeof *best << x->n);
    best[0] = 0;
    for (uint32_t set = 0; set + 1 < 1u << x->n; set++)
        for (uint32_t k = 0; k < x->n && best[set] < INT64_MAX / 4; k++) {
            if (!may_run(x, set, x->node[k]))
                continue;
            int64_t peak = bytes_at(x, set, x->node[k]), *to = &best[set | 1u << k];
            peak = peak > best[set] ? peak : best[set];
            *to = peak < *to ? peak : *to;
        }
    return best[(1u << x->n) - 1];
}

static bool pairs_share(const LsDag *g)
{
    for (uint32_t v = 0; v < g->nnode; v++)
        if (g->node[v].ninplace > 1)
            return true;
    return false;
}

static LsProb *forward_only(uint32_t n, uint64_t seed)
{
    return ls_prob_new(a, dag_make_forward(a, n, seed), seed % 3 != 0);
}

START_TEST(a_small_graph_gets_the_order_of_the_least_peak)
{
    uint32_t tried = 0, better = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        All x = {.p = forward_only(5 + seed % 9, seed)};
        memset(x.bit, 0xff, sizeof x.bit);
        for (uint32_t v = 0; v < x.p->n; v++)
            if (x.p->needed[v] && x.n < MOST) {
                x.bit[v] = x.n;
                x.node[x.n++] = v;
            }
        if (x.n == MOST || pairs_share(x.p->dag))
            continue;
        LsCandidates *pool = ls_candidates_new(a, x.p);
        ls_strategy_none(pool);
        int64_t plain = pool->cand[0].peak;
        ls_strategy_order(pool);
        int64_t peak = pool->cand[pool->n - 1].peak;
        for (uint32_t k = 0; k < pool->n; k++)
            peak = pool->cand[k].peak < peak ? pool->cand[k].peak : peak;
        ck_assert_msg(peak == least_peak(&x), "seed %d: peak %ld, there is one of %ld", (int)seed,
                      (long)peak, (long)least_peak(&x));
        tried++;
        better += peak < plain;
        ls_candidates_free(pool);
    }
    ck_assert_uint_gt(tried, 20);
    ck_assert_uint_gt(better, 3);
}
END_TEST

START_TEST(every_needed_node_runs_once_behind_what_it_reads)
{
    for (uint64_t seed = 0; seed < 20; seed += 3) {
        LsProb *p = forward_only(20 + seed, seed);
        LsCandidates *pool = ls_candidates_new(a, p);
        ls_strategy_order(pool);
        ck_assert_uint_eq(pool->n, 1);
        const LsSeq *seq = &pool->cand[0].seq;
        LsTape *t = ls_tape_new(p);
        ls_tape_load(t, seq);
        ck_assert_uint_eq(t->bad, 0);
        for (uint32_t v = 0; v < p->n; v++)
            ck_assert_uint_eq(t->count[v], p->needed[v]);
        ls_tape_free(t);
        ls_candidates_free(pool);
    }
}
END_TEST

int main(void)
{
    const TTest *const test[] = {
        a_small_graph_gets_the_order_of_the_least_peak,
        every_needed_node_runs_once_behind_what_it_reads,
    };
    TCase *tc = tcase_create("order");
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    add_tests(tc, sizeof test / sizeof test[0], test);
    return run_tests("order", tc);
}
