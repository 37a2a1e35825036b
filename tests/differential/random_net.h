/* tests/differential/random_net.h -- random training graphs of real operators, each as a pair of
 * twins.
 *
 * Twin `a` is for the compiler. Twin `b` is for the interpreter: the same nodes over the same
 * numbers, but its constants are frozen state, so nothing is folded. The interpreter computes every
 * value of b while the graph grows: values decide which operators are defined for which operand. */
#ifndef LS_TESTS_DIFFERENTIAL_RANDOM_NET_H
#define LS_TESTS_DIFFERENTIAL_RANDOM_NET_H

#include "compiler/fold/append.h"
#include "tests/support/fuzz.h"

typedef struct Twin {
    LsValueId a, b;
} Twin;

enum { NET_POOL = 512, NET_INPUTS = 64 };

typedef struct Net {
    LsCtx cx;
    LsGraph *a, *b;
    Dice dice;
    struct Interpreter *ref; /* the values of b */
    Twin pool[NET_POOL];
    int npool; /* real values that operators may read */
    bool read[NET_POOL];
    const void *input[NET_INPUTS]; /* data of the k-th input, as of a constant of its type */
    bool stops; /* some node stops its gradient, or has a value at single points: differences do not
                 * see that */
    int nleaf;
} Net;

/* A graph of about nops operators with a loss; the same for the same seed. A smaller nops gives a
 * beginning of it. Without `training` it lacks the updates of running statistics. */
Net *net_new(uint64_t seed, int nops, bool training);
void net_free(Net *net);

/* ---- for the operators of random_ops.c ---- */
static inline uint32_t net_roll(Net *net, uint32_t below)
{
    return roll(&net->dice, below);
}
static inline bool net_one_in(Net *net, uint32_t n)
{
    return net_roll(net, n) == 0;
}
int64_t net_between(Net *net, int64_t lo, int64_t hi); /* both included */
double net_real(Net *net, double lo, double hi);

static inline bool net_is(Twin v)
{
    return ls_is(v.a) && ls_is(v.b);
}
static inline const LsShape *net_shape(const Net *net, Twin v)
{
    return ls_shape(net->b, v.b);
}

/* A value of the pool, mostly a late one. */
Twin net_pick(Net *net);
/* One whose rank is in lo .. hi: of the pool, reshaped, or new. */
Twin net_pick_rank(Net *net, int lo, int hi);

/* Appends the node to both twins; none: the operator refuses it, or some result is not a moderate
 * number. */
Twin net_append(Net *net, LsOpCode op, int nin, const Twin in[], const LsAttr *at);
Twin net_append1(Net *net, LsOpCode op, Twin x, const LsAttr *at);
Twin net_append2(Net *net, LsOpCode op, Twin x, Twin y, const LsAttr *at);
/* Result k of the node that made `first`, its result 0. */
Twin net_result(Twin first, int k);
Twin net_reshape(Net *net, Twin x, LsShape to);

/* New values without a node: parameters, inputs, constants, frozen state. */
Twin net_leaf(Net *net, LsShape s);
Twin net_param(Net *net, LsShape s);
Twin net_state(Net *net, LsShape s, bool statistic);
/* Integers in [lo, hi): constant or input. */
Twin net_index(Net *net, LsShape s, int64_t lo, int64_t hi);
/* Integers in [0, below) that differ along the axis, whose length is at most `below`. */
Twin net_different(Net *net, LsShape s, int axis, int64_t below);

/* The extremes of a value. */
void net_range(const Net *net, Twin v, double *least, double *most);

void net_offer(Net *net, Twin v); /* to the pool */

/* Appends some operator to the net; false: it did not fit. */
bool net_grow(Net *net);

#endif
