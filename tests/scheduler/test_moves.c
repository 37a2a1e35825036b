/* tests/scheduler/test_moves.c -- memory at the peak is freed by the cheapest way: recomputation,
 * or an alternative that does without the value. */
#include <check.h>

#include "scheduler/order/moves.h"
#include "scheduler/order/run_order.h"
#include "tests/support/suite.h"

/* conv1 makes a, relu b of it. Behind the peak at `wide`, two weight gradients read b and a ReLU
 * gradient a. Their alternatives read a in place of b. */
enum { X, A, B, E, WIDE, D, G1, G2, H, TENSORS };
enum { CONV1, RELU, CONV2, STRETCH, SHRINK, GRAD1, ALT1, GRAD2, ALT2, RGRAD, NODES };

typedef struct Net {
    LsDag g;
    LsDagTensor tensor[TENSORS];
    LsDagNode node[NODES];
    uint32_t id[NODES][4];
} Net;

static void set_node(Net *x, uint32_t v, double cost, uint32_t in, uint32_t also, uint32_t out)
{
    uint32_t *id = x->id[v];
    id[0] = in;
    id[1] = also;
    id[2] = out;
    x->node[v] = (LsDagNode){.name = "n", .op = "N", .of = -1, .cost = cost, .in = id,
                             .nin = also == X ? 1 : 2, .out = id + 2, .nout = 1,
                             .kind = v < GRAD1 ? LS_DAG_FORWARD : LS_DAG_BACKWARD,
                             .alternative = v == ALT1 || v == ALT2};
}

/* more1, more2: added costs of the alternatives. */
static void make(Net *x, double more1, double more2)
{
    static const int64_t bytes[TENSORS] = {1, 10, 10, 1, 40, 1, 1, 1, 1};
    *x = (Net){.g = {.name = "net", .alignment = 1, .ntensor = TENSORS, .nnode = NODES}};
    x->g.tensor = x->tensor;
    x->g.node = x->node;
    for (uint32_t t = 0; t < TENSORS; t++)
        x->tensor[t] = (LsDagTensor){"t", bytes[t], t == X, t >= G1};
    set_node(x, CONV1, 100, X, X, A);
    set_node(x, RELU, 3, A, X, B);
    set_node(x, CONV2, 100, B, X, E);
    set_node(x, STRETCH, 10, E, X, WIDE);
    set_node(x, SHRINK, 10, WIDE, X, D);
    set_node(x, GRAD1, 50, D, B, G1);
    set_node(x, ALT1, 50 + more1, D, A, G1);
    set_node(x, GRAD2, 50, D, B, G2);
    set_node(x, ALT2, 50 + more2, D, A, G2);
    set_node(x, RGRAD, 5, D, A, H);
}

/* Returns the cost of freeing b at the peak; runs: of each node afterwards. */
static double relief(double more1, double more2, uint32_t *runs)
{
    Net x;
    make(&x, more1, more2);
    LsArena *a = ls_arena_new();
    LsProb *p = ls_prob_new(a, &x.g, true);
    LsTape *t = ls_tape_new(p);
    LsSeq plain = ls_seq_plain(a, p);
    ls_tape_load(t, &plain);
    LsMoves *m = ls_moves_new(a, t);
    double before = t->cost;
    int64_t peak = ls_tape_peak(t);
    m->target = peak - 10;
    ck_assert(ls_move_relieve(m, 200));
    ck_assert_uint_eq(t->bad, 0);
    ck_assert_int_eq(ls_tape_peak(t), peak - 10);
    for (uint32_t v = 0; v < NODES; v++)
        runs[v] = t->count[v];
    double cost = t->cost - before;
    ls_tape_free(t);
    ls_arena_free(a);
    return cost;
}

START_TEST(readers_do_without_where_that_is_cheapest)
{
    uint32_t runs[NODES];
    ck_assert_double_eq_tol(relief(1, 1, runs), 2, 1e-9);
    ck_assert_uint_eq(runs[ALT1] + runs[ALT2], 2);
    ck_assert_uint_eq(runs[GRAD1] + runs[GRAD2], 0);
    ck_assert_uint_eq(runs[RELU], 1);
}
END_TEST

START_TEST(a_value_is_made_again_where_doing_without_costs_more)
{
    uint32_t runs[NODES];
    ck_assert_double_eq_tol(relief(1, 9, runs), 3, 1e-9);
    ck_assert_uint_eq(runs[RELU], 2);
    ck_assert_uint_eq(runs[ALT1] + runs[ALT2], 0);
}
END_TEST

START_TEST(alternatives_that_cost_no_more_are_taken)
{
    uint32_t runs[NODES];
    ck_assert_double_le(relief(-1, 0, runs), 0);
    ck_assert_uint_eq(runs[RELU], 1);
}
END_TEST

int main(void)
{
    const TTest *const test[] = {
        readers_do_without_where_that_is_cheapest,
        a_value_is_made_again_where_doing_without_costs_more,
        alternatives_that_cost_no_more_are_taken,
    };
    TCase *tc = tcase_create("moves");
    add_tests(tc, sizeof test / sizeof *test, test);
    return run_tests("moves", tc);
}
