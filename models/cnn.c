/* models/cnn.c -- small image classifiers.
 *
 * cnn: 3x3 convolutions, each with ReLU and a 2x2 average pool, then two dense layers. Presets: 32
 * and 64 channels, 256 hidden units, 10 classes. digits: the network of PyTorch's example for
 * MNIST, which its tutorials on gradients of samples and on ensembles take: two convolutions
 * without padding, a 2x2 max pool, dense layers of 128 and 10. */
#include "models/families.h"

void ls_zoo_cnn(LsBuild *b, const LsModelRequest *r)
{
    LsTensor x = ls_zoo_image(b, r);
    for (int i = 0; i < (int)r->value[LS_OPT_DEPTH] && !b->failed; i++) {
        x = ls_layer_conv(b, ls_build_name(b, "conv%d", i + 1), x,
                          (LsConv){.out = r->value[LS_OPT_WIDTH] << i, .kernel = 3, .pad = 1,
                                   .bias = true});
        x = ls_layer_relu(b, ls_build_name(b, "relu%d", i + 1), x);
        x = ls_layer_average_pool(b, ls_build_name(b, "pool%d", i + 1), x,
                                  (LsPool){2, 2, 0, false});
    }
    x = ls_layer_linear(b, "fc1", ls_layer_flatten(b, "flatten", x), 8 * r->value[LS_OPT_WIDTH]);
    x = ls_layer_dropout(b, "dropout", ls_layer_relu(b, "relu_fc1", x));
    ls_build_output(b, "y", ls_layer_linear(b, "fc2", x, r->value[LS_OPT_CLASSES]));
}

void ls_zoo_digits(LsBuild *b, const LsModelRequest *r)
{
    LsTensor x = ls_zoo_image(b, r);
    for (int i = 0; i < 2 && !b->failed; i++) {
        x = ls_layer_conv(b, ls_build_name(b, "conv%d", i + 1), x,
                          (LsConv){.out = r->value[LS_OPT_WIDTH] << i, .kernel = 3, .bias = true});
        x = ls_layer_relu(b, ls_build_name(b, "relu%d", i + 1), x);
    }
    x = ls_layer_dropout(b, "dropout1", ls_layer_max_pool(b, "pool", x, (LsPool){2, 2, 0, false}));
    x = ls_layer_linear(b, "fc1", ls_layer_flatten(b, "flatten", x), 4 * r->value[LS_OPT_WIDTH]);
    x = ls_layer_dropout(b, "dropout2", ls_layer_relu(b, "relu_fc1", x));
    ls_build_output(b, "y", ls_layer_linear(b, "fc2", x, r->value[LS_OPT_CLASSES]));
}
