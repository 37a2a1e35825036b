/* compiler/patterns/patterns_product.c -- folds the transpose of an operand and the addition of a
 * vector into a matrix product or convolution. */
#include "compiler/patterns/patterns_product.h"

#include "compiler/fold/append.h"

/* If v is the transpose of a stack of matrices: its operand; else none. */
static LsValueId transposed(const LsMatch *m, LsValueId v)
{
    LsNodeId n;
    if (!ls_made_by(m, v, LS_OP_TRANSPOSE, 0, &n))
        return (LsValueId){0};
    int rank = ls_shape(m->g, v)->rank;
    const int *perm = m->g->node[n.i].attr.perm.perm;
    for (int k = 0; k < rank - 2; k++)
        if (perm[k] != k)
            return (LsValueId){0};
    return perm[rank - 2] == rank - 1 ? ls_in(m->g, n, 0) : (LsValueId){0};
}

LsValueId ls_match_transposed(const LsMatch *m, LsNodeId root)
{
    LsAttr at = m->g->node[root.i].attr;
    LsValueId in[3], a = transposed(m, ls_in(m->g, root, 0)),
                     b = transposed(m, ls_in(m->g, root, 1));
    if (!ls_is(a) && !ls_is(b))
        return (LsValueId){0};
    at.gemm.trans_a ^= ls_is(a);
    at.gemm.trans_b ^= ls_is(b);
    for (int k = 0; k < 3; k++)
        in[k] = ls_image(m->r, ls_in(m->g, root, k));
    in[0] = ls_is(a) ? ls_image(m->r, a) : in[0];
    in[1] = ls_is(b) ? ls_image(m->r, b) : in[1];
    return ls_append(m->r->cx, m->r->to, LS_OP_MATMUL, m->g->node[root.i].nin, in, &at);
}

/* v has `count` elements, all along the axis that is `from_end` axes before the last one. */
static bool is_vector(const LsShape *v, int from_end, int64_t count)
{
    for (int k = 0; k < v->rank; k++)
        if (v->dim[k] != (k == v->rank - 1 - from_end ? count : 1))
            return false;
    return v->rank > from_end;
}

/* The new graph computes node n by the same operator over two operands: no other pattern, attention
 * say, has replaced it. */
static bool is_still(const LsMatch *m, LsNodeId n)
{
    const LsGraph *to = m->r->to;
    const LsNode *image = &to->node[to->value[ls_image(m->r, ls_out(m->g, n, 0)).i].def.i];
    return image->op == m->g->node[n.i].op && image->nin == 2;
}

/* Appends the product with one more operand, over the images of its two operands; changes by other
 * patterns in the new graph are kept. */
static LsValueId with_bias(const LsMatch *m, LsValueId y, LsValueId bias, int64_t count)
{
    LsGraph *to = m->r->to;
    LsNodeId n = to->value[ls_image(m->r, y).i].def;
    LsAttr at = to->node[n.i].attr;
    LsValueId in[] = {ls_in(to, n, 0), ls_in(to, n, 1), {0}};
    in[2] = ls_reshape(m->r->cx, to, ls_image(m->r, bias), &(LsShape){1, {count}});
    return ls_append(m->r->cx, to, (LsOpCode)to->node[n.i].op, 3, in, &at);
}

/* Matches a product or convolution without bias, perhaps behind a reshape, plus one number per
 * column or channel. */
LsValueId ls_match_bias(const LsMatch *m, LsNodeId root)
{
    const LsGraph *g = m->g;
    LsShape sum = *ls_shape(g, ls_out(g, root, 0));
    for (int k = 0; k < 2; k++) {
        LsNodeId view, n;
        LsValueId y = ls_in(g, root, k), bias = ls_in(g, root, 1 - k);
        if (!ls_shape_same(ls_shape(g, y), &sum) || m->readers[y.i] != 1)
            continue;
        bool through = ls_made_by(m, y, LS_OP_RESHAPE, 1, &view);
        LsValueId made = through ? ls_in(g, view, 0) : y;
        const LsShape *s = ls_shape(g, made);
        bool product = ls_made_by(m, made, LS_OP_MATMUL, 1, &n);
        bool conv = !through && (ls_made_by(m, made, LS_OP_CONV, 1, &n)
                                 || ls_made_by(m, made, LS_OP_CONV_DX, 1, &n));
        int64_t count = product ? s->dim[s->rank - 1] : conv ? s->dim[1] : 0;
        if (count == 0 || g->node[n.i].nin > 2 || !is_still(m, n)
            || (product && sum.dim[sum.rank - 1] != count)
            || !is_vector(ls_shape(g, bias), product ? 0 : s->rank - 2, count))
            continue;
        return ls_reshape(m->r->cx, m->r->to, with_bias(m, made, bias, count), &sum);
    }
    return (LsValueId){0};
}
