/* models/resnet.c -- residual networks: He, Zhang, Ren, Sun 2015, arXiv:1512.03385, with the stride
 * on the 3x3 convolution as torchvision has it. Names and initial values are torchvision's. */
#include "models/families.h"

/* Blocks per stage; and whether they are bottlenecks: 1x1, 3x3, 1x1 to four times the width. */
typedef struct Shape { int variant, block[4]; bool bottleneck; } Shape;
static const Shape shapes[] = {
    {18, {2, 2, 2, 2}, false}, {34, {3, 4, 6, 3}, false}, {50, {3, 4, 6, 3}, true},
    {101, {3, 4, 23, 3}, true}, {152, {3, 8, 36, 3}, true},
};

typedef struct Block { int64_t width, stride, dilation; bool bottleneck; } Block;

/* Number k of a block's convolutions, with its batch norm: "at.convK", "at.bnK". */
static LsTensor conv_bn(LsBuild *b, const char *at, int k, LsTensor x, LsConv c)
{
    c.bias = b->norm_bias;
    x = ls_layer_conv(b, ls_build_name(b, "%s.conv%d", at, k), x, c);
    return ls_layer_batch_norm(b, ls_build_name(b, "%s.bn%d", at, k), x, 1e-5f);
}

static LsTensor relu(LsBuild *b, const char *at, int k, LsTensor x)
{
    return ls_layer_relu(b, ls_build_name(b, "%s.relu%d", at, k), x);
}

static LsTensor block(LsBuild *b, const char *at, LsTensor x, Block k)
{
    LsConv wide = {k.width, 3, k.stride, k.dilation, k.dilation, false};
    LsTensor y;
    if (k.bottleneck) {
        y = relu(b, at, 1, conv_bn(b, at, 1, x, (LsConv){.out = k.width, .kernel = 1}));
        y = relu(b, at, 2, conv_bn(b, at, 2, y, wide));
        y = conv_bn(b, at, 3, y, (LsConv){.out = 4 * k.width, .kernel = 1});
    } else {
        y = relu(b, at, 1, conv_bn(b, at, 1, x, wide));
        y = conv_bn(b, at, 2, y, (LsConv){.out = k.width, .kernel = 3, .pad = 1});
    }
    if (x.dim[1] != y.dim[1] || k.stride != 1) {
        x = ls_layer_conv(b, ls_build_name(b, "%s.downsample.0", at), x,
                          (LsConv){.out = y.dim[1], .kernel = 1, .stride = k.stride,
                                   .bias = b->norm_bias});
        x = ls_layer_batch_norm(b, ls_build_name(b, "%s.downsample.1", at), x, 1e-5f);
    }
    return relu(b, at, k.bottleneck ? 3 : 2, ls_layer_add(b, ls_build_name(b, "%s.add", at), y, x));
}

static LsTensor stem(LsBuild *b, const char *at, LsTensor x, LsResnetBody body)
{
    bool small = body.stem == LS_STEM_CIFAR;
    LsConv c = small ? (LsConv){.out = body.width, .kernel = 3, .pad = 1}
                     : (LsConv){.out = body.width, .kernel = 7, .stride = 2, .pad = 3};
    c.bias = b->norm_bias;
    x = ls_layer_conv(b, ls_build_name(b, "%sconv1", at), x, c);
    x = ls_layer_batch_norm(b, ls_build_name(b, "%sbn1", at), x, 1e-5f);
    x = ls_layer_relu(b, ls_build_name(b, "%srelu", at), x);
    return small ? x : ls_layer_max_pool(b, ls_build_name(b, "%smaxpool", at), x,
                                         (LsPool){3, 2, 1, false});
}

LsTensor ls_zoo_resnet_body(LsBuild *b, const char *at, LsTensor x, LsResnetBody body)
{
    const Shape *s = shapes;
    while (s->variant != body.variant)
        s++;
    b->conv = (LsDraw){.kind = LS_DRAW_FAN_OUT};
    x = stem(b, at, x, body);
    int64_t dilation = 1;
    for (int i = 0; i < 4; i++) {
        int64_t stride = i == 0 ? 1 : 2, before = dilation;
        if (body.dilated && i >= 2) {
            dilation *= 2;
            stride = 1;
        }
        for (int k = 0; k < s->block[i]; k++)
            x = block(b, ls_build_name(b, "%slayer%d.%d", at, i + 1, k), x,
                      (Block){body.width << i, k == 0 ? stride : 1, k == 0 ? before : dilation,
                              s->bottleneck});
    }
    return x;
}

void ls_zoo_resnet(LsBuild *b, const LsModelRequest *r)
{
    b->norm_bias = r->value[LS_OPT_BIAS] == LS_BIAS_ON;
    LsResnetBody body = {r->model->variant, r->value[LS_OPT_WIDTH], (int)r->value[LS_OPT_STEM],
                         false};
    LsTensor x = ls_zoo_resnet_body(b, "", ls_zoo_image(b, r), body);
    x = ls_layer_flatten(b, "flatten", ls_layer_global_average_pool(b, "avgpool", x));
    x = ls_layer_dropout(b, "dropout", x);
    ls_build_output(b, "y", ls_layer_linear(b, "fc", x, r->value[LS_OPT_CLASSES]));
}
