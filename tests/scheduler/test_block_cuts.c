/* tests/scheduler/test_block_cuts.c -- blocks, the values that ranges of them keep, variants of
 * problems, and the resulting sequences. */
#include <check.h>
#include <string.h>

#include "scheduler/blocks/block_keep.h"
#include "scheduler/blocks/block_run.h"
#include "scheduler/candidates/candidate_pool.h"
#include "scheduler/candidates/plan_build.h"
#include "scheduler/graph/fusion_choice.h"
#include "scheduler/order/run_order.h"
#include "scheduler/plan/plan_audit.h"
#include "scheduler/strategies/published_strategies.h"
#include "tests/support/dag_tools.h"
#include "tests/support/suite.h"

static LsArena *a;
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

static void audit(LsProb *p, const LsSeq *seq, uint64_t seed)
{
    LsPlan plan;
    char why[200];
    ls_plan_build(a, p, seq, "auto", LS_PACK_QUICK, 0, &plan);
    ck_assert_msg(ls_audit(p->dag, &plan, why, sizeof why), "seed %d: %s", (int)seed, why);
}

enum { MOST_PHASES = 400 };

/* A random split of the row into ranges of at most `longest`, each with a random option; the last
 * range runs first. */
static uint32_t split(const LsBlocks *b, LsBlockWork *w, uint32_t longest, uint64_t *rnd,
                      LsPhase *phase)
{
    uint32_t n = 0;
    for (uint32_t to = b->n; to > 0;) {
        uint32_t from = to - 1 - dag_random(rnd, to < longest ? to : longest);
        LsKeepOptions o = ls_block_options(a, w, from, to);
        ck_assert_uint_gt(o.n, 0);
        phase[n++] = (LsPhase){from, to, &o.item[dag_random(rnd, o.n)]};
        to = from;
    }
    return n;
}

/* A random way to run blocks backward when none of their values is live. */
static uint32_t nest(LsBlockWork *w, uint32_t from, uint32_t to, uint64_t *rnd, LsPhase *phase,
                     uint32_t n)
{
    if (from == to)
        return n;
    if (to - from == 1 || dag_random(rnd, 4) == 0) {
        LsKeepOptions o = ls_block_anew(a, w, from, to);
        phase[n++] = (LsPhase){from, to, &o.item[dag_random(rnd, o.n)]};
        return n;
    }
    uint32_t at = from + 1 + dag_random(rnd, to - from - 1);
    phase[n++] = (LsPhase){from, at, NULL};
    n = nest(w, at, to, rnd, phase, n);
    if (dag_random(rnd, 2))
        return nest(w, from, at, rnd, phase, n);
    LsKeepOptions o = ls_block_options(a, w, from, at);
    phase[n++] = (LsPhase){from, at, &o.item[dag_random(rnd, o.n)]};
    return n;
}

START_TEST(any_split_of_any_graph_is_a_valid_sequence)
{
    for (uint64_t seed = 0; seed < 150; seed++) {
        LsDag *g = dag_make(a, 3 + seed % 25, seed);
        LsProb *p = ls_prob_new(a, g, seed % 3 != 0);
        LsBlocks *b = ls_blocks_new(a, p, 2 + seed % 9, LS_CUT_VALLEYS);
        LsBlockWork *w = ls_block_work_new(a, b);
        LsPhase phase[MOST_PHASES];
        uint64_t rnd = seed + 3;
        ck_assert_uint_le(b->n, 2 + seed % 9);
        for (int k = 0; k < 4 && b->n > 0; k++) {
            uint32_t n = split(b, w, 5, &rnd, phase);
            LsSeq seq = ls_block_sequence(a, w, phase, n);
            audit(p, &seq, seed);
        }
    }
}
END_TEST

START_TEST(any_nest_of_any_graph_is_a_valid_sequence)
{
    uint32_t deep = 0;
    for (uint64_t seed = 0; seed < 150; seed++) {
        LsProb *p = ls_prob_new(a, dag_make(a, 3 + seed % 25, seed), seed % 3 != 0);
        LsBlocks *b = ls_blocks_new(a, p, 2 + seed % 19, LS_CUT_EVERYWHERE);
        LsBlockWork *w = ls_block_work_new(a, b);
        LsPhase phase[MOST_PHASES];
        uint64_t rnd = seed + 5;
        ck_assert_uint_le(b->n, 2 + seed % 19);
        for (int k = 0; k < 4 && b->n > 0; k++) {
            uint32_t n = nest(w, 0, b->n, &rnd, phase, 0);
            LsSeq seq = ls_block_sequence(a, w, phase, n);
            audit(p, &seq, seed);
            deep += n > 6;
        }
    }
    ck_assert_uint_gt(deep, 50);
}
END_TEST

/* The graph with an alternative for every other node that reads a value of another node: it reads
 * that node's operands, and costs a little more or less. */
static LsDag *with_alternatives(const LsDag *g, uint64_t seed)
{
    LsDag *h = ls_arena_alloc(a, 1, sizeof *h);
    uint32_t *to = ls_arena_alloc(a, g->nnode, sizeof *to);
    uint32_t *maker = ls_arena_alloc(a, g->ntensor, sizeof *maker);
    uint64_t rnd = seed;
    *h = *g;
    h->nnode = 0;
    h->node = ls_arena_alloc(a, 2 * g->nnode, sizeof *h->node);
    for (uint32_t v = 0; v < g->nnode; v++) {
        const LsDagNode *node = &g->node[v];
        to[v] = h->nnode;
        h->node[h->nnode] = *node;
        if (node->of >= 0)
            h->node[h->nnode].of = to[node->of];
        h->nnode++;
        for (uint32_t k = 0; k < node->nout; k++)
            maker[node->out[k]] = v;
        uint32_t t = node->nin > 0 ? node->in[dag_random(&rnd, node->nin)] : 0;
        if (node->nin == 0 || node->nupd > 0 || g->tensor[t].persistent || dag_random(&rnd, 2))
            continue;
        const LsDagNode *of = &g->node[maker[t]];
        uint32_t *in = ls_arena_alloc(a, node->nin + of->nin, sizeof *in), n = 0;
        for (uint32_t k = 0; k < node->nin + of->nin; k++) {
            uint32_t x = k < node->nin ? node->in[k] : of->in[k - node->nin];
            if (x != t && !ls_id_in(in, n, x))
                in[n++] = x;
        }
        LsDagNode *alt = &h->node[h->nnode++];
        *alt = h->node[to[v]];
        alt->alternative = true;
        alt->once = false;
        alt->required = false;
        alt->in = in;
        alt->nin = n;
        alt->ninplace = 0;
        alt->cost += dag_random(&rnd, 5) - 2.0;
    }
    return h;
}

START_TEST(any_variant_of_any_graph_is_a_valid_sequence)
{
    uint32_t changed = 0;
    for (uint64_t seed = 0; seed < 150; seed++) {
        LsDag *g = with_alternatives(dag_make(a, 3 + seed % 25, seed), seed);
        LsProb *p = ls_prob_new(a, g, seed % 3 != 0);
        const LsProb *q = ls_variant(a, p, seed % 2 ? 0 : 0.5);
        LsSeq plain = ls_seq_plain(a, p), seq = ls_seq_plain(a, q);
        LsLive *live = ls_live_new(a, p);
        changed += q != p;
        audit(p, &seq, seed);
        ls_live(p, &plain, live);
        double cost = live->cost;
        ls_live(p, &seq, live);
        if (seed % 2)
            ck_assert_double_le(live->cost, cost);
        LsBlocks *b = ls_blocks_new(a, q, 12, LS_CUT_VALLEYS);
        LsBlockWork *w = ls_block_work_new(a, b);
        LsPhase phase[MOST_PHASES];
        uint64_t rnd = seed;
        uint32_t n = split(b, w, 5, &rnd, phase);
        LsSeq tight = ls_block_sequence(a, w, phase, n);
        audit(p, &tight, seed);
    }
    ck_assert_uint_gt(changed, 50);
}
END_TEST

/* A chain of nf forward nodes of equal size and cost; each backward node reads the gradient and
 * its node's operand. */
static LsDag *chain(uint32_t nf)
{
    LsDag *g = ls_arena_alloc(a, 1, sizeof *g);
    uint32_t *id = ls_arena_alloc(a, 8 * nf, sizeof *id);
    g->name = "chain";
    g->alignment = 1;
    g->tensor = ls_arena_alloc(a, 2 * nf + 1, sizeof *g->tensor);
    g->node = ls_arena_alloc(a, 2 * nf, sizeof *g->node);
    for (uint32_t t = 0; t < 2 * nf + 1; t++)       /* input; results; gradients, the last first */
        g->tensor[g->ntensor++] = (LsDagTensor){"t", t % 3 == 1 && t <= nf ? 20 : 100, t == 0,
                                                t == 2 * nf};
    for (uint32_t k = 0; k < 2 * nf; k++) {
        uint32_t v = k < nf ? k : 2 * nf - 1 - k, *in = id + 4 * k;
        LsDagNode *n = &g->node[g->nnode++];
        *n = (LsDagNode){.name = "n", .op = "N", .cost = 1, .in = in, .nin = 1, .out = in + 3,
                         .nout = 1, .of = k < nf ? -1 : (int64_t)v};
        n->kind = k < nf ? LS_DAG_FORWARD : LS_DAG_BACKWARD;
        in[0] = v;
        in[1] = k == nf ? v + 1 : k;
        in[2] = v + 1;
        n->nin = k < nf ? 1 : 3;
        in[3] = k + 1;
    }
    return g;
}

START_TEST(a_chain_is_cut_where_its_small_values_are)
{
    LsProb *p = ls_prob_new(a, chain(30), true);
    LsBlocks *b = ls_blocks_new(a, p, 64, LS_CUT_VALLEYS);
    ck_assert_uint_eq(b->n, 10);
    for (uint32_t k = 1; k < b->n; k++) {
        uint32_t first = b->ahead.id[b->ahead.at[k]];
        ck_assert_int_eq(p->size[p->in.id[p->in.at[first]]], 20);
        ck_assert_uint_eq(b->behind.at[k + 1] - b->behind.at[k],
                          b->ahead.at[k + 1] - b->ahead.at[k]);
    }
}
END_TEST

START_TEST(ranges_that_look_alike_have_the_same_options)
{
    LsProb *p = ls_prob_new(a, chain(60), true);
    LsBlocks *b = ls_blocks_new(a, p, 64, LS_CUT_VALLEYS);
    LsBlockWork *w = ls_block_work_new(a, b);
    uint32_t *scratch = ls_arena_alloc(a, p->nt, sizeof *scratch), alike = 0;
    for (uint32_t k = 0; k + 3 < b->n; k++) {
        bool same = ls_blocks_print(b, k, k + 2, scratch)
                    == ls_blocks_print(b, k + 1, k + 3, scratch);
        LsKeepOptions x = ls_block_options(a, w, k, k + 2),
                      y = ls_block_options(a, w, k + 1, k + 3);
        alike += same;
        if (!same)
            continue;
        ck_assert_uint_eq(x.n, y.n);
        for (uint32_t j = 0; j < x.n; j++) {
            ck_assert_int_eq(x.item[j].kept, y.item[j].kept);
            ck_assert_int_eq(x.item[j].peak, y.item[j].peak);
            ck_assert_double_eq(x.item[j].again, y.item[j].again);
        }
    }
    ck_assert_uint_ge(alike, b->n - 6);             /* all except the nodes at the ends */
}
END_TEST

START_TEST(a_sequence_takes_what_its_options_say)
{
    LsProb *p = ls_prob_new(a, chain(45), true);
    LsBlocks *b = ls_blocks_new(a, p, 64, LS_CUT_VALLEYS);
    LsBlockWork *w = ls_block_work_new(a, b);
    LsLive *live = ls_live_new(a, p);
    LsPhase phase[MOST_PHASES];
    uint64_t rnd = 1;
    int exact = 0;
    for (int k = 0; k < 40; k++) {
        uint32_t n = split(b, w, 4, &rnd, phase);
        LsSeq seq = ls_block_sequence(a, w, phase, n);
        int64_t kept = 0, peak = 0;
        double cost = p->base_cost;
        for (uint32_t j = n; j-- > 0;) {
            const LsKeepOption *o = phase[j].option;
            peak = kept + o->peak > peak ? kept + o->peak : peak;
            kept += o->kept;
            cost += o->again;
        }
        ls_live(p, &seq, live);
        if (phase[0].option->again > 0) {           /* its first run can be skipped */
            ck_assert_int_le(live->peak, peak);
            ck_assert_double_le(live->cost, cost);
            continue;
        }
        ck_assert_int_eq(live->peak, peak);
        ck_assert_double_eq_tol(live->cost, cost, 1e-9);
        exact++;
    }
    ck_assert_int_gt(exact, 0);
}
END_TEST

/* The least peak among all plans of the blocks, and its cost in steps. */
static int64_t least_peak(LsDag *g, double *cost)
{
    LsProb *p = ls_prob_new(a, g, true);
    LsCandidates *pool = ls_candidates_new(a, p);
    ls_strategy_none(pool);
    ls_strategy_hierarchy(pool, p);
    const LsCand *least = ls_candidates_least(pool);
    int64_t peak = least->peak;
    *cost = least->cost / p->base_cost;
    ls_candidates_free(pool);
    return peak;
}

/* A backward node takes 400 bytes; split once, into ranges that are recomputed separately, these
 * chains take 500 and 560. */
START_TEST(ranges_within_ranges_take_little_of_a_deep_chain)
{
    double cost;
    ck_assert_int_eq(least_peak(chain(45), &cost), 400);
    ck_assert_double_lt(cost, 45 / 2.0);            /* steps; as from the start each time */
    ck_assert_int_le(least_peak(chain(90), &cost), 500);
    ck_assert_double_lt(cost, 4);
}
END_TEST

int main(void)
{
    const TTest *const test[] = {
        any_split_of_any_graph_is_a_valid_sequence,
        any_nest_of_any_graph_is_a_valid_sequence,
        any_variant_of_any_graph_is_a_valid_sequence,
        a_chain_is_cut_where_its_small_values_are,
        ranges_that_look_alike_have_the_same_options,
        a_sequence_takes_what_its_options_say,
        ranges_within_ranges_take_little_of_a_deep_chain,
    };
    TCase *tc = tcase_create("blocks");
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("blocks", tc);
}
