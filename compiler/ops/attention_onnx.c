/* compiler/ops/attention_onnx.c -- ONNX Attention (opset 23): heads as an axis or within the last
 * axis, masks, grouped queries, caches of past keys and values, a window. A cap on the scores and
 * the scores as a result need the form in products. */
#include "compiler/ops/attention_shape.h"
#include "compiler/ops/attention_sight.h"
#include "compiler/ops/index.h"

#include <math.h>

/* Operand k as [N,H,T,D], or [N,T,H,D] if it has three axes; none after an error. */
static LsValueId by_head(LsOnnxNode *n, int k, const char *count)
{
    const LsShape s = *ls_shape(n->g, n->in[k]);
    if (s.rank == 4)
        return n->in[k];
    int64_t heads = ls_onnx_int(n, count, 0);
    if (s.rank != 3 || heads < 1 || s.dim[2] % heads != 0) {
        ls_onnx_error(n, LS_E_SHAPE, "give [N,H,T,D], or [N,T,H*D] and the number of heads",
                      "operand %d is %s and %s is %" PRId64, k,
                      ls_shape_text(n->cx->arena, &s), count, heads);
        return (LsValueId){0};
    }
    LsShape to = {4, {s.dim[0], s.dim[1], heads, s.dim[2] / heads}};
    return ls_reshape(n->cx, n->g, n->in[k], &to);
}

/* The mask with four axes, extended to the number of columns: columns beyond it are hidden. */
static LsValueId mask_of(LsOnnxNode *n, int64_t cols)
{
    LsShape s = *ls_shape(n->g, n->in[3]), to = {4, {1, 1, 1, 1}};
    bool bools = ls_type(n->g, n->in[3]) == LS_BOOL;
    if (s.rank > 4 || s.rank < 1) {
        ls_onnx_error(n, LS_E_SHAPE, NULL, "attn_mask is %s: it has one axis to four",
                      ls_dims(n->g, n->in[3]));
        return (LsValueId){0};
    }
    if (!bools && !ls_onnx_takes_real(n, 3))
        return (LsValueId){0};
    for (int k = 0; k < s.rank; k++)
        to.dim[4 - s.rank + k] = s.dim[k];
    LsValueId mask = ls_reshape(n->cx, n->g, n->in[3], &to);
    if (to.dim[3] == 1 || to.dim[3] >= cols)
        return mask;
    LsAttr pad = {.pad = {.hi = {0, 0, 0, cols - to.dim[3]}, .value = bools ? 0 : -INFINITY}};
    return ls_append1(n->cx, n->g, LS_OP_PAD, mask, &pad);
}

/* ---- caches ---- */
enum { Q, K, V, MASK, PAST_KEY, PAST_VALUE, FILLED, OPERANDS };
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES };

/* Keys or values after those of the cache, as [N,H,S,D]; `in` itself where neither the cache nor
 * the result is used. */
static LsValueId with_past(LsOnnxNode *n, LsValueId in, int k, LsAttentionAttr *at, LsValueId out[])
{
    static const unsigned bit[] = {0, LS_K_BY_TOKEN, LS_V_BY_TOKEN};
    LsValueId past = ls_onnx_in(n, PAST_KEY + k - K);
    bool given = ls_onnx_gives(n, PRESENT_KEY + k - K);
    if (!ls_is(past) && !given)
        return in;
    if (at->by_token & bit[k])
        in = ls_transpose(n->cx, n->g, in, (int[]){0, 2, 1, 3});
    at->by_token &= ~bit[k];
    if (ls_is(past)
        && (ls_shape(n->g, past)->rank != 4 || !ls_onnx_takes_real(n, PAST_KEY + k - K))) {
        ls_onnx_error(n, LS_E_SHAPE, "give reals as [N,H,S,D]", "the cache (operand %d) is %s",
                      PAST_KEY + k - K, ls_dims(n->g, past));
        return (LsValueId){0};
    }
    if (ls_is(past) && ls_is(in) && ls_count(ls_shape(n->g, past)) > 0)
        in = ls_append2(n->cx, n->g, LS_OP_CONCAT, past, in, &(LsAttr){.axis = {2}});
    if (given)
        out[PRESENT_KEY + k - K] = in;
    return in;
}

/* ---- masks ---- */
/* a AND b; a: none is all. */
static LsValueId both(LsOnnxNode *n, LsValueId a, LsValueId b)
{
    return ls_is(a) ? ls_append2(n->cx, n->g, LS_OP_AND, a, b, NULL) : b;
}

/* The mask of the node. What the kernels' own causal mask cannot express becomes a part of it.
 * False after an error. */
static bool all_masks(LsOnnxNode *n, LsValueId in[4], LsAttentionAttr *at)
{
    LsValueId filled = ls_onnx_in(n, FILLED);
    const LsShape *q = ls_shape(n->g, in[Q]), *k = ls_shape(n->g, in[K]);
    LsSight s = {.rows = q->dim[ls_token_axis(at, LS_Q_BY_TOKEN)],
                 .cols = k->dim[ls_token_axis(at, LS_K_BY_TOKEN)],
                 .past = at->past,
                 .left = ls_onnx_int(n, "left_window_size", -1),
                 .right = ls_onnx_int(n, "right_window_size", -1),
                 .causal = at->causal};
    int64_t batch = q->dim[0], most = INT64_C(1) << 40;
    s.left = s.left > most ? most : s.left;
    s.right = s.right > most ? most : s.right;
    if (s.left < -1 || s.right < -1)
        return ls_onnx_error(n, LS_E_ATTR, NULL,
                             "a window ends %" PRId64 " to the left and %" PRId64 " to the right",
                             s.left, s.right);
    if (ls_is(filled)) {
        filled = ls_index_ints(n, FILLED);
        if (!ls_is(filled))
            return false;
        if (ls_count(ls_shape(n->g, filled)) != batch)
            return ls_onnx_error(n, LS_E_SHAPE, NULL,
                                 "nonpad_kv_seqlen is %s, the batch has %" PRId64 " samples",
                                 ls_dims(n->g, filled), batch);
        s.filled = ls_reshape(n->cx, n->g, filled, &(LsShape){4, {batch, 1, 1, 1}});
    }
    if (ls_is(ls_onnx_in(n, MASK)) && !ls_is(in[MASK] = mask_of(n, s.cols)))
        return false;
    if (!ls_is(s.filled) && s.left < 0 && s.right < 0)
        return true;
    if (!ls_index_affords(n, s.cols) || !ls_index_affords(n, s.rows))
        return false;
    LsValueId sees = ls_sight(n, &s);
    at->causal = false;
    if (!ls_is(in[MASK]) || ls_type(n->g, in[MASK]) == LS_BOOL)
        in[MASK] = both(n, in[MASK], sees);
    else
        in[MASK] = ls_append3(n->cx, n->g, LS_OP_WHERE, sees, in[MASK],
                              ls_const_real(n->cx, n->g, -INFINITY), NULL);
    return ls_is(in[MASK]);
}

/* ---- the node ---- */
/* Softmax has the full precision of the program, whatever softmax_precision says. */
static bool is_read(LsOnnxNode *n)
{
    bool past = ls_is(ls_onnx_in(n, PAST_KEY));
    int64_t stage = ls_onnx_int(n, "qk_matmul_output_mode", 0);
    if (past != ls_is(ls_onnx_in(n, PAST_VALUE)))
        return ls_onnx_error(n, LS_E_NAME, "give both or neither",
                             "only one of past_key and past_value is given");
    if (past && ls_is(ls_onnx_in(n, FILLED)))
        return ls_onnx_error(n, LS_E_NAME, "give one of them",
                             "there are past_key and nonpad_kv_seqlen");
    if (stage < 0 || stage >= LS_SCORES_STAGES)
        return ls_onnx_error(n, LS_E_ATTR, NULL, "qk_matmul_output_mode is %" PRId64 ", not 0 to 3",
                             stage);
    return true;
}

/* q, k and v with four axes, keys and values after those of the caches. */
static bool operands(LsOnnxNode *n, LsValueId in[4], LsAttentionAttr *at, LsValueId out[])
{
    static const unsigned bit[] = {LS_Q_BY_TOKEN, LS_K_BY_TOKEN, LS_V_BY_TOKEN};
    for (int k = Q; k <= V; k++) {
        if (!ls_onnx_takes_real(n, k))
            return false;
        in[k] = by_head(n, k, k == Q ? "q_num_heads" : "kv_num_heads");
        if (!ls_is(in[k]))
            return false;
        at->by_token |= ls_shape(n->g, n->in[k])->rank == 3 ? bit[k] : 0;
    }
    at->by_token |= at->by_token & LS_Q_BY_TOKEN ? LS_Y_BY_TOKEN : 0;
    for (int k = K; k <= V; k++)
        if (!ls_is(in[k] = with_past(n, in[k], k, at, out)))
            return false;
    at->past = ls_is(ls_onnx_in(n, PAST_KEY)) ? ls_shape(n->g, n->in[PAST_KEY])->dim[2] : 0;
    return true;
}

static bool attention_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 3, OPERANDS) || !is_read(n))
        return false;
    LsAttentionAttr at = {
        .causal = ls_onnx_int(n, "is_causal", 0) != 0, .keep = true, .fill = -INFINITY};
    LsValueId in[4] = {{0}};
    if (!operands(n, in, &at, out) || !all_masks(n, in, &at))
        return false;
    at.scale = ls_onnx_float(n, "scale", 1 / sqrt((double)ls_shape(n->g, in[Q])->dim[3]));
    LsOpenAttention open = {.cap = ls_onnx_float(n, "softcap", 0), .guard = true,
                            .stage = (LsScoresStage)ls_onnx_int(n, "qk_matmul_output_mode", 0)};
    if (ls_onnx_gives(n, SCORES))
        open.scores = &out[SCORES];
    open.cap = open.cap > 0 ? open.cap : 0;
    bool one_node = open.cap == 0 && open.scores == NULL;
    LsValueId y = one_node ? ls_attention(n->cx, n->g, in, &at)
                           : ls_attention_open(n->cx, n->g, in, &at, &open);
    if (!ls_is(y))
        return false;
    const LsShape s = *ls_shape(n->g, y);
    LsShape flat = {3, {s.dim[0], s.dim[1], s.dim[2] * s.dim[3]}};
    out[Y] = at.by_token & LS_Y_BY_TOKEN ? ls_reshape(n->cx, n->g, y, &flat) : y;
    return ls_is(out[Y]);
}

const LsOnnxOp ls_onnx_attention = {.name = "Attention", .since = 23, .build = attention_build};
