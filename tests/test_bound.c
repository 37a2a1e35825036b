/* tests/test_bound.c -- lower bounds against the best of all schedules. */
#include <check.h>

#include "scheduler/bound.h"
#include "tests/dag_tools.h"
#include "tests/exhaust.h"
#include "tests/suite.h"

enum { NODES = 9, TENSORS = 13 };

typedef struct Tiny {
    LsDag g;
    LsDagTensor tensor[TENSORS];
    LsDagNode node[NODES + 2];
    uint32_t id[16 * NODES], nid;
    LsDagPair pair[4 * NODES];
    uint32_t npair;
} Tiny;

static void tiny_reads(Tiny *x, LsDagNode *n, uint64_t *rnd, uint32_t below)
{
    n->in = x->id + x->nid;
    for (uint32_t k = dag_random(rnd, 3); k > 0 && below > 0; k--) {
        uint32_t t = below - 1 - dag_random(rnd, below < 4 ? below : 4);
        if (!ls_id_in(n->in, n->nin, t))
            x->id[x->nid + n->nin++] = t;
    }
    x->nid += n->nin;
}

static void tiny_pairs(Tiny *x, LsDagNode *n, uint64_t *rnd)
{
    n->inplace = x->pair + x->npair;
    for (uint32_t k = 0; k < n->nin && n->nout > 0; k++)
        if (!x->g.tensor[n->in[k]].persistent && dag_random(rnd, 3) == 0)
            x->pair[x->npair + n->ninplace++] =
                (LsDagPair){n->out[dag_random(rnd, n->nout)], n->in[k]};
    x->npair += n->ninplace;
}

/* Tensor 0 is persistent; the others come one or two a node. Then an alternative. */
static void tiny_make(Tiny *x, uint64_t *rnd, bool whole)
{
    uint32_t n = 4 + dag_random(rnd, NODES - 4);
    *x = (Tiny){.g = {.name = "tiny", .alignment = 1, .tensor = x->tensor, .node = x->node}};
    x->tensor[x->g.ntensor++] = (LsDagTensor){"w", 5, true, false};
    for (uint32_t v = 0; v < n && x->g.ntensor + 2 < TENSORS; v++) {
        LsDagNode *node = &x->node[x->g.nnode++];
        *node = (LsDagNode){.name = "n", .op = "N", .of = -1};
        node->kind = 2 * v < n ? LS_DAG_FORWARD : LS_DAG_BACKWARD;
        node->cost = whole ? 2 * (1 + dag_random(rnd, 4)) : 0.1 + dag_random(rnd, 900) / 99.0;
        node->workspace = dag_random(rnd, 3) ? 0 : dag_random(rnd, 5);
        node->once = dag_random(rnd, 9) == 0;
        node->required = dag_random(rnd, 9) == 0;
        tiny_reads(x, node, rnd, x->g.ntensor);
        node->out = x->id + x->nid;
        for (node->nout = 1 + (dag_random(rnd, 5) == 0); x->nid < node->out - x->id + node->nout;)
            x->id[x->nid++] = x->g.ntensor++;
        for (uint32_t k = 0; k < node->nout; k++)
            x->tensor[node->out[k]] = (LsDagTensor){
                "t", dag_random(rnd, 12), false, v + 1 == n || dag_random(rnd, 6) == 0};
        tiny_pairs(x, node, rnd);
    }
}

static void tiny_alternative(Tiny *x, uint64_t *rnd)
{
    LsDagNode *node = &x->node[x->g.nnode];
    const LsDagNode *of = &x->node[dag_random(rnd, x->g.nnode)];
    *node = (LsDagNode){.name = "a", .op = "A", .of = -1, .alternative = true};
    node->cost = 1 + dag_random(rnd, 5);
    tiny_reads(x, node, rnd, x->g.ntensor);
    node->out = of->out + dag_random(rnd, of->nout);
    node->nout = 1;
    if (!ls_id_in(node->in, node->nin, node->out[0]))
        x->g.nnode++;
}

/* An update of tensor 0, which the nodes that read it must come before. */
static void tiny_update(Tiny *x, uint64_t *rnd)
{
    LsDagNode *node = &x->node[x->g.nnode++];
    *node = (LsDagNode){.name = "u", .op = "U", .of = -1, .kind = LS_DAG_OPTIMIZER, .cost = 1};
    tiny_reads(x, node, rnd, x->g.ntensor);
    node->upd = x->id + x->nid;
    node->nupd = 1;
    x->id[x->nid++] = 0;
}

typedef struct Tally { int schedules, none, tight, loose; double lost; } Tally;

static void check_budget(const Tiny *x, bool inplace, int64_t budget, int64_t least, bool prove,
                         Tally *tally)
{
    LsArena *a = ls_arena_new();
    LsProb *p = ls_prob_new(a, &x->g, inplace);
    double best = exhaust(&x->g, inplace, false, (double)budget);
    LsBound b = ls_bound(p, budget, &(LsBoundOptions){.prove = prove});
    ck_assert_int_le(b.least, least);
    if (best >= 0) {
        ck_assert_msg(!b.infeasible, "called infeasible at %ld, least %ld", (long)budget,
                      (long)least);
        ck_assert_msg(b.cost <= best + 1e-9, "bound %.9g above %.9g at %ld", b.cost, best,
                      (long)budget);
        tally->schedules++;
        tally->tight += b.cost >= best - 1e-9;
        tally->lost += best - b.cost;
    } else {
        tally->none++;
        tally->loose += !b.infeasible;
    }
    ls_arena_free(a);
}

static void check_random(bool alternatives, bool updates, uint64_t seed, int rounds)
{
    Tally tally = {0};
    uint64_t rnd = seed;
    for (int round = 0; round < rounds; round++) {
        Tiny x;
        tiny_make(&x, &rnd, round % 2);
        if (updates)
            tiny_update(&x, &rnd);
        if (alternatives)
            tiny_alternative(&x, &rnd);
        bool inplace = dag_random(&rnd, 2);
        double least = exhaust(&x.g, inplace, true, 0);
        if (least < 0)
            continue;
        for (int64_t b = (int64_t)least - 1; b < (int64_t)least + 6; b += 2)
            check_budget(&x, inplace, b > 0 ? b : 1, (int64_t)least, false, &tally);
    }
    printf("%d schedules, bound equal in %d, %.2f below on average; of %d infeasible %d not seen\n",
           tally.schedules, tally.tight, tally.lost / (tally.schedules + 1), tally.none,
           tally.loose);
    ck_assert_int_gt(tally.schedules, rounds);
    ck_assert_int_gt(3 * tally.tight, tally.schedules);
}

START_TEST(no_schedule_of_a_random_graph_beats_the_bound)
{
    check_random(false, false, 1, 150);
}
END_TEST

START_TEST(no_schedule_with_updates_beats_the_bound)
{
    check_random(false, true, 2, 150);
}
END_TEST

START_TEST(no_schedule_with_alternatives_beats_the_bound)
{
    check_random(true, false, 3, 150);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("bound");
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, no_schedule_of_a_random_graph_beats_the_bound);
    tcase_add_test(tc, no_schedule_with_updates_beats_the_bound);
    tcase_add_test(tc, no_schedule_with_alternatives_beats_the_bound);
    return run_tests("bound", tc);
}
