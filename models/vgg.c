/* models/vgg.c -- VGG: Simonyan & Zisserman 2014, arXiv:1409.1556, configurations D (16) and E
 * (19), with or without batch norm. Names and initial values are torchvision's. */
#include "models/families.h"

/* Each stage: several 3x3 convolutions, then a pool that halves; k numbers the modules. */
static LsTensor features(LsBuild *b, const LsModelRequest *r, LsTensor x)
{
    int k = 0;
    for (int stage = 0; stage < 5; stage++) {
        int convs = stage < 2 ? 2 : r->model->variant == 19 ? 4 : 3;
        int64_t out = r->value[LS_OPT_WIDTH] << (stage < 3 ? stage : 3);
        for (int i = 0; i < convs; i++) {
            x = ls_layer_conv(b, ls_build_name(b, "features.%d", k++), x,
                              (LsConv){.out = out, .kernel = 3, .pad = 1, .bias = true});
            if (r->value[LS_OPT_BN] == LS_BN_ON)
                x = ls_layer_batch_norm(b, ls_build_name(b, "features.%d", k++), x, 1e-5f);
            x = ls_layer_relu(b, ls_build_name(b, "features.%d", k++), x);
        }
        x = ls_layer_max_pool(b, ls_build_name(b, "features.%d", k++), x, (LsPool){2, 2, 0, false});
    }
    return x;
}

/* The classifier takes 7 x 7 positions. Larger maps are averaged down to that size if they are a
 * multiple of it; other maps are used whole. */
void ls_zoo_vgg(LsBuild *b, const LsModelRequest *r)
{
    int64_t hidden = 64 * r->value[LS_OPT_WIDTH];
    b->conv = (LsDraw){.kind = LS_DRAW_FAN_OUT, .zero_bias = true};
    b->linear = (LsDraw){.kind = LS_DRAW_NORMAL, .deviation = 0.01f, .zero_bias = true};
    LsTensor x = features(b, r, ls_zoo_image(b, r));
    if (x.dim[2] > 7 && x.dim[2] % 7 == 0)
        x = ls_layer_average_pool(b, "avgpool", x, (LsPool){x.dim[2] / 7, x.dim[2] / 7, 0, false});
    x = ls_layer_flatten(b, "flatten", x);
    for (int k = 0; k < 6; k += 3) {
        x = ls_layer_linear(b, ls_build_name(b, "classifier.%d", k), x, hidden);
        x = ls_layer_relu(b, ls_build_name(b, "classifier.%d", k + 1), x);
        x = ls_layer_dropout(b, ls_build_name(b, "classifier.%d", k + 2), x);
    }
    ls_build_output(b, "y", ls_layer_linear(b, "classifier.6", x, r->value[LS_OPT_CLASSES]));
}
