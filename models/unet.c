/* models/unet.c -- U-Net: Ronneberger, Fischer, Brox 2015, arXiv:1505.04597, with batch norm, as
 * the usual PyTorch version has it (github.com/milesial/Pytorch-UNet, whose names it uses).
 * Convolutions keep the size and an odd size is padded on the way up; --pad=valid is the paper's
 * form, where the output is smaller than the image and the skipped maps are cropped. */
#include "models/families.h"

enum { MOST_LEVELS = 8 };

typedef struct Net { int64_t pad; bool bilinear, valid, bias; } Net;

/* Two 3x3 convolutions to `mid` and `out` channels: "at.double_conv.0" to ".5". */
static LsTensor twice(LsBuild *b, const char *at, LsTensor x, Net net, int64_t mid, int64_t out)
{
    for (int k = 0; k < 6; k += 3) {
        LsConv c = {.out = k == 0 ? mid : out, .kernel = 3, .pad = net.pad,
                    .bias = net.bias};
        x = ls_layer_conv(b, ls_build_name(b, "%s.double_conv.%d", at, k), x, c);
        x = ls_layer_batch_norm(b, ls_build_name(b, "%s.double_conv.%d", at, k + 1), x, 1e-5f);
        x = ls_layer_relu(b, ls_build_name(b, "%s.double_conv.%d", at, k + 2), x);
    }
    return x;
}

/* Upsamples x by two, fits it to `skip` and convolves both. */
static LsTensor up(LsBuild *b, const char *at, LsTensor x, LsTensor skip, Net net, int64_t out)
{
    const char *name = ls_build_name(b, "%s.up", at);
    int64_t mid = net.bilinear ? (skip.dim[1] + x.dim[1]) / 2 : out;
    if (net.bilinear)
        x = ls_layer_resize(b, name, x, 2 * x.dim[2], 2 * x.dim[3]);
    else
        x = ls_layer_deconv(b, name, x,
                            (LsConv){.out = x.dim[1] / 2, .kernel = 2, .stride = 2, .bias = true});
    if (net.valid)
        skip = ls_layer_crop_to(b, ls_build_name(b, "%s.crop", at), skip, x);
    else
        x = ls_layer_pad_to(b, ls_build_name(b, "%s.pad", at), x, skip);
    x = ls_layer_concat(b, ls_build_name(b, "%s.concat", at), 2, (LsTensor[]){skip, x});
    return twice(b, ls_build_name(b, "%s.conv", at), x, net, mid, out);
}

void ls_zoo_unet(LsBuild *b, const LsModelRequest *r)
{
    int64_t width = r->value[LS_OPT_WIDTH];
    int depth = (int)r->value[LS_OPT_DEPTH];
    bool valid = r->value[LS_OPT_PAD] == LS_PAD_VALID;
    Net net = {valid ? 0 : 1, r->value[LS_OPT_UP] == LS_UP_BILINEAR, valid,
               r->value[LS_OPT_BIAS] == LS_BIAS_ON};
    int64_t shrink = net.bilinear ? 2 : 1;  /* without a deconvolution nothing halves the channels
                                             * on the way up */
    LsTensor skip[MOST_LEVELS];
    if (depth > MOST_LEVELS) {
        ls_build_fail(b, "--depth=%d: a U-Net has at most %d levels", depth, MOST_LEVELS);
        return;
    }
    LsTensor x = twice(b, "inc", ls_zoo_image(b, r), net, width, width);
    for (int i = 0; i < depth; i++) {
        const char *at = ls_build_name(b, "down%d.maxpool_conv", i + 1);
        int64_t out = (width << (i + 1)) / (i == depth - 1 ? shrink : 1);
        skip[i] = x;
        x = ls_layer_max_pool(b, ls_build_name(b, "%s.0", at), x, (LsPool){2, 2, 0, false});
        x = twice(b, ls_build_name(b, "%s.1", at), x, net, out, out);
        x = i == depth - 1 ? ls_layer_dropout(b, "dropout", x) : x;
    }
    for (int i = depth; i-- > 0;)
        x = up(b, ls_build_name(b, "up%d", depth - i), x, skip[i], net,
               (width << i) / (i == 0 ? 1 : shrink));
    ls_build_output(b, "y", ls_layer_conv(b, "outc.conv", x,
                    (LsConv){.out = r->value[LS_OPT_CLASSES], .kernel = 1, .bias = true}));
}
