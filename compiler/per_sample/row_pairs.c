/* compiler/per_sample/row_pairs.c -- see the header. */
#include "compiler/per_sample/row_pairs.h"

#include "compiler/fold/append.h"

bool ls_row_sum_of(const LsGraph *g, LsNodeId n, LsRowSum *of)
{
    const LsNode *node = &g->node[n.i];
    const LsGemmAttr *at = &node->attr.gemm;
    if (node->op != LS_OP_MATMUL || ls_is(ls_in(g, n, 2)) || at->then != LS_THEN_NOTHING
        || ls_in_shape(g, n, 0)->rank != 2 || ls_in_shape(g, n, 1)->rank != 2)
        return false;
    const LsShape *a = ls_in_shape(g, n, 0), *b = ls_in_shape(g, n, 1);
    *of = (LsRowSum){.turned = {!at->trans_a, at->trans_b}, .alpha = at->alpha};
    of->rows = a->dim[of->turned[0] ? 1 : 0];
    of->length[0] = a->dim[of->turned[0] ? 0 : 1];
    of->length[1] = b->dim[of->turned[1] ? 0 : 1];
    return true;
}

/* alpha, in all digits, is one of the product's; a constant of the graph would be a float. */
static LsValueId gram(LsCtx *cx, LsGraph *g, LsValueId v, bool turned, double alpha)
{
    const LsAttr at = {.gemm = {.trans_a = turned, .trans_b = !turned, .alpha = alpha}};
    return ls_append2(cx, g, LS_OP_MATMUL, v, v, &at);
}

LsValueId ls_row_pairs(LsCtx *cx, LsGraph *g, const LsRowSum *of, LsValueId a, LsValueId b)
{
    a = gram(cx, g, a, of->turned[0], of->alpha);
    b = gram(cx, g, b, of->turned[1], of->alpha);
    return ls_append2(cx, g, LS_OP_MUL, a, b, NULL);
}

LsValueId ls_square_norm_by_rows(LsCtx *cx, LsGraph *g, LsValueId v)
{
    enum { PER_ELEMENT = 4 };       /* multiply-adds in the time of reading one element */
    const LsNodeId n = g->value[v.i].def;
    LsRowSum of;
    if (!ls_row_sum_of(g, n, &of)
        || of.rows * of.rows * (of.length[0] + of.length[1])
               > PER_ELEMENT * of.length[0] * of.length[1])
        return (LsValueId){0};
    v = ls_row_pairs(cx, g, &of, ls_in(g, n, 0), ls_in(g, n, 1));
    v = ls_append1(cx, g, LS_OP_REDUCE_SUM, v, &(LsAttr){.reduce = {.axes = 1 | 2, .keep = true}});
    return ls_reshape(cx, g, v, &(LsShape){0});
}
