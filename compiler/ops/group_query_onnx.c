/* compiler/ops/group_query_onnx.c -- GroupQueryAttention of com.microsoft, which ONNX Runtime's
 * model builder writes: q, k and v in one operand or in three, their norms and rotation, a window,
 * a cap. Training begins without a cache: what the definition says of a first prompt. */
#include "compiler/onnx/onnx_found_weights.h"
#include "compiler/ops/attention_shape.h"
#include "compiler/ops/attention_sight.h"
#include "compiler/ops/fused_onnx.h"
#include "compiler/ops/index.h"
#include "compiler/ops/rotary.h"

#include <math.h>

enum {
    Q, K, V, PAST_KEY, PAST_VALUE, LENGTHS, TOTAL, COS, SIN, IDS, BIAS, SINK, K_SCALE, V_SCALE,
    Q_NORM, K_NORM, CHUNKS, OPERANDS
};
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };
enum {
    REALS = 1 << Q | 1 << K | 1 << V | 1 << COS | 1 << SIN | 1 << BIAS | 1 << Q_NORM | 1 << K_NORM
};

typedef struct Grouped {
    int64_t batch, tokens, heads, groups, depth;
    LsValueId part[3];          /* [N,T,H,D], [N,T,G,D] twice */
    bool causal;
} Grouped;

/* ---- what is not read ---- */
static bool is_quantised(const LsOnnxNode *n)
{
    return ls_is(ls_onnx_in(n, K_SCALE)) || ls_is(ls_onnx_in(n, V_SCALE))
           || strcmp(ls_onnx_string(n, "k_quant_type", "NONE"), "NONE") != 0
           || strcmp(ls_onnx_string(n, "v_quant_type", "NONE"), "NONE") != 0;
}

/* The caches are absent or empty. */
static bool has_no_past(const LsOnnxNode *n)
{
    for (int k = PAST_KEY; k <= PAST_VALUE; k++) {
        LsValueId past = ls_onnx_in(n, k);
        if (ls_is(past) && ls_count(ls_shape(n->g, past)) > 0)
            return ls_onnx_error(
                n, LS_E_UNSUPPORTED,
                "leave --dim and --shape of the cache out, so that it is empty; or build the model "
                "with an open length of the cache",
                "the cache (operand %d) is %s: GroupQueryAttention is read without past tokens", k,
                ls_dims(n->g, past));
    }
    return true;
}

static bool is_read(LsOnnxNode *n)
{
    if (is_quantised(n))
        return ls_onnx_error(n, LS_E_UNSUPPORTED, "build the model with a cache of floats",
                             "a cache of 8 or 4 bits is not read");
    if (ls_is(ls_onnx_in(n, SINK)) || ls_onnx_int(n, "smooth_softmax", 0) > 0)
        return ls_onnx_error(n, LS_E_UNSUPPORTED, NULL,
                             "sinks of heads (head_sink, smooth_softmax) are not read");
    if (ls_is(ls_onnx_in(n, CHUNKS)))
        return ls_onnx_error(n, LS_E_UNSUPPORTED, "leave it out: whole sequences are trained",
                             "query_seqlens is not read");
    if (ls_onnx_gives(n, SCORES))
        return ls_onnx_error(n, LS_E_UNSUPPORTED, "leave the result out",
                             "the result output_qk is not made");
    if (ls_is(ls_onnx_in(n, K)) != ls_is(ls_onnx_in(n, V))
        || ls_is(ls_onnx_in(n, Q_NORM)) != ls_is(ls_onnx_in(n, K_NORM)))
        return ls_onnx_error(n, LS_E_NAME, "give both or neither",
                             "only one of key and value, or of the weights of their norms, is "
                             "given");
    return has_no_past(n);
}

/* ---- q, k and v ---- */
static LsValueId with_heads(LsOnnxNode *n, LsValueId v, int64_t heads, int64_t depth)
{
    const LsShape s = *ls_shape(n->g, v);
    return ls_reshape(n->cx, n->g, v, &(LsShape){4, {s.dim[0], s.dim[1], heads, depth}});
}

static bool misfit(LsOnnxNode *n, const Grouped *a)
{
    return ls_onnx_error(n, LS_E_SHAPE, "give [N,T,H*D], [N,T,G*D] twice, or all in one operand",
                         "the query is %s%s%s, with %" PRId64 " heads and %" PRId64
                         " heads of keys",
                         ls_dims(n->g, n->in[Q]), ls_is(ls_onnx_in(n, K)) ? ", the key " : "",
                         ls_is(ls_onnx_in(n, K)) ? ls_dims(n->g, n->in[K]) : "", a->heads,
                         a->groups);
}

static bool parts(LsOnnxNode *n, Grouped *a)
{
    LsGraph *g = n->g;
    const LsShape q = *ls_shape(g, n->in[Q]);
    const bool packed = !ls_is(ls_onnx_in(n, K));
    a->heads = ls_onnx_int(n, "num_heads", 0);
    a->groups = ls_onnx_int(n, "kv_num_heads", 0);
    if (q.rank != 3 || a->heads < 1 || a->groups < 1 || a->heads > q.dim[2] || a->groups > a->heads)
        return misfit(n, a);
    const int64_t all = a->heads + (packed ? 2 * a->groups : 0);
    a->batch = q.dim[0];
    a->tokens = q.dim[1];
    a->depth = q.dim[2] / all;
    if (q.dim[2] % all != 0 || a->heads % a->groups != 0)
        return misfit(n, a);
    int64_t from = 0;
    for (int k = Q; k <= V; k++) {
        const int64_t heads = k == Q ? a->heads : a->groups, to = from + heads * a->depth;
        const LsShape want = {3, {a->batch, a->tokens, heads * a->depth}};
        LsValueId v = packed ? ls_slice_axis(n->cx, g, n->in[Q], 2, from, to) : n->in[k];
        if (ls_is(v) && !ls_shape_same(ls_shape(g, v), &want))
            return misfit(n, a);
        a->part[k] = ls_is(v) ? with_heads(n, v, heads, a->depth) : v;
        if (!ls_is(a->part[k]))
            return false;
        from = to;
    }
    return true;
}

/* Each head of q and k by its root mean square. */
static bool norms(LsOnnxNode *n, Grouped *a)
{
    const double usual = ls_onnx_float(n, "qk_norm_epsilon", 1e-6);
    const double eps[2] = {ls_onnx_float(n, "q_norm_epsilon", usual),
                           ls_onnx_float(n, "k_norm_epsilon", usual)};
    for (int k = Q; k <= K && ls_is(ls_onnx_in(n, Q_NORM)); k++) {
        ls_onnx_weight(n, Q_NORM + k);
        a->part[k] = ls_rms_norm(n, a->part[k], n->in[Q_NORM + k], eps[k]);
        if (!ls_is(a->part[k]))
            return false;
    }
    return true;
}

/* Positions of all tokens, [N,T]: they count on from the first one of a sample. */
static LsValueId positions(LsOnnxNode *n, const Grouped *a)
{
    LsValueId ids = ls_index_ints(n, IDS);
    const LsShape *s = ls_is(ids) ? ls_shape(n->g, ids) : NULL;
    if (s == NULL || !ls_index_affords(n, a->tokens))
        return (LsValueId){0};
    if (s->rank != 2 || (s->dim[0] != a->batch && s->dim[0] != 1) || s->dim[1] < 1) {
        ls_onnx_error(n, LS_E_SHAPE, "give [N,T]", "position_ids is %s", ls_dims(n->g, ids));
        return (LsValueId){0};
    }
    ids = ls_slice_axis(n->cx, n->g, ids, 1, 0, 1);
    return ls_append2(n->cx, n->g, LS_OP_ADD, ids, ls_index_count(n, a->tokens, 1, 1, 2), NULL);
}

/* The rows of a table that the tokens have, where no positions are given: its first ones. */
static LsValueId first_rows(LsOnnxNode *n, const Grouped *a, int k)
{
    const LsShape s = *ls_shape(n->g, n->in[k]);
    LsValueId v = ls_slice_axis(n->cx, n->g, n->in[k], 0, 0, a->tokens);
    return ls_is(v) ? ls_reshape(n->cx, n->g, v, &(LsShape){3, {1, a->tokens, s.dim[1]}}) : v;
}

static bool rotate(LsOnnxNode *n, Grouped *a)
{
    LsGraph *g = n->g;
    if (ls_onnx_int(n, "do_rotary", 0) == 0)
        return true;
    if (!ls_is(ls_onnx_in(n, COS)) || !ls_is(ls_onnx_in(n, SIN)))
        return ls_onnx_error(n, LS_E_NAME, NULL, "do_rotary needs cos_cache and sin_cache");
    const LsShape table = *ls_shape(g, n->in[COS]);
    if (table.rank != 2 || !ls_shape_same(&table, ls_shape(g, n->in[SIN]))
        || table.dim[0] < a->tokens)
        return ls_onnx_error(n, LS_E_SHAPE,
                             "both have a row for each position, and shorter sequences fit",
                             "cos_cache is %s, sin_cache is %s, and there are %" PRId64 " tokens",
                             ls_dims(g, n->in[COS]), ls_dims(g, n->in[SIN]), a->tokens);
    LsRotary r = {.by_token = true,
                  .interleaved = ls_onnx_int(n, "rotary_interleaved", 0) != 0,
                  .rotated = 2 * table.dim[1]};
    const bool placed = ls_is(ls_onnx_in(n, IDS));
    if (placed
        && (!ls_is(r.ids = positions(n, a)) || !ls_index_inside(n, r.ids, 0, table.dim[0])))
        return false;
    r.cos = placed ? n->in[COS] : first_rows(n, a, COS);
    r.sin = placed ? n->in[SIN] : first_rows(n, a, SIN);
    for (int k = Q; k <= K; k++) {
        r.x = a->part[k];
        if (!ls_is(r.cos) || !ls_is(r.sin) || !ls_is(a->part[k] = ls_rotary(n, &r)))
            return false;
    }
    return true;
}

/* ---- masks ---- */
/* [N,1,1,1]: tokens of each sample, the others follow them; none after an error. */
static LsValueId lengths(LsOnnxNode *n, const Grouped *a)
{
    LsValueId last = ls_is(ls_onnx_in(n, LENGTHS)) ? ls_index_ints(n, LENGTHS) : (LsValueId){0};
    if (!ls_is(last))
        return last;
    if (ls_count(ls_shape(n->g, last)) != a->batch) {
        ls_onnx_error(n, LS_E_SHAPE, NULL, "seqlens_k is %s, the batch has %" PRId64 " samples",
                      ls_dims(n->g, last), a->batch);
        return (LsValueId){0};
    }
    last = ls_reshape(n->cx, n->g, last, &(LsShape){4, {a->batch, 1, 1, 1}});
    return ls_append2(n->cx, n->g, LS_OP_ADD, last, ls_index_const(n, 1), NULL);
}

/* Nothing but the tokens at hand. A length that is computed from data is not known here. */
static bool is_whole(LsOnnxNode *n, const Grouped *a)
{
    LsValueId total = ls_onnx_in(n, TOTAL);
    if (!ls_is(total) || !ls_is_const(n->g, total) || n->g->value[total.i].data == NULL
        || ls_count(ls_shape(n->g, total)) != 1 || ls_type(n->g, total) == LS_REAL
        || ls_const_int_at(n->g, total, 0) == a->tokens)
        return true;
    return ls_onnx_error(n, LS_E_SHAPE,
                         "the mask has as many columns as the sequence has tokens: its --dim is "
                         "that of the sequence",
                         "total_sequence_length is %" PRId64 ", and there are %" PRId64
                         " tokens and no past ones",
                         ls_const_int_at(n->g, total, 0), a->tokens);
}

/* The mask, and what the kernels' own causal one does. False after an error. Rows behind the end of
 * a sample have no defined result; with a causal mask no other row sees them. */
static bool mask_of(LsOnnxNode *n, const Grouped *a, LsAttentionAttr *at, LsValueId *mask)
{
    const int64_t window = ls_onnx_int(n, "local_window_size", -1);
    LsSight s = {.rows = a->tokens, .cols = a->tokens, .left = -1, .right = -1};
    at->causal = ls_onnx_int(n, "causal", 1) != 0;
    if (window > 0 && !at->causal)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "local_window_size needs causal");
    *mask = ls_onnx_in(n, BIAS);
    if (ls_is(*mask) && ls_shape(n->g, *mask)->rank != 4)
        return ls_onnx_error(n, LS_E_SHAPE, "it broadcasts to [N,H,T,S]", "attention_bias is %s",
                             ls_dims(n->g, *mask));
    const bool narrow = window > 0 && window < a->tokens;
    if (!narrow && (at->causal || !ls_is(ls_onnx_in(n, LENGTHS))))
        return true;
    if (!ls_index_affords(n, a->tokens))
        return false;
    s.left = narrow ? window - 1 : -1;
    s.causal = at->causal;
    if (!at->causal && !ls_is(s.filled = lengths(n, a)))
        return false;
    at->causal = false;
    LsValueId sees = ls_sight(n, &s);
    *mask = !ls_is(*mask) ? sees
                          : ls_append3(n->cx, n->g, LS_OP_WHERE, sees, *mask,
                                       ls_const_real(n->cx, n->g, -INFINITY), NULL);
    return ls_is(*mask);
}

/* ---- the node ---- */
static LsValueId attended(LsOnnxNode *n, const Grouped *a)
{
    LsAttentionAttr at = {
        .by_token = LS_Q_BY_TOKEN | LS_K_BY_TOKEN | LS_V_BY_TOKEN | LS_Y_BY_TOKEN,
        .scale = ls_onnx_float(n, "scale", 0), .keep = true, .fill = -INFINITY};
    LsValueId in[4] = {a->part[Q], a->part[K], a->part[V]}, y = {0};
    const double cap = ls_onnx_float(n, "softcap", 0);
    at.scale = at.scale == 0 ? 1 / sqrt((double)a->depth) : at.scale;
    if (!mask_of(n, a, &at, &in[3]))
        return y;
    y = cap > 0 ? ls_attention_open(n->cx, n->g, in, &at,
                                    &(LsOpenAttention){.cap = cap, .guard = true})
                : ls_attention(n->cx, n->g, in, &at);
    return ls_is(y) ? ls_reshape(n->cx, n->g, y,
                                 &(LsShape){3, {a->batch, a->tokens, a->heads * a->depth}})
                    : y;
}

static bool group_query_build(LsOnnxNode *n, LsValueId out[])
{
    Grouped a = {0};
    if (!ls_onnx_takes(n, 1, OPERANDS) || !ls_onnx_takes_reals(n, REALS) || !is_read(n)
        || !parts(n, &a) || !is_whole(n, &a) || !norms(n, &a) || !rotate(n, &a)
        || !ls_is(out[Y] = attended(n, &a)))
        return false;
    for (int k = K; k <= V; k++) {
        if (!ls_onnx_gives(n, PRESENT_KEY + k - K))
            continue;
        out[PRESENT_KEY + k - K] = ls_transpose(n->cx, n->g, a.part[k], (int[]){0, 2, 1, 3});
        if (!ls_is(out[PRESENT_KEY + k - K]))
            return false;
    }
    return true;
}
const LsOnnxOp ls_onnx_ms_group_query = {LS_MICROSOFT "GroupQueryAttention", 1, group_query_build};
