/* tests/differential/random_ops.c -- which operators a random graph has, and how often. */
#include "tests/differential/random_ops.h"

bool net_grow(Net *net)
{
    static const struct {
        Twin (*grow)(Net *);
        uint32_t weight;
    } kind[] = {
        {grow_unary, 24},     {grow_binary, 24},     {grow_choice, 4},         {grow_expansion, 3},
        {grow_reduction, 8},  {grow_taken_apart, 5}, {grow_softmax, 3},        {grow_layer_norm, 4},
        {grow_batch_norm, 6}, {grow_reshape, 5},     {grow_transpose, 5},      {grow_slice, 4},
        {grow_split, 3},      {grow_pad, 4},         {grow_concat, 6},         {grow_tile, 2},
        {grow_resize, 3},     {grow_gather, 3},      {grow_gather_each, 2},    {grow_scatter, 3},
        {grow_scan, 2},       {grow_conv, 8},        {grow_conv_transpose, 3}, {grow_pool, 5},
        {grow_matmul, 9},     {grow_attention, 3},   {grow_open_attention, 3}, {grow_recurrence, 2},
        {grow_residual, 5},
    };
    uint32_t all = 0, k = 0;
    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++)
        all += kind[i].weight;
    uint32_t at = net_roll(net, all);
    while (at >= kind[k].weight)
        at -= kind[k++].weight;
    Twin y = kind[k].grow(net);
    net_offer(net, y);
    return net_is(y);
}
