/* compiler/ops/rotary.c -- RotaryEmbedding (opset 23): rows that move and multiply. Pairs are an
 * axis of length 2, before or after the axis of angles, so that both orders of the elements are one
 * case. */
#include "compiler/ops/rotary.h"

#include "compiler/ops/index.h"

typedef struct Sizes {
    int64_t batch, tokens, depth, rotated;
} Sizes;

static Sizes sizes_of(const LsOnnxNode *n, const LsRotary *r)
{
    const LsShape *x = ls_shape(n->g, r->x);
    return (Sizes){x->dim[0], x->dim[r->by_token ? 1 : 2], x->dim[3],
                   r->rotated == 0 ? x->dim[3] : r->rotated};
}

/* The cosines (or sines) with the axes of x, the last one split into pairs. */
static LsValueId table_of(LsOnnxNode *n, const LsRotary *r, LsValueId table)
{
    const Sizes s = sizes_of(n, r);
    if (ls_is(r->ids))
        table = ls_append2(n->cx, n->g, LS_OP_GATHER, table, r->ids, NULL);
    if (!ls_is(table))
        return table;
    const LsShape t = *ls_shape(n->g, table);
    if (t.rank != 3 || (t.dim[0] != s.batch && t.dim[0] != 1) || t.dim[1] != s.tokens
        || t.dim[2] != s.rotated / 2) {
        ls_onnx_error(n, LS_E_SHAPE,
                      "give one row for each token and one angle for each pair of elements",
                      "the cosines or sines of the tokens are %s; %" PRId64 "x%" PRId64 "x%" PRId64
                      " belong to the data",
                      ls_shape_text(n->cx->arena, &t), s.batch, s.tokens, s.rotated / 2);
        return (LsValueId){0};
    }
    LsShape to = {5, {t.dim[0], 1, 1, 1, 1}};
    to.dim[r->by_token ? 1 : 2] = s.tokens;
    to.dim[r->interleaved ? 3 : 4] = s.rotated / 2;
    return ls_reshape(n->cx, n->g, table, &to);
}

/* a u + b v, or a u - b v */
static LsValueId combine(LsOnnxNode *n, LsOpCode op, const LsValueId a[2], LsValueId u, LsValueId v)
{
    return ls_append2(n->cx, n->g, op, ls_append2(n->cx, n->g, LS_OP_MUL, a[0], u, NULL),
                      ls_append2(n->cx, n->g, LS_OP_MUL, a[1], v, NULL), NULL);
}

LsValueId ls_rotary(LsOnnxNode *n, const LsRotary *r)
{
    LsCtx *cx = n->cx;
    LsGraph *g = n->g;
    const LsValueId none = {0};
    const Sizes s = sizes_of(n, r);
    int pair = r->interleaved ? 4 : 3;
    if (s.rotated < 2 || s.rotated > s.depth || s.rotated % 2 != 0) {
        ls_onnx_error(
            n, LS_E_SHAPE, "an even number of elements, at most a whole head, can be rotated",
            "%" PRId64 " elements of a head of %" PRId64 " would be rotated", s.rotated, s.depth);
        return none;
    }
    LsValueId cos = table_of(n, r, r->cos), sin = ls_is(cos) ? table_of(n, r, r->sin) : none;
    LsValueId x = ls_is(sin) ? ls_slice_axis(cx, g, r->x, 3, 0, s.rotated) : none;
    if (!ls_is(x))
        return none;
    const LsShape turned = *ls_shape(g, x);
    LsShape split = {5,
                     {turned.dim[0], turned.dim[1], turned.dim[2], s.rotated / 2, s.rotated / 2}};
    split.dim[pair] = 2;
    x = ls_reshape(cx, g, x, &split);
    const LsValueId part[2] = {ls_slice_axis(cx, g, x, pair, 0, 1),
                               ls_slice_axis(cx, g, x, pair, 1, 2)};
    LsValueId y = ls_append2(cx, g, LS_OP_CONCAT, combine(n, LS_OP_SUB, part, cos, sin),
                             combine(n, LS_OP_ADD, part, sin, cos), &(LsAttr){.axis = {pair}});
    y = ls_is(y) ? ls_reshape(cx, g, y, &turned) : y;
    if (s.rotated == s.depth || !ls_is(y))
        return y;
    return ls_append2(cx, g, LS_OP_CONCAT, y, ls_slice_axis(cx, g, r->x, 3, s.rotated, s.depth),
                      &(LsAttr){.axis = {3}});
}

/* ---- ONNX ---- */
static bool tables_fit(LsOnnxNode *n)
{
    bool ids = ls_is(ls_onnx_in(n, 3));
    for (int k = 1; k < 3; k++)
        if (ls_shape(n->g, n->in[k])->rank != (ids ? 2 : 3))
            return ls_onnx_error(n, LS_E_SHAPE, NULL,
                                 "operand %d is %s: it needs two axes with position_ids, and three "
                                 "without",
                                 k, ls_dims(n->g, n->in[k]));
    if (!ids)
        return true;
    if (!ls_is(ls_index_ints(n, 3)))
        return false;
    if (ls_shape(n->g, n->in[3])->rank != 2)
        return ls_onnx_error(n, LS_E_SHAPE, NULL,
                             "position_ids is %s: one number for each token is needed",
                             ls_dims(n->g, n->in[3]));
    int64_t rows = ls_shape(n->g, n->in[1])->dim[0];
    return ls_index_inside(n, n->in[3], rows, rows);
}

bool ls_rotary_fits(LsOnnxNode *n, int64_t heads, const char *what)
{
    const LsShape *s = ls_shape(n->g, n->in[0]);
    return s->rank == 4 || (s->rank == 3 && heads >= 1 && s->dim[2] % heads == 0)
           || ls_onnx_error(n, LS_E_SHAPE, "give [N,H,T,D], or [N,T,H*D] and num_heads",
                            "%s is %s and num_heads is %" PRId64, what, ls_dims(n->g, n->in[0]),
                            heads);
}

LsValueId ls_rotary_joined(LsOnnxNode *n, LsRotary *r, int64_t heads)
{
    const LsShape s = *ls_shape(n->g, r->x);
    if (r->by_token)
        r->x = ls_reshape(n->cx, n->g, r->x,
                          &(LsShape){4, {s.dim[0], s.dim[1], heads, s.dim[2] / heads}});
    LsValueId y = ls_rotary(n, r);
    return ls_is(y) && r->by_token ? ls_reshape(n->cx, n->g, y, &s) : y;
}

static bool rotary_build(LsOnnxNode *n, LsValueId out[])
{
    if (!ls_onnx_takes(n, 3, 4))
        return false;
    for (int k = 0; k < 3; k++)
        if (!ls_onnx_takes_real(n, k))
            return false;
    int64_t heads = ls_onnx_int(n, "num_heads", 0);
    bool joined = ls_shape(n->g, n->in[0])->rank == 3;
    if (!ls_rotary_fits(n, heads, "X") || !tables_fit(n))
        return false;
    LsRotary r = {n->in[0],
                  n->in[1],
                  n->in[2],
                  ls_onnx_in(n, 3),
                  joined,
                  ls_onnx_int(n, "interleaved", 0) != 0,
                  ls_onnx_int(n, "rotary_embedding_dim", 0)};
    return ls_is(out[0] = ls_rotary_joined(n, &r, heads));
}
const LsOnnxOp ls_onnx_rotary = {.name = "RotaryEmbedding", .since = 23, .build = rotary_build};
