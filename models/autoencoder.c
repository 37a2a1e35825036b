/* models/autoencoder.c -- a convolutional autoencoder of digits: two 3x3 convolutions without
 * padding, a code of `depth` numbers, and the mirror image of both. 2,405,633 parameters at its
 * presets. Outputs: x_hat, the reconstruction in (0, 1), and z, the code. */
#include "models/families.h"

void ls_zoo_autoencoder(LsBuild *b, const LsModelRequest *r)
{
    int64_t width = r->value[LS_OPT_WIDTH], channels = r->value[LS_OPT_CHANNELS];
    LsConv narrow = {.out = width, .kernel = 3, .bias = true};
    LsConv wide = {.out = 8 * width, .kernel = 3, .bias = true};
    LsConv image = {.out = channels, .kernel = 3, .bias = true};
    LsTensor x = ls_layer_conv(b, "encoder.conv1", ls_zoo_image(b, r), narrow);
    x = ls_layer_relu(b, "encoder.relu1", x);
    x = ls_layer_conv(b, "encoder.conv2", x, wide);
    LsTensor map = ls_layer_relu(b, "encoder.relu2", x);
    x = ls_layer_flatten(b, "encoder.flatten", ls_layer_dropout(b, "encoder.dropout", map));
    int64_t features = x.dim[1];
    LsTensor z = ls_layer_linear(b, "encoder.fc", x, r->value[LS_OPT_DEPTH]);

    x = ls_layer_relu(b, "decoder.relu1", ls_layer_linear(b, "decoder.fc", z, features));
    x = ls_layer_reshape(b, "decoder.unflatten", x, map);
    x = ls_layer_deconv(b, "decoder.deconv1", x, narrow);
    x = ls_layer_relu(b, "decoder.relu2", x);
    x = ls_layer_deconv(b, "decoder.deconv2", x, image);
    ls_build_output(b, "x_hat", ls_layer_unary(b, "Sigmoid", "decoder.sigmoid", x));
    ls_build_output(b, "z", z);
}
