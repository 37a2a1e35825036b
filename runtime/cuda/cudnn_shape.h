/* runtime/cuda/cudnn_shape.h -- a convolution as plain data, and rules for its engines. */
#ifndef LS_CUDNN_SHAPE_H
#define LS_CUDNN_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

enum { LS_DNN_AXES = 3, LS_DNN_RANK = 2 + LS_DNN_AXES };

typedef enum {
    LS_DNN_CONV_FORWARD,        /* y of x and w */
    LS_DNN_CONV_DATA,           /* x of y and w: data gradient, transposed convolution */
    LS_DNN_CONV_WEIGHTS,        /* w of x and y: weight gradient */
} LsDnnConvKind;

/* Dims are logical (N C spatial..; w: M C/group spatial..), of 2 + axes each; elements lie N,
 * spatial.., C. The bias has M elements for FORWARD, those of x's channels for DATA. */
typedef struct LsDnnConv {
    LsDnnConvKind kind;
    int axes;                   /* 2 or 3; one spatial axis counts as two, the first of size 1 */
    int real_bytes;             /* of an element of all tensors: 8, 4, or 2: products are then
                                 * summed in floats */
    bool brain;                 /* 2 bytes: bfloat16, else float16 */
    bool bias, relu;            /* epilogue, in this order */
    bool mask;                  /* DATA, without bias: x is 0 where the element of a ReLU's result,
                                 * which has x's dims, is not above 0: that ReLU's gradient */
    bool statistics;            /* also sums and sums of squares of y by channel (FORWARD) */
    int64_t x[LS_DNN_RANK], w[LS_DNN_RANK], y[LS_DNN_RANK];
    int64_t stride[LS_DNN_AXES], dilation[LS_DNN_AXES], pad_lo[LS_DNN_AXES], pad_hi[LS_DNN_AXES];
} LsDnnConv;

typedef struct LsDnnRules {     /* the engines that may be used */
    bool tf32;                  /* factors may be rounded to TF32 (floats only) */
    bool nondeterministic;
    bool compiled;              /* engines that compile a kernel when their plan is made */
    bool first;                 /* only proposals of the heuristics' first mode: a quick answer
                                 * where no engine fits */
} LsDnnRules;

enum { LS_CONV_ALIGNMENT = 256 };       /* bytes; alignment of the workspace passed to a plan */

/* Whether the convolution has an epilogue (statistics do not count). */
static inline bool ls_dnn_has_epilogue(const LsDnnConv *c)
{
    return c->bias || c->relu || c->mask;
}
/* The convolution without its epilogue. */
static inline LsDnnConv ls_dnn_alone(const LsDnnConv *c)
{
    LsDnnConv alone = *c;
    alone.bias = alone.relu = alone.mask = false;
    return alone;
}

/* Bytes for a plan's workspace in an arena of smaller alignment. */
static inline int64_t ls_conv_room(int64_t workspace)
{
    return workspace > 0 ? workspace + LS_CONV_ALIGNMENT - 1 : 0;
}

#endif
