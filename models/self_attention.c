/* models/self_attention.c -- the attention of transformers between its projections (Vaswani et al.
 * 2017), in the operators that exporters write. */
#include "models/layers.h"

#include <math.h>

/* One third of the projection as N x heads x T x D, or x D x T if `turned`. */
static LsTensor by_head(LsBuild *b, const char *at, LsTensor x, int64_t heads, bool turned)
{
    LsTensor split = {.rank = 4, .dim = {0, x.dim[1], heads, x.dim[2] / heads}};
    x = ls_layer_reshape(b, ls_build_name(b, "%s.heads", at), x, split);
    return ls_layer_transpose(b, ls_build_name(b, "%s.transpose", at), x,
                              turned ? (int64_t[]){0, 2, 3, 1} : (int64_t[]){0, 2, 1, 3});
}

/* softmax(q k / sqrt D), where the mask lets it. q: N x H x T x D, k: N x H x D x T. */
static LsTensor weights_of(LsBuild *b, const char *at, LsTensor q, LsTensor k, const char *mask)
{
    LsTensor s = q;
    s.dim[3] = k.dim[3];
    s = ls_layer_matmul(b, ls_build_name(b, "%s.qk", at), q, k, s);
    const char *scale = ls_build_scalar(b, (float)(1 / sqrt((double)q.dim[3])));
    s = ls_build_node(b, "Mul", ls_build_name(b, "%s.scale", at), 2,
                      (const char *[]){s.name, scale}, s);
    if (mask != NULL) {
        const char *least = ls_build_scalar(b, -3.402823466e+38f);
        s = ls_build_node(b, "Where", ls_build_name(b, "%s.masked", at), 3,
                          (const char *[]){mask, least, s.name}, s);
    }
    s = ls_layer_softmax(b, ls_build_name(b, "%s.softmax", at), s);
    return ls_layer_dropout(b, ls_build_name(b, "%s.attn_dropout", at), s);
}

LsTensor ls_layer_attention(LsBuild *b, const char *at, LsTensor qkv, int64_t heads,
                            const char *mask)
{
    const char *q_name = ls_build_name(b, "%s.q", at);
    LsTensor x = qkv;
    x.dim[2] = qkv.dim[2] / 3;
    LsTensor q = ls_build_node(b, "Split", q_name, 1, (const char *[]){qkv.name}, x), k = x, v = x;
    k.name = ls_build_name(b, "%s.k", at);
    v.name = ls_build_name(b, "%s.v", at);
    ls_build_extra_output(b, k.name);
    ls_build_extra_output(b, v.name);
    ls_build_int_attr(b, "axis", 2);
    q = by_head(b, q.name, q, heads, false);
    k = by_head(b, k.name, k, heads, true);
    v = by_head(b, v.name, v, heads, false);
    LsTensor y = ls_layer_matmul(b, ls_build_name(b, "%s.mix", at), weights_of(b, at, q, k, mask),
                                 v, v);
    y = ls_layer_transpose(b, ls_build_name(b, "%s.transpose", at), y, (int64_t[]){0, 2, 1, 3});
    return ls_layer_reshape(b, ls_build_name(b, "%s.merge", at), y, x);
}
