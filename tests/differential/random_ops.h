/* tests/differential/random_ops.h -- the operators that a random graph is made of. Each function
 * appends one, or a few that networks have together, over values of the pool. None: it did not fit.
 */
#ifndef LS_TESTS_DIFFERENTIAL_RANDOM_OPS_H
#define LS_TESTS_DIFFERENTIAL_RANDOM_OPS_H

#include "tests/differential/random_net.h"

/* ---- random_maps.c ---- */
Twin grow_unary(Net *net), grow_binary(Net *net), grow_choice(Net *net), grow_expansion(Net *net),
    grow_reduction(Net *net), grow_taken_apart(Net *net);
/* ---- random_moves.c ---- */
Twin grow_reshape(Net *net), grow_transpose(Net *net), grow_slice(Net *net), grow_split(Net *net),
    grow_pad(Net *net), grow_concat(Net *net), grow_tile(Net *net), grow_resize(Net *net),
    grow_gather(Net *net), grow_gather_each(Net *net), grow_scatter(Net *net), grow_scan(Net *net);
/* ---- random_layers.c ---- */
Twin grow_softmax(Net *net), grow_layer_norm(Net *net), grow_batch_norm(Net *net),
    grow_conv(Net *net), grow_conv_transpose(Net *net), grow_pool(Net *net), grow_matmul(Net *net),
    grow_attention(Net *net), grow_open_attention(Net *net), grow_recurrence(Net *net),
    grow_residual(Net *net);

static inline int some_axis(Net *net, const LsShape *s)
{
    return (int)net_roll(net, (uint32_t)s->rank);
}
static inline uint32_t some_axes(Net *net, const LsShape *s)
{
    return 1 + net_roll(net, (1u << s->rank) - 1);
}

/* A constant. */
static inline Twin number(Net *net, double v)
{
    return (Twin){ls_const_real(&net->cx, net->a, v), ls_const_real(&net->cx, net->b, v)};
}

static inline Twin binary(Net *net, LsOpCode op, Twin x, Twin y)
{
    return net_append2(net, op, x, y, NULL);
}

#endif
