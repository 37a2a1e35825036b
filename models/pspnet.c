/* models/pspnet.c -- PSPNet on a dilated ResNet: Zhao, Shi, Qi, Wang, Jia 2016,
 * arXiv:1612.01105. Scene parsing: each pixel of the output holds the scores of all classes.
 * The auxiliary head of the paper's training is left out. Names follow the authors' code
 * (github.com/hszhao/semseg). */
#include "models/families.h"

#include <inttypes.h>

/* at.K convolution without bias, at.K+1 batch norm, at.K+2 ReLU, as in an nn.Sequential. */
static LsTensor conv_bn_relu(LsBuild *b, const char *at, int k, LsTensor x, LsConv c)
{
    x = ls_layer_conv(b, ls_build_name(b, "%s.%d", at, k), x, c);
    x = ls_layer_batch_norm(b, ls_build_name(b, "%s.%d", at, k + 1), x, 1e-5f);
    return ls_layer_relu(b, ls_build_name(b, "%s.%d", at, k + 2), x);
}

/* x concatenated with its averages over bins x bins regions, each projected to a quarter of the
 * channels. */
static LsTensor pyramid(LsBuild *b, LsTensor x)
{
    static const int64_t bins[] = {1, 2, 3, 6};
    LsTensor level[5] = {x};
    for (int i = 0; i < 4; i++) {
        const char *at = ls_build_name(b, "ppm.features.%d", i);
        int64_t k = x.dim[2] / bins[i];
        LsTensor y = ls_layer_average_pool(b, ls_build_name(b, "%s.0", at), x,
                                           (LsPool){.kernel = k, .stride = k});
        y = conv_bn_relu(b, at, 1, y, (LsConv){.out = x.dim[1] / 4, .kernel = 1});
        level[i + 1] = ls_layer_resize(b, ls_build_name(b, "%s.resize", at), y, x.dim[2], x.dim[3]);
    }
    return ls_layer_concat(b, "ppm.concat", 5, level);
}

void ls_zoo_pspnet(LsBuild *b, const LsModelRequest *r)
{
    LsTensor image = ls_zoo_image(b, r);
    LsTensor x = ls_zoo_resnet_body(b, "backbone.", image, (LsResnetBody){
        r->model->variant, r->value[LS_OPT_WIDTH], LS_STEM_IMAGENET, true});
    if (x.dim[2] % 6 != 0) {    /* the regions of the pyramid must be equal */
        int64_t to = (x.dim[2] + 5) / 6 * 48;
        ls_build_fail(b, "--size=%" PRId64 " gives a feature map of %" PRId64 ", which 6 does not "
                      "divide; the next sizes that fit are %" PRId64 " to %" PRId64,
                      image.dim[2], x.dim[2], to - 7, to);
        return;
    }
    b->conv = (LsDraw){.kind = LS_DRAW_DEFAULT};
    x = conv_bn_relu(b, "cls", 0, pyramid(b, x),
                     (LsConv){.out = 8 * r->value[LS_OPT_WIDTH], .kernel = 3, .pad = 1});
    x = ls_layer_dropout(b, "cls.3", x);
    x = ls_layer_conv(b, "cls.4", x,
                      (LsConv){.out = r->value[LS_OPT_CLASSES], .kernel = 1, .bias = true});
    ls_build_output(b, "y", ls_layer_resize(b, "upsample", x, image.dim[2], image.dim[3]));
}
