/* tests/scheduler/test_fill_headroom.c -- values kept at the turn are exchanged for more expensive
 * recomputations that need no more room. */
#include "scheduler/local_search/fill_headroom.h"
#include "scheduler/order/run_order.h"
#include "tests/support/dag_tools.h"
#include "tests/support/suite.h"
#include "tests/support/tape_tools.h"

static LsArena *a;
static void open_arena(void) { a = ls_arena_new(); }
static void close_arena(void) { ls_arena_free(a); }

/* Two values of 10 bytes that cost 6 each and one of 20 that costs 9, a loss of all three, and a
 * first backward node that needs 30 bytes. */
enum { X, A1, A2, B, L, G0, G1, G2, GB, TENSORS };
enum { MAKE1, MAKE2, MAKEB, LOSS, TURN, GRAD1, GRAD2, GRADB, NODES };

typedef struct Net {
    LsDag g;
    LsDagTensor tensor[TENSORS];
    LsDagNode node[NODES];
    uint32_t id[4 * NODES], nid;
} Net;

static void add(Net *x, double cost, int64_t workspace, uint32_t nin, const uint32_t *in,
                uint32_t out)
{
    static const char *const name[NODES] = {"a1", "a2", "b", "loss", "turn", "g1", "g2", "gb"};
    uint32_t *id = x->id + x->nid, v = x->g.nnode++;
    for (uint32_t k = 0; k < nin; k++)
        id[k] = in[k];
    id[nin] = out;
    x->nid += nin + 1;
    x->node[v] = (LsDagNode){.name = name[v], .op = "N", .cost = cost, .workspace = workspace,
                             .kind = v < TURN ? LS_DAG_FORWARD : LS_DAG_BACKWARD, .in = id,
                             .nin = nin, .out = id + nin, .nout = 1, .of = -1};
}

static void make(Net *x)
{
    static const int64_t bytes[TENSORS] = {1, 10, 10, 20, 1, 1, 1, 1, 1};
    *x = (Net){.g = {.name = "net", .alignment = 1, .ntensor = TENSORS}};
    x->g.tensor = x->tensor;
    x->g.node = x->node;
    for (uint32_t t = 0; t < TENSORS; t++)
        x->tensor[t] = (LsDagTensor){"t", bytes[t], t == X, t >= G1};
    add(x, 6, 0, 1, (uint32_t[]){X}, A1);
    add(x, 6, 0, 1, (uint32_t[]){X}, A2);
    add(x, 9, 0, 1, (uint32_t[]){X}, B);
    add(x, 1, 0, 3, (uint32_t[]){A1, A2, B}, L);
    add(x, 1, 30, 1, (uint32_t[]){L}, G0);
    add(x, 1, 0, 2, (uint32_t[]){A1, G0}, G1);
    add(x, 1, 0, 2, (uint32_t[]){A2, G0}, G2);
    add(x, 1, 0, 2, (uint32_t[]){B, G0}, GB);
}

static LsAnneal loaded(LsProb *p, const LsSeq *seq, int64_t target)
{
    LsLimit limit = ls_limit_start(100, 10);
    LsAnneal s = ls_anneal_new(a, p, target, &limit);
    ls_anneal_load(&s, seq, target);
    return s;
}

START_TEST(one_large_value_is_made_again_for_two_small_ones)
{
    uint32_t dear[] = {MAKE1, MAKE2, MAKEB, LOSS, TURN, MAKE1, GRAD1, MAKE2, GRAD2, GRADB};
    LsSeq seq = {dear, sizeof dear / sizeof *dear};
    Net x;
    make(&x);
    LsAnneal s = loaded(ls_prob_new(a, &x.g, true), &seq, 52);
    ck_assert_int_eq(ls_tape_peak(s.t), 52);        /* b; operands, result and workspace of the
                                                     * turn */
    double before = s.t->cost;
    ls_exchange(&s);
    ck_assert_double_eq_tol(s.t->cost, before + 9 - 12, 1e-9);
    ck_assert_uint_eq(s.t->count[MAKEB], 2);
    ck_assert_uint_eq(s.t->count[MAKE1] + s.t->count[MAKE2], 2);
    ck_assert_int_le(ls_tape_peak(s.t), 52);
    const LsFrontItem *best = ls_front_best(&s.front, 52);
    ck_assert_ptr_nonnull(best);
    ck_assert_double_eq_tol(best->cost, s.t->cost, 1e-9);
    ls_anneal_free(&s);
}
END_TEST

START_TEST(what_comes_out_is_valid_within_the_target_and_no_dearer)
{
    uint32_t cheaper = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        LsProb *p = ls_prob_new(a, dag_make(a, 10 + (uint32_t)seed % 20, seed), seed % 3 != 0);
        LsSeq plain = ls_seq_plain(a, p);
        LsAnneal s = loaded(p, &plain, INT64_MAX);
        int64_t target = ls_tape_peak(s.t) / 10 * 7;
        s.m->target = target;
        if (ls_anneal_repair(&s)) {
            double before = s.t->cost;
            ls_exchange(&s);
            ck_assert_uint_eq(s.t->bad, 0);
            tape_is_as_live(a, s.t, "exchanged", seed);
            ck_assert_int_le(ls_tape_peak(s.t), target);
            ck_assert_double_le(s.t->cost, before);
            cheaper += s.t->cost < before;
        }
        ls_anneal_free(&s);
    }
    ck_assert_uint_gt(cheaper, 0);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("exchange");
    const TTest *const tests[] = {one_large_value_is_made_again_for_two_small_ones,
                                  what_comes_out_is_valid_within_the_target_and_no_dearer};
    tcase_add_checked_fixture(tc, open_arena, close_arena);
    tcase_set_timeout(tc, 120);
    add_tests(tc, sizeof tests / sizeof *tests, tests);
    return run_tests("exchange", tc);
}
