/* models/googlenet.c -- GoogLeNet: Szegedy et al. 2014, arXiv:1409.4842, without auxiliary
 * heads, in torchvision's form: batch norm after every convolution, and a 3x3 kernel where the
 * paper has 5x5. Channels are written for a width of 64 and scale with it. */
#include "models/families.h"

typedef struct Inception { const char *at; int out1, mid3, out3, mid5, out5, pool; } Inception;
static const Inception stage3[] = {
    {"inception3a", 64, 96, 128, 16, 32, 32}, {"inception3b", 128, 128, 192, 32, 96, 64},
    {NULL, 0, 0, 0, 0, 0, 0},
};
static const Inception stage4[] = {
    {"inception4a", 192, 96, 208, 16, 48, 64}, {"inception4b", 160, 112, 224, 24, 64, 64},
    {"inception4c", 128, 128, 256, 24, 64, 64}, {"inception4d", 112, 144, 288, 32, 64, 64},
    {"inception4e", 256, 160, 320, 32, 128, 128}, {NULL, 0, 0, 0, 0, 0, 0},
};
static const Inception stage5[] = {
    {"inception5a", 256, 160, 320, 32, 128, 128}, {"inception5b", 384, 192, 384, 48, 128, 128},
    {NULL, 0, 0, 0, 0, 0, 0},
};

static LsTensor basic(LsBuild *b, const char *at, LsTensor x, LsConv c)
{
    x = ls_layer_conv(b, ls_build_name(b, "%s.conv", at), x, c);
    x = ls_layer_batch_norm(b, ls_build_name(b, "%s.bn", at), x, 1e-3f);
    return ls_layer_relu(b, ls_build_name(b, "%s.relu", at), x);
}

static int64_t scaled(int channels, int64_t width) { return (channels * width + 63) / 64; }

/* 1x1 to `mid` channels, then 3x3 to `out`. */
static LsTensor narrow_wide(LsBuild *b, const char *at, LsTensor x, int64_t mid, int64_t out)
{
    x = basic(b, ls_build_name(b, "%s.0", at), x, (LsConv){.out = mid, .kernel = 1});
    return basic(b, ls_build_name(b, "%s.1", at), x, (LsConv){.out = out, .kernel = 3, .pad = 1});
}

static LsTensor inception(LsBuild *b, LsTensor x, const Inception *n, int64_t width)
{
    const char *at[4];
    for (int i = 0; i < 4; i++)
        at[i] = ls_build_name(b, "%s.branch%d", n->at, i + 1);
    LsTensor pooled = ls_layer_max_pool(b, ls_build_name(b, "%s.0", at[3]), x,
                                        (LsPool){3, 1, 1, true});
    LsTensor branch[] = {
        basic(b, at[0], x, (LsConv){.out = scaled(n->out1, width), .kernel = 1}),
        narrow_wide(b, at[1], x, scaled(n->mid3, width), scaled(n->out3, width)),
        narrow_wide(b, at[2], x, scaled(n->mid5, width), scaled(n->out5, width)),
        basic(b, ls_build_name(b, "%s.1", at[3]), pooled,
              (LsConv){.out = scaled(n->pool, width), .kernel = 1}),
    };
    return ls_layer_concat(b, n->at, 4, branch);
}

static LsTensor stage(LsBuild *b, LsTensor x, const Inception *n, int64_t width)
{
    for (; n->at != NULL; n++)
        x = inception(b, x, n, width);
    return x;
}

void ls_zoo_googlenet(LsBuild *b, const LsModelRequest *r)
{
    const LsPool halve = {3, 2, 0, true};
    int64_t w = r->value[LS_OPT_WIDTH];
    b->conv = (LsDraw){.kind = LS_DRAW_NORMAL, .deviation = 0.01f};
    b->linear = (LsDraw){.kind = LS_DRAW_NORMAL, .deviation = 0.01f};
    LsTensor x = basic(b, "conv1", ls_zoo_image(b, r),
                       (LsConv){.out = w, .kernel = 7, .stride = 2, .pad = 3});
    x = ls_layer_max_pool(b, "maxpool1", x, halve);
    x = basic(b, "conv2", x, (LsConv){.out = w, .kernel = 1});
    x = basic(b, "conv3", x, (LsConv){.out = 3 * w, .kernel = 3, .pad = 1});
    x = stage(b, ls_layer_max_pool(b, "maxpool2", x, halve), stage3, w);
    x = stage(b, ls_layer_max_pool(b, "maxpool3", x, halve), stage4, w);
    x = stage(b, ls_layer_max_pool(b, "maxpool4", x, (LsPool){2, 2, 0, true}), stage5, w);
    x = ls_layer_flatten(b, "flatten", ls_layer_global_average_pool(b, "avgpool", x));
    x = ls_layer_dropout(b, "dropout", x);
    ls_build_output(b, "y", ls_layer_linear(b, "fc", x, r->value[LS_OPT_CLASSES]));
}
