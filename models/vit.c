/* models/vit.c -- the vision transformer (Dosovitskiy et al. 2021): patches as tokens by a
 * convolution, a class token in front of them, learned positions, blocks of self-attention and a
 * GELU layer, each behind a layer norm, and scores of the class token. Names, shapes and the number
 * of weights are those of torchvision's vit_b_16, 86,567,656 in the preset. */
#include "models/families.h"

#include <inttypes.h>
#include <math.h>

/* x times the transpose of at.weight plus at.bias, over the last axis: Glorot and Bengio 2010. */
static LsTensor linear(LsBuild *b, const char *at, LsTensor x, int64_t out, const char *joint)
{
    const char *weight = ls_build_name(b, "%s%sweight", at, joint),
               *bias = ls_build_name(b, "%s%sbias", at, joint);
    const int64_t in = x.dim[2];
    ls_build_weight(b, (LsWeight){weight, 2, {out, in}, LS_FILL_UNIFORM,
                                  (float)sqrt(6 / (double)(in + out)), false});
    ls_build_weight(b, (LsWeight){bias, 1, {out}, LS_FILL_ZERO, 0, false});
    LsTensor w = {weight, 2, {out, in}}, y = {.rank = 3, .dim = {x.dim[0], x.dim[1], out}};
    w = ls_layer_transpose(b, ls_build_name(b, "%s%stranspose", at, joint), w, (int64_t[]){1, 0});
    y = ls_layer_matmul(b, ls_build_name(b, "%s%smatmul", at, joint), x, w, y);
    return ls_layer_add(b, ls_build_name(b, "%s%sadd", at, joint), y,
                        (LsTensor){bias, 1, {out}});
}

static LsTensor block(LsBuild *b, const char *at, LsTensor x, int64_t heads)
{
    const char *attn = ls_build_name(b, "%s.self_attention", at);
    const int64_t width = x.dim[2];
    LsTensor y = ls_layer_layer_norm(b, ls_build_name(b, "%s.ln_1", at), x);
    y = linear(b, attn, y, 3 * width, ".in_proj_");
    y = ls_layer_attention(b, attn, y, heads, NULL);
    y = linear(b, ls_build_name(b, "%s.out_proj", attn), y, width, ".");
    y = ls_layer_dropout(b, ls_build_name(b, "%s.dropout", at), y);
    x = ls_layer_add(b, ls_build_name(b, "%s.add_1", at), x, y);
    y = ls_layer_layer_norm(b, ls_build_name(b, "%s.ln_2", at), x);
    y = linear(b, ls_build_name(b, "%s.mlp.0", at), y, 4 * width, ".");
    y = ls_layer_gelu(b, ls_build_name(b, "%s.mlp.1", at), y);
    y = ls_layer_dropout(b, ls_build_name(b, "%s.mlp.2", at), y);
    y = linear(b, ls_build_name(b, "%s.mlp.3", at), y, width, ".");
    y = ls_layer_dropout(b, ls_build_name(b, "%s.mlp.4", at), y);
    return ls_layer_add(b, ls_build_name(b, "%s.add_2", at), x, y);
}

/* The class token once for each sample of x: N x 1 x width. */
static LsTensor class_token(LsBuild *b, LsTensor x, int64_t width)
{
    LsTensor y = {"class_token", 3, {1, 1, width}};
    ls_build_weight(b, (LsWeight){y.name, 3, {1, 1, width}, LS_FILL_ZERO, 0, false});
    LsTensor n = ls_build_node(b, "Shape", "class_token.shape", 1, (const char *[]){x.name},
                               (LsTensor){.rank = 1, .dim = {1}});
    ls_build_int_attr(b, "end", 1);
    const char *in[] = {n.name, ls_build_ints(b, 2, (int64_t[]){1, width})};
    n = ls_build_node(b, "Concat", "class_token.sizes", 2, in, (LsTensor){.rank = 1, .dim = {3}});
    ls_build_int_attr(b, "axis", 0);
    y.dim[0] = x.dim[0];
    return ls_build_node(b, "Expand", "class_token.expand", 2,
                         (const char *[]){y.name, n.name}, y);
}

/* Patches as tokens: N x 1 + patches x width. */
static LsTensor tokens(LsBuild *b, LsTensor x, int64_t width, int64_t patch)
{
    LsTensor y = ls_layer_conv(b, "conv_proj", x,
                               (LsConv){.out = width, .kernel = patch, .stride = patch,
                                        .bias = true});
    const LsTensor flat = {.rank = 3, .dim = {0, width, y.dim[2] * y.dim[3]}};
    y = ls_layer_reshape(b, "patches", y, flat);
    y = ls_layer_transpose(b, "patches.transpose", y, (int64_t[]){0, 2, 1});
    y = ls_layer_concat(b, "tokens", 2, (LsTensor[]){class_token(b, x, width), y});
    LsTensor place = {"encoder.pos_embedding", 3, {1, y.dim[1], width}};
    ls_build_weight(b, (LsWeight){place.name, 3, {1, y.dim[1], width}, LS_FILL_NORMAL, 0.02f,
                                  false});
    return ls_layer_add(b, "encoder.add", y, place);
}

void ls_zoo_vit(LsBuild *b, const LsModelRequest *r)
{
    const int64_t width = r->value[LS_OPT_WIDTH], heads = r->value[LS_OPT_HEADS];
    if (width % heads != 0) {
        ls_build_fail(b, "--width=%" PRId64 " is not a multiple of --heads=%" PRId64, width, heads);
        return;
    }
    b->conv = (LsDraw){.kind = LS_DRAW_DEFAULT, .zero_bias = true};
    b->linear = (LsDraw){.kind = LS_DRAW_DEFAULT, .zero_bias = true};
    LsTensor x = tokens(b, ls_zoo_image(b, r), width, r->value[LS_OPT_PATCH]);
    x = ls_layer_dropout(b, "encoder.dropout", x);
    for (int64_t i = 0; i < r->value[LS_OPT_DEPTH]; i++)
        x = block(b, ls_build_name(b, "encoder.layers.encoder_layer_%" PRId64, i), x, heads);
    x = ls_layer_layer_norm(b, "encoder.ln", x);
    const char *in[] = {x.name, ls_build_ints(b, 1, (int64_t[]){0}),
                        ls_build_ints(b, 1, (int64_t[]){1}), ls_build_ints(b, 1, (int64_t[]){1})};
    LsTensor first = {.rank = 3, .dim = {x.dim[0], 1, width}};
    first = ls_layer_flatten(b, "class", ls_build_node(b, "Slice", "class.slice", 4, in, first));
    ls_build_output(b, "y", ls_layer_linear(b, "heads.head", first, r->value[LS_OPT_CLASSES]));
}
