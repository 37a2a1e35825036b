/* models/gpt.c -- the decoder-only transformer of GPT-2 (Radford et al. 2019): token and position
 * embeddings, blocks of masked self-attention and a GELU layer, each behind a layer norm, and a
 * head that shares the token embedding or has its own. The presets give 124,439,808 parameters.
 * Names, and weights of linear layers as [in, out], are those of the published model. Input x:
 * int64 tokens N x T; output y: scores N x T x vocabulary. */
#include "models/families.h"

#include <inttypes.h>
#include <math.h>

typedef struct Net { int64_t width, heads, context, vocab; int depth; } Net;

/* Normal with standard deviation 0.02; projections onto the residual path are scaled down by its 2
 * * depth terms. */
static const float deviation = 0.02f;

static const char *normal(LsBuild *b, const char *name, int64_t rows, int64_t columns, float scale)
{
    ls_build_weight(b, (LsWeight){name, 2, {rows, columns}, LS_FILL_NORMAL, scale, false});
    return name;
}

/* x times at.weight plus at.bias, over the last axis. */
static LsTensor linear(LsBuild *b, const char *at, LsTensor x, int64_t out, float scale)
{
    LsTensor w = {normal(b, ls_build_name(b, "%s.weight", at), x.dim[2], out, scale), 2, {0}};
    LsTensor y = {.rank = 3, .dim = {x.dim[0], x.dim[1], out}};
    LsTensor bias = {ls_build_name(b, "%s.bias", at), 1, {out}};
    ls_build_weight(b, (LsWeight){bias.name, 1, {out}, LS_FILL_ZERO, 0, false});
    y = ls_layer_matmul(b, ls_build_name(b, "%s.matmul", at), x, w, y);
    return ls_layer_add(b, at, y, bias);
}

static LsTensor attention(LsBuild *b, const char *at, LsTensor x, Net net, float residual)
{
    LsTensor y = linear(b, ls_build_name(b, "%s.c_attn", at), x, 3 * net.width, deviation);
    y = ls_layer_attention(b, at, y, net.heads, "transformer.mask");
    y = linear(b, ls_build_name(b, "%s.c_proj", at), y, net.width, residual);
    return ls_layer_dropout(b, ls_build_name(b, "%s.resid_dropout", at), y);
}

static LsTensor block(LsBuild *b, const char *at, LsTensor x, Net net)
{
    float residual = deviation / sqrtf(2.0f * (float)net.depth);
    LsTensor y = ls_layer_layer_norm(b, ls_build_name(b, "%s.ln_1", at), x);
    y = attention(b, ls_build_name(b, "%s.attn", at), y, net, residual);
    x = ls_layer_add(b, ls_build_name(b, "%s.add_1", at), x, y);
    y = ls_layer_layer_norm(b, ls_build_name(b, "%s.ln_2", at), x);
    y = linear(b, ls_build_name(b, "%s.mlp.c_fc", at), y, 4 * net.width, deviation);
    y = ls_layer_gelu(b, ls_build_name(b, "%s.mlp.act", at), y);
    y = linear(b, ls_build_name(b, "%s.mlp.c_proj", at), y, net.width, residual);
    y = ls_layer_dropout(b, ls_build_name(b, "%s.mlp.dropout", at), y);
    return ls_layer_add(b, ls_build_name(b, "%s.add_2", at), x, y);
}

/* Rows of a new embedding table, by token and by position. */
static LsTensor embed(LsBuild *b, Net net)
{
    LsTensor x = ls_build_input(b, "x", ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
                                (LsTensor){.rank = 2, .dim = {0, net.context}});
    LsTensor rows = {.rank = 3, .dim = {x.dim[0], net.context, net.width}};
    LsTensor places = {.rank = 2, .dim = {net.context, net.width}};
    const char *wte = normal(b, "transformer.wte.weight", net.vocab, net.width, deviation);
    const char *wpe = normal(b, "transformer.wpe.weight", net.context, net.width, deviation);
    ls_build_weight(b, (LsWeight){"transformer.positions", 1, {net.context}, LS_FILL_COUNT, 0,
                                  false});
    ls_build_weight(b, (LsWeight){"transformer.mask", 4, {1, 1, net.context, net.context},
                                  LS_FILL_CAUSAL, 0, false});
    LsTensor token = ls_build_node(b, "Gather", "transformer.wte", 2,
                                   (const char *[]){wte, x.name}, rows);
    LsTensor place = ls_build_node(b, "Gather", "transformer.wpe", 2,
                                   (const char *[]){wpe, "transformer.positions"}, places);
    return ls_layer_add(b, "transformer.embedding", token, place);
}

void ls_zoo_gpt(LsBuild *b, const LsModelRequest *r)
{
    Net net = {r->value[LS_OPT_WIDTH], r->value[LS_OPT_HEADS], r->value[LS_OPT_CONTEXT],
               r->value[LS_OPT_VOCAB], (int)r->value[LS_OPT_DEPTH]};
    if (net.width % net.heads != 0) {
        ls_build_fail(b, "--width=%" PRId64 " is not a multiple of --heads=%" PRId64, net.width,
                      net.heads);
        return;
    }
    LsTensor x = ls_layer_dropout(b, "transformer.drop", embed(b, net));
    for (int i = 0; i < net.depth; i++)
        x = block(b, ls_build_name(b, "transformer.h.%d", i), x, net);
    x = ls_layer_layer_norm(b, "transformer.ln_f", x);

    bool tied = r->value[LS_OPT_HEAD] == LS_HEAD_TIED;
    LsTensor w = {tied ? "transformer.wte.weight" : "lm_head.weight", 2, {net.vocab, net.width}};
    if (!tied)
        normal(b, w.name, net.vocab, net.width, deviation);
    w = ls_layer_transpose(b, "lm_head.transpose", w, (int64_t[]){1, 0});
    LsTensor y = {.rank = 3, .dim = {x.dim[0], net.context, net.vocab}};
    ls_build_output(b, "y", ls_layer_matmul(b, "lm_head", x, w, y));
}
