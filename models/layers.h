/* models/layers.h -- the layers of the zoo as PyTorch's modules name and initialise them.
 * `at` is the module's path, "layer1.0.conv1": the node gets that name, its weights are
 * "layer1.0.conv1.weight" and so on, as in a state_dict. */
#ifndef LS_MODELS_LAYERS_H
#define LS_MODELS_LAYERS_H

#include "models/build.h"

typedef struct LsConv {
    int64_t out, kernel, stride, pad, dilation;     /* stride, dilation 0: 1 */
    bool bias;
} LsConv;
LsTensor ls_layer_conv(LsBuild *b, const char *at, LsTensor x, LsConv c);
LsTensor ls_layer_deconv(LsBuild *b, const char *at, LsTensor x, LsConv c);

LsTensor ls_layer_batch_norm(LsBuild *b, const char *at, LsTensor x, float epsilon);
LsTensor ls_layer_layer_norm(LsBuild *b, const char *at, LsTensor x);
LsTensor ls_layer_unary(LsBuild *b, const char *op, const char *at, LsTensor x);  /* Relu.. */
LsTensor ls_layer_relu(LsBuild *b, const char *at, LsTensor x);
/* x / 2 * (1 + erf(x / sqrt 2)), decomposed as exporters do before opset 20. */
LsTensor ls_layer_gelu(LsBuild *b, const char *at, LsTensor x);
LsTensor ls_layer_dropout(LsBuild *b, const char *at, LsTensor x);    /* x itself at probability
                                                                       * 0 */

typedef struct LsPool { int64_t kernel, stride, pad; bool ceil; } LsPool;
LsTensor ls_layer_max_pool(LsBuild *b, const char *at, LsTensor x, LsPool p);
LsTensor ls_layer_average_pool(LsBuild *b, const char *at, LsTensor x, LsPool p);
LsTensor ls_layer_global_average_pool(LsBuild *b, const char *at, LsTensor x);

LsTensor ls_layer_flatten(LsBuild *b, const char *at, LsTensor x);    /* all axes but the batch */
LsTensor ls_layer_linear(LsBuild *b, const char *at, LsTensor x, int64_t out);    /* x of rank 2 */
LsTensor ls_layer_add(LsBuild *b, const char *at, LsTensor x, LsTensor y);    /* of one shape */
LsTensor ls_layer_concat(LsBuild *b, const char *at, int n, const LsTensor x[]);      /* channels */
LsTensor ls_layer_matmul(LsBuild *b, const char *at, LsTensor x, LsTensor y, LsTensor shape);
LsTensor ls_layer_softmax(LsBuild *b, const char *at, LsTensor x);    /* over the last axis */
/* qkv: N x T x 3W, queries, keys and values of all heads; to N x T x W. mask: a bool of pairs that
 * do not attend; NULL: all do. (self_attention.c) */
LsTensor ls_layer_attention(LsBuild *b, const char *at, LsTensor qkv, int64_t heads,
                            const char *mask);
LsTensor ls_layer_transpose(LsBuild *b, const char *at, LsTensor x, const int64_t perm[]);
/* To `shape`; its first dimension is x's. */
LsTensor ls_layer_reshape(LsBuild *b, const char *at, LsTensor x, LsTensor shape);
/* Bilinear, corners aligned, to height h and width w. */
LsTensor ls_layer_resize(LsBuild *b, const char *at, LsTensor x, int64_t h, int64_t w);
/* Both change height and width to those of `to`, evenly on both sides: zeros around x, or x's edges
 * cropped. */
LsTensor ls_layer_pad_to(LsBuild *b, const char *at, LsTensor x, LsTensor to);
LsTensor ls_layer_crop_to(LsBuild *b, const char *at, LsTensor x, LsTensor to);

#endif
