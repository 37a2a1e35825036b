/* models/mlp.c -- a multilayer perceptron on images: `depth` hidden layers of `width`, each with
 * ReLU. Presets: 784-2048-10. */
#include "models/families.h"

void ls_zoo_mlp(LsBuild *b, const LsModelRequest *r)
{
    LsTensor x = ls_layer_flatten(b, "flatten", ls_zoo_image(b, r));
    int depth = (int)r->value[LS_OPT_DEPTH];
    for (int i = 0; i < depth; i++) {
        x = ls_layer_linear(b, ls_build_name(b, "fc%d", i + 1), x, r->value[LS_OPT_WIDTH]);
        x = ls_layer_relu(b, ls_build_name(b, "relu%d", i + 1), x);
        x = ls_layer_dropout(b, ls_build_name(b, "dropout%d", i + 1), x);
    }
    ls_build_output(b, "y", ls_layer_linear(b, ls_build_name(b, "fc%d", depth + 1), x,
                                            r->value[LS_OPT_CLASSES]));
}
