/* compiler/ops/fused_attention_onnx.c -- Attention and MultiHeadAttention of com.microsoft:
 * onnxruntime's optimizers put them in the place of the products and the softmax of
 * transformers. */
#include "compiler/onnx/onnx_found_weights.h"
#include "compiler/ops/attention_shape.h"
#include "compiler/ops/fused_onnx.h"
#include "compiler/ops/index.h"

#include <math.h>

typedef struct Heads {          /* of one node */
    LsValueId part[3];          /* q, k, v */
    LsAttentionAttr at;
    int64_t batch, rows, cols;  /* cols: with the cache */
    int mask, bias;             /* operands: of integers, 0 hides; real, added to the scores */
} Heads;

static const unsigned by_token[] = {LS_Q_BY_TOKEN, LS_K_BY_TOKEN, LS_V_BY_TOKEN};

/* ---- masks ---- */
/* Columns from..to - 1 of each sample, as bools [N,1,1,S]. from: none, or [N,1,1,1]. */
static LsValueId span(LsOnnxNode *n, const Heads *h, LsValueId from, LsValueId to)
{
    LsValueId col = ls_index_count(n, h->cols, 1, 3, 4),
              sees = ls_append2(n->cx, n->g, LS_OP_LESS, col, to, NULL);
    if (!ls_is(from))
        return sees;
    return ls_append2(n->cx, n->g, LS_OP_AND, sees,
                      ls_append2(n->cx, n->g, LS_OP_GREATER_EQUAL, col, from, NULL), NULL);
}

/* What the mask of integers shows, as bools that broadcast to the scores; none after an error.
 * Forms: [N] lengths; [2N] ends, then starts; [N,S] and [N,T,S] ones and zeros. */
static LsValueId shown(LsOnnxNode *n, const Heads *h)
{
    LsValueId m = ls_index_ints(n, h->mask), from = {0};
    if (!ls_is(m))
        return m;
    const LsShape s = *ls_shape(n->g, m), one = {4, {h->batch, 1, 1, 1}};
    bool pairs = s.rank == 1 && s.dim[0] == 2 * h->batch;
    if (s.rank == 1 && (pairs || s.dim[0] == h->batch) && ls_index_affords(n, h->cols)) {
        if (pairs)
            from = ls_reshape(n->cx, n->g, ls_slice_axis(n->cx, n->g, m, 0, h->batch, 2 * h->batch),
                              &one);
        return span(n, h, from,
                    ls_reshape(n->cx, n->g, ls_slice_axis(n->cx, n->g, m, 0, 0, h->batch), &one));
    }
    LsShape to = {4, {h->batch, 1, 1, h->cols}};
    if (s.rank == 3)
        to.dim[2] = h->rows;
    bool fits = (s.rank == 2 || (s.rank == 3 && s.dim[1] == h->rows)) && s.dim[0] == h->batch
        && s.dim[s.rank - 1] == h->cols;
    if (!fits) {
        ls_onnx_error(n, LS_E_SHAPE, "give [N], [2N], [N,S] or [N,T,S]",
                      "the mask is %s, for %" PRId64 " samples and %" PRId64 " columns",
                      ls_dims(n->g, m), h->batch, h->cols);
        return (LsValueId){0};
    }
    return ls_append2(n->cx, n->g, LS_OP_GREATER, ls_reshape(n->cx, n->g, m, &to),
                      ls_index_const(n, 0), NULL);
}

/* The summand of the scores: hidden columns get mask_filter_value, which need not suppress them
 * entirely. None: nothing is added. False after an error. */
static bool summand(LsOnnxNode *n, const Heads *h, LsValueId *sum)
{
    LsGraph *g = n->g;
    *sum = ls_onnx_in(n, h->bias);
    if (ls_is(*sum) && ls_shape(g, *sum)->rank != 4)
        return ls_onnx_error(n, LS_E_SHAPE, "it broadcasts to [N,H,T,S]", "attention_bias is %s",
                             ls_dims(g, *sum));
    if (!ls_is(ls_onnx_in(n, h->mask)))
        return true;
    LsValueId sees = shown(n, h),
              filter = ls_const_real(n->cx, g, ls_onnx_float(n, "mask_filter_value", -10000));
    if (!ls_is(sees))
        return false;
    LsValueId m = ls_append3(n->cx, g, LS_OP_WHERE, sees, ls_const_real(n->cx, g, 0), filter, NULL);
    *sum = ls_is(*sum) && ls_is(m) ? ls_append2(n->cx, g, LS_OP_ADD, *sum, m, NULL) : m;
    return ls_is(*sum);
}

/* ---- caches ---- */
/* Part k (1 or 2) as [N,H,S,D], after the cache, if any. */
static void join_past(LsOnnxNode *n, Heads *h, int k, LsValueId past)
{
    LsValueId v = h->part[k];
    if (h->at.by_token & by_token[k])
        v = ls_transpose(n->cx, n->g, v, (int[]){0, 2, 1, 3});
    h->at.by_token &= ~by_token[k];
    if (ls_is(past) && ls_is(v) && ls_count(ls_shape(n->g, past)) > 0)
        v = ls_append2(n->cx, n->g, LS_OP_CONCAT, past, v, &(LsAttr){.axis = {2}});
    h->part[k] = v;
}

/* ---- the attention itself ---- */
static bool attend(LsOnnxNode *n, Heads *h, LsValueId out[])
{
    LsGraph *g = n->g;
    const LsShape *q = ls_shape(g, h->part[0]), *k = ls_shape(g, h->part[1]);
    h->batch = q->dim[0];
    h->rows = q->dim[ls_token_axis(&h->at, LS_Q_BY_TOKEN)];
    h->cols = k->dim[ls_token_axis(&h->at, LS_K_BY_TOKEN)];
    h->at.scale = ls_onnx_float(n, "scale", 0);
    if (h->at.scale == 0)
        h->at.scale = 1 / sqrt((double)q->dim[3]);
    h->at.causal = ls_onnx_int(n, "unidirectional", 0) != 0;
    if (h->at.causal && h->cols != h->at.past + h->rows)
        return ls_onnx_error(
            n, LS_E_UNSUPPORTED, "leave out unidirectional where keys come from another sequence",
            "unidirectional needs as many new keys as queries: there are %" PRId64 " and %" PRId64,
            h->cols - h->at.past, h->rows);
    h->at.keep = true;
    h->at.by_token |= LS_Y_BY_TOKEN;
    LsValueId in[4] = {h->part[0], h->part[1], h->part[2]};
    if (!summand(n, h, &in[3]))
        return false;
    LsValueId y = ls_attention(n->cx, g, in, &h->at);
    if (!ls_is(y))
        return false;
    const LsShape s = *ls_shape(g, y);
    out[0] = ls_reshape(n->cx, g, y, &(LsShape){3, {s.dim[0], s.dim[1], s.dim[2] * s.dim[3]}});
    return ls_is(out[0]);
}

static LsValueId split_heads(LsOnnxNode *n, LsValueId v, int64_t heads)
{
    if (!ls_is(v))
        return v;
    const LsShape s = *ls_shape(n->g, v);
    if (s.rank != 3 || heads < 1 || s.dim[2] % heads != 0) {
        ls_onnx_error(n, LS_E_SHAPE, NULL, "%s does not divide into %" PRId64 " heads",
                      ls_dims(n->g, v), heads);
        return (LsValueId){0};
    }
    return ls_reshape(n->cx, n->g, v, &(LsShape){4, {s.dim[0], s.dim[1], heads, s.dim[2] / heads}});
}

/* ---- Attention: one product makes q, k and v ---- */
static LsValueId project(LsOnnxNode *n)
{
    LsGraph *g = n->g;
    const LsShape x = *ls_shape(g, n->in[0]), w = *ls_shape(g, n->in[1]);
    LsValueId bias = ls_onnx_in(n, 2);
    if (x.rank != 3 || w.rank != 2 || x.dim[2] != w.dim[0]
        || (ls_is(bias)
            && (ls_shape(g, bias)->rank != 1 || ls_shape(g, bias)->dim[0] != w.dim[1]))) {
        ls_onnx_error(n, LS_E_SHAPE, "give [N,T,C], [C,q+k+v] and [q+k+v]",
                      "the input is %s, the weights are %s", ls_dims(g, n->in[0]),
                      ls_dims(g, n->in[1]));
        return (LsValueId){0};
    }
    LsValueId in[3] = {
        ls_reshape(n->cx, g, n->in[0], &(LsShape){2, {x.dim[0] * x.dim[1], x.dim[2]}}), n->in[1],
        bias};
    LsValueId y =
        ls_append(n->cx, g, LS_OP_MATMUL, ls_is(bias) ? 3 : 2, in, &(LsAttr){.gemm = {.alpha = 1}});
    return ls_is(y) ? ls_reshape(n->cx, g, y, &(LsShape){3, {x.dim[0], x.dim[1], w.dim[1]}}) : y;
}

static bool project_parts(LsOnnxNode *n, Heads *h)
{
    int64_t size[3], from = 0, all = ls_shape(n->g, n->in[1])->dim[1];
    int count = ls_onnx_ints(n, "qkv_hidden_sizes", 3, size);
    for (int k = 0; k < 3 && count != 3; k++)
        size[k] = all / 3;
    LsValueId y = project(n);
    if (!ls_is(y))
        return false;
    if (size[0] < 1 || size[1] < 1 || size[2] < 1 || size[0] > all || size[1] > all
        || size[0] + size[1] + size[2] != all)
        return ls_onnx_error(n, LS_E_SHAPE, NULL,
                             "the weights have %" PRId64 " columns, which q, k and v do not share",
                             all);
    for (int k = 0; k < 3; k++) {
        h->part[k] = split_heads(n, ls_slice_axis(n->cx, n->g, y, 2, from, from + size[k]),
                                 ls_onnx_int(n, "num_heads", 0));
        from += size[k];
        if (!ls_is(h->part[k]))
            return false;
    }
    return true;
}

/* `past` and `present`: [2,N,H,P,D], keys and values. */
static bool use_past(LsOnnxNode *n, Heads *h, LsValueId out[])
{
    LsValueId past = ls_onnx_in(n, 4), half[3] = {{0}};
    if (!ls_is(past) && !ls_onnx_gives(n, 1))
        return true;
    if (ls_is(past)) {
        const LsShape s = *ls_shape(n->g, past);
        if (s.rank != 5 || s.dim[0] != 2)
            return ls_onnx_error(n, LS_E_SHAPE, "give [2,N,H,P,D]", "past is %s",
                                 ls_dims(n->g, past));
        h->at.past = s.dim[3];
        for (int k = 1; k < 3; k++)
            half[k] = ls_reshape(n->cx, n->g, ls_slice_axis(n->cx, n->g, past, 0, k - 1, k),
                                 &(LsShape){4, {s.dim[1], s.dim[2], s.dim[3], s.dim[4]}});
    }
    LsValueId part[2];
    for (int k = 1; k < 3; k++) {
        join_past(n, h, k, half[k]);
        if (!ls_is(h->part[k]))
            return false;
        const LsShape s = *ls_shape(n->g, h->part[k]);
        part[k - 1] = ls_reshape(n->cx, n->g, h->part[k],
                                 &(LsShape){5, {1, s.dim[0], s.dim[1], s.dim[2], s.dim[3]}});
    }
    if (ls_onnx_gives(n, 1))
        out[1] = ls_append2(n->cx, n->g, LS_OP_CONCAT, part[0], part[1], &(LsAttr){.axis = {0}});
    return !ls_onnx_gives(n, 1) || ls_is(out[1]);
}

static bool ms_attention_build(LsOnnxNode *n, LsValueId out[])
{
    Heads h = {
        .at = {.by_token = LS_Q_BY_TOKEN | LS_K_BY_TOKEN | LS_V_BY_TOKEN}, .mask = 3, .bias = 5};
    if (!ls_onnx_takes(n, 2, 7) || !ls_onnx_takes_reals(n, 0x37)
        || !ls_onnx_lacks(n, 6, "past_sequence_length"))
        return false;
    if (ls_onnx_int(n, "do_rotary", 0) != 0 || ls_onnx_int(n, "past_present_share_buffer", 0) != 0)
        return ls_onnx_error(n, LS_E_UNSUPPORTED, "optimize the model without this fusion",
                             "do_rotary and shared buffers are not read");
    if (ls_shape(n->g, n->in[1])->rank != 2)
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "the weights are %s: two axes are needed",
                             ls_dims(n->g, n->in[1]));
    ls_onnx_weight(n, 1);
    ls_onnx_weight(n, 2);
    return project_parts(n, &h) && use_past(n, &h, out) && attend(n, &h, out);
}
const LsOnnxOp ls_onnx_ms_attention = {LS_MICROSOFT "Attention", 1, ms_attention_build};

/* ---- MultiHeadAttention: q, k and v are operands ---- */
/* One of the matrices that lie beside each other in operand k, [N,T,H,parts,D], as [N,T,H*D]. */
static LsValueId unpacked(LsOnnxNode *n, int k, int part)
{
    const LsShape s = *ls_shape(n->g, n->in[k]);
    LsValueId v = ls_slice_axis(n->cx, n->g, n->in[k], 3, part, part + 1);
    return ls_is(v) ? ls_reshape(n->cx, n->g, v,
                                 &(LsShape){3, {s.dim[0], s.dim[1], s.dim[2] * s.dim[4]}})
                    : v;
}

/* Operand k holds so many matrices, and the ones behind it are absent. */
static bool is_packed(LsOnnxNode *n, int k, int parts)
{
    const LsShape *s = ls_is(ls_onnx_in(n, k)) ? ls_shape(n->g, n->in[k]) : NULL;
    return s != NULL && s->rank == 5 && s->dim[3] == parts
           && s->dim[2] == ls_onnx_int(n, "num_heads", 0) && !ls_is(ls_onnx_in(n, 2))
           && (k == 1 || !ls_is(ls_onnx_in(n, 1)));
}

/* q, k and v, from one operand to three. */
static bool three_operands(LsOnnxNode *n, LsValueId v[3])
{
    const int first = is_packed(n, 0, 3) ? 0 : is_packed(n, 1, 2) ? 1 : 3;
    for (int k = 0; k < 3; k++) {
        v[k] = k < first ? ls_onnx_in(n, k) : unpacked(n, first, k - first);
        if (!ls_is(v[k]))
            return ls_onnx_error(n, LS_E_UNSUPPORTED,
                                 "give q, k and v as three operands, [N,T,H*D], or as [N,T,H,3,D], "
                                 "or k and v as [N,S,H,2,D]",
                                 "operand %d is missing, and operand 0 is %s", k,
                                 ls_dims(n->g, n->in[0]));
    }
    return true;
}

/* Part k plus its share of the bias, from element `from` on, with four axes. */
static bool part_of(LsOnnxNode *n, Heads *h, int k, LsValueId v, int64_t *from)
{
    LsGraph *g = n->g;
    LsValueId bias = ls_onnx_in(n, 3);
    const LsShape s = *ls_shape(g, v);
    bool ready = k > 0 && s.rank == 4;          /* [N,H,S,D], of another node */
    int64_t width = ready         ? s.dim[1] * s.dim[3]
                    : s.rank == 3 ? s.dim[2]
                                  : 0,
            all = ls_is(bias) ? ls_count(ls_shape(g, bias)) : 0;
    if (width == 0)
        return ls_onnx_error(n, LS_E_UNSUPPORTED, "give q, k and v as three operands, [N,T,H*D]",
                             "operand %d is %s", k, ls_dims(g, v));
    if (ls_is(bias)
        && (ls_shape(g, bias)->rank != 1 || *from + width > all
            || (k == 2 && *from + width != all)))
        return ls_onnx_error(n, LS_E_SHAPE, NULL, "the bias is %s, which does not fit q, k and v",
                             ls_dims(g, bias));
    if (ls_is(bias) && !ready)
        v = ls_append2(n->cx, g, LS_OP_ADD, v,
                       ls_slice_axis(n->cx, g, bias, 0, *from, *from + width), NULL);
    *from += width;
    h->at.by_token |= ready ? 0 : by_token[k];
    h->part[k] = ready ? v : split_heads(n, v, ls_onnx_int(n, "num_heads", 0));
    return ls_is(h->part[k]);
}

static bool ms_multi_head_build(LsOnnxNode *n, LsValueId out[])
{
    Heads h = {.mask = 4, .bias = 5};
    LsValueId own[3];
    int64_t from = 0;
    if (!ls_onnx_takes(n, 1, 10) || !ls_onnx_takes_reals(n, 0xef)
        || !ls_onnx_lacks(n, 8, "past_sequence_length")
        || !ls_onnx_lacks(n, 9, "cache_indirection"))
        return false;
    if (ls_onnx_gives(n, 3))
        return ls_onnx_error(n, LS_E_UNSUPPORTED, "leave the result out",
                             "the result qk is not made");
    if (ls_is(ls_onnx_in(n, 6)) != ls_is(ls_onnx_in(n, 7)))
        return ls_onnx_error(n, LS_E_NAME, "give both or neither",
                             "only one of past_key and past_value is given");
    ls_onnx_weight(n, 3);
    if (!three_operands(n, own))
        return false;
    for (int k = 0; k < 3; k++)
        if (!part_of(n, &h, k, own[k], &from))
            return false;
    for (int k = 1; k < 3; k++) {
        LsValueId past = ls_onnx_in(n, 5 + k);
        if (ls_is(past) && ls_shape(n->g, past)->rank != 4)
            return ls_onnx_error(n, LS_E_SHAPE, "give [N,H,P,D]", "operand %d is %s", 5 + k,
                                 ls_dims(n->g, past));
        if (ls_is(past) || ls_onnx_gives(n, k))
            join_past(n, &h, k, past);
        if (!ls_is(h.part[k]))
            return false;
        out[k] = ls_onnx_gives(n, k) ? h.part[k] : (LsValueId){0};
    }
    h.at.past = ls_is(ls_onnx_in(n, 6)) ? ls_shape(n->g, n->in[6])->dim[2] : 0;
    return attend(n, &h, out);
}
const LsOnnxOp ls_onnx_ms_multi_head = {LS_MICROSOFT "MultiHeadAttention", 1, ms_multi_head_build};
