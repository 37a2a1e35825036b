/* models/densenet.c -- densely connected networks: Huang, Liu, van der Maaten, Weinberger 2016,
 * arXiv:1608.06993, form BC (bottlenecks, transitions to half the channels). Names and initial
 * values are torchvision's; --width is the growth rate. */
#include "models/families.h"

enum { MOST_LAYERS = 48 };      /* most layers in one block */
typedef struct Shape { int variant, layer[4]; } Shape;
static const Shape shapes[] = {
    {121, {6, 12, 24, 16}}, {161, {6, 12, 36, 24}}, {169, {6, 12, 32, 32}},
    {201, {6, 12, 48, 32}},
};

/* norm, ReLU, convolution, with a suffix to their names. */
static LsTensor norm_relu_conv(LsBuild *b, const char *at, const char *k, LsTensor x, LsConv c)
{
    x = ls_layer_batch_norm(b, ls_build_name(b, "%s.norm%s", at, k), x, 1e-5f);
    x = ls_layer_relu(b, ls_build_name(b, "%s.relu%s", at, k), x);
    return ls_layer_conv(b, ls_build_name(b, "%s.conv%s", at, k), x, c);
}

/* Every layer reads the concatenation of all earlier outputs of the block. */
static LsTensor dense_block(LsBuild *b, const char *at, LsTensor x, int layers, int64_t growth)
{
    LsTensor part[MOST_LAYERS + 1] = {x};
    for (int i = 0; i < layers; i++) {
        const char *layer = ls_build_name(b, "%s.denselayer%d", at, i + 1);
        if (i > 0)
            x = ls_layer_concat(b, ls_build_name(b, "%s.concat", layer), i + 1, part);
        LsTensor y = norm_relu_conv(b, layer, "1", x, (LsConv){.out = 4 * growth, .kernel = 1});
        y = norm_relu_conv(b, layer, "2", y, (LsConv){.out = growth, .kernel = 3, .pad = 1});
        part[i + 1] = ls_layer_dropout(b, ls_build_name(b, "%s.dropout", layer), y);
    }
    return ls_layer_concat(b, ls_build_name(b, "%s.concat", at), layers + 1, part);
}

void ls_zoo_densenet(LsBuild *b, const LsModelRequest *r)
{
    const Shape *s = shapes;
    int64_t growth = r->value[LS_OPT_WIDTH];
    while (s->variant != r->model->variant)
        s++;
    b->conv = (LsDraw){.kind = LS_DRAW_FAN_IN};
    b->linear.zero_bias = true;
    LsTensor x = ls_layer_conv(b, "features.conv0", ls_zoo_image(b, r),
                               (LsConv){.out = 2 * growth, .kernel = 7, .stride = 2, .pad = 3});
    x = ls_layer_relu(b, "features.relu0", ls_layer_batch_norm(b, "features.norm0", x, 1e-5f));
    x = ls_layer_max_pool(b, "features.pool0", x, (LsPool){3, 2, 1, false});
    for (int i = 0; i < 4; i++) {
        x = dense_block(b, ls_build_name(b, "features.denseblock%d", i + 1), x, s->layer[i],
                        growth);
        if (i == 3)
            break;
        const char *at = ls_build_name(b, "features.transition%d", i + 1);
        x = norm_relu_conv(b, at, "", x, (LsConv){.out = x.dim[1] / 2, .kernel = 1});
        x = ls_layer_average_pool(b, ls_build_name(b, "%s.pool", at), x, (LsPool){2, 2, 0, false});
    }
    x = ls_layer_relu(b, "relu", ls_layer_batch_norm(b, "features.norm5", x, 1e-5f));
    x = ls_layer_flatten(b, "flatten", ls_layer_global_average_pool(b, "avgpool", x));
    ls_build_output(b, "y", ls_layer_linear(b, "classifier", x, r->value[LS_OPT_CLASSES]));
}
