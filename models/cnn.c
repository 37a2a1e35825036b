/* models/cnn.c -- a small image classifier: 3x3 convolutions, each with ReLU and a 2x2 average
 * pool, then two dense layers. Presets: 32 and 64 channels, 256 hidden units, 10 classes. */
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
