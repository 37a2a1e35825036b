/* tests/support/fake_cudnn_rules.h -- the attributes of the descriptors of cuDNN's graph API, by
 * NVIDIA's documentation: fake_cudnn.c refuses other attributes, and descriptors that lack one. */
#ifndef LS_TESTS_SUPPORT_FAKE_CUDNN_RULES_H
#define LS_TESTS_SUPPORT_FAKE_CUDNN_RULES_H

#include "runtime/cuda/cudnn_abi.h"

#include <stdbool.h>

typedef struct FakeRule {
    int of, name, type;         /* kind of descriptor, attribute, type of its values */
    int64_t least, most;        /* values; least 0: it may be missing */
} FakeRule;

enum { FAKE_RANK = 8, FAKE_TEXT = 1 << 16, FAKE_MANY = 64 };

#define FAKE_CONVOLUTION(op, x, w, y, conv, alpha, beta)                                           \
    {op, x, LS_DNN_T_DESC, 1, 1}, {op, w, LS_DNN_T_DESC, 1, 1}, {op, y, LS_DNN_T_DESC, 1, 1},      \
    {op, conv, LS_DNN_T_DESC, 1, 1}, {op, alpha, LS_DNN_T_FLOAT, 0, 1},                            \
    {op, alpha, LS_DNN_T_DOUBLE, 0, 1}, {op, beta, LS_DNN_T_FLOAT, 0, 1},                          \
    {op, beta, LS_DNN_T_DOUBLE, 0, 1}

static const FakeRule fake_rule[] = {
    {LS_DNN_TENSOR, LS_DNN_TENSOR_UID, LS_DNN_T_INT64, 1, 1},
    {LS_DNN_TENSOR, LS_DNN_TENSOR_ALIGNMENT, LS_DNN_T_INT64, 1, 1},
    {LS_DNN_TENSOR, LS_DNN_TENSOR_TYPE, LS_DNN_T_DATA_TYPE, 1, 1},
    {LS_DNN_TENSOR, LS_DNN_TENSOR_DIMS, LS_DNN_T_INT64, 3, FAKE_RANK},
    {LS_DNN_TENSOR, LS_DNN_TENSOR_STRIDES, LS_DNN_T_INT64, 3, FAKE_RANK},
    {LS_DNN_TENSOR, LS_DNN_TENSOR_VIRTUAL, LS_DNN_T_BOOLEAN, 0, 1},
    {LS_DNN_CONVOLUTION, LS_DNN_CONV_PRECISION, LS_DNN_T_DATA_TYPE, 1, 1},
    {LS_DNN_CONVOLUTION, LS_DNN_CONV_MODE, LS_DNN_T_CONV_MODE, 1, 1},
    {LS_DNN_CONVOLUTION, LS_DNN_CONV_SPATIAL, LS_DNN_T_INT64, 1, 1},
    {LS_DNN_CONVOLUTION, LS_DNN_CONV_DILATIONS, LS_DNN_T_INT64, 2, 3},
    {LS_DNN_CONVOLUTION, LS_DNN_CONV_STRIDES, LS_DNN_T_INT64, 2, 3},
    {LS_DNN_CONVOLUTION, LS_DNN_CONV_PRE_PADS, LS_DNN_T_INT64, 2, 3},
    {LS_DNN_CONVOLUTION, LS_DNN_CONV_POST_PADS, LS_DNN_T_INT64, 2, 3},
    {LS_DNN_POINTWISE, LS_DNN_POINTWISE_MODE, LS_DNN_T_POINTWISE_MODE, 1, 1},
    {LS_DNN_POINTWISE, LS_DNN_POINTWISE_PRECISION, LS_DNN_T_DATA_TYPE, 1, 1},
    FAKE_CONVOLUTION(LS_DNN_OP_CONV_FORWARD, LS_DNN_FORWARD_X, LS_DNN_FORWARD_W, LS_DNN_FORWARD_Y,
                     LS_DNN_FORWARD_CONV, LS_DNN_FORWARD_ALPHA, LS_DNN_FORWARD_BETA),
    FAKE_CONVOLUTION(LS_DNN_OP_CONV_DATA, LS_DNN_DATA_DX, LS_DNN_DATA_W, LS_DNN_DATA_DY,
                     LS_DNN_DATA_CONV, LS_DNN_DATA_ALPHA, LS_DNN_DATA_BETA),
    FAKE_CONVOLUTION(LS_DNN_OP_CONV_WEIGHTS, LS_DNN_WEIGHTS_X, LS_DNN_WEIGHTS_DW,
                     LS_DNN_WEIGHTS_DY, LS_DNN_WEIGHTS_CONV, LS_DNN_WEIGHTS_ALPHA,
                     LS_DNN_WEIGHTS_BETA),
    {LS_DNN_OP_POINTWISE, LS_DNN_OP_POINTWISE_DESC, LS_DNN_T_DESC, 1, 1},
    {LS_DNN_OP_POINTWISE, LS_DNN_OP_POINTWISE_X, LS_DNN_T_DESC, 1, 1},
    {LS_DNN_OP_POINTWISE, LS_DNN_OP_POINTWISE_B, LS_DNN_T_DESC, 0, 1},
    {LS_DNN_OP_POINTWISE, LS_DNN_OP_POINTWISE_Y, LS_DNN_T_DESC, 0, 1},
    {LS_DNN_OP_POINTWISE, LS_DNN_OP_POINTWISE_DX, LS_DNN_T_DESC, 0, 1},
    {LS_DNN_OP_POINTWISE, LS_DNN_OP_POINTWISE_DY, LS_DNN_T_DESC, 0, 1},
    {LS_DNN_OP_STATISTICS, LS_DNN_STATISTICS_MODE, LS_DNN_T_STATISTICS_MODE, 1, 1},
    {LS_DNN_OP_STATISTICS, LS_DNN_STATISTICS_PRECISION, LS_DNN_T_DATA_TYPE, 1, 1},
    {LS_DNN_OP_STATISTICS, LS_DNN_STATISTICS_X, LS_DNN_T_DESC, 1, 1},
    {LS_DNN_OP_STATISTICS, LS_DNN_STATISTICS_SUM, LS_DNN_T_DESC, 1, 1},
    {LS_DNN_OP_STATISTICS, LS_DNN_STATISTICS_SQUARES, LS_DNN_T_DESC, 1, 1},
    {LS_DNN_GRAPH, LS_DNN_GRAPH_OPS, LS_DNN_T_DESC, 1, FAKE_MANY},
    {LS_DNN_HEURISTICS, LS_DNN_HEURISTICS_MODE, LS_DNN_T_HEURISTICS_MODE, 1, 1},
    {LS_DNN_HEURISTICS, LS_DNN_HEURISTICS_GRAPH, LS_DNN_T_DESC, 1, 1},
    {LS_DNN_HEURISTICS, LS_DNN_HEURISTICS_DEVICE, LS_DNN_T_DESC, 1, 1},
    {LS_DNN_PLAN, LS_DNN_PLAN_CONFIG, LS_DNN_T_DESC, 0, 1},
    {LS_DNN_PLAN, LS_DNN_PLAN_JSON, LS_DNN_T_CHAR, 0, FAKE_TEXT},
    {LS_DNN_PLAN, LS_DNN_PLAN_DEVICE, LS_DNN_T_DESC, 1, 1},
    {LS_DNN_VARIANT_PACK, LS_DNN_PACK_UIDS, LS_DNN_T_INT64, 1, FAKE_MANY},
    {LS_DNN_VARIANT_PACK, LS_DNN_PACK_POINTERS, LS_DNN_T_POINTER, 1, FAKE_MANY},
    {LS_DNN_VARIANT_PACK, LS_DNN_PACK_WORKSPACE, LS_DNN_T_POINTER, 1, 1},
    {LS_DNN_DEVICE, LS_DNN_DEVICE_ID, LS_DNN_T_INT32, 0, 1},
    {LS_DNN_DEVICE, LS_DNN_DEVICE_JSON, LS_DNN_T_CHAR, 0, FAKE_TEXT},
};
enum { FAKE_RULES = sizeof fake_rule / sizeof *fake_rule };

/* The attributes that can be read from a descriptor. */
static const FakeRule fake_answer[] = {
    {LS_DNN_DEVICE, LS_DNN_DEVICE_JSON, LS_DNN_T_CHAR, 0, FAKE_TEXT},
    {LS_DNN_PLAN, LS_DNN_PLAN_JSON, LS_DNN_T_CHAR, 0, FAKE_TEXT},
    {LS_DNN_PLAN, LS_DNN_PLAN_WORKSPACE, LS_DNN_T_INT64, 1, 1},
    {LS_DNN_HEURISTICS, LS_DNN_HEURISTICS_RESULTS, LS_DNN_T_DESC, 0, FAKE_TEXT},
    {LS_DNN_ENGINE_CONFIG, LS_DNN_CONFIG_ENGINE, LS_DNN_T_DESC, 1, 1},
    {LS_DNN_ENGINE, LS_DNN_ENGINE_INDEX, LS_DNN_T_INT64, 1, 1},
    {LS_DNN_ENGINE, LS_DNN_ENGINE_NUMERICS, LS_DNN_T_NUMERICS, 0, FAKE_TEXT},
    {LS_DNN_ENGINE, LS_DNN_ENGINE_BEHAVIOR, LS_DNN_T_BEHAVIOR, 0, FAKE_TEXT},
};
enum { FAKE_ANSWERS = sizeof fake_answer / sizeof *fake_answer };

static inline bool fake_allowed(const FakeRule *rule, int n, int of, int name, int type,
                                int64_t values)
{
    for (int k = 0; k < n; k++)
        if (rule[k].of == of && rule[k].name == name && rule[k].type == type
            && values >= rule[k].least && values <= rule[k].most)
            return true;
    return false;
}

#endif
