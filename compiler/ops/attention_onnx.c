/* compiler/ops/attention_onnx.c -- ONNX Attention (opset 23): heads as an axis or within the last
 * axis, masks, grouped queries. Caches of past keys and the cap on scores are not supported. */
#include "compiler/ops/attention_shape.h"
#include "compiler/ops/row.h"

#include <math.h>

/* Checks that the node uses only y and only operands that training supports. */
static bool plain(LsOnnxNode *n)
{
    static const char *const in[] = {"past_key", "past_value", "nonpad_kv_seqlen"};
    static const char *const out[] = {"present_key", "present_value", "qk_matmul_output"};
    for (int k = 4; k < n->nin; k++)
        if (ls_is(n->in[k]))
            return ls_onnx_error(n, LS_E_UNSUPPORTED, "export the model for training, without a "
                                 "cache of keys and values", "operand %s is not read",
                                 k < 7 ? in[k - 4] : "after the sixth");
    for (int k = 1; k < 4; k++)
        if (ls_onnx_gives(n, k))
            return ls_onnx_error(n, LS_E_UNSUPPORTED, "leave the result out",
                                 "result %s is not made", out[k - 1]);
    if (ls_onnx_float(n, "softcap", 0) != 0)
        return ls_onnx_error(n, LS_E_UNSUPPORTED, NULL, "softcap is not implemented");
    return true;
}

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
    if (s.rank > 4 || s.rank < 1 || (!bools && !ls_onnx_takes_real(n, 3)))
        return (LsValueId){0};
    for (int k = 0; k < s.rank; k++)
        to.dim[4 - s.rank + k] = s.dim[k];
    LsValueId mask = ls_reshape(n->cx, n->g, n->in[3], &to);
    if (to.dim[3] == 1 || to.dim[3] >= cols)
        return mask;
    LsAttr pad = {.pad = {.hi = {0, 0, 0, cols - to.dim[3]}, .value = bools ? 0 : -INFINITY}};
    return ls_append1(n->cx, n->g, LS_OP_PAD, mask, &pad);
}

static bool attention_build(LsOnnxNode *n, LsValueId out[])
{
    static const unsigned bit[] = {LS_Q_BY_TOKEN, LS_K_BY_TOKEN, LS_V_BY_TOKEN};
    if (!ls_onnx_takes(n, 3, 7) || !plain(n))
        return false;
    LsAttentionAttr at = {.causal = ls_onnx_int(n, "is_causal", 0) != 0, .keep = true,
                          .fill = -INFINITY};
    LsValueId in[4] = {{0}};
    for (int k = 0; k < 3; k++) {
        if (!ls_onnx_takes_real(n, k))
            return false;
        in[k] = by_head(n, k, k == 0 ? "q_num_heads" : "kv_num_heads");
        if (!ls_is(in[k]))
            return false;
        at.by_token |= ls_shape(n->g, n->in[k])->rank == 3 ? bit[k] : 0;
    }
    bool joined = at.by_token & LS_Q_BY_TOKEN;
    at.by_token |= joined ? LS_Y_BY_TOKEN : 0;
    at.scale = ls_onnx_float(n, "scale", 1 / sqrt((double)ls_shape(n->g, in[0])->dim[3]));
    if (ls_is(ls_onnx_in(n, 3))) {
        in[3] = mask_of(n, ls_shape(n->g, in[1])->dim[ls_token_axis(&at, LS_K_BY_TOKEN)]);
        if (!ls_is(in[3]))
            return false;
    }
    LsValueId y = ls_attention(n->cx, n->g, in, &at);
    if (!ls_is(y))
        return false;
    const LsShape s = *ls_shape(n->g, y);
    LsShape flat = {3, {s.dim[0], s.dim[1], s.dim[2] * s.dim[3]}};
    out[0] = joined ? ls_reshape(n->cx, n->g, y, &flat) : y;
    return ls_is(out[0]);
}

const LsOnnxOp ls_onnx_attention = {.name = "Attention", .since = 23, .build = attention_build};
